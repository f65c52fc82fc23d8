"""Replies of both protocols in one shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server.preview.page import Cell
from rtui.server.preview.source import Refused, needed
from rtui.server.reply import Reply

NO_ANSWER: Final = Unknown(Reason.FAILED, "the server's answer is not what was asked for")
"""Why nothing is shown of an answer that can't be read."""

_CURSORS: Final = range(1 << 64)

_DIGITS: Final = 20
"""Most digits of an unsigned number of 64 bits."""


def items(reply: Reply) -> list[Reply]:
    """Take an array, or a set of protocol 3, as a list; anything else is empty."""
    return list(reply) if isinstance(reply, (list, set, frozenset)) else []


def byte_items(reply: Reply) -> list[bytes]:
    """Take the byte strings of an array."""
    return [item for item in items(reply) if isinstance(item, bytes)]


def pairs(reply: Reply) -> Iterator[tuple[Reply, Reply]]:
    """Take a map: flat in protocol 2, a map or an array of pairs in protocol 3."""
    if isinstance(reply, dict):
        yield from reply.items()
        return
    flat = items(reply)
    if flat and all(isinstance(item, list) and len(item) == 2 for item in flat):
        for item in flat:
            left, right = items(item)
            yield left, right
        return
    yield from zip(flat[::2], flat[1::2], strict=False)


def mapping(reply: Reply) -> dict[bytes, Reply]:
    """Take a map with names as a dict."""
    return {name: value for name, value in pairs(reply) if isinstance(name, bytes)}


def cell(reply: Reply) -> Cell:
    """Take one value as a cell; what is neither bytes nor a number is an empty one."""
    return reply if isinstance(reply, (bytes, int, float)) else None


def whole(reply: Reply) -> int | None:
    """Take a number; one that does not fit into 64 bits with a sign comes as text."""
    if isinstance(reply, bytes) and reply.isdigit() and len(reply) <= _DIGITS:
        return int(reply)
    return reply if isinstance(reply, int) else None


def score(reply: Reply) -> float | None:
    """Take a score: text in protocol 2, a number in protocol 3. Both are exact."""
    if isinstance(reply, (int, float)):
        return float(reply)
    try:
        return float(reply) if isinstance(reply, bytes) else None
    except ValueError:
        return None


def scan_page(reply: Reply) -> tuple[int, list[Reply]]:
    """Take the next cursor and the elements of HSCAN or SSCAN; raises Refused for what is no page."""
    parts = needed_items(reply)
    cursor = whole(parts[0]) if len(parts) == 2 else None
    if cursor is None or cursor not in _CURSORS:
        raise Refused(NO_ANSWER)
    return cursor, needed_items(parts[1])


def needed_items(reply: Reply) -> list[Reply]:
    """Take an array without which there is nothing to show; raises Refused for anything else, error or not."""
    if isinstance(needed(reply), (list, set, frozenset)):
        return items(reply)
    raise Refused(NO_ANSWER)


def needed_bytes(reply: Reply) -> bytes:
    """Take a byte string without which there is nothing to show; raises Refused for anything else, error or not."""
    found = needed(reply)
    if isinstance(found, bytes):
        return found
    raise Refused(NO_ANSWER)
