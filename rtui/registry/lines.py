"""Tells on which line of a TOML text something is said, for error messages; the standard library's reader does not.

The text has been read as TOML before, so it is enough to tell strings, brackets and comments apart. What stands inside
the value of a key, such as a member of an inline table, is on the line of that key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

Path = tuple[str | int, ...]
"""Where something is: names of tables and keys, and the place in an array of tables."""

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""+|\'\'\'.*?\'\'\'+|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{}=.]|[^\s\[\]{}=."\'#]+|[^\S\n]+',
    re.DOTALL,
)


class LineIndex:
    """The lines of the tables and keys of one text."""

    def __init__(self, text: str) -> None:
        """Any text is accepted; of what is no TOML, some lines may be missing."""
        self._lines: dict[Path, int] = {(): 1}
        self._counts: dict[Path, int] = {}
        table: Path = ()
        names: list[str] = []
        depth = 0
        line = 1
        state = "start"
        for piece in _TOKEN.findall(text):
            if piece == "\n":
                if state == "header":
                    table = self._open(names, line, is_array=depth < -1)
                if not (state == "value" and depth):
                    state, names, depth = "start", [], 0
            elif state == "start" and piece == "[":
                state, depth = "header", -1
            elif state == "header":
                depth -= piece == "[" and not names
                if piece not in ("[", "]", ".") and not piece.startswith("#") and piece.strip():
                    names.append(_bare(piece))
            elif state in ("start", "key"):
                if piece == "=":
                    self._lines.setdefault((*table, *names), line)
                    state, depth = "value", 0
                elif piece != "." and piece.strip() and not piece.startswith("#"):
                    state = "key"
                    names.append(_bare(piece))
            elif state == "value":
                depth += (piece in "[{") - (piece in "]}")
            line += piece.count("\n")
        if state == "header":
            self._open(names, line, is_array=depth < -1)

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of what is at a path, or of the innermost thing around it that has one; 1 is the first."""
        whole = tuple(path)
        return next(self._lines[whole[:end]] for end in range(len(whole), -1, -1) if whole[:end] in self._lines)

    def _open(self, names: Sequence[str], line: int, *, is_array: bool) -> Path:
        """Return the path of a table by its header."""
        path: Path = ()
        for at, name in enumerate(names):
            path = (*path, name)
            is_last = at == len(names) - 1
            if is_last and is_array:
                self._lines.setdefault(path, line)
                count = self._counts.get(path, 0)
                self._counts[path] = count + 1
                path = (*path, count)
            elif not is_last and path in self._counts:
                path = (*path, self._counts[path] - 1)
        self._lines.setdefault(path, line)
        return path


def _bare(piece: str) -> str:
    """Return the name that a part of a key stands for."""
    return piece[1:-1] if piece[0] in "\"'" else piece
