/* Compaction without the interpreter: the last offset of every key, and what stays of a batch once it is known.
 *
 * Keys are remembered by a keyed 128-bit hash (SipHash-2-4), so 24 bytes stand for a key of any length and nobody can
 * choose two keys that are taken for one. Faults are numbered as in _wire.h; a batch that is none is OTTLA_BAD_BATCH,
 * and the caller finds out what is wrong with it.
 */
#ifndef OTTLA_COMPACTION_H
#define OTTLA_COMPACTION_H

#include <stdlib.h>
#include <sys/mman.h>

#include "_crc32c.h"
#include "_wire.h"

enum {
    OTTLA_BAD_BATCH = -10,
    /* Why a run over batches ended: no whole batch is left, the next one is for the caller, the map is full. */
    OTTLA_RUN_END = 0,
    OTTLA_RUN_LOOK = -11,
    OTTLA_RUN_FULL = -12
};

#define OTTLA_LARGE_PAGE ((size_t)2 << 20)
#define OTTLA_HEADER_BYTES 61
#define OTTLA_CODEC_BITS 0x07
#define OTTLA_APPEND_TIME_BIT 0x08
#define OTTLA_TRANSACTION_BIT 0x10
#define OTTLA_CONTROL_FLAG 0x20
#define OTTLA_HORIZON_BIT 0x40

/* Keys and their last offsets. */

typedef struct {
    uint64_t high;
    uint64_t low;
    uint64_t offset_plus_one; /* 0: the slot is free */
} ottla_slot;

typedef struct {
    ottla_slot *slots;
    uint64_t slot_count;
    uint64_t key_limit;
    uint64_t key_count;
    uint64_t seed[2];
    int64_t latest_offset;
    void *mapped;
    size_t mapped_bytes;
} ottla_offset_map;

/* Free slots, in large pages where the system has them: a search touches a page of its own every time. */
static inline int ottla_map_allocate(ottla_offset_map *map, uint64_t slot_count)
{
    size_t size = (size_t)slot_count * sizeof(ottla_slot);
    if (slot_count > SIZE_MAX / 2 / sizeof(ottla_slot))
        return 0;
    if (size < OTTLA_LARGE_PAGE) {
        map->slots = (ottla_slot *)calloc(slot_count, sizeof(ottla_slot));
        map->mapped = NULL;
        return map->slots != NULL;
    }
    map->mapped_bytes = size + OTTLA_LARGE_PAGE;
    map->mapped = mmap(NULL, map->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map->mapped == MAP_FAILED) {
        map->mapped = NULL;
        return 0;
    }
    uintptr_t aligned = ((uintptr_t)map->mapped + OTTLA_LARGE_PAGE - 1) & ~(uintptr_t)(OTTLA_LARGE_PAGE - 1);
    map->slots = (ottla_slot *)aligned;
#ifdef MADV_HUGEPAGE
    madvise(map->slots, size, MADV_HUGEPAGE);
#endif
    return 1;
}

static inline void ottla_map_free(ottla_offset_map *map)
{
    if (map->mapped != NULL)
        munmap(map->mapped, map->mapped_bytes);
    else
        free(map->slots);
}

static inline uint64_t ottla_rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

static inline void ottla_sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ottla_rotate(v[1], 13) ^ v[0];
    v[0] = ottla_rotate(v[0], 32);
    v[2] += v[3];
    v[3] = ottla_rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ottla_rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ottla_rotate(v[1], 17) ^ v[2];
    v[2] = ottla_rotate(v[2], 32);
}

static inline void ottla_sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    ottla_sip_round(v);
    ottla_sip_round(v);
    v[0] ^= word;
}

static inline uint64_t ottla_little64(const uint8_t *at, size_t count)
{
    uint64_t word = 0;
    for (size_t index = 0; index < count; index++)
        word |= (uint64_t)at[index] << (8 * index);
    return word;
}

