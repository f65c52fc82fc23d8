"""Which of the keys that a node of a cluster lists are delivered, by their slot.

`rtui.server.scan.slot_ledger` says what the fingerprints are for. Here those of slots that are listed for the first
time are appended to a log, and those of slots that are listed again are in an open hash table, in which a fingerprint
is never 0. An engine filters a page under the lock, so that Python may change the slots while the engine is at work.
"""

from cpython.pythread cimport PyThread_acquire_lock, PyThread_release_lock, PyThread_type_lock
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc

from rtui.server.engine._hashing cimport python_hash
from rtui.server.engine._slots cimport SLOT_COUNT, slot_of

cdef enum:  # what becomes of the keys of a slot
    DROP = 0
    ACCEPT = 1
    ACCEPT_NEW = 2

cdef enum:
    HASH_BITS = 50
    FEWEST_KNOWN = 1024

cdef struct SlotFilterState:
    PyThread_type_lock mutex
    uint16_t crcs[2][256]  # of a byte, and of a byte that another one follows
    uint8_t slots[SLOT_COUNT]  # what becomes of their keys
    uint32_t unknown[SLOT_COUNT]  # keys that were delivered without a fingerprint
    size_t most  # fingerprints
    uint64_t* log
    size_t logged
    size_t capacity
    uint64_t* known
    size_t known_slots
    size_t known_count


cdef inline uint64_t fingerprint_of(uint32_t slot, const uint8_t* name, size_t length) noexcept nogil:
    cdef uint64_t found = <uint64_t>slot << HASH_BITS
    found |= <uint64_t>python_hash(name, length) & ((<uint64_t>1 << HASH_BITS) - 1)
    return found if found else 1


cdef inline size_t place_of(const SlotFilterState* state, uint64_t found) noexcept nogil:
    """Return where a fingerprint is in the table, or belongs; the table must have room."""
    cdef size_t at = (found ^ (found >> 43)) & (state.known_slots - 1)
    while state.known[at] and state.known[at] != found:
        at = (at + 1) & (state.known_slots - 1)
    return at


cdef inline bint grow_known(SlotFilterState* state, size_t more) noexcept nogil:
    """Make room for so many more fingerprints in the table; False where there is no memory."""
    cdef uint64_t* before = state.known
    cdef size_t index, slots = state.known_slots if state.known_slots else FEWEST_KNOWN, count = state.known_slots
    while 2 * (state.known_count + more) > slots:
        slots *= 2
    if slots == state.known_slots:
        return True
    state.known = <uint64_t*>calloc(slots, sizeof(uint64_t))
    if state.known == NULL:
        state.known = before
        return False
    state.known_slots = slots
    for index in range(count):
        if before[index]:
            state.known[place_of(state, before[index])] = before[index]
    free(before)
    return True


cdef inline bint grow_log(SlotFilterState* state, size_t more) noexcept nogil:
    cdef uint64_t* grown
    cdef size_t capacity
    if more <= state.capacity - state.logged:
        return True
    capacity = state.capacity + state.capacity // 2 + more + FEWEST_KNOWN
    grown = <uint64_t*>realloc(state.log, capacity * sizeof(uint64_t))
    if grown == NULL:
        return False
    state.log, state.capacity = grown, capacity
    return True


cdef inline bint filter_names(
    SlotFilterState* state, size_t count, const uint8_t** names, const size_t* lengths, uint8_t* keep
) noexcept nogil:
    """Keep of the names those to deliver, and remember them; False where there is no memory."""
    cdef size_t index, at
    cdef uint32_t slot
    cdef uint8_t what
    cdef uint64_t found
    cdef bint has_room, is_done = True
    PyThread_acquire_lock(state.mutex, 1)
    if not grow_log(state, count) or (state.known_slots and not grow_known(state, count)):
        is_done = False
    for index in range(count if is_done else 0):
        if not keep[index]:
            continue
        slot = slot_of(state.crcs, names[index], lengths[index])
        what = state.slots[slot]
        if what == DROP:
            keep[index] = False
            continue
        found = fingerprint_of(slot, names[index], lengths[index])
        has_room = state.logged + state.known_count < state.most
        if what == ACCEPT_NEW:
            if not state.known_slots and not grow_known(state, count):
                is_done = False
                break
            at = place_of(state, found)
            if state.known[at]:
                keep[index] = False
                continue
            if has_room:
                state.known[at] = found
                state.known_count += 1
        elif has_room:
            state.log[state.logged] = found
            state.logged += 1
        if not has_room:
            state.unknown[slot] += 1
    PyThread_release_lock(state.mutex)
    return is_done


cdef class SlotFilter:
    cdef SlotFilterState state
    cdef void lock(self) noexcept
