"""The output diff: each frame that Textual writes is rewritten to what differs from the screen.

Textual repaints whole stretches of lines and spells out every style from nothing; over a slow link most of that is on
the screen already. `OutputDiff` keeps the screen as cells, a character and its style each, as far as it has written
them. Say line 3 shows `12,345 keys`, and Textual sends, as it does when a figure grows:

    ESC[3;1H ESC[38;2;200;200;200m 12,346 ESC[0m ESC[38;2;120;120;120m  keys ESC[0m

1. The frame is cut into tokens: moves of the cursor, styles (SGR), text, line breaks. Anything else makes it no frame:
   it is passed on as it is and, unless it is known to change no cell, everything known of the screen is forgotten.
2. Each text is put into the cells of its line. The line as it was before the frame is kept beside it.
3. At the end the cells before and after are compared. Here one differs, so `ESC[3;6H ESC[38;2;200;200;200m 6` is
   written, then the cursor is moved to where the frame left it. Runs of one style are written together, since a move
   takes fewer bytes than a style; of a style only the parts that change are sent; and a gap of up to `_BRIDGE_CELLS`
   equal cells within a run is repeated, which is shorter than a move.

Characters that may be one or two cells wide, depending on the terminal, can't be compared by cells: from such a text
on, a line is written as it is, and what is known of the line is forgotten. Terminals differ most over characters that
are drawn as one, such as emoji of several and letters with marks: what follows such a text is placed by a move.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import Final, NamedTuple

from rich.cells import cell_len

_TOKEN: Final = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|([^\x00-\x1f\x7f-\x9f]+)|(\r?\n)")
_HARMLESS: Final = re.compile(r"(?:\x1b\[\?(?:2026|25)[hl]|\x1b\]52;[^\x07\x1b]*(?:\x07|\x1b\\)|\x07)*")
_PLAIN: Final = re.compile("[\x20-\x7e\u00a0-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u21ff\u2200-\u22ff\u2500-\u25fc]*")
"""Characters that are one cell wide in every terminal."""

_DRAWN_TOGETHER: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u11ff\u135d-\u135f\u1712-\u1dff\u200c\u200d\u20d0-\u20ff\u302a-\u302f\u3099\u309a"
    "\ua66f-\uabff\ufe00-\ufe2f\U0001f000-\U0001faff\U000e0000-\U000e007f]"
)
"""Combining marks of scripts, emoji and joiners: terminals disagree over their width."""

_BRIDGE_CELLS: Final = 5
"""Equal cells up to which a gap takes fewer bytes to repeat than to move over."""


class LineCells(NamedTuple):
    """The cells of a line, as two lists: a tuple for each cell would be thousands of containers a frame."""

    characters: list[str]
    """The character of each cell, empty if unknown."""
    styles: list[str]
    """The style of each, as the parameters of SGR."""

    def copy(self) -> LineCells:
        return LineCells(self.characters[:], self.styles[:])

    def put(self, start: int, text: str, style: str) -> None:
        end, missing = start + len(text), start + len(text) - len(self.characters)
        if missing > 0:
            self.characters.extend([""] * missing)
            self.styles.extend([""] * missing)
        self.characters[start:end] = text
        self.styles[start:end] = [style] * len(text)


StyledRun = tuple[tuple[int, int], str, str]
"""Where a text goes (row and column from 1), the text, and its style."""


class Sgr(NamedTuple):
    """The parameters of SGR, split."""

    attributes: str
    foreground: str
    background: str


_NO_STYLE: Final = Sgr("", "", "")


class OutputDiff:
    """The known cells of the screen; reduces frames to the cells that differ."""

    def __init__(self) -> None:
        self._rows: dict[int, LineCells] = {}
        self._columns_rows: tuple[int, int] | None = None

    def forget(self) -> None:
        """Forget the screen: something else has written to the terminal."""
        self._rows.clear()

    def resize(self, columns: int, rows: int) -> None:
        """Forget the screen, which has another size now; frames for the old size may still come."""
        self._rows.clear()
        self._columns_rows = columns, rows

    def rewrite(self, data: str) -> str:
        """Return text with the same effect on the terminal as `data`, usually much shorter."""
        tokens = list(_TOKEN.finditer(data))
        if not _is_frame(tokens, data):
            if not _HARMLESS.fullmatch(data):
                self.forget()
            return data
        return self._frame(tokens, data)

    def _frame(self, tokens: list[re.Match[str]], data: str) -> str:
        """Rewrite a frame that consists of moves, styles and text.

        A frame for a larger terminal is left as it is: text outside would land on cells at the border.
        """
        out = _FrameWriter()
        before: dict[int, LineCells] = {}
        most_columns, most_rows = self._columns_rows or (sys.maxsize, sys.maxsize)
        row = column = end = 0
        is_uncertain = is_astray = False
        style = ""
        for token in tokens:
            at_row, at_column, parameters, text, _ = token.groups()
            if at_row is not None:
                row, column, is_uncertain, is_astray = int(at_row), int(at_column), False, False
                end = column
            elif parameters is not None:
                style = "" if parameters in ("", "0") else f"{style};{parameters}" if style else parameters
            elif text is not None and (is_uncertain or not _PLAIN.fullmatch(text)):
                # Where characters of uncertain width end is not known: the line is sent as it is from here on.
                for run in self._differences({row: before.pop(row)} if row in before else {}):
                    out.write(*run)
                is_placed = not is_uncertain or is_astray
                out.write((row, end) if is_placed else None, text, style)
                self._rows[row] = LineCells([], [])
                is_uncertain, is_astray = True, _DRAWN_TOGETHER.search(text) is not None
                end += cell_len(text)
            elif text is not None:
                line = self._rows.setdefault(row, LineCells([], []))
                if row not in before:
                    before[row] = line.copy()
                line.put(column - 1, text, style)
                column = end = column + len(text)
            if row > most_rows or end > most_columns + 1:
                self.forget()
                return data
        for run in self._differences(before):
            out.write(*run)
        return out.finish((row, column))

    def _differences(self, before: dict[int, LineCells]) -> list[StyledRun]:
        """Return the changed runs of cells, grouped by style: a move is shorter than a style."""
        by_style: dict[str, list[StyledRun]] = {}
        for row, old in before.items():
            if old == self._rows[row]:
                continue
            for start, text, style in _changed(old, self._rows[row]):
                by_style.setdefault(style, []).append(((row, start + 1), text, style))
        return [run for runs in by_style.values() for run in runs]


class _FrameWriter:
    """Collects a frame; positions and styles are written only when they change."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._position: tuple[int, int] | None = None
        self._style = _NO_STYLE

    def write(self, position: tuple[int, int] | None, text: str, style: str) -> None:
        if position is not None:
            self._go(*position)
        wanted = parse(style)
        if wanted != self._style:
            self._parts.append(_difference(self._style, wanted))
            self._style = wanted
        self._parts.append(text)
        is_sure = position is not None and _PLAIN.fullmatch(text) is not None
        self._position = (position[0], position[1] + len(text)) if position is not None and is_sure else None

    def finish(self, position: tuple[int, int]) -> str:
        """Reset the style, put the cursor where the frame left it, and return everything."""
        if self._style != _NO_STYLE:
            self._parts.append("\x1b[m")
        self._go(*position)
        return "".join(self._parts)

    def _go(self, row: int, column: int) -> None:
        if self._position == (row, column):
            return
        if self._position is not None and self._position[0] == row:
            self._parts.append(f"\x1b[{column}G")
        else:
            self._parts.append(f"\x1b[{row};{column}H")
        self._position = (row, column)


