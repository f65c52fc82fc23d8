"""The nodes of the tree of patterns, and the hash table by which they are found.

A node is one piece of memory with its name at the end; its children are a linked list in the order in which they were
made, since ties are decided by it. One table for the whole tree holds hashes and pointers to nodes, by parent, name,
separator and kind, with linear probing; a node that is taken out lets those behind it move up, so that there are no
tombstones.

Functions that need memory return False or NULL where there is none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from rtui.server.engine._distinct cimport Distinct, Examples, free_examples
from rtui.server.engine._hashing cimport hash_bytes
from rtui.server.engine._pool cimport Pool, free_pool, give, set_up_pool, take
from rtui.server.engine._tallies cimport Pools, Shared, TallyData, Wide, free_pools, free_tallies, set_up_pools

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
    int64_t paid_keys  # how many of them count no more in favour of it
    double paid_memory
    Distinct distinct  # of a pattern, the segments that it stands for
    Examples examples
    uint32_t named[2]  # keys and namespaces among its children that have a name of their own
    uint8_t has_lost[2]  # whether some of these were merged since there were too many
    int32_t separator
    uint8_t kind
    bint holds_names  # whether its children are names that would fold to it, if there were more of them
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
    uint32_t numbered_keys
    uint32_t numbered
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
    Node** crowds  # namespaces with too many names, latest last
    size_t crowd_count
    size_t crowd_capacity
    const int32_t* type_ranks  # by type, its place among all in their order
    int levels
    int separator  # the only one, or NO_SEPARATOR
    int java_separator  # behind the mark of names that Java has serialised, or NO_SEPARATOR
    uint8_t is_separator[256]
    Limits limits
    uint32_t most_names
    uint32_t most_numbered
    bint has_addresses  # whether a separator is a part of IPv6 addresses
    bint has_other_wholes  # whether one is a part of UUIDs or IPv4 addresses
    Shared shared
    Pools pools
    Pool nodes  # with short names


cdef inline uint64_t hash_of(
    uint64_t seed, const void* parent, const uint8_t* name, size_t length, int32_t separator, uint8_t kind
) noexcept nogil:
    cdef uint64_t found = seed ^ (<uint64_t><size_t>parent * <uint64_t>0x9E3779B97F4A7C15)
    found += (<uint64_t>length << 16) + (<uint64_t>(separator + 1) << 2) + kind
    return hash_bytes(found, name, length)


cdef inline bint is_generic_name(const uint8_t* name, size_t length, uint8_t kind) noexcept nogil:
    """Whether this is the empty name or one of the few patterns that any namespace has room for."""
    if kind == OTHER:
        return True
    if kind == LITERAL:
        return length == 0
    if length == 3:
        return memcmp(name, b"{*}", 3) == 0
    if length == 4:
        return memcmp(name, b"{id}", 4) == 0 or memcmp(name, b"{ip}", 4) == 0 or memcmp(name, b"{**}", 4) == 0
    if length == 6:
        return (
            memcmp(name, b"{date}", 6) == 0
            or memcmp(name, b"{uuid}", 6) == 0
            or memcmp(name, b"{hash}", 6) == 0
            or memcmp(name, b"{{**}}", 6) == 0
        )
    return length == 7 and memcmp(name, b"{email}", 7) == 0


cdef inline bint is_empty_key(size_t length, int32_t separator, uint8_t kind) noexcept nogil:
    """Whether keys end here, in a separator: a rest is something behind it."""
    return kind == LITERAL and length == 0 and separator == NO_SEPARATOR


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
    free(node.distinct.hashes)
    free_examples(&node.examples)
    if node.length <= SHORT_NAME:
        give(&tree.nodes, node)
    else:
        free(node)


cdef inline bint is_space(int32_t separator) noexcept nogil:
    """Return 1 for a namespace, which goes on behind a separator, 0 for a key."""
    return separator != NO_SEPARATOR


cdef inline uint32_t most_named(const Tree* tree, const Node* parent, bint is_space) noexcept nogil:
    """Return how many keys or namespaces below a node have a name of their own."""
    if not parent.holds_names:
        return tree.most_names
    if is_space or tree.most_numbered < tree.limits.numbered_keys:
        return tree.most_numbered
    return tree.limits.numbered_keys


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
        parent.named[is_space(separator)] += 1
        if parent.named[is_space(separator)] > most_named(tree, parent, is_space(separator)):
            if not note_crowd(tree, parent):
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
    node.parent.named[is_space(node.separator)] -= not node.is_generic


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
    tree.most_names, tree.most_numbered = tree.limits.names, tree.limits.numbered
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
