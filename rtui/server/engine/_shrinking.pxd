"""Keeps the tree of patterns small, as `rtui.analysis.aggregate.pattern_tree` does, with its walk-through.

After each batch names that differ in their numbers only are merged where there are too many, light names of namespaces
that have too many into `{*}`, and the lightest nodes into those for the rest where there are too many in all. From time
to time bins of expiries are joined where all nodes together have too many.

Functions that need memory return False where there is none: the tree is consistent then, but what was to be merged may
be lost in part.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

from rtui.server.engine._distinct cimport add_hash, merge_distinct, merge_examples, name_hash
from rtui.server.engine._forms cimport Bytes, any_name
from rtui.server.engine._nodes cimport (
    LITERAL,
    NO_SEPARATOR,
    OTHER,
    PATTERN,
    Node,
    Threshold,
    Tree,
    find,
    forget_crowd,
    free_node,
    is_empty_key,
    is_space,
    make,
    most_named,
    note_crowd,
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
    int group
    uint64_t order
    void* item


cdef inline int compare_ranked(const void* one, const void* other) noexcept nogil:
    """Order by group, weight and order, all ascending."""
    cdef const Ranked* left = <const Ranked*>one
    cdef const Ranked* right = <const Ranked*>other
    if left.group != right.group:
        return -1 if left.group < right.group else 1
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


cdef inline bint is_light_key(
    uint8_t kind, int32_t separator, int64_t keys, const Wide* memory, int64_t all_keys, const Wide* all_memory
) noexcept nogil:
    """Whether a node, not the root, is a name that keys end at, and has less than a hundredth of all."""
    return (
        kind == LITERAL
        and separator == NO_SEPARATOR
        and 100 * keys < all_keys
        and not (wide_is_positive(memory) and wide_is_share(memory, 100, all_memory))
    )


cdef inline int compare_counts(const void* one, const void* other) noexcept nogil:
    cdef int64_t left = (<const int64_t*>one)[0], right = (<const int64_t*>other)[0]
    return (left > right) - (left < right)


cdef inline int compare_sizes(const void* one, const void* other) noexcept nogil:
    cdef double left = (<const double*>one)[0], right = (<const double*>other)[0]
    return (left > right) - (left < right)


cdef inline bint fold_numbers(Tree* tree, Node* parent) noexcept nogil:
    """Merge all names that differ in their numbers only."""
    cdef size_t index, count = parent.named[0] + parent.named[1]
    cdef Node** members = <Node**>malloc((count + 1) * sizeof(Node*))
    cdef bint is_done = True
    if members == NULL:
        return False
    for index in range(count):
        members[index] = parent.first
        take_out(tree, parent.first)
    parent.holds_names = False
    for index in range(count):
        parent.keys -= members[index].keys
        wide_take(&parent.memory, &members[index].memory)
        is_done = merge_into(tree, parent, members[index]) and is_done
    free(members)
    return is_done


cdef inline bint merge_into(Tree* tree, Node* target, Node* node) noexcept nogil:
    """Count all that is at and below a node, which has been taken out, in another one, and free it.

    Where there is no memory, what is left of the node is lost with its keys.
    """
    cdef TallyData* tally
    cdef TallyData* next_tally
    cdef TallyData** same_type
    cdef Node* child
    cdef Node* same
    cdef bint is_done = True, is_flat
    tree.size -= 1
    forget_crowd(tree, node)
    if target.holds_names and not node.holds_names:
        is_done = fold_numbers(tree, target)
    is_flat = target.kind == OTHER or (node.holds_names and not target.holds_names)
    target.has_lost[0] |= node.has_lost[0]
    target.has_lost[1] |= node.has_lost[1]
    target.keys += node.keys
    wide_join(&target.memory, &node.memory)
    if target.kind == PATTERN:
        is_done = merge_distinct(&target.distinct, &node.distinct) and is_done
    is_done = merge_examples(&target.examples, &node.examples) and is_done
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
        if is_flat:
            target.keys -= child.keys
            wide_take(&target.memory, &child.memory)
        else:
            same = find(tree, target, child.name, child.length, child.separator, child.kind)
            if same == NULL:
                same = make(tree, target, child.name, child.length, child.separator, child.kind)
                if same != NULL:
                    same.holds_names = child.holds_names
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
    if kind == PATTERN and node.kind == LITERAL and not add_hash(&target.distinct, name_hash(node.name, node.length)):
        merge_into(tree, target, node)
        return False
    return merge_into(tree, target, node)


cdef inline bint merge_light(Tree* tree, Node* parent, bint space) noexcept nogil:
    """Have all keys or namespaces pay, and merge those that cannot into `{*}`."""
    cdef size_t count = parent.named[space], found = 0, index
    cdef Node** names = <Node**>malloc(count * sizeof(Node*))
    cdef int64_t* counts = <int64_t*>malloc(count * sizeof(int64_t))
    cdef double* sizes = <double*>malloc(count * sizeof(double))
    cdef Node* child = parent.first
    cdef Bytes target
    cdef int64_t keys
    cdef double memory
    cdef bint is_done = names != NULL and counts != NULL and sizes != NULL
    while child != NULL and found < count and is_done:
        if not child.is_generic and is_space(child.separator) == space:
            names[found] = child
            counts[found] = child.keys - child.paid_keys
            sizes[found] = wide_float(&child.memory) - child.paid_memory
            found += 1
        child = child.next
    if is_done:
        qsort(counts, count, sizeof(int64_t), compare_counts)
        qsort(sizes, count, sizeof(double), compare_sizes)
        keys, memory = counts[3 * count // 4], sizes[3 * count // 4]
        parent.has_lost[space] = True
    for index in range(count if is_done else 0):
        child = names[index]
        if child.keys - child.paid_keys <= keys and wide_float(&child.memory) - child.paid_memory <= memory:
            target = any_name(child.name, child.length, child.kind == PATTERN, tree.is_separator)
            is_done = replace(tree, child, <const char*>target.start, target.length, child.separator, PATTERN) and is_done
            continue
        child.paid_keys = child.paid_keys + keys if child.paid_keys + keys < child.keys else child.keys
        if child.paid_memory + memory < wide_float(&child.memory):
            child.paid_memory += memory
        else:
            child.paid_memory = wide_float(&child.memory)
    free(names)
    free(counts)
    free(sizes)
    return is_done


cdef inline bint trim(Tree* tree, size_t budget) noexcept nogil:
    """Keep the heaviest nodes, and merge all others into those for the rest of their parents."""
    cdef Node** nodes = walked(tree)
    cdef Ranked* ranked = <Ranked*>malloc(tree.size * sizeof(Ranked))
    cdef size_t index, count = tree.size, done = 0, found = 1
    cdef double keys, memory, weight, by_memory
    cdef Node* parent
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
            ranked[index].group = nodes[index] != tree.root and is_light_key(
                nodes[index].kind,
                nodes[index].separator,
                nodes[index].keys,
                &nodes[index].memory,
                tree.root.keys,
                &tree.root.memory,
            )
            ranked[index].order = index
            ranked[index].item = nodes[index]
        qsort(ranked, count, sizeof(Ranked), compare_ranked)
        for index in range(budget if budget < count else count):
            (<Node*>ranked[index].item).is_kept = True
        nodes[0] = tree.root
        while done < found and is_done:
            parent = nodes[done]
            child = parent.first
            done += 1
            while child != NULL and is_done:
                next = child.next
                if child.is_kept:
                    nodes[found] = child
                    found += 1
                elif parent.holds_names:
                    is_done = note_crowd(tree, parent)
                elif child.kind != OTHER and not is_empty_key(child.length, child.separator, child.kind):
                    is_done = replace(tree, child, b"", 0, NO_SEPARATOR, OTHER)
                child = next
    free(nodes)
    free(ranked)
    return is_done


cdef inline bint merge_crowds(Tree* tree) noexcept nogil:
    """Merge names of all nodes that have too many."""
    cdef Node* parent
    while tree.crowd_count:
        parent = tree.crowds[tree.crowd_count - 1]
        forget_crowd(tree, parent)
        if parent.holds_names:
            if not fold_numbers(tree, parent):
                return False
            continue
        if parent.named[0] > tree.most_names and not merge_light(tree, parent, False):
            return False
        if parent.named[1] > tree.most_names and not merge_light(tree, parent, True):
            return False
    return True


cdef inline uint32_t half_of(uint32_t most, uint32_t fewest) noexcept nogil:
    """Return half of a limit, but not less than the fewest unless it is less already."""
    if fewest > most:
        fewest = most
    return most // 2 if most // 2 > fewest else fewest


cdef inline bint keep_fewer_names(Tree* tree) noexcept nogil:
    """Keep half as many names in each namespace."""
    cdef Node** nodes = walked(tree)
    cdef size_t index, count = tree.size
    cdef bint is_done = nodes != NULL
    tree.most_names = half_of(tree.most_names, tree.limits.children)
    tree.most_numbered = half_of(tree.most_numbered, tree.limits.children)
    for index in range(count if is_done else 0):
        if nodes[index].named[0] > most_named(tree, nodes[index], False) or (
            nodes[index].named[1] > most_named(tree, nodes[index], True)
        ):
            is_done = note_crowd(tree, nodes[index]) and is_done
    free(nodes)
    return is_done and merge_crowds(tree)


cdef inline bint shrink(Tree* tree) noexcept nogil:
    """Merge names and nodes where there are too many."""
    if not merge_crowds(tree):
        return False
    while tree.size > tree.limits.nodes and (
        tree.most_names > tree.limits.children or tree.most_numbered > tree.limits.children
    ):
        if not keep_fewer_names(tree):
            return False
    if tree.size > tree.limits.nodes:
        return trim(tree, tree.limits.nodes // 2) and merge_crowds(tree)
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
                    ranked[filled].group = 0
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