def _is_frame(tokens: list[re.Match[str]], data: str) -> bool:
    """Return whether data consists of tokens only, with a move before the first text and after each line break."""
    is_positioned, end = False, 0
    for token in tokens:
        if token.start() != end:
            return False
        end = token.end()
        if token.lastindex == 2:
            is_positioned = True
        elif token.lastindex == 5:
            is_positioned = False
        elif token.lastindex == 4 and not is_positioned:
            return False
    return bool(tokens) and end == len(data)


def _changed(before: LineCells, after: LineCells) -> Iterator[tuple[int, str, str]]:
    """Yield the stretches in which a line differs, each of one style; short gaps in this style are bridged."""
    text: list[str] = []
    start, style, gap = 0, "", 0
    for index, (old, old_style, new, new_style) in enumerate(zip_longest(*before, *after)):
        if new and (new != old or new_style != old_style):
            if text and new_style == style:
                gap = 0
            else:
                if text:
                    yield start, "".join(text[: len(text) - gap]), style
                text, start, style, gap = [], index, new_style, 0
            text.append(new)
        elif text:
            gap += 1
            if not new or new_style != style or gap > _BRIDGE_CELLS:
                yield start, "".join(text[: len(text) - gap + 1]), style
                text = []
            else:
                text.append(new)
    if text:
        yield start, "".join(text[: len(text) - gap]), style


@lru_cache(1024)
def parse(parameters: str) -> Sgr:
    """Split the parameters of SGR into attributes, foreground and background."""
    attributes: list[str] = []
    colours = {"3": "", "4": ""}
    items = iter(parameters.split(";") if parameters else [])
    for item in items:
        if item in ("38", "48"):
            kind = next(items, "")
            rest = [next(items, "") for _ in range(3 if kind == "2" else 1)]
            colours[item[0]] = ";".join([item, kind, *rest])
        elif len(item) == 2 and item[0] in "34" and item[1] in "012345679":
            colours[item[0]] = "" if item[1] == "9" else item
        elif len(item) in (2, 3) and item.startswith(("9", "10")) and item != "9":
            colours["3" if item[0] == "9" else "4"] = item
        else:
            attributes.append(item)
    return Sgr(";".join(attributes), colours["3"], colours["4"])


@lru_cache(4096)
def _difference(old: Sgr, new: Sgr) -> str:
    """Return the shortest SGR that leads from one style to another."""
    fresh = ";".join(part for part in new if part)
    if old.attributes != new.attributes:
        return f"\x1b[0;{fresh}m" if old != _NO_STYLE else f"\x1b[{fresh}m"
    parts = []
    if old.foreground != new.foreground:
        parts.append(new.foreground or "39")
    if old.background != new.background:
        parts.append(new.background or "49")
    change = ";".join(parts)
    reset = f"0;{fresh}" if fresh else ""
    return f"\x1b[{change if len(change) <= len(reset) or not fresh else reset}m"
