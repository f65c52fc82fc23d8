"""Replies of a server, one after the other, out of bytes that arrive in pieces of any length; RESP2 and RESP3.

`Input` is a growing buffer. `read_reply` takes the reply at its beginning: a number, a text, nil or an error, which are
nearly all, are parsed at once. Anything else, such as an array, is walked over to its end first, and comes back as it
stands in the buffer. Where the end has not arrived, the walk is continued where it stopped, so that a page of many names
that comes in many pieces is walked over once. Push messages of RESP3 are passed over.

What `Reply` points to stays valid until more is put into the buffer. No length from the server is used before it is
checked against the bytes that are there.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memchr, memmove

cdef enum:
    BAD = -1  # not the protocol
    INCOMPLETE = 0
    COMPLETE = 1

cdef enum:
    NUMBER = 1
    TEXT = 2
    NIL = 3
    ERROR = 4
    OTHER = 5

cdef enum:
    MOST_DIGITS = 20
    MOST_LINE = 1 << 20  # bytes of a line
    MOST_LENGTH = 1 << 29  # bytes of a text, the limit of every server
    MOST_VALUES = 1 << 30  # values of an array

cdef struct Input:
    uint8_t* data
    size_t start  # of what has not been read
    size_t end
    size_t capacity
    size_t walked  # how much of the reply at the start has been walked over
    uint64_t lacking  # values that it still must have after that

cdef struct Reply:
    int kind
    int64_t number
    const uint8_t* text  # of a text or error without its marks, of anything else with them
    size_t length
    size_t at  # where the whole reply is in the buffer
    size_t end


cdef inline bint make_room(Input* input, size_t wanted) noexcept nogil:
    """Make room for so many bytes at the end; False where there is no memory."""
    cdef size_t used = input.end - input.start
    cdef uint8_t* grown
    if not used:
        input.start = input.end = 0
    if wanted <= input.capacity - input.end:
        return True
    if input.start and used + wanted <= input.capacity and input.start >= used:
        memmove(input.data, input.data + input.start, used)
    else:
        if wanted > <size_t>-1 // 4 - used:
            return False
        grown = <uint8_t*>realloc(input.data, 2 * (input.end + wanted))
        if grown == NULL:
            return False
        input.data = grown
        input.capacity = 2 * (input.end + wanted)
        return True
    input.start = 0
    input.end = used
    return True


cdef inline void clear_input(Input* input) noexcept nogil:
    input.start = input.end = input.walked = 0
    input.lacking = 0


cdef inline int parse_number(const uint8_t* at, size_t length, int64_t* number) noexcept nogil:
    """Parse a whole number of 64 bits; COMPLETE or BAD."""
    cdef bint is_negative = length > 0 and at[0] == b'-'
    cdef uint64_t value = 0
    cdef uint64_t most = <uint64_t>0x7FFFFFFFFFFFFFFF + is_negative
    cdef uint8_t digit
    cdef size_t index = is_negative
    if length == index or length - index > MOST_DIGITS:
        return BAD
    for index in range(index, length):
        digit = <uint8_t>(at[index] - 48)
        if digit > 9 or value > (most - digit) // 10:
            return BAD
        value = 10 * value + digit
    number[0] = <int64_t>(0 - value) if is_negative else <int64_t>value
    return COMPLETE


cdef inline int find_line(const Input* input, size_t start, size_t* stop) noexcept nogil:
    """Find the end of the line, where its CRLF is, that begins at `start`."""
    cdef size_t there = input.end - start
    cdef const uint8_t* found
    if not there:
        return INCOMPLETE
    found = <const uint8_t*>memchr(input.data + start, b'\n', there if there < MOST_LINE else MOST_LINE)
    if found == NULL:
        return INCOMPLETE if there < MOST_LINE else BAD
    stop[0] = found - input.data
    if stop[0] - start < 2 or input.data[stop[0] - 1] != b'\r':
        return BAD
    stop[0] -= 1
    return COMPLETE


cdef inline int walk_over(Input* input, size_t* stop) noexcept nogil:
    """Find the end of the reply at the start, whatever it is."""
    cdef size_t at, line
    cdef uint8_t mark
    cdef int64_t number
    cdef int found
    if not input.lacking:
        input.walked = 0
        input.lacking = 1
    while input.lacking:
        at = input.start + input.walked
        found = find_line(input, at, &line)
        if found != COMPLETE:
            return found
        mark = input.data[at]
        number = 0
        if mark in (b'$', b'=', b'!', b'*', b'~', b'>', b'%'):
            if parse_number(input.data + at + 1, line - at - 1, &number) != COMPLETE or number < -1:
                return BAD
            if mark in (b'$', b'=', b'!'):
                if number > MOST_LENGTH:
                    return BAD
                if number >= 0:
                    if <size_t>number + 2 > input.end - line - 2:
                        return INCOMPLETE
                    line += 2 + <size_t>number
                    if input.data[line] != b'\r' or input.data[line + 1] != b'\n':
                        return BAD
            else:
                if number > MOST_VALUES or input.lacking > <uint64_t>MOST_VALUES:
                    return BAD
                if number > 0:
                    input.lacking += <uint64_t>number * (2 if mark == b'%' else 1)
        elif mark not in (b'+', b'-', b':', b'_', b'#', b',', b'('):
            return BAD
        input.lacking -= 1
        input.walked = line + 2 - input.start
    stop[0] = input.start + input.walked
    input.walked = 0
    return COMPLETE


cdef inline int read_reply(Input* input, Reply* reply) noexcept nogil:
    """Take the next reply."""
    cdef size_t line, stop
    cdef uint8_t mark
    cdef int found
    while True:
        if input.start == input.end:
            return INCOMPLETE
        reply.at = input.start
        mark = input.data[input.start]
        if input.lacking or mark not in (b':', b'+', b'-', b'$', b'_'):
            found = walk_over(input, &stop)
            if found != COMPLETE:
                return found
            if mark == b'>':
                input.start = stop
                continue
            break
        found = find_line(input, input.start, &line)
        if found != COMPLETE:
            return found
        reply.text = input.data + input.start + 1
        reply.length = line - input.start - 1
        stop = line + 2
        if mark == b':':
            reply.kind = NUMBER
            found = parse_number(reply.text, reply.length, &reply.number)
        elif mark == b'$':
            found = parse_number(reply.text, reply.length, &reply.number)
            if found == COMPLETE and reply.number == -1:
                reply.kind = NIL
            elif found == COMPLETE:
                if reply.number < 0 or reply.number > MOST_LENGTH:
                    return BAD
                if <size_t>reply.number + 2 > input.end - stop:
                    return INCOMPLETE
                reply.kind = TEXT
                reply.text = input.data + stop
                reply.length = <size_t>reply.number
                stop += reply.length + 2
                if input.data[stop - 2] != b'\r' or input.data[stop - 1] != b'\n':
                    return BAD
        else:
            reply.kind = NIL if mark == b'_' else TEXT if mark == b'+' else ERROR
        if found == COMPLETE:
            input.start = reply.end = stop
        return found
    reply.text = input.data + input.start
    reply.length = stop - input.start
    reply.kind = OTHER
    if mark == b'*' and reply.length == 5 and reply.text[1] == b'-':
        reply.kind = NIL
    input.start = reply.end = stop
    return COMPLETE
