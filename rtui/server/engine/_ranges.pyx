"""The ranges of a scan for Python: `CompiledRanges` has in `state` what `_ranges.pxd` works on.

While an engine works on them in another thread, they say what they said before it began: a position has 128 bits and can't
be read in one go, and positions of different moments do not add up to a share of the keyspace. What would change them is an
error then.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from rtui.server.engine._cursors cimport OPAQUE, STANDALONE, Position, TableWatch, position_end, watch

from random import SystemRandom


cdef object END = 1 << 64


cdef object number_of(Position position):
    return END if position >= position_end() else <uint64_t>position


cdef int position_from(object number, Position* found) except -1:
    if not 0 <= number <= END:
        raise ValueError("not a position")
    found[0] = position_end() if number == END else <Position><uint64_t>number
    return 0


cdef class Names:
    """Where the names of a page are, how long, and which of them are to be kept."""

    cdef list keys
    cdef const uint8_t** starts
    cdef size_t* lengths
    cdef uint8_t* keep

    def __cinit__(self, list keys not None):
        cdef size_t index, count = len(keys)
        cdef bytes key
        self.keys = keys
        self.starts = <const uint8_t**>malloc((count + 1) * sizeof(uint8_t*))
        self.lengths = <size_t*>malloc((count + 1) * sizeof(size_t))
        self.keep = <uint8_t*>malloc(count + 1)
        if self.starts == NULL or self.lengths == NULL or self.keep == NULL:
            raise MemoryError
        for index in range(count):
            key = keys[index]
            if key is None:
                raise TypeError("a name is bytes")
            self.starts[index] = <const uint8_t*>PyBytes_AS_STRING(key)
            self.lengths[index] = <size_t>PyBytes_GET_SIZE(key)

    def __dealloc__(self):
        free(self.starts)
        free(self.lengths)
        free(self.keep)


cdef class CompiledRanges:
    """Ranges of positions, as pairs of start and end; `dialect` is 0 for STANDALONE, 1 for SLOTTED, 2 for OPAQUE."""

    def __init__(
        self,
        int dialect,
        object borders,
        *,
        uint64_t first_cursor,
        object first_keys,
        size_t head_keys,
        size_t head_bytes,
        size_t early_keys,
        size_t recent_keys,
        uint32_t patience,
        object order_error,
    ):
        cdef RangeLimits limits
        cdef Names names = Names(list(first_keys))
        cdef list pairs = list(borders)
        cdef size_t index, count = len(pairs)
        cdef Position* positions
        if self.state.items != NULL or not STANDALONE <= dialect <= OPAQUE:
            raise ValueError("not a dialect, or set up already")
        limits.head_keys, limits.head_bytes, limits.early_keys = head_keys, head_bytes, early_keys
        limits.recent_keys, limits.patience = recent_keys, patience
        self.order_error = order_error
        positions = <Position*>malloc((2 * count + 1) * sizeof(Position))
        if positions == NULL:
            raise MemoryError
        try:
            for index, (start, end) in enumerate(pairs):
                if not start < end:
                    raise ValueError("a range ends before it begins")
                position_from(start, &positions[2 * index])
                position_from(end, &positions[2 * index + 1])
            if not set_up_ranges(
                &self.state, dialect, count, positions, first_cursor, &limits, SystemRandom().getrandbits(64)
            ):
                raise MemoryError
        finally:
            free(positions)
        if not set_first_keys(&self.state, len(names.keys), names.starts, names.lengths):
            raise MemoryError

    def __dealloc__(self):
        free_ranges(&self.state)

    cdef tuple seen_now(self):
        """Return unvisited spans, whether all is done, whether repeats are possible, whether nothing has been asked, and of
        the table its bits, whether it has shrunk and whether that is sure."""
        cdef size_t index
        cdef TableWatch* table = &self.state.table
        if self.published is not None:
            return self.published
        unvisited = [
            (number_of(self.state.items[index].position), number_of(self.state.items[index].end))
            for index in range(self.state.count)
            if not self.state.items[index].is_done
        ]
        flags = bool(all_done(&self.state)), bool(self.state.repeats_possible), bool(is_untouched(&self.state))
        return (unvisited, *flags, table.bits, bool(table.has_shrunk), table.short_for == 0)

    cdef int publish(self) except -1:
        """Have readers told from now on what is so now, since an engine begins to work without the GIL."""
        self.check()
        self.published = self.seen_now()
        return 0

    cdef void take_back(self) noexcept:
        """The engine has ended."""
        self.published = None

    cdef int check(self) except -1:
        if self.published is not None:
            raise RuntimeError("an engine works on these ranges")
        return 0

    @property
    def repeats_possible(self):
        return self.seen_now()[2]

    @property
    def is_done(self):
        return self.seen_now()[1]

    @property
    def is_untouched(self):
        return self.seen_now()[3]

    @property
    def table(self):
        cdef CompiledTable made = CompiledTable.__new__(CompiledTable)
        made.owner = self
        return made

    cdef CompiledRange seen(self, Range* one):
        cdef CompiledRange made = CompiledRange.__new__(CompiledRange)
        made.owner = self
        made.range = one
        return made

    def under_way(self, size_t width):
        cdef list found = []
        cdef size_t index
        self.check()
        for index in range(self.state.count):
            if <size_t>len(found) == width:
                break
            if not self.state.items[index].is_done:
                found.append(self.seen(&self.state.items[index]))
        return found

    def next_range(self, size_t width):
        cdef Range* one
        self.check()
        one = next_range(&self.state, width)
        return None if one == NULL else self.seen(one)

    def unvisited(self):
        return list(self.seen_now()[0])

    def advance(self, CompiledRange one not None, object cursor, list keys not None):
        cdef Names page
        cdef size_t index, count = len(keys)
        cdef bint is_in_range = 0 <= cursor < END
        cdef int outcome
        cdef list fresh = []
        self.check()
        if one.owner is not self:
            raise ValueError("a range of another scan")
        page = Names(keys)
        outcome = advance(
            &self.state,
            one.range,
            cursor if is_in_range else 0,
            is_in_range,
            count,
            page.starts,
            page.lengths,
            page.keep,
        )
        if outcome == RANGE_ORDER_ERROR:
            raise self.order_error
        if outcome == RANGE_NO_MEMORY:
            raise MemoryError
        for index in range(count):
            if page.keep[index]:
                fresh.append(keys[index])
        return fresh


cdef class CompiledRange:
    """One of them; valid as long as this object is, since it keeps all of them alive."""

    def __init__(self):
        raise TypeError("ranges come from `CompiledRanges.under_way`")

    def __eq__(self, other):
        return isinstance(other, CompiledRange) and self.range == (<CompiledRange>other).range

    def __hash__(self):
        return hash(<size_t>self.range)

    @property
    def start(self):
        self.owner.check()
        return number_of(self.range.start)

    @property
    def end(self):
        self.owner.check()
        return number_of(self.range.end)

    @property
    def position(self):
        self.owner.check()
        return number_of(self.range.position)

    @property
    def cursor(self):
        self.owner.check()
        return self.range.cursor

    @property
    def is_done(self):
        self.owner.check()
        return bool(self.range.is_done)

    @property
    def is_started(self):
        self.owner.check()
        return bool(self.range.is_started)

    @is_started.setter
    def is_started(self, bint value):
        self.owner.check()
        self.range.is_started = value

    @property
    def is_under_way(self):
        self.owner.check()
        return bool(self.range.is_under_way)

    @is_under_way.setter
    def is_under_way(self, bint value):
        self.owner.check()
        self.range.is_under_way = value


cdef class CompiledTable:
    """The size of the server's hash table while it is scanned."""

    def __init__(self):
        raise TypeError("it is had as `CompiledRanges.table`")

    @property
    def bits(self):
        return self.owner.seen_now()[4]

    @property
    def has_shrunk(self):
        return self.owner.seen_now()[5]

    @property
    def is_sure(self):
        return self.owner.seen_now()[6]

    def observe(self, uint64_t cursor):
        self.owner.check()
        watch(&self.owner.state.table, cursor)

    def observe_random(self, object cursors):
        cdef TableWatch* table = &self.owner.state.table
        cdef uint32_t bits
        self.owner.check()
        bits = max((cursor.bit_length() for cursor in cursors), default=table.bits)
        if bits < table.bits:
            table.has_shrunk = True
            table.bits = bits
