"""The compiled counters of keys: patterns with what their keys add up to, and hash slots.

`PatternTable` turns the columns of a batch into C arrays and hands them to `_tree`, which needs no Python; `_folded`
reads it for a report. `SlotTable` counts by hash slot. Both have a lock, so that threads may add to them and read them.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.pythread cimport (
    NOWAIT_LOCK,
    WAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
)
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcpy, memset

from rtui.server.engine._forms cimport LONGEST, MOST_PATTERN, Form, pattern_of
from rtui.server.engine._nodes cimport NO_SEPARATOR, Tree, free_tree, set_up_tree
from rtui.server.engine._slots cimport SLOT_COUNT, count_slots
from rtui.server.engine._tallies cimport (
    CACHED_SIZES,
    EXPIRY_BORDERS,
    FREQUENCY_BINS,
    IDLE_BINS,
    TTL_BINS,
    BucketCount,
    Columns,
    SketchData,
    Wide,
    wide_high,
    wide_is_small,
    wide_low,
)
from rtui.server.engine._tree cimport add_keys

from bisect import bisect_right
from random import SystemRandom

from rtui.analysis.aggregate.expiry_bins import FINENESS
from rtui.analysis.aggregate.pattern_tree import DEEPEST_LEVEL
from rtui.analysis.aggregate.sketch import LOWS, Sketch
from rtui.analysis.aggregate.tally import TTL_EDGES_MS
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.java_names import separator_of


cdef PyThread_type_lock new_lock() except NULL:
    cdef PyThread_type_lock made = PyThread_allocate_lock()
    if made == NULL:
        raise MemoryError
    return made


cdef void free_lock(PyThread_type_lock mutex) noexcept:
    if mutex != NULL:
        PyThread_free_lock(mutex)


cdef void wait_for(PyThread_type_lock mutex) noexcept:
    """Take a lock with the GIL, which is given up only where another thread has the lock."""
    if not PyThread_acquire_lock(mutex, NOWAIT_LOCK):
        with nogil:
            PyThread_acquire_lock(mutex, WAIT_LOCK)


cdef class Column:
    """A growing array of whole numbers that columns of Python are copied into."""

    def __dealloc__(self):
        free(self.values)

    cdef const int64_t* fill(self, list listed, size_t count) except? NULL:
        """Return the numbers of a column of so many, NULL where it is None or empty."""
        cdef int64_t* grown
        cdef size_t index
        if listed is None or not count:
            return NULL
        if <size_t>len(listed) != count:
            raise ValueError("a column is not as long as the batch")
        if count > self.capacity:
            grown = <int64_t*>realloc(self.values, count * sizeof(int64_t))
            if grown == NULL:
                raise MemoryError
            self.values = grown
            self.capacity = count
        for index in range(count):
            self.values[index] = listed[index]
        return self.values


cdef class Names:
    """Growing arrays of where the names of a batch are, and how long."""

    def __dealloc__(self):
        free(self.starts)
        free(self.lengths)

    cdef int fill(self, list keys) except -1:
        """Take the addresses of names, which stay valid as long as the list does."""
        cdef size_t index, count = len(keys)
        cdef void* grown
        cdef bytes key
        if count > self.capacity:
            grown = realloc(self.starts, count * sizeof(uint8_t*))
            if grown == NULL:
                raise MemoryError
            self.starts = <const uint8_t**>grown
            grown = realloc(self.lengths, count * sizeof(size_t))
            if grown == NULL:
                raise MemoryError
            self.lengths = <size_t*>grown
            self.capacity = count
        for index in range(count):
            key = keys[index]
            if key is None:
                raise TypeError("a name is bytes")
            self.starts[index] = <const uint8_t*>PyBytes_AS_STRING(key)
            self.lengths[index] = <size_t>PyBytes_GET_SIZE(key)
        self.count = count
        return 0


cdef list as_list(column):
    """Return a column, which may be None, as a list."""
    return column if column is None or type(column) is list else list(column)


cdef int fill_edges(int64_t* to, object edges, int count) except -1:
    cdef int index
    if len(edges) != count:
        raise ValueError("the compiled engine was built for other borders")
    for index in range(count):
        to[index] = edges[index]
    return 0


cdef class PatternTable:
    """Counts facts of keys by pattern; see `rtui.server.engine.counters`."""

    def __cinit__(self, separators, scale, depth, limits):
        cdef int level
        cdef uint32_t index
        cdef Tree* tree = &self.tree
        self.mutex = new_lock()
        self.types, self.type_names = {}, []
        self.names = Names()
        self.ttl_ms, self.memory_bytes, self.idle_s, self.frequency = Column(), Column(), Column(), Column()
        self.string_lengths = Column()
        self.scale = scale
        if any(len(one) != 1 for one in separators):
            raise ValueError("a separator has more than one byte")
        for one in separators:
            tree.is_separator[<uint8_t>one[0]] = True
        tree.separator = separators[0][0] if len(separators) == 1 else NO_SEPARATOR
        behind_mark = separator_of(separators)
        tree.java_separator = behind_mark[0] if behind_mark else NO_SEPARATOR
        tree.seed = SystemRandom().getrandbits(64)
        tree.levels = DEEPEST_LEVEL if depth is None else max(0, min(depth, DEEPEST_LEVEL))
        tree.limits.children, tree.limits.names = limits.children, limits.names
        tree.limits.nodes, tree.limits.expiry_bins = limits.nodes, limits.expiry_bins
        tree.limits.keys_between_coarsening = limits.keys_between_coarsening
        tree.limits.numbered_keys, tree.limits.numbered = limits.numbered_keys, limits.numbered
        tree.has_addresses = tree.is_separator[<uint8_t>b":"]
        tree.has_other_wholes = tree.is_separator[<uint8_t>b"-"] or tree.is_separator[<uint8_t>b"."]
        fill_edges(tree.shared.ttl_edges_ms, TTL_EDGES_MS, TTL_BINS - 1)
        fill_edges(tree.shared.idle_edges_s, IDLE_EDGES_S, IDLE_BINS - 1)
        fill_edges(tree.shared.frequency_edges, FREQUENCY_EDGES, FREQUENCY_BINS - 1)
        fill_edges(tree.shared.borders_min, scale.borders, EXPIRY_BORDERS)
        tree.shared.fineness = FINENESS
        tree.shared.buckets = len(LOWS)
        tree.shared.bucket_lows = <int64_t*>malloc(len(LOWS) * sizeof(int64_t))
        if tree.shared.bucket_lows == NULL:
            raise MemoryError
        fill_edges(tree.shared.bucket_lows, LOWS, len(LOWS))
        for index in range(<uint32_t>CACHED_SIZES):
            tree.shared.bucket_cache[index] = bisect_right(LOWS, index) - 1
        if not set_up_tree(tree):
            raise MemoryError

    def __dealloc__(self):
        free_tree(&self.tree)
        free(self.type_ranks)
        free_lock(self.mutex)

    cdef void lock(self) noexcept nogil:
        """Wait for the lock; without the GIL."""
        PyThread_acquire_lock(self.mutex, WAIT_LOCK)

    cdef void unlock(self) noexcept nogil:
        PyThread_release_lock(self.mutex)

    cdef int32_t type_number(self, key_type) except -1:
        """Return the number of a type; a new one changes the order of all. Not to be called with the lock."""
        cdef int32_t* ranks
        cdef int32_t* before
        found = self.types.get(key_type)
        if found is not None:
            return found
        names = [*self.type_names, key_type]
        order = sorted(range(len(names)), key=lambda number: (names[number] is not None, names[number] or b""))
        ranks = <int32_t*>malloc(len(names) * sizeof(int32_t))
        if ranks == NULL:
            raise MemoryError
        for rank, number in enumerate(order):
            ranks[<int32_t>number] = rank
        self.types[key_type] = len(self.type_names)
        self.type_names.append(key_type)
        before = self.type_ranks
        wait_for(self.mutex)
        self.type_ranks = ranks
        self.tree.type_ranks = ranks
        self.unlock()
        free(before)
        return len(self.type_names) - 1

    def add(
        self, key_type, list keys not None, ttl_ms, memory_bytes, idle_s, frequency, string_lengths, int64_t asked_at_ms
    ):
        """Add keys of one type, each column parallel to them or None; raises MemoryError, once and for all."""
        cdef Columns columns
        cdef size_t count = len(keys)
        cdef int32_t number = self.type_number(key_type)
        cdef list ttls = as_list(ttl_ms), sizes = as_list(memory_bytes)
        cdef list idle_times = as_list(idle_s), frequencies = as_list(frequency), lengths = as_list(string_lengths)
        cdef bint is_done = False
        wait_for(self.mutex)  # before names are read: whatever has the GIL meanwhile might change the list
        try:
            columns.ttl_ms = self.ttl_ms.fill(ttls, count)
            columns.memory_bytes = self.memory_bytes.fill(sizes, count)
            columns.idle_s = self.idle_s.fill(idle_times, count)
            columns.frequency = self.frequency.fill(frequencies, count)
            columns.lengths = self.string_lengths.fill(lengths, count)
            columns.asked_at_ms = asked_at_ms
            self.names.fill(keys)
            if self.names.count != count:
                raise ValueError("the batch changed while it was read")
            if not self.is_broken:
                is_done = add_keys(&self.tree, count, self.names.starts, self.names.lengths, number, &columns)
                self.is_broken = not is_done
        finally:
            self.unlock()
        if not is_done:
            raise MemoryError

    def __len__(self):
        """Return the number of nodes."""
        return self.tree.size


cdef object wide_object(const Wide* wide):
    if wide_is_small(wide):
        return wide_low(wide)
    return (<object>wide_high(wide) << 64) + <uint64_t>wide_low(wide)


cdef object sketch_object(const SketchData* sketch):
    """Return sizes as `Sketch` has them."""
    cdef const BucketCount* bucket
    cdef uint32_t at
    cdef dict counts = {}
    for at in range(sketch.capacity):
        bucket = &sketch.slots[at]
        if bucket.keys:
            counts[bucket.bucket] = bucket.keys
    return Sketch.of(counts, wide_object(&sketch.sum), sketch.smallest, sketch.largest)


cdef class SlotTable:
    """Counts keys, bytes and times to live by hash slot."""

    def __cinit__(self):
        cdef uint32_t crc
        cdef int byte, bit
        if SLOTS != SLOT_COUNT:
            raise ValueError("the compiled engine was built for another number of slots")
        self.mutex = new_lock()
        self.names, self.memory_bytes, self.ttl_ms = Names(), Column(), Column()
        for byte in range(256):
            crc = byte << 8
            for bit in range(8):
                crc = (crc << 1) ^ (0x1021 if crc & 0x8000 else 0)
            self.state.crcs[byte] = <uint16_t>crc
        self.state.keys = <uint64_t*>malloc(SLOT_COUNT * sizeof(uint64_t))
        self.state.unmeasured = <uint64_t*>malloc(SLOT_COUNT * sizeof(uint64_t))
        self.state.memory = <Wide*>malloc(SLOT_COUNT * sizeof(Wide))
        self.state.ttl_known = <uint64_t*>malloc(SLOT_COUNT * sizeof(uint64_t))
        self.state.no_ttl = <uint64_t*>malloc(SLOT_COUNT * sizeof(uint64_t))
        if self.state.keys == NULL or self.state.unmeasured == NULL or self.state.memory == NULL:
            raise MemoryError
        if self.state.ttl_known == NULL or self.state.no_ttl == NULL:
            raise MemoryError
        memset(self.state.keys, 0, SLOT_COUNT * sizeof(uint64_t))
        memset(self.state.unmeasured, 0, SLOT_COUNT * sizeof(uint64_t))
        memset(self.state.memory, 0, SLOT_COUNT * sizeof(Wide))
        memset(self.state.ttl_known, 0, SLOT_COUNT * sizeof(uint64_t))
        memset(self.state.no_ttl, 0, SLOT_COUNT * sizeof(uint64_t))

    def __dealloc__(self):
        free(self.state.keys)
        free(self.state.unmeasured)
        free(self.state.memory)
        free(self.state.ttl_known)
        free(self.state.no_ttl)
        free_lock(self.mutex)

    cdef void lock(self) noexcept nogil:
        """Wait for the lock; without the GIL."""
        PyThread_acquire_lock(self.mutex, WAIT_LOCK)

    cdef void unlock(self) noexcept nogil:
        PyThread_release_lock(self.mutex)

    def add(self, list keys not None, memory_bytes, ttl_ms):
        """Count keys; return the hash tags of those that have one, and their sizes, as far as they are known."""
        cdef size_t index, count = len(keys), tagged
        cdef const int64_t* sizes
        cdef const int64_t* lives
        cdef list listed = as_list(memory_bytes), listed_ttl = as_list(ttl_ms), tags = [], tag_sizes = None
        wait_for(self.mutex)
        try:
            sizes = self.memory_bytes.fill(listed, count)
            lives = self.ttl_ms.fill(listed_ttl, count)
            self.names.fill(keys)
            if self.names.count != count:
                raise ValueError("the batch changed while it was read")
            tagged = count_slots(&self.state, count, self.names.starts, self.names.lengths, sizes, lives)
            if sizes != NULL:
                tag_sizes = []
            for index in range(count if tagged else 0):
                if self.names.lengths[index]:
                    tags.append((<const char*>self.names.starts[index])[: self.names.lengths[index]])
                    if sizes != NULL:
                        tag_sizes.append(sizes[index])
        finally:
            self.unlock()
        return tags, tag_sizes

    def counts(self):
        """Return by slot: keys, keys whose memory is not known, and bytes; all of one moment."""
        cdef SlotTable copy = SlotTable()
        cdef int slot
        wait_for(self.mutex)
        memcpy(copy.state.keys, self.state.keys, SLOT_COUNT * sizeof(uint64_t))
        memcpy(copy.state.unmeasured, self.state.unmeasured, SLOT_COUNT * sizeof(uint64_t))
        memcpy(copy.state.memory, self.state.memory, SLOT_COUNT * sizeof(Wide))
        self.unlock()
        return (
            [copy.state.keys[slot] for slot in range(SLOT_COUNT)],
            [copy.state.unmeasured[slot] for slot in range(SLOT_COUNT)],
            [wide_object(&copy.state.memory[slot]) for slot in range(SLOT_COUNT)],
        )

    def ttl_counts(self):
        """Return by slot the keys whose time to live is known, and those of them without one; all of one moment."""
        cdef SlotTable copy = SlotTable()
        cdef int slot
        wait_for(self.mutex)
        memcpy(copy.state.ttl_known, self.state.ttl_known, SLOT_COUNT * sizeof(uint64_t))
        memcpy(copy.state.no_ttl, self.state.no_ttl, SLOT_COUNT * sizeof(uint64_t))
        self.unlock()
        return (
            [copy.state.ttl_known[slot] for slot in range(SLOT_COUNT)],
            [copy.state.no_ttl[slot] for slot in range(SLOT_COUNT)],
        )


def pattern(bytes segment not None, separators):
    """Return what replaces a segment in a pattern, and among many alone; None for a name: for tests."""
    cdef uint8_t is_separator[256]
    cdef uint8_t buffer[MOST_PATTERN]
    cdef Form found
    cdef bytes name
    if len(segment) > LONGEST:
        return None, None
    memset(is_separator, 0, sizeof(is_separator))
    for one in separators:
        is_separator[<uint8_t>one[0]] = True
    found = pattern_of(<const uint8_t*>PyBytes_AS_STRING(segment), len(segment), is_separator, buffer)
    if not found.pattern.length:
        return None, None
    name = (<const char*>found.pattern.start)[: found.pattern.length]
    return (None, name) if found.is_numbered else (name, None)
