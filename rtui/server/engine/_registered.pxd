"""Finds the registered pattern of a key, as `rtui.registry.matching` does in Python.

A key goes through the tables of `Matcher.tables`: it is cut at the separators, the number of its segments (or the sequence
of its separators) leads to a node, lookups of segments to a few patterns, and these are compared segment by segment.
Patterns of unusual forms are left to Python (UNDECIDED): so the results are the same, and what is rare costs more.

The tables hold those of `NamingRules.tables` as well, see `_naming`.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from rtui.server.engine._hashing cimport hash_bytes

cdef enum:
    NO_PATTERN = -1
    UNDECIDED = -2
    MOST_SEGMENTS = 64
    MOST_VALUES = 16  # of one pattern
    MOST_FURTHER = 2  # placeholders of a segment, beside the first
    LONGEST_DIVIDED = 128  # longer segments of several values are left to Python
    MOST_KNOWN = 32768  # segments of which it is known what is found
    LONGEST_NAME = 64  # longer segments are no names

cdef enum:  # the forms of placeholders, see `rtui.registry.forms`
    IS_TEXT = 0
    IS_ANY = 1
    IS_INT = 2
    IS_HEX = 3
    IS_HASH = 4
    IS_UUID = 5
    IS_ULID = 6
    IS_DATE = 7
    IS_IP = 8
    IS_EMAIL = 9
    IS_WORD = 10
    IS_ENUM = 11
    IS_ANY_DEPTH = 12

cdef struct Text:
    const uint8_t* start
    size_t length

cdef struct Part:
    int form
    Text text
    Text* options
    size_t option_count
    int64_t* lengths  # pairs of the least and the most, -1 for no bound
    size_t length_count

cdef struct Segment:
    Part* before  # text
    Part* value  # a placeholder, NULL where there is none
    Part* after  # text behind it, or behind the last one
    Part* between[MOST_FURTHER]  # where there are several: the text before each further one
    Part* further[MOST_FURTHER]
    int further_count
    int value_number  # of the first, among those of the pattern
    int separator  # a byte, -1 behind the last one

cdef struct Pattern:
    Segment* segments
    int count
    int spanning  # the segment that may be several, -1 for none
    int spanning_too  # a second one
    bint is_simple  # whether it is decided here
    int words  # what its words break, -1 where nothing is looked at
    int64_t longest
    uint32_t names  # bits of values that are names
    uint32_t own  # bits of values that have characters of their own

cdef struct Slot:
    Text text
    int node

cdef struct Node:
    int at  # the segment that is looked up, -1 for a trial
    size_t length
    Slot* slots
    size_t mask
    int others
    int* trial
    int trial_count

cdef struct Known:
    uint64_t hash  # 0 for an empty slot
    int32_t found
    uint8_t length
    uint8_t shape[LONGEST_NAME]

cdef struct Tables:
    uint64_t seed
    uint8_t is_separator[256]
    int separator_count
    size_t longest_key
    Pattern* patterns
    int pattern_count
    Node* nodes
    int by_count[MOST_SEGMENTS + 1]  # with one separator, -1 for none
    Slot* sequences  # with several
    size_t sequence_mask
    int* still_open
    int still_open_count
    bint has_names  # whether any rule about names is on
    int of_bytes[256]  # what each byte breaks, -1 where Python has to look
    uint8_t is_other[256]
    Text* beginnings
    int* styles_of
    int beginning_count
    int styles
    size_t longest
    size_t hardest
    size_t shortest
    int deepest
    int IS_SINGLE
    int IS_LONG
    int style_shift
    int separator_rule
    int mixed_rule
    int case_rule
    int abbreviation_rule
    int long_rule
    int huge_rule
    int short_rule
    int depth_rule
    int empty_rule
    int tag_empty_rule
    int tag_unbalanced_rule
    Known* known
    size_t known_count
    bint has_glossary
    Slot* words  # bits of what they are by the glossary
    size_t word_mask

cdef struct Cut:  # a key in segments
    const uint8_t* key
    size_t length
    int count
    size_t starts[MOST_SEGMENTS + 1]
    size_t ends[MOST_SEGMENTS + 1]
    Text values[MOST_VALUES]  # of placeholders
    bint is_ambiguous  # whether they may be others, too


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return 48 <= byte <= 57


cdef inline bint is_letter(uint8_t byte) noexcept nogil:
    return 65 <= byte <= 90 or 97 <= byte <= 122


cdef inline bint is_hex(uint8_t byte) noexcept nogil:
    return is_digit(byte) or 65 <= byte <= 70 or 97 <= byte <= 102


cdef inline bint digits_at(const uint8_t* text, size_t length, size_t at, size_t count) noexcept nogil:
    """Whether so many digits stand somewhere."""
    cdef size_t index
    if at + count > length:
        return False
    for index in range(at, at + count):
        if not is_digit(text[index]):
            return False
    return True


cdef inline bint is_date_form(const uint8_t* text, size_t length) noexcept nogil:
    """Whether a text is a day, month or moment, as `forms.DATE` has it."""
    cdef size_t at, end, pairs
    if length == 6:
        return digits_at(text, length, 0, 6)
    if length < 7 or not digits_at(text, length, 0, 4):
        return False
    if text[4] == 45 and length == 7:
        return digits_at(text, length, 5, 2)
    if text[4] == 45 and length == 8 and text[5] == 87:  # 2026-W47
        return digits_at(text, length, 6, 2)
    if text[4] in (45, 46, 47):
        if length < 10 or not digits_at(text, length, 5, 2) or text[7] not in (45, 46, 47):
            return False
        if not digits_at(text, length, 8, 2):
            return False
        if length == 10:
            return True
        if text[10] not in (84, 95, 32, 45) or not digits_at(text, length, 11, 2):
            return False
        at = 13
        for pairs in range(3):
            end = at
            if end + 1 < length and text[end] == 46 and is_digit(text[end + 1]):
                end += 1
                while end < length and is_digit(text[end]):
                    end += 1
            if end == length or (end == length - 1 and text[end] == 90):
                return True
            if at < length and (text[at] == 45 or text[at] == 46 or text[at] == 58):
                at += 1
            if not digits_at(text, length, at, 2):
                return False
            at += 2
        return False
    if length < 8 or not digits_at(text, length, 0, 8):
        return False
    if length == 8:
        return True
    at = 8 + (text[8] == 84 or text[8] == 95 or text[8] == 45)
    end = length - (text[length - 1] == 90)
    return (end - at == 4 or end - at == 6) and end > at and digits_at(text, length, at, end - at)


cdef inline bint is_ip4(const uint8_t* text, size_t length) noexcept nogil:
    """Whether a text is an IPv4 address without leading zeros."""
    cdef size_t at = 0, start
    cdef int group, number
    for group in range(4):
        if group:
            if at >= length or text[at] != 46:
                return False
            at += 1
        start, number = at, 0
        while at < length and at - start < 3 and is_digit(text[at]):
            number = 10 * number + text[at] - 48
            at += 1
        if at == start or number > 255 or (text[start] == 48 and at - start > 1):
            return False
    return at == length


cdef inline bint is_ip6(const uint8_t* text, size_t length) noexcept nogil:
    """Whether a text is an IPv6 address, of which the last two groups may be an IPv4 one."""
    cdef size_t at = 0, start
    cdef int groups = 0
    cdef bint has_gap = False
    if length < 2:
        return False
    if text[0] == 58:
        if text[1] != 58:
            return False
        has_gap = True
        at = 2
    while at < length:
        start = at
        while at < length and at - start < 5 and is_hex(text[at]):
            at += 1
        if at < length and text[at] == 46:
            return is_ip4(text + start, length - start) and (groups <= 5 if has_gap else groups == 6)
        if at == start or at - start > 4:
            return False
        groups += 1
        if at == length:
            break
        if text[at] != 58:
            return False
        at += 1
        if at == length:
            return False
        if text[at] == 58:
            if has_gap:
                return False
            has_gap = True
            at += 1
    return groups <= 7 if has_gap else groups == 8


cdef inline bint is_email_form(const uint8_t* text, size_t length) noexcept nogil:
    """Whether a text is an e-mail address."""
    cdef const uint8_t* sign = <const uint8_t*>memchr(text, 64, length)
    cdef const char* marks = b".!#$%&'*+/=?^_`{|}~-"
    cdef size_t at, local, dot = 0
    if sign == NULL or sign == text:
        return False
    local = sign - text
    for at in range(local):
        if not (is_digit(text[at]) or is_letter(text[at]) or text[at] >= 0x80):
            if memchr(marks, text[at], 20) == NULL:
                return False
    for at in range(local + 1, length):
        if text[at] == 46:
            dot = at
        elif not (is_digit(text[at]) or is_letter(text[at]) or text[at] >= 0x80 or text[at] == 45):
            return False
    if dot <= local + 1 or length - dot < 3:
        return False
    for at in range(dot + 1, length):
        if not (is_letter(text[at]) or text[at] >= 0x80):
            return False
    return True


cdef inline bint has_length(const Part* part, size_t length) noexcept nogil:
    """Whether a value may have so many bytes."""
    cdef size_t index
    if not part.length_count:
        return length > 0
    for index in range(part.length_count):
        if part.lengths[2 * index] <= <int64_t>length:
            if part.lengths[2 * index + 1] < 0 or <int64_t>length <= part.lengths[2 * index + 1]:
                return True
    return False


cdef inline bint is_value(const Part* part, const uint8_t* text, size_t length) noexcept nogil:
    """Whether a text is a value of a placeholder."""
    cdef size_t index
    cdef int form = part.form
    if form == IS_ANY:
        return has_length(part, length)
    if form == IS_INT:
        return has_length(part, length) and digits_at(text, length, 0, length)
    if form == IS_HEX or form == IS_HASH:
        if form == IS_HEX and not has_length(part, length):
            return False
        if form == IS_HASH and length not in (32, 40, 56, 64, 96, 128):
            return False
        for index in range(length):
            if not is_hex(text[index]):
                return False
        return True
    if form == IS_UUID:
        if length != 36:
            return False
        for index in range(36):
            if index in (8, 13, 18, 23):
                if text[index] != 45:
                    return False
            elif not is_hex(text[index]):
                return False
        return True
    if form == IS_ULID:
        if length != 26 or not 48 <= text[0] <= 55:
            return False
        for index in range(26):
            if not (is_digit(text[index]) or is_letter(text[index])) or (text[index] | 32) in (105, 108, 111, 117):
                return False
        return True
    if form == IS_DATE:
        return is_date_form(text, length)
    if form == IS_IP:
        return is_ip4(text, length) or is_ip6(text, length)
    if form == IS_EMAIL:
        return is_email_form(text, length)
    if form == IS_WORD:
        if not length or not is_letter(text[0]):
            return False
        for index in range(length):
            if not (is_digit(text[index]) or is_letter(text[index]) or text[index] == 95 or text[index] == 45):
                return False
        return True
    if form == IS_ENUM:
        for index in range(part.option_count):
            if part.options[index].length == length and not memcmp(part.options[index].start, text, length):
                return True
        return False
    return form == IS_ANY_DEPTH and length > 0


cdef inline bint is_undivided(const Tables* tables, const Part* part, const uint8_t* text, size_t length) noexcept nogil:
    """Whether a text is a value of a placeholder, and has separators only where the form has them."""
    cdef size_t index
    if part.form == IS_ANY:
        for index in range(length):
            if tables.is_separator[text[index]]:
                return False
    return is_value(part, text, length)


cdef inline bint is_at(const Part* part, const uint8_t* key, size_t at, size_t end) noexcept nogil:
    """Whether a text stands somewhere in a key."""
    return end - at >= part.text.length and not memcmp(key + at, part.text.start, part.text.length)


cdef inline void keep_value(Cut* cut, int number, size_t start, size_t end) noexcept nogil:
    cut.values[number].start, cut.values[number].length = cut.key + start, end - start


cdef inline int fits_values(
    const Tables* tables, const Segment* one, Cut* cut, size_t start, size_t end
) noexcept nogil:
    """Whether a text is several values with text between them: 1 or 0, or UNDECIDED for a long one.

    The values are kept; where they can be told apart in two ways, that is noted.
    """
    cdef const uint8_t* key = cut.key
    cdef size_t at, second, behind, last
    cdef int ways = 0
    if end - start > LONGEST_DIVIDED:
        return UNDECIDED
    for at in range(start, end):
        if ways == 2:
            break
        if not is_at(one.between[0], key, at, end):
            continue
        if not is_undivided(tables, one.value, key + start, at - start):
            continue
        second = at + one.between[0].text.length
        if one.further_count == 1:
            if is_undivided(tables, one.further[0], key + second, end - second):
                ways += 1
                keep_value(cut, one.value_number, start, at)
                keep_value(cut, one.value_number + 1, second, end)
            continue
        for behind in range(second, end):
            if not is_at(one.between[1], key, behind, end):
                continue
            last = behind + one.between[1].text.length
            if is_undivided(tables, one.further[0], key + second, behind - second):
                if is_undivided(tables, one.further[1], key + last, end - last):
                    ways += 1
                    keep_value(cut, one.value_number, start, at)
                    keep_value(cut, one.value_number + 1, second, behind)
                    keep_value(cut, one.value_number + 2, last, end)
    cut.is_ambiguous = cut.is_ambiguous or ways > 1
    return ways > 0


cdef inline int fits_segment(
    const Tables* tables, const Segment* one, Cut* cut, size_t start, size_t end
) noexcept nogil:
    """Whether a part of a key is what a segment of a pattern stands for: 1 or 0, or UNDECIDED; its value is kept."""
    cdef size_t length
    if one.value == NULL:
        length = one.before.text.length if one.before != NULL else 0
        return end - start == length and (
            not length or memcmp(cut.key + start, one.before.text.start, length) == 0
        )
    if one.before != NULL:
        length = one.before.text.length
        if end - start < length or memcmp(cut.key + start, one.before.text.start, length):
            return False
        start += length
    if one.after != NULL:
        length = one.after.text.length
        if end - start < length or memcmp(cut.key + end - length, one.after.text.start, length):
            return False
        end -= length
    if one.further_count:
        return fits_values(tables, one, cut, start, end)
    keep_value(cut, one.value_number, start, end)
    return is_value(one.value, cut.key + start, end - start)


cdef inline bint has_separator(const Segment* one, const Cut* cut, int at) noexcept nogil:
    """Whether the separator behind a segment of a key is that of a segment of a pattern."""
    return one.separator < 0 or cut.key[cut.ends[at]] == one.separator


cdef inline int fits_some(
    const Tables* tables, const Pattern* pattern, Cut* cut, int first, int end, int shift
) noexcept nogil:
    """Whether segments of a pattern are those so many further on in a key: 1 or 0, or UNDECIDED."""
    cdef int at, fitting, all_fitting = 1
    for at in range(first, end):
        fitting = fits_segment(tables, &pattern.segments[at], cut, cut.starts[at + shift], cut.ends[at + shift])
        if not fitting or not has_separator(&pattern.segments[at], cut, at + shift):
            return 0
        if fitting == UNDECIDED:
            all_fitting = UNDECIDED
    return all_fitting


cdef inline int fits_spanning(
    const Tables* tables, const Pattern* pattern, Cut* cut, int at, int first, int last
) noexcept nogil:
    """Whether these segments of a key are what one of a pattern may stand for: 1 or 0, or UNDECIDED."""
    if not has_separator(&pattern.segments[at], cut, last):
        return 0
    return fits_segment(tables, &pattern.segments[at], cut, cut.starts[first], cut.ends[last])


cdef inline int fits_two(const Tables* tables, const Pattern* pattern, Cut* cut, int extra, int shift) noexcept nogil:
    """Whether a key has a pattern with two segments that may be several, the first of them so many more than one."""
    cdef int one = pattern.spanning, other = pattern.spanning_too
    cdef int fitting = fits_spanning(tables, pattern, cut, one, one, one + extra), all_fitting = fitting
    if fitting:
        fitting = fits_some(tables, pattern, cut, one + 1, other, extra)
        all_fitting = UNDECIDED if fitting == UNDECIDED else all_fitting
    if fitting:
        fitting = fits_spanning(tables, pattern, cut, other, other + extra, other + shift)
        all_fitting = UNDECIDED if fitting == UNDECIDED else all_fitting
    return all_fitting if fitting else 0


cdef inline int fits(const Tables* tables, const Pattern* pattern, Cut* cut) noexcept nogil:
    """Whether a key has a pattern: 1 or 0, or UNDECIDED where that is left to Python."""
    cdef int at, ahead = pattern.count, last, shift, fitting, all_fitting, fits_with = -1
    cut.is_ambiguous = False
    if cut.count < pattern.count or (pattern.spanning < 0 and cut.count != pattern.count):
        return 0
    shift = cut.count - pattern.count
    if pattern.spanning >= 0:
        ahead = pattern.spanning
    if not pattern.is_simple:
        for at in range(ahead):
            if pattern.segments[at].value == NULL and not fits_segment(
                tables, &pattern.segments[at], cut, cut.starts[at], cut.ends[at]
            ):
                return 0
        return UNDECIDED
    all_fitting = fits_some(tables, pattern, cut, 0, ahead, 0)
    if not all_fitting or pattern.spanning < 0:
        return all_fitting
    last = pattern.spanning if pattern.spanning_too < 0 else pattern.spanning_too
    fitting = fits_some(tables, pattern, cut, last + 1, pattern.count, shift)
    if not fitting:
        return 0
    all_fitting = UNDECIDED if fitting == UNDECIDED else all_fitting
    if pattern.spanning_too < 0:
        fitting = fits_spanning(tables, pattern, cut, ahead, ahead, ahead + shift)
        return all_fitting if fitting == 1 else fitting
    for at in range(shift + 1):
        fitting = fits_two(tables, pattern, cut, at, shift)
        if fitting == UNDECIDED:
            return UNDECIDED
        if fitting:
            cut.is_ambiguous = cut.is_ambiguous or fits_with >= 0
            fits_with = at
    return all_fitting if fits_with >= 0 and fits_two(tables, pattern, cut, fits_with, shift) else 0


cdef inline uint64_t text_hash(const Tables* tables, const uint8_t* text, size_t length) noexcept nogil:
    return hash_bytes(tables.seed + length, text, length)


cdef inline int slot_of(
    const Tables* tables, const Slot* slots, size_t mask, const uint8_t* text, size_t length
) noexcept nogil:
    """Return the node for a text, -1 for none."""
    cdef size_t at = text_hash(tables, text, length) & mask
    while slots[at].node >= 0:
        if slots[at].text.length == length and not memcmp(slots[at].text.start, text, length):
            return slots[at].node
        at = (at + 1) & mask
    return -1


cdef inline bint cut_key(const Tables* tables, Cut* cut, const uint8_t* key, size_t length) noexcept nogil:
    """Cut a key at the separators; False where it has too many segments."""
    cdef size_t index
    cut.key, cut.length, cut.count = key, length, 0
    cut.starts[0] = 0
    for index in range(length):
        if tables.is_separator[key[index]]:
            cut.ends[cut.count] = index
            cut.count += 1
            if cut.count == MOST_SEGMENTS:
                return False
            cut.starts[cut.count] = index + 1
    cut.ends[cut.count] = length
    cut.count += 1
    return True


cdef inline int pattern_of_key(const Tables* tables, Cut* cut) noexcept nogil:
    """Return the most specific pattern of a key, NO_PATTERN or UNDECIDED."""
    cdef uint8_t sequence[MOST_SEGMENTS]
    cdef int at, node = -1, found
    cdef size_t length
    cdef const Node* one
    if cut.length > tables.longest_key:
        return NO_PATTERN
    if tables.separator_count < 2:
        node = tables.by_count[cut.count]
    else:
        for at in range(cut.count - 1):
            sequence[at] = cut.key[cut.ends[at]]
        node = slot_of(tables, tables.sequences, tables.sequence_mask, sequence, cut.count - 1)
    if node < 0:
        at = cut.count if cut.count < tables.still_open_count else tables.still_open_count
        node = tables.still_open[at - 1]
    while tables.nodes[node].at >= 0:
        one = &tables.nodes[node]
        length = cut.ends[one.at] - cut.starts[one.at]
        if one.length and length > one.length:
            length = one.length
        node = slot_of(tables, one.slots, one.mask, cut.key + cut.starts[one.at], length)
        if node < 0:
            node = one.others
    one = &tables.nodes[node]
    for at in range(one.trial_count):
        found = fits(tables, &tables.patterns[one.trial[at]], cut)
        if found:
            return one.trial[at] if found == 1 else found
    return NO_PATTERN
