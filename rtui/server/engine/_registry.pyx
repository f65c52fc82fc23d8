"""A registry as tables for the engine of a scan, and what it has counted of keys by it.

`rtui.server.engine.registry_tables` makes one; `ScanEngine` counts with it without the GIL.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from rtui.server.engine._distinct cimport Examples, free_examples
from rtui.server.engine._registered cimport (
    MOST_FURTHER,
    MOST_KNOWN,
    MOST_SEGMENTS,
    MOST_VALUES,
    UNDECIDED,
    Known,
    Node,
    Part,
    Pattern,
    Segment,
    Slot,
    Text,
    text_hash,
)
from rtui.server.engine._registry_counts cimport (
    COUNT_SLOTS,
    HAS_LENGTH,
    HAS_MEMORY,
    HAS_TTL,
    IS_SAMPLED,
    LAYOUTS,
    MOST_COUNTS,
    MOST_REGISTRY_TYPES,
    NameCount,
    judge,
)

import os

from rtui.registry import naming as rules


cdef Text text_of(bytes text):
    cdef Text found
    found.start, found.length = <const uint8_t*>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
    return found


cdef list keys_of(Examples* examples):
    """Return the examples, which are then forgotten."""
    cdef int at
    cdef list found = []
    for at in range(examples.count):
        found.append((<const char*>examples.items[at].key)[: examples.items[at].length])
    free_examples(examples)
    return found


cdef class RegistryTable:
    """One registry."""

    def __cinit__(self, matching, naming, list ranges, has_least, uint32_t enabled, uint32_t kept):
        """`matching` and `naming` are the tables of the matcher and the rules, with separators of one byte.

        `ranges` has for each entry, and last for keys without one, the least and the most of TTL, size and length.
        """
        cdef int at, fact
        cdef int64_t* bounds
        self.kept = [matching, naming]
        self.tables.seed = int.from_bytes(os.urandom(8), "little")
        for one in matching.separators:
            self.tables.is_separator[<uint8_t>one[0]] = True
        self.tables.separator_count = len(matching.separators)
        self.tables.longest_key = matching.longest_key
        self.tables.pattern_count = len(matching.segments)
        self.fill_patterns(matching.segments, naming)
        self.fill_nodes(matching)
        self.tables.has_names = bool(enabled | kept)
        for at in range(256):
            self.tables.of_bytes[at] = naming.of_bytes[at]
            self.tables.is_other[at] = naming.others[at]
        self.tables.beginning_count = len(naming.styles_below)
        self.tables.beginnings = <Text*>self.room(len(naming.styles_below), sizeof(Text))
        self.tables.styles_of = <int*>self.room(len(naming.styles_below), sizeof(int))
        for at, (beginning, styles) in enumerate(naming.styles_below):
            self.tables.beginnings[at], self.tables.styles_of[at] = text_of(beginning), styles
        self.tables.styles, self.tables.deepest = naming.styles, naming.deepest
        self.tables.longest, self.tables.hardest = naming.longest, naming.hardest
        self.tables.shortest = naming.shortest
        self.tables.IS_SINGLE, self.tables.IS_LONG = rules.IS_SINGLE, rules.IS_LONG
        self.tables.style_shift = rules.STYLE_SHIFT
        self.tables.separator_rule, self.tables.mixed_rule = rules.SEPARATOR, rules.MIXED
        self.tables.case_rule, self.tables.abbreviation_rule = rules.CASE, rules.ABBREVIATION
        self.tables.has_glossary = naming.glossary is not None
        self.tables.words = self.slots(naming.glossary or {}, &self.tables.word_mask)
        self.tables.long_rule, self.tables.huge_rule = rules.LONG, rules.HUGE
        self.tables.short_rule, self.tables.depth_rule = rules.SHORT, rules.DEPTH
        self.tables.empty_rule, self.tables.tag_empty_rule = rules.EMPTY, rules.TAG_EMPTY
        self.tables.tag_unbalanced_rule = rules.TAG_UNBALANCED
        self.tables.known = <Known*>self.room(2 * MOST_KNOWN, sizeof(Known))
        self.counts.tables = &self.tables
        self.counts.entries = len(matching.segments)
        self.counts.enabled, self.counts.kept = enabled, kept
        self.counts.ttls = <int64_t*>self.room(2 * len(ranges), sizeof(int64_t))
        self.counts.sizes = <int64_t*>self.room(2 * len(ranges), sizeof(int64_t))
        self.counts.lengths = <int64_t*>self.room(2 * len(ranges), sizeof(int64_t))
        self.counts.has_least = <uint8_t*>self.room(len(ranges), 1)
        for at, facts in enumerate(ranges):
            for fact in range(3):
                bounds = self.counts.ttls if fact == 0 else self.counts.sizes if fact == 1 else self.counts.lengths
                bounds[2 * at], bounds[2 * at + 1] = facts[fact]
            self.counts.has_least[at] = bool(has_least[at])
        self.counts.memory_bytes = <uint64_t*>self.room(len(ranges), sizeof(uint64_t))
        self.counts.expiring = <uint64_t*>self.room(len(ranges), sizeof(uint64_t))
        self.counts.longest_ms = <int64_t*>self.room(len(ranges), sizeof(int64_t))
        self.counts.examples = <Examples*>self.room(len(ranges), sizeof(Examples))
        self.counts.names = <NameCount*>self.room(COUNT_SLOTS, sizeof(NameCount))

    def __dealloc__(self):
        cdef size_t at
        for at in range(MOST_REGISTRY_TYPES * LAYOUTS):
            free(self.counts.layouts[at])
        if self.counts.examples != NULL:
            for at in range(<size_t>self.counts.entries):
                free_examples(&self.counts.examples[at])
        if self.counts.names != NULL:
            for at in range(COUNT_SLOTS):
                free_examples(&self.counts.names[at].examples)

    cdef void* room(self, size_t count, size_t size) except NULL:
        """Return memory for so many items, all zero, which lives as long as this."""
        cdef bytearray made = bytearray(max(1, count) * size + 8)
        cdef char* start = made
        self.kept.append(made)
        return start + (8 - <size_t>start % 8) % 8

    cdef Slot* slots(self, by_text, size_t* mask) except NULL:
        """Return a hash table of nodes by text, and the mask of its places."""
        cdef size_t count = 2, at
        cdef Slot* made
        cdef Text text
        while count < 2 * <size_t>len(by_text) + 1:
            count *= 2
        made = <Slot*>self.room(count, sizeof(Slot))
        for at in range(count):
            made[at].node = -1
        for name, node in by_text.items():
            text = text_of(name)
            at = text_hash(&self.tables, text.start, text.length) & (count - 1)
            while made[at].node >= 0:
                at = (at + 1) & (count - 1)
            made[at].text, made[at].node = text, node
        mask[0] = count - 1
        return made

    cdef int fill_patterns(self, segments, naming) except -1:
        cdef Pattern* pattern
        cdef Segment* segment
        cdef Part* part
        cdef int index, at, values
        self.tables.patterns = <Pattern*>self.room(len(segments), sizeof(Pattern))
        for index, own in enumerate(segments):
            pattern = &self.tables.patterns[index]
            pattern.count, pattern.is_simple = len(own), True
            pattern.spanning = pattern.spanning_too = -1
            pattern.words, pattern.longest = naming.of_patterns[index], naming.longest_of[index]
            pattern.segments = <Segment*>self.room(len(own), sizeof(Segment))
            values = 0
            for at, one in enumerate(own):
                segment = &pattern.segments[at]
                segment.separator = one.separator[0] if one.separator else -1
                if one.spans:
                    if pattern.spanning < 0:
                        pattern.spanning = at
                    elif pattern.spanning_too < 0:
                        pattern.spanning_too = at
                    else:
                        pattern.is_simple = False
                codes = [part_row.code for part_row in one.parts]
                if sum([code != 0 for code in codes]) > 1 + MOST_FURTHER or values + len(codes) > MOST_VALUES:
                    pattern.is_simple = False
                for row in one.parts:
                    part = <Part*>self.room(1, sizeof(Part))
                    part.form, part.text = row.code, text_of(row.text)
                    part.option_count = len(row.options)
                    part.options = <Text*>self.room(len(row.options), sizeof(Text))
                    for place, option in enumerate(row.options):
                        part.options[place] = text_of(option)
                    part.length_count = len(row.lengths)
                    part.lengths = <int64_t*>self.room(2 * len(row.lengths), sizeof(int64_t))
                    for place, (low, high) in enumerate(row.lengths):
                        part.lengths[2 * place], part.lengths[2 * place + 1] = low, high
                    if row.code and segment.value == NULL:
                        segment.value, segment.value_number = part, values
                    elif row.code and segment.further_count < MOST_FURTHER:
                        segment.between[segment.further_count] = segment.after
                        segment.further[segment.further_count] = part
                        segment.further_count += 1
                        segment.after = NULL
                    elif segment.value == NULL:
                        segment.before = part
                    else:
                        segment.after = part
                    values += row.code != 0
            for group in naming.names_of[index]:
                pattern.names |= <uint32_t>1 << <int>min(group, 31)
            for group in naming.own_of[index]:
                pattern.own |= <uint32_t>1 << <int>min(group, 31)
        return 0

    cdef int fill_nodes(self, matching) except -1:
        cdef Node* node
        cdef int index, at
        self.tables.nodes = <Node*>self.room(len(matching.nodes), sizeof(Node))
        for index, own in enumerate(matching.nodes):
            node = &self.tables.nodes[index]
            node.at, node.length, node.others = own.at, own.length, own.others
            node.trial_count = len(own.trial)
            node.trial = <int*>self.room(len(own.trial), sizeof(int))
            for at in range(node.trial_count):
                node.trial[at] = own.trial[at]
            node.slots = self.slots(own.by_text, &node.mask)
        for at in range(MOST_SEGMENTS + 1):
            self.tables.by_count[at] = -1
        if self.tables.separator_count < 2:
            for count, first in matching.by_sequence.items():
                if count <= MOST_SEGMENTS:
                    self.tables.by_count[<int>count] = first
        else:
            self.tables.sequences = self.slots(matching.by_sequence, &self.tables.sequence_mask)
        self.tables.still_open_count = len(matching.still_open)
        self.tables.still_open = <int*>self.room(len(matching.still_open), sizeof(int))
        for at in range(self.tables.still_open_count):
            self.tables.still_open[at] = matching.still_open[at]
        return 0

    def set_type(self, int number, wrong):
        """Say which entries expect another type than that of this number in the engine."""
        cdef uint8_t* made
        if not 0 <= number < MOST_REGISTRY_TYPES:
            return
        made = <uint8_t*>self.room(self.counts.entries + 1, 1)
        for entry in wrong:
            made[<int>entry] = True
        self.counts.is_wrong[number] = made

    def judge(self, list keys not None):
        """Return for each key its entry, -1 for none, and what is found of its name; None where Python has to decide."""
        cdef Text text
        cdef int entry, found
        cdef list judged = []
        for key in keys:
            text = text_of(key)
            entry = judge(&self.counts, text.start, text.length, &found)
            judged.append(None if entry == UNDECIDED or found == UNDECIDED else (entry, found))
        return judged

    @property
    def is_filling(self):
        """Whether there is room for few more counts of names."""
        return self.counts.name_count > MOST_COUNTS // 2

    def take(self, list types not None):
        """Return what has been counted since the last call, and forget it; `types` are the names by number.

        Layouts (type, whether TTL, memory, length are known and it is sampled, keys by entry), bytes by entry, keys
        that expire and the longest TTL by entry, examples by entry, and counts of names: entry, namespace, what is
        found, keys, keys of known memory, bytes, examples. Keys without entry are under -1.
        """
        cdef int number, layout, at
        cdef uint64_t* keys
        cdef NameCount* one
        cdef list layouts = [], sums = [], lives = [], examples = [], names = []
        for number in range(min(len(types), MOST_REGISTRY_TYPES)):
            for layout in range(LAYOUTS):
                keys = self.counts.layouts[number * LAYOUTS + layout]
                if keys == NULL:
                    continue
                found = {}
                for at in range(self.counts.entries + 1):
                    if keys[at]:
                        found[at if at < self.counts.entries else -1] = keys[at]
                        keys[at] = 0
                if found:
                    has = (HAS_TTL, HAS_MEMORY, HAS_LENGTH, IS_SAMPLED)
                    layouts.append((types[number], tuple([(layout & bit) != 0 for bit in has]), found))
        for at in range(self.counts.entries + 1):
            index = at if at < self.counts.entries else -1
            if self.counts.memory_bytes[at]:
                sums.append((index, self.counts.memory_bytes[at]))
            if self.counts.expiring[at]:
                lives.append((index, self.counts.expiring[at], self.counts.longest_ms[at]))
            if self.counts.examples[at].count:
                examples.append((index, keys_of(&self.counts.examples[at])))
            self.counts.memory_bytes[at] = self.counts.expiring[at] = 0
        if self.counts.name_count:
            for at in range(COUNT_SLOTS):
                one = &self.counts.names[at]
                if one.hash:
                    namespace = (<const char*>one.namespace)[: one.length]
                    known = one.memory_keys, one.memory_bytes
                    names.append((one.entry, namespace, one.found, one.keys, *known, keys_of(&one.examples)))
                    one.hash = one.keys = one.memory_keys = one.memory_bytes = 0
            self.counts.name_count = 0
        return layouts, sums, lives, examples, names
