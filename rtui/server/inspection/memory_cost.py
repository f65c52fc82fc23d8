"""What MEMORY USAGE costs for a type on a server, and so whether a pass asks it at once, watched, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rtui.server.identity import ServerIdentity

EXACT_SINCE: Final = (8, 4)
"""From this version of Redis on the size of every built-in type is counted as it grows and told in constant time."""

BUILT_IN: Final = frozenset((b"string", b"list", b"hash", b"set", b"zset", b"stream", b"array", b"vectorset"))
"""Types whose cost is known: by default five elements of a collection are looked at."""


class Manner(Enum):
    """How MEMORY USAGE of a type is asked."""

    FREELY = "freely"
    """Constant in time: asked in bulk."""
    WATCHED = "watched"
    """Usually cheap, but nothing bounds it: asked a few at a time, on its own, with an eye on the clock."""
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """How it is asked and, unless freely, why not; a safe sentence without a full stop."""

    manner: Manner
    why: str = ""


SAMPLED_NOTE: Final = (
    "The bytes of a collection come from five of its elements, as MEMORY USAGE does by default on this server: "
    "where elements differ much in size they are an estimate."
)
"""What one has to know of sizes on a server that does not count them as they grow."""

_FREELY: Final = MemoryCost(Manner.FREELY)
_STREAM: Final = MemoryCost(
    Manner.WATCHED, "before Redis 8.4 the size of a stream takes a walk over all its groups and consumers"
)
_MODULE: Final = MemoryCost(
    Manner.NEVER, "the type comes from a module, whose answer to MEMORY USAGE may walk the whole value"
)
_NAMELESS: Final = MemoryCost(Manner.NEVER, "the type is not known, so nobody knows what asking costs")


def counts_sizes(server: ServerIdentity) -> bool:
    """Whether MEMORY USAGE tells exact sizes that the server keeps as they grow."""
    return server.product == "redis" and server.version is not None and server.version >= EXACT_SINCE


def memory_cost(server: ServerIdentity, kind: bytes | None) -> MemoryCost:
    """What MEMORY USAGE with its default samples costs for a key of this type.

    Valkey samples a stream's groups as it does elements. An unknown server is taken for an old Redis.
    """
    if kind is None:
        return _NAMELESS
    if kind not in BUILT_IN:
        return _MODULE
    if kind == b"stream" and not (counts_sizes(server) or server.product == "valkey"):
        return _STREAM
    return _FREELY
