"""Lines of which only part may fit: pieces have a rank, and the least important go first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtui.keyspace.display import SafeText
from rtui.tui.ink import Line, Role, Span, line_width

BETWEEN = Span(SafeText(" · "), Role.FAINT)
"""Separates pieces of one line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line that is shown whole or not at all."""

    rank: int
    """The higher, the sooner it goes; 0 stays."""
    line: Line


def fitted(pieces: Sequence[Piece], cells: int, between: Span = BETWEEN) -> Line:
    """Join as many pieces as fit into `cells` cells, in order, those of the lowest rank first."""
    kept: set[int] = set()
    for index in sorted(range(len(pieces)), key=lambda at: pieces[at].rank):
        line = _join([pieces[at] for at in sorted({*kept, index})], between)
        if line_width(line) <= cells or not pieces[index].rank:
            kept.add(index)
    return _join([pieces[at] for at in sorted(kept)], between)


def _join(pieces: Sequence[Piece], between: Span) -> Line:
    """Return the pieces with the separator between them."""
    line: list[Span] = []
    for index, piece in enumerate(pieces):
        if index:
            line.append(between)
        line.extend(piece.line)
    return tuple(line)