static inline void ottla_sip128(const uint64_t seed[2], const uint8_t *data, size_t size, uint64_t out[2])
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du ^ 0xee,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    size_t whole = size & ~(size_t)7;
    for (size_t at = 0; at < whole; at += 8)
        ottla_sip_word(v, ottla_little64(data + at, 8));
    ottla_sip_word(v, (uint64_t)size << 56 | ottla_little64(data + whole, size - whole));
    v[2] ^= 0xee;
    for (int round = 0; round < 4; round++)
        ottla_sip_round(v);
    out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    for (int round = 0; round < 4; round++)
        ottla_sip_round(v);
    out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Where the search for a hash begins: its share of the slots. */
static inline uint64_t ottla_first_slot(const ottla_offset_map *map, const uint64_t hash[2])
{
    return (uint64_t)((unsigned __int128)hash[0] * map->slot_count >> 64);
}

/* The slot of a hash, or the free one where it belongs. There is always a free slot: the limit is below the count. */
static inline ottla_slot *ottla_slot_of(const ottla_offset_map *map, const uint64_t hash[2])
{
    uint64_t index = ottla_first_slot(map, hash);
    while (map->slots[index].offset_plus_one &&
           (map->slots[index].high != hash[0] || map->slots[index].low != hash[1]))
        index = index + 1 == map->slot_count ? 0 : index + 1;
    return &map->slots[index];
}

/* -1 when the key is unknown. */
static inline int64_t ottla_map_get(const ottla_offset_map *map, const uint8_t *key, size_t size)
{
    uint64_t hash[2];
    ottla_sip128(map->seed, key, size, hash);
    return (int64_t)ottla_slot_of(map, hash)->offset_plus_one - 1;
}

/* Whether there was room. A full map refuses known keys as well: where it stops is then the same for every reader. */
static inline int ottla_map_put(ottla_offset_map *map, const uint64_t hash[2], int64_t offset)
{
    if (map->key_count >= map->key_limit)
        return 0;
    ottla_slot *slot = ottla_slot_of(map, hash);
    if (!slot->offset_plus_one) {
        map->key_count++;
        slot->high = hash[0];
        slot->low = hash[1];
    }
    slot->offset_plus_one = (uint64_t)offset + 1;
    map->latest_offset = offset;
    return 1;
}

/* Keys on their way: slots are spread over more memory than any cache holds, so the memory is asked for a few keys
 * ahead of their turn. First in, first out: the map sees keys in the order of the log. */

#define OTTLA_AHEAD 16

typedef struct {
    uint64_t hash[2];
    int64_t offset;
    int32_t index;
    int is_tombstone;
} ottla_pending;

typedef struct {
    ottla_pending keys[OTTLA_AHEAD];
    unsigned first;
    unsigned count;
} ottla_queue;

static inline ottla_pending *ottla_queue_take(ottla_queue *queue)
{
    ottla_pending *taken = &queue->keys[queue->first];
    queue->first = (queue->first + 1) % OTTLA_AHEAD;
    queue->count--;
    return taken;
}

/* There must be room. */
static inline void ottla_queue_add(ottla_queue *queue, const ottla_offset_map *map, const uint8_t *key, size_t size,
                                   int64_t offset, int32_t index, int is_tombstone)
{
    ottla_pending *added = &queue->keys[(queue->first + queue->count++) % OTTLA_AHEAD];
    ottla_sip128(map->seed, key, size, added->hash);
    __builtin_prefetch(&map->slots[ottla_first_slot(map, added->hash)]);
    added->offset = offset;
    added->index = index;
    added->is_tombstone = is_tombstone;
}

/* Batches. */

typedef struct {
    int64_t base_offset;
    int64_t last_offset;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    size_t size;
    int32_t last_offset_delta;
    int32_t count;
    int attributes;
} ottla_batch;

