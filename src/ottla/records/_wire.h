/* The wire grammar of a record, and the only place where a byte of a record is read in C.
 *
 *   record  = length:varint  attributes:int8  timestamp delta:varlong  offset delta:varint
 *             key length:varint key  value length:varint value  header count:varint header*
 *   header  = key length:varint key  value length:varint value
 *
 * Varints are zigzag. A length of -1 is null (never for a header's key). Every field lies inside its record and every
 * record inside its payload: ottla_parse_record proves it before anything else looks at the bytes, so the walk over
 * the headers of a parsed record needs no further checks. The faults are numbered as ottla.records.errors.Fault.
 */
#ifndef OTTLA_WIRE_H
#define OTTLA_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    OTTLA_OK = 0,
    OTTLA_VARINT = 1,
    OTTLA_RECORD_LENGTH = 2,
    OTTLA_KEY_LENGTH = 3,
    OTTLA_VALUE_LENGTH = 4,
    OTTLA_HEADER_COUNT = 5,
    OTTLA_HEADER_KEY_LENGTH = 6,
    OTTLA_HEADER_VALUE_LENGTH = 7,
    OTTLA_RECORD_SIZE = 8,
    OTTLA_RECORD_COUNT = 9,
    OTTLA_TRAILING_BYTES = 10,
    OTTLA_OFFSET_RANGE = 11,
    OTTLA_TIMESTAMP_RANGE = 12,
    OTTLA_OFFSET_ORDER = 13,
    OTTLA_END = -1,
    OTTLA_MEMORY = -2,
    OTTLA_COLUMN_FULL = -3,
    OTTLA_COLUMN_BROKEN = -4,
    OTTLA_NO_NAME = -5,
    OTTLA_TOO_LARGE = -6,
    OTTLA_TIME_DISTANCE = -7
};

/* length, attributes, timestamp delta, offset delta, key length, value length, header count: a byte each */
#define OTTLA_SMALLEST_RECORD 7

typedef struct {
    int64_t timestamp_delta;
    const uint8_t *key;
    const uint8_t *value;
    const uint8_t *headers;
    int32_t offset_delta;
    int32_t key_size;
    int32_t value_size;
    int32_t header_count;
} ottla_record;

typedef struct {
    const uint8_t *key;
    const uint8_t *value;
    int32_t key_size;
    int32_t value_size;
} ottla_header;

static inline uint16_t ottla_get16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static inline uint32_t ottla_get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t ottla_get64(const uint8_t *at)
{
    return (uint64_t)ottla_get32(at) << 32 | ottla_get32(at + 4);
}

static inline void ottla_put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void ottla_put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static inline void ottla_put64(uint8_t *at, uint64_t value)
{
    ottla_put32(at, (uint32_t)(value >> 32));
    ottla_put32(at + 4, (uint32_t)value);
}

/* At most five bytes and 32 bits; NULL when the bytes end or the number is too long. */
static inline const uint8_t *ottla_get_varint(const uint8_t *at, const uint8_t *end, int32_t *out)
{
    uint32_t raw = 0;
    for (int shift = 0; shift <= 28; shift += 7) {
        if (at >= end)
            return NULL;
        uint32_t byte = *at++;
        if (shift == 28 && byte > 0x0F)
            return NULL;
        raw |= (byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *out = (int32_t)((raw >> 1) ^ (0u - (raw & 1)));
            return at;
        }
    }
    return NULL;
}

/* At most ten bytes and 64 bits. */
static inline const uint8_t *ottla_get_varlong(const uint8_t *at, const uint8_t *end, int64_t *out)
{
    uint64_t raw = 0;
    for (int shift = 0; shift <= 63; shift += 7) {
        if (at >= end)
            return NULL;
        uint64_t byte = *at++;
        if (shift == 63 && byte > 0x01)
            return NULL;
        raw |= (byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *out = (int64_t)((raw >> 1) ^ (0u - (raw & 1)));
            return at;
        }
    }
    return NULL;
}

static inline uint8_t *ottla_put_raw_varint(uint8_t *at, uint64_t raw)
{
    while (raw >= 0x80) {
        *at++ = (uint8_t)(raw | 0x80);
        raw >>= 7;
    }
    *at++ = (uint8_t)raw;
    return at;
}

static inline uint64_t ottla_zigzag(int64_t value) { return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63); }

static inline uint8_t *ottla_put_varint(uint8_t *at, int64_t value)
{
    return ottla_put_raw_varint(at, ottla_zigzag(value));
}

