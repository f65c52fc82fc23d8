"""Counts different names by their smallest hashes, and chooses examples of keys, as `rtui.analysis.aggregate.distinct` does.

Hashes are those of `zlib.crc32`, so that both engines and all runs come to the same results. Functions that need memory
return False where there is none, and what they had is kept.
"""

from libc.math cimport rint
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove

cdef extern from *:
    """
    #ifndef RTUI_CRC32
    #define RTUI_CRC32
    static uint32_t rtui_crcs[4][256];

    __attribute__((constructor)) static void rtui_fill_crcs(void) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t crc = byte;
            for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
            rtui_crcs[0][byte] = crc;
        }
        for (uint32_t byte = 0; byte < 256; byte++)
            for (int row = 1; row < 4; row++)
                rtui_crcs[row][byte] = rtui_crcs[row - 1][byte] >> 8 ^ rtui_crcs[0][rtui_crcs[row - 1][byte] & 255];
    }

    static inline uint32_t rtui_crc32(const uint8_t *at, size_t length) {
        uint32_t crc = ~0u;
        for (; length >= 4; length -= 4, at += 4) {
            crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
            crc = rtui_crcs[3][crc & 255] ^ rtui_crcs[2][crc >> 8 & 255]
                ^ rtui_crcs[1][crc >> 16 & 255] ^ rtui_crcs[0][crc >> 24];
        }
        while (length--) crc = crc >> 8 ^ rtui_crcs[0][(crc ^ *at++) & 255];
        return ~crc;
    }
    #endif
    """
    uint32_t crc32 "rtui_crc32"(const uint8_t*, size_t) noexcept nogil

cdef enum:
    MOST_HASHES = 256
    FEWEST_HASHES = 8
    MOST_EXAMPLES = 3
    LONGEST_EXAMPLE = 256

cdef struct Distinct:
    uint32_t* hashes  # ascending
    uint32_t count
    uint32_t capacity

cdef struct Example:
    uint8_t* key
    uint32_t length
    uint32_t hash

cdef struct Examples:
    Example items[MOST_EXAMPLES]  # in order
    int count


cdef inline uint32_t spread_hash(const uint8_t* name, size_t length) noexcept nogil:
    """Return a hash that counted names have as evenly spread as others."""
    return crc32(name, length) * <uint32_t>0x9E3779B1


cdef inline uint32_t name_hash(const uint8_t* name, size_t length) noexcept nogil:
    """Return the hash of a name; the last bit says that it looks like a code rather than a word."""
    cdef uint32_t found = spread_hash(name, length) & ~<uint32_t>1
    cdef size_t index
    for index in range(length):
        if b'0' <= name[index] <= b'9' or name[index] == b'=' or name[index] == b'@':
            return found | 1
    return found


cdef inline bint add_hash(Distinct* to, uint32_t hash) noexcept nogil:
    cdef uint32_t low = 0, high = to.count, middle
    cdef uint32_t* grown
    if high == MOST_HASHES and hash >= to.hashes[MOST_HASHES - 1]:
        return True
    while low < high:
        middle = (low + high) // 2
        if to.hashes[middle] < hash:
            low = middle + 1
        else:
            high = middle
    if low < to.count and to.hashes[low] == hash:
        return True
    if to.count == MOST_HASHES:
        to.count -= 1
    elif to.count == to.capacity:
        high = 2 * to.capacity if to.capacity else FEWEST_HASHES
        grown = <uint32_t*>realloc(to.hashes, high * sizeof(uint32_t))
        if grown == NULL:
            return False
        to.hashes = grown
        to.capacity = high
    memmove(to.hashes + low + 1, to.hashes + low, (to.count - low) * sizeof(uint32_t))
    to.hashes[low] = hash
    to.count += 1
    return True


cdef inline bint merge_distinct(Distinct* to, const Distinct* other) noexcept nogil:
    cdef uint32_t index
    for index in range(other.count):
        if not add_hash(to, other.hashes[index]):
            return False
    return True


cdef inline bint grows(const Distinct* names, int64_t keys, int64_t keys_of_a_name, int64_t most_words) noexcept nogil:
    """Whether names are about as many as the keys that have them, and no few words."""
    cdef int64_t count = names.count
    cdef uint32_t index, coded = 0
    if count == MOST_HASHES:
        count = <int64_t>rint(<double>(MOST_HASHES - 1) * 4294967296.0 / (<double>names.hashes[MOST_HASHES - 1] + 1.0))
    for index in range(names.count):
        coded += names.hashes[index] & 1
    return (count >= most_words or (names.count and 8 * coded >= names.count)) and keys_of_a_name * count >= keys


cdef inline int compare_examples(const Example* one, const Example* other) noexcept nogil:
    cdef size_t shorter = one.length if one.length < other.length else other.length
    cdef int order
    if one.hash != other.hash:
        return -1 if one.hash < other.hash else 1
    order = memcmp(one.key, other.key, shorter) if shorter else 0
    return order if order else (one.length > other.length) - (one.length < other.length)


cdef inline int place_of_example(const Examples* to, const Example* one) noexcept nogil:
    """Return where an example belongs, -1 where it is one already or is behind all that are kept."""
    cdef int at = 0, order
    while at < to.count:
        order = compare_examples(one, &to.items[at])
        if not order:
            return -1
        if order < 0:
            return at
        at += 1
    return at if at < MOST_EXAMPLES else -1


cdef inline void insert_example(Examples* to, int at, const Example* one) noexcept nogil:
    """Put an example in its place; the last one must have been freed where there is no room."""
    cdef int index = to.count if to.count < MOST_EXAMPLES else MOST_EXAMPLES - 1
    while index > at:
        to.items[index] = to.items[index - 1]
        index -= 1
    to.items[at] = one[0]
    if to.count < MOST_EXAMPLES:
        to.count += 1


cdef inline bint add_example(Examples* to, uint32_t hash, const uint8_t* key, size_t length) noexcept nogil:
    """Copy a key if it is one of the examples to keep."""
    cdef Example made
    cdef int at
    if length > LONGEST_EXAMPLE or (to.count == MOST_EXAMPLES and hash > to.items[MOST_EXAMPLES - 1].hash):
        return True
    made.key = <uint8_t*>key
    made.length = <uint32_t>length
    made.hash = hash
    at = place_of_example(to, &made)
    if at < 0:
        return True
    made.key = <uint8_t*>malloc(length + 1)
    if made.key == NULL:
        return False
    memcpy(made.key, key, length)
    if to.count == MOST_EXAMPLES:
        free(to.items[MOST_EXAMPLES - 1].key)
    insert_example(to, at, &made)
    return True


cdef inline bint merge_examples(Examples* to, const Examples* other) noexcept nogil:
    cdef int index
    for index in range(other.count):
        if not add_example(to, other.items[index].hash, other.items[index].key, other.items[index].length):
            return False
    return True


cdef inline void free_examples(Examples* examples) noexcept nogil:
    cdef int index
    for index in range(examples.count):
        free(examples.items[index].key)
    examples.count = 0
