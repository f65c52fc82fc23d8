"""The tree of patterns as a report shows it, as `rtui.analysis.aggregate.folding` makes it, with its walk-through.

All nodes are copied into one array, their names and tallies, which stay as they are, into one block beside it. So the
tree may grow again as soon as it was copied. Merging a node into a sibling that is not there yet gives it another name,
so no node is ever made beside the copies; a node that others were merged into has them as further sources (a chain).
The tallies of all sources are added up at last, when it is known what remains (`_sums`).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from rtui.server.engine._nodes cimport (
    NO_SEPARATOR,
    OTHER,
    PATTERN,
    Node,
    Threshold,
    Tree,
    hash_of,
    is_generic_name,
    walked,
)
from rtui.server.engine._pool cimport Pool, free_pool, set_up_pool
from rtui.server.engine._shrinking cimport Ranked, compare_ranked, is_reached
from rtui.server.engine._tallies cimport (
    BucketCount,
    ExpiryBin,
    Pools,
    Shared,
    TallyData,
    Wide,
    free_pools,
    set_up_pools,
    wide_float,
    wide_join,
    wide_take,
)

cdef struct TypeKeys:
    TypeKeys* next
    int64_t keys
    int32_t key_type

cdef struct Fold:
    Fold* parent
    Fold* first
    Fold* last
    Fold* previous
    Fold* next
    Fold* next_source
    Fold* last_source
    TallyData* tallies
    const uint8_t* name
    size_t length
    size_t index  # among those that remain
    uint64_t hash
    int64_t keys
    Wide memory
    int32_t separator
    uint8_t kind
    bint is_crowded
    bint is_generic
    bint is_kept
    bint is_alike  # adds up to the same as its only child
    TallyData* total  # all keys here and below; no times of expiry
    TypeKeys* types
    int64_t own_keys
    int64_t expiring  # here and below

cdef struct Folding:
    uint64_t seed
    uint32_t most_children
    Shared shared  # as the tree has it, but with pools of its own
    Pools pools  # for tallies that are added up
    Pool types
    TallyData* by_type  # of all keys; no times of expiry
    char* copied  # names and tallies
    size_t copied_size
    Fold* nodes
    Fold** table
    size_t slots
    Fold** order  # what remains, level by level
    size_t count


cdef inline bint is_named(
    const Fold* node, const Fold* parent, const uint8_t* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    return (
        node.parent == parent
        and node.length == length
        and node.separator == separator
        and node.kind == kind
        and (length == 0 or memcmp(node.name, name, length) == 0)
    )


cdef inline Fold* find_fold(
    const Folding* folding, const Fold* parent, const uint8_t* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    """Return a child, or NULL."""
    cdef uint64_t wanted = hash_of(folding.seed, parent, name, length, separator, kind)
    cdef size_t at = wanted & (folding.slots - 1)
    cdef Fold* node = folding.table[at]
    while node != NULL:
        if node.hash == wanted and is_named(node, parent, name, length, separator, kind):
            return node
        at = (at + 1) & (folding.slots - 1)
        node = folding.table[at]
    return NULL


cdef inline void append_fold(Folding* folding, Fold* parent, Fold* node) noexcept nogil:
    """Make a node, whose name is there, the last child of another one."""
    cdef size_t at
    node.parent = parent
    node.is_generic = is_generic_name(node.name, node.length, node.kind)
    node.hash = hash_of(folding.seed, parent, node.name, node.length, node.separator, node.kind)
    node.next = NULL
    node.previous = parent.last
    if parent.last == NULL:
        parent.first = node
    else:
        parent.last.next = node
    parent.last = node
    at = node.hash & (folding.slots - 1)
    while folding.table[at] != NULL:
        at = (at + 1) & (folding.slots - 1)
    folding.table[at] = node


cdef inline void take_out_fold(Folding* folding, Fold* node) noexcept nogil:
    cdef size_t mask = folding.slots - 1
    cdef size_t hole = node.hash & mask, at
    while folding.table[hole] != node:
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        if folding.table[at] == NULL:
            break
        if ((at - folding.table[at].hash) & mask) >= ((at - hole) & mask):
            folding.table[hole] = folding.table[at]
            hole = at
    folding.table[hole] = NULL
    if node.previous == NULL:
        node.parent.first = node.next
    else:
        node.previous.next = node.next
    if node.next == NULL:
        node.parent.last = node.previous
    else:
        node.next.previous = node.previous


cdef inline void merge_below(Folding* folding, Fold* target, Fold* node) noexcept nogil:
    """Merge what is below a node into another one, which may be itself if it stands for the rest."""
    cdef Fold* child
    while node.first != NULL:
        child = node.first
        take_out_fold(folding, child)
        if target.kind == OTHER:
            target.keys -= child.keys
            wide_take(&target.memory, &child.memory)
            merge_fold(folding, target, child)
        else:
            merge_as(folding, target, child, child.name, child.length, child.separator, child.kind)


cdef inline void merge_fold(Folding* folding, Fold* target, Fold* node) noexcept nogil:
    """Add all that is at and below a node that was taken out to another one."""
    target.is_crowded = target.is_crowded or node.is_crowded
    target.keys += node.keys
    wide_join(&target.memory, &node.memory)
    target.last_source.next_source = node
    target.last_source = node.last_source
    merge_below(folding, target, node)


cdef inline void merge_as(
    Folding* folding, Fold* parent, Fold* node, const uint8_t* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    """Merge a node that was taken out into the child of this name, or make it that child."""
    cdef Fold* target = find_fold(folding, parent, name, length, separator, kind)
    if target != NULL:
        merge_fold(folding, target, node)
        return
    node.name = name
    node.length = length
    node.separator = separator
    node.kind = kind
    append_fold(folding, parent, node)
    if kind == OTHER:
        merge_below(folding, node, node)


cdef inline size_t room_for(size_t size) noexcept nogil:
    """Return how many bytes of the block something takes, so that what follows it is aligned."""
    return (size + 15) // 16 * 16


cdef inline size_t size_of_copies(const Tree* tree, Node** nodes) noexcept nogil:
    """Return how many bytes the names and tallies of all nodes take."""
    cdef const TallyData* tally
    cdef size_t index, size = 0
    for index in range(tree.size):
        size += room_for(nodes[index].length)
        tally = nodes[index].tallies
        while tally != NULL:
            size += room_for(sizeof(TallyData)) + room_for(tally.memory.capacity * sizeof(BucketCount))
            size += room_for(tally.ttl.expiries.capacity * sizeof(ExpiryBin))
            tally = tally.next
    return size


cdef inline void* copied(Folding* folding, const void* what, size_t size) noexcept nogil:
    """Copy something into the block; nothing is NULL."""
    cdef void* to = folding.copied + folding.copied_size
    if not size:
        return NULL
    memcpy(to, what, size)
    folding.copied_size += room_for(size)
    return to


cdef inline TallyData* copied_tallies(Folding* folding, const TallyData* tally) noexcept nogil:
    """Copy a list of tallies into the block."""
    cdef TallyData* found = NULL
    cdef TallyData** last = &found
    cdef TallyData* made
    while tally != NULL:
        made = <TallyData*>copied(folding, tally, sizeof(TallyData))
        made.next = NULL
        made.memory.slots = <BucketCount*>copied(
            folding, tally.memory.slots, tally.memory.capacity * sizeof(BucketCount)
        )
        made.ttl.expiries.slots = <ExpiryBin*>copied(
            folding, tally.ttl.expiries.slots, tally.ttl.expiries.capacity * sizeof(ExpiryBin)
        )
        last[0] = made
        last = &made.next
        tally = tally.next
    return found


cdef inline bint copy_tree(Folding* folding, const Tree* tree) noexcept nogil:
    """Copy all nodes, level by level, into a folding that is all zero; False where there is no memory."""
    cdef Fold* node
    cdef const Node* child
    cdef size_t done = 0, filled = 1
    cdef Node** origins = walked(tree)
    folding.seed = tree.seed
    folding.most_children = tree.limits.children
    folding.shared = tree.shared
    set_up_pools(&folding.pools)
    set_up_pool(&folding.types, sizeof(TypeKeys))
    folding.shared.pools = &folding.pools
    folding.slots = 64
    while folding.slots < 2 * tree.size:
        folding.slots *= 2
    folding.nodes = <Fold*>calloc(tree.size, sizeof(Fold))
    folding.table = <Fold**>calloc(folding.slots, sizeof(Fold*))
    folding.order = <Fold**>malloc(tree.size * sizeof(Fold*))
    folding.copied = <char*>malloc(size_of_copies(tree, origins) + 1) if origins != NULL else NULL
    if folding.nodes == NULL or folding.table == NULL or folding.order == NULL or folding.copied == NULL:
        free(origins)
        return False
    origins[0] = tree.root
    folding.nodes[0].separator = NO_SEPARATOR
    while done < filled:
        node = &folding.nodes[done]
        node.last_source = node
        node.keys = origins[done].keys
        node.memory = origins[done].memory
        node.is_crowded = origins[done].is_crowded
        node.tallies = copied_tallies(folding, origins[done].tallies)
        child = origins[done].first
        done += 1
        while child != NULL and filled < tree.size:
            origins[filled] = <Node*>child
            folding.nodes[filled].name = <const uint8_t*>copied(folding, child.name, child.length)
            folding.nodes[filled].length = child.length
            folding.nodes[filled].separator = child.separator
            folding.nodes[filled].kind = child.kind
            append_fold(folding, node, &folding.nodes[filled])
            filled += 1
            child = child.next
    free(origins)
    return True


cdef inline void put_in_order(Folding* folding) noexcept nogil:
    """List what remains, level by level."""
    cdef Fold* child
    cdef size_t done = 0
    folding.order[0] = &folding.nodes[0]
    folding.count = 1
    while done < folding.count:
        folding.order[done].index = done
        child = folding.order[done].first
        done += 1
        while child != NULL:
            folding.order[folding.count] = child
            folding.count += 1
            child = child.next


cdef inline void merge_light_folds(Folding* folding, const Threshold* final) noexcept nogil:
    """Merge the light names of crowded namespaces into `{*}`, level by level from the root."""
    cdef Fold* root = &folding.nodes[0]
    cdef Fold* parent
    cdef Fold* child
    cdef Fold* next
    cdef size_t done = 0, named
    folding.order[0] = root
    folding.count = 1
    while done < folding.count:
        parent = folding.order[done]
        done += 1
        named = 0
        child = parent.first
        while child != NULL:
            named += not child.is_generic
            child = child.next
        child = parent.first if parent.is_crowded or named > folding.most_children else NULL
        while child != NULL:
            next = child.next
            if not child.is_generic and not is_reached(
                final, child.keys, &child.memory, parent.keys, root.keys, &root.memory
            ):
                take_out_fold(folding, child)
                merge_as(folding, parent, child, <const uint8_t*>b"{*}", 3, child.separator, PATTERN)
            child = next
        child = parent.first
        while child != NULL:
            folding.order[folding.count] = child
            folding.count += 1
            child = child.next


cdef inline int compare_names(const void* one, const void* other) noexcept nogil:
    """Order siblings by name, separator and kind."""
    cdef const Fold* left = (<const Fold**>one)[0]
    cdef const Fold* right = (<const Fold**>other)[0]
    cdef size_t shorter = left.length if left.length < right.length else right.length
    cdef int order = memcmp(left.name, right.name, shorter) if shorter else 0
    if order:
        return order
    if left.length != right.length:
        return -1 if left.length < right.length else 1
    if left.separator != right.separator:
        return -1 if left.separator < right.separator else 1
    return <int>left.kind - <int>right.kind


cdef inline size_t rank_folds(const Folding* folding, Ranked* ranked, Fold** stack) noexcept nogil:
    """Rank all nodes but those for the rest by weight and path; `stack` has room for all and their children."""
    cdef Fold* root = &folding.nodes[0]
    cdef Fold* node
    cdef Fold* child
    cdef Fold* swapped
    cdef double keys = <double>(root.keys if root.keys > 1 else 1)
    cdef double memory = wide_float(&root.memory), weight, by_memory
    cdef size_t waiting = 1, first, last, path = 0, count = 0
    if memory < 1:
        memory = 1
    stack[0] = root
    while waiting:
        waiting -= 1
        node = stack[waiting]
        if node.kind != OTHER:
            weight = <double>node.keys / keys
            by_memory = wide_float(&node.memory) / memory
            ranked[count].weight = -(weight if weight >= by_memory else by_memory)
            ranked[count].order = path
            ranked[count].item = node
            count += 1
        path += 1
        first = waiting
        child = node.first
        while child != NULL:
            stack[waiting] = child
            waiting += 1
            child = child.next
        if waiting - first > 1:
            qsort(stack + first, waiting - first, sizeof(Fold*), compare_names)
            last = waiting - 1
            while first < last:  # so that the first path is on top
                swapped = stack[first]
                stack[first] = stack[last]
                stack[last] = swapped
                first += 1
                last -= 1
    return count


cdef inline bint trim_folds(Folding* folding, size_t budget) noexcept nogil:
    """Keep the heaviest nodes, and merge all others into those for the rest of their parents."""
    cdef Ranked* ranked
    cdef Fold** stack
    cdef Fold* child
    cdef Fold* next
    cdef size_t index, count, done = 0, found = 1
    if folding.count <= budget:
        return True
    ranked = <Ranked*>malloc(folding.count * sizeof(Ranked))
    stack = <Fold**>malloc(folding.count * sizeof(Fold*))
    if ranked == NULL or stack == NULL:
        free(ranked)
        free(stack)
        return False
    count = rank_folds(folding, ranked, stack)
    qsort(ranked, count, sizeof(Ranked), compare_ranked)
    for index in range(budget if budget < count else count):
        (<Fold*>ranked[index].item).is_kept = True
    stack[0] = &folding.nodes[0]
    while done < found:
        child = stack[done].first
        done += 1
        while child != NULL:
            next = child.next
            if child.is_kept:
                stack[found] = child
                found += 1
            elif child.kind != OTHER:
                take_out_fold(folding, child)
                merge_as(folding, child.parent, child, NULL, 0, NO_SEPARATOR, OTHER)
            child = next
    free(ranked)
    free(stack)
    return True


cdef inline void free_folding(Folding* folding) noexcept nogil:
    free_pools(&folding.pools)
    free_pool(&folding.types)
    free(folding.copied)
    free(folding.nodes)
    free(folding.table)
    free(folding.order)
    memset(folding, 0, sizeof(Folding))
