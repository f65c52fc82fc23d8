"""The compiled counts as structures that a file can hold, and counts made of them: see `rtui.analysis.aggregate.saved`.

A reader walks the tree of patterns from the root on, a writer puts the nodes into an empty tree in the same order. Both
do some nodes at a time, with the GIL. Everything that a file says is checked before it is used as an index.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from rtui.server.engine._core cimport PatternTable, SlotTable, wide_object
from rtui.server.engine._distinct cimport add_example, add_hash
from rtui.server.engine._nodes cimport NO_SEPARATOR, Node, Tree, find, make
from rtui.server.engine._slots cimport SLOT_COUNT
from rtui.server.engine._tallies cimport (
    FREQUENCY_BINS,
    IDLE_BINS,
    MOST_LARGE,
    TTL_BINS,
    ExpiryBin,
    ExpirySet,
    Shared,
    SketchData,
    Squares,
    StringData,
    TallyData,
    TtlData,
    Wide,
    count_bucket,
    find_bin,
    tally_of,
    wide_set,
)

from rtui.analysis.aggregate.saved import (
    SavedExpiries,
    SavedLives,
    SavedNode,
    SavedSketch,
    SavedStrings,
    SavedTally,
    expect,
    packed,
    unpacked,
)
from rtui.analysis.aggregate.saved_tree import MOST_DEPTH, check_node
from rtui.analysis.report.document import NodeKind

cdef enum:
    DEEPEST = 80

if DEEPEST != MOST_DEPTH:
    raise ValueError("the compiled engine was built for another depth")

cdef tuple KINDS = (NodeKind.LITERAL, NodeKind.OTHER, NodeKind.PATTERN)


cdef object packed_wide(const Wide* wide):
    return packed(wide_object(wide))


cdef int set_wide(Wide* to, object number) except -1:
    value = unpacked(number)
    expect(-(1 << 127) <= value < 1 << 127)
    wide_set(to, value >> 64, value & 0xFFFFFFFFFFFFFFFF)
    return 0


cdef object packed_squares(const Squares* squares):
    return packed((<object>squares.part[2] << 128) + (<object>squares.part[1] << 64) + squares.part[0])


cdef int set_squares(Squares* to, object number) except -1:
    value = unpacked(number)
    expect(0 <= value < 1 << 192)
    to.part[0], to.part[1], to.part[2] = (value >> shift & 0xFFFFFFFFFFFFFFFF for shift in (0, 64, 128))
    return 0


cdef object saved_sketch(const SketchData* sketch):
    cdef uint32_t at
    buckets = tuple([
        (sketch.slots[at].bucket, sketch.slots[at].keys) for at in range(sketch.capacity) if sketch.slots[at].keys
    ])
    return SavedSketch(buckets, packed_wide(&sketch.sum), sketch.smallest, sketch.largest)


cdef int restore_sketch(SketchData* to, const Shared* shared, saved) except -1:
    cdef uint32_t bucket
    cdef uint64_t count
    for bucket, count in saved.buckets:
        expect(bucket < shared.buckets and count > 0)
        if not count_bucket(to, shared, bucket, count):
            raise MemoryError
        to.count += count
    to.smallest, to.largest = saved.min, saved.max
    set_wide(&to.sum, saved.sum)
    return 0


cdef object saved_expiries(const ExpirySet* expiries):
    cdef const ExpiryBin* one
    cdef uint32_t at
    cdef list bins = []
    for at in range(expiries.capacity):
        one = &expiries.slots[at]
        if one.keys:
            bins.append((one.start_min, one.keys, packed_wide(&one.memory), packed_squares(&one.squares)))
    return SavedExpiries(expiries.coarseness, tuple(bins))


cdef int restore_expiries(ExpirySet* to, const Shared* shared, saved) except -1:
    cdef ExpiryBin* found
    cdef int64_t start
    cdef uint64_t keys
    expect(0 <= saved.coarseness <= shared.fineness)
    to.coarseness = saved.coarseness
    for start, keys, size, squares in saved.bins:
        expect(keys > 0)
        found = find_bin(to, shared, start)
        if found == NULL:
            raise MemoryError
        expect(not found.keys)
        found.keys = keys
        to.total += keys
        set_wide(&found.memory, size)
        set_squares(&found.squares, squares)
    return 0


cdef object saved_lives(const TtlData* ttl):
    cdef int at
    return SavedLives(
        ttl.known_keys,
        ttl.bins[0],
        packed_wide(&ttl.no_ttl_memory),
        packed_squares(&ttl.no_ttl_squares),
        tuple([ttl.no_ttl_largest[at] for at in range(ttl.no_ttl_largest_count)]),
        ttl.expiring_largest,
        packed_wide(&ttl.soonest_ms) if ttl.is_any_expiring else None,
        (ttl.shortest_ms, ttl.longest_ms) if ttl.is_any_expiring else None,
        tuple([ttl.bins[at] for at in range(1, TTL_BINS)]),
        saved_expiries(&ttl.expiries) if ttl.is_any_expiring else None,
    )


cdef int restore_lives(TtlData* to, const Shared* shared, saved) except -1:
    cdef int at
    expect(len(saved.bins) == TTL_BINS - 1 and len(saved.no_ttl_largest) <= MOST_LARGE)
    expect((saved.soonest_ms is None) == (saved.range_ms is None) == (saved.expiries is None))
    to.known_keys, to.bins[0] = saved.known_keys, saved.no_ttl_keys
    set_wide(&to.no_ttl_memory, saved.no_ttl_memory_bytes)
    set_squares(&to.no_ttl_squares, saved.no_ttl_squares)
    for at in range(<int>len(saved.no_ttl_largest)):
        to.no_ttl_largest[at] = saved.no_ttl_largest[at]
    to.no_ttl_largest_count = len(saved.no_ttl_largest)
    to.expiring_largest = saved.expiring_largest
    for at in range(1, TTL_BINS):
        to.bins[at] = saved.bins[at - 1]
    if saved.expiries is not None:
        to.is_any_expiring = True
        set_wide(&to.soonest_ms, saved.soonest_ms)
        to.shortest_ms, to.longest_ms = saved.range_ms
        restore_expiries(&to.expiries, shared, saved.expiries)
    return 0


cdef object saved_strings(const StringData* found):
    cdef int at
    tiny = tuple([found.tiny_bins[at] for at in range(TTL_BINS)])
    return SavedStrings(found.keys, packed_wide(&found.sum), found.long_keys, found.tiny_keys, tiny)


cdef int restore_strings(StringData* to, saved) except -1:
    cdef int at
    expect(len(saved.tiny_ttl) == TTL_BINS)
    to.keys, to.long_keys, to.tiny_keys = saved.keys, saved.long_keys, saved.tiny_keys
    set_wide(&to.sum, saved.sum)
    for at in range(TTL_BINS):
        to.tiny_bins[at] = saved.tiny_ttl[at]
    return 0


cdef object saved_tally(const TallyData* tally):
    cdef int at
    return SavedTally(
        tally.keys,
        saved_sketch(&tally.memory) if tally.has_memory else None,
        saved_lives(&tally.ttl) if tally.has_ttl else None,
        tuple([tally.idle[at] for at in range(IDLE_BINS)]) if tally.has_idle else None,
        tuple([tally.frequency[at] for at in range(FREQUENCY_BINS)]) if tally.has_frequency else None,
        saved_strings(&tally.strings) if tally.strings.keys else None,
    )


cdef int restore_tally(TallyData* to, const Shared* shared, saved) except -1:
    cdef int at
    to.keys = saved.keys
    if saved.memory is not None:
        to.has_memory = True
        restore_sketch(&to.memory, shared, saved.memory)
    if saved.ttl is not None:
        to.has_ttl = True
        restore_lives(&to.ttl, shared, saved.ttl)
    if saved.idle is not None:
        expect(len(saved.idle) == IDLE_BINS)
        to.has_idle = True
        for at in range(IDLE_BINS):
            to.idle[at] = saved.idle[at]
    if saved.frequency is not None:
        expect(len(saved.frequency) == FREQUENCY_BINS)
        to.has_frequency = True
        for at in range(FREQUENCY_BINS):
            to.frequency[at] = saved.frequency[at]
    if saved.strings is not None:
        restore_strings(&to.strings, saved.strings)
    return 0


cdef class TreeReader:
    """Reads the nodes of a table, each before those below it; raises RuntimeError if keys were added meanwhile."""

    cdef PatternTable table
    cdef Node* node
    cdef int depth
    cdef uint64_t revision

    def __cinit__(self, PatternTable table not None):
        if table.is_broken:
            raise MemoryError
        self.table = table
        self.node = table.tree.root
        self.revision = table.tree.revision

    def read(self, size_t most):
        """Return up to so many nodes; none at the end."""
        cdef list found = []
        cdef PatternTable table = self.table
        with nogil:
            table.lock()
        try:
            if table.tree.revision != self.revision:
                raise RuntimeError("keys were added while the tree was read")
            while self.node != NULL and <size_t>len(found) < most:
                found.append(self.saved(self.node))
                self.move_on()
        finally:
            table.unlock()
        return found

    cdef void move_on(self) noexcept:
        if self.node.first != NULL:
            self.node = self.node.first
            self.depth += 1
            return
        while self.node.parent != NULL and self.node.next == NULL:
            self.node = self.node.parent
            self.depth -= 1
        self.node = NULL if self.node.parent == NULL else self.node.next

    cdef object saved(self, const Node* node):
        cdef uint32_t at
        cdef int index
        cdef list tallies = []
        cdef const TallyData* tally = node.tallies
        while tally != NULL:
            tallies.append((self.table.type_names[tally.key_type], saved_tally(tally)))
            tally = tally.next
        kind = KINDS[node.kind]
        return SavedNode(
            self.depth,
            (<const char*>node.name)[: node.length],
            b"" if node.separator == NO_SEPARATOR else bytes((node.separator,)),
            kind,
            bool(node.holds_names),
            (bool(node.has_lost[0]), bool(node.has_lost[1])),
            node.keys,
            packed_wide(&node.memory),
            node.paid_keys,
            node.paid_memory,
            tuple([node.distinct.hashes[at] for at in range(node.distinct.count)])
            if kind is NodeKind.PATTERN
            else None,
            tuple([
                (
                    node.examples.items[index].hash,
                    (<const char*>node.examples.items[index].key)[: node.examples.items[index].length],
                )
                for index in range(node.examples.count)
            ]),
            tuple(tallies),
        )


cdef class TreeWriter:
    """Puts nodes into an empty table; raises NotSavedError for what no reader has read."""

    cdef PatternTable table
    cdef Node* path[DEEPEST]
    cdef int known

    def __cinit__(self, PatternTable table not None):
        if table.tree.size > 1 or table.tree.root.keys:
            raise ValueError("the tree is not empty")
        self.table = table

    def write(self, saved):
        """Add a node."""
        cdef Tree* tree = &self.table.tree
        cdef bytes name = saved.name, separator = saved.separator, key
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(name)
        cdef size_t length = PyBytes_GET_SIZE(name)
        cdef int32_t between = separator[0] if separator else NO_SEPARATOR
        cdef uint8_t kind = KINDS.index(saved.kind)
        cdef int depth
        cdef uint32_t hash
        cdef Node* node
        cdef TallyData* tally
        cdef list numbers = [self.table.type_number(key_type) for key_type, _ in saved.tallies]
        check_node(saved, self.known)
        depth = saved.depth
        expect(len(separator) <= 1 and (depth > 0 or not name))
        self.table.is_broken = True  # until all of the node is there
        if depth:
            expect(find(tree, self.path[depth - 1], start, length, between, kind) == NULL)
            node = make(tree, self.path[depth - 1], start, length, between, kind)
            if node == NULL:
                raise MemoryError
        else:
            node = tree.root
        self.path[depth] = node
        self.known = depth + 1
        node.holds_names = saved.holds_names
        node.has_lost[0], node.has_lost[1] = saved.has_lost
        node.keys, node.paid_keys, node.paid_memory = saved.keys, saved.paid_keys, saved.paid_bytes
        set_wide(&node.memory, saved.memory_bytes)
        for hash in saved.hashes or ():
            if not add_hash(&node.distinct, hash):
                raise MemoryError
        for hash, key in saved.examples:
            if not add_example(
                &node.examples, hash, <const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)
            ):
                raise MemoryError
        for number, (_, one) in zip(numbers, saved.tallies, strict=True):
            tally = tally_of(&node.tallies, &tree.shared, number)
            if tally == NULL:
                raise MemoryError
            expect(not tally.keys)
            restore_tally(tally, &tree.shared, one)
        self.table.is_broken = False


def limits(PatternTable table not None):
    """Return how many names, and namespaces that differ in numbers only, are kept, and keys since the last coarsening."""
    return table.tree.most_names, table.tree.most_numbered, table.tree.since_coarsening


def restore_limits(PatternTable table not None, uint32_t names, uint32_t numbered, uint64_t since_coarsening):
    """Set what `limits` returned."""
    table.tree.most_names, table.tree.most_numbered = names, numbered
    table.tree.since_coarsening = since_coarsening


def slots(SlotTable table not None):
    """Return by slot the keys, the keys whose memory is not known and the bytes, as arrays of 8, 8 and 16 bytes each."""
    return (
        (<const char*>table.state.keys)[: SLOT_COUNT * sizeof(uint64_t)],
        (<const char*>table.state.unmeasured)[: SLOT_COUNT * sizeof(uint64_t)],
        (<const char*>table.state.memory)[: SLOT_COUNT * sizeof(Wide)],
    )


def restore_slots(SlotTable table not None, bytes keys not None, bytes unmeasured not None, bytes memory not None):
    """Take back what `slots` returned."""
    expect(len(keys) == len(unmeasured) == SLOT_COUNT * sizeof(uint64_t) and len(memory) == SLOT_COUNT * sizeof(Wide))
    memcpy(table.state.keys, PyBytes_AS_STRING(keys), SLOT_COUNT * sizeof(uint64_t))
    memcpy(table.state.unmeasured, PyBytes_AS_STRING(unmeasured), SLOT_COUNT * sizeof(uint64_t))
    memcpy(table.state.memory, PyBytes_AS_STRING(memory), SLOT_COUNT * sizeof(Wide))
