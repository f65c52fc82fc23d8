"""Line filters: hostile characters never reach the terminal, and an ASCII terminal gets ASCII only."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from rtui.keyspace.text.display import HOSTILE

_TWO_CELLS: Final = {"≥ ": ">=", "≤ ": "<=", "≈ ": "~ "}
"""Pairs with a closer rendering in two plain characters."""

_LOOKALIKES: Final = {
    "#": "█▉▊▋▌", "|": "▍▎▏▐▕│┃║╎┆┊╏‖", "-": "─━═╌┄┈╍▔▁·–—", "+": "┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝┏┓┗┛╺╸╴╶±✓",
    " ": "▀▄▂▃▅▆▇░▒▓\u00a0", "v": "▾▼↓", ">": "▸▶→›≥", "^": "▲↑", "<": "◀‹←≤", "*": "●•", "o": "○", "~": "…≈",
    "x": "×✗", "u": "µ", "/": "⏎", "@": "⟳", '"': "“”", "'": "‘’",
}  # fmt: skip
"""Characters beyond ASCII of one cell, by the ASCII character that stands for them."""

_ONE_CELL: Final = {ord(character): plain for plain, characters in _LOOKALIKES.items() for character in characters}


class SanitisingFilter(LineFilter):
    """Replaces characters that must never reach a terminal by blanks of the same width, wherever they come from."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without hostile characters."""
        if all((segment.text.isprintable() and segment.text.isascii()) or segment.control for segment in segments):
            return segments
        return [segment if segment.control else Segment(harmless(segment.text), segment.style) for segment in segments]


class AsciiFilter(LineFilter):
    """Writes every character beyond ASCII as a plain one of the same width, for terminals that draw nothing else."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments in ASCII; what has no likeness becomes question marks."""
        return [
            segment if segment.control or segment.text.isascii() else Segment(plain(segment.text), segment.style)
            for segment in segments
        ]


@lru_cache(4096)
def harmless(text: str) -> str:
    """Return the text without hostile characters, blanks for those that take room."""
    return HOSTILE.sub(lambda found: " " * cell_len(found[0]), text)


@lru_cache(4096)
def plain(text: str) -> str:
    """Return the text in ASCII, cell for cell."""
    for pair, likeness in _TWO_CELLS.items():
        text = text.replace(pair, likeness)
    text = text.translate(_ONE_CELL)
    if text.isascii():
        return text
    return "".join(ch if ch.isascii() else "?" * cell_len(ch) for ch in text)
