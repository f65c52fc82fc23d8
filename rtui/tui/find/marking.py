"""Which part of a shown name a query was about, to be highlighted.

A text or an expression marks where it was found, a glob its literal parts from left to right. Places are found in the
bytes of a name and then in the text that is shown of it, which may be cut in the middle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.regex import RegexError, compiled
from rtui.analysis.query.terms import GLOB, REGEX, TEXT
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.styled_text import Line, Role, Span

Places = Callable[[bytes], Iterator[tuple[int, int]]]
"""Yields places in a name, as pairs of offsets."""

_GLOB_PART: Final = re.compile(rb"[*?]+|\[[^\]]*\]|\\(.)", re.DOTALL)

_CONTINUATION: Final = 0xC0, 0x80
"""Which bits of a byte tell that it goes on with a character of UTF-8, and what they are then."""


class Marker:
    """Finds what the terms of a query are about."""

    def __init__(self, query: Query) -> None:
        self._places = [found for term in query.terms if not term.is_negated and (found := _places(term)) is not None]

    def places(self, name: bytes) -> list[tuple[int, int]]:
        """Return places in a name that don't overlap, in order, never within a character."""
        found: list[tuple[int, int]] = []
        for first, last in sorted(place for places in self._places for place in places(name)):
            start, end = _whole(name, first, -1), _whole(name, last, 1)
            if start < end and (not found or found[-1][1] <= start):
                found.append((start, end))
        return found


def _whole(name: bytes, at: int, step: int) -> int:
    """Return the offset of a border between characters at or beside another offset."""
    mask, continuation = _CONTINUATION
    for _ in range(3):
        if not 0 < at < len(name) or name[at] & mask != continuation:
            break
        at += step
    return at


def _places(term: Term) -> Places | None:
    if term.name == TEXT:
        return _text_places([term.names[0]], is_any_case=term.names[0] == term.names[0].lower())
    if term.name == GLOB:
        return _text_places(_literals(term.names[0]), is_any_case=False)
    if term.name == REGEX:
        try:
            search: Any = compiled(term.names[0])
        except RegexError:
            return None

        def places(name: bytes) -> Iterator[tuple[int, int]]:
            found = search(name)
            if found is not None:
                yield found.span()

        return places
    return None


def _literals(glob: bytes) -> list[bytes]:
    """Return the parts of a glob that stand for themselves."""
    parts, at, text = [], 0, b""
    for found in _GLOB_PART.finditer(glob):
        text += glob[at : found.start()]
        at = found.end()
        if found[1] is not None:
            text += found[1]
        else:
            parts.append(text)
            text = b""
    return [part for part in (*parts, text + glob[at:]) if part]


def _text_places(texts: Sequence[bytes], *, is_any_case: bool) -> Places:
    def places(name: bytes) -> Iterator[tuple[int, int]]:
        searched, at = (name.lower() if is_any_case else name), 0
        for text in texts:
            start = searched.find(text, at)
            if start < 0:
                return
            at = start + len(text)
            yield start, at

    return places


def marked_spans(name: bytes, shown: SafeText, marker: Marker, show: Callable[[bytes], SafeText]) -> Line:
    """Return the text that is shown of a name, cut or not, as spans with what was searched for highlighted.

    `show` returns the whole text of a part of the name.
    """
    places = marker.places(name)
    if not places:
        return (Span(shown),)
    whole = show(name)
    borders = [len(show(name[:at])) for place in places for at in place]
    kept_head = _common(whole, shown)
    kept_tail = 0 if kept_head == len(whole) else _common(whole[::-1], shown[::-1])
    kept_tail = min(kept_tail, len(shown) - kept_head)
    shift = len(shown) - len(whole)
    cuts = {0, len(shown)}
    marked: list[tuple[int, int]] = []
    for start, end in zip(borders[::2], borders[1::2], strict=True):
        if start < kept_head:
            marked.append((start, min(end, kept_head)))
        if end > len(whole) - kept_tail:
            marked.append((max(start, len(whole) - kept_tail) + shift, end + shift))
    for place in marked:
        cuts.update(place)
    return tuple(
        Span(SafeText(shown[start:end]), Role.ACCENT if _is_in(start, end, marked) else Role.TEXT)
        for start, end in pairwise(sorted(cuts))
    )


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_in(start: int, end: int, places: Sequence[tuple[int, int]]) -> bool:
    return any(first <= start and end <= last for first, last in places)
