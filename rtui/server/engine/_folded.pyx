"""What a report is made of: a folded copy of the compiled patterns, and objects that read what its nodes add up to.

`FoldedTable` does its work in C, without the GIL: it copies the table under its lock (`_folding`), merges light names,
trims, and adds up from the leaves to the root (`_sums`). The objects below are what `rtui.analysis.aggregate.counted`
describes. They are made when they are asked for, and read the numbers in place, so a report of thousands of patterns
makes a few objects for each and nothing for each bucket or bin.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rtui.server.engine._core cimport PatternTable, sketch_object, wide_object
from rtui.server.engine._folding cimport (
    Fold,
    Folding,
    Growth,
    TypeKeys,
    copy_tree,
    free_folding,
    gather_distinct,
    gather_examples,
    merge_light_folds,
    put_in_order,
    trim_folds,
)
from rtui.server.engine._distinct cimport Distinct, Examples
from rtui.server.engine._nodes cimport NO_SEPARATOR, PATTERN, Threshold
from rtui.server.engine._sums cimport find_quantiles, free_sums, gather_expiries, sum_folds
from rtui.server.engine._tallies cimport (
    FREQUENCY_BINS,
    IDLE_BINS,
    TTL_BINS,
    ExpiryBin,
    ExpirySet,
    Squares,
    StringData,
    TallyData,
    free_slots,
)

from rtui.analysis.aggregate.distinct import Distinct as DistinctNames
from rtui.analysis.aggregate.expiry_bins import ExpiryBins
from rtui.analysis.aggregate.folding import KEYS_OF_A_NAME, MOST_WORDS
from rtui.analysis.aggregate.pattern_tree import FINAL
from rtui.analysis.aggregate.sketch import MIDDLES
from rtui.analysis.aggregate.string_lengths import StringLengths
from rtui.analysis.report.document import NodeKind

cdef enum:
    MOST_SHARES = 16

cdef tuple KINDS = (NodeKind.LITERAL, NodeKind.OTHER, NodeKind.PATTERN)


cdef class FoldedTable:
    """A folded copy of a pattern table: call `copy`, then `fold`, either in any thread; keys may be added after `copy`."""

    cdef PatternTable table
    cdef Folding folding
    cdef int64_t* middles
    cdef bint is_copied
    cdef bint is_folded

    def __cinit__(self, PatternTable table not None):
        cdef size_t index
        self.table = table
        self.middles = <int64_t*>malloc(len(MIDDLES) * sizeof(int64_t))
        if self.middles == NULL:
            raise MemoryError
        for index in range(<size_t>len(MIDDLES)):
            self.middles[index] = MIDDLES[index]

    def __dealloc__(self):
        free_sums(&self.folding)
        free_folding(&self.folding)
        free(self.middles)

    def copy(self):
        """Copy the table as it is now."""
        cdef PatternTable table = self.table
        if self.is_copied:
            raise RuntimeError("the table was copied already")
        self.is_copied = True
        with nogil:
            table.lock()
            self.is_copied = not table.is_broken and copy_tree(&self.folding, &table.tree)
            table.unlock()
        if not self.is_copied:
            raise MemoryError

    def fold(self, size_t budget):
        """Merge light names, keep the heaviest nodes, and add up what remains."""
        cdef Threshold final
        cdef Growth growth
        if not self.is_copied or self.is_folded:
            raise RuntimeError("a table is folded once, after it was copied")
        final.of_all, final.of_parent, final.least_keys = FINAL.of_all, FINAL.of_parent, FINAL.least_keys
        growth.keys_of_a_name, growth.most_words = KEYS_OF_A_NAME, MOST_WORDS
        with nogil:
            if merge_light_folds(&self.folding, &final, &growth) and trim_folds(&self.folding, budget):
                put_in_order(&self.folding)
                self.is_folded = sum_folds(&self.folding)
        if not self.is_folded:
            raise MemoryError

    def root(self):
        """Return the node of all keys."""
        if not self.is_folded:
            raise RuntimeError("the table is not folded")
        return node_of(self, self.folding.order[0])

    def by_type(self):
        """Return what all keys add up to by type, without times of expiry."""
        cdef dict found = {}
        cdef const TallyData* tally = self.folding.by_type
        while tally != NULL:
            found[self.table.type_names[tally.key_type]] = tally_of(self, tally)
            tally = tally.next
        return found

    def expiries(self, FoldedNode node not None):
        """Return when the keys at and below a node expire, and the size of the largest of them."""
        cdef ExpirySet gathered
        cdef int64_t largest = 0
        cdef bint is_done
        cdef uint32_t at
        cdef const ExpiryBin* one
        cdef list bins = []
        if node.table is not self:
            raise ValueError("a node of another table")
        memset(&gathered, 0, sizeof(ExpirySet))
        with nogil:
            is_done = gather_expiries(&self.folding, node.fold, &gathered, &largest)
        try:
            if not is_done:
                raise MemoryError
            for at in range(gathered.capacity):
                one = &gathered.slots[at]
                if one.keys:
                    bins.append((one.start_min, one.keys, wide_object(&one.memory), squares_object(&one.squares)))
            return ExpiryBins.of(self.table.scale, gathered.coarseness, bins), largest
        finally:
            free_slots(&self.folding.pools.bins, gathered.slots, gathered.capacity)


@cython.no_gc  # nothing that it refers to refers to it
cdef class FoldedNode:
    """A node of a folded table; see `CountedNode`."""

    cdef FoldedTable table
    cdef Fold* fold
    cdef readonly bytes name
    cdef readonly bytes separator
    cdef readonly object kind
    cdef readonly FoldedTally tally
    cdef list children

    @property
    def below(self):
        """The nodes below it."""
        cdef Fold* child
        if self.children is None:
            self.children = []
            child = self.fold.first
            while child != NULL:
                self.children.append(node_of(self.table, child))
                child = child.next
        return self.children

    @property
    def keys(self):
        """All keys here and below."""
        return self.fold.keys

    @property
    def bytes(self):
        """Their bytes, as far as they are known."""
        return wide_object(&self.fold.memory)

    @property
    def names(self):
        """How many different segments a pattern stands for."""
        cdef Distinct gathered
        cdef uint32_t at
        if self.fold.kind != PATTERN:
            return None
        memset(&gathered, 0, sizeof(Distinct))
        found = DistinctNames()
        try:
            if not gather_distinct(self.fold, &gathered):
                raise MemoryError
            found.add([gathered.hashes[at] for at in range(gathered.count)])
        finally:
            free(gathered.hashes)
        return found.count()

    @property
    def holds_any_name(self):
        """Whether this is `{id}`, and names are in it that are no identifiers by their form."""
        return bool(self.fold.holds_any_name)

    @property
    def example_keys(self):
        """Some of the keys here."""
        cdef Examples found
        cdef int at
        memset(&found, 0, sizeof(Examples))
        gather_examples(self.fold, &found)
        return [(<const char*>found.items[at].key)[: found.items[at].length] for at in range(found.count)]

    @property
    def is_alike(self):
        """Whether it adds up to the same as its only child."""
        return bool(self.fold.is_alike)

    @property
    def own_keys(self):
        """Keys here, not below."""
        return self.fold.own_keys

    @property
    def expiring(self):
        """Keys here and below that expire."""
        return self.fold.expiring

    @property
    def types(self):
        """Keys here and below by type, under None for those whose type is not known."""
        cdef dict found = {}
        cdef const TypeKeys* of_type = self.fold.types
        while of_type != NULL:
            found[self.table.table.type_names[of_type.key_type]] = of_type.keys
            of_type = of_type.next
        return found


cdef FoldedNode node_of(FoldedTable table, Fold* fold):
    cdef FoldedNode made = FoldedNode.__new__(FoldedNode)
    made.table = table
    made.fold = fold
    made.name = (<const char*>fold.name)[: fold.length] if fold.length else b""
    made.separator = b"" if fold.separator == NO_SEPARATOR else bytes((fold.separator,))
    made.kind = KINDS[fold.kind]
    made.tally = tally_of(table, fold.total)
    return made


@cython.no_gc
cdef class FoldedTally:
    """What keys add up to; see `KeySums`."""

    cdef FoldedTable table
    cdef const TallyData* data

    @property
    def keys(self):
        """How many keys there are."""
        return self.data.keys

    @property
    def memory(self):
        """Bytes of the keys whose memory is known."""
        return sizes_of(self.table, self.data) if self.data.has_memory else None

    @property
    def ttl(self):
        """Times to live of the keys whose time to live is known."""
        return lives_of(self.table, self.data) if self.data.has_ttl else None

    @property
    def idle(self):
        """Keys by IDLE_EDGES_S."""
        cdef int index
        return [self.data.idle[index] for index in range(IDLE_BINS)] if self.data.has_idle else None

    @property
    def frequency(self):
        """Keys by FREQUENCY_EDGES."""
        cdef int index
        return [self.data.frequency[index] for index in range(FREQUENCY_BINS)] if self.data.has_frequency else None

    @property
    def strings(self):
        """The lengths of strings."""
        cdef int index
        cdef const StringData* found = &self.data.strings
        if not found.keys:
            return None
        tiny = tuple([found.tiny_bins[index] for index in range(TTL_BINS)])
        return StringLengths(found.keys, wide_object(&found.sum), found.long_keys, found.tiny_keys, tiny)


cdef FoldedTally tally_of(FoldedTable table, const TallyData* data):
    cdef FoldedTally made = FoldedTally.__new__(FoldedTally)
    made.table = table
    made.data = data
    return made


@cython.no_gc
cdef class FoldedSizes:
    """The spread of the bytes of keys; see `Sizes`."""

    cdef FoldedTable table
    cdef const TallyData* data

    @property
    def count(self):
        """How many sizes there are."""
        return self.data.memory.count

    @property
    def sum(self):
        """Of all of them, exact."""
        return wide_object(&self.data.memory.sum)

    @property
    def max(self):
        """The largest of them, exact."""
        return self.data.memory.largest

    @property
    def min(self):
        """The smallest of them, exact."""
        return self.data.memory.smallest

    @property
    def mean(self):
        """The mean, exact; 0 where there is none."""
        return wide_object(&self.data.memory.sum) / self.data.memory.count if self.data.memory.count else 0.0

    def quantiles(self, shares):
        """Return the sizes at or below which these shares (0 … 1) of all lie, as `Sketch.quantiles` does."""
        cdef double wanted[MOST_SHARES]
        cdef int64_t found[MOST_SHARES]
        cdef size_t index, count = len(shares)
        if count > MOST_SHARES:
            raise ValueError("too many quantiles at once")
        for index in range(count):
            wanted[index] = shares[index]
        if not self.data.memory.count:
            return [0] * count
        if not find_quantiles(&self.data.memory, self.table.middles, wanted, found, count):
            raise MemoryError
        return [found[index] for index in range(count)]

    def sketch(self):
        """Return all of it, as `Sketch` has it."""
        return sketch_object(&self.data.memory)

    def sum_of_squares(self):
        """Return the sum of all squares, as `Sketch.sum_of_squares` does."""
        return self.sketch().sum_of_squares()

    def largest(self, most):
        """Return the largest sizes, as `Sketch.largest` does."""
        return self.sketch().largest(most)


cdef FoldedSizes sizes_of(FoldedTable table, const TallyData* data):
    cdef FoldedSizes made = FoldedSizes.__new__(FoldedSizes)
    made.table = table
    made.data = data
    return made


@cython.no_gc
cdef class FoldedLives:
    """Times to live of keys; see `LifeSums`."""

    cdef FoldedTable table
    cdef const TallyData* data

    @property
    def known_keys(self):
        """Keys whose time to live is known."""
        return self.data.ttl.known_keys

    @property
    def no_ttl_keys(self):
        """Keys that do not expire."""
        return self.data.ttl.bins[0]

    @property
    def no_ttl_memory_bytes(self):
        """Bytes of the keys that do not expire, as far as their memory is known."""
        return wide_object(&self.data.ttl.no_ttl_memory)

    @property
    def no_ttl_squares(self):
        """The sum of the squares of these sizes."""
        return squares_object(&self.data.ttl.no_ttl_squares)

    @property
    def no_ttl_largest(self):
        """The largest of these sizes, descending."""
        cdef int index
        return tuple([self.data.ttl.no_ttl_largest[index] for index in range(self.data.ttl.no_ttl_largest_count)])

    @property
    def expiring_largest(self):
        """The largest size of a key that expires, as far as it is known."""
        return self.data.ttl.expiring_largest

    @property
    def soonest_ms(self):
        """When the first key expires, in milliseconds since the epoch."""
        return wide_object(&self.data.ttl.soonest_ms) if self.data.ttl.is_any_expiring else None

    @property
    def range_ms(self):
        """The shortest and the longest of what was left of the life of keys that expire, when they were asked."""
        return (self.data.ttl.shortest_ms, self.data.ttl.longest_ms) if self.data.ttl.is_any_expiring else None

    @property
    def bins(self):
        """Keys that expire, by TTL_EDGES_S."""
        cdef int index
        return [self.data.ttl.bins[index] for index in range(1, TTL_BINS)]


cdef FoldedLives lives_of(FoldedTable table, const TallyData* data):
    cdef FoldedLives made = FoldedLives.__new__(FoldedLives)
    made.table = table
    made.data = data
    return made


cdef object squares_object(const Squares* squares):
    if not squares.part[1] and not squares.part[2]:
        return squares.part[0]
    return (<object>squares.part[2] << 128) + (<object>squares.part[1] << 64) + squares.part[0]
