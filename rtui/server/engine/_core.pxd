"""The classes of `_core` for what counts keys without Python: take the lock of a table around whatever touches its C parts.

A lock is held for a batch or for the copy that a report is made of, and nothing that is done under it needs Python. So
it may be waited for with or without the GIL, but a thread that has the GIL gives it up meanwhile.
"""

from cpython.pythread cimport PyThread_type_lock
from libc.stdint cimport int32_t, int64_t, uint8_t

from rtui.server.engine._nodes cimport Tree
from rtui.server.engine._slots cimport SlotCounts
from rtui.server.engine._tallies cimport SketchData, Wide


cdef object wide_object(const Wide* wide)


cdef class Column:
    cdef int64_t* values
    cdef size_t capacity

    cdef const int64_t* fill(self, list listed, size_t count) except? NULL


cdef class Names:
    cdef const uint8_t** starts
    cdef size_t* lengths
    cdef size_t count
    cdef size_t capacity

    cdef int fill(self, list keys) except -1


cdef class PatternTable:
    cdef Tree tree
    cdef object scale
    cdef dict types
    cdef list type_names
    cdef int32_t* type_ranks
    cdef bint is_broken  # set when `add_keys` returns False: nothing may be added or read any more
    cdef PyThread_type_lock mutex
    cdef Names names
    cdef Column ttl_ms
    cdef Column memory_bytes
    cdef Column idle_s
    cdef Column frequency
    cdef Column string_lengths

    cdef void lock(self) noexcept nogil
    cdef void unlock(self) noexcept nogil
    cdef int32_t type_number(self, key_type) except -1  # takes the lock itself


cdef class SlotTable:
    cdef SlotCounts state
    cdef PyThread_type_lock mutex
    cdef Names names
    cdef Column memory_bytes
    cdef Column ttl_ms

    cdef void lock(self) noexcept nogil
    cdef void unlock(self) noexcept nogil


cdef object sketch_object(const SketchData* sketch)
