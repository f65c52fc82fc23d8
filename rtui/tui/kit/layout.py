"""Layout of lines: pieces of which the important ones fit, labelled facts, tabs, and paragraphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.styled_text import Line, Role, Span, cut, gap, left, line_width, literal, wrap

BETWEEN = Span(SafeText(" · "), Role.FAINT)
"""Separates pieces of one line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line that is shown in full or not at all."""

    rank: int
    """Pieces of the highest rank are left out first; those of rank 0 stay."""
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


LABEL_CELLS: Final = 10
"""Width of a label with the blanks after it."""

NAME_LINES: Final = 2
"""A name takes this many lines, whatever its length."""

MARGIN: Final = 1
"""Blank cells at each side of a panel."""


class Fact(NamedTuple):
    """A labelled value."""

    label: SafeText
    value: SafeText
    role: Role = Role.TEXT


NO_FACT: Final = Fact(literal(""), literal(""))
"""An empty place of the grid."""


def name_lines(name: SafeText, width: int, role: Role = Role.STRONG) -> list[Line]:
    """Return a name on its lines, cut in the middle when it is too long for them."""
    lines: list[Line] = [(gap(MARGIN), Span(part, role)) for part in wrap(name, width - 2 * MARGIN, NAME_LINES)]
    return lines + [()] * (NAME_LINES - len(lines))


def pair_line(first: Fact, second: Fact, width: int) -> Line:
    """Return two facts side by side."""
    half = (width - 2 * MARGIN) // 2
    return (gap(MARGIN), *_placed(first, half), *_placed(second, width - 2 * MARGIN - half))


def single_line(fact: Fact, width: int) -> Line:
    """Return one fact over the whole width."""
    return (gap(MARGIN), *_placed(fact, width - 2 * MARGIN))


def _placed(fact: Fact, cells: int) -> Line:
    """Return a fact in exactly `cells` cells."""
    return Span(left(fact.label, LABEL_CELLS), Role.MUTED), Span(left(fact.value, cells - LABEL_CELLS), fact.role)


def tab(title: SafeText, *, is_chosen: bool) -> Span:
    """Return the title of a tab or of a choice; the chosen one is marked by more than colour."""
    return Span(SafeText(f"[{title}]"), Role.TAB_ON) if is_chosen else Span(SafeText(f" {title} "), Role.TAB)


def tab_line(titles: Sequence[SafeText], chosen: int, notes: Sequence[Line], width: int) -> Line:
    """Return the titles of the tabs and the first note that fits."""
    line: list[Span] = [gap(MARGIN)]
    for index, title in enumerate(titles):
        line += (tab(title, is_chosen=index == chosen), gap(1))
    room = width - line_width(tuple(line)) - MARGIN
    for note in notes:
        if note and line_width(note) <= room:
            return (*line, gap(room - line_width(note)), *note)
    return tuple(line)


def prose(text: SafeText, width: int, role: Role) -> list[Line]:
    """Break a sentence at its blanks into lines of at most `width` cells with margins."""
    room = width - 2 * MARGIN
    lines: list[Line] = []
    current = ""
    for word in str(text).split(" "):
        joined = f"{current} {word}" if current else word
        if current and len(joined) > room:
            lines.append((gap(MARGIN), Span(cut(SafeText(current), room), role)))
            current = word
        else:
            current = joined
    return [*lines, (gap(MARGIN), Span(cut(SafeText(current), room), role))]
