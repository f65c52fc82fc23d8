"""Tells identifiers from names as `rtui.keyspace.text.identifiers` does, one form after the other.

One pass over a segment collects which classes of characters it has; most names and identifiers are decided by that.
`42` has digits only and is an id; `cart` has no digit, no `@` and no dash, and so no form; `deadbeef01` has digits and
lower-case hex letters, and at least eight of them, and is a hash. What is left is compared with the forms that its
classes allow. In a segment with braces each part between braces and separators is looked at by itself, and the pattern
is put together in a buffer of `MOST_PATTERN` bytes: no byte of a segment of at most `LONGEST` becomes more than four.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #define RTUI_DIGIT 1
    #define RTUI_LOWER_HEX 2
    #define RTUI_UPPER_HEX 4
    #define RTUI_LOWER 8
    #define RTUI_UPPER 16
    #define RTUI_DASH 32
    #define RTUI_AT 64
    #define RTUI_BRACE 128
    #define RTUI_OTHER 256

    static const uint16_t rtui_classes[256] = {
        [0 ... '-' - 1] = RTUI_OTHER, ['-'] = RTUI_DASH, ['.'] = RTUI_OTHER, ['/'] = RTUI_OTHER,
        ['0' ... '9'] = RTUI_DIGIT, [':' ... '?'] = RTUI_OTHER, ['@'] = RTUI_AT,
        ['A' ... 'F'] = RTUI_UPPER_HEX, ['G' ... 'Z'] = RTUI_UPPER, ['[' ... '^'] = RTUI_OTHER, ['_'] = RTUI_DASH,
        ['`'] = RTUI_OTHER, ['a' ... 'f'] = RTUI_LOWER_HEX, ['g' ... 'z'] = RTUI_LOWER,
        ['{'] = RTUI_BRACE, ['|'] = RTUI_OTHER, ['}'] = RTUI_BRACE, ['~' ... 255] = RTUI_OTHER,
    };
    static inline int rtui_class(uint8_t byte) { return rtui_classes[byte]; }
    """
    enum:
        DIGIT "RTUI_DIGIT"
        LOWER_HEX "RTUI_LOWER_HEX"
        UPPER_HEX "RTUI_UPPER_HEX"
        LOWER "RTUI_LOWER"
        UPPER "RTUI_UPPER"
        DASH "RTUI_DASH"
        AT "RTUI_AT"
        BRACE "RTUI_BRACE"
        OTHER_CLASS "RTUI_OTHER"
    int class_of "rtui_class"(uint8_t) noexcept nogil

cdef enum:
    LONGEST = 256
    MOST_PATTERN = 1024

cdef struct Bytes:
    const uint8_t* start
    size_t length


cdef inline Bytes text(const char* start, size_t length) noexcept nogil:
    cdef Bytes made
    made.start = <const uint8_t*>start
    made.length = length
    return made


cdef inline int classes_of(const uint8_t* part, size_t length) noexcept nogil:
    """Return which classes of characters a part has."""
    cdef size_t index
    cdef int classes = 0
    for index in range(length):
        classes |= class_of(part[index])
    return classes


cdef inline bint has_digits(const uint8_t* part, size_t length, size_t at, size_t count) noexcept nogil:
    """Whether there are `count` digits from a place on."""
    cdef size_t index
    if at + count > length:
        return False
    for index in range(at, at + count):
        if not b'0' <= part[index] <= b'9':
            return False
    return True


cdef inline bint ends_time(const uint8_t* part, size_t length, size_t at) noexcept nogil:
    """Whether nothing but a `Z` is left."""
    return at == length or (at + 1 == length and part[at] == b'Z')


