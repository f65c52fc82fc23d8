"""Tells what the naming rules find of a name, as `rtui.registry.naming` does in Python.

A name is looked at byte by byte, then segment by segment: most keys have the same segments, so what is found of one is
kept under its bytes, with every digit 0, for those that come later. Of `userPrfl` it is found that it is in camel case,
and with a glossary that `prfl` is an abbreviation (`found_of_segment`).

Names with bytes beyond ASCII and segments of over LONGEST bytes are left to Python (UNDECIDED).
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from rtui.server.engine._forms cimport LONGEST, MOST_PATTERN, Form, pattern_of
from rtui.server.engine._hashing cimport hash_bytes
from rtui.server.engine._registered cimport (
    LONGEST_NAME,
    MOST_KNOWN,
    MOST_VALUES,
    UNDECIDED,
    Cut,
    Known,
    Pattern,
    Tables,
    Text,
    digits_at,
    is_digit,
    is_letter,
    slot_of,
)

cdef enum:  # as in `rtui.registry.words.Style`
    LOWER_STYLE = 1
    CAMEL_STYLE = 2
    PASCAL_STYLE = 4
    SNAKE_STYLE = 8
    KEBAB_STYLE = 16
    UPPER_STYLE = 32
    ALL_STYLES = 63

cdef enum:  # as in `rtui.registry.words.Glossary.table`
    IS_FINE = 1
    IS_USUAL = 2
    IS_SKELETON = 4
    IS_FULL = 8
    IS_PLURAL = 16

cdef enum:
    LONGEST_ABBREVIATION = 6


cdef inline bint is_upper(uint8_t byte) noexcept nogil:
    return 65 <= byte <= 90


cdef inline bint is_lower(uint8_t byte) noexcept nogil:
    return 97 <= byte <= 122


cdef inline bint is_alnum(uint8_t byte) noexcept nogil:
    return is_digit(byte) or is_letter(byte)


cdef inline bint is_name(const uint8_t* text, size_t length) noexcept nogil:
    """Whether a segment is made of words, as `naming._NAME` has it."""
    cdef size_t at = 0, start
    if not length:
        return False
    if text[0] == 95:
        while at < length and text[at] == 95:
            at += 1
        start = at
        while at < length and (is_letter(text[at]) or is_digit(text[at]) or text[at] == 95):
            at += 1
        return at == length and start < length and is_letter(text[start])
    if text[0] == 123:
        at = 1
    start = at
    while at < length and is_letter(text[at]):
        at += 1
    if at == start:
        return False
    while at < length and is_digit(text[at]):
        at += 1
    while at < length:
        start = at
        while at < length and text[at] in (95, 46, 123, 125, 45):
            at += 1
        if at == start:
            return False
        if at == length:  # at the end only some of them may stand
            while at > start and text[at - 1] in (95, 125, 45):
                at -= 1
            return at == start
        start = at
        while at < length and is_letter(text[at]):
            at += 1
        while at < length and is_digit(text[at]):
            at += 1
        if at == start:
            return False
    return True


cdef inline bint is_joined(const uint8_t* name, size_t length, uint8_t joint) noexcept nogil:
    """Whether letters and digits have single joints between them."""
    cdef size_t index
    for index in range(length):
        if is_alnum(name[index]):
            continue
        if name[index] != joint or index == 0 or index == length - 1 or name[index - 1] == joint:
            return False
    return True


cdef inline int styles_of(const uint8_t* name, size_t length) noexcept nogil:
    """Return the styles in which a name of letters, digits and dashes may be written."""
    cdef size_t index
    cdef int found = ALL_STYLES
    cdef bint has_upper = False, has_lower = False, is_all_alnum = True
    cdef uint8_t byte
    for index in range(length):
        byte = name[index]
        has_upper = has_upper or is_upper(byte)
        has_lower = has_lower or is_lower(byte)
        is_all_alnum = is_all_alnum and is_alnum(byte)
    if not has_upper and not has_lower:
        return ALL_STYLES
    if has_upper:
        found &= ~(LOWER_STYLE | SNAKE_STYLE | KEBAB_STYLE)
    if has_lower:
        found &= ~UPPER_STYLE
    if not is_all_alnum or not is_lower(name[0]):
        found &= ~CAMEL_STYLE
    if not is_all_alnum or not is_upper(name[0]) or (length > 1 and not has_lower):
        found &= ~PASCAL_STYLE
    if not is_joined(name, length, 95):
        found &= ~SNAKE_STYLE
    if not is_joined(name, length, 45):
        found &= ~KEBAB_STYLE
    return found


cdef inline bint is_foreign(const Tables* tables, const uint8_t* word, size_t length) noexcept nogil:
    """Whether a word, in any letters, is an abbreviation that is not allowed."""
    cdef uint8_t small[LONGEST_NAME]
    cdef uint8_t skeleton[LONGEST_NAME]
    cdef size_t index, left = 0
    cdef int known
    if length < 2:
        return False
    for index in range(length):
        small[index] = word[index] | 32
        if small[index] not in (97, 101, 105, 111, 117, 121):
            skeleton[left] = small[index]
            left += 1
    known = slot_of(tables, tables.words, tables.word_mask, small, length)
    if known >= 0 and known & IS_FINE:
        return False
    if known >= 0 and known & IS_USUAL:
        return True
    if left == length:
        return length <= LONGEST_ABBREVIATION
    if known >= 0 and known & IS_PLURAL:
        return False
    known = slot_of(tables, tables.words, tables.word_mask, skeleton, left)
    if known < 0 or not known & IS_SKELETON:
        return False
    while length and small[length - 1] == 115:
        length -= 1
    known = slot_of(tables, tables.words, tables.word_mask, small, length)
    return known < 0 or not known & IS_FULL


cdef inline bint has_foreign(const Tables* tables, const uint8_t* name, size_t length) noexcept nogil:
    """Whether a name, of at most LONGEST_NAME bytes, has an abbreviation that is not allowed."""
    cdef size_t at = 0, start
    while at < length:
        start = at
        while at < length and is_upper(name[at]):
            at += 1
        if at < length and is_lower(name[at]):
            if at - start > 1:
                at -= 1  # the last capital begins the next word
            else:
                while at < length and is_lower(name[at]):
                    at += 1
        if at == start:
            at += 1
        elif is_foreign(tables, name + start, at - start):
            return True
    return False


cdef inline bint is_file_or_host(const uint8_t* name, size_t length) noexcept nogil:
    """Whether it is a name in which a dot separates nothing: of a file, of a host, of a version."""
    cdef size_t index, start = 0, last, dots = 0
    cdef bint is_host = True, is_file = True, is_version = True
    cdef uint8_t byte
    for index in range(length):
        byte = name[index]
        if byte == 46:
            is_host = is_host and index > start
            is_file = is_file and index > 0
            is_version = is_version and index > start + (dots == 0 and name[0] == 118)
            dots += 1
            start = index + 1
            continue
        is_host = is_host and (is_alnum(byte) or byte == 45)
        is_file = is_file and (is_alnum(byte) or byte == 45 or byte == 95)
        is_version = is_version and (is_digit(byte) or (index == 0 and byte == 118))
    last = length - start
    if not dots or not last:
        return False
    if is_version or (is_file and dots == 1 and last <= 4 and not _has_dash(name + start, last)):
        return True
    if not is_host:
        return False
    name += start
    if last == 2:
        return is_lower(name[0]) and is_lower(name[1])
    if last == 3:
        return not memcmp(name, b"com", 3) or not memcmp(name, b"org", 3) or (
            not memcmp(name, b"net", 3) or not memcmp(name, b"dev", 3) or not memcmp(name, b"app", 3)
        )
    return last == 5 and not memcmp(name, b"local", 5)


cdef inline bint _has_dash(const uint8_t* name, size_t length) noexcept nogil:
    return memchr(name, 45, length) != NULL or memchr(name, 95, length) != NULL


cdef inline bint is_glued(const uint8_t* name, size_t length) noexcept nogil:
    """Whether it is a number between letters, one to four on either side."""
    cdef size_t at = 0, start
    while at < length and is_letter(name[at]):
        at += 1
    if not 1 <= at <= 4:
        return False
    start = at
    while at < length and is_digit(name[at]):
        at += 1
    if at == start or not 1 <= length - at <= 4:
        return False
    while at < length and is_letter(name[at]):
        at += 1
    return at == length


cdef inline int found_of_name(const Tables* tables, const uint8_t* name, size_t length, int styles) noexcept nogil:
    """Return what is found of the style and words of a name."""
    cdef size_t start = 0, first, last, index
    cdef int common = ALL_STYLES, found
    for index in range(length + 1):
        if index < length and name[index] not in (46, 123, 125):
            continue
        first, last = start, index
        while first < last and name[first] in (95, 45):
            first += 1
        while last > first and name[last - 1] in (95, 45):
            last -= 1
        common &= styles_of(name + first, last - first)
        start = index + 1
    found = (ALL_STYLES & ~common) << tables.style_shift
    if styles >= 0 and not common & styles:
        found |= tables.case_rule
    found |= tables.IS_SINGLE if length == 1 else tables.IS_LONG
    if tables.has_glossary and has_foreign(tables, name, length):
        found |= tables.abbreviation_rule
    return found


cdef inline bint is_identifier(const Tables* tables, const uint8_t* part, size_t length) noexcept nogil:
    cdef uint8_t buffer[MOST_PATTERN]
    cdef Form form = pattern_of(part, length, tables.is_separator, buffer)
    cdef size_t index
    cdef bint has_slash = False, has_number = False
    if not form.pattern.length or form.is_numbered:
        return False
    for index in range(form.pattern.length):
        has_slash |= form.pattern.start[index] == 47
        if index + 3 <= form.pattern.length:
            has_number |= not memcmp(form.pattern.start + index, b"{n}", 3)
    return not (has_slash and has_number)


cdef inline bint has_other(const Tables* tables, const uint8_t* part, size_t length) noexcept nogil:
    """Whether there is a separator that is not declared."""
    cdef size_t index
    for index in range(length):
        if tables.is_other[part[index]]:
            return True
    return False


cdef inline int found_of_segment(const Tables* tables, const uint8_t* shape, size_t length, int styles) noexcept nogil:
    """Return what is found of a segment of at most LONGEST bytes, in which every digit is 0."""
    cdef int found = 0
    if is_identifier(tables, shape, length):
        return 0 if digits_at(shape, length, 0, length) else tables.IS_LONG
    if has_other(tables, shape, length) and not is_file_or_host(shape, length):
        found = tables.mixed_rule
    if length > LONGEST_NAME or not is_name(shape, length):
        return found | tables.IS_LONG
    return found | found_of_name(tables, shape, length, styles)


cdef inline int found_of_whole(const Tables* tables, const uint8_t* shape, size_t length) noexcept nogil:
    """Return what else is found of a key without separators; a dot behind a hash tag is none."""
    cdef uint8_t whole[LONGEST]
    cdef size_t index, filled = 0, joints = 0
    cdef int found = 0
    if not tables.separator_count:
        return 0
    for index in range(length):
        if filled == index and index and shape[index] == 46 and shape[index - 1] == 125:
            continue
        whole[filled] = shape[index]
        filled += 1
        joints += shape[index] == 95 or shape[index] == 45
    if is_identifier(tables, whole, filled):
        return 0
    if is_glued(whole, filled):
        found = tables.short_rule
    if (joints > 1 or has_other(tables, whole, filled)) and not is_file_or_host(whole, filled):
        found |= tables.separator_rule
    return found


cdef inline int words_of(Tables* tables, const uint8_t* part, size_t length, int styles, bint is_alone) noexcept nogil:
    """Return what is found of a segment, UNDECIDED where only Python knows; all is forgotten where there is too much."""
    cdef uint8_t shape[LONGEST]
    cdef size_t index
    cdef uint64_t hash
    cdef int found
    cdef Known* known
    if length > LONGEST:
        return UNDECIDED
    for index in range(length):
        shape[index] = 48 if is_digit(part[index]) else part[index]
    if length > LONGEST_NAME:
        found = found_of_segment(tables, shape, length, styles)
        return found | found_of_whole(tables, shape, length) if is_alone else found
    hash = hash_bytes(tables.seed + length + (<uint64_t>(styles + 2) << 8) + is_alone, shape, length) | 1
    index = hash & (2 * MOST_KNOWN - 1)
    while tables.known[index].hash:
        known = &tables.known[index]
        if known.hash == hash and known.length == length and (not length or not memcmp(known.shape, shape, length)):
            return known.found
        index = (index + 1) & (2 * MOST_KNOWN - 1)
    found = found_of_segment(tables, shape, length, styles)
    if is_alone:
        found |= found_of_whole(tables, shape, length)
    if tables.known_count == MOST_KNOWN:
        memset(tables.known, 0, 2 * MOST_KNOWN * sizeof(Known))
        tables.known_count = 0
        index = hash & (2 * MOST_KNOWN - 1)
    known = &tables.known[index]
    known.hash, known.found, known.length = hash, found, <uint8_t>length
    if length:
        memcpy(known.shape, shape, length)
    tables.known_count += 1
    return found


cdef inline int part_words(Tables* tables, const uint8_t* part, size_t length, int styles) noexcept nogil:
    """Return what is found of one segment of several; nothing of one of digits."""
    return 0 if length and digits_at(part, length, 0, length) else words_of(tables, part, length, styles, False)


cdef inline int tags_of(const Tables* tables, const uint8_t* key, size_t length) noexcept nogil:
    """Return the rules about hash tags that a key with braces breaks."""
    cdef const uint8_t* opening = <const uint8_t*>memchr(key, 123, length)
    cdef const uint8_t* closing = NULL
    cdef size_t index
    cdef int64_t balance = 0
    if opening != NULL:
        closing = <const uint8_t*>memchr(opening + 1, 125, key + length - opening - 1)
    if opening == NULL or closing == NULL:
        return tables.tag_unbalanced_rule
    if closing == opening + 1:
        return tables.tag_empty_rule
    if memchr(opening + 1, 123, closing - opening - 1) != NULL:
        return tables.tag_unbalanced_rule
    for index in range(length):
        balance += (key[index] == 123) - (key[index] == 125)
    return tables.tag_unbalanced_rule if balance else 0


cdef inline int found_in(Tables* tables, Cut* cut, int pattern) noexcept nogil:
    """Return what `NamingRules.found_in` finds of a key, UNDECIDED where only Python knows."""
    cdef uint8_t changed[1024]
    cdef const Pattern* one = NULL
    cdef const uint8_t* key = cut.key
    cdef const Text* value
    cdef size_t length = cut.length, index, start, copied = 0, filled = 0
    cdef int words = 0, mask = 0, broken, styles = tables.styles, at, parts = 0
    cdef bint has_brace = False, has_empty = False, is_alone
    if pattern >= 0:
        one = &tables.patterns[pattern]
        if one.words < 0:
            return 0
        words = one.words
    for at in range(tables.beginning_count):
        if tables.beginnings[at].length <= length and not memcmp(
            tables.beginnings[at].start, key, tables.beginnings[at].length
        ):
            styles = tables.styles_of[at]
            break
    if length > tables.longest:
        if length > (<size_t>one.longest if one != NULL else tables.longest):
            mask |= tables.long_rule
        if length > tables.hardest:
            mask |= tables.huge_rule
    elif length < tables.shortest:
        mask |= tables.short_rule
    if one != NULL and one.names | one.own:
        if cut.is_ambiguous or length + MOST_VALUES >= sizeof(changed):
            return UNDECIDED
        for at in range(MOST_VALUES):
            value = &cut.values[at]
            if one.names >> at & 1:
                broken = words_of(tables, value.start, value.length, styles, False)
                if broken == UNDECIDED:
                    return UNDECIDED
                words |= broken
            if one.own >> at & 1:
                start = value.start - key
                memcpy(changed + filled, key + copied, start - copied)
                filled += start - copied
                changed[filled] = 48
                filled += 1
                copied = start + value.length
        if one.own:
            memcpy(changed + filled, key + copied, length - copied)
            filled += length - copied
            key, length = changed, filled
    start = 0
    for index in range(length):
        broken = tables.of_bytes[key[index]]
        if broken < 0:
            return UNDECIDED
        mask |= broken
        has_brace = has_brace or key[index] == 123 or key[index] == 125
        if tables.is_separator[key[index]] and parts <= tables.deepest:
            parts += 1
            has_empty = has_empty or index == start
            if pattern < 0:
                broken = part_words(tables, key + start, index - start, styles)
                if broken == UNDECIDED:
                    return UNDECIDED
                words |= broken
            start = index + 1
    parts += 1
    has_empty = has_empty or length == start
    if pattern < 0:
        if parts == 1:
            broken = words_of(tables, key, length, styles, True)
        else:
            broken = part_words(tables, key + start, length - start, styles)
        if broken == UNDECIDED:
            return UNDECIDED
        words |= broken
    if has_brace:
        mask |= tags_of(tables, key, length)
    if parts > tables.deepest:
        mask |= tables.depth_rule
    if has_empty:
        mask |= tables.empty_rule
    if words & tables.IS_SINGLE and not words & tables.IS_LONG:
        mask |= tables.short_rule
    return mask | words
