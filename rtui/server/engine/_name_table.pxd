"""Splits names at their first separator and groups the rest by it, as `Separators.split_batch` and a dictionary would.

With the separator `:`, the names `user:1`, `lock`, `cart:7` and `user:2:x` become the groups `user:` with `1` and
`2:x`, and `cart:` with `7`; `lock` has no separator and goes to the group `flat`. A separator inside the hash tag does
not split, see `rtui.keyspace.text.segments`.

What is left of each name is copied to the end of one growing piece of memory, the arena, as an `Entry`: its length,
its bytes, and where the next entry of the same group is. So a name costs no allocation, and neither does a group, whose
label (the segment with its separator) is in the arena too. Groups are found by a hash table of their labels, with
linear probing, and kept in the order in which they came.

`add_names` needs no Python. Places in the arena are counted in entries of eight bytes, from 1; 0 is none.
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from rtui.server.engine._hashing cimport hash_bytes

cdef enum:
    NO_SINGLE = -1
    FEWEST_PLACES = 256
    FEWEST_ENTRIES = 4096
    FEWEST_GROUPS = 64
    MOST_PLACES_KEPT = 1 << 17
    MOST_ENTRIES_KEPT = 1 << 20

cdef struct Entry:
    uint32_t next
    uint32_t length  # of the bytes that follow

cdef struct Group:
    uint32_t label
    uint32_t first
    uint32_t last
    uint32_t longest
    uint32_t hash
    uint64_t count

cdef struct Place:
    uint32_t hash
    uint32_t group  # its index and 1; 0 where the place is free

cdef struct NameGroups:
    uint64_t seed
    int32_t separator  # the only one, or NO_SINGLE
    uint8_t is_separator[256]
    uint64_t names
    Group flat
    Group* groups
    size_t group_count
    size_t group_capacity
    Place* table
    size_t places  # a power of two
    Entry* arena
    size_t used
    size_t capacity


cdef inline const uint8_t* next_separator(
    const NameGroups* groups, const uint8_t* at, const uint8_t* end
) noexcept nogil:
    """Return where the first separator is, or the end."""
    cdef const uint8_t* found
    if groups.separator != NO_SINGLE:
        found = <const uint8_t*>memchr(at, groups.separator, end - at) if at < end else NULL
        return found if found != NULL else end
    while at < end and not groups.is_separator[at[0]]:
        at += 1
    return at


cdef inline size_t label_length(const NameGroups* groups, const uint8_t* name, size_t length) noexcept nogil:
    """Return the length of the first segment and its separator, 0 where nothing splits the name."""
    cdef const uint8_t* end = name + length
    cdef const uint8_t* found
    cdef const uint8_t* opening
    cdef const uint8_t* closing
    if not length:
        return 0
    found = next_separator(groups, name, end)
    opening = <const uint8_t*>memchr(name, b'{', found - name + (found < end))
    if opening != NULL:
        closing = <const uint8_t*>memchr(opening + 1, b'}', end - opening - 1)
        if closing != NULL and closing > opening + 1:
            found = next_separator(groups, closing + 1, end)
    return found - name + 1 if found < end else 0


cdef inline uint32_t keep(NameGroups* groups, const uint8_t* start, size_t length) noexcept nogil:
    """Copy bytes to the end of the arena; return where they are, 0 where there is no memory."""
    cdef size_t needed = 1 + length // sizeof(Entry) + (length % sizeof(Entry) != 0)
    cdef size_t at = groups.used if groups.used else 1
    cdef size_t capacity
    cdef Entry* grown
    if length > <uint32_t>-1 or at + needed > <uint32_t>-1:
        return 0
    if at + needed > groups.capacity:
        capacity = max(2 * groups.capacity, at + needed, <size_t>FEWEST_ENTRIES)
        grown = <Entry*>realloc(groups.arena, capacity * sizeof(Entry))
        if grown == NULL:
            return 0
        groups.arena = grown
        groups.capacity = capacity
    groups.arena[at].next = 0
    groups.arena[at].length = <uint32_t>length
    if length:
        memcpy(&groups.arena[at + 1], start, length)
    groups.used = at + needed
    return <uint32_t>at


cdef inline bint widen(NameGroups* groups) noexcept nogil:
    """Make room for one more group, in the table and beside the others."""
    cdef size_t places, at, index, capacity
    cdef Place* table
    cdef Group* grown
    if groups.group_count == groups.group_capacity:
        capacity = 2 * groups.group_capacity if groups.group_capacity else FEWEST_GROUPS
        grown = <Group*>realloc(groups.groups, capacity * sizeof(Group))
        if grown == NULL:
            return False
        groups.groups = grown
        groups.group_capacity = capacity
    if 2 * (groups.group_count + 1) <= groups.places:
        return True
    places = 2 * groups.places if groups.places else FEWEST_PLACES
    table = <Place*>calloc(places, sizeof(Place))
    if table == NULL:
        return False
    for index in range(groups.group_count):
        at = groups.groups[index].hash & (places - 1)
        while table[at].group:
            at = (at + 1) & (places - 1)
        table[at].hash = groups.groups[index].hash
        table[at].group = <uint32_t>(index + 1)
    free(groups.table)
    groups.table = table
    groups.places = places
    return True


cdef inline Group* group_of(NameGroups* groups, const uint8_t* label, size_t length) noexcept nogil:
    """Return the group with this label, a new one if need be; NULL where there is no memory."""
    cdef uint32_t hash = <uint32_t>hash_bytes(groups.seed + (<uint64_t>length << 32), label, length)
    cdef size_t at
    cdef uint32_t place
    cdef Group* group
    cdef Entry* entry
    if not groups.places and not widen(groups):
        return NULL
    at = hash & (groups.places - 1)
    while groups.table[at].group:
        if groups.table[at].hash == hash:
            group = &groups.groups[groups.table[at].group - 1]
            entry = &groups.arena[group.label]
            if entry.length == length and memcmp(entry + 1, label, length) == 0:
                return group
        at = (at + 1) & (groups.places - 1)
    place = keep(groups, label, length)
    if not place or not widen(groups):
        return NULL
    at = hash & (groups.places - 1)
    while groups.table[at].group:
        at = (at + 1) & (groups.places - 1)
    group = &groups.groups[groups.group_count]
    group.label, group.hash = place, hash
    group.first = group.last = group.longest = 0
    group.count = 0
    groups.group_count += 1
    groups.table[at].hash = hash
    groups.table[at].group = <uint32_t>groups.group_count
    return group


cdef inline bint add_name(NameGroups* groups, const uint8_t* name, size_t length) noexcept nogil:
    """Add one name; False where there is no memory for it."""
    cdef size_t cut = label_length(groups, name, length)
    cdef Group* group = group_of(groups, name, cut) if cut else &groups.flat
    cdef uint32_t at = keep(groups, name + cut, length - cut) if group != NULL else 0
    if not at:
        return False
    if group.first:
        groups.arena[group.last].next = at
    else:
        group.first = at
    group.last = at
    group.longest = max(group.longest, groups.arena[at].length)
    group.count += 1
    groups.names += 1
    return True


cdef inline bint add_names(
    NameGroups* groups, size_t count, const uint8_t** names, const size_t* lengths
) noexcept nogil:
    """Add names; False where there is no memory, and those before that one are in."""
    cdef size_t index
    for index in range(count):
        if not add_name(groups, names[index], lengths[index]):
            return False
    return True


cdef inline void free_groups(NameGroups* groups) noexcept nogil:
    """Forget all names and give their memory back; the separators stay."""
    free(groups.groups)
    free(groups.table)
    free(groups.arena)
    groups.groups, groups.table, groups.arena = NULL, NULL, NULL
    groups.group_count = groups.group_capacity = groups.places = groups.used = groups.capacity = 0
    groups.names = groups.flat.count = 0
    groups.flat.first = groups.flat.last = groups.flat.longest = 0


cdef inline void clear_groups(NameGroups* groups) noexcept nogil:
    """Forget all names; what memory many pages need is kept for the next ones."""
    if groups.places > MOST_PLACES_KEPT or groups.capacity > MOST_ENTRIES_KEPT:
        free_groups(groups)
        return
    if groups.places:
        memset(groups.table, 0, groups.places * sizeof(Place))
    groups.group_count = groups.used = 0
    groups.names = groups.flat.count = 0
    groups.flat.first = groups.flat.last = groups.flat.longest = 0


cdef class NameTable:
    """Groups names for a namespace store: `groups` is filled, while `taken` is drained."""

    cdef NameGroups groups
    cdef NameGroups taken
    cdef size_t at  # the group of `taken` that is drained next
    cdef size_t inline_names
    cdef size_t inline_bytes
    cdef size_t chunk_names
    cdef size_t chunk_bytes
    cdef uint8_t* blob
    cdef uint16_t* bounds

    cdef bint swap_groups(self) noexcept nogil
    cdef object take_inline(self, Group* group)
    cdef object take_chunk(self, Group* group, size_t most)
