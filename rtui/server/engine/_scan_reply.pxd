"""The reply to SCAN: a cursor and the names of a page, found where they stand in the input.

The reply has been walked over to its end by `_replies`, but may be anything: each length is compared with what is there.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc

from rtui.server.engine._replies cimport BAD, OTHER, Reply, parse_number

cdef struct Names:  # of one page of SCAN
    const uint8_t** starts
    size_t* lengths
    uint8_t* keep
    size_t capacity


cdef inline bint reserve_names(Names* names, size_t count) noexcept nogil:
    cdef void* grown
    if count <= names.capacity:
        return True
    grown = realloc(names.starts, 2 * count * sizeof(uint8_t*))
    if grown == NULL:
        return False
    names.starts = <const uint8_t**>grown
    grown = realloc(names.lengths, 2 * count * sizeof(size_t))
    if grown == NULL:
        return False
    names.lengths = <size_t*>grown
    grown = realloc(names.keep, 2 * count)
    if grown == NULL:
        return False
    names.keep = <uint8_t*>grown
    names.capacity = 2 * count
    return True


cdef inline int64_t header_of(const uint8_t** at, const uint8_t* end, uint8_t mark) noexcept nogil:
    """Return the number behind a mark and move on behind its line, -1 where something else is there.

    The reply was walked over, so its lines end where they should.
    """
    cdef const uint8_t* start = at[0] + 1
    cdef const uint8_t* stop = start
    cdef int64_t number
    if at[0] >= end or at[0][0] != mark:
        return -1
    while stop < end and stop[0] != 13:
        stop += 1
    if parse_number(start, stop - start, &number) == BAD or number < 0:
        return -1
    at[0] = stop + 2
    return number


cdef inline int read_page(Names* names, const Reply* reply, uint64_t* cursor, size_t* count) noexcept nogil:
    """Find cursor and names in a reply to SCAN; 1, 0 where it is no page of keys, -1 where there is no memory."""
    cdef const uint8_t* at = reply.text
    cdef const uint8_t* end = reply.text + reply.length
    cdef int64_t length, many, index
    cdef uint64_t value = 0
    cdef uint8_t digit
    if reply.kind != OTHER or header_of(&at, end, b'*') != 2:
        return 0
    length = header_of(&at, end, b'$')
    if length < 1 or length > 20:
        return 0
    for index in range(length):
        digit = <uint8_t>(at[index] - 48)
        if digit > 9:
            return 0
        if value > (<uint64_t>-1 - digit) // 10:
            return 0
        value = 10 * value + digit
    cursor[0] = value
    at += length + 2
    many = header_of(&at, end, b'*')
    if many < 0 or many > reply.length:
        return 0
    if not reserve_names(names, <size_t>many):
        return -1
    for index in range(many):
        length = header_of(&at, end, b'$')
        if length < 0 or length > end - at:
            return 0
        names.starts[index], names.lengths[index] = at, <size_t>length
        at += length + 2
    count[0] = <size_t>many
    return 1


cdef inline void free_names(Names* names) noexcept nogil:
    free(names.starts)
    free(names.lengths)
    free(names.keep)
