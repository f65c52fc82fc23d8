"""Tells identifiers from names as `rtui.keyspace.text.identifiers` does, one form after the other.

One pass over a segment collects which classes of characters it has; most names and identifiers are decided by that.
`42` has digits only and is an id; `cart` has no digit, no `@` and no dash, and so no form; `deadbeef01` has digits and
lower-case hex letters, and at least eight of them, and is a hash. What is left is compared with the forms that its
classes allow, then word by word. In a segment with braces each part between braces and separators is looked at by
itself. A pattern of several parts is put together in a buffer of `MOST_PATTERN` bytes: no byte of a segment of at most
`LONGEST` becomes more than four.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp, memcpy

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
    static inline size_t rtui_digest(int index) {
        static const size_t sizes[] = {128, 96, 64, 56, 40, 32};
        return sizes[index];
    }
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
    size_t digest_size "rtui_digest"(int) noexcept nogil

cdef enum:
    LONGEST = 256
    MOST_PATTERN = 1024
    LONG_NUMBER = 6
    IP6_GROUPS = 8
    DIGEST_SIZES = 6
    SHORTEST_DIGEST = 32
    LETTERS = LOWER_HEX | UPPER_HEX | LOWER | UPPER
    WORD = DIGIT | LOWER_HEX | UPPER_HEX | LOWER | UPPER

cdef struct Bytes:
    const uint8_t* start
    size_t length


cdef struct Form:
    Bytes pattern  # what replaces a segment, empty for a name
    bint is_numbered  # whether it does so only where very many differ in their numbers

cdef struct Part:
    size_t start
    size_t end
    Bytes name  # what replaces it, empty for a number behind letters


cdef inline bint is_java_text(const uint8_t* key, size_t length) noexcept nogil:
    """Whether Java has serialised a name, see `rtui.keyspace.text.java_names`."""
    return length >= 7 and memcmp(key, b"\xac\xed\x00\x05t", 5) == 0 and (key[5] << 8) + key[6] == length - 7


cdef inline Bytes text(const char* start, size_t length) noexcept nogil:
    cdef Bytes made
    made.start = <const uint8_t*>start
    made.length = length
    return made


cdef inline size_t placeholder_at(const uint8_t* name, size_t left) noexcept nogil:
    """Return the length of the placeholder that a part of a pattern begins with, 0 where it begins with none."""
    if left >= 3 and memcmp(name, b"{n}", 3) == 0:
        return 3
    if left >= 4 and (memcmp(name, b"{id}", 4) == 0 or memcmp(name, b"{ip}", 4) == 0):
        return 4
    if left >= 6 and (
        memcmp(name, b"{date}", 6) == 0 or memcmp(name, b"{uuid}", 6) == 0 or memcmp(name, b"{hash}", 6) == 0
    ):
        return 6
    return 7 if left >= 7 and memcmp(name, b"{email}", 7) == 0 else 0


cdef inline Bytes any_name(
    const uint8_t* name, size_t length, bint is_pattern, const uint8_t* is_separator
) noexcept nogil:
    """Return the pattern of a name, or of what it folds to, where it is one of too many."""
    cdef size_t at = 0, size
    cdef bint has_separator = False, begins = False, ends = False
    if length == 0 or memchr(name, b'{', length) == NULL:
        return text(b"{*}", 3)
    while at < length:
        size = placeholder_at(name + at, length - at) if is_pattern and name[at] == b'{' else 0
        if size:
            ends = False
            at += size
            continue
        has_separator = has_separator or is_separator[name[at]]
        if at == 0:
            begins = name[at] == b'{'
        ends = name[at] == b'}'
        at += 1
    if not has_separator:
        return text(b"{*}", 3)
    return text(b"{{**}}", 6) if begins and ends else text(b"{**}", 4)


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


cdef inline bint is_mac(const uint8_t* part, size_t length) noexcept nogil:
    """Whether there are six pairs of hex digits with dashes between them."""
    cdef size_t index
    if length != 17:
        return False
    for index in range(17):
        if index % 3 == 2:
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


cdef inline bint is_serial(const uint8_t* part, size_t length) noexcept nogil:
    """Whether there are one to four letters, then a number of six digits or more."""
    cdef size_t letters = 0
    while letters < length and class_of(part[letters]) & LETTERS:
        letters += 1
    return 1 <= letters <= 4 and length >= letters + LONG_NUMBER and has_digits(part, length, letters, length - letters)


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


cdef inline bint is_vowel(uint8_t byte) noexcept nogil:
    byte |= 0x20
    return byte == b'a' or byte == b'e' or byte == b'i' or byte == b'o' or byte == b'u' or byte == b'y'


cdef inline bint is_wordy(const uint8_t* part, size_t length) noexcept nogil:
    """Whether three of five letters are in words: three letters or more of which the first may be a capital."""
    cdef size_t at = 0, start, letters = 0, in_words = 0
    cdef bint has_vowel
    while at < length:
        if not class_of(part[at]) & LETTERS:
            at += 1
            continue
        start = at
        has_vowel = is_vowel(part[at])
        at += 1
        while at < length and class_of(part[at]) & (LOWER_HEX | LOWER):
            has_vowel = has_vowel or is_vowel(part[at])
            at += 1
        letters += at - start
        if at - start >= 3 and has_vowel:
            in_words += at - start
    return 5 * in_words >= 3 * letters


cdef inline bint is_token(size_t length, int classes) noexcept nogil:
    """Whether a word is long enough for random characters, and has digits and letters of both cases."""
    if not classes & DIGIT or not classes & (LOWER_HEX | LOWER) or not classes & (UPPER_HEX | UPPER):
        return False
    return length == 21 or length == 22 or 27 <= length <= 64


cdef inline bint is_whole_token(size_t length, int classes) noexcept nogil:
    """Whether a segment may be random characters and dashes."""
    return (
        not classes & (OTHER_CLASS | AT | BRACE)
        and (length <= 22 or length == 32 or length == 43)
        and is_token(length, classes)
    )


cdef inline bint is_unpadded(const uint8_t* part, size_t length, int classes) noexcept nogil:
    """Whether a segment may be Base64 that needs no padding."""
    cdef size_t index
    if length < 20 or length % 4 or not classes & OTHER_CLASS or classes & (DASH | AT | BRACE):
        return False
    if not classes & DIGIT or not classes & (LOWER_HEX | LOWER) or not classes & (UPPER_HEX | UPPER):
        return False
    for index in range(length):
        if not class_of(part[index]) & WORD and part[index] != b'+' and part[index] != b'/':
            return False
    return True


cdef inline bint is_base64(const uint8_t* part, size_t length, int classes) noexcept nogil:
    """Whether a segment is padded Base64."""
    cdef size_t index, padding
    if length < 16 or length % 4 or part[length - 1] != b'=' or not classes & (DIGIT | UPPER_HEX | UPPER):
        return False
    padding = 1 + (part[length - 2] == b'=')
    for index in range(length - padding):
        if not class_of(part[index]) & (WORD | DASH) and part[index] != b'+' and part[index] != b'/':
            return False
    return not is_wordy(part, length)


cdef inline size_t group_end(
    const uint8_t* text, size_t length, size_t at, const uint8_t* is_separator
) noexcept nogil:
    """Return where a group of an IPv6 address ends that begins at a place, 0 where none does."""
    cdef size_t end = at
    while end < length and end < at + 4 and class_of(text[end]) & (DIGIT | LOWER_HEX | UPPER_HEX):
        if is_separator != NULL and is_separator[text[end]]:
            break
        end += 1
    if end == at:
        return 0
    if end == length or text[end] == b':' or (is_separator != NULL and is_separator[text[end]]):
        return end
    return 0


cdef inline bint is_first_group(const uint8_t* group, size_t length) noexcept nogil:
    """Whether addresses in use begin so."""
    cdef uint8_t second, third
    if length != 4:
        return False
    if group[0] == b'2' or group[0] == b'3':
        return True
    second, third = group[1] | 0x20, group[2] | 0x20
    if group[0] | 0x20 != b'f':
        return False
    if second == b'c' or second == b'd':
        return True
    if second == b'e':
        return group[2] == b'8' or group[2] == b'9' or third == b'a' or third == b'b'
    return second == b'f' and group[2] == b'0'


cdef inline size_t end_of_ip6(
    const uint8_t* text, size_t length, size_t start, const uint8_t* is_separator
) noexcept nogil:
    """Return where the IPv6 address that begins at a place ends, 0 where none does; `is_separator` may be NULL."""
    cdef size_t at = start, end = 0, first = 0, found, index
    cdef int left = 0, right
    while left < IP6_GROUPS:
        found = group_end(text, length, at, is_separator)
        if not found:
            break
        if not left:
            first = found
        left += 1
        end = found
        if end == length or text[end] != b':':
            break
        at = end + 1
    if left == IP6_GROUPS:
        for index in range(start, end):
            if class_of(text[index]) & (LOWER_HEX | UPPER_HEX):
                return end
        return 0
    if not left or end + 1 >= length or text[end] != b':' or text[end + 1] != b':':
        return 0
    if not is_first_group(text + start, first - start):
        return 0
    at, end = end + 2, 0
    for right in range(IP6_GROUPS - 1 - left):
        found = group_end(text, length, at, is_separator)
        if not found:
            break
        end = found
        if end == length or text[end] != b':':
            break
        at = end + 1
    return end


cdef inline bint may_have_ip6(const uint8_t* key, size_t length) noexcept nogil:
    """Whether there are two colons next to each other, or seven of them."""
    cdef const uint8_t* end = key + length
    cdef const uint8_t* at = <const uint8_t*>memchr(key, b':', length) if length else NULL
    cdef int colons = 0
    while at != NULL:
        colons += 1
        if colons == IP6_GROUPS - 1 or (at + 1 < end and at[1] == b':'):
            return True
        at = <const uint8_t*>memchr(at + 1, b':', end - at - 1) if at + 1 < end else NULL
    return False


cdef inline size_t end_of_four_numbers(const uint8_t* text, size_t length, size_t at) noexcept nogil:
    """Return where four numbers of up to three digits end that have dots between them, 0 where they are not there."""
    cdef size_t digits
    cdef int group
    for group in range(4):
        if group:
            if at >= length or text[at] != b'.':
                return 0
            at += 1
        digits = 0
        while digits < 3 and has_digits(text, length, at, 1):
            digits += 1
            at += 1
        if not digits:
            return 0
    return at


cdef inline size_t end_of_other_whole(
    const uint8_t* text, size_t length, size_t start, const uint8_t* is_separator
) noexcept nogil:
    """Return where the UUID or IPv4 address ends that begins at a place and holds separators, 0 where none does."""
    cdef size_t at
    if is_separator[b'-'] and start + 36 <= length and is_uuid(text + start, 36):
        return start + 36 if start + 36 == length or is_separator[text[start + 36]] else 0
    at = end_of_four_numbers(text, length, start) if is_separator[b'.'] else 0
    return at if at and (at == length or is_separator[text[at]]) else 0


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
    if length - dot > 5 and memcmp(part + dot + 1, b"xn--", 4) == 0:
        for index in range(dot + 1, length):
            if not class_of(part[index]) & WORD and part[index] != b'-':
                return False
        return True
    for index in range(dot + 1, length):
        if not class_of(part[index]) & (LOWER_HEX | UPPER_HEX | LOWER | UPPER):
            return False
    return True


cdef inline Bytes whole_form(const uint8_t* part, size_t length, int classes) noexcept nogil:
    """Return the placeholder for a segment that is an identifier as a whole, nothing for others."""
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
            if is_serial(part, length) or is_ulid(part, length, classes) or is_mac(part, length):
                return text(b"{id}", 4)
    elif classes & DASH and not classes & (OTHER_CLASS | AT | BRACE) and is_uuid(part, length):
        return text(b"{uuid}", 6)
    if classes & AT and is_email(part, length):
        return text(b"{email}", 7)
    if classes & OTHER_CLASS and memchr(part, b':', length) != NULL and end_of_ip6(part, length, 0, NULL) == length:
        return text(b"{ip}", 4)
    if classes & OTHER_CLASS and is_base64(part, length, classes):
        return text(b"{id}", 4)
    return text(b"", 0)


cdef inline bint is_word_end(const uint8_t* part, size_t length, size_t at) noexcept nogil:
    return at == length or not class_of(part[at]) & WORD


cdef inline size_t end_of_ip(const uint8_t* part, size_t length, size_t at) noexcept nogil:
    """Return where an IPv4 address ends that begins at a word, 0 where none does."""
    at = end_of_four_numbers(part, length, at)
    return at if at and is_word_end(part, length, at) else 0


cdef inline size_t start_of_digest(const uint8_t* word, size_t length) noexcept nogil:
    """Return where the digest begins that a word of letters ends with, 0 where it ends with none."""
    cdef size_t start
    cdef int index
    for index in range(DIGEST_SIZES):
        if length <= digest_size(index):
            continue
        start = length - digest_size(index)
        if classes_of(word + start, length - start) == (DIGIT | LOWER_HEX) and not classes_of(word, start) & ~LETTERS:
            return start
    return 0


cdef inline bint next_part(const uint8_t* part, size_t length, Part* found) noexcept nogil:
    """Find the next identifier or number at or behind `found.end`; False where there is none."""
    cdef size_t at = found.end, end, digits
    cdef int classes
    while at < length:
        if not class_of(part[at]) & WORD:
            at += 1
            continue
        found.start = at
        if at + 36 <= length and is_word_end(part, length, at + 36) and is_uuid(part + at, 36):
            found.end = at + 36
            found.name = text(b"{uuid}", 6)
            return True
        if (
            at + 10 <= length
            and is_word_end(part, length, at + 10)
            and is_date_mark(part[at + 4])
            and is_date(part + at, 10)
        ):
            found.end = at + 10
            found.name = text(b"{date}", 6)
            return True
        end = end_of_ip(part, length, at)
        if end:
            found.end = end
            found.name = text(b"{ip}", 4)
            return True
        end = at
        classes = 0
        while not is_word_end(part, length, end):
            classes |= class_of(part[end])
            end += 1
        found.end = end
        if classes == DIGIT:
            found.name = text(b"{n}", 3)
            return True
        if classes & DIGIT:
            if end - at >= 8 and (not classes & ~(DIGIT | LOWER_HEX) or not classes & ~(DIGIT | UPPER_HEX)):
                found.name = text(b"{hash}", 6)
                return True
            if is_ulid(part + at, end - at, classes) or (
                is_token(end - at, classes) and not is_wordy(part + at, end - at)
            ):
                found.name = text(b"{id}", 4)
                return True
            digits = start_of_digest(part + at, end - at) if end - at > SHORTEST_DIGEST else 0
            if digits:
                found.start = at + digits
                found.name = text(b"{hash}", 6)
                return True
            digits = end
            while has_digits(part, length, digits - 1, 1):
                digits -= 1
            if digits < end and not classes_of(part + at, digits - at) & DIGIT:
                found.start = digits
                found.name = text(b"", 0)  # a number behind letters
                return True
        at = end
    return False


cdef inline bint is_between_slashes(const uint8_t* part, size_t length, const Part* number) noexcept nogil:
    """Whether a number has a slash on one side at least, and on the other one too or the end of the segment."""
    if number.start and part[number.start - 1] != b'/':
        return False
    if number.end < length and part[number.end] != b'/':
        return False
    return number.start > 0 or number.end < length


cdef inline size_t put(const uint8_t* what, size_t length, uint8_t* buffer, size_t filled) noexcept nogil:
    """Write bytes behind what is in the buffer, and return where they end."""
    if length > MOST_PATTERN - filled:
        return filled
    memcpy(buffer + filled, what, length)
    return filled + length


cdef inline Form form_of_parts(const uint8_t* part, size_t length, uint8_t* buffer, size_t filled) noexcept nogil:
    """Return what a segment is by the identifiers and numbers in it, its pattern behind what is in the buffer."""
    cdef Form made
    cdef Part found
    cdef size_t start = filled, done = 0
    cdef bint is_sure = False, has_words = False, has_ends = False, has_long_ends = False, is_long
    made.is_numbered = False
    made.pattern = text(b"", 0)
    found.end = 0
    while next_part(part, length, &found):
        is_long = found.end - found.start >= LONG_NUMBER
        if not found.name.length:
            has_ends = True
            has_long_ends = has_long_ends or is_long
        else:
            has_words = True
            is_sure = is_sure or found.name.length != 3 or is_long or is_between_slashes(part, length, &found)
    if not has_words and not has_ends:
        return made
    found.end = 0
    while next_part(part, length, &found):
        is_long = found.end - found.start >= LONG_NUMBER
        if not found.name.length:
            if not is_long and (has_words or has_long_ends):
                continue
            found.name = text(b"{n}", 3)
        filled = put(part + done, found.start - done, buffer, filled)
        filled = put(found.name.start, found.name.length, buffer, filled)
        done = found.end
    filled = put(part + done, length - done, buffer, filled)
    made.pattern.start = buffer + start
    made.pattern.length = filled - start
    made.is_numbered = not is_sure and not has_long_ends
    return made


cdef inline Form form_of(
    const uint8_t* part, size_t length, int classes, uint8_t* buffer, size_t filled
) noexcept nogil:
    """Return what a part without braces is; a pattern that has to be put together is behind what is in the buffer."""
    cdef Form made
    made.is_numbered = False
    made.pattern = text(b"", 0)
    if not classes & (DIGIT | AT | OTHER_CLASS) and (not classes & DASH or length < 36):
        return made
    made.pattern = whole_form(part, length, classes)
    if made.pattern.length:
        return made
    if classes & DIGIT or (classes & DASH and length >= 36):
        made = form_of_parts(part, length, buffer, filled)
    if not made.pattern.length or made.is_numbered:
        if (is_whole_token(length, classes) or is_unpadded(part, length, classes)) and not is_wordy(part, length):
            made.is_numbered = False
            made.pattern = text(b"{id}", 4)
    return made


cdef struct Filled:
    size_t length
    bint has_identifier
    bint has_number  # a number that folds among many only


cdef inline void put_form(
    const uint8_t* part, size_t length, bint is_among_many, uint8_t* buffer, Filled* filled
) noexcept nogil:
    """Write a part or its placeholder behind what is in the buffer."""
    cdef Form found = form_of(part, length, classes_of(part, length), buffer, filled.length)
    filled.has_number = filled.has_number or found.is_numbered
    if not found.pattern.length or (found.is_numbered and not is_among_many):
        filled.length = put(part, length, buffer, filled.length)
        return
    filled.has_identifier = filled.has_identifier or not found.is_numbered
    if found.pattern.start == buffer + filled.length:
        filled.length += found.pattern.length
    else:
        filled.length = put(found.pattern.start, found.pattern.length, buffer, filled.length)


cdef inline Filled put_pieces(
    const uint8_t* segment, size_t length, const uint8_t* is_border, bint is_among_many, uint8_t* buffer
) noexcept nogil:
    """Write the parts of a segment between borders, or their placeholders, into the buffer."""
    cdef size_t index = 0, start = 0, whole
    cdef Filled filled
    filled.length, filled.has_identifier, filled.has_number = 0, False, False
    while start <= length:
        whole = end_of_ip6(segment, length, start, is_border) if is_border[b':'] else 0
        index = whole or end_of_other_whole(segment, length, start, is_border) or start
        while index < length and not is_border[segment[index]]:
            index += 1
        put_form(segment + start, index - start, is_among_many, buffer, &filled)
        if index < length:
            put_form(segment + index, 1, is_among_many, buffer, &filled)
        start = index + 1
    return filled


cdef inline Form pattern_of(
    const uint8_t* segment, size_t length, const uint8_t* is_separator, uint8_t* buffer
) noexcept nogil:
    """Return what a segment of at most LONGEST bytes is; `buffer` has MOST_PATTERN bytes."""
    cdef uint8_t is_border[256]
    cdef Form made
    cdef Filled filled
    cdef int classes = classes_of(segment, length)
    if not classes & BRACE:
        return form_of(segment, length, classes, buffer, 0)
    memcpy(is_border, is_separator, 256)
    is_border[b'{'] = is_border[b'}'] = True
    filled = put_pieces(segment, length, is_border, False, buffer)
    made.is_numbered = filled.has_number and not filled.has_identifier
    if made.is_numbered:
        filled = put_pieces(segment, length, is_border, True, buffer)
    made.pattern.start = buffer
    made.pattern.length = filled.length if made.is_numbered or filled.has_identifier else 0
    return made