/* OTTLA_OK with a whole batch whose CRC is right, OTTLA_RUN_LOOK when it is not all there. */
static inline int ottla_read_batch(const uint8_t *at, size_t remaining, ottla_batch *out)
{
    if (remaining < OTTLA_HEADER_BYTES)
        return OTTLA_RUN_LOOK;
    int32_t length = (int32_t)ottla_get32(at + 8);
    if (at[16] != 2 || length < OTTLA_HEADER_BYTES - 12)
        return OTTLA_BAD_BATCH;
    out->size = (size_t)length + 12;
    if (out->size > remaining)
        return OTTLA_RUN_LOOK;
    if (ottla_crc32c(0, at + 21, out->size - 21) != ottla_get32(at + 17))
        return OTTLA_BAD_BATCH;
    out->base_offset = (int64_t)ottla_get64(at);
    out->attributes = (int16_t)ottla_get16(at + 21);
    out->last_offset_delta = (int32_t)ottla_get32(at + 23);
    out->base_timestamp = (int64_t)ottla_get64(at + 27);
    out->max_timestamp = (int64_t)ottla_get64(at + 35);
    out->producer_id = (int64_t)ottla_get64(at + 43);
    out->count = (int32_t)ottla_get32(at + 57);
    if (out->base_offset < 0 || out->last_offset_delta < 0 ||
        !ottla_add64(out->base_offset, out->last_offset_delta, &out->last_offset) || out->last_offset == INT64_MAX)
        return OTTLA_OFFSET_RANGE;
    return OTTLA_OK;
}

static inline void ottla_walk_batch(ottla_walk *walk, const ottla_batch *batch, const uint8_t *payload, size_t size)
{
    ottla_walk_begin(walk, payload, size, batch->count, batch->base_offset, batch->base_timestamp,
                     batch->max_timestamp, batch->attributes & OTTLA_APPEND_TIME_BIT);
}

/* The next record, whose offset must rise and stay inside of its batch. */
static inline int ottla_walk_rising(ottla_walk *walk, const ottla_batch *batch, int64_t *previous_delta)
{
    int state = ottla_walk_next(walk);
    if (state != OTTLA_OK)
        return state;
    if (walk->record.offset_delta <= *previous_delta || walk->record.offset_delta > batch->last_offset_delta)
        return OTTLA_OFFSET_ORDER;
    *previous_delta = walk->record.offset_delta;
    return OTTLA_OK;
}

static inline int ottla_map_oldest(ottla_offset_map *map, ottla_queue *queue)
{
    const ottla_pending *key = ottla_queue_take(queue);
    return ottla_map_put(map, key->hash, key->offset);
}

/* Pass 1: note the keys of a payload from `start_offset` on. OTTLA_OK, OTTLA_RUN_FULL or a fault at `*index`. */
static inline int ottla_map_payload(ottla_offset_map *map, const ottla_batch *batch, const uint8_t *payload,
                                    size_t size, int64_t start_offset, int64_t *index)
{
    ottla_walk walk;
    ottla_queue queue = {.first = 0, .count = 0};
    int64_t previous_delta = -1;
    int state;
    ottla_walk_batch(&walk, batch, payload, size);
    while ((state = ottla_walk_rising(&walk, batch, &previous_delta)) == OTTLA_OK) {
        if (walk.record.key_size < 0 || walk.offset < start_offset)
            continue;
        if (queue.count == OTTLA_AHEAD && !ottla_map_oldest(map, &queue))
            return OTTLA_RUN_FULL;
        ottla_queue_add(&queue, map, walk.record.key, (size_t)walk.record.key_size, walk.offset,
                        (int32_t)walk.index, 0);
    }
    while (queue.count)
        if (!ottla_map_oldest(map, &queue))
            return OTTLA_RUN_FULL;
    *index = walk.index;
    if (state != OTTLA_END)
        return state;
    if (batch->last_offset > map->latest_offset)
        map->latest_offset = batch->last_offset;
    return OTTLA_OK;
}

