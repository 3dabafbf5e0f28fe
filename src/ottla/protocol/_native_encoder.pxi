# Writing: everything between two sets of records goes into one piece of memory.

cdef uint8_t *_room_for(Writer *writer, Py_ssize_t count) except NULL:
    """Where the next bytes go, which count as written by that."""
    cdef Py_ssize_t room
    cdef void *data
    if count > writer.room - writer.size or writer.data == NULL:
        room = 2 * writer.room + count + 256
        data = realloc(writer.data, room)
        if data == NULL:
            raise MemoryError()
        writer.data = <uint8_t *>data
        writer.room = room
    writer.size += count
    writer.has_piece = True
    return writer.data + writer.size - count


cdef int _put_big_endian(Writer *writer, uint64_t value, Py_ssize_t width) except -1:
    cdef uint8_t *at = _room_for(writer, width)
    cdef Py_ssize_t index
    for index in range(width - 1, -1, -1):
        at[index] = <uint8_t>(value & 0xFF)
        value >>= 8
    return 0


cdef int _put_varint(Writer *writer, uint64_t value) except -1:
    while value >= 0x80:
        _room_for(writer, 1)[0] = <uint8_t>(value & 0x7F | 0x80)
        value >>= 7
    _room_for(writer, 1)[0] = <uint8_t>value
    return 0


