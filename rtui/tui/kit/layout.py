"""Parts of lines: names, ages and bars as this terminal shows them, pieces that fit, tabs, paragraphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.humanize import SECOND_MS, short_duration
from rtui.keyspace.text.display import Display, SafeText
from rtui.tui.kit.styled_text import Line, Role, Span, cut, gap, line_width

TERMINAL: Final = Display()
"""How names and foreign text are written on this terminal; the application chooses whether in ASCII only."""

display: Final = TERMINAL.name
"""Show bytes in at most `limit` characters."""

display_text: Final = TERMINAL.text
"""Show foreign text in at most `limit` characters."""

value_pieces: Final = TERMINAL.value
"""Show bytes of a value in at most `limit` characters, as pieces that are not to be broken."""

value_text_pieces: Final = TERMINAL.value_text
"""Show text of a value in the same way."""

_EIGHTHS: Final = "▏▎▍▌▋▊▉"
_FULL: Final = "█"

FRESH_S: Final = 10
"""Seconds during which facts are fresh and show no age."""

_MINUTE_S: Final = 60


def ago(age_s: float | None) -> SafeText:
    """Return how long ago something was learned, rounded down: `20s ago`, `5m ago`; nothing while it is fresh."""
    if age_s is None or age_s < FRESH_S:
        return SafeText("")
    step_s = FRESH_S if age_s < _MINUTE_S else _MINUTE_S
    return SafeText(f"{short_duration(int(age_s // step_s * step_s) * SECOND_MS)} ago")


def bar(fraction: float, cells: int) -> tuple[SafeText, SafeText]:
    """Return a bar of `cells` cells in eighths: the filled part and the blank rest."""
    eighths = round(max(0.0, min(1.0, fraction)) * cells * 8)
    whole, part = divmod(eighths, 8)
    filled = _FULL * whole + (_EIGHTHS[part - 1] if part else "")
    return SafeText(filled), SafeText(" " * (cells - len(filled)))


BETWEEN = Span(SafeText(" · "), Role.FAINT)
"""Separates pieces of one line."""


LEAST_REASON: Final = 24
"""Cells to which the reason of a failure may be cut, so that the line still explains it."""


@dataclass(frozen=True, slots=True)
class LinePart:
    """A part of a line that is shown in full or not at all, or is cut."""

    rank: int
    """Pieces of the highest rank are left out first; pieces of rank 0 stay."""
    line: Line
    least: int = 0
    """Cells to which a text of one span may be cut if it does not fit; 0 for never."""


def fitted(pieces: Sequence[LinePart], cells: int, between: Span = BETWEEN) -> Line:
    """Join as many pieces as fit into `cells` cells, in order; pieces of the lowest rank are kept first."""
    kept: dict[int, Line] = {}
    for index, piece in sorted(enumerate(pieces), key=lambda one: one[1].rank):
        over = line_width(_join(kept | {index: piece.line}, between)) - cells
        if over <= 0 or not piece.rank:
            kept[index] = piece.line
        elif piece.least and line_width(piece.line) - over >= piece.least:
            (span,) = piece.line
            kept[index] = (Span(cut(span.text, line_width(piece.line) - over), span.role),)
    return _join(kept, between)


def _join(lines: Mapping[int, Line], between: Span) -> Line:
    joined: list[Span] = []
    for index in sorted(lines):
        joined += (between, *lines[index]) if joined else lines[index]
    return tuple(joined)


MARGIN: Final = 1
"""Blank cells at each side of a panel."""


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