cdef inline bint is_time_left(const uint8_t* part, size_t length, size_t at, int pairs) noexcept nogil:
    """Whether up to so many pairs of digits, a fraction and a `Z` are left, each of which may be missing."""
    if ends_time(part, length, at):
        return True
    if pairs > 0:
        if has_digits(part, length, at, 2) and is_time_left(part, length, at + 2, pairs - 1):
            return True
        if (
            (part[at] == b'-' or part[at] == b'.')
            and has_digits(part, length, at + 1, 2)
            and is_time_left(part, length, at + 3, pairs - 1)
        ):
            return True
    if part[at] != b'.' or not has_digits(part, length, at + 1, 1):
        return False
    at += 2
    while has_digits(part, length, at, 1):
        at += 1
    return ends_time(part, length, at)


cdef inline bint is_date_mark(uint8_t byte) noexcept nogil:
    return byte == b'-' or byte == b'/' or byte == b'.'


cdef inline bint is_date(const uint8_t* part, size_t length) noexcept nogil:
    cdef uint8_t mark
    if length < 7 or not has_digits(part, length, 0, 4):
        return False
    if length == 7 and part[4] == b'-':
        return has_digits(part, length, 5, 2)
    if is_date_mark(part[4]):
        if length < 10 or not has_digits(part, length, 5, 2):
            return False
        if not is_date_mark(part[7]) or not has_digits(part, length, 8, 2):
            return False
        if length == 10:
            return True
        mark = part[10]
        if mark != b'T' and mark != b'_' and mark != b' ' and mark != b'-':
            return False
        return has_digits(part, length, 11, 2) and is_time_left(part, length, 13, 2)
    if length < 13 or not has_digits(part, length, 4, 4):
        return False
    mark = part[8]
    if (mark != b'T' and mark != b'_' and mark != b'-') or not has_digits(part, length, 9, 4):
        return False
    return ends_time(part, length, 13) or (has_digits(part, length, 13, 2) and ends_time(part, length, 15))


cdef inline bint is_ip(const uint8_t* part, size_t length) noexcept nogil:
    cdef size_t at = 0, digits
    cdef int group
    for group in range(4):
        if group:
            if at >= length or part[at] != b'.':
                return False
            at += 1
        digits = 0
        while digits < 3 and has_digits(part, length, at, 1):
            digits += 1
            at += 1
        if not digits:
            return False
    return at == length


cdef inline bint is_uuid(const uint8_t* part, size_t length) noexcept nogil:
    cdef size_t index
    if length != 36:
        return False
    for index in range(36):
        if index == 8 or index == 13 or index == 18 or index == 23:
            if part[index] != b'-':
                return False
        elif not class_of(part[index]) & (DIGIT | LOWER_HEX | UPPER_HEX):
            return False
    return True


cdef inline bint is_hash(const uint8_t* part, size_t length) noexcept nogil:
    """Whether there are eight or more hex digits, a decimal one among them, of one case."""
    cdef int classes
    if length < 8:
        return False
    classes = classes_of(part, length)
    return classes & DIGIT and (not classes & ~(DIGIT | LOWER_HEX) or not classes & ~(DIGIT | UPPER_HEX))


cdef inline bint is_serial_or_coded(const uint8_t* part, size_t length) noexcept nogil:
    """Whether there are one to four letters, then a number of six digits or more, or a dash and a hash."""
    cdef size_t letters = 0, at, index
    while letters < length and class_of(part[letters]) & (LOWER_HEX | UPPER_HEX | LOWER | UPPER):
        letters += 1
        if letters > 4:
            return False
    if not letters or letters == length:
        return False
    at = letters + (part[letters] == b'-' or part[letters] == b'_')
    if length >= at + 6:
        index = at
        while index < length and b'0' <= part[index] <= b'9':
            index += 1
        if index == length:
            return True
    return at > letters and is_hash(part + at, length - at)


cdef inline bint is_ulid(const uint8_t* part, size_t length, int classes) noexcept nogil:
    cdef size_t index
    cdef uint8_t byte
    if length != 26 or not b'0' <= part[0] <= b'7':
        return False
    if classes & ~(DIGIT | LOWER_HEX | LOWER) and classes & ~(DIGIT | UPPER_HEX | UPPER):
        return False
    for index in range(length):
        byte = part[index] | 0x20
        if byte == b'i' or byte == b'l' or byte == b'o' or byte == b'u':
            return False
    return True


