"""The forms of thousands of segments: one look-up for each shape, as far as the shape decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from rtui.keyspace.text.identifiers import Form, Identifiers
from rtui.table.node_index import NodeIndex
from rtui.table.segments import BLOCK, Hashes, Places, Segments, mixed, text_hashes
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
    """The forms looked up so far."""

    def forms(self, some: Places, identifiers: Identifiers) -> Iterator[tuple[bytes, Form]]:
        """Yield some segments with their forms."""
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
        """Return the number of the label of each shape, _UNDECIDED or _UNKNOWN."""
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
            if _is_decided(text) and (is_exact or label is None or not _HAS_DIGIT(label)):
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


def _is_decided(text: bytes) -> bool:
    return b"=" not in text and b"::" not in text and text.count(b":") < _IP6_COLONS


def pattern_hashes(patterns: list[bytes]) -> Hashes:
    """Return hashes of patterns, distinct from those of names with the same bytes."""
    return mixed(text_hashes(patterns) + np.uint64(1)) | np.uint64(1)