static inline int ottla_varint_size(int64_t value)
{
    uint64_t raw = ottla_zigzag(value);
    int size = 1;
    while (raw >= 0x80) {
        raw >>= 7;
        size++;
    }
    return size;
}

/* A length and that many bytes; `*size` is -1 for null. */
static inline int ottla_get_bytes(const uint8_t **cursor, const uint8_t *end, const uint8_t **data, int32_t *size,
                                  int fault)
{
    const uint8_t *at = ottla_get_varint(*cursor, end, size);
    if (at == NULL)
        return OTTLA_VARINT;
    *data = at;
    if (*size < 0) {
        if (*size != -1)
            return fault;
    } else {
        if (*size > end - at)
            return fault;
        at += *size;
    }
    *cursor = at;
    return OTTLA_OK;
}

static inline int ottla_next_header(const uint8_t **cursor, const uint8_t *end, ottla_header *out)
{
    int fault = ottla_get_bytes(cursor, end, &out->key, &out->key_size, OTTLA_HEADER_KEY_LENGTH);
    if (fault)
        return fault;
    if (out->key_size < 0)
        return OTTLA_HEADER_KEY_LENGTH;
    return ottla_get_bytes(cursor, end, &out->value, &out->value_size, OTTLA_HEADER_VALUE_LENGTH);
}

/* length, attributes and the three numbers behind them, with as many bytes as `ottla_short_varint` takes: the usual
 * record is read without a look at the end before every byte. */
#define OTTLA_USUAL_FIELDS 16

/* At most three bytes, all of which are there; NULL for a longer one. */
static inline const uint8_t *ottla_short_varint(const uint8_t *at, int32_t *out)
{
    uint32_t raw = at[0];
    if (raw < 0x80) {
        at += 1;
    } else if (at[1] < 0x80) {
        raw = (raw & 0x7F) | (uint32_t)at[1] << 7;
        at += 2;
    } else if (at[2] < 0x80) {
        raw = (raw & 0x7F) | (uint32_t)(at[1] & 0x7F) << 7 | (uint32_t)at[2] << 14;
        at += 3;
    } else {
        return NULL;
    }
    *out = (int32_t)((raw >> 1) ^ (0u - (raw & 1)));
    return at;
}

/* A record with short numbers, a short or no key, and without headers; 0 for any other, also for a broken one. */
static inline int ottla_parse_usual(const uint8_t **cursor, const uint8_t *payload_end, ottla_record *out)
{
    const uint8_t *at = *cursor;
    int32_t length, timestamp_delta;
    if (payload_end - at < OTTLA_USUAL_FIELDS || (at = ottla_short_varint(at, &length)) == NULL)
        return 0;
    if (length < OTTLA_USUAL_FIELDS || length > payload_end - at)
        return 0;
    const uint8_t *end = at + length;
    if ((at = ottla_short_varint(at + 1, &timestamp_delta)) == NULL)
        return 0;
    if ((at = ottla_short_varint(at, &out->offset_delta)) == NULL)
        return 0;
    if ((at = ottla_short_varint(at, &out->key_size)) == NULL || out->key_size < -1)
        return 0;
    out->timestamp_delta = timestamp_delta;
    out->key = at;
    if (out->key_size > 0) {
        /* behind it: up to three bytes of a number, and the count of headers */
        if (end - at < (int64_t)out->key_size + 4)
            return 0;
        at += out->key_size;
    }
    if ((at = ottla_short_varint(at, &out->value_size)) == NULL || out->value_size < 0)
        return 0;
    out->value = at;
    if (end - at != (int64_t)out->value_size + 1 || end[-1] != 0)
        return 0;
    out->headers = end;
    out->header_count = 0;
    *cursor = end;
    return 1;
}

