# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=True
# cython: initializedcheck=False, embedsignature=False
"""The compiled twin of `_pure`: the same names, the same bytes, the same errors.

The grammar of a record and its checks are C (`_wire.h`), the checksum too (`_crc32c.h`); the included files hold, in
this order, memory that is used again, the header of a batch, its records, compaction, and the way from and to Arrow buffers.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from ottla.records import errors
from ottla.records.codec import Codec
from ottla.records.types import BinaryColumn, DecodedColumns, EncodedRows

cdef extern from "_crc32c.h" nogil:
    void ottla_crc_setup()
    int ottla_crc_uses_hardware
    uint32_t ottla_crc32c(uint32_t crc, const uint8_t *data, size_t size)
    uint32_t ottla_crc32c_portable(uint32_t crc, const uint8_t *data, size_t size)

cdef extern from "_wire.h" nogil:
    enum:
        OTTLA_OK
        OTTLA_END
        OTTLA_MEMORY
        OTTLA_COLUMN_FULL
        OTTLA_COLUMN_BROKEN
        OTTLA_NO_NAME
        OTTLA_TOO_LARGE
        OTTLA_TIME_DISTANCE
        OTTLA_TIMESTAMP_RANGE
        OTTLA_OFFSET_ORDER

    ctypedef struct ottla_record:
        int64_t timestamp_delta
        const uint8_t *key
        const uint8_t *value
        const uint8_t *headers
        int32_t offset_delta
        int32_t key_size
        int32_t value_size
        int32_t header_count

    ctypedef struct ottla_header:
        const uint8_t *key
        const uint8_t *value
        int32_t key_size
        int32_t value_size

    ctypedef struct ottla_walk:
        const uint8_t *at
        const uint8_t *end
        int64_t offset
        int64_t timestamp
        int64_t index
        int64_t count
        ottla_record record

    uint16_t ottla_get16(const uint8_t *at)
    uint32_t ottla_get32(const uint8_t *at)
    uint64_t ottla_get64(const uint8_t *at)
    void ottla_put16(uint8_t *at, uint16_t value)
    void ottla_put32(uint8_t *at, uint32_t value)
    void ottla_put64(uint8_t *at, uint64_t value)
    uint8_t *ottla_put_varint(uint8_t *at, int64_t value)
    int ottla_varint_size(int64_t value)
    int ottla_subtract64(int64_t left, int64_t right, int64_t *difference)
    int ottla_next_header(const uint8_t **cursor, const uint8_t *end, ottla_header *out)
    void ottla_walk_begin(ottla_walk *walk, const uint8_t *payload, size_t size, int64_t count, int64_t base_offset,
                          int64_t base_timestamp, int64_t max_timestamp, int has_log_append_time)
    bint ottla_walk_can_hold(const ottla_walk *walk)
    int ottla_walk_next(ottla_walk *walk)
    bint ottla_is_utf8(const uint8_t *at, int32_t size)

ottla_crc_setup()

include "_native_memory.pxi"
include "_native_batches.pxi"
include "_native_records.pxi"
include "_native_compaction.pxi"
include "_native_arrow.pxi"
include "_native_arrow_encoder.pxi"
