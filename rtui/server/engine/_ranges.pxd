"""Ranges of positions that are scanned side by side, each key delivered once, as `rtui.server.scan.ranges` does it.

That module explains why, with examples; this one has the same steps under the same names. A page goes through `advance`:
its names are hashed once, into the room behind the hashes of the last pages of its range. That is all for an ordinary
page; a range's first pages go into its `head`, and its last page is compared with what later ranges have delivered.

The caller sets `is_started` and `is_under_way` of a range when its SCAN is sent, and takes `is_under_way` back when the
page has come. Nothing here needs Python: names come as addresses and lengths. After RANGE_NO_MEMORY, as after
RANGE_ORDER_ERROR, the ranges can be freed, and no more.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from rtui.server.engine._cursors cimport (
    OPAQUE,
    STANDALONE,
    Position,
    TableWatch,
    bit_length,
    cursor_at,
    position_end,
    reached_by,
    watch,
)
from rtui.server.engine._names cimport (
    HashSet,
    NameSet,
    Queue,
    add_name,
    clear_names,
    fill_hashes,
    has_any,
    has_name,
    leave,
    name_hash,
    room,
)

cdef enum:
    RANGE_OK = 0
    RANGE_ORDER_ERROR = 1  # a cursor went backwards, or has more than 64 bits
    RANGE_NO_MEMORY = 2

cdef struct RangeLimits:  # as in rtui.server.scan
    size_t head_keys
    size_t head_bytes
    size_t early_keys
    size_t recent_keys
    uint32_t patience

cdef struct RecentPage:
    Position reached
    size_t count

cdef struct Range:
    Position start
    Position own_start
    Position end
    Position position
    Position head_end
    Position tail_end
    uint64_t cursor  # to send next
    bint is_started
    bint is_done
    bint is_under_way
    bint has_head
    size_t head_bytes
    NameSet head
    NameSet tail
    Queue recent  # hashes, uint64_t
    Queue recent_pages  # of RecentPage

cdef struct Early:
    Position begin
    Position end
    size_t count
    uint64_t* hashes

cdef struct RangeSet:
    int dialect
    bint repeats_possible
    bint has_first_keys
    TableWatch table
    RangeLimits limits
    uint64_t seed
    size_t count
    Range* items  # one more than `count`, which holds the keys delivered before
    size_t early_count
    size_t early_keys
    Early* early
    HashSet scratch

cdef struct PageNames:
    size_t count
    const uint8_t** names
    const size_t* lengths
    uint64_t* hashes
    uint8_t* keep
    Position first  # from where on it may hold keys
    Position reached


cdef inline Range* next_range(RangeSet* ranges, size_t width) noexcept nogil:
    """Return the range to scan next, NULL if there is none.

    Of the first `width` to be done it is the one with most left whose page is not under way: so all end together.
    """
    cdef size_t index
    cdef Range* one
    cdef Range* found = NULL
    for index in range(ranges.count):
        if not width:
            break
        one = &ranges.items[index]
        if one.is_done:
            continue
        width -= 1
        if not one.is_under_way and (found == NULL or one.end - one.position > found.end - found.position):
            found = one
    return found


cdef inline bint all_done(const RangeSet* ranges) noexcept nogil:
    cdef size_t index
    for index in range(ranges.count):
        if not ranges.items[index].is_done:
            return False
    return True


cdef inline bint is_untouched(const RangeSet* ranges) noexcept nogil:
    """Whether nothing has been asked for yet."""
    cdef size_t index
    for index in range(ranges.count):
        if ranges.items[index].is_started:
            return False
    return True


cdef inline bint is_unvisited(const RangeSet* ranges, Position begin, Position end) noexcept nogil:
    """Whether something between two positions has not been visited."""
    cdef const Range* one
    cdef size_t index
    for index in range(ranges.count):
        one = &ranges.items[index]
        if not one.is_done and one.position < end and begin < one.end:
            return True
    return False


cdef inline Range* starting_at(RangeSet* ranges, Position start) noexcept nogil:
    cdef size_t index
    for index in range(ranges.count):
        if ranges.items[index].start == start:
            return &ranges.items[index]
    return NULL


cdef inline bint hash_page(RangeSet* ranges, Range* one, PageNames* page) noexcept nogil:
    """Hash the names of a page, behind the hashes of the pages before."""
    cdef size_t index
    page.hashes = <uint64_t*>room(&one.recent, sizeof(uint64_t), page.count)
    if page.hashes == NULL:
        return False
    for index in range(page.count):
        page.hashes[index] = name_hash(ranges.seed, page.names[index], page.lengths[index])
    return True


cdef inline bint remember(RangeSet* ranges, Range* one, const PageNames* page) noexcept nogil:
    """Keep the keys of a page while the head is still growing."""
    cdef size_t index
    if not one.has_head or one.head_end != one.position or one.head.count >= ranges.limits.head_keys:
        return True
    for index in range(page.count):
        one.head_bytes += page.lengths[index]
    if one.head_bytes > ranges.limits.head_bytes:
        return True
    for index in range(page.count):
        if not add_name(&one.head, page.hashes[index], page.names[index], page.lengths[index]):
            return False
    one.head_end = page.reached
    return True


cdef inline bint remember_recent(RangeSet* ranges, Range* one, const PageNames* page) noexcept nogil:
    """Keep the hashes of a page, which are in their place, and forget those of pages long before."""
    cdef RecentPage* pages
    if not page.count:
        return True
    pages = <RecentPage*>room(&one.recent_pages, sizeof(RecentPage), 1)
    if pages == NULL:
        return False
    pages.reached = page.reached
    pages.count = page.count
    one.recent.count += page.count
    one.recent_pages.count += 1
    while one.recent_pages.count > 1 and one.recent.count > ranges.limits.recent_keys:
        pages = <RecentPage*>one.recent_pages.items + one.recent_pages.first
        leave(&one.recent, pages.count)
        leave(&one.recent_pages, 1)
    return True


cdef inline bint has_had(const RangeSet* ranges, const Range* one, Position since) noexcept nogil:
    """Whether a name in `scratch` is among those of the last pages that went beyond the position `since`."""
    cdef const RecentPage* pages = <const RecentPage*>one.recent_pages.items + one.recent_pages.first
    cdef size_t index = one.recent_pages.count, count = 0
    while index and pages[index - 1].reached > since:
        index -= 1
        count += pages[index].count
    if not count:
        return False
    return has_any(&ranges.scratch, count, <const uint64_t*>one.recent.items + one.recent.first + one.recent.count - count)


cdef inline bint notice_repeats(RangeSet* ranges, Range* one, Position before, const PageNames* page) noexcept nogil:
    """Set `repeats_possible` if a page delivers what was delivered before; its range went on from `before` with it."""
    cdef const Early* early
    cdef size_t index
    if not fill_hashes(&ranges.scratch, page.count, page.hashes, page.keep):
        return False
    for index in range(ranges.early_count):
        early = &ranges.early[index]
        if page.first < early.end and early.begin < one.position and has_any(&ranges.scratch, early.count, early.hashes):
            ranges.repeats_possible = True
    if page.first >= before:
        return True
    if page.first >= one.own_start:
        if has_had(ranges, one, page.first):
            ranges.repeats_possible = True
        return True
    for index in range(ranges.count + ranges.has_first_keys):
        if has_had(ranges, &ranges.items[index], page.first):
            ranges.repeats_possible = True
    return True


cdef inline void forget_early(RangeSet* ranges) noexcept nogil:
    """Free what is early no more: all ranges there are done."""
    cdef size_t index, kept = 0
    for index in range(ranges.early_count):
        if is_unvisited(ranges, ranges.early[index].begin, ranges.early[index].end):
            ranges.early[kept] = ranges.early[index]
            kept += 1
        else:
            ranges.early_keys -= ranges.early[index].count
            free(ranges.early[index].hashes)
    ranges.early_count = kept


cdef inline bint remember_early(RangeSet* ranges, const Range* one, const PageNames* page) noexcept nogil:
    """Keep the hashes of a page that may hold keys from before its range, ahead of the range there."""
    cdef Early* grown
    if not page.count or page.first >= one.start or not is_unvisited(ranges, page.first, one.start):
        return True
    if ranges.early_keys + page.count > ranges.limits.early_keys:
        ranges.repeats_possible = True
        return True
    grown = <Early*>realloc(ranges.early, (ranges.early_count + 1) * sizeof(Early))
    if grown == NULL:
        return False
    ranges.early = grown
    grown += ranges.early_count
    grown.hashes = <uint64_t*>malloc(page.count * sizeof(uint64_t))
    if grown.hashes == NULL:
        return False
    memcpy(grown.hashes, page.hashes, page.count * sizeof(uint64_t))
    grown.begin = page.first
    grown.end = one.start
    grown.count = page.count
    ranges.early_count += 1
    ranges.early_keys += page.count
    return True


cdef inline void leave_out(const NameSet* names, const PageNames* page) noexcept nogil:
    """Leave those of a page's keys out that are in a set."""
    cdef size_t index
    for index in range(page.count):
        if page.keep[index] and has_name(names, page.hashes[index], page.names[index], page.lengths[index]):
            page.keep[index] = 0


