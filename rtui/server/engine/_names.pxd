"""Names that are remembered: sets of them by their bytes, hashes of those that came last, and hashes to look up.

A hash is never 0, which stands for a free place in the tables; they are open, with linear probing, and never lose a
single entry. Functions that need memory return False or NULL where there is none, and what they had is kept.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from rtui.server.engine._hashing cimport hash_bytes

cdef enum:
    FEWEST_NAMES = 64
    FEWEST_ITEMS = 16

cdef struct NameSlot:
    uint64_t hash  # 0 where the slot is free
    size_t offset
    size_t length

cdef struct NameSet:
    NameSlot* table
    size_t slots
    size_t count
    uint8_t* bytes
    size_t used
    size_t capacity

cdef struct Queue:
    char* items
    size_t first
    size_t count
    size_t capacity

cdef struct HashSet:
    uint64_t* table
    size_t slots  # of the table as it is filled now
    size_t capacity


cdef inline size_t most_items() noexcept nogil:
    """Return how many items, or bytes of names, an array has at most, so that no size of one overflows."""
    return <size_t>1 << 40


cdef inline uint64_t name_hash(uint64_t seed, const uint8_t* name, size_t length) noexcept nogil:
    cdef uint64_t found = hash_bytes(seed + (<uint64_t>length << 16), name, length)
    return found if found else 1


cdef inline NameSlot* slot_of(
    const NameSet* names, uint64_t hash, const uint8_t* name, size_t length
) noexcept nogil:
    """Return where a name is, or where it belongs; the set must have room."""
    cdef size_t at = hash & (names.slots - 1)
    while names.table[at].hash:
        if (
            names.table[at].hash == hash
            and names.table[at].length == length
            and memcmp(names.bytes + names.table[at].offset, name, length) == 0
        ):
            break
        at = (at + 1) & (names.slots - 1)
    return &names.table[at]


cdef inline bint has_name(const NameSet* names, uint64_t hash, const uint8_t* name, size_t length) noexcept nogil:
    return names.count > 0 and slot_of(names, hash, name, length).hash != 0


cdef inline bint reserve_name(NameSet* names, size_t length) noexcept nogil:
    """Make room for one more name of this length."""
    cdef NameSlot* table
    cdef uint8_t* grown
    cdef size_t at, index, slots, capacity
    if 2 * (names.count + 1) > names.slots:
        slots = 2 * names.slots if names.slots else FEWEST_NAMES
        table = <NameSlot*>calloc(slots, sizeof(NameSlot))
        if table == NULL:
            return False
        for index in range(names.slots):
            if names.table[index].hash:
                at = names.table[index].hash & (slots - 1)
                while table[at].hash:
                    at = (at + 1) & (slots - 1)
                table[at] = names.table[index]
        free(names.table)
        names.table = table
        names.slots = slots
    if length >= names.capacity - names.used:
        if length > most_items() or names.used > most_items():
            return False
        capacity = 2 * names.used + length + FEWEST_NAMES
        grown = <uint8_t*>realloc(names.bytes, capacity)
        if grown == NULL:
            return False
        names.bytes = grown
        names.capacity = capacity
    return True


cdef inline bint add_name(NameSet* names, uint64_t hash, const uint8_t* name, size_t length) noexcept nogil:
    cdef NameSlot* slot
    if not reserve_name(names, length):
        return False
    slot = slot_of(names, hash, name, length)
    if not slot.hash:
        slot.hash = hash
        slot.offset = names.used
        slot.length = length
        if length:
            memcpy(names.bytes + names.used, name, length)
        names.used += length
        names.count += 1
    return True


cdef inline void clear_names(NameSet* names) noexcept nogil:
    """Free all names; the set is empty then."""
    free(names.table)
    free(names.bytes)
    memset(names, 0, sizeof(NameSet))


cdef inline char* room(Queue* queue, size_t size, size_t more) noexcept nogil:
    """Return the place for so many items behind those that are there; NULL where there is no memory."""
    cdef char* moved
    cdef size_t capacity
    if more > most_items() or queue.count > most_items():
        return NULL
    if queue.items == NULL or queue.first + queue.count + more > queue.capacity:
        if queue.items == NULL or 2 * (queue.count + more) > queue.capacity:
            capacity = 2 * (queue.count + more) + FEWEST_ITEMS
            moved = <char*>malloc(capacity * size)
            if moved == NULL:
                return NULL
            if queue.count:
                memcpy(moved, queue.items + queue.first * size, queue.count * size)
            free(queue.items)
            queue.items = moved
            queue.capacity = capacity
        elif queue.count:
            memmove(queue.items, queue.items + queue.first * size, queue.count * size)
        queue.first = 0
    return queue.items + (queue.first + queue.count) * size


cdef inline void leave(Queue* queue, size_t count) noexcept nogil:
    """Remove so many items from the front."""
    queue.first += count
    queue.count -= count


cdef inline bint fill_hashes(
    HashSet* found, size_t count, const uint64_t* hashes, const uint8_t* keep
) noexcept nogil:
    """Have a set consist of the hashes that are to be kept."""
    cdef uint64_t* grown
    cdef size_t at, index, slots = FEWEST_NAMES
    if count > most_items():
        return False
    while slots < 2 * count:
        slots *= 2
    if slots > found.capacity:
        grown = <uint64_t*>realloc(found.table, slots * sizeof(uint64_t))
        if grown == NULL:
            return False
        found.table = grown
        found.capacity = slots
    found.slots = slots
    memset(found.table, 0, slots * sizeof(uint64_t))
    for index in range(count):
        if keep[index]:
            at = hashes[index] & (slots - 1)
            while found.table[at] and found.table[at] != hashes[index]:
                at = (at + 1) & (slots - 1)
            found.table[at] = hashes[index]
    return True


cdef inline bint has_any(const HashSet* found, size_t count, const uint64_t* hashes) noexcept nogil:
    """Whether one of these is in the set."""
    cdef size_t at, index
    for index in range(count):
        at = hashes[index] & (found.slots - 1)
        while found.table[at]:
            if found.table[at] == hashes[index]:
                return True
            at = (at + 1) & (found.slots - 1)
    return False
