"""Counts the keys of a page about which all is known, and finds those that may be among the largest.

Keys of one type of which the same facts are known are counted together: their facts go to the tree of patterns (`_tree`),
their names to the hash slots (`_slots`), their lengths to a sketch by type. A key that is no worse than the last of a list
of largest keys, as Python has it, is copied for Python to rank; once the lists are full, hardly any is.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memset

from rtui.server.engine._inspection cimport IS_FAILURE, Floor, Inspection, KeyType, Scratch, add_gone
from rtui.server.engine._pages cimport (
    KNOWS_FREQUENCY,
    KNOWS_IDLE,
    KNOWS_LENGTH,
    KNOWS_MEMORY,
    KNOWS_TTL,
    Key,
    Page,
    add_row,
)
from rtui.server.engine._registered cimport UNDECIDED
from rtui.server.engine._registry_counts cimport count_registered
from rtui.server.engine._slots cimport count_slots
from rtui.server.engine._tallies cimport Columns, SketchData, add_size
from rtui.server.engine._tree cimport add_keys


cdef inline bint enters(const Floor* floor, int64_t value, const Key* key, bint is_least) noexcept nogil:
    """Whether a key may be among the first of a list."""
    cdef size_t least
    cdef int order
    if floor.is_closed or not floor.is_set:
        return not floor.is_closed
    if value != floor.value:
        return (value < floor.value) == is_least
    least = key.length if key.length < floor.length else floor.length
    order = memcmp(key.name, floor.name, least) if least else 0
    return order < 0 or (order == 0 and key.length <= floor.length)


cdef inline bint grow_scratch(Scratch* scratch, size_t count) noexcept nogil:
    """Make room for so many keys."""
    cdef void** columns[8]
    cdef void* grown
    cdef int at
    if count <= scratch.capacity:
        return True
    columns[0], columns[1] = <void**>&scratch.names, <void**>&scratch.lengths
    columns[2], columns[3] = <void**>&scratch.tags, <void**>&scratch.tag_lengths
    columns[4], columns[5] = <void**>&scratch.ttl_ms, <void**>&scratch.memory_bytes
    columns[6], columns[7] = <void**>&scratch.recency, <void**>&scratch.sizes
    for at in range(8):
        grown = realloc(columns[at][0], 2 * count * 8)
        if grown == NULL:
            return False
        columns[at][0] = grown
    scratch.capacity = 2 * count
    return True


cdef inline void free_scratch(Scratch* scratch) noexcept nogil:
    free(scratch.names)
    free(scratch.lengths)
    free(scratch.tags)
    free(scratch.tag_lengths)
    free(scratch.ttl_ms)
    free(scratch.memory_bytes)
    free(scratch.recency)
    free(scratch.sizes)
    memset(scratch, 0, sizeof(Scratch))


cdef inline bint note_largest(Inspection* one, Page* page, Key* key) noexcept nogil:
    """Compare a key with the thresholds, and copy it if it may be in a list of the largest keys."""
    cdef KeyType* key_type = &one.types[key.type]
    cdef bint is_candidate = False
    cdef bint has_memory = key.known & KNOWS_MEMORY, has_length = key.known & KNOWS_LENGTH
    cdef int64_t length = key.size
    if has_memory and enters(&key_type.by_memory, key.memory_bytes, key, False):
        is_candidate = True
    if has_length and enters(&key_type.by_length, key.size, key, False):
        is_candidate = True
    if key.known & (KNOWS_FREQUENCY if one.recency_is_frequency else KNOWS_IDLE):
        if enters(&one.by_recency, key.recency, key, not one.recency_is_frequency):
            is_candidate = True
    if key_type.length_is_memory and not has_length and (key.is_sampled or key_type.asked[0] == key_type.asked[1]):
        has_length, length = has_memory, key.memory_bytes
    if key.type:
        has_length = has_length and key_type.most_length >= 0
        has_memory = has_memory and key_type.most_memory >= 0
        key_type.is_judged = key_type.is_judged or has_length or has_memory
        if (has_length and length > key_type.most_length) or (
            has_memory and key.memory_bytes > key_type.most_memory
        ):
            key_type.over += 1
            key_type.over_sampled += key.is_sampled
    if is_candidate:
        if not add_row(&one.top, key, key.name, key.length):
            return False
        one.top.items[one.top.count - 1].asked_at_ms = page.asked_at_ms
    return True


cdef inline bint count_alike(Inspection* one, Page* page, size_t start) noexcept nogil:
    """Count the key at `start` and all behind it of which the same is known, and mark them as counted."""
    cdef Scratch* into = &one.scratch
    cdef Key* first = &page.keys[start]
    cdef Key* key
    cdef Key tag
    cdef Columns columns
    cdef KeyType* key_type = &one.types[first.type]
    cdef SketchData* lengths
    cdef uint8_t known = first.known
    cdef size_t count = 0, index
    cdef int entry = UNDECIDED
    for index in range(start, page.count):
        key = &page.keys[index]
        if key.is_gone or key.type != first.type or key.known != known:
            continue
        if not note_largest(one, page, key):
            return False
        if known & KNOWS_LENGTH and key.type:
            lengths = &key_type.lengths if key.is_sampled else &key_type.late_lengths
            if not add_size(lengths, &one.tree.shared, key.size):
                return False
        if one.has_registry and (one.registry == NULL or not count_registered(one.registry, key, &entry)):
            if not add_row(&one.by_registry, key, key.name, key.length):
                return False
            one.by_registry.items[one.by_registry.count - 1].recency = entry
        into.names[count] = into.tags[count] = key.name
        into.lengths[count] = into.tag_lengths[count] = key.length
        into.ttl_ms[count], into.memory_bytes[count] = key.ttl_ms, key.memory_bytes
        into.recency[count] = key.recency
        into.sizes[count] = key.size if key.is_sampled else -1
        count += 1
        if key != first:
            key.is_gone = True
    first.is_gone = True
    columns.ttl_ms = into.ttl_ms if known & KNOWS_TTL else NULL
    columns.memory_bytes = into.memory_bytes if known & KNOWS_MEMORY else NULL
    columns.idle_s = into.recency if known & KNOWS_IDLE else NULL
    columns.frequency = into.recency if known & KNOWS_FREQUENCY else NULL
    columns.lengths = into.sizes if known & KNOWS_LENGTH and key_type.length_is_memory else NULL
    columns.asked_at_ms = page.asked_at_ms
    if not add_keys(one.tree, count, into.names, into.lengths, key_type.number, &columns):
        return False
    one.keys += count
    if count_slots(one.slots, count, into.tags, into.tag_lengths, columns.memory_bytes, columns.ttl_ms):
        memset(&tag, 0, sizeof(Key))
        for index in range(count):
            if into.tag_lengths[index]:
                tag.known = known & KNOWS_MEMORY
                tag.memory_bytes = into.memory_bytes[index]
                if not add_row(&one.tags, &tag, into.tags[index], into.tag_lengths[index]):
                    return False
    return True


cdef inline bint count_page(Inspection* one, Page* page) noexcept nogil:
    """Count all keys of a page and free it; False where there is no memory, once and for all."""
    cdef size_t index
    cdef bint is_counted = grow_scratch(&one.scratch, page.count)
    for index in range(page.count if is_counted else 0):
        if page.keys[index].is_absent:
            page.keys[index].is_gone = True
        elif page.keys[index].is_gone and add_gone(one, &page.keys[index]) == IS_FAILURE:
            is_counted = False
    for index in range(page.count):
        if is_counted and not page.keys[index].is_gone:
            is_counted = count_alike(one, page, index)
    free(page)
    return is_counted
