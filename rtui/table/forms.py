"""The forms of thousands of segments: asked for once for all of a shape, as far as the shape decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from rtui.keyspace.text.identifiers import Form, Identifiers
from rtui.table.segments import BLOCK, Hashes, Places, Segments, mixed, text_hashes
from rtui.table.words import LABELS, Flags, Words

MOST_REMEMBERED: Final = 65_536
"""Shapes and forms that are remembered; beyond that all are forgotten and learnt anew."""

IGNORED: Final = -3
"""In the place of the number of a label: a form that was not asked for."""

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
    """By segment: whether it is an identifier, so the label stands for it however few there are."""


class Forms:
    """Remembers the forms of segments by their shapes.

    The shape decides but for digits that stay in the pattern, which are in a second shape, and for what may be Base64,
    of which it does not know more, or an IPv6 address, where it matters which digit is first.
    """

    def __init__(self, identifiers: Identifiers) -> None:
        self._identifiers = identifiers
        self._forget()

    def _forget(self) -> None:
        self.labels: list[bytes | None] = [None]
        """The pattern of identifiers, or what names with a number are folded to; None for all other names."""
        self._is_sure = [False]
        self._hashes = np.zeros(1, np.uint64)
        self._numbers: dict[tuple[bytes | None, bool], int] = {(None, False): 0}
        self._of_shapes: dict[int, int] = {}
        self._loose: set[int] = set()
        """Shapes, with numbers of any length, of segments whose forms were asked for."""
        self._of_whole = np.array([self._number(Form(label, 0)) if label else _UNKNOWN for label in LABELS])

    def of(self, segments: Segments, places: Places, groups: Places, fewest: int) -> Labels:
        """Return the labels of some segments; their numbers hold until the next call.

        Where at least `fewest` segments of a group have shapes of which nothing is known, and each its own, asking for
        all their forms would not be worth it: these are IGNORED, but in groups below 0.
        """
        if max(len(self.labels), len(self._of_shapes)) > MOST_REMEMBERED:
            self._forget()
        numbers, shapes = np.empty(len(places), np.int64), np.empty(len(places), np.uint64)
        loose = np.zeros(len(places), np.uint64)
        for some in _blocks(segments, places):
            words = Words(segments, places[some])
            numbers[some], shapes[some] = self._of_whole[words.labels()], words.shapes()
            new = some[numbers[some] == _UNKNOWN]
            numbers[new] = [self._of_shapes.get(shape, _UNKNOWN) for shape in shapes[new].tolist()]
            is_unknown = (numbers[some] == _UNKNOWN) & words.is_plain
            if is_unknown.any():
                loose[some] = np.where(is_unknown, words.shapes(is_loose=True) | np.uint64(1), np.uint64(0))
        new = np.flatnonzero(loose)
        is_new = [shape not in self._loose for shape in loose[new].tolist()]
        _ignore(numbers, new[is_new], loose, groups, fewest)
        self._loose.update(loose[new[numbers[new] == _UNKNOWN]].tolist())
        self._ask(segments, places, shapes, numbers, keeps_digits=False)
        left = np.flatnonzero(numbers == _UNDECIDED)
        if len(left):
            rest = places[left]
            shapes = np.concatenate(
                [Words(segments, rest[some]).shapes(keeps_digits=True) for some in _blocks(segments, rest)]
            )
            of_rest = np.array([self._of_shapes.get(shape, _UNKNOWN) for shape in shapes.tolist()], np.int64)
            self._ask(segments, rest, shapes, of_rest, keeps_digits=True)
            alone = np.flatnonzero(of_rest == _UNDECIDED)
            of_rest[alone] = [self._number(self._identifiers.form(text)) for text in segments.texts(rest[alone])]
            numbers[left] = of_rest
        if len(self._hashes) < len(self.labels):
            more = [label or b"" for label in self.labels[len(self._hashes) :]]
            self._hashes = np.concatenate((self._hashes, pattern_hashes(more)))
        known = np.maximum(numbers, 0)
        return Labels(numbers, self._hashes[known], np.array(self._is_sure)[known])

    def _ask(self, segments: Segments, places: Places, shapes: Hashes, numbers: Places, *, keeps_digits: bool) -> None:
        """Fill in the numbers of labels that are not known, by the form of one segment of each shape."""
        new = np.flatnonzero(numbers == _UNKNOWN)
        asked, first, inverse = np.unique(shapes[new], return_index=True, return_inverse=True)
        found = np.full(len(asked), _UNDECIDED, np.int64)
        for at, (shape, text) in enumerate(zip(asked.tolist(), segments.texts(places[new[first]]), strict=True)):
            form = self._identifiers.form(text)
            label = form.pattern or form.numbered
            if _is_decided(text) and (keeps_digits or label is None or not _HAS_DIGIT(label)):
                found[at] = self._number(form)
            self._of_shapes[shape] = int(found[at])
        numbers[new] = found[inverse]

    def _number(self, form: Form) -> int:
        kind = form.pattern or form.numbered, form.pattern is not None
        number = self._numbers.setdefault(kind, len(self.labels))
        if number == len(self.labels):
            self.labels.append(kind[0])
            self._is_sure.append(kind[1])
        return number


def _ignore(numbers: Places, some: Places, loose: Hashes, groups: Places, fewest: int) -> None:
    """Ignore segments of these that have a shape alone, where there are many in a group."""
    _, first, counts = np.unique(
        mixed(loose[some] + groups[some].astype(np.uint64)), return_index=True, return_counts=True
    )
    alone = some[first[counts == 1]]
    alone = alone[groups[alone] >= 0]
    _, inverse, counts = np.unique(groups[alone], return_inverse=True, return_counts=True)
    numbers[alone[counts[inverse] >= fewest]] = IGNORED


def _blocks(segments: Segments, places: Places) -> Iterator[Places]:
    """Yield places among these, as many at a time as have some bytes together."""
    ends = np.cumsum(segments.ends[places] - segments.starts[places] + 1)
    first = 0
    while first < len(places):
        end = int(np.searchsorted(ends, ends[first] + BLOCK // 2))
        yield np.arange(first, end)
        first = end


def _is_decided(text: bytes) -> bool:
    return b"=" not in text and b"::" not in text and text.count(b":") < _IP6_COLONS


def pattern_hashes(patterns: list[bytes]) -> Hashes:
    """Return hashes of patterns, which are others than those of names of the same bytes."""
    return mixed(text_hashes(patterns) + np.uint64(1)) | np.uint64(1)