cdef int _write_bytes(Writer *writer, object value) except -1:
    cdef Py_buffer view
    if PyBytes_Check(value):
        if PyBytes_GET_SIZE(value):
            memcpy(_room_for(writer, PyBytes_GET_SIZE(value)), PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        return 0
    PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    try:
        if view.len:
            memcpy(_room_for(writer, view.len), view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int _put_length(Writer *writer, Py_ssize_t size, bint is_short) except -1:
    if writer.flexible:
        if is_short and size > _LONGEST_STRING:
            wire.string_varint(size + 1)
        _put_varint(writer, <uint64_t>size + 1)
    elif size > (_LONGEST_STRING if is_short else 0x7FFFFFFF):
        raise _StructError(f"{size} is too long to be written")
    else:
        _put_big_endian(writer, <uint64_t>size, 2 if is_short else 4)
    return 0


cdef int _put_null(Writer *writer, bint is_short) except -1:
    if writer.flexible:
        _put_varint(writer, 0)
    else:
        _put_big_endian(writer, <uint64_t>-1, 2 if is_short else 4)
    return 0


cdef int _write_integer(Writer *writer, _Field field, object value) except -1:
    cdef int overflow = 0
    cdef long long number
    cdef int64_t low, high
    cdef Py_ssize_t width = _WIDTHS[field.kind]
    if not PyLong_CheckExact(value):
        value = PyNumber_Index(value)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if field.kind == UINT16:
        low, high = 0, 0xFFFF
    elif field.kind == INT64:
        low, high = number, number
    else:
        high = (<int64_t>1 << (8 * width - 1)) - 1
        low = -high - 1
    if overflow or number < low or number > high:
        raise _StructError(f"{field.name} is {value}, which does not fit into {width} bytes")
    _put_big_endian(writer, <uint64_t>number, width)
    return 0


cdef int _write_uuid(Writer *writer, _Field field, object value) except -1:
    if len(value) != 16:
        raise wire.not_a_uuid(field.name, value)
    if not PyBytes_Check(value) and not PyByteArray_Check(value):
        raise _StructError(f"{field.name} must be bytes")
    _write_bytes(writer, value)
    return 0


cdef int _write_double(Writer *writer, object value) except -1:
    cdef double number = PyFloat_AsDouble(value)
    cdef uint64_t bits
    memcpy(&bits, &number, 8)
    _put_big_endian(writer, bits, 8)
    return 0


cdef object _refused_null(_Field field):
    """Where other versions have a null, it is a matter of the version; where none has one, of the type."""
    if field.is_ever_nullable or field.kind == RECORDS:
        return wire.null_unencodable(field.name)
    return TypeError(f"{field.name} must not be None")


cdef int _write_sized(Writer *writer, _Field field, object value, bint is_nullable, list parts) except -1:
    cdef const char *text
    cdef Py_ssize_t size = 0
    if value is None:
        if not is_nullable:
            raise _refused_null(field)
        _put_null(writer, field.kind == STRING)
    elif field.kind == STRING:
        if not PyUnicode_Check(value):
            raise AttributeError(f"{field.name} must be a string, not {value!r}")
        text = PyUnicode_AsUTF8AndSize(value, &size)
        _put_length(writer, size, True)
        if size:
            memcpy(_room_for(writer, size), text, size)
    elif field.kind == BYTES:
        _put_length(writer, len(value), False)
        _write_bytes(writer, value)
    else:
        size = len(value)
        _put_length(writer, size, False)
        if size:
            parts.append(PyBytes_FromStringAndSize(<const char *>writer.data, writer.size))
            parts.append(value)
            writer.size = 0
            writer.has_piece = False
    return 0


cdef int _write_one(Writer *writer, _Field field, object value, bint is_nullable, list parts) except -1:
    """A value that is no array, or an element of one."""
    if field.kind <= INT64:
        return _write_integer(writer, field, value)
    if field.kind == UUID:
        return _write_uuid(writer, field, value)
    if field.kind == BOOLEAN:
        _room_for(writer, 1)[0] = 1 if value else 0
        return 0
    if field.kind == FLOAT64:
        return _write_double(writer, value)
    if field.kind < STRUCT:
        return _write_sized(writer, field, value, is_nullable, parts)
    if is_nullable:
        if value is None:
            _room_for(writer, 1)[0] = 0xFF if field.tag < 0 else 0
            return 0
        _room_for(writer, 1)[0] = 1
    elif value is None:
        raise _refused_null(field)
    return _write_struct(writer, field.layout, value, parts)


cdef int _write_array(Writer *writer, _Field field, object value, list parts) except -1:
    if value is None:
        if not field.is_nullable:
            raise _refused_null(field)
        return _put_null(writer, False)
    _put_length(writer, len(value), False)
    for item in value:
        _write_one(writer, field, item, False, parts)
    return 0


cdef inline int _write_field(Writer *writer, _Field field, object value, list parts) except -1:
    if field.is_array:
        return _write_array(writer, field, value, parts)
    return _write_one(writer, field, value, field.is_nullable, parts)


cdef object _taken(object holder, _Field field):
    cdef PyObject *value = ottla_slot(<PyObject *>holder, field.offset)[0]
    if value == NULL:
        raise AttributeError(f"{type(holder).__name__} has no {field.name}")
    return <object>value


cdef int _differs(_Field field, object value) except -1:
    """Whether it is something else than the default."""
    cdef _Field inner
    if not field.is_fresh:
        return value is not None if field.default is None else bool(value != field.default)
    if field.is_array:
        return field.is_ever_nullable if value is None else bool(value)
    if value is None:
        return 1
    if not PyObject_TypeCheck(value, <PyTypeObject *>field.layout.cls):
        raise TypeError(f"{field.name} must be a {field.layout.cls.__name__}, not {value!r}")
    for inner in field.layout.fields:
        if _differs(inner, _taken(value, inner)):
            return 1
    for inner in field.layout.unread:
        if _differs(inner, _taken(value, inner)):
            return 1
    return 0


cdef int _write_struct(Writer *writer, Layout layout, object value, list parts) except -1:
    cdef _Field field
    if not PyObject_TypeCheck(value, <PyTypeObject *>layout.cls):
        raise TypeError(f"a {layout.cls.__name__} is expected, not {value!r}")
    for field in layout.refused:
        found = _taken(value, field)
        if _differs(field, found):
            raise wire.field_missing(field.name, layout.version, found)
    for field in layout.fields:
        _write_field(writer, field, _taken(value, field), parts)
    if layout.flexible:
        _write_tags(writer, layout, value, parts)
    return 0


cdef int _write_tags(Writer *writer, Layout layout, object value, list parts) except -1:
    """Only those that are not the default. The size of one is known when it is written, and put before it then."""
    cdef _Field field
    cdef Py_ssize_t start, size, prefix
    cdef uint8_t count = 0
    cdef Py_ssize_t count_at
    _room_for(writer, 1)[0] = 0
    count_at = writer.size - 1
    for field in layout.tagged:
        found = _taken(value, field)
        if not _differs(field, found):
            continue
        count += 1
        _put_varint(writer, <uint64_t>field.tag)
        start = writer.size
        _write_field(writer, field, found, parts)
        size = writer.size - start
        _put_varint(writer, <uint64_t>size)
        prefix = writer.size - start - size
        _move_to_front(writer.data + start, size, prefix)
    writer.data[count_at] = count
    return 0


cdef void _move_to_front(uint8_t *data, Py_ssize_t size, Py_ssize_t prefix) noexcept:
    """Swap what is in `data`: `size` bytes, and at most five behind them."""
    cdef uint8_t[8] kept
    memcpy(kept, data + size, prefix)
    memmove(data + prefix, data, size)
    memcpy(data, kept, prefix)
