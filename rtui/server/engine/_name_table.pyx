"""Names grouped for the namespace store, see `_name_table.pxd`; they leave as `SplitNames`, in parts.

A part has up to a thousand names, so that keeping them takes two milliseconds or so even where all are of namespaces that
someone has opened, and up to 256 groups, since a group of one name costs the store as much as dozens of names in one.
One thread adds names to `groups`, and another one swaps and drains; a lock around adding and swapping is the caller's.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport malloc

from array import array
from random import SystemRandom

from rtui.keyspace.store import packed_names
from rtui.keyspace.store.packed_names import SplitNames

cdef enum:
    PART_NAMES = 1024
    PART_GROUPS = 256


cdef object bytes_at(const Entry* entry):
    return PyBytes_FromStringAndSize(<const char*>(entry + 1), entry.length)


cdef class NameTable:
    """Groups names by their first segments; raises ValueError for a separator of several bytes."""

    def __cinit__(self, separators):
        cdef NameGroups* groups = &self.groups
        if any(len(one) != 1 for one in separators):
            raise ValueError("a separator has more than one byte")
        for one in separators:
            groups.is_separator[<uint8_t>one[0]] = True
        groups.separator = separators[0][0] if len(separators) == 1 else NO_SINGLE
        groups.seed = SystemRandom().getrandbits(64)
        self.taken = self.groups
        self.inline_names, self.inline_bytes = packed_names.MAX_INLINE_NAMES, packed_names.MAX_INLINE_BYTES
        self.chunk_names, self.chunk_bytes = packed_names.CHUNK_NAMES, packed_names.CHUNK_BYTES
        if self.inline_names > 0xFF or self.inline_bytes > 0xFF or self.chunk_bytes > 0xFFFF:
            raise ValueError("the compiled engine was built for smaller chunks")
        self.blob = <uint8_t*>malloc(self.chunk_bytes)
        self.bounds = <uint16_t*>malloc((self.chunk_names + 1) * sizeof(uint16_t))
        if self.blob == NULL or self.bounds == NULL:
            raise MemoryError

    def __dealloc__(self):
        free_groups(&self.groups)
        free_groups(&self.taken)
        free(self.blob)
        free(self.bounds)

    def __len__(self):
        """Return the number of names that wait for a swap."""
        return self.groups.names

    def add(self, list names not None):
        """Add names; raises MemoryError, and those before the one that found no room are in."""
        for name in names:
            if type(name) is not bytes:
                raise TypeError("a name is bytes")
            if not add_name(&self.groups, <const uint8_t*>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name)):
                raise MemoryError

    def clear(self):
        """Forget all names."""
        clear_groups(&self.groups)
        clear_groups(&self.taken)
        self.at = 0

    def swap(self):
        """Take what was added, to be drained; False if something taken before is still there, or nothing was added."""
        return bool(self.swap_groups())

    cdef bint swap_groups(self) noexcept nogil:
        cdef NameGroups filled
        if self.taken.names or not self.groups.names:
            return False
        filled = self.groups
        self.groups = self.taken
        self.taken = filled
        self.at = 0
        return True

    def drain(self):
        """Return the next names, up to a thousand, of those taken by `swap`, None when there are no more."""
        cdef NameGroups* taken = &self.taken
        cdef Group* group
        cdef uint64_t names = taken.names
        cdef size_t groups = 0
        cdef list flat = [], labels = [], inlines = [], chunks = []
        cdef bytes label
        if not names:
            return None
        while taken.flat.count and names - taken.names < PART_NAMES:
            flat.append(self.take_chunk(&taken.flat, PART_NAMES - (names - taken.names)))
        while self.at < taken.group_count and names - taken.names < PART_NAMES and groups < PART_GROUPS:
            group = &taken.groups[self.at]
            if not group.count:
                self.at += 1
                continue
            label = bytes_at(&taken.arena[group.label])
            if group.count <= self.inline_names and group.longest <= self.inline_bytes:
                inlines.append(self.take_inline(group))
                labels.append(label)
            else:
                chunks.append((label, self.take_chunk(group, PART_NAMES - (names - taken.names))))
            groups += 1
        names -= taken.names
        if not taken.names:
            clear_groups(taken)
        return SplitNames(names, flat, labels, inlines, chunks)

    cdef object take_inline(self, Group* group):
        """Take the few short names of a group, packed inline."""
        cdef Entry* arena = self.taken.arena
        cdef uint32_t at = group.first
        cdef Py_ssize_t size = 1
        cdef uint8_t* to
        while at:
            size += 1 + arena[at].length
            at = arena[at].next
        made = PyBytes_FromStringAndSize(NULL, size)
        to = <uint8_t*>PyBytes_AS_STRING(made)
        to[0] = <uint8_t>group.count
        to += 1
        at = group.first
        while at:
            to[0] = <uint8_t>arena[at].length
            memcpy(to + 1, &arena[at + 1], arena[at].length)
            to += 1 + arena[at].length
            at = arena[at].next
        self.taken.names -= group.count
        group.first = 0
        group.count = 0
        return made

    cdef object take_chunk(self, Group* group, size_t most):
        """Take names of a group, at least one, and as many as fit into a chunk."""
        cdef Entry* arena = self.taken.arena
        cdef Entry* entry = &arena[group.first]
        cdef uint32_t at = group.first
        cdef size_t count = 0, size = 0
        if entry.length > self.chunk_bytes:
            chunk = packed_names.Chunk(bytes_at(entry), array("Q", (0, entry.length)))
            at = entry.next
            count = 1
        else:
            most = min(most, self.chunk_names)
            self.bounds[0] = 0
            while at and count < most and size + arena[at].length <= self.chunk_bytes:
                entry = &arena[at]
                memcpy(self.blob + size, entry + 1, entry.length)
                size += entry.length
                count += 1
                self.bounds[count] = <uint16_t>size
                at = entry.next
            blob = PyBytes_FromStringAndSize(<const char*>self.blob, size)
            bounds = PyBytes_FromStringAndSize(<const char*>self.bounds, (count + 1) * sizeof(uint16_t))
            chunk = packed_names.Chunk(blob, array("H", bounds))
        group.first = at
        group.count -= count
        self.taken.names -= count
        return chunk
