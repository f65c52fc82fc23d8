"""Keeps the tree of patterns small, as `rtui.analysis.aggregate.pattern_tree` does, with its walk-through.

After each batch the light names of crowded namespaces are merged into `{*}`, the lightest nodes into those for the rest
where there are too many, and from time to time bins of expiries are joined where all nodes together have too many.

Functions that need memory return False where there is none: the tree is consistent then, but what was to be merged may
be lost in part.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

from rtui.server.engine._nodes cimport (
    NO_SEPARATOR,
    OTHER,
    PATTERN,
    Node,
    Threshold,
    Tree,
    find,
    forget_crowd,
    free_node,
    make,
    take_out,
    walked,
)
from rtui.server.engine._tallies cimport (
    ExpirySet,
    TallyData,
    Wide,
    coarsen,
    free_tallies,
    merge_tallies,
    wide_float,
    wide_is_positive,
    wide_is_share,
    wide_join,
    wide_take,
)

cdef struct Ranked:
    double weight
    uint64_t order
    void* item


cdef inline int compare_ranked(const void* one, const void* other) noexcept nogil:
    """Order by weight, then by order, both ascending."""
    cdef const Ranked* left = <const Ranked*>one
    cdef const Ranked* right = <const Ranked*>other
    if left.weight != right.weight:
        return -1 if left.weight < right.weight else 1
    return (left.order > right.order) - (left.order < right.order)


cdef inline bint is_reached(
    const Threshold* threshold,
    int64_t keys,
    const Wide* memory,
    int64_t parent_keys,
    int64_t all_keys,
    const Wide* all_memory,
) noexcept nogil:
    """Whether a name is heavy in a namespace and a keyspace."""
    return (
        10_000 * keys >= threshold.of_all * all_keys
        or (wide_is_positive(memory) and wide_is_share(memory, threshold.of_all, all_memory))
        or (keys >= threshold.least_keys and 10_000 * keys >= threshold.of_parent * parent_keys)
    )


cdef inline bint merge_into(Tree* tree, Node* target, Node* node) noexcept nogil:
    """Count all that is at and below a node, which has been taken out, in another one, and free it.

    Where there is no memory, what is left of the node is lost with its keys.
    """
    cdef TallyData* tally
    cdef TallyData* next_tally
    cdef TallyData** same_type
    cdef Node* child
    cdef Node* same
    cdef bint is_done = True
    tree.size -= 1
    forget_crowd(tree, node)
    target.is_crowded = target.is_crowded or node.is_crowded
    target.keys += node.keys
    wide_join(&target.memory, &node.memory)
    tally = node.tallies
    while tally != NULL:
        next_tally = tally.next
        same_type = &target.tallies
        while same_type[0] != NULL and same_type[0].key_type != tally.key_type:
            same_type = &same_type[0].next
        tally.next = NULL
        if same_type[0] == NULL:
            same_type[0] = tally
        else:
            is_done = merge_tallies(same_type[0], tally, &tree.shared) and is_done
            free_tallies(tally, &tree.shared)
        tally = next_tally
    while node.first != NULL:
        child = node.first
        take_out(tree, child)
        same = target
        if target.kind == OTHER:
            target.keys -= child.keys
            wide_take(&target.memory, &child.memory)
        else:
            same = find(tree, target, child.name, child.length, child.separator, child.kind)
            if same == NULL:
                same = make(tree, target, child.name, child.length, child.separator, child.kind)
            if same == NULL:
                is_done = False
                same = target
        is_done = merge_into(tree, same, child) and is_done
    free_node(tree, node)
    return is_done


cdef inline bint replace(
    Tree* tree, Node* node, const char* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    """Merge a node into the sibling of another name, which is made if need be."""
    cdef Node* parent = node.parent
    cdef Node* target
    take_out(tree, node)
    target = find(tree, parent, <const uint8_t*>name, length, separator, kind)
    if target == NULL:
        target = make(tree, parent, <const uint8_t*>name, length, separator, kind)
    if target == NULL:
        merge_into(tree, parent, node)
        return False
    return merge_into(tree, target, node)


cdef inline bint merge_light(Tree* tree, Node* parent) noexcept nogil:
    """Merge the light names of a crowded namespace into `{*}`."""
    cdef Node* child = parent.first
    cdef Node* next
    cdef Node* root = tree.root
    while child != NULL:
        next = child.next
        if not child.is_generic and not is_reached(
            &tree.interim, child.keys, &child.memory, parent.keys, root.keys, &root.memory
        ):
            if not replace(tree, child, b"{*}", 3, child.separator, PATTERN):
                return False
        child = next
    return True


cdef inline bint trim(Tree* tree, size_t budget) noexcept nogil:
    """Keep the heaviest nodes, and merge all others into those for the rest of their parents."""
    cdef Node** nodes = walked(tree)
    cdef Ranked* ranked = <Ranked*>malloc(tree.size * sizeof(Ranked))
    cdef size_t index, count = tree.size, done = 0, found = 1
    cdef double keys, memory, weight, by_memory
    cdef Node* child
    cdef Node* next
    cdef bint is_done = nodes != NULL and ranked != NULL
    if is_done:
        keys = <double>(tree.root.keys if tree.root.keys > 1 else 1)
        memory = wide_float(&tree.root.memory)
        if memory < 1:
            memory = 1
        for index in range(count):
            nodes[index].is_kept = False
            weight = <double>nodes[index].keys / keys
            by_memory = wide_float(&nodes[index].memory) / memory
            ranked[index].weight = -(weight if weight >= by_memory else by_memory)
            ranked[index].order = index
            ranked[index].item = nodes[index]
        qsort(ranked, count, sizeof(Ranked), compare_ranked)
        for index in range(budget if budget < count else count):
            (<Node*>ranked[index].item).is_kept = True
        nodes[0] = tree.root
        while done < found and is_done:
            child = nodes[done].first
            done += 1
            while child != NULL and is_done:
                next = child.next
                if child.is_kept:
                    nodes[found] = child
                    found += 1
                elif child.kind != OTHER:
                    is_done = replace(tree, child, b"", 0, NO_SEPARATOR, OTHER)
                child = next
    free(nodes)
    free(ranked)
    return is_done


cdef inline bint shrink(Tree* tree) noexcept nogil:
    """Merge light nodes where there are too many."""
    cdef Node* parent
    while tree.crowd_count:
        parent = tree.crowds[tree.crowd_count - 1]
        forget_crowd(tree, parent)
        if not merge_light(tree, parent):
            return False
    if tree.size > tree.limits.nodes:
        return trim(tree, tree.limits.nodes // 2)
    return True


cdef inline bint coarsen_sets(Tree* tree, Ranked* ranked, size_t count, size_t excess) noexcept nogil:
    """Coarsen the sets in this order, again and again, until there are so many bins less."""
    cdef size_t index, left, before
    cdef ExpirySet* one
    while count:
        for index in range(count):
            one = <ExpirySet*>ranked[index].item
            before = one.used
            if one.coarseness < tree.shared.fineness and not coarsen(one, &tree.shared, one.coarseness + 1):
                return False
            before -= one.used
            if before >= excess:
                return True
            excess -= before
        left = 0
        for index in range(count):
            if (<ExpirySet*>ranked[index].item).coarseness < tree.shared.fineness:
                ranked[left] = ranked[index]
                left += 1
        count = left
    return True


cdef inline bint coarsen_to_budget(Tree* tree) noexcept nogil:
    """Coarsen the sets that have fewest keys in a bin where all together have too many bins."""
    cdef Node** nodes = walked(tree)
    cdef Ranked* ranked = NULL
    cdef TallyData* tally
    cdef size_t index, count = 0, filled = 0, bins = 0
    cdef bint is_done = True
    if nodes == NULL:
        return False
    for index in range(tree.size):
        tally = nodes[index].tallies
        while tally != NULL:
            count += tally.ttl.expiries.used > 0
            bins += tally.ttl.expiries.used
            tally = tally.next
    if bins > tree.limits.expiry_bins:
        ranked = <Ranked*>malloc(count * sizeof(Ranked))
        is_done = ranked != NULL
        for index in range(tree.size if is_done else 0):
            tally = nodes[index].tallies
            while tally != NULL:
                if tally.ttl.expiries.used:
                    ranked[filled].weight = <double>tally.ttl.expiries.total / <double>tally.ttl.expiries.used
                    ranked[filled].order = (<uint64_t>index << 32) + <uint64_t>tree.type_ranks[tally.key_type]
                    ranked[filled].item = &tally.ttl.expiries
                    filled += 1
                tally = tally.next
        if is_done:
            qsort(ranked, count, sizeof(Ranked), compare_ranked)
            is_done = coarsen_sets(tree, ranked, count, bins - tree.limits.expiry_bins)
    free(ranked)
    free(nodes)
    return is_done
