"""The tree of patterns as a report shows it, as `rtui.analysis.aggregate.folding` makes it, with its walk-through.

All nodes are copied into one array, what they have, which stays as it is, into one block beside it. So the
tree may grow again as soon as it was copied. Merging a node into a sibling that is not there yet gives it another name,
so no node is ever made beside the copies; a node that others were merged into has them as further sources (a chain).
The tallies of all sources are added up at last, when it is known what remains (`_sums`).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from rtui.server.engine._distinct cimport (
    Distinct,
    Examples,
    add_hash,
    grows,
    insert_example,
    merge_distinct,
    name_hash,
    place_of_example,
)
from rtui.server.engine._forms cimport Bytes, any_name
from rtui.server.engine._nodes cimport (
    LITERAL,
    NO_SEPARATOR,
    OTHER,
    PATTERN,
    Limits,
    Node,
    Threshold,
    Tree,
    hash_of,
    is_empty_key,
    is_generic_name,
    is_space,
    walked,
)
from rtui.server.engine._pool cimport Pool, free_pool, set_up_pool
from rtui.server.engine._shrinking cimport Ranked, compare_ranked, is_light_key, is_reached
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

cdef struct Numbered:
    const uint8_t* name
    size_t length

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
    Distinct distinct  # of a pattern, without those of its further sources
    Examples examples
    uint32_t name_hash  # of what was a literal name at first
    const Numbered* numbered  # what a name folds to where very many differ in their numbers only
    int32_t separator
    uint8_t kind
    uint8_t has_lost[2]
    bint holds_any_name
    bint was_literal
    bint is_whole  # whether it is folded to that, however heavy it is
    bint is_one_of_many
    bint is_generic
    bint is_kept
    bint is_alike  # adds up to the same as its only child
    TallyData* total  # all keys here and below; no times of expiry
    TypeKeys* types
    int64_t own_keys
    int64_t expiring  # here and below

cdef struct Growth:
    int64_t keys_of_a_name
    int64_t most_words

cdef struct Folding:
    uint64_t seed
    Limits limits
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
    uint8_t is_separator[256]


cdef inline bint has_name(
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
        if node.hash == wanted and has_name(node, parent, name, length, separator, kind):
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
    target.has_lost[0] |= node.has_lost[0]
    target.has_lost[1] |= node.has_lost[1]
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
    node.holds_any_name = False
    if kind != LITERAL:
        node.numbered = NULL
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
    cdef int at
    for index in range(tree.size):
        size += room_for(nodes[index].length)
        size += room_for(nodes[index].distinct.count * sizeof(uint32_t))
        size += room_for(sizeof(Numbered)) if nodes[index].holds_names else 0
        for at in range(nodes[index].examples.count):
            size += room_for(nodes[index].examples.items[at].length)
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


cdef inline void copy_node(Folding* folding, Fold* to, const Node* node) noexcept nogil:
    """Copy what a node has, but for its children."""
    cdef int at
    to.last_source = to
    to.name = <const uint8_t*>copied(folding, node.name, node.length)
    to.length = node.length
    to.separator = node.separator
    to.kind = node.kind
    to.keys = node.keys
    to.memory = node.memory
    to.has_lost[0], to.has_lost[1] = node.has_lost[0], node.has_lost[1]
    to.was_literal = node.kind == LITERAL
    to.name_hash = name_hash(node.name, node.length) if to.was_literal else 0
    to.distinct.hashes = <uint32_t*>copied(folding, node.distinct.hashes, node.distinct.count * sizeof(uint32_t))
    to.distinct.count = node.distinct.count
    to.examples = node.examples
    for at in range(node.examples.count):
        to.examples.items[at].key = <uint8_t*>copied(
            folding, node.examples.items[at].key, node.examples.items[at].length
        )
    to.tallies = copied_tallies(folding, node.tallies)


cdef inline Numbered* copied_numbered(Folding* folding, const Node* node) noexcept nogil:
    cdef Numbered made
    memset(&made, 0, sizeof(Numbered))
    made.name = <const uint8_t*>copied(folding, node.name, node.length)
    made.length = node.length
    return <Numbered*>copied(folding, &made, sizeof(Numbered))


cdef inline bint copy_tree(Folding* folding, const Tree* tree) noexcept nogil:
    """Copy all nodes, level by level, into a folding that is all zero; False where there is no memory."""
    cdef const Node* child
    cdef const Node* next
    cdef Numbered* numbered
    cdef size_t done = 0, filled = 1
    cdef Node** origins = walked(tree)
    folding.seed = tree.seed
    folding.limits = tree.limits
    folding.shared = tree.shared
    memcpy(folding.is_separator, tree.is_separator, sizeof(folding.is_separator))
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
    copy_node(folding, &folding.nodes[0], tree.root)
    while done < filled:
        child = origins[done].first
        numbered = NULL
        while child != NULL:
            if child.holds_names and child.first != NULL:  # the names in its place
                numbered = copied_numbered(folding, child)
                child = child.first
            if not child.holds_names:
                origins[filled] = <Node*>child
                copy_node(folding, &folding.nodes[filled], child)
                folding.nodes[filled].numbered = numbered
                append_fold(folding, &folding.nodes[done], &folding.nodes[filled])
                filled += 1
            next = child.next
            if next == NULL and numbered != NULL:
                numbered = NULL
                next = child.parent.next
            child = next
        done += 1
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


cdef inline bint is_heavy(const Folding* folding, const Fold* node, const Threshold* final) noexcept nogil:
    """Whether a name is heavy in its namespace or in the keyspace."""
    cdef const Fold* root = &folding.nodes[0]
    return is_reached(final, node.keys, &node.memory, node.parent.keys, root.keys, &root.memory)


cdef inline bint is_named(const Fold* node, bint space) noexcept nogil:
    """Whether a node is a key, or a namespace, with a name of its own."""
    return not node.is_generic and is_space(node.separator) == space


cdef inline int compare_numbered(const void* one, const void* other) noexcept nogil:
    """Order names by separator and by what they fold to."""
    cdef const Fold* left = (<const Fold**>one)[0]
    cdef const Fold* right = (<const Fold**>other)[0]
    cdef size_t shorter = left.numbered.length if left.numbered.length < right.numbered.length else right.numbered.length
    cdef int order
    if left.separator != right.separator:
        return -1 if left.separator < right.separator else 1
    order = memcmp(left.numbered.name, right.numbered.name, shorter)
    return order if order else (left.numbered.length > right.numbered.length) - (
        left.numbered.length < right.numbered.length
    )


cdef inline void judge_numbers(Folding* folding, Fold* parent, bint space, Fold** names) noexcept nogil:
    """Tell which names of a namespace fold because very many differ in their numbers only; `names` has room for all."""
    cdef uint32_t most = folding.limits.numbered if space else folding.limits.numbered_keys
    cdef size_t count = 0, first = 0, last, index
    cdef bint is_whole
    cdef Fold* child = parent.first
    while child != NULL:
        if is_named(child, space) and child.numbered != NULL:
            names[count] = child
            count += 1
        child = child.next
    qsort(names, count, sizeof(Fold*), compare_numbered)
    while first < count:
        last = first + 1
        while last < count and not compare_numbered(&names[first], &names[last]):
            last += 1
        child = names[first]
        is_whole = last - first > most or find_fold(
            folding, parent, child.numbered.name, child.numbered.length, child.separator, PATTERN
        ) != NULL
        for index in range(first, last):
            names[index].is_whole = is_whole
            names[index].is_one_of_many = last - first > folding.limits.children
        first = last


cdef inline void merge_names(
    Folding* folding, Fold* parent, bint space, const Threshold* final, Fold** names
) noexcept nogil:
    """Merge light keys, or namespaces, of a namespace that has too many of them."""
    cdef Fold* child = parent.first
    cdef Fold* next
    cdef const Numbered* numbered
    cdef Bytes target
    cdef size_t left = 0
    judge_numbers(folding, parent, space, names)
    while child != NULL:
        next = child.next
        numbered = child.numbered
        if is_named(child, space) and numbered != NULL:
            if child.is_whole or (child.is_one_of_many and not is_heavy(folding, child, final)):
                take_out_fold(folding, child)
                merge_as(folding, parent, child, numbered.name, numbered.length, child.separator, PATTERN)
        child = next
    child = parent.first
    while child != NULL:
        left += is_named(child, space)
        child = child.next
    child = parent.first if parent.has_lost[space] or left > folding.limits.children else NULL
    while child != NULL:
        next = child.next
        if is_named(child, space) and not is_heavy(folding, child, final):
            take_out_fold(folding, child)
            target = any_name(child.name, child.length, child.kind == PATTERN, folding.is_separator)
            merge_as(folding, parent, child, target.start, target.length, child.separator, PATTERN)
        child = next


cdef inline bint gather_distinct(const Fold* fold, Distinct* into) noexcept nogil:
    """Add the hashes of all segments that a pattern stands for to others."""
    cdef const Fold* source = fold
    while source != NULL:
        if source.was_literal:
            if not add_hash(into, source.name_hash):
                return False
        elif not merge_distinct(into, &source.distinct):
            return False
        source = source.next_source
    return True


cdef inline void gather_examples(const Fold* fold, Examples* into) noexcept nogil:
    """Add references to the examples of all sources of a node, as many as are kept."""
    cdef const Fold* source = fold
    cdef int index, at
    while source != NULL:
        for index in range(source.examples.count):
            at = place_of_example(into, &source.examples.items[index])
            if at >= 0:
                insert_example(into, at, &source.examples.items[index])
        source = source.next_source


cdef inline bint name_patterns(Folding* folding, Fold* parent, const Growth* growth) noexcept nogil:
    """Have names below a node that were merged be identifiers where their number grows with the keys."""
    cdef Fold* child = parent.first
    cdef Fold* last = parent.last
    cdef Fold* next
    cdef Fold* target
    cdef Distinct names
    cdef int32_t separator
    cdef bint is_done = True
    while child != NULL and is_done:
        next = child.next if child != last else NULL
        if child.kind == PATTERN and child.length == 3 and memcmp(child.name, b"{*}", 3) == 0:
            memset(&names, 0, sizeof(Distinct))
            is_done = gather_distinct(child, &names)
            if is_done and grows(&names, child.keys, growth.keys_of_a_name, growth.most_words):
                separator = child.separator
                take_out_fold(folding, child)
                merge_as(folding, parent, child, <const uint8_t*>b"{id}", 4, separator, PATTERN)
                target = find_fold(folding, parent, <const uint8_t*>b"{id}", 4, separator, PATTERN)
                target.holds_any_name = True
            free(names.hashes)
        child = next
    return is_done


cdef inline bint merge_light_folds(Folding* folding, const Threshold* final, const Growth* growth) noexcept nogil:
    """Merge light names of namespaces that have too many, level by level from the root."""
    cdef Fold* root = &folding.nodes[0]
    cdef Fold* parent
    cdef Fold* child
    cdef Fold** names
    cdef size_t done = 0, most = folding.slots
    names = <Fold**>malloc(most * sizeof(Fold*))
    if names == NULL:
        return False
    folding.order[0] = root
    folding.count = 1
    while done < folding.count:
        parent = folding.order[done]
        done += 1
        merge_names(folding, parent, False, final, names)
        merge_names(folding, parent, True, final, names)
        if not name_patterns(folding, parent, growth):
            free(names)
            return False
        child = parent.first
        while child != NULL:
            folding.order[folding.count] = child
            folding.count += 1
            child = child.next
    free(names)
    return True


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
            ranked[count].group = node != root and is_light_key(
                node.kind, node.separator, node.keys, &node.memory, root.keys, &root.memory
            )
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
            elif child.kind != OTHER and not is_empty_key(child.length, child.separator, child.kind):
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
