"""What is wrong with a registry file, with file, line and key, as text that is safe to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import nearest_word


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake or warning."""

    file: SafeText
    line: int
    """From 1; 0 where it is about the whole file."""
    where: SafeText
    """The key, such as `pattern[2].ttl`; may be empty."""
    what: SafeText
    """A sentence without a full stop."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.where}{': ' if self.where else ''}{self.what}"


class RegistryError(ValueError):
    """A registry that can't be used, with everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))


def path_text(path: Iterable[str | int]) -> SafeText:
    """Return a path of a document as people read it: `pattern[2].ttl`, members of arrays counted from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return display_text(text)


def meant(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: the nearest one that is known, else all."""
    words = list(known)
    near = nearest_word(word, words, least=0.5)
    if near is not None:
        return f"; did you mean {near}?"
    return f"; there are {', '.join(words)}" if words else ""
