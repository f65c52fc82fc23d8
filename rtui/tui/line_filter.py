"""The last nets before the terminal: hostile characters are deleted, and a plain terminal gets plain characters."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

HOSTILE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Characters without width that could steer a terminal or reorder a line; tab and newline never get into a strip."""

_TWO_CELLS: Final = {"≥ ": ">=", "≤ ": "<=", "≈ ": "~ "}
"""Pairs with a closer rendering in two plain characters."""

_ONE_CELL: Final = str.maketrans(
    {
        **dict.fromkeys("█▉▊▋▌", "#"),
        **dict.fromkeys("▍▎▏", "|"),
        **dict.fromkeys("▐▕│┃║╎┆┊╏", "|"),
        **dict.fromkeys("─━═╌┄┈╍▔▁", "-"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝┏┓┗┛╺╸╴╶", "+"),
        **dict.fromkeys("▀▄▂▃▅▆▇░▒▓", " "),
        "▾": "v",
        "▸": ">",
        "▼": "v",
        "▲": "^",
        "▶": ">",
        "◀": "<",
        "●": "*",
        "○": "o",
        "•": "*",
        "·": "-",
        "…": "~",
        "–": "-",
        "—": "-",
        "×": "x",
        "±": "+",
        "→": ">",
        "›": ">",
        "‹": "<",
        "←": "<",
        "↑": "^",
        "↓": "v",
        "⏎": "/",
        "≈": "~",
        "≥": ">",
        "≤": "<",
        "✓": "+",
        "✗": "x",
        "‖": "|",
        "⟳": "@",
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "\u00a0": " ",
    }
)


class HostileFilter(LineFilter):
    """Deletes what must never reach a terminal, wherever it slipped through; widths stay, since it had none."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments without hostile characters; the common, clean line costs one search a segment."""
        search = HOSTILE.search
        if not any(search(segment.text) for segment in segments if not segment.control):
            return segments
        return [
            segment if segment.control else Segment(HOSTILE.sub("", segment.text), segment.style)
            for segment in segments
        ]


class AsciiFilter(LineFilter):
    """Writes every character beyond ASCII as a plain one of the same width, for terminals that draw nothing else."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments in ASCII; what has no likeness becomes question marks."""
        return [
            segment if segment.control or segment.text.isascii() else Segment(plain(segment.text), segment.style)
            for segment in segments
        ]


@lru_cache(4096)
def plain(text: str) -> str:
    """Return the text in ASCII, cell for cell."""
    for pair, likeness in _TWO_CELLS.items():
        text = text.replace(pair, likeness)
    text = text.translate(_ONE_CELL)
    if text.isascii():
        return text
    return "".join(ch if ch.isascii() else "?" * cell_len(ch) for ch in text)
