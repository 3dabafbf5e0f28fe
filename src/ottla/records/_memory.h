/* Blocks of memory that grow.
 *
 * Large ones are mapped on their own, so that the system has them back when they are freed: allocators keep them for the
 * thread that they were made by, and one that is in use keeps all those before it.
 */
#ifndef OTTLA_MEMORY_H
#define OTTLA_MEMORY_H

#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "_wire.h"

#define OTTLA_LARGE 131072

typedef struct {
    uint8_t *data;
    int64_t size;
    int64_t capacity;
} ottla_block;

/* Other memory for a block, with as much of its content as fits; NULL, and nothing changed, if there is none. A size
 * of 0 frees it. */
static uint8_t *ottla_memory(uint8_t *data, int64_t before, int64_t after)
{
#ifdef __linux__
    if (before >= OTTLA_LARGE || after >= OTTLA_LARGE) {
        void *other;
        if (before >= OTTLA_LARGE && after >= OTTLA_LARGE) {
            other = mremap(data, before, after, MREMAP_MAYMOVE);
            return other == MAP_FAILED ? NULL : other;
        }
        if (after >= OTTLA_LARGE) {
            other = mmap(NULL, after, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (other == MAP_FAILED)
                return NULL;
            if (before)
                memcpy(other, data, before);
            free(data);
            return other;
        }
        other = after ? malloc(after) : NULL;
        if (after && other == NULL)
            return NULL;
        if (after)
            memcpy(other, data, after);
        munmap(data, before);
        return other;
    }
#endif
    if (after)
        return realloc(data, after);
    free(data);
    return NULL;
}

static inline int ottla_block_grow(ottla_block *block, int64_t capacity)
{
    uint8_t *data = ottla_memory(block->data, block->capacity, capacity);
    if (data == NULL)
        return OTTLA_MEMORY;
    block->data = data;
    block->capacity = capacity;
    return OTTLA_OK;
}

static inline int ottla_block_room(ottla_block *block, int64_t more)
{
    if (block->size + more <= block->capacity)
        return OTTLA_OK;
    int64_t capacity = block->capacity * 2;
    if (capacity < block->size + more)
        capacity = block->size + more;
    return ottla_block_grow(block, capacity < 64 ? 64 : capacity);
}

#endif
