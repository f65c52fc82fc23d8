from rtui.server.engine._registered cimport Slot, Tables
from rtui.server.engine._registry_counts cimport Counts


cdef class RegistryTable:
    cdef Tables tables
    cdef Counts counts
    cdef list kept

    cdef void* room(self, size_t count, size_t size) except NULL
    cdef Slot* slots(self, by_text, size_t* mask) except NULL
    cdef int fill_patterns(self, segments, naming) except -1
    cdef int fill_nodes(self, matching) except -1
