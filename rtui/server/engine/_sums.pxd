"""What the nodes of a folding add up to, from the leaves to the root, as `rtui.analysis.aggregate.sums` has it.

Each node that remains gets one tally of all keys at and below it, whatever their type, and how many of them are of which
type; only the root has a tally for each type. Times of expiry are not added up: a report shows them for a few
namespaces, and those are gathered when they are asked for.

A node without keys of its own that has a single child adds up to the same, and has the same tally. Functions that need
memory return False where there is none.
"""

from libc.math cimport ceil
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset

from rtui.server.engine._folding cimport Fold, Folding, TypeKeys
from rtui.server.engine._pool cimport take
from rtui.server.engine._tallies cimport (
    BucketCount,
    ExpirySet,
    Shared,
    SketchData,
    TallyData,
    free_tallies,
    merge_expiries,
    merge_figures,
    tally_of,
)


cdef inline bint count_type(Folding* folding, Fold* fold, int32_t key_type, int64_t keys) noexcept nogil:
    """Count keys of one type at a node."""
    cdef TypeKeys** at = &fold.types
    while at[0] != NULL:
        if at[0].key_type == key_type:
            at[0].keys += keys
            return True
        at = &at[0].next
    at[0] = <TypeKeys*>take(&folding.types)
    if at[0] == NULL:
        return False
    at[0].next = NULL
    at[0].key_type = key_type
    at[0].keys = keys
    return True


cdef inline bint sum_own(Folding* folding, Fold* fold) noexcept nogil:
    """Add the tallies of all sources of a node to its own, and to those by type of the root."""
    cdef const Fold* source = fold
    cdef const TallyData* tally
    cdef TallyData* of_type
    while source != NULL:
        tally = source.tallies
        while tally != NULL:
            fold.own_keys += tally.keys
            fold.expiring += tally.ttl.expiries.total
            of_type = tally_of(&folding.by_type, &folding.shared, tally.key_type)
            if (
                of_type == NULL
                or not merge_figures(of_type, tally, &folding.shared)
                or not merge_figures(fold.total, tally, &folding.shared)
                or not count_type(folding, fold, tally.key_type, tally.keys)
            ):
                return False
            tally = tally.next
        source = source.next_source
    return True


cdef inline bint has_tallies(const Fold* fold) noexcept nogil:
    cdef const Fold* source = fold
    while source != NULL:
        if source.tallies != NULL:
            return True
        source = source.next_source
    return False


cdef inline bint sum_fold(Folding* folding, Fold* fold) noexcept nogil:
    """Add up a node whose children are added up."""
    cdef Fold* child = fold.first
    cdef const TypeKeys* of_type
    if child != NULL and child.next == NULL and fold.index and not has_tallies(fold):
        fold.is_alike = True
        fold.total = child.total
        fold.types = child.types
        fold.expiring = child.expiring
        return True
    if tally_of(&fold.total, &folding.shared, 0) == NULL or not sum_own(folding, fold):
        return False
    while child != NULL:
        fold.expiring += child.expiring
        if not merge_figures(fold.total, child.total, &folding.shared):
            return False
        of_type = child.types
        while of_type != NULL:
            if not count_type(folding, fold, of_type.key_type, of_type.keys):
                return False
            of_type = of_type.next
        child = child.next
    return True


cdef inline bint sum_folds(Folding* folding) noexcept nogil:
    """Add up all nodes that remain, once they are in order."""
    cdef size_t index
    for index in range(folding.count, 0, -1):
        if not sum_fold(folding, folding.order[index - 1]):
            return False
    return True


cdef inline void free_sums(Folding* folding) noexcept nogil:
    """Free what was added up, before the folding itself."""
    cdef size_t index
    for index in range(folding.count):
        if not folding.order[index].is_alike:
            free_tallies(folding.order[index].total, &folding.shared)
    free_tallies(folding.by_type, &folding.shared)
    folding.by_type = NULL
    folding.count = 0


cdef inline bint gather_expiries(
    const Folding* folding, const Fold* top, ExpirySet* to, int64_t* largest
) noexcept nogil:
    """Add the expiries of all keys at and below a node to a set, and find the largest key among them."""
    cdef const Fold* node = top
    cdef const Fold* source
    cdef const TallyData* tally
    while True:
        source = node
        while source != NULL:
            tally = source.tallies
            while tally != NULL:
                if tally.ttl.is_any_expiring:
                    if not merge_expiries(to, &tally.ttl.expiries, &folding.shared):
                        return False
                    if tally.ttl.expiring_largest > largest[0]:
                        largest[0] = tally.ttl.expiring_largest
                tally = tally.next
            source = source.next_source
        if node.first != NULL:
            node = node.first
            continue
        while node != top and node.next == NULL:
            node = node.parent
        if node == top:
            return True
        node = node.next


cdef inline int compare_buckets(const void* one, const void* other) noexcept nogil:
    cdef uint32_t left = (<const BucketCount*>one).bucket
    cdef uint32_t right = (<const BucketCount*>other).bucket
    return (left > right) - (left < right)


cdef inline bint find_quantiles(
    const SketchData* sketch, const int64_t* middles, const double* shares, int64_t* found, size_t count
) noexcept nogil:
    """Find the sizes at or below which these shares of all, at least one, lie, as `Sketch.quantiles` does."""
    cdef BucketCount* ordered = <BucketCount*>malloc(sketch.used * sizeof(BucketCount))
    cdef uint32_t at, used = 0
    cdef uint64_t end
    cdef int64_t rank
    cdef size_t index
    if ordered == NULL:
        return False
    for at in range(sketch.capacity):
        if sketch.slots[at].keys:
            ordered[used] = sketch.slots[at]
            used += 1
    qsort(ordered, used, sizeof(BucketCount), compare_buckets)
    for index in range(count):
        rank = <int64_t>ceil(shares[index] * <double>sketch.count) - 1
        if rank <= 0:
            found[index] = sketch.smallest
        elif rank >= sketch.count - 1:
            found[index] = sketch.largest
        else:
            at, end = 0, ordered[0].keys
            while end <= <uint64_t>rank and at + 1 < used:
                at += 1
                end += ordered[at].keys
            found[index] = middles[ordered[at].bucket]
            if found[index] > sketch.largest:
                found[index] = sketch.largest
            if found[index] < sketch.smallest:
                found[index] = sketch.smallest
    free(ordered)
    return True