cdef inline bint extend_tail(RangeSet* ranges, Range* follower, Position reached, const PageNames* page) noexcept nogil:
    """Have a later range leave out the keys of a page that has run farther than it has come."""
    cdef size_t index, length = 0
    for index in range(page.count):
        if page.keep[index]:
            length += page.lengths[index]
    if length > ranges.limits.head_bytes:
        ranges.repeats_possible = True
        return True
    for index in range(page.count):
        if page.keep[index] and not add_name(
            &follower.tail, page.hashes[index], page.names[index], page.lengths[index]
        ):
            return False
    if reached > follower.tail_end:
        follower.tail_end = reached
    return True


cdef inline bint settle_overrun(RangeSet* ranges, Range* follower, const PageNames* page) noexcept nogil:
    """Leave the keys out that a later range, into which a page has run, has delivered."""
    cdef Position reached = page.reached if page.reached < follower.end else follower.end
    if reached > follower.own_start:
        follower.own_start = reached
    if not follower.is_started:
        if reached > follower.position:
            follower.position = reached
        follower.head_end = follower.position
        follower.is_done = follower.position >= follower.end
        if not follower.is_done:
            follower.cursor = cursor_at(ranges.dialect, <uint64_t>follower.position)
        return True
    if not follower.has_head or (follower.head_end < reached and follower.head_end < follower.position):
        ranges.repeats_possible = True
        return True
    if follower.position < reached and not extend_tail(ranges, follower, reached, page):
        return False
    leave_out(&follower.head, page)
    return True


