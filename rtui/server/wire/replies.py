"""What a server answers."""

from __future__ import annotations

from typing import Final, TypeAlias

from rtui.server.wire.errors import ServerError

Reply: TypeAlias = "bytes | int | float | bool | list[Reply] | dict[Reply, Reply] | ServerError | None"
"""The reply to one command; an error reply is a value, and lanes give every reply the shape of protocol 2."""


_PAIRED: Final = frozenset({"ZRANGE", "ZRANDMEMBER", "HRANDFIELD"})
"""Commands that answer pairs as lists of two, where protocol 2 has one flat list."""

_WHOLE_UNTIL: Final = 1e17
"""Floats below it that are whole are written without a point, as the server does."""


def as_resp2(name: str, reply: Reply) -> Reply:
    """Maps and pairs become flat lists, booleans 0 or 1, floats text; everything else stays."""
    flat = _flattened(reply)
    if name in _PAIRED and isinstance(flat, list) and flat and all(isinstance(one, list) for one in flat):
        return [item for pair in flat if isinstance(pair, list) for item in pair]
    return flat


def _flattened(reply: Reply) -> Reply:
    """Nesting is as deep as the replies of the closed list are: a few levels."""
    if reply is None or isinstance(reply, bytes | ServerError):
        return reply
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):
        return _written(reply)
    if isinstance(reply, dict):
        return [_flattened(one) for pair in reply.items() for one in pair]
    if isinstance(reply, list):
        return [_flattened(one) for one in reply]
    return reply


def _written(number: float) -> bytes:
    if number.is_integer() and abs(number) < _WHOLE_UNTIL:
        return b"%d" % int(number)
    return repr(number).encode()
