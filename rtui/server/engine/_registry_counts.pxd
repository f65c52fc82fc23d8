"""Counts keys by entry of a registry and by what its naming rules find, as `analysis/aggregate` does in Python.

What is counted is handed to Python after each slice, and begins again at nothing: so tables are small. A key that breaks
what is expected of it, or about which Python has to decide, is not counted here: Python counts all of it.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memcmp, memcpy

from rtui.server.engine._distinct cimport LONGEST_EXAMPLE, Examples, add_example, crc32
from rtui.server.engine._forms cimport is_java_text
from rtui.server.engine._hashing cimport hash_bytes
from rtui.server.engine._naming cimport found_in
from rtui.server.engine._pages cimport KNOWS_LENGTH, KNOWS_MEMORY, KNOWS_TTL, Key
from rtui.server.engine._registered cimport NO_PATTERN, UNDECIDED, Cut, Tables, cut_key, is_digit, pattern_of_key

cdef enum:
    HAS_TTL = 1
    HAS_MEMORY = 2
    HAS_LENGTH = 4
    IS_SAMPLED = 8
    LAYOUTS = 16  # of a type
    MOST_REGISTRY_TYPES = 256  # keys of further types are left to Python
    LONGEST_WORD = 32  # of a namespace
    LONGEST_NAMESPACE = 66
    MOST_COUNTS = 8192  # places with what is found there
    COUNT_SLOTS = 16384
    LARGEST_BITS = 40  # keys that are said to be larger are left to Python

cdef struct NameCount:
    uint64_t hash  # 0 for an empty slot
    int entry
    uint32_t found
    uint8_t namespace[LONGEST_NAMESPACE]
    uint8_t length
    uint64_t keys
    uint64_t memory_keys
    uint64_t memory_bytes
    Examples examples

cdef struct Counts:
    Tables* tables
    int entries
    uint64_t* layouts[MOST_REGISTRY_TYPES * LAYOUTS]  # keys by entry, the last of them those without one
    const uint8_t* is_wrong[MOST_REGISTRY_TYPES]  # by type, for each entry; NULL where Python has not said it
    int64_t* ttls  # the least and the most of each entry
    int64_t* sizes
    int64_t* lengths
    uint8_t* has_least  # whether the TTL is one of at least so much
    uint64_t* memory_bytes
    uint64_t* expiring
    int64_t* longest_ms
    Examples* examples
    uint32_t enabled  # bits of what is found that are counted of keys with an entry
    uint32_t kept  # and of those without
    NameCount* names
    size_t name_count


cdef inline size_t word_end(const Tables* tables, const uint8_t* key, size_t length, size_t start) noexcept nogil:
    """Return where the separator behind a word is, 0 where there is none."""
    cdef size_t at = start
    while at < length and at - start <= LONGEST_WORD:
        if tables.is_separator[key[at]]:
            return at if at > start else 0
        if is_digit(key[at]):
            return 0
        at += 1
    return 0


cdef inline size_t namespace_of(const Tables* tables, const uint8_t* key, size_t length) noexcept nogil:
    """Return how many bytes at the beginning of a key are its namespace, of one or two segments."""
    cdef size_t first = word_end(tables, key, length, 0)
    cdef size_t second
    if not first:
        return 0
    second = word_end(tables, key, length, first + 1)
    return second + 1 if second else first + 1


cdef inline bint count_name(Counts* counts, const Key* key, int entry, uint32_t found, uint32_t crc) noexcept nogil:
    """Count a key by what is found of its name; False where there is no room."""
    cdef size_t length = 0 if entry >= 0 else namespace_of(counts.tables, key.name, key.length)
    cdef uint64_t hash
    cdef size_t at
    cdef NameCount* one
    hash = hash_bytes(counts.tables.seed + length + (<uint64_t>found << 8) + (<uint64_t>(entry + 1) << 40), key.name, length)
    hash |= 1
    at = hash & (COUNT_SLOTS - 1)
    while True:
        one = &counts.names[at]
        if not one.hash:
            if counts.name_count == MOST_COUNTS:
                return False
            counts.name_count += 1
            one.hash, one.entry, one.found, one.length = hash, entry, found, <uint8_t>length
            if length:
                memcpy(one.namespace, key.name, length)
            break
        if one.hash == hash and one.entry == entry and one.found == found and one.length == length:
            if not memcmp(one.namespace, key.name, length):
                break
        at = (at + 1) & (COUNT_SLOTS - 1)
    one.keys += 1
    if key.known & KNOWS_MEMORY:
        one.memory_keys += 1
        one.memory_bytes += key.memory_bytes
    add_example(&one.examples, crc, key.name, key.length)
    return True


cdef inline bint is_within(const int64_t* bounds, int entry, int64_t value) noexcept nogil:
    return bounds[2 * entry] <= value <= bounds[2 * entry + 1]


cdef inline int judge(Counts* counts, const uint8_t* name, size_t length, int* found) noexcept nogil:
    """Return the entry of a key, NO_PATTERN or UNDECIDED; what is found of its name, or UNDECIDED, goes to `found`."""
    cdef Cut cut
    cdef int entry
    found[0] = UNDECIDED
    if is_java_text(name, length):
        name += 7
        length -= 7
    if not cut_key(counts.tables, &cut, name, length):
        return UNDECIDED
    entry = pattern_of_key(counts.tables, &cut)
    if entry != UNDECIDED:
        found[0] = found_in(counts.tables, &cut, entry) if counts.tables.has_names else 0
    return entry


cdef inline bint count_registered(Counts* counts, const Key* key, int* of_entry) noexcept nogil:
    """Count a key; False where Python has to count it, which is told its entry or that this is UNDECIDED, too."""
    cdef int entry, found, type = key.type, at, layout = 0
    cdef uint32_t named, crc
    cdef uint64_t** keys
    of_entry[0] = UNDECIDED
    if key.length > LONGEST_EXAMPLE:  # of such names Python keeps the beginning
        return False
    if type < 0 or type >= MOST_REGISTRY_TYPES or counts.is_wrong[type] == NULL:
        return False
    if key.known & KNOWS_MEMORY and (key.memory_bytes < 0 or key.memory_bytes >> LARGEST_BITS):
        return False
    of_entry[0] = entry = judge(counts, key.name, key.length, &found)
    if entry == UNDECIDED or found == UNDECIDED:
        return False
    at = entry if entry >= 0 else counts.entries
    if counts.is_wrong[type][at]:
        return False
    if key.known & KNOWS_TTL:
        if not is_within(counts.ttls, at, key.ttl_ms):
            return False
        layout |= HAS_TTL
    if key.known & KNOWS_MEMORY:
        if not is_within(counts.sizes, at, key.memory_bytes):
            return False
        layout |= HAS_MEMORY
    if key.known & KNOWS_LENGTH:
        if not is_within(counts.lengths, at, key.size):
            return False
        layout |= HAS_LENGTH
    if key.is_sampled:
        layout |= IS_SAMPLED
    keys = &counts.layouts[type * LAYOUTS + layout]
    if keys[0] == NULL:
        keys[0] = <uint64_t*>calloc(counts.entries + 1, sizeof(uint64_t))
        if keys[0] == NULL:
            return False
    named = <uint32_t>found & (counts.enabled if entry >= 0 else counts.kept)
    crc = crc32(key.name, key.length)
    if named and not count_name(counts, key, entry, named, crc):
        return False
    keys[0][at] += 1
    if key.known & KNOWS_MEMORY:
        counts.memory_bytes[at] += key.memory_bytes
    if counts.has_least[at] and key.known & KNOWS_TTL and key.ttl_ms >= 0:
        counts.expiring[at] += 1
        if key.ttl_ms > counts.longest_ms[at]:
            counts.longest_ms[at] = key.ttl_ms
    if entry >= 0:
        add_example(&counts.examples[entry], crc, key.name, key.length)
    return True