cdef inline bint is_token(size_t length, int classes) noexcept nogil:
    if not classes & (LOWER_HEX | LOWER) or not classes & (UPPER_HEX | UPPER):
        return False
    return length == 21 or length == 22 or (27 <= length <= 64 and not classes & DASH)


cdef inline bint is_email(const uint8_t* part, size_t length) noexcept nogil:
    """Whether one `@` stands between something and a name with a dot and two letters or more behind the last one."""
    cdef size_t index, at = 0, dot = 0
    cdef bint has_at = False
    for index in range(length):
        if part[index] == b'@':
            if has_at:
                return False
            has_at = True
            at = index
        elif part[index] == b' ' or b'\t' <= part[index] <= b'\r':
            return False
        elif part[index] == b'.':
            dot = index
    if not has_at or at == 0 or dot < at + 2 or dot + 3 > length:
        return False
    for index in range(dot + 1, length):
        if not class_of(part[index]) & (LOWER_HEX | UPPER_HEX | LOWER | UPPER):
            return False
    return True


cdef inline Bytes form_of(const uint8_t* part, size_t length, int classes) noexcept nogil:
    """Return the placeholder for an identifier, nothing for a name."""
    if classes & DIGIT:
        if classes == DIGIT:
            return text(b"{id}", 4)
        if is_date(part, length):
            return text(b"{date}", 6)
        if not classes & ~(DIGIT | OTHER_CLASS) and is_ip(part, length):
            return text(b"{ip}", 4)
        if not classes & (OTHER_CLASS | AT | BRACE):
            if classes & DASH and is_uuid(part, length):
                return text(b"{uuid}", 6)
            if length >= 8 and (not classes & ~(DIGIT | LOWER_HEX) or not classes & ~(DIGIT | UPPER_HEX)):
                return text(b"{hash}", 6)
            if is_serial_or_coded(part, length) or is_ulid(part, length, classes) or is_token(length, classes):
                return text(b"{id}", 4)
    elif classes & DASH and not classes & (OTHER_CLASS | AT | BRACE) and is_uuid(part, length):
        return text(b"{uuid}", 6)
    if classes & AT and is_email(part, length):
        return text(b"{email}", 7)
    return text(b"", 0)


cdef inline size_t put_form(
    const uint8_t* part, size_t length, uint8_t* buffer, size_t filled, bint* is_found
) noexcept nogil:
    """Write a part or its placeholder behind what is in the buffer, and return where it ends."""
    cdef Bytes found = form_of(part, length, classes_of(part, length))
    if found.length:
        is_found[0] = True
    else:
        found.start = part
        found.length = length
    if found.length > MOST_PATTERN - filled:
        return filled
    memcpy(buffer + filled, found.start, found.length)
    return filled + found.length


cdef inline Bytes pattern_of(
    const uint8_t* segment, size_t length, const uint8_t* is_separator, uint8_t* buffer
) noexcept nogil:
    """Return what replaces a segment of at most LONGEST bytes, nothing for a name; `buffer` has MOST_PATTERN bytes."""
    cdef size_t index, start = 0, filled = 0
    cdef bint is_found = False
    cdef Bytes made
    cdef int classes = classes_of(segment, length)
    if not classes & BRACE:
        return form_of(segment, length, classes)
    for index in range(length):
        if segment[index] == b'{' or segment[index] == b'}' or is_separator[segment[index]]:
            filled = put_form(segment + start, index - start, buffer, filled, &is_found)
            filled = put_form(segment + index, 1, buffer, filled, &is_found)
            start = index + 1
    filled = put_form(segment + start, length - start, buffer, filled, &is_found)
    made.start = buffer
    made.length = filled if is_found else 0
    return made
