/* Rows of Arrow columns, made of the records of a payload: one loop over the records, and no call for any of them.
 *
 * What must stay true: before a payload is put, there is room for all of its rows, and in the values for all of its
 * bytes and OTTLA_SLACK more, so that short values can be copied in whole words. Keys grow on their way, since most
 * payloads have few bytes of them. A bitmap of what is valid exists from the first null on.
 */
#ifndef OTTLA_COLUMNS_H
#define OTTLA_COLUMNS_H

#include "_memory.h"
#include "_wire.h"

#define OTTLA_SLACK 32
#define OTTLA_SHORT_COPY 512

typedef struct {
    ottla_block data;
    ottla_block offsets;
    ottla_block validity;
    int64_t rows;
    int64_t nulls;
} ottla_binary;

typedef struct {
    ottla_binary key;
    ottla_binary value;
    ottla_block offset;
    ottla_block timestamp;
    ottla_block timestamp_type;
    ottla_block header_offsets;
    int64_t first_offset;
    int64_t end_offset;
    int64_t factor;
} ottla_columns;

/* A bit for every row that there is room for; new ones are zeros. */
static int ottla_binary_bits(ottla_binary *column)
{
    int64_t before = column->validity.capacity;
    int64_t bytes = (column->offsets.capacity / 4 + 7) / 8;
    if (bytes <= before)
        return OTTLA_OK;
    if (ottla_block_grow(&column->validity, bytes))
        return OTTLA_MEMORY;
    memset(column->validity.data + before, 0, bytes - before);
    return OTTLA_OK;
}

/* Room for more rows and bytes; one offset is always ahead of the rows. */
static int ottla_binary_room(ottla_binary *column, int64_t rows, int64_t bytes)
{
    column->offsets.size = column->rows * 4;
    if (ottla_block_room(&column->data, bytes) || ottla_block_room(&column->offsets, (rows + 1) * 4))
        return OTTLA_MEMORY;
    if (column->rows == 0)
        ((int32_t *)column->offsets.data)[0] = 0;
    return column->nulls ? ottla_binary_bits(column) : OTTLA_OK;
}

/* The next row is null. Those before the first one are valid. */
static int ottla_binary_null(ottla_binary *column)
{
    if (ottla_binary_bits(column))
        return OTTLA_MEMORY;
    if (column->nulls == 0) {
        memset(column->validity.data, 0xFF, column->rows >> 3);
        column->validity.data[column->rows >> 3] = (uint8_t)((1 << (column->rows & 7)) - 1);
    }
    column->nulls++;
    return OTTLA_OK;
}

/* Both ends have OTTLA_SLACK bytes more than `size`. */
static inline void ottla_copy_short(uint8_t *to, const uint8_t *from, int64_t size)
{
    for (int64_t done = 0; done < size; done += 32)
        memcpy(to + done, from + done, 32);
}

/* Add a row, null for a negative size. There is room for the row and its bytes. */
static inline int ottla_binary_put(ottla_binary *column, const uint8_t *from, int32_t size, int has_slack)
{
    int64_t row = column->rows;
    if (size < 0) {
        if (ottla_binary_null(column))
            return OTTLA_MEMORY;
    } else {
        if (column->data.size + size > INT32_MAX)
            return OTTLA_COLUMN_FULL;
        if (has_slack && size <= OTTLA_SHORT_COPY)
            ottla_copy_short(column->data.data + column->data.size, from, size);
        else if (size)
            memcpy(column->data.data + column->data.size, from, size);
        column->data.size += size;
        if (column->nulls)
            column->validity.data[row >> 3] |= (uint8_t)(1 << (row & 7));
    }
    column->rows = row + 1;
    ((int32_t *)column->offsets.data)[row + 1] = (int32_t)column->data.size;
    return OTTLA_OK;
}

/* Put records until the payload ends, something is wrong, or a record has headers that are wanted: OTTLA_OK says that
 * the last row that was put is of such a record, `header_rows` are those before it. */
static int ottla_put_rows(ottla_columns *to, ottla_walk *from, int32_t timestamp_type, int with_headers,
                          int32_t header_rows)
{
    ottla_walk walk = *from;
    int64_t *offsets = (int64_t *)to->offset.data;
    int64_t *timestamps = (int64_t *)to->timestamp.data;
    int32_t *types = (int32_t *)to->timestamp_type.data;
    int32_t *header_offsets = (int32_t *)to->header_offsets.data;
    int state;
    while ((state = ottla_walk_next(&walk)) == OTTLA_OK) {
        int64_t row = to->value.rows;
        int64_t timestamp = walk.timestamp;
        if (walk.offset < to->first_offset || walk.offset >= to->end_offset)
            continue;
        if (to->factor != 1) {
            if (timestamp > INT64_MAX / to->factor || timestamp < -(INT64_MAX / to->factor)) {
                state = OTTLA_TIMESTAMP_RANGE;
                break;
            }
            timestamp *= to->factor;
        }
        if (walk.record.key_size > 0 && (state = ottla_block_room(&to->key.data, walk.record.key_size)))
            break;
        if ((state = ottla_binary_put(&to->key, walk.record.key, walk.record.key_size, 0)))
            break;
        int has_slack = walk.end - walk.record.value >= (int64_t)walk.record.value_size + OTTLA_SLACK;
        if ((state = ottla_binary_put(&to->value, walk.record.value, walk.record.value_size, has_slack)))
            break;
        offsets[row] = walk.offset;
        timestamps[row] = timestamp;
        types[row] = timestamp_type;
        header_offsets[row + 1] = header_rows;
        if (with_headers && walk.record.header_count)
            break;
    }
    *from = walk;
    return state;
}

#endif
