"""JSON as a tree: numbers as they are written, members that occur twice both, of cut text what is there."""

from __future__ import annotations

import json
import re
from typing import Final

from rtui.values.formats import CERTAIN, LIKELY
from rtui.values.limits import Budget, Cut, Invalid
from rtui.values.source import Reader, Source, read_tree, recognises
from rtui.values.tree import Kind, Node, Step

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CUT_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?\Z")
CONSTANTS: Final = ("true", "false", "null")
_CUT_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)$")


class JsonReader(Reader):
    """Reads JSON; its cursor counts characters."""

    def __init__(self, source: Source, budget: Budget) -> None:
        super().__init__(source, budget)
        self._text = source.text
        self.end = len(self._text)
        self._is_whole = source.is_whole

    def read(self) -> None:
        """Read one value and the space around it."""
        self._value()
        self._skip()

    def _skip(self) -> str:
        """Go past white space and return the character there, empty at the end."""
        match = _SPACE.match(self._text, self.at)
        if match is not None:
            self.at = match.end()
        return self._text[self.at : self.at + 1]

    def _value(self) -> None:
        character = self._skip()
        if character == '"':
            self._string()
        elif character in ("{", "["):
            self._container(Kind.MAP if character == "{" else Kind.LIST)
        elif character == "":
            raise Cut
        else:
            self._plain()

    def _container(self, kind: Kind) -> None:
        """Read a map or a list from its bracket to the closing one."""
        node = self.add(kind)
        self.enter(node)
        self.at += 1
        closing = "}" if kind is Kind.MAP else "]"
        if self._skip() == closing:
            self.at += 1
            self.leave()
            return
        while True:
            if kind is Kind.MAP:
                self._member_name()
            self._value()
            after = self._skip()
            self.at += 1
            if after == closing:
                break
            if after == "":
                raise Cut
            if after != ",":
                raise Invalid(f"has {after!r} where a comma or {closing} should be")
        self.leave()

    def _member_name(self) -> None:
        character = self._skip()
        if character == "":
            raise Cut
        if character != '"':
            raise Invalid(f"has {character!r} where the name of a member should be")
        self._string()
        self.take_as_name()
        colon = self._skip()
        if colon == "":
            raise Cut
        if colon != ":":
            raise Invalid(f"has {colon!r} where a colon should be")
        self.at += 1

    def _string(self) -> None:
        match = _STRING.match(self._text, self.at)
        if match is None:
            self._cut_string()
        else:
            self._add_text(match[0])
            self.at = match.end()

    def _add_text(self, quoted: str) -> Node:
        if "\\" not in quoted:
            return self.add(Kind.TEXT, quoted[1:-1])
        try:
            return self.add(Kind.TEXT, str(json.loads(quoted)))
        except ValueError:
            raise Invalid("has an escape that is none") from None

    def _cut_string(self) -> None:
        """Keep the beginning of a string whose end is cut."""
        rest = self._text[self.at :]
        if self._is_whole or any(character < " " for character in rest):
            raise Invalid("has a string without an end")
        node = self._add_text(_CUT_ESCAPE.sub(lambda found: found[0][: -len(found[1])], rest) + '"')
        node.is_cut = True
        self.at = self.end
        raise Cut

    def _plain(self) -> None:
        number = NUMBER.match(self._text, self.at)
        if number is not None:
            is_cut = not self._is_whole and _CUT_NUMBER.match(self._text, self.at) is not None
            self.add(Kind.NUMBER, number[0]).is_cut = is_cut
            self.at = self.end if is_cut else number.end()
            return
        word = next((word for word in CONSTANTS if self._text.startswith(word, self.at)), None)
        if word is None:
            rest = self._text[self.at : self.at + 5]
            if not self._is_whole and self.at + len(rest) == self.end and rest in ("-", *_beginnings()):
                raise Cut
            raise Invalid(f"has {rest[:1]!r} where a value should be")
        self.add(Kind.CONSTANT, word)
        self.at += len(word)


def _beginnings() -> tuple[str, ...]:
    """Return what may be left of a constant that is cut."""
    return tuple(word[:length] for word in CONSTANTS for length in range(1, len(word)))


def sniff_json(source: Source, budget: Budget) -> float | None:
    """Recognise objects and arrays, and strings in quotes; bare numbers and words are plain text."""
    head = source.data.lstrip(b" \t\r\n")[:1]
    if head not in (b"{", b"[", b'"') or (head == b'"' and not source.is_whole):
        return None
    small = source if len(source.data) <= SNIFFED_BYTES else Source(source.data[:SNIFFED_BYTES], is_whole=False)
    if not source.is_utf8 or not is_json(small, budget.probe()):
        return None
    return LIKELY if head == b'"' else CERTAIN


def is_json(source: Source, budget: Budget) -> bool:
    """Tell whether the bytes are JSON from the first to the last, of whatever characters: DEL needs no escape."""
    return source.is_utf8 and recognises(JsonReader(source, budget), source)


SNIFFED_BYTES: Final = 16 * 1024


def read_json(source: Source, budget: Budget) -> Step:
    """Read a document, or what there is of it."""
    return read_tree(JsonReader(source, budget), source)
