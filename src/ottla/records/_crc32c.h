/* CRC-32C (Castagnoli), the checksum of record batches.
 *
 * Three ways, chosen once at import: the crc32 instruction of x86 (SSE 4.2, found at run time) or of ARMv8 (known at
 * compile time), and tables for every other machine. The instruction has a latency of three cycles and a throughput
 * of one, so long inputs are cut in three lanes that run side by side. A lane's register is carried over the bytes of
 * the lanes behind it with a table: appending N zero bytes to a message is a linear map of the 32-bit register, and
 * four tables of 256 entries hold that map for one N.
 *
 * All functions take and give the inverted register, except ottla_crc32c, which is the checksum itself.
 */
#ifndef OTTLA_CRC32C_H
#define OTTLA_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OTTLA_POLYNOMIAL 0x82F63B78u
#define OTTLA_LONG_LANE 4096
#define OTTLA_SHORT_LANE 256

static uint32_t ottla_byte_tables[8][256];

static void ottla_fill_byte_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = (value >> 1) ^ ((value & 1) ? OTTLA_POLYNOMIAL : 0);
        ottla_byte_tables[0][byte] = value;
    }
    for (int table = 1; table < 8; table++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = ottla_byte_tables[table - 1][byte];
            ottla_byte_tables[table][byte] = (before >> 8) ^ ottla_byte_tables[0][before & 0xFF];
        }
}

static uint32_t ottla_crc_by_table(uint32_t crc, const uint8_t *data, size_t size)
{
    while (size >= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                              (uint32_t)data[3] << 24);
        crc = ottla_byte_tables[7][low & 0xFF] ^ ottla_byte_tables[6][(low >> 8) & 0xFF] ^
              ottla_byte_tables[5][(low >> 16) & 0xFF] ^ ottla_byte_tables[4][low >> 24] ^
              ottla_byte_tables[3][data[4]] ^ ottla_byte_tables[2][data[5]] ^
              ottla_byte_tables[1][data[6]] ^ ottla_byte_tables[0][data[7]];
        data += 8;
        size -= 8;
    }
    while (size--)
        crc = (crc >> 8) ^ ottla_byte_tables[0][(crc ^ *data++) & 0xFF];
    return crc;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <nmmintrin.h>
#define OTTLA_HARDWARE_CRC 1
#define OTTLA_TARGET __attribute__((target("sse4.2")))
#define OTTLA_STEP(crc, word) _mm_crc32_u64((crc), (word))
#define OTTLA_STEP_BYTE(crc, byte) _mm_crc32_u8((uint32_t)(crc), (byte))
static int ottla_has_hardware_crc(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") != 0;
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32) && !defined(__AARCH64EB__)
#include <arm_acle.h>
#define OTTLA_HARDWARE_CRC 1
#define OTTLA_TARGET
#define OTTLA_STEP(crc, word) __crc32cd((uint32_t)(crc), (word))
#define OTTLA_STEP_BYTE(crc, byte) __crc32cb((uint32_t)(crc), (byte))
static int ottla_has_hardware_crc(void) { return 1; }
#endif

#ifdef OTTLA_HARDWARE_CRC
static uint32_t ottla_zeros_long[4][256];
static uint32_t ottla_zeros_short[4][256];

static inline uint64_t ottla_word(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

static inline uint32_t ottla_append_zeros(uint32_t tables[4][256], uint64_t crc)
{
    return tables[0][crc & 0xFF] ^ tables[1][(crc >> 8) & 0xFF] ^ tables[2][(crc >> 16) & 0xFF] ^
           tables[3][(crc >> 24) & 0xFF];
}

OTTLA_TARGET static void ottla_fill_zeros(uint32_t tables[4][256], size_t zeros)
{
    for (int lane = 0; lane < 4; lane++) {
        uint32_t image[8];
        for (int bit = 0; bit < 8; bit++) {
            uint64_t crc = (uint32_t)1 << (lane * 8 + bit);
            for (size_t done = 0; done < zeros; done += 8)
                crc = OTTLA_STEP(crc, 0);
            image[bit] = (uint32_t)crc;
        }
        for (int byte = 0; byte < 256; byte++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++)
                if (byte >> bit & 1)
                    sum ^= image[bit];
            tables[lane][byte] = sum;
        }
    }
}

OTTLA_TARGET static inline uint32_t ottla_three_lanes(uint32_t crc, const uint8_t *data, size_t lane,
                                                      uint32_t zeros[4][256])
{
    uint64_t first = crc, second = 0, third = 0;
    for (size_t at = 0; at < lane; at += 8) {
        first = OTTLA_STEP(first, ottla_word(data + at));
        second = OTTLA_STEP(second, ottla_word(data + lane + at));
        third = OTTLA_STEP(third, ottla_word(data + 2 * lane + at));
    }
    second ^= ottla_append_zeros(zeros, first);
    third ^= ottla_append_zeros(zeros, second);
    return (uint32_t)third;
}

OTTLA_TARGET static uint32_t ottla_crc_by_hardware(uint32_t crc, const uint8_t *data, size_t size)
{
    while (size >= 3 * OTTLA_LONG_LANE) {
        crc = ottla_three_lanes(crc, data, OTTLA_LONG_LANE, ottla_zeros_long);
        data += 3 * OTTLA_LONG_LANE;
        size -= 3 * OTTLA_LONG_LANE;
    }
    while (size >= 3 * OTTLA_SHORT_LANE) {
        crc = ottla_three_lanes(crc, data, OTTLA_SHORT_LANE, ottla_zeros_short);
        data += 3 * OTTLA_SHORT_LANE;
        size -= 3 * OTTLA_SHORT_LANE;
    }
    uint64_t wide = crc;
    while (size >= 8) {
        wide = OTTLA_STEP(wide, ottla_word(data));
        data += 8;
        size -= 8;
    }
    while (size--)
        wide = OTTLA_STEP_BYTE(wide, *data++);
    return (uint32_t)wide;
}
#endif

static int ottla_crc_uses_hardware = 0;

static void ottla_crc_setup(void)
{
    ottla_fill_byte_tables();
#ifdef OTTLA_HARDWARE_CRC
    if (ottla_has_hardware_crc()) {
        ottla_fill_zeros(ottla_zeros_long, OTTLA_LONG_LANE);
        ottla_fill_zeros(ottla_zeros_short, OTTLA_SHORT_LANE);
        ottla_crc_uses_hardware = 1;
    }
#endif
}

static uint32_t ottla_crc32c(uint32_t crc, const uint8_t *data, size_t size)
{
#ifdef OTTLA_HARDWARE_CRC
    if (ottla_crc_uses_hardware)
        return ~ottla_crc_by_hardware(~crc, data, size);
#endif
    return ~ottla_crc_by_table(~crc, data, size);
}

static uint32_t ottla_crc32c_portable(uint32_t crc, const uint8_t *data, size_t size)
{
    return ~ottla_crc_by_table(~crc, data, size);
}

#endif
