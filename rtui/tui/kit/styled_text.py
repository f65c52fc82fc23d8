"""Styled text: spans of safe text with a role, lines made of spans, and functions to cut, pad and wrap them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import groupby, islice
from typing import Final, LiteralString, NamedTuple

from rich.cells import cell_len, set_cell_size

from rtui.keyspace.text.display import DisplayedPiece, SafeText
from rtui.keyspace.types import type_of


class Role(StrEnum):
    """The meaning of a text; themes define the style of each role."""

    TEXT = "text"
    MUTED = "muted"
    FAINT = "faint"
    STRONG = "strong"
    ESCAPE = "escape"
    ACCENT = "accent"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    BAR = "bar"
    TRACK = "track"
    BADGE = "badge"
    TAB = "tab"
    TAB_ON = "tab-on"
    STRING = "type-string"
    HASH = "type-hash"
    LIST = "type-list"
    SET = "type-set"
    ZSET = "type-zset"
    STREAM = "type-stream"
    JSON = "type-json"
    OTHER = "type-other"
    FILL = "fill"
    FILL_STRING = "fill-type-string"
    FILL_HASH = "fill-type-hash"
    FILL_LIST = "fill-type-list"
    FILL_SET = "fill-type-set"
    FILL_ZSET = "fill-type-zset"
    FILL_STREAM = "fill-type-stream"
    FILL_JSON = "fill-type-json"
    FILL_OTHER = "fill-type-other"
    DEV_LOW_2 = "dev-low-2"
    DEV_LOW_1 = "dev-low-1"
    DEV_MEAN = "dev-mean"
    DEV_HIGH_1 = "dev-high-1"
    DEV_HIGH_2 = "dev-high-2"
    HEAT_1 = "heat-1"
    HEAT_2 = "heat-2"
    HEAT_3 = "heat-3"
    HEAT_4 = "heat-4"
    HEAT_5 = "heat-5"
    HEAT_ON = "heat-on"


ROLE_CLASS_PREFIX: Final = "role--"
"""Every role is a component class of this prefix, so that themes and TCSS reach it."""

ROLE_CLASSES: Final = frozenset(f"{ROLE_CLASS_PREFIX}{role}" for role in Role)
"""The component classes that a screen must declare to have lines painted on it.

