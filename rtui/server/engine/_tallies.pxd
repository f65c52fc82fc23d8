"""What a set of keys adds up to, as `Tally`, `Sketch` and `ExpiryBins` of `rtui.analysis.aggregate` have it.

A tally has its sums, extremes and histograms in itself. The buckets of a sketch and the bins of expiries are small hash
tables of their own, since most patterns have few of either and some have thousands: 4 slots at first, twice as many
whenever three quarters are in use. Sums of bytes have 128 bits and sums of squares 192, so that no value a server may
send overflows them.

Functions that need memory return False where there is none; what they were to change then stays as it was, or has been
counted in part.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from rtui.server.engine._pool cimport Pool, free_pool, give, set_up_pool, take

cdef extern from *:
    """
    #ifndef RTUI_WIDE
    #define RTUI_WIDE
    #include <stdint.h>
    #include <string.h>

    typedef struct { __int128 sum; } rtui_wide;
    typedef struct { uint64_t part[3]; } rtui_squares;

    static inline void rtui_wide_add(rtui_wide *to, int64_t value) { to->sum += value; }
    static inline void rtui_wide_join(rtui_wide *to, const rtui_wide *other) { to->sum += other->sum; }
    static inline void rtui_wide_take(rtui_wide *from, const rtui_wide *other) { from->sum -= other->sum; }
    static inline int rtui_wide_is_small(const rtui_wide *wide) { return (int64_t)wide->sum == wide->sum; }
    static inline int64_t rtui_wide_low(const rtui_wide *wide) { return (int64_t)wide->sum; }
    static inline int64_t rtui_wide_high(const rtui_wide *wide) { return (int64_t)(wide->sum >> 64); }
    static inline double rtui_wide_float(const rtui_wide *wide) { return (double)wide->sum; }
    static inline int rtui_wide_is_positive(const rtui_wide *wide) { return wide->sum > 0; }
    static inline int rtui_wide_is_less(const rtui_wide *one, const rtui_wide *other) { return one->sum < other->sum; }
    /* Whether a part is at least so many 10,000ths of a whole. */
    static inline int rtui_wide_is_share(const rtui_wide *part, int64_t share, const rtui_wide *whole) {
        return part->sum * 10000 >= whole->sum * share;
    }
    static inline void rtui_wide_moment(rtui_wide *to, int64_t one, int64_t other) { to->sum = (__int128)one + other; }
    static inline int64_t rtui_wide_over(const rtui_wide *wide, int64_t divisor) {
        __int128 found = wide->sum / divisor;
        return (int64_t)(found - (wide->sum % divisor < 0));
    }
    static inline void rtui_squares_join(rtui_squares *to, const rtui_squares *other) {
        unsigned __int128 sum = 0;
        for (int i = 0; i < 3; i++) {
            sum = (sum >> 64) + to->part[i] + other->part[i];
            to->part[i] = (uint64_t)sum;
        }
    }
    static inline void rtui_squares_add(rtui_squares *to, int64_t value) {
        unsigned __int128 square = (unsigned __int128)((__int128)value * value);
        rtui_squares other = {{(uint64_t)square, (uint64_t)(square >> 64), 0}};
        rtui_squares_join(to, &other);
    }
    #endif
    """
    ctypedef struct Wide "rtui_wide":
        pass
    ctypedef struct Squares "rtui_squares":
        uint64_t part[3]
    void wide_add "rtui_wide_add"(Wide*, int64_t) noexcept nogil
    void wide_join "rtui_wide_join"(Wide*, const Wide*) noexcept nogil
    void wide_take "rtui_wide_take"(Wide*, const Wide*) noexcept nogil
    bint wide_is_small "rtui_wide_is_small"(const Wide*) noexcept nogil
    int64_t wide_low "rtui_wide_low"(const Wide*) noexcept nogil
    int64_t wide_high "rtui_wide_high"(const Wide*) noexcept nogil
    double wide_float "rtui_wide_float"(const Wide*) noexcept nogil
    bint wide_is_positive "rtui_wide_is_positive"(const Wide*) noexcept nogil
    bint wide_is_less "rtui_wide_is_less"(const Wide*, const Wide*) noexcept nogil
    bint wide_is_share "rtui_wide_is_share"(const Wide*, int64_t, const Wide*) noexcept nogil
    void wide_moment "rtui_wide_moment"(Wide*, int64_t, int64_t) noexcept nogil
    int64_t wide_over "rtui_wide_over"(const Wide*, int64_t) noexcept nogil
    void squares_add "rtui_squares_add"(Squares*, int64_t) noexcept nogil
    void squares_join "rtui_squares_join"(Squares*, const Squares*) noexcept nogil

cdef enum:
    TTL_BINS = 9  # keys that do not expire are in the first one
    IDLE_BINS = 7
    FREQUENCY_BINS = 8
    MOST_LARGE = 10
    EXPIRY_BORDERS = 49
    FEWEST_SLOTS = 4
    MOST_TINY = 4  # bytes of a string
    MOST_SHORT = 64
    CACHED_SIZES = 8192
    MINUTE_MS = 60_000

cdef struct Pools:
    Pool tallies
    Pool buckets  # the first slots of sketches
    Pool bins  # the first slots of expiries

cdef struct Shared:
    int64_t ttl_edges_ms[TTL_BINS - 1]
    int64_t idle_edges_s[IDLE_BINS - 1]
    int64_t frequency_edges[FREQUENCY_BINS - 1]
    int64_t borders_min[EXPIRY_BORDERS]  # from which minute on bins of expiries are of the next level
    int fineness  # at most 2^fineness bins are joined to one
    int64_t* bucket_lows  # the lowest size of each bucket of a sketch
    uint32_t buckets
    uint32_t bucket_cache[CACHED_SIZES]  # the buckets of small sizes
    Pools* pools

cdef struct BucketCount:
    uint64_t keys  # 0 where the slot is free
    uint32_t bucket

cdef struct SketchData:
    BucketCount* slots
    uint32_t capacity
    uint32_t used
    int64_t count
    int64_t smallest
    int64_t largest
    Wide sum

cdef struct ExpiryBin:
    int64_t start_min
    uint64_t keys  # 0 where the slot is free
    Wide memory
    Squares squares

cdef struct ExpirySet:
    ExpiryBin* slots
    uint32_t capacity
    uint32_t used
    int coarseness
    uint64_t total

cdef struct TtlData:
    int64_t known_keys
    Wide no_ttl_memory
    Squares no_ttl_squares
    int64_t no_ttl_largest[MOST_LARGE]  # descending
    int no_ttl_largest_count
    int64_t expiring_largest
    bint is_any_expiring
    Wide soonest_ms
    int64_t shortest_ms  # what was left of the life of keys that expire, when they were asked
    int64_t longest_ms
    int64_t bins[TTL_BINS]
    ExpirySet expiries

cdef struct StringData:  # strings whose length stands for that of others
    int64_t keys
    Wide sum
    int64_t long_keys  # of more than MOST_SHORT bytes
    int64_t tiny_keys  # of at most MOST_TINY
    int64_t tiny_bins[TTL_BINS]  # those of them whose time to live is known

cdef struct TallyData:
    TallyData* next
    int32_t key_type
    bint has_memory
    bint has_ttl
    bint has_idle
    bint has_frequency
    int64_t keys
    SketchData memory
    TtlData ttl
    int64_t idle[IDLE_BINS]
    int64_t frequency[FREQUENCY_BINS]
    StringData strings

cdef struct Columns:  # facts of keys, each parallel to them or NULL where it is not known
    const int64_t* ttl_ms
    const int64_t* memory_bytes
    const int64_t* idle_s
    const int64_t* frequency
    const int64_t* lengths  # of strings; negative for those that stand for no others
    int64_t asked_at_ms


cdef inline int bin_of(int64_t value, const int64_t* edges, int count) noexcept nogil:
    """Return how many ascending edges a value has reached."""
    cdef int index = 0
    while index < count and edges[index] <= value:
        index += 1
    return index


cdef inline uint32_t bucket_of(const Shared* shared, int64_t size) noexcept nogil:
    """Return the bucket of a size; sizes below 0 have the last one, as in the list of Python."""
    cdef uint32_t low = 0, high = shared.buckets, middle
    if size < 0:
        return shared.buckets - 1
    if size < CACHED_SIZES:
        return shared.bucket_cache[size]
    while low < high:
        middle = (low + high) // 2
        if size < shared.bucket_lows[middle]:
            high = middle
        else:
            low = middle + 1
    return low - 1


cdef inline void* new_slots(Pool* pool, size_t count, size_t size) noexcept nogil:
    """Return so many free slots, the first few of a table from a pool; NULL where there is no memory."""
    cdef void* made
    if count > FEWEST_SLOTS:
        return calloc(count, size)
    made = take(pool)
    if made != NULL:
        memset(made, 0, FEWEST_SLOTS * size)
    return made


cdef inline void free_slots(Pool* pool, void* slots, size_t count) noexcept nogil:
    if slots != NULL and count <= FEWEST_SLOTS:
        give(pool, slots)
    else:
        free(slots)


cdef inline bint count_bucket(
    SketchData* sketch, const Shared* shared, uint32_t bucket, uint64_t keys
) noexcept nogil:
    cdef BucketCount* slots = sketch.slots
    cdef uint32_t mask, at, old
    if 4 * (sketch.used + 1) > 3 * sketch.capacity:
        mask = (2 * sketch.capacity if sketch.capacity else FEWEST_SLOTS) - 1
        slots = <BucketCount*>new_slots(&shared.pools.buckets, <size_t>mask + 1, sizeof(BucketCount))
        if slots == NULL:
            return False
        for old in range(sketch.capacity):
            if sketch.slots[old].keys:
                at = sketch.slots[old].bucket & mask
                while slots[at].keys:
                    at = (at + 1) & mask
                slots[at] = sketch.slots[old]
        free_slots(&shared.pools.buckets, sketch.slots, sketch.capacity)
        sketch.slots = slots
        sketch.capacity = mask + 1
    mask = sketch.capacity - 1
    at = bucket & mask
    while slots[at].keys and slots[at].bucket != bucket:
        at = (at + 1) & mask
    if not slots[at].keys:
        slots[at].bucket = bucket
        sketch.used += 1
    slots[at].keys += keys
    return True


cdef inline bint add_size(SketchData* sketch, const Shared* shared, int64_t size) noexcept nogil:
    if not count_bucket(sketch, shared, bucket_of(shared, size), 1):
        return False
    if not sketch.count or size < sketch.smallest:
        sketch.smallest = size
    if size > sketch.largest:
        sketch.largest = size
    sketch.count += 1
    wide_add(&sketch.sum, size)
    return True


cdef inline bint merge_sketches(SketchData* to, const SketchData* other, const Shared* shared) noexcept nogil:
    cdef uint32_t at
    if not other.count:
        return True
    for at in range(other.capacity):
        if other.slots[at].keys and not count_bucket(to, shared, other.slots[at].bucket, other.slots[at].keys):
            return False
    if not to.count or other.smallest < to.smallest:
        to.smallest = other.smallest
    if other.largest > to.largest:
        to.largest = other.largest
    to.count += other.count
    wide_join(&to.sum, &other.sum)
    return True


cdef inline int64_t bin_start(const Shared* shared, int64_t minute, int coarseness) noexcept nogil:
    """Return where the bin of a minute begins: the minute without as many low bits as its level has."""
    cdef int level = bin_of(minute, shared.borders_min, EXPIRY_BORDERS) + coarseness
    return minute >> level << level


cdef inline uint32_t bin_slot(int64_t start, uint32_t mask) noexcept nogil:
    return <uint32_t>((<uint64_t>start * <uint64_t>0x9E3779B97F4A7C15) >> 32) & mask


cdef inline ExpiryBin* find_bin(ExpirySet* expiries, const Shared* shared, int64_t start) noexcept nogil:
    """Return the bin that begins at this minute, a new one if need be; NULL where there is no memory."""
    cdef ExpiryBin* slots = expiries.slots
    cdef uint32_t mask, at, old
    if 4 * (expiries.used + 1) > 3 * expiries.capacity:
        mask = (2 * expiries.capacity if expiries.capacity else FEWEST_SLOTS) - 1
        slots = <ExpiryBin*>new_slots(&shared.pools.bins, <size_t>mask + 1, sizeof(ExpiryBin))
        if slots == NULL:
            return NULL
        for old in range(expiries.capacity):
            if expiries.slots[old].keys:
                at = bin_slot(expiries.slots[old].start_min, mask)
                while slots[at].keys:
                    at = (at + 1) & mask
                slots[at] = expiries.slots[old]
        free_slots(&shared.pools.bins, expiries.slots, expiries.capacity)
        expiries.slots = slots
        expiries.capacity = mask + 1
    mask = expiries.capacity - 1
    at = bin_slot(start, mask)
    while slots[at].keys and slots[at].start_min != start:
        at = (at + 1) & mask
    if not slots[at].keys:
        slots[at].start_min = start
        expiries.used += 1
    return &slots[at]


cdef inline bint coarsen(ExpirySet* expiries, const Shared* shared, int coarseness) noexcept nogil:
    """Join bins until 2^coarseness of the scale are one."""
    cdef ExpirySet joined
    cdef ExpiryBin* one
    cdef ExpiryBin* found
    cdef uint32_t at
    if coarseness <= expiries.coarseness:
        return True
    memset(&joined, 0, sizeof(ExpirySet))
    joined.coarseness = coarseness
    joined.total = expiries.total
    for at in range(expiries.capacity):
        one = &expiries.slots[at]
        if not one.keys:
            continue
        found = find_bin(&joined, shared, bin_start(shared, one.start_min, coarseness))
        if found == NULL:
            free_slots(&shared.pools.bins, joined.slots, joined.capacity)
            return False
        found.keys += one.keys
        wide_join(&found.memory, &one.memory)
        squares_join(&found.squares, &one.squares)
    free_slots(&shared.pools.bins, expiries.slots, expiries.capacity)
    expiries[0] = joined
    return True


cdef inline bint merge_expiries(ExpirySet* to, const ExpirySet* other, const Shared* shared) noexcept nogil:
    """Add the bins of another set; the coarser of both decides."""
    cdef ExpiryBin* one
    cdef ExpiryBin* found
    cdef uint32_t at
    if not coarsen(to, shared, other.coarseness):
        return False
    for at in range(other.capacity):
        one = &other.slots[at]
        if not one.keys:
            continue
        found = find_bin(to, shared, bin_start(shared, one.start_min, to.coarseness))
        if found == NULL:
            return False
        found.keys += one.keys
        wide_join(&found.memory, &one.memory)
        squares_join(&found.squares, &one.squares)
    to.total += other.total
    return True


cdef inline void keep_large(TtlData* ttl, int64_t size) noexcept nogil:
    """Keep a size among the largest."""
    cdef int at = ttl.no_ttl_largest_count
    if at == MOST_LARGE:
        if size <= ttl.no_ttl_largest[MOST_LARGE - 1]:
            return
        at -= 1
    else:
        ttl.no_ttl_largest_count += 1
    while at > 0 and ttl.no_ttl_largest[at - 1] < size:
        ttl.no_ttl_largest[at] = ttl.no_ttl_largest[at - 1]
        at -= 1
    ttl.no_ttl_largest[at] = size


cdef inline void keep_range(TtlData* ttl, int64_t shortest_ms, int64_t longest_ms) noexcept nogil:
    """Widen the range of what was left of lives."""
    if not ttl.is_any_expiring or shortest_ms < ttl.shortest_ms:
        ttl.shortest_ms = shortest_ms
    if not ttl.is_any_expiring or longest_ms > ttl.longest_ms:
        ttl.longest_ms = longest_ms


cdef inline bint add_ttl(TtlData* ttl, const Shared* shared, const Columns* columns, size_t index) noexcept nogil:
    cdef int64_t ttl_ms = columns.ttl_ms[index]
    cdef int64_t size
    cdef Wide moment
    cdef ExpiryBin* found
    ttl.known_keys += 1
    ttl.bins[bin_of(ttl_ms, shared.ttl_edges_ms, TTL_BINS - 1)] += 1
    if ttl_ms < 0:
        if columns.memory_bytes != NULL:
            size = columns.memory_bytes[index]
            wide_add(&ttl.no_ttl_memory, size)
            squares_add(&ttl.no_ttl_squares, size)
            keep_large(ttl, size)
        return True
    wide_moment(&moment, ttl_ms, columns.asked_at_ms)
    if not ttl.is_any_expiring or wide_is_less(&moment, &ttl.soonest_ms):
        ttl.soonest_ms = moment
    keep_range(ttl, ttl_ms, ttl_ms)
    ttl.is_any_expiring = True
    found = find_bin(&ttl.expiries, shared, bin_start(shared, wide_over(&moment, MINUTE_MS), ttl.expiries.coarseness))
    if found == NULL:
        return False
    found.keys += 1
    ttl.expiries.total += 1
    if columns.memory_bytes != NULL:
        size = columns.memory_bytes[index]
        wide_add(&found.memory, size)
        squares_add(&found.squares, size)
        if size > ttl.expiring_largest:
            ttl.expiring_largest = size
    return True


cdef inline void merge_lives(TtlData* to, const TtlData* other) noexcept nogil:
    """Add all but the times of expiry."""
    cdef int index
    to.known_keys += other.known_keys
    wide_join(&to.no_ttl_memory, &other.no_ttl_memory)
    squares_join(&to.no_ttl_squares, &other.no_ttl_squares)
    for index in range(other.no_ttl_largest_count):
        keep_large(to, other.no_ttl_largest[index])
    if other.expiring_largest > to.expiring_largest:
        to.expiring_largest = other.expiring_largest
    for index in range(TTL_BINS):
        to.bins[index] += other.bins[index]
    if other.is_any_expiring:
        if not to.is_any_expiring or wide_is_less(&other.soonest_ms, &to.soonest_ms):
            to.soonest_ms = other.soonest_ms
        keep_range(to, other.shortest_ms, other.longest_ms)
        to.is_any_expiring = True


cdef inline void add_string(
    StringData* strings, const Shared* shared, const Columns* columns, size_t index
) noexcept nogil:
    cdef int64_t length = columns.lengths[index]
    strings.keys += 1
    wide_add(&strings.sum, length)
    if length > MOST_SHORT:
        strings.long_keys += 1
    elif length <= MOST_TINY:
        strings.tiny_keys += 1
        if columns.ttl_ms != NULL:
            strings.tiny_bins[bin_of(columns.ttl_ms[index], shared.ttl_edges_ms, TTL_BINS - 1)] += 1


cdef inline bint add_facts(TallyData* tally, const Shared* shared, const Columns* columns, size_t index) noexcept nogil:
    """Count one key."""
    tally.keys += 1
    if columns.memory_bytes != NULL:
        tally.has_memory = True
        if not add_size(&tally.memory, shared, columns.memory_bytes[index]):
            return False
    if columns.ttl_ms != NULL:
        tally.has_ttl = True
        if not add_ttl(&tally.ttl, shared, columns, index):
            return False
    if columns.idle_s != NULL:
        tally.has_idle = True
        tally.idle[bin_of(columns.idle_s[index], shared.idle_edges_s, IDLE_BINS - 1)] += 1
    if columns.frequency != NULL:
        tally.has_frequency = True
        tally.frequency[bin_of(columns.frequency[index], shared.frequency_edges, FREQUENCY_BINS - 1)] += 1
    if columns.lengths != NULL and columns.lengths[index] >= 0:
        add_string(&tally.strings, shared, columns, index)
    return True


cdef inline bint merge_figures(TallyData* to, const TallyData* other, const Shared* shared) noexcept nogil:
    """Add another tally, which stays as it is, without its times of expiry."""
    cdef int index
    to.keys += other.keys
    if other.has_memory:
        to.has_memory = True
        if not merge_sketches(&to.memory, &other.memory, shared):
            return False
    if other.has_ttl:
        to.has_ttl = True
        merge_lives(&to.ttl, &other.ttl)
    to.has_idle = to.has_idle or other.has_idle
    for index in range(IDLE_BINS):
        to.idle[index] += other.idle[index]
    to.has_frequency = to.has_frequency or other.has_frequency
    for index in range(FREQUENCY_BINS):
        to.frequency[index] += other.frequency[index]
    if other.strings.keys:
        to.strings.keys += other.strings.keys
        wide_join(&to.strings.sum, &other.strings.sum)
        to.strings.long_keys += other.strings.long_keys
        to.strings.tiny_keys += other.strings.tiny_keys
        for index in range(TTL_BINS):
            to.strings.tiny_bins[index] += other.strings.tiny_bins[index]
    return True


cdef inline bint merge_tallies(TallyData* to, const TallyData* other, const Shared* shared) noexcept nogil:
    """Add another tally, which stays as it is."""
    return merge_figures(to, other, shared) and merge_expiries(&to.ttl.expiries, &other.ttl.expiries, shared)


cdef inline TallyData* tally_of(TallyData** first, const Shared* shared, int32_t key_type) noexcept nogil:
    """Return the tally of a type in a list, a new one if need be; NULL where there is no memory."""
    cdef TallyData* made
    while first[0] != NULL:
        if first[0].key_type == key_type:
            return first[0]
        first = &first[0].next
    made = <TallyData*>take(&shared.pools.tallies)
    if made != NULL:
        memset(made, 0, sizeof(TallyData))
        made.key_type = key_type
        first[0] = made
    return made


cdef inline void free_tallies(TallyData* tally, const Shared* shared) noexcept nogil:
    """Free a list of tallies."""
    cdef TallyData* next
    while tally != NULL:
        next = tally.next
        free_slots(&shared.pools.buckets, tally.memory.slots, tally.memory.capacity)
        free_slots(&shared.pools.bins, tally.ttl.expiries.slots, tally.ttl.expiries.capacity)
        give(&shared.pools.tallies, tally)
        tally = next


cdef inline void set_up_pools(Pools* pools) noexcept nogil:
    set_up_pool(&pools.tallies, sizeof(TallyData))
    set_up_pool(&pools.buckets, FEWEST_SLOTS * sizeof(BucketCount))
    set_up_pool(&pools.bins, FEWEST_SLOTS * sizeof(ExpiryBin))


cdef inline void free_pools(Pools* pools) noexcept nogil:
    free_pool(&pools.tallies)
    free_pool(&pools.buckets)
    free_pool(&pools.bins)
