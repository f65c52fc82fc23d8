"""Finds the pattern of each name of a table, level by level from the root, in a tree of bounded size.

    names ──► segments: hash and kind of each ──► level by level: hash of parent and segment ──► index of all nodes
                    of segments that have no node by their hash, each once ◄──────────────────────────┘
                     ├──► what their characters tell: `<id>`, `<uuid>`, `<hash>`
                     ├──► by their shape, the form of all segments of that shape (`Forms`) ──► index of all nodes
                     └──► names: a node of their own, or what too many names are merged into (`pattern_nodes`)

Python code runs for each new shape and each new node, not for each row. Which names get a node is decided before it is
made, so the tree does not grow by more nodes than are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rtui.keyspace.text.identifiers import ANY, DEEPEST_LEVEL, PLACEHOLDERS, Form, Identifiers, NodeKind
from rtui.keyspace.text.segments import Separators
from rtui.table.pattern_nodes import MOST_BYTES, MOST_NUMBERED_KEYS, REST, Ints, Name, NodeIndex, PatternNodes, below
from rtui.table.segments import (
    BLOCK,
    Hashes,
    Places,
    SegmentKind,
    Segments,
    SegmentSplitter,
    distinct_hashes,
    mixed,
    text_hashes,
)
from rtui.table.words import LABELS, Flags, Words

MOST_REMEMBERED: Final = 65_536
"""Shapes and forms that are remembered; beyond that all are forgotten and learnt anew."""

FEWEST_ASKED: Final = 32
"""Segments of one frame, roughly, that are looked up before others of it are ignored."""

IGNORED: Final = -3
"""The label number of an ignored segment, whose form was not looked up."""

_UNKNOWN: Final = -2
_UNDECIDED: Final = -1

_HAS_DIGIT: Final = re.compile(rb"[0-9]").search
_IP6_COLONS: Final = 7


class Labels(NamedTuple):
    """The labels of some segments."""

    numbers: Places
    """By segment: the number of its label, see `Forms.labels`, or IGNORED."""
    hashes: Hashes
    """By segment: the hash of its label; 0 for a name without a number."""
    is_sure: Flags
    """By segment: whether it is an identifier, so that its label applies even if there are few."""


class _Asked(NamedTuple):
    """Segments whose labels are wanted."""

    segments: Segments
    places: Places
    groups: Places
    numbers: Places
    """Of their labels, as far as these are known."""
    shapes: Hashes
    known: dict[bytes, Form]

    def forms(self, some: Places, identifiers: Identifiers) -> Iterator[tuple[bytes, Form]]:
        for text in self.segments.texts(self.places[some]):
            form = self.known.get(text)
            if form is None:
                form = self.known[text] = identifiers.form(text)
            yield text, form


class Forms:
    """Remembers the forms of segments by their shapes.

    A shape decides the form, except for digits that stay in the pattern, which are in a second shape, and for possible
    Base64, which a shape can't confirm, or an IPv6 address, where it matters which digit is first.
    """

    def __init__(self, identifiers: Identifiers) -> None:
        self._identifiers = identifiers
        self._forget()

    def _forget(self) -> None:
        self.labels: list[bytes | None] = [None]
        """The pattern of identifiers, or of names with a number; None for all other names."""
        self._is_sure = [False]
        self._hashes = np.zeros(1, np.uint64)
        self._numbers: dict[tuple[bytes | None, bool], int] = {(None, False): 0}
        self._of_shapes = NodeIndex()
        """By shape, one more than the number of its label, or than _UNDECIDED."""
        self._loose = NodeIndex()
        """Shapes, with numbers of any length, of segments whose forms were looked up."""
        self._of_whole = np.array([self._number(Form(label, 0)) if label else _UNKNOWN for label in LABELS])

    def of(self, segments: Segments, places: Places, groups: Places, fewest: int) -> Labels:
        """Return the labels of some segments; their numbers hold until the next call.

        Where at least `fewest` segments of a group have shapes of which nothing is known, and each its own, asking for
        all their forms would not be worth it: these are IGNORED, but in groups below 0.
        """
        if max(len(self.labels), len(self._of_shapes), len(self._loose)) > MOST_REMEMBERED:
            self._forget()
        numbers, shapes = np.empty(len(places), np.int64), np.empty(len(places), np.uint64)
        asked = _Asked(segments, places, groups, numbers, shapes, {})
        for some in _blocks(segments, places):
            words = Words(segments, places[some])
            numbers[some], shapes[some] = self._of_whole[words.labels()], words.shapes()
        new = np.flatnonzero(numbers == _UNKNOWN)
        numbers[new] = self._known(shapes[new])
        self._ask(asked, np.flatnonzero(numbers == _UNKNOWN), fewest, is_exact=False)
        left = np.flatnonzero(numbers == _UNDECIDED)
        for some in _blocks(segments, places[left]):
            shapes[left[some]] = Words(segments, places[left[some]]).shapes(keeps_digits=True)
        numbers[left] = self._known(shapes[left])
        self._ask(asked, left[numbers[left] == _UNKNOWN], fewest, is_exact=True)
        alone = np.flatnonzero(numbers == _UNDECIDED)
        numbers[alone] = [self._number(form) for _, form in asked.forms(alone, self._identifiers)]
        if len(self._hashes) < len(self.labels):
            more = [label or b"" for label in self.labels[len(self._hashes) :]]
            self._hashes = np.concatenate((self._hashes, pattern_hashes(more)))
        known = np.maximum(numbers, 0)
        return Labels(numbers, self._hashes[known], np.array(self._is_sure)[known])

    def _known(self, shapes: Hashes) -> Places:
        return self._of_shapes.find(shapes) - np.int64(1)

    def _ask(self, asked: _Asked, some: Places, fewest: int, *, is_exact: bool) -> None:
        """Fill in the labels of some segments by their forms, one segment for each shape; ignored segments are left
        out."""
        self._ignore(asked, some[asked.groups[some] >= 0], fewest, is_exact=is_exact)
        some = some[asked.numbers[some] == _UNKNOWN]
        shapes, first, inverse = np.unique(asked.shapes[some], return_index=True, return_inverse=True)
        found = np.full(len(shapes), _UNDECIDED, np.int64)
        for at, (text, form) in enumerate(asked.forms(some[first], self._identifiers)):
            label = form.pattern or form.numbered
            if (b"=" not in text and b"::" not in text and text.count(b":") < _IP6_COLONS) and (
                is_exact or label is None or not _HAS_DIGIT(label)
            ):
                found[at] = self._number(form)
        self._of_shapes.add(shapes, (found + 1).astype(np.int32))
        asked.numbers[some] = found[inverse]

    def _ignore(self, asked: _Asked, new: Places, fewest: int, *, is_exact: bool) -> None:
        """Ignore segments of these, of which nothing is known, whose loose shape nothing else has.

        Of those whose shape alone does not decide some are asked for first, and then all of them, unless these are
        names or have a pattern each of its own.
        """
        loose, frames = np.empty((2, len(new)), np.uint64)
        for some in _blocks(asked.segments, asked.places[new]):
            words = Words(asked.segments, asked.places[new[some]])
            loose[some] = words.shapes(keeps_digits=is_exact, is_loose=True)
            frames[some] = words.frames()
        loose += np.uint64(is_exact)
        groups = asked.groups[new].astype(np.uint64)
        is_new = self._loose.find(loose) < 0
        new, loose, frames, groups = new[is_new], loose[is_new], frames[is_new], groups[is_new]
        _, first, counts = np.unique(mixed(loose + groups), return_index=True, return_counts=True)
        alone = first[counts == 1]
        alike = mixed(frames[alone] + groups[alone])
        order = np.argsort(alike, kind="stable")
        for members in np.split(alone[order], np.flatnonzero(np.diff(alike[order])) + 1):
            few = members[:: 1 + len(members) // FEWEST_ASKED] if frames[members].any() else members[:0]
            if len(members) < (FEWEST_ASKED if len(few) else fewest):
                continue
            patterns = [form.pattern for _, form in asked.forms(new[few], self._identifiers)]
            if not any(patterns) or len(set(patterns)) == len(patterns):
                asked.numbers[new[members]] = IGNORED
        self._loose.add(np.unique(loose[asked.numbers[new] == _UNKNOWN]), 0)

    def _number(self, form: Form) -> int:
        kind = form.pattern or form.numbered, form.pattern is not None
        number = self._numbers.setdefault(kind, len(self.labels))
        if number == len(self.labels):
            self.labels.append(kind[0])
            self._is_sure.append(kind[1])
        return number


def _blocks(segments: Segments, places: Places) -> Iterator[Places]:
    """Yield places among these, as many at a time as have some bytes together."""
    ends = np.cumsum(segments.ends[places] - segments.starts[places] + 1)
    first = 0
    while first < len(places):
        end = max(first + 1, int(np.searchsorted(ends, BLOCK + (ends[first - 1] if first else 0), side="right")))
        yield np.arange(first, end)
        first = end


def pattern_hashes(patterns: list[bytes]) -> Hashes:
    """Return hashes of patterns, distinct from those of names with the same bytes."""
    return mixed(text_hashes(patterns) + np.uint64(1)) | np.uint64(1)


MOST_NODES: Final = 16_384

ROWS: Final = 131_072

LEAST_OF_NAMES: Final = 512
LEAST_OF_ALL: Final = 32_768
"""In a namespace that lost names, new ones get a node if they have more than one part in this many of the keys or bytes
placed of the names that come with them, and of all placed."""

_LITERAL, _PATTERN, _OTHER = NodeKind.LITERAL, NodeKind.PATTERN, NodeKind.OTHER

_OF_KIND: Final = {SegmentKind.ID: b"<id>", SegmentKind.UUID: b"<uuid>", SegmentKind.HASH: b"<hash>"}

Nodes = NDArray[np.int32]


class _New(NamedTuple):
    """Segments that have no node below their parent, each once."""

    hashes: Hashes
    """Of parent and segment."""
    parents: Nodes
    segments: Places
    separators: Places
    keys: Ints
    memory: Ints


class Patterns(PatternNodes):
    """The patterns of a keyspace with these separators, `depth` levels deep."""

    def __init__(self, separators: Separators, depth: int | None = None, most: int = MOST_NODES) -> None:
        super().__init__(separators.values, most)
        self.depth = DEEPEST_LEVEL if depth is None else max(0, min(depth, DEEPEST_LEVEL))
        self._given = separators, depth, most
        self._splitter = SegmentSplitter(separators, self.depth)
        self._forms = Forms(self.identifiers)
        self._separators = (b"", *separators.values)
        self._of_separators = text_hashes(self._separators)
        self._of_kinds = np.zeros(len(SegmentKind), np.uint64)
        self._of_kinds[list(_OF_KIND)] = pattern_hashes(list(_OF_KIND.values()))
        self._placed = 1, 0.0
        """Rows and bytes that are being placed."""
        self._before: Ints | None = None
        """The keys and bytes at and below each node before this table, once they were computed; else None."""
        self._index = NodeIndex()
        self._indexed = -1
        """How many nodes were merged when the index was made: it is right as long as no more are."""
        self._names: Hashes = np.empty(0, np.uint64)
        self._is_pattern: NDArray[np.bool_] = np.empty(0, bool)
        self._is_rest: NDArray[np.bool_] = np.empty(0, bool)
        """By node: the hash of its name, whether it stands for names of a form, and for the rest of its parent."""

    def __getstate__(self) -> dict[str, object]:
        """Leave out what is only remembered to place names sooner."""
        made = Patterns(*self._given)
        remembered = ("_splitter", "_forms", "_index", "_indexed", "_names", "_is_pattern", "_is_rest", "_before")
        return vars(self) | {name: vars(made)[name] for name in remembered}

    def place(self, table: pl.DataFrame) -> NDArray[np.int32]:
        """Return the node of each row of a table with the columns `name` and `raw`, and `memory_bytes` if known."""
        parts = [self._place(table[first : first + ROWS]) for first in range(0, table.height, ROWS)]
        return self.own()[np.concatenate(parts)] if parts else np.zeros(0, np.int32)

    def fold(self) -> NDArray[np.int32]:
        renumbered = super().fold()
        self._names, self._indexed = np.empty(0, np.uint64), -1
        self._is_pattern = self._is_rest = np.empty(0, bool)
        return renumbered

    def _place(self, table: pl.DataFrame) -> NDArray[np.int32]:
        segments = self._splitter.split(table)
        of_kinds = self._of_kinds[segments.kinds]
        names = np.where(of_kinds != 0, of_kinds, segments.hashes) + self._of_separators[segments.separators]
        sizes = np.zeros(table.height)
        if "memory_bytes" in table.columns:
            sizes = table["memory_bytes"].fill_null(0).cast(pl.Float64).to_numpy()
        nodes = np.zeros(table.height, np.int32)
        self._placed, self._before = (table.height, float(sizes.sum())), None
        self._index_new()
        if self._indexed != self._merged:
            live = self._live()[1:].astype(np.int32)
            live = live[~self._is_rest[live]]
            above = self._places()[1][live].astype(np.int32)
            self._index.rebuild(below(above, self._names[live]), live)
            self._indexed = self._merged
        rows = np.flatnonzero(segments.counts > 0)
        for level in range(self.depth):
            if not len(rows):
                break
            here, parents = segments.first[rows] + level, nodes[rows]
            hashes = below(parents, names[here])
            found = self._index.find(hashes)
            is_new = found < 0
            if is_new.any():
                new, inverse = self._grouped(
                    segments, parents[is_new], here[is_new], hashes[is_new], sizes[rows[is_new]]
                )
                known = found[~is_new], sizes[rows[~is_new]]
                found[is_new] = self._made(segments, new, known)[inverse]
                self._index_new()
            nodes[rows] = found
            is_pattern, goes_on = self._is_pattern[found], ~self._is_rest[found] & (segments.counts[rows] > level + 1)
            some = here[is_pattern]
            self._distinct.add(found[is_pattern], distinct_hashes(segments.hashes[some], segments.is_coded[some]))
            rows = rows[goes_on]
        self.count(nodes, sizes)
        self.settle()
        return nodes

    def _grouped(
        self, segments: Segments, parents: Nodes, places: Places, hashes: Hashes, sizes: NDArray[np.float64]
    ) -> tuple[_New, Places]:
        """Return each segment of some rows once, and the place of that of each row."""
        found, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        some = places[first]
        keys = np.bincount(inverse, minlength=len(found))
        memory = np.bincount(inverse, sizes, len(found)).clip(max=MOST_BYTES).astype(np.int64)
        return _New(found, parents[first], some, segments.separators[some].astype(np.int64), keys, memory), inverse

    def _made(self, segments: Segments, new: _New, known: tuple[Nodes, NDArray[np.float64]]) -> Nodes:
        """Return nodes for new segments; `known` are the nodes and sizes of all other rows of the level."""
        kinds = segments.kinds[new.segments]
        made = np.full(len(kinds), -1, np.int32)
        for kind, label in _OF_KIND.items():
            for at in np.flatnonzero(kinds == kind).tolist():
                made[at] = self._pattern(new, at, label)
        units, labels = new.hashes.copy(), np.zeros(len(made), np.int64)
        is_pattern = np.zeros(len(made), bool)
        unsure = np.flatnonzero(kinds == SegmentKind.UNSURE)
        if len(unsure):
            made[unsure], labels[unsure], units[unsure], is_pattern[unsure] = self._of_forms(segments, new, unsure)
        is_merged = (kinds == SegmentKind.LONG) | ((labels == IGNORED) & (made < 0))
        names = np.flatnonzero((made < 0) & ~is_merged)
        if len(names):
            is_kept = self._are_kept(new, names, units[names], known)
            is_kept |= segments.starts[new.segments[names]] == segments.ends[new.segments[names]]
            is_merged[names[~is_kept]] = True
            self._leave_to_rest(new, names[is_kept], made)
            names = names[is_kept & (made[names] < 0)]
            texts = segments.texts(new.segments[names])
            for at, text, number in zip(names.tolist(), texts, labels[names].tolist(), strict=True):
                label = self._forms.labels[number]
                if is_pattern[at] and label is not None:
                    made[at] = self._pattern(new, at, label)
                else:
                    name: Name = text, self._separators[new.separators[at]], _LITERAL
                    made[at] = self.child(int(new.parents[at]), name, label)
        some = np.flatnonzero(is_merged)
        made[some] = self._merged_names(segments, new, some, labels[some])
        return made

    def _are_kept(
        self, new: _New, names: Places, units: Hashes, known: tuple[Nodes, NDArray[np.float64]]
    ) -> NDArray[np.bool_]:
        """Return which of these new names get a node of their own; `units` group names that may become one pattern.

        In a namespace where there would be too many, new names and those that have a node pay until half of MOST_NAMES
        have something left; those that have a node keep it for now. If some were lost before, light new ones are lost
        as well, and the others pay alone when they are many enough for that.
        """
        groups, group_of = np.unique(
            new.parents[names] * np.int64(2) + (new.separators[names] > 0), return_inverse=True
        )
        _, first, unit_of = np.unique(units, return_index=True, return_inverse=True)
        group_of = group_of[first]
        left = np.stack([np.bincount(unit_of, values[names]) for values in (new.keys, new.memory)], axis=1)
        least = np.stack([np.bincount(group_of, one) for one in left.T], axis=1) / LEAST_OF_NAMES
        least = np.maximum(least, np.array(self._placed) // LEAST_OF_ALL)
        has_lost = np.array([self.has_lost[group // 2][group % 2] for group in groups.tolist()])
        is_kept = ~has_lost[group_of] | (left > least[group_of]).any(axis=1)
        for at, count in enumerate(np.bincount(group_of[is_kept], minlength=len(groups)).tolist()):
            parent, is_space = int(groups[at] // 2), bool(groups[at] % 2)
            held: list[int] = []
            is_crowded = count > self.most_names // 2
            if not has_lost[at] and (is_crowded := count + len(self.children(parent)) > self.most_names):
                held = [self.children(parent)[some[0]] for some in self.units(parent, is_space=is_space).values()]
                is_crowded = count + len(held) > self.most_names
            if is_crowded:
                members = np.flatnonzero(is_kept & (group_of == at))
                of_members = left[members].astype(np.int64)
                before = self._left(held, *known) if held else of_members[:0]
                is_heavy = self._pay_all(parent, held, np.concatenate((before, of_members)), is_space=is_space)
                is_kept[members] = is_heavy[len(held) :]
        found: NDArray[np.bool_] = is_kept[unit_of]
        return found

    def _leave_to_rest(self, new: _New, some: Places, made: Nodes) -> None:
        """Give new names the node for the rest of their parent where they are lighter than all that others kept."""
        if not self.lightest:
            return
        rows, memory = self._placed
        some = some[np.maximum(new.keys[some] / rows, new.memory[some] / max(1.0, memory)) <= self.lightest]
        parents, inverse = np.unique(new.parents[some], return_inverse=True)
        rests = [self.child(parent, (REST, b"", _OTHER)) for parent in parents.tolist()]
        made[some] = np.array(rests, np.int32)[inverse]

    def _left(self, held: list[int], nodes: Nodes, sizes: NDArray[np.float64]) -> Ints:
        """Return the keys and bytes that some nodes have not paid yet, including those of rows that are not counted
        yet."""
        if self._before is None:
            self._before = np.stack((self.totals(self.keys), self.totals(self.memory)), axis=1)
        left: Ints = -np.array([self.paid.get(node, (0, 0)) for node in held], np.int64)
        counted = np.array(held) < len(self._before)
        left[counted] += self._before[np.array(held)[counted]]
        left[:, 0] += np.bincount(nodes, minlength=len(self))[held]
        left[:, 1] += np.bincount(nodes, sizes, len(self)).astype(np.int64)[held]
        return left

    def _merged_names(self, segments: Segments, new: _New, some: Places, labels: Places) -> Nodes:
        """Return the nodes of names that are too many, or too long, for nodes of their own."""
        made = np.empty(len(some), np.int32)
        is_any = segments.kinds[new.segments[some]] == SegmentKind.NAME
        left = np.flatnonzero(~is_any)
        texts = segments.texts(new.segments[some[left]])
        is_any[left] = [b"{" not in text for text in texts]
        for at, text in zip(left.tolist(), texts, strict=True):
            if not is_any[at]:
                label = self._forms.labels[max(int(labels[at]), 0)]
                name = self.identifiers.any_name(label or text, is_pattern=label is not None)
                made[at] = self._pattern(new, int(some[at]), name)
        alike = some[is_any]
        places = new.parents[alike].astype(np.int64) << 16 | new.separators[alike]
        _, first, inverse = np.unique(places, return_index=True, return_inverse=True)
        made[is_any] = np.array([self._pattern(new, at, ANY) for at in alike[first].tolist()], np.int32)[inverse]
        return made

    def _of_forms(self, segments: Segments, new: _New, some: Places) -> tuple[Nodes, Places, Hashes, NDArray[np.bool_]]:
        """Return by the forms of some segments: nodes, labels, possible pattern units, and whether each is one."""
        parents, separators = new.parents[some], new.separators[some]
        is_light = (new.keys[some] == 1) & (new.memory[some] <= self._placed[1] / LEAST_OF_ALL)
        groups = np.where(is_light, parents * np.int64(2) + (separators > 0), np.int64(-1))
        labels = self._forms.of(
            segments, new.segments[some], groups, FEWEST_ASKED if self.lightest else self.most_names
        )
        for group in np.unique(groups[labels.numbers == IGNORED]).tolist():
            self._lose(group // 2, (not group % 2, bool(group % 2)))
        made = np.full(len(some), -1, np.int32)
        wanted = below(parents, labels.hashes + self._of_separators[separators])
        has_label = labels.numbers > 0
        units = np.where(has_label, wanted, new.hashes[some])
        made[has_label] = self._index.find(wanted[has_label])
        left = np.flatnonzero(has_label & (made < 0))
        groups, first, inverse, counts = np.unique(
            units[left], return_index=True, return_inverse=True, return_counts=True
        )
        is_pattern = np.bincount(inverse, labels.is_sure[left]) > 0
        nodes = np.full(len(groups), -1, np.int32)
        for group, (at, count) in enumerate(zip(left[first].tolist(), counts.tolist(), strict=True)):
            label = self._forms.labels[labels.numbers[at]] or b""
            if label in PLACEHOLDERS:
                nodes[group] = self._pattern(new, int(some[at]), label)
            elif not is_pattern[group]:
                is_pattern[group] = self._is_many(new, int(some[at]), label, count)
        made[left] = nodes[inverse]
        becomes_pattern = np.zeros(len(some), bool)
        becomes_pattern[left] = is_pattern[inverse]
        return made, labels.numbers, units, becomes_pattern

    def _is_many(self, new: _New, at: int, label: bytes, count: int) -> bool:
        """Whether `count` more names that differ in their numbers only make one pattern."""
        parent, separator = int(new.parents[at]), self._separators[new.separators[at]]
        known = self._alike.get((parent, label, separator), ())
        most = self.most_numbered if separator else MOST_NUMBERED_KEYS
        return len(known) + count > most or (label, separator, _PATTERN) in self.children(parent)

    def _pattern(self, new: _New, at: int, label: bytes) -> int:
        """Return the node of a pattern for a new segment; names of the pattern that had nodes are merged into it."""
        return self.child(int(new.parents[at]), (label, self._separators[new.separators[at]], _PATTERN))

    def _index_new(self) -> None:
        first = len(self._names)
        if first == len(self):
            return
        is_pattern = np.array([kind is _PATTERN for kind in self.kinds[first:]])
        texts = self.segments[first:]
        names = np.where(is_pattern, pattern_hashes(texts), text_hashes(texts)) + text_hashes(self.separators[first:])
        self._names = np.concatenate((self._names, names))
        self._is_pattern = np.concatenate((self._is_pattern, is_pattern))
        self._is_rest = np.concatenate((self._is_rest, [kind is _OTHER for kind in self.kinds[first:]]))
        if self._indexed == self._merged:
            parents = np.array(self.parents[first:], np.int32)
            self._index.add(below(parents, names), np.arange(first, len(self), dtype=np.int32))