static inline int ottla_parse_record(const uint8_t **cursor, const uint8_t *payload_end, ottla_record *out)
{
    if (ottla_parse_usual(cursor, payload_end, out))
        return OTTLA_OK;
    int32_t length;
    const uint8_t *at = ottla_get_varint(*cursor, payload_end, &length);
    int fault;
    if (at == NULL)
        return OTTLA_VARINT;
    if (length < OTTLA_SMALLEST_RECORD - 1 || length > payload_end - at)
        return OTTLA_RECORD_LENGTH;
    const uint8_t *end = at + length;
    at++;
    if ((at = ottla_get_varlong(at, end, &out->timestamp_delta)) == NULL)
        return OTTLA_VARINT;
    if ((at = ottla_get_varint(at, end, &out->offset_delta)) == NULL)
        return OTTLA_VARINT;
    if ((fault = ottla_get_bytes(&at, end, &out->key, &out->key_size, OTTLA_KEY_LENGTH)))
        return fault;
    if ((fault = ottla_get_bytes(&at, end, &out->value, &out->value_size, OTTLA_VALUE_LENGTH)))
        return fault;
    if ((at = ottla_get_varint(at, end, &out->header_count)) == NULL)
        return OTTLA_VARINT;
    if (out->header_count < 0 || out->header_count > (end - at) / 2)
        return OTTLA_HEADER_COUNT;
    out->headers = at;
    for (int32_t index = 0; index < out->header_count; index++) {
        ottla_header header;
        if ((fault = ottla_next_header(&at, end, &header)))
            return fault;
    }
    if (at != end)
        return OTTLA_RECORD_SIZE;
    *cursor = end;
    return OTTLA_OK;
}

static inline int ottla_add64(int64_t left, int64_t right, int64_t *sum)
{
    if ((right > 0 && left > INT64_MAX - right) || (right < 0 && left < INT64_MIN - right))
        return 0;
    *sum = left + right;
    return 1;
}

static inline int ottla_subtract64(int64_t left, int64_t right, int64_t *difference)
{
    if ((right < 0 && left > INT64_MAX + right) || (right > 0 && left < INT64_MIN + right))
        return 0;
    *difference = left - right;
    return 1;
}

/* A walk over the records of one payload. `next` gives OTTLA_OK with a record, OTTLA_END after the last one, or the
 * fault found at `index`. A batch with log-append time has one timestamp for all its records. */
typedef struct {
    const uint8_t *at;
    const uint8_t *end;
    int64_t base_offset;
    int64_t base_timestamp;
    int64_t offset;
    int64_t timestamp;
    int64_t index;
    int64_t count;
    int has_log_append_time;
    ottla_record record;
} ottla_walk;

static inline void ottla_walk_begin(ottla_walk *walk, const uint8_t *payload, size_t size, int64_t count,
                                    int64_t base_offset, int64_t base_timestamp, int64_t max_timestamp,
                                    int has_log_append_time)
{
    walk->at = payload;
    walk->end = payload + size;
    walk->base_offset = base_offset;
    walk->base_timestamp = base_timestamp;
    walk->timestamp = max_timestamp;
    walk->index = -1;
    walk->count = count;
    walk->has_log_append_time = has_log_append_time;
    memset(&walk->record, 0, sizeof walk->record);
}

/* Whether a payload that was not walked yet is large enough for as many records as its header promises. */
static inline int ottla_walk_can_hold(const ottla_walk *walk)
{
    return walk->count >= 0 && walk->count <= (walk->end - walk->at) / OTTLA_SMALLEST_RECORD;
}

static inline int ottla_walk_next(ottla_walk *walk)
{
    int fault;
    if (walk->index < 0 && !ottla_walk_can_hold(walk)) {
        walk->index = 0;
        return OTTLA_RECORD_COUNT;
    }
    walk->index++;
    if (walk->index >= walk->count)
        return walk->at == walk->end ? OTTLA_END : OTTLA_TRAILING_BYTES;
    if ((fault = ottla_parse_record(&walk->at, walk->end, &walk->record)))
        return fault;
    if (!ottla_add64(walk->base_offset, walk->record.offset_delta, &walk->offset))
        return OTTLA_OFFSET_RANGE;
    if (!walk->has_log_append_time &&
        !ottla_add64(walk->base_timestamp, walk->record.timestamp_delta, &walk->timestamp))
        return OTTLA_TIMESTAMP_RANGE;
    return OTTLA_OK;
}

/* Whether bytes are UTF-8 as Arrow demands it of strings: no overlong forms, no surrogates, nothing past U+10FFFF. */
static inline int ottla_is_utf8(const uint8_t *at, int32_t size)
{
    const uint8_t *end = at + size;
    while (at < end) {
        uint8_t lead = *at++;
        if (lead < 0x80)
            continue;
        int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
        if (lead < 0xC2 || lead > 0xF4 || more > end - at)
            return 0;
        uint8_t lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        uint8_t highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (*at < lowest || *at > highest)
            return 0;
        for (at++; --more; at++)
            if (*at < 0x80 || *at > 0xBF)
                return 0;
    }
    return 1;
}

#endif
