"""Mistakes in a registry file, with file, line and key, as text that is safe to show; and the lines of its keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import nearest_word


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake or warning."""

    file: SafeText
    line: int
    """The line, from 1; 0 for a problem of the whole file."""
    where: SafeText
    """The key, such as `pattern[2].ttl`; may be empty."""
    what: SafeText
    """A sentence without a full stop."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.where}{': ' if self.where else ''}{self.what}"


class RegistryError(ValueError):
    """A registry that can't be used, with all its mistakes."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))


def path_text(path: Iterable[str | int]) -> SafeText:
    """Return a path in a document for people: `pattern[2].ttl`, array members counted from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return display_text(text)


def meant(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: the nearest known word, else all."""
    words = list(known)
    near = nearest_word(word, words, least=0.5)
    if near is not None:
        return f"; did you mean {near}?"
    return f"; there are {', '.join(words)}" if words else ""


Path = tuple[str | int, ...]
"""The path of a value: names of tables and keys, and indices in arrays of tables."""

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""+|\'\'\'.*?\'\'\'+|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{}=.]|[^\s\[\]{}=."\'#]+|[^\S\n]+',
    re.DOTALL,
)


class LineIndex:
    """The lines of the tables and keys of one text."""

    def __init__(self, text: str) -> None:
        """Any text is accepted; in a text that is not TOML, some lines may be missing."""
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
        """Return the line of a path, or of its nearest parent with a known line; lines count from 1."""
        whole = tuple(path)
        return next(self._lines[whole[:end]] for end in range(len(whole), -1, -1) if whole[:end] in self._lines)

    def _open(self, names: Sequence[str], line: int, *, is_array: bool) -> Path:
        """Record the header of a table; return its path."""
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
    """Return the name in a part of a key, without its quotes."""
    return piece[1:-1] if piece[0] in "\"'" else piece