/* Pass 1 over batches from `*position` on. Compressed batches and those of transactions are left to the caller. */
static inline int ottla_map_batches(ottla_offset_map *map, const uint8_t *data, size_t size, size_t *position,
                                    int64_t start_offset, int64_t *index)
{
    ottla_batch batch;
    int state;
    while ((state = ottla_read_batch(data + *position, size - *position, &batch)) == OTTLA_OK) {
        if (batch.last_offset >= start_offset) {
            if (batch.attributes & OTTLA_CONTROL_FLAG) {
                if (batch.last_offset > map->latest_offset)
                    map->latest_offset = batch.last_offset;
            } else if (batch.attributes & (OTTLA_CODEC_BITS | OTTLA_TRANSACTION_BIT)) {
                return OTTLA_RUN_LOOK;
            } else {
                state = ottla_map_payload(map, &batch, data + *position + OTTLA_HEADER_BYTES,
                                          batch.size - OTTLA_HEADER_BYTES, start_offset, index);
                if (state != OTTLA_OK)
                    return state;
            }
        }
        *index = 0;
        *position += batch.size;
    }
    return state == OTTLA_RUN_LOOK ? OTTLA_RUN_END : state;
}

/* Pass 2. */

typedef struct {
    const ottla_offset_map *map;
    const int64_t *kept; /* last offsets of batches that stay as empty ones, rising */
    size_t kept_count;
    int64_t now_ms;
    int64_t horizon_ms;
    int64_t end_offset;
    uint8_t *out;
    size_t out_size;
    size_t out_capacity;
    uint8_t *stays; /* one byte for each record of the batch at hand */
    size_t stays_capacity;
    /* What became of the payload at hand. */
    int64_t base_timestamp;
    int64_t max_timestamp;
    int32_t stay_count;
    int has_tombstone;
    int attributes;
    int is_whole;
} ottla_filter;

static inline int ottla_reserve(uint8_t **data, size_t *capacity, size_t needed)
{
    if (needed <= *capacity)
        return 1;
    size_t larger = *capacity * 2 > needed ? *capacity * 2 : needed;
    uint8_t *moved = (uint8_t *)realloc(*data, larger);
    if (moved == NULL)
        return 0;
    *data = moved;
    *capacity = larger;
    return 1;
}

enum { OTTLA_GOES, OTTLA_STAYS, OTTLA_ASK };

/* What can be said of a record without looking its key up. */
static inline int ottla_stays(const ottla_filter *filter, const ottla_batch *batch, const ottla_walk *walk)
{
    if (walk->offset > filter->map->latest_offset)
        return OTTLA_STAYS;
    if (walk->record.key_size < 0)
        return OTTLA_GOES;
    if (walk->record.value_size < 0 && (batch->attributes & OTTLA_HORIZON_BIT) &&
        filter->now_ms >= batch->base_timestamp)
        return OTTLA_GOES;
    return OTTLA_ASK;
}

static inline void ottla_decide(ottla_filter *filter, int32_t index, int stays, int is_tombstone)
{
    filter->stays[index] = (uint8_t)stays;
    filter->stay_count += stays;
    filter->has_tombstone |= stays && is_tombstone;
}

static inline void ottla_decide_oldest(ottla_filter *filter, ottla_queue *queue)
{
    const ottla_pending *key = ottla_queue_take(queue);
    int64_t latest = (int64_t)ottla_slot_of(filter->map, key->hash)->offset_plus_one - 1;
    ottla_decide(filter, key->index, key->offset >= latest, key->is_tombstone);
}

static inline size_t ottla_field_bytes(int32_t size)
{
    return (size_t)ottla_varint_size(size) + (size > 0 ? (size_t)size : 0);
}

static inline uint8_t *ottla_put_field(uint8_t *at, const uint8_t *data, int32_t size)
{
    at = ottla_put_varint(at, size);
    if (size <= 0)
        return at;
    memcpy(at, data, (size_t)size);
    return at + size;
}

