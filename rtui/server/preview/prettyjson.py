"""JSON laid out in lines, without changing a byte of its strings and numbers."""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

MAX_JSON_BYTES: Final = 64 * 1024
"""Longest text that is laid out: what one window of a string can hold."""

MAX_LINES: Final = 5_000
"""Lines after which the layout ends; the rest is left to the raw window."""

MAX_INDENT: Final = 32
"""Levels after which deeper ones are no longer indented further."""

INDENT: Final = b"  "
"""What a level adds in front of a line."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_OPENING: Final = frozenset((b"{", b"["))
_CLOSING: Final = frozenset((b"}", b"]"))


def starts_like_json(head: bytes) -> bool:
    """Whether the beginning of a value may be that of a JSON object or array."""
    return head.lstrip(b" \t\r\n")[:1] in (b"{", b"[")


def json_lines(data: bytes) -> tuple[bytes, ...] | None:
    """Lay out a whole JSON object or array, a member a line; None when it is not one or is larger than 64 KiB.

    Numbers stay as they are written, members that occur twice stay both: the text is checked, then only spaced anew.
    """
    if len(data) > MAX_JSON_BYTES or not starts_like_json(data) or not _is_json(data):
        return None
    return _laid_out(_TOKEN.findall(data))


def _is_json(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _laid_out(tokens: list[bytes]) -> tuple[bytes, ...]:
    lines: list[bytes] = []
    line, depth = b"", 0
    for index, token in enumerate(tokens):
        if token in _OPENING:
            line += token
            if tokens[index + 1] in _CLOSING:
                continue
            depth += 1
        elif token in _CLOSING:
            if tokens[index - 1] in _OPENING:
                line += token
                continue
            depth -= 1
            lines.append(line)
            line = _indent(depth) + token
            continue
        elif token == b":":
            line += b": "
            continue
        elif token == b",":
            line += token
        else:
            line += token
            continue
        lines.append(line)
        line = _indent(depth)
        if len(lines) >= MAX_LINES:
            return (*lines, "…".encode())
    return (*lines, line)


def _indent(depth: int) -> bytes:
    return INDENT * min(depth, MAX_INDENT)
