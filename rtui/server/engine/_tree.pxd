"""The tree of patterns, as `rtui.analysis.aggregate.pattern_tree` has it, with its walk-through.

A key goes down from the root, a segment a level. Take `user:42:cart`. A segment is compared with the forms of
identifiers first (`_forms`): `user` has none, and the child of the root is looked up by its parent, its name, its
separator and its kind (a literal name) in one hash table for the whole tree. `42` is an identifier, so below that `{id}`
is looked up, as a pattern. What is not found is made. Then the weights of the nodes on the path are brought up to date,
and the facts of the key are added to the tally of its type at the last node (`_tallies`).

A node is one piece of memory with its name at the end; its children are a linked list in the order in which they were
made, since ties are decided by it. The table holds hashes and pointers to nodes, with linear probing; a node that is taken out
lets those behind it move up, so that there are no tombstones. The hashes are seeded, because names are chosen by
whoever writes to the server.

Functions that need memory return False or NULL where there is none: the tree is consistent then, but a batch may have
been added in part.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from rtui.server.engine._forms cimport LONGEST, MOST_PATTERN, Bytes, pattern_of
from rtui.server.engine._pool cimport Pool, free_pool, give, set_up_pool, take
from rtui.server.engine._tallies cimport (
    Columns,
    ExpirySet,
    Pools,
    Shared,
    TallyData,
    Wide,
    add_facts,
    coarsen,
    free_pools,
    free_tallies,
    merge_tallies,
    set_up_pools,
    tally_of,
    wide_add,
    wide_float,
    wide_is_positive,
    wide_is_share,
    wide_join,
    wide_take,
)

cdef enum:
    LITERAL = 0
    OTHER = 1
    PATTERN = 2
    NO_SEPARATOR = -1
    FEWEST_NODES = 64
    SHORT_NAME = 40

cdef struct Node:
    Node* parent
    Node* first
    Node* last
    Node* previous
    Node* next
    TallyData* tallies
    uint64_t hash
    int64_t keys  # here and below
    Wide memory
    uint32_t named  # children with a name of their own
    int32_t separator
    uint8_t kind
    bint is_crowded
    bint is_generic
    bint is_in_crowds
    bint is_kept
    size_t length
    uint8_t name[1]

cdef struct Threshold:
    int64_t of_all
    int64_t of_parent
    int64_t least_keys

cdef struct Limits:
    uint32_t children
    uint32_t names
    size_t nodes
    size_t expiry_bins
    uint64_t keys_between_coarsening

cdef struct Slot:
    uint64_t hash
    Node* node  # NULL where the slot is free

cdef struct Tree:
    Node* root
    Slot* table
    size_t slots
    size_t size  # nodes, the root among them
    uint64_t seed
    uint64_t since_coarsening
    uint64_t revision
    Node** crowds  # namespaces with too many names, latest last
    size_t crowd_count
    size_t crowd_capacity
    const int32_t* type_ranks  # by type, its place among all in their order
    int levels
    int separator  # the only one, or NO_SEPARATOR
    uint8_t is_separator[256]
    Limits limits
    Threshold interim
    Shared shared
    Pools pools
    Pool nodes  # with short names

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


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    value = (value ^ (value >> 32)) * <uint64_t>0xD6E8FEB86659FD93
    value = (value ^ (value >> 32)) * <uint64_t>0xD6E8FEB86659FD93
    return value ^ (value >> 32)


cdef inline uint64_t hash_of(
    uint64_t seed, const void* parent, const uint8_t* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    cdef uint64_t found = seed ^ (<uint64_t><size_t>parent * <uint64_t>0x9E3779B97F4A7C15)
    cdef uint64_t word
    found += (<uint64_t>length << 16) + (<uint64_t>(separator + 1) << 2) + kind
    while length >= 8:
        memcpy(&word, name, 8)
        found = mixed(found ^ word)
        name += 8
        length -= 8
    word = 0
    if length:
        memcpy(&word, name, length)
    return mixed(found ^ word)


cdef inline bint is_generic_name(const uint8_t* name, size_t length, uint8_t kind) noexcept nogil:
    """Whether this is one of the few patterns that any namespace has room for."""
    if kind == OTHER:
        return True
    if kind == LITERAL:
        return False
    if length == 3:
        return memcmp(name, b"{*}", 3) == 0
    if length == 4:
        return memcmp(name, b"{id}", 4) == 0 or memcmp(name, b"{ip}", 4) == 0
    if length == 6:
        return memcmp(name, b"{date}", 6) == 0 or memcmp(name, b"{uuid}", 6) == 0 or memcmp(name, b"{hash}", 6) == 0
    return length == 7 and memcmp(name, b"{email}", 7) == 0


cdef inline Node* find(
    const Tree* tree, const Node* parent, const uint8_t* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    """Return a child, or NULL."""
    cdef uint64_t wanted = hash_of(tree.seed, parent, name, length, separator, kind)
    cdef size_t at = wanted & (tree.slots - 1)
    cdef Node* node = tree.table[at].node
    while node != NULL:
        if (
            tree.table[at].hash == wanted
            and node.parent == parent
            and node.length == length
            and node.separator == separator
            and node.kind == kind
            and memcmp(node.name, name, length) == 0
        ):
            return node
        at = (at + 1) & (tree.slots - 1)
        node = tree.table[at].node
    return NULL


cdef inline void enter(Slot* table, size_t slots, uint64_t hash, Node* node) noexcept nogil:
    cdef size_t at = hash & (slots - 1)
    while table[at].node != NULL:
        at = (at + 1) & (slots - 1)
    table[at].hash = hash
    table[at].node = node


cdef inline bint reserve_slot(Tree* tree) noexcept nogil:
    """Make room for one more node in the table."""
    cdef Slot* table
    cdef size_t at, slots
    if 2 * (tree.size + 1) <= tree.slots:
        return True
    slots = 2 * tree.slots if tree.slots else FEWEST_NODES
    table = <Slot*>calloc(slots, sizeof(Slot))
    if table == NULL:
        return False
    for at in range(tree.slots):
        if tree.table[at].node != NULL:
            enter(table, slots, tree.table[at].hash, tree.table[at].node)
    free(tree.table)
    tree.table = table
    tree.slots = slots
    return True


cdef inline bint note_crowd(Tree* tree, Node* node) noexcept nogil:
    cdef Node** grown
    if node.is_in_crowds:
        return True
    if tree.crowd_count == tree.crowd_capacity:
        grown = <Node**>realloc(tree.crowds, (2 * tree.crowd_capacity + 8) * sizeof(Node*))
        if grown == NULL:
            return False
        tree.crowds = grown
        tree.crowd_capacity = 2 * tree.crowd_capacity + 8
    tree.crowds[tree.crowd_count] = node
    tree.crowd_count += 1
    node.is_in_crowds = True
    return True


cdef inline void forget_crowd(Tree* tree, Node* node) noexcept nogil:
    cdef size_t at, kept = 0
    if not node.is_in_crowds:
        return
    for at in range(tree.crowd_count):
        if tree.crowds[at] != node:
            tree.crowds[kept] = tree.crowds[at]
            kept += 1
    tree.crowd_count = kept
    node.is_in_crowds = False


cdef inline Node* new_node(Tree* tree, const uint8_t* name, size_t length) noexcept nogil:
    cdef Node* made
    if length <= SHORT_NAME:
        made = <Node*>take(&tree.nodes)
    else:
        made = <Node*>malloc(sizeof(Node) + length) if length < <size_t>-1 - sizeof(Node) else NULL
    if made != NULL:
        memset(made, 0, sizeof(Node))
        made.length = length
        if length:
            memcpy(made.name, name, length)
    return made


cdef inline void free_node(Tree* tree, Node* node) noexcept nogil:
    if node.length <= SHORT_NAME:
        give(&tree.nodes, node)
    else:
        free(node)


cdef inline Node* make(
    Tree* tree, Node* parent, const uint8_t* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    """Add a child at the end; NULL where there is no memory."""
    cdef Node* made
    if not reserve_slot(tree):
        return NULL
    made = new_node(tree, name, length)
    if made == NULL:
        return NULL
    made.separator = separator
    made.kind = kind
    made.parent = parent
    made.is_generic = is_generic_name(name, length, kind)
    made.hash = hash_of(tree.seed, parent, name, length, separator, kind)
    made.previous = parent.last
    if parent.last == NULL:
        parent.first = made
    else:
        parent.last.next = made
    parent.last = made
    enter(tree.table, tree.slots, made.hash, made)
    tree.size += 1
    if not made.is_generic:
        parent.named += 1
        if parent.named > tree.limits.children:
            parent.is_crowded = True
            if parent.named > tree.limits.names and not note_crowd(tree, parent):
                return NULL
    return made


cdef inline void take_out(Tree* tree, Node* node) noexcept nogil:
    """Take a node out of the table and from among its siblings; it keeps what is below it."""
    cdef size_t mask = tree.slots - 1
    cdef size_t hole = node.hash & mask, at
    while tree.table[hole].node != node:
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        if tree.table[at].node == NULL:
            break
        if ((at - tree.table[at].hash) & mask) >= ((at - hole) & mask):
            tree.table[hole] = tree.table[at]
            hole = at
    tree.table[hole].node = NULL
    if node.previous == NULL:
        node.parent.first = node.next
    else:
        node.previous.next = node.next
    if node.next == NULL:
        node.parent.last = node.previous
    else:
        node.next.previous = node.previous
    node.parent.named -= not node.is_generic


cdef inline Node* child_of(
    Tree* tree, Node* parent, const uint8_t* name, size_t length, int32_t separator
) noexcept nogil:
    """Return the child that a segment belongs to, a new one if need be; NULL where there is no memory."""
    cdef uint8_t buffer[MOST_PATTERN]
    cdef Bytes pattern
    cdef uint8_t kind = PATTERN
    cdef Node* found
    if length > LONGEST:
        found = find(tree, parent, name, length, separator, LITERAL)
        if found != NULL:
            return found
        pattern.start = <const uint8_t*>b"{*}"
        pattern.length = 3
    else:
        pattern = pattern_of(name, length, tree.is_separator, buffer)
        if not pattern.length:
            pattern.start = name
            pattern.length = length
            kind = LITERAL
    found = find(tree, parent, pattern.start, pattern.length, separator, kind)
    return found if found != NULL else make(tree, parent, pattern.start, pattern.length, separator, kind)


cdef inline const uint8_t* find_separator(
    const Tree* tree, const uint8_t* at, const uint8_t* end, const uint8_t* tag, const uint8_t* tag_end
) noexcept nogil:
    """Return the first separator outside of the hash tag, or the end; `tag` is the end where there is no tag."""
    while True:
        if tree.separator != NO_SEPARATOR:
            at = <const uint8_t*>memchr(at, tree.separator, end - at) if at < end else NULL
            if at == NULL:
                return end
        else:
            while at < end and not tree.is_separator[at[0]]:
                at += 1
        if at < tag or at >= tag_end:
            return at
        at = tag_end


cdef inline Node* locate(Tree* tree, const uint8_t* key, size_t length) noexcept nogil:
    """Return the node of a key, a new one if need be; NULL where there is no memory."""
    cdef const uint8_t* end = key + length
    cdef const uint8_t* start = key
    cdef const uint8_t* tag = <const uint8_t*>memchr(key, b'{', length) if length else NULL
    cdef const uint8_t* tag_end = NULL
    cdef const uint8_t* found
    cdef Node* node = tree.root
    cdef int level
    if tag != NULL:
        tag_end = <const uint8_t*>memchr(tag + 1, b'}', end - tag - 1) if end - tag > 1 else NULL
    if tag_end == NULL or tag_end == tag + 1:
        tag = tag_end = end
    else:
        tag_end += 1
    for level in range(tree.levels):
        found = find_separator(tree, start, end, tag, tag_end)
        if found == end:
            return child_of(tree, node, start, end - start, NO_SEPARATOR)
        node = child_of(tree, node, start, found - start, found[0])
        if node == NULL:
            return NULL
        start = found + 1
    return node


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


cdef inline Node** walked(const Tree* tree) noexcept nogil:
    """Return all nodes, parents first and the last child of each before the others; to be freed."""
    cdef Node** found = <Node**>malloc(2 * tree.size * sizeof(Node*))
    cdef Node** stack
    cdef size_t count = 0, waiting = 1
    cdef Node* node
    cdef Node* child
    if found == NULL:
        return NULL
    stack = found + tree.size
    stack[0] = tree.root
    while waiting:
        waiting -= 1
        node = stack[waiting]
        found[count] = node
        count += 1
        child = node.first
        while child != NULL:
            stack[waiting] = child
            waiting += 1
            child = child.next
    return found


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


cdef inline bint add_keys(
    Tree* tree, size_t count, const uint8_t** keys, const size_t* lengths, int32_t key_type, const Columns* columns
) noexcept nogil:
    """Add keys of one type, and keep the tree small."""
    cdef size_t index
    cdef Node* node
    cdef TallyData* tally
    tree.revision += 1
    for index in range(count):
        node = locate(tree, keys[index], lengths[index])
        tally = tally_of(&node.tallies, &tree.shared, key_type) if node != NULL else NULL
        if tally == NULL or not add_facts(tally, &tree.shared, columns, index):
            return False
        while node != NULL:
            node.keys += 1
            if columns.memory_bytes != NULL:
                wide_add(&node.memory, columns.memory_bytes[index])
            node = node.parent
    if not shrink(tree):
        return False
    tree.since_coarsening += count
    if tree.since_coarsening > tree.limits.keys_between_coarsening:
        tree.since_coarsening = 0
        return coarsen_to_budget(tree)
    return True


cdef inline void free_below(Tree* tree, Node* node) noexcept nogil:
    """Free a node and all below it; not the table."""
    cdef Node* child = node.first
    cdef Node* next
    while child != NULL:
        next = child.next
        free_below(tree, child)
        child = next
    free_tallies(node.tallies, &tree.shared)
    free_node(tree, node)


cdef inline bint set_up_tree(Tree* tree) noexcept nogil:
    """Make the root and the table of a tree whose settings are there and all else is zero."""
    set_up_pools(&tree.pools)
    set_up_pool(&tree.nodes, sizeof(Node) + SHORT_NAME)
    tree.shared.pools = &tree.pools
    tree.root = new_node(tree, NULL, 0)
    if tree.root == NULL:
        return False
    tree.root.separator = NO_SEPARATOR
    tree.size = 1
    return reserve_slot(tree)


cdef inline void free_tree(Tree* tree) noexcept nogil:
    if tree.root != NULL:
        free_below(tree, tree.root)
    tree.root = NULL
    free(tree.table)
    free(tree.crowds)
    free(tree.shared.bucket_lows)
    free_pools(&tree.pools)
    free_pool(&tree.nodes)