static inline int ottla_put_record(ottla_filter *filter, const ottla_walk *walk)
{
    const ottla_record *record = &walk->record;
    const uint8_t *cursor = record->headers;
    ottla_header header;
    int64_t timestamp_delta;
    if (!ottla_subtract64(walk->timestamp, filter->base_timestamp, &timestamp_delta))
        return OTTLA_TIMESTAMP_RANGE;
    size_t body = 1 + (size_t)ottla_varint_size(timestamp_delta) + (size_t)ottla_varint_size(record->offset_delta) +
                  ottla_field_bytes(record->key_size) + ottla_field_bytes(record->value_size) +
                  (size_t)ottla_varint_size(record->header_count);
    for (int32_t index = 0; index < record->header_count; index++) {
        ottla_next_header(&cursor, walk->end, &header);
        body += ottla_field_bytes(header.key_size) + ottla_field_bytes(header.value_size);
    }
    if (body > INT32_MAX - 16)
        return OTTLA_RECORD_LENGTH;
    if (!ottla_reserve(&filter->out, &filter->out_capacity, filter->out_size + body + 10))
        return OTTLA_MEMORY;
    uint8_t *at = ottla_put_varint(filter->out + filter->out_size, (int64_t)body);
    *at++ = 0;
    at = ottla_put_varint(at, timestamp_delta);
    at = ottla_put_varint(at, record->offset_delta);
    at = ottla_put_field(at, record->key, record->key_size);
    at = ottla_put_field(at, record->value, record->value_size);
    at = ottla_put_varint(at, record->header_count);
    cursor = record->headers;
    for (int32_t index = 0; index < record->header_count; index++) {
        ottla_next_header(&cursor, walk->end, &header);
        at = ottla_put_field(at, header.key, header.key_size);
        at = ottla_put_field(at, header.value, header.value_size);
    }
    filter->out_size = (size_t)(at - filter->out);
    return OTTLA_OK;
}

/* Decide for each record, and unless all stay as they are append those that stay, without a header. */
static inline int ottla_filter_payload(ottla_filter *filter, const ottla_batch *batch, const uint8_t *payload,
                                       size_t size, int64_t *index)
{
    ottla_walk walk;
    ottla_queue queue = {.first = 0, .count = 0};
    int64_t previous_delta = -1;
    int state;
    *index = 0;
    if (batch->count > 0 && !ottla_reserve(&filter->stays, &filter->stays_capacity,
                                           (size_t)batch->count < size ? (size_t)batch->count : size + 1))
        return OTTLA_MEMORY;
    filter->stay_count = 0;
    filter->has_tombstone = 0;
    ottla_walk_batch(&walk, batch, payload, size);
    while ((state = ottla_walk_rising(&walk, batch, &previous_delta)) == OTTLA_OK) {
        int is_tombstone = walk.record.value_size < 0;
        int stays = ottla_stays(filter, batch, &walk);
        if (stays != OTTLA_ASK) {
            ottla_decide(filter, (int32_t)walk.index, stays, is_tombstone);
            continue;
        }
        if (queue.count == OTTLA_AHEAD)
            ottla_decide_oldest(filter, &queue);
        ottla_queue_add(&queue, filter->map, walk.record.key, (size_t)walk.record.key_size, walk.offset,
                        (int32_t)walk.index, is_tombstone);
    }
    while (queue.count)
        ottla_decide_oldest(filter, &queue);
    *index = walk.index;
    if (state != OTTLA_END)
        return state;
    int sets_horizon = filter->has_tombstone && !(batch->attributes & OTTLA_HORIZON_BIT);
    filter->attributes = batch->attributes | (sets_horizon ? OTTLA_HORIZON_BIT : 0);
    filter->is_whole = filter->stay_count == batch->count && !sets_horizon;
    if (filter->is_whole || filter->stay_count == 0)
        return OTTLA_OK;
    int has_base = (filter->attributes & OTTLA_HORIZON_BIT) != 0;
    filter->base_timestamp = sets_horizon ? filter->horizon_ms : batch->base_timestamp;
    filter->max_timestamp = batch->attributes & OTTLA_APPEND_TIME_BIT ? batch->max_timestamp : -1;
    ottla_walk_batch(&walk, batch, payload, size);
    while (ottla_walk_next(&walk) == OTTLA_OK) {
        if (!filter->stays[walk.index])
            continue;
        if (!has_base) {
            filter->base_timestamp = walk.timestamp;
            has_base = 1;
        }
        if (walk.timestamp > filter->max_timestamp)
            filter->max_timestamp = walk.timestamp;
        *index = walk.index;
        if ((state = ottla_put_record(filter, &walk)) != OTTLA_OK)
            return state;
    }
    return OTTLA_OK;
}