cdef inline bint finish(RangeSet* ranges, Range* one, const PageNames* page) noexcept nogil:
    """End a range whose last page it is, and leave the keys out that later ranges delivered."""
    cdef Position first = position_end()
    cdef Range* follower = starting_at(ranges, one.end)
    cdef size_t index
    one.is_done = True
    while follower != NULL and follower.start < page.reached:
        if not settle_overrun(ranges, follower, page):
            return False
        follower = starting_at(ranges, follower.end)
    for index in range(ranges.count):
        if not ranges.items[index].is_done and ranges.items[index].start < first:
            first = ranges.items[index].start
    for index in range(ranges.count):
        if ranges.items[index].has_head and ranges.items[index].start <= first:
            ranges.items[index].has_head = False  # nothing can run over into it any more
            clear_names(&ranges.items[index].head)
    return True


cdef inline int advance(
    RangeSet* ranges,
    Range* one,
    uint64_t cursor,
    bint cursor_is_in_range,
    size_t count,
    const uint8_t** names,
    const size_t* lengths,
    uint8_t* keep,
) noexcept nogil:
    """Move `one` on to the cursor its page came with; `keep[i]` becomes 1 if a key is delivered now, otherwise 0."""
    cdef Position before = one.position
    cdef uint64_t sent = one.cursor
    cdef PageNames page
    cdef int shift
    one.is_started = True
    one.cursor = cursor
    if not cursor_is_in_range:
        return RANGE_ORDER_ERROR
    if count:
        memset(keep, 1, count)
    if ranges.dialect == OPAQUE:
        one.is_done = cursor == 0
        return RANGE_OK
    page.reached = reached_by(ranges.dialect, cursor)
    if page.reached <= before:
        return RANGE_ORDER_ERROR
    page.count, page.names, page.lengths, page.keep, page.first = count, names, lengths, keep, before
    if ranges.dialect == STANDALONE:
        shift = 64 - bit_length(cursor)
        if bit_length(cursor) < bit_length(sent):
            page.first = before >> shift << shift
        watch(&ranges.table, cursor)
    if not hash_page(ranges, one, &page) or not remember(ranges, one, &page):
        return RANGE_NO_MEMORY
    if one.tail.count:
        leave_out(&one.tail, &page)
        if page.reached >= one.tail_end:
            clear_names(&one.tail)
    one.position = page.reached
    if page.reached >= one.end and not finish(ranges, one, &page):
        return RANGE_NO_MEMORY
    if (ranges.early_count or page.first < before) and not notice_repeats(ranges, one, before, &page):
        return RANGE_NO_MEMORY
    if one.is_done:
        forget_early(ranges)
    if not remember_early(ranges, one, &page) or not remember_recent(ranges, one, &page):
        return RANGE_NO_MEMORY
    return RANGE_OK


