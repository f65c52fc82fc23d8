"""Replies of a server: their type, error replies as values, and replies of protocol 3 in the shape of protocol 2."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from rtui.keyspace.text.display import SafeText, display_text

NOT_SENT: Final = "NOTSENT"
"""The code of an error in place of the reply to a command that is not sent to this server."""


ALONE: Final = "pipeline"
"""A word in the errors of proxies that answer a command only if nothing is sent with it."""


@final
class ServerError(Exception):
    """An error reply, kept as a value inside lists of replies; `code` is its first word (`NOPERM`) or `ERR`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        first, _, rest = message.partition(" ")
        has_code = first.isascii() and first.isupper() and first.isalnum()
        self.code: str = first if has_code else "ERR"
        self._rest = rest if has_code else message

    @property
    def denies_command(self) -> bool:
        """Whether the user may not run this command at all, whatever the key: the server logs every such attempt."""
        return self.code == "NOPERM" and "to run the" in self._rest.lower()

    @property
    def text(self) -> SafeText:
        """The message without its code, safe to show."""
        return display_text(self._rest)

    def __str__(self) -> str:
        return f"{self.code} {self.text}"


Reply: TypeAlias = "bytes | int | float | bool | list[Reply] | dict[Reply, Reply] | ServerError | None"
"""The reply to one command; an error reply is a value, and lanes give every reply the shape of protocol 2."""

_PAIRED: Final = frozenset({"ZRANGE", "ZRANDMEMBER", "HRANDFIELD"})
"""Commands that reply with a list of pairs in protocol 3, and with one flat list in protocol 2."""


def as_resp2(name: str, reply: Reply) -> Reply:
    """Turn maps and pairs into flat lists, booleans into 0 or 1, floats into text; `name` is the command."""
    flat = _flattened(reply)
    if name in _PAIRED and isinstance(flat, list) and flat and all(isinstance(element, list) for element in flat):
        return [item for pair in flat if isinstance(pair, list) for item in pair]
    return flat


def _flattened(reply: Reply) -> Reply:
    """Convert nested replies recursively; they are a few levels deep for the commands of the closed list."""
    if reply is None or isinstance(reply, bytes | ServerError):
        return reply
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):  # as the server writes it: whole numbers without a point
        return b"%d" % int(reply) if reply.is_integer() and abs(reply) < 1e17 else repr(reply).encode()
    if isinstance(reply, dict):
        return [_flattened(element) for pair in reply.items() for element in pair]
    if isinstance(reply, list):
        return [_flattened(element) for element in reply]
    return reply
