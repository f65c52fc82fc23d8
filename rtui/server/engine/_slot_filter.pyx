"""The filter of the keys of one node of a cluster, by slot; `rtui.server.scan.slot_ledger` uses it."""

from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
)
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

import array as arrays

from rtui.server.engine._slots cimport SLOT_COUNT, fill_crcs

cdef array.array NO_FINGERPRINTS = arrays.array("Q")


cdef array.array numbers_of(slots):
    """Return slots as numbers; ValueError for what is none."""
    cdef array.array found = arrays.array("I", slots)
    cdef Py_ssize_t index
    for index in range(len(found)):
        if found.data.as_uints[index] >= SLOT_COUNT:
            raise ValueError("not a slot")
    return found


cdef int choose(uint8_t* chosen, slots) except -1:
    cdef array.array numbers = numbers_of(slots)
    cdef Py_ssize_t index
    memset(chosen, 0, SLOT_COUNT)
    for index in range(len(numbers)):
        chosen[numbers.data.as_uints[index]] = 1
    return 0


cdef size_t count_chosen(const SlotFilterState* state, const uint8_t* chosen) noexcept nogil:
    """Return how many fingerprints of chosen slots there are."""
    cdef size_t index, count = 0
    for index in range(state.logged):
        count += chosen[state.log[index] >> HASH_BITS]
    for index in range(state.known_slots if state.known_count else 0):
        if state.known[index]:
            count += chosen[state.known[index] >> HASH_BITS]
    return count


cdef void leave_out(SlotFilterState* state, const uint8_t* chosen, uint64_t* taken) noexcept nogil:
    """Forget the fingerprints of chosen slots; copy them, unless to NULL.

    The table is filled anew in place: entries that stay are put back one after another, from behind a free place on, so
    that none is looked for where it is not yet.
    """
    cdef size_t index, kept = 0, count = 0, start, at
    cdef uint64_t found
    for index in range(state.logged):
        found = state.log[index]
        if not chosen[found >> HASH_BITS]:
            state.log[kept] = found
            kept += 1
        elif taken != NULL:
            taken[count] = found
            count += 1
    state.logged = kept
    if not state.known_count:
        return
    start = 0
    while state.known[start]:  # at most half of the places are taken
        start += 1
    for index in range(1, state.known_slots):
        at = (start + index) & (state.known_slots - 1)
        found = state.known[at]
        if not found:
            continue
        state.known[at] = 0
        state.known_count -= 1
        if not chosen[found >> HASH_BITS]:
            state.known[place_of(state, found)] = found
            state.known_count += 1
        elif taken != NULL:
            taken[count] = found
            count += 1


cdef class SlotFilter:
    """Decides which of the keys that one node lists are delivered."""

    def __cinit__(self, size_t most):
        cdef uint32_t byte, crc
        cdef int bit
        self.state.mutex = PyThread_allocate_lock()
        if self.state.mutex == NULL:
            raise MemoryError
        self.state.most = most
        fill_crcs(self.state.crcs)

    def __dealloc__(self):
        if self.state.mutex != NULL:
            PyThread_free_lock(self.state.mutex)
        free(self.state.log)
        free(self.state.known)

    cdef void lock(self) noexcept:
        """Take the lock; whoever has it may want the GIL."""
        with nogil:
            PyThread_acquire_lock(self.state.mutex, 1)

    def accept(self, keys):
        """Return those to deliver, and keep their fingerprints."""
        cdef const uint8_t* name
        cdef size_t length
        cdef uint8_t keep
        cdef bint is_done
        cdef bytes key
        cdef list accepted = []
        for key in keys:
            name, length, keep = <const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 1
            with nogil:
                is_done = filter_names(&self.state, 1, &name, &length, &keep)
            if not is_done:
                raise MemoryError
            if keep:
                accepted.append(key)
        return accepted

    def set_slots(self, slots, int what):
        """Have the keys of these slots dropped or delivered."""
        cdef array.array chosen = numbers_of(slots)
        cdef Py_ssize_t index
        if not DROP <= what <= ACCEPT_NEW:
            raise ValueError("nothing that becomes of keys")
        self.lock()
        for index in range(len(chosen)):
            self.state.slots[chosen.data.as_uints[index]] = what
        PyThread_release_lock(self.state.mutex)

    def know(self, fingerprints):
        """Drop keys with those of these fingerprints whose slot is ACCEPT_NEW."""
        cdef array.array known = fingerprints
        cdef Py_ssize_t index, count = len(known)
        cdef size_t at
        cdef uint64_t found
        cdef bint is_done
        if known.ob_descr.itemsize != sizeof(uint64_t):
            raise TypeError("fingerprints are an array of 64 bits")
        if not count:
            return
        self.lock()
        is_done = grow_known(&self.state, count)
        for index in range(count if is_done else 0):
            found = known.data.as_ulonglongs[index]
            if found and self.state.slots[found >> HASH_BITS] == ACCEPT_NEW:
                at = place_of(&self.state, found)
                if not self.state.known[at]:
                    self.state.known[at] = found
                    self.state.known_count += 1
        PyThread_release_lock(self.state.mutex)
        if not is_done:
            raise MemoryError

    def take(self, slots):
        """Return the fingerprints of these slots, and forget them."""
        cdef uint8_t chosen[SLOT_COUNT]
        cdef array.array taken
        choose(chosen, slots)
        self.lock()
        try:
            taken = array.clone(NO_FINGERPRINTS, count_chosen(&self.state, chosen), False)
            leave_out(&self.state, chosen, <uint64_t*>taken.data.as_ulonglongs)
        finally:
            PyThread_release_lock(self.state.mutex)
        return taken

    def forget(self, slots):
        """Keep no fingerprints of these slots any more."""
        cdef uint8_t chosen[SLOT_COUNT]
        cdef uint32_t slot
        choose(chosen, slots)
        self.lock()
        leave_out(&self.state, chosen, NULL)
        for slot in range(SLOT_COUNT):
            if chosen[slot]:
                self.state.unknown[slot] = 0
        PyThread_release_lock(self.state.mutex)

    def unknown(self, slots):
        """Return how many keys of these slots were delivered without a fingerprint."""
        cdef uint8_t chosen[SLOT_COUNT]
        cdef uint32_t slot
        cdef uint64_t count = 0
        choose(chosen, slots)
        self.lock()
        for slot in range(SLOT_COUNT):
            if chosen[slot]:
                count += self.state.unknown[slot]
        PyThread_release_lock(self.state.mutex)
        return count