cdef inline bint set_up_ranges(
    RangeSet* ranges,
    int dialect,
    size_t count,
    const Position* borders,
    uint64_t first_cursor,
    const RangeLimits* limits,
    uint64_t seed,
) noexcept nogil:
    """Set ranges up that have not begun; `borders` are start and end of each, which must not be the same position."""
    cdef Range* one
    cdef size_t index, other
    memset(ranges, 0, sizeof(RangeSet))
    ranges.dialect = dialect
    ranges.limits = limits[0]
    ranges.table.patience = limits.patience
    ranges.seed = seed
    if count >= (<size_t>1 << 32):
        return False
    ranges.items = <Range*>calloc(count + 1, sizeof(Range))
    if ranges.items == NULL:
        return False
    ranges.count = count
    for index in range(count):
        one = &ranges.items[index]
        one.start = one.own_start = one.position = one.head_end = one.tail_end = borders[2 * index]
        one.end = borders[2 * index + 1]
        one.cursor = first_cursor if dialect == OPAQUE else cursor_at(dialect, <uint64_t>one.start)
        for other in range(count):
            if borders[2 * other + 1] == one.start:
                one.has_head = True
    return True


cdef inline bint set_first_keys(
    RangeSet* ranges, size_t count, const uint8_t** names, const size_t* lengths
) noexcept nogil:
    """Have the keys recognised that were delivered before the first range."""
    cdef Range* before = &ranges.items[ranges.count]
    cdef PageNames page
    page.count, page.names, page.lengths = count, names, lengths
    page.reached = ranges.items[0].start if ranges.count else 0
    ranges.has_first_keys = count > 0
    return hash_page(ranges, before, &page) and remember_recent(ranges, before, &page)


cdef inline void free_ranges(RangeSet* ranges) noexcept nogil:
    cdef size_t index
    if ranges.items != NULL:
        for index in range(ranges.count + 1):
            clear_names(&ranges.items[index].head)
            clear_names(&ranges.items[index].tail)
            free(ranges.items[index].recent.items)
            free(ranges.items[index].recent_pages.items)
    for index in range(ranges.early_count):
        free(ranges.early[index].hashes)
    free(ranges.items)
    free(ranges.early)
    free(ranges.scratch.table)
    memset(ranges, 0, sizeof(RangeSet))


cdef class CompiledRange


cdef class CompiledRanges:
    cdef RangeSet state
    cdef object order_error
    cdef tuple published  # what readers are told while an engine works on them in another thread, else None

    cdef tuple seen_now(self)
    cdef int publish(self) except -1
    cdef void take_back(self) noexcept
    cdef int check(self) except -1
    cdef CompiledRange seen(self, Range* one)


cdef class CompiledRange:
    cdef CompiledRanges owner
    cdef Range* range


cdef class CompiledTable:
    cdef CompiledRanges owner
