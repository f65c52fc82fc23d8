"""JSON as a tree, and a tree as JSON: numbers as written, duplicate members kept, a cut value as far as it goes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Final

from rtui.values.limits import Budget, Cut, Invalid
from rtui.values.source import CERTAIN, LIKELY, Reader, Source, read_tree, recognises
from rtui.values.tree import Kind, Node, Step, outline

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
        """Read one value and the white space around it."""
        self._value()
        self._skip_space()

    def _skip_space(self) -> str:
        """Skip white space; return the next character, empty at the end."""
        match = _SPACE.match(self._text, self.at)
        if match is not None:
            self.at = match.end()
        return self._text[self.at : self.at + 1]

    def _value(self) -> None:
        character = self._skip_space()
        if character == '"':
            self._string()
        elif character in ("{", "["):
            self._container(Kind.MAP if character == "{" else Kind.LIST)
        elif character == "":
            raise Cut
        else:
            self._plain()

    def _container(self, kind: Kind) -> None:
        """Read an object or array from its opening to its closing bracket."""
        node = self.add(kind)
        self.enter(node)
        self.at += 1
        closing = "}" if kind is Kind.MAP else "]"
        if self._skip_space() == closing:
            self.at += 1
            self.leave()
            return
        while True:
            if kind is Kind.MAP:
                self._member_name()
            self._value()
            after = self._skip_space()
            self.at += 1
            if after == closing:
                break
            if after == "":
                raise Cut
            if after != ",":
                raise Invalid(f"has {after!r} where a comma or {closing} should be")
        self.leave()

    def _member_name(self) -> None:
        character = self._skip_space()
        if character == "":
            raise Cut
        if character != '"':
            raise Invalid(f"has {character!r} where the name of a member should be")
        self._string()
        self.take_as_name()
        colon = self._skip_space()
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
        """Read a string whose end is cut, without a trailing partial escape."""
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
            if not self._is_whole and self.at + len(rest) == self.end and rest in ("-", *_constant_prefixes()):
                raise Cut
            raise Invalid(f"has {rest[:1]!r} where a value should be")
        self.add(Kind.CONSTANT, word)
        self.at += len(word)


def _constant_prefixes() -> tuple[str, ...]:
    """Return the proper prefixes of the constants."""
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
    """Whether the bytes are JSON from first to last, with any characters: DEL needs no escape."""
    return source.is_utf8 and recognises(JsonReader(source, budget), source)


SNIFFED_BYTES: Final = 16 * 1024


def read_json(source: Source, budget: Budget) -> Step:
    """Read a document, a cut one as far as it goes."""
    return read_tree(JsonReader(source, budget), source)


_INDENT: Final = "  "
_BRACKETS: Final = {Kind.MAP: "{}", Kind.LIST: "[]"}


CUT: Final = "…"
"""Marks missing data: as the name of a last member, at the start of a last item, at the end of a text."""


def node_json(node: Node, *, may_be_cut: bool = False) -> str | None:
    """Return a node and everything below it as JSON, one member a line; None if it is cut or a disassembly.

    Numbers stay as written, duplicate members stay both; bytes become an object with their base64, and values without a
    JSON equivalent their text. Unprintable characters are escaped. With `may_be_cut` cut nodes become well-formed JSON,
    too, with `CUT` wherever something is missing, and before text that is a note and no data.
    """
    if not may_be_cut and (is_cut(node) or any(row.node.kind is Kind.NOTE for row in outline(node))):
        return None
    return "".join(_pieces(node, "\n"))


def is_cut(node: Node) -> bool:
    """Whether a node or one below it was not read completely."""
    return any(row.node.is_cut or row.node.missing for row in outline(node))


def _pieces(node: Node, line: str) -> Iterator[str]:
    """Yield the JSON of a node in pieces; `line` is a line break with the indentation of the node."""
    children = list(node.children)
    if node.kind in _BRACKETS and (node.is_cut or node.missing):
        rest = f"{node.missing:,} more were not read" if node.missing else "the rest was not read"
        mark = Node(Kind.TEXT, rest if node.kind is Kind.MAP else f"{CUT} {rest}", name=Node(Kind.TEXT, CUT))
        children.append(mark)
    if not children:
        yield _plain(node)
        return
    brackets = _BRACKETS[node.kind]
    yield brackets[0]
    for number, child in enumerate(children):
        yield f"{',' if number else ''}{line}{_INDENT}"
        if node.kind is Kind.MAP:
            name = "" if child.name is None else child.name.value
            yield f"{_text(name.decode('utf-8', 'backslashreplace') if isinstance(name, bytes) else name)}: "
        yield from _pieces(child, line + _INDENT)
    yield f"{line}{brackets[1]}"


def _plain(node: Node) -> str:
    if node.kind in _BRACKETS:
        return _BRACKETS[node.kind]
    if isinstance(node.value, bytes):
        rest = f', "{CUT}": "the rest was not read"' if node.is_cut else ""
        return f'{{"base64": "{base64.b64encode(node.value).decode()}"{rest}}}'
    if node.kind is Kind.NOTE:
        return f'{{"{CUT}": {_text(node.value)}}}'
    if node.is_cut:
        return _text(f"{node.value}{CUT}")
    is_json = node.kind is Kind.NUMBER and NUMBER.fullmatch(node.value) is not None
    return node.value if is_json or (node.kind is Kind.CONSTANT and node.value in CONSTANTS) else _text(node.value)


def _text(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=False)
    return (
        shown if shown.isprintable() else "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in shown)
    )