Not each widget: Textual works the rules of every component class out again for each change of a widget's classes.
"""

ELLIPSIS: Final = "…"
"""Stands where text was cut."""

HEAT: Final = (Role.HEAT_1, Role.HEAT_2, Role.HEAT_3, Role.HEAT_4, Role.HEAT_5)
"""Filled areas, from little to much; `HEAT_ON` is the area under the cursor."""


class Span(NamedTuple):
    """A run of text in one role; data gets here only as `SafeText`."""

    text: SafeText
    role: Role = Role.TEXT


Line = tuple[Span, ...]


def literal(text: LiteralString) -> SafeText:
    """Return a text written in this program, which is safe by being a literal."""
    return SafeText(text)


def joined(parts: Iterable[SafeText], between: LiteralString = " · ") -> SafeText:
    return SafeText(between.join(parts))


def type_role(type_name: bytes | None) -> Role:
    """Return the role of a Redis type name; types that are not declared share one."""
    return Role(f"type-{type_of(type_name).colour}")


def width_of(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def line_width(line: Sequence[Span]) -> int:
    return sum(map(width_of, [span.text for span in line]))


def cut(text: SafeText, cells: int) -> SafeText:
    """Return at most `cells` cells of the text, with an ellipsis where the end was cut."""
    if cells <= 0:
        return SafeText("")
    if width_of(text) <= cells:
        return text
    return SafeText(set_cell_size(text, cells - 1).rstrip() + ELLIPSIS)


LEAST_CUT_IN_MIDDLE: Final = 8
"""In fewer cells a text is cut at its end."""


def cut_middle(text: SafeText, cells: int) -> SafeText:
    """Return at most `cells` cells of the text, cut in the middle: the end of a name tells more than its centre."""
    if width_of(text) <= cells or cells < LEAST_CUT_IN_MIDDLE:
        return cut(text, cells)
    tail_cells = (cells - 1) // 2
    tail = text[-tail_cells:]
    while cell_len(tail) > tail_cells:
        tail = tail[1:]
    head = set_cell_size(text, cells - 1 - tail_cells)
    return SafeText(head + ELLIPSIS + " " * (tail_cells - cell_len(tail)) + tail)


def left(text: SafeText, cells: int) -> SafeText:
    """Return the text in exactly `cells` cells, left-aligned."""
    fitted = cut(text, cells)
    return SafeText(fitted + " " * (cells - width_of(fitted)))


def right(text: SafeText, cells: int) -> SafeText:
    """Return the text in exactly `cells` cells, right-aligned."""
    fitted = cut(text, cells)
    return SafeText(" " * (cells - width_of(fitted)) + fitted)


def gap(cells: int) -> Span:
    return Span(SafeText(" " * max(cells, 0)))


def clip(line: Line, cells: int) -> Line:
    taken: list[Span] = []
    room = cells
    for span in line:
        size = width_of(span.text)
        if size > room:
            if room > 0:
                taken.append(Span(cut(span.text, room), span.role))
            break
        taken.append(span)
        room -= size
    return tuple(taken)


def wrap(text: SafeText, cells: int, max_lines: int) -> list[SafeText]:
    """Break the text at `cells` cells into at most `max_lines` lines; the last one is cut in the middle if need be."""
    lines: list[SafeText] = []
    rest = str(text)
    while rest and len(lines) < max_lines:
        if len(lines) == max_lines - 1:
            lines.append(cut_middle(SafeText(rest), cells))
            break
        head = rest[:cells]
        while len(head) > 1 and cell_len(head) > cells:
            head = head[:-1]
        lines.append(SafeText(head))
        rest = rest[len(head) :]
    return lines or [SafeText("")]


def plain_pieces(text: SafeText) -> list[DisplayedPiece]:
    return [DisplayedPiece(SafeText(character)) for character in text]


def pieces_width(pieces: Iterable[DisplayedPiece]) -> int:
    return sum(width_of(piece.text) for piece in pieces)


def styled(pieces: Iterable[DisplayedPiece], role: Role = Role.TEXT) -> Line:
    """Return pieces as a line in one role, escapes marked by another."""
    runs = groupby(pieces, key=lambda piece: piece.is_escape)
    spans = (
        Span(SafeText("".join(piece.text for piece in run)), Role.ESCAPE if is_escape else role)
        for is_escape, run in runs
    )
    return tuple(spans) or (Span(SafeText(""), role),)


def cut_pieces(pieces: Sequence[DisplayedPiece], cells: int, *, in_middle: bool = False) -> list[DisplayedPiece]:
    """Return the pieces that fit into `cells` cells, with an ellipsis for the others: at the end, or in the middle."""
    if pieces_width(pieces) <= cells:
        return [*pieces]
    if cells <= 0:
        return []
    tail_cells = (cells - 1) // 2 if in_middle and cells >= LEAST_CUT_IN_MIDDLE else 0
    tail = _fitting(reversed(pieces), tail_cells)[::-1]
    head = _fitting(pieces, cells - 1 - pieces_width(tail))
    return [*head, DisplayedPiece(SafeText(ELLIPSIS)), *tail]


def _fitting(pieces: Iterable[DisplayedPiece], cells: int) -> list[DisplayedPiece]:
    found: list[DisplayedPiece] = []
    for piece in pieces:
        cells -= width_of(piece.text)
        if cells < 0:
            break
        found.append(piece)
    return found


def wrap_pieces(pieces: Sequence[DisplayedPiece], cells: int, max_lines: int) -> list[list[DisplayedPiece]]:
    """Break a text at `cells` cells into at most `max_lines` lines, of which the last is cut in the middle if need be.

    No piece is broken: one that is wider than a line stands in a line of its own, which is cut.
    """
    lines: list[list[DisplayedPiece]] = []
    at = 0
    while at < len(pieces) and len(lines) < max_lines - 1:
        head = _fitting(islice(pieces, at, None), cells) or [DisplayedPiece(SafeText(ELLIPSIS[:cells]), is_escape=True)]
        lines.append(head)
        at += len(head)
    rest = pieces[at:]
    return [*lines, cut_pieces(rest, cells, in_middle=True)] if rest or not lines else lines


FLASH: Final = literal("•")
"""Stands before a row that has just changed."""


def flashing(line: Line) -> Line:
    """Return the line of a row that has just changed: marked in its margin, and in another colour."""
    if not line:
        return line
    first, *rest = line
    spans = [Span(SafeText(FLASH + first.text[1:]), Role.ACCENT) if first.text[:1] == " " else first, *rest]
    return tuple(Span(span.text, Role.ACCENT) for span in spans)
