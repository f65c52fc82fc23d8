"""A tree, or a part of it, as JSON to be copied, whatever it was read from; where it was cut, JSON that says so."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Final

from rtui.values.json_text import CONSTANTS, NUMBER
from rtui.values.tree import Kind, Node, outline

_INDENT: Final = "  "
_BRACKETS: Final = {Kind.MAP: "{}", Kind.LIST: "[]"}


CUT: Final = "…"
"""Marks where something was not read: the name of a last member, the beginning of a last item, the end of a text."""


def node_json(node: Node, *, may_be_cut: bool = False) -> str | None:
    """Return a node and all below it as JSON, a member a line; None where something was cut, or is an instruction.

    Numbers stay as they are written, members that occur twice stay both; bytes become an object with their base64, and
    what JSON has no word for its text. Characters that can't be seen are escaped. With `may_be_cut` these are
    well-formed JSON, too, with `CUT` at each place where something is missing, and before words that are no data.
    """
    if not may_be_cut and (is_cut(node) or any(row.node.kind is Kind.NOTE for row in outline(node))):
        return None
    return "".join(_pieces(node, "\n"))


def is_cut(node: Node) -> bool:
    """Whether something of a node, or of one below it, was not read."""
    return any(row.node.is_cut or row.node.missing for row in outline(node))


def _pieces(node: Node, line: str) -> Iterator[str]:
    """Yield the pieces of a node, whose own line begins as `line` says: with a line break and the indent."""
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