/* Whether a batch without records stays: it holds the last sequence of a producer, or the end of what was cleaned. */
static inline int ottla_keeps_empty(const ottla_filter *filter, int64_t last_offset, int64_t producer_id)
{
    size_t low = 0, high = filter->kept_count;
    if (last_offset + 1 == filter->end_offset)
        return 1;
    if (producer_id < 0)
        return 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (filter->kept[middle] < last_offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < filter->kept_count && filter->kept[low] == last_offset;
}

/* Fill in the header at `start` of the output: the original's, but for what has changed. */
static inline int ottla_finish_batch(ottla_filter *filter, const uint8_t *original, size_t start)
{
    uint8_t *at = filter->out + start;
    size_t size = filter->out_size - start;
    if (size > INT32_MAX)
        return OTTLA_RECORD_LENGTH;
    memcpy(at, original, OTTLA_HEADER_BYTES);
    ottla_put32(at + 8, (uint32_t)(size - 12));
    ottla_put16(at + 21, (uint16_t)filter->attributes);
    ottla_put64(at + 27, (uint64_t)filter->base_timestamp);
    ottla_put64(at + 35, (uint64_t)filter->max_timestamp);
    ottla_put32(at + 57, (uint32_t)filter->stay_count);
    ottla_put32(at + 17, ottla_crc32c(0, at + 21, size - 21));
    return OTTLA_OK;
}

static inline int ottla_filter_batch(ottla_filter *filter, const uint8_t *original, const ottla_batch *batch,
                                     int64_t *index)
{
    size_t start = filter->out_size;
    int state;
    if (!ottla_reserve(&filter->out, &filter->out_capacity, start + batch->size))
        return OTTLA_MEMORY;
    filter->out_size = start + OTTLA_HEADER_BYTES;
    state = ottla_filter_payload(filter, batch, original + OTTLA_HEADER_BYTES, batch->size - OTTLA_HEADER_BYTES,
                                 index);
    if (state != OTTLA_OK)
        return state;
    if (filter->stay_count == 0) {
        if (!ottla_keeps_empty(filter, batch->last_offset, batch->producer_id)) {
            filter->out_size = start;
            return OTTLA_OK;
        }
        filter->attributes = batch->attributes & OTTLA_APPEND_TIME_BIT;
        filter->base_timestamp = -1;
        filter->max_timestamp = batch->max_timestamp;
        return ottla_finish_batch(filter, original, start);
    }
    if (!filter->is_whole)
        return ottla_finish_batch(filter, original, start);
    memcpy(filter->out + start, original, batch->size);
    filter->out_size = start + batch->size;
    return OTTLA_OK;
}

/* Pass 2 over batches from `*position` on. Compressed batches and those of transactions are left to the caller. */
static inline int ottla_filter_batches(ottla_filter *filter, const uint8_t *data, size_t size, size_t *position,
                                       int64_t *index)
{
    ottla_batch batch;
    int state;
    while ((state = ottla_read_batch(data + *position, size - *position, &batch)) == OTTLA_OK) {
        if (batch.attributes & (OTTLA_CODEC_BITS | OTTLA_TRANSACTION_BIT | OTTLA_CONTROL_FLAG))
            return OTTLA_RUN_LOOK;
        if ((state = ottla_filter_batch(filter, data + *position, &batch, index)) != OTTLA_OK)
            return state;
        *index = 0;
        *position += batch.size;
    }
    return state == OTTLA_RUN_LOOK ? OTTLA_RUN_END : state;
}

#endif
