"""Adds keys to the tree of patterns, as `rtui.analysis.aggregate.pattern_tree` and `placement` do.

A key goes down from the root, a segment a level. Take `user:42:cart`. A segment is compared with the forms of
identifiers first (`_forms`): `user` has none, and the child of the root is looked up by its name, its separator and its
kind, a literal name (`_nodes`). `42` is an identifier, so below that `{id}` is looked up, as a pattern, and `42` counted
among what it stands for (`_distinct`). What is not found is made. Then the weights of the nodes on the path are brought up to date, and the facts of the key are added to the
tally of its type at the last node (`_tallies`). After each batch the tree is kept small (`_shrinking`).

Nothing here needs Python: names come as addresses and lengths, facts as arrays of numbers.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr

from rtui.server.engine._distinct cimport add_example, add_hash, crc32, spread_hash
from rtui.server.engine._forms cimport (
    LONGEST,
    MOST_PATTERN,
    Form,
    any_name,
    end_of_ip6,
    end_of_other_whole,
    is_java_text,
    may_have_ip6,
    pattern_of,
)
from rtui.server.engine._nodes cimport LITERAL, NO_SEPARATOR, PATTERN, Node, Tree, find, make, note_crowd
from rtui.server.engine._shrinking cimport coarsen_to_budget, shrink
from rtui.server.engine._tallies cimport Columns, TallyData, add_facts, tally_of, wide_add


cdef inline Node* numbered_child(Tree* tree, Node* parent, const uint8_t* name, size_t length) noexcept nogil:
    """Return the node of a name among those that differ in their numbers."""
    cdef Node* found = find(tree, parent, name, length, parent.separator, LITERAL)
    if found != NULL:
        return found
    found = make(tree, parent, name, length, parent.separator, LITERAL)
    return found if found != NULL and add_hash(&parent.distinct, spread_hash(name, length) | 1) else NULL


cdef inline Node* child_of(
    Tree* tree, Node* parent, const uint8_t* name, size_t length, int32_t separator
) noexcept nogil:
    """Return the child that a segment belongs to, a new one if need be; NULL where there is no memory."""
    cdef uint8_t buffer[MOST_PATTERN]
    cdef Form form
    cdef Node* found
    if length > LONGEST:
        form.is_numbered = False
        form.pattern = any_name(name, length, False, tree.is_separator)
    else:
        form = pattern_of(name, length, tree.is_separator, buffer)
        if not form.pattern.length:
            found = find(tree, parent, name, length, separator, LITERAL)
            return found if found != NULL else make(tree, parent, name, length, separator, LITERAL)
    found = find(tree, parent, form.pattern.start, form.pattern.length, separator, PATTERN)
    if found == NULL:
        found = make(tree, parent, form.pattern.start, form.pattern.length, separator, PATTERN)
        if found == NULL:
            return NULL
        found.holds_names = form.is_numbered
    if not found.holds_names:
        return found if add_hash(&found.distinct, spread_hash(name, length) | 1) else NULL
    if not form.is_numbered and not note_crowd(tree, found):
        return NULL
    return numbered_child(tree, found, name, length)


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
    cdef const uint8_t* start
    cdef const uint8_t* tag
    cdef const uint8_t* tag_end = NULL
    cdef const uint8_t* found
    cdef Node* node = tree.root
    cdef size_t whole  # where an identifier ends that may hold separators
    cdef bint has_address
    cdef int level, levels = tree.levels
    if levels and tree.java_separator != NO_SEPARATOR and is_java_text(key, length):
        node = child_of(tree, node, <const uint8_t*>b"\xac\xed\x00\x05t\xff", 6, tree.java_separator)
        if node == NULL:
            return NULL
        levels -= 1
        key += 7
        length -= 7
    start = key
    tag = <const uint8_t*>memchr(key, b'{', length) if length else NULL
    has_address = tree.has_addresses and may_have_ip6(key, length)
    if tag != NULL:
        tag_end = <const uint8_t*>memchr(tag + 1, b'}', end - tag - 1) if end - tag > 1 else NULL
    if tag_end == NULL or tag_end == tag + 1:
        tag = tag_end = end
    else:
        tag_end += 1
    for level in range(levels):
        whole = end_of_ip6(key, length, start - key, tree.is_separator) if has_address else 0
        if not whole and tree.has_other_wholes:
            whole = end_of_other_whole(key, length, start - key, tree.is_separator)
        found = find_separator(tree, key + whole if whole else start, end, tag, tag_end)
        if found == end:
            return child_of(tree, node, start, end - start, NO_SEPARATOR)
        node = child_of(tree, node, start, found - start, found[0])
        if node == NULL:
            return NULL
        start = found + 1
    return node


cdef inline bint add_keys(
    Tree* tree, size_t count, const uint8_t** keys, const size_t* lengths, int32_t key_type, const Columns* columns
) noexcept nogil:
    """Add keys of one type, and keep the tree small."""
    cdef size_t index
    cdef Node* node
    cdef TallyData* tally
    for index in range(count):
        node = locate(tree, keys[index], lengths[index])
        if node != NULL and not add_example(&node.examples, crc32(keys[index], lengths[index]), keys[index], lengths[index]):
            return False
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
