"""One entry of the closed list: a command, its argument shape, and everything worth knowing about sending it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from rtui.server.guard.shape import Element, Secret, bounds_of, take_all

Version = tuple[int, ...]
"""A server version as numbers: (7, 2)."""


class Group(enum.Enum):
    """What a command is for."""

    CONNECTION = "connection"
    SERVER = "server"
    KEYSPACE = "keyspace"
    STRING = "string"
    HASH = "hash"
    LIST = "list"
    SET = "set"
    ZSET = "zset"
    STREAM = "stream"
    ARRAY = "array"
    VECTORS = "vectors"
    JSON = "json"
    TIMESERIES = "timeseries"
    BLOOM = "bloom"
    CLUSTER = "cluster"


MODULE_GROUPS = frozenset({Group.JSON, Group.TIMESERIES, Group.BLOOM})
"""Groups whose commands a module brings: a server without it knows none of them."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One command with the arguments it may have, what it costs at worst and why that is safe."""

    words: tuple[bytes, ...]
    """The command and its subcommand, in capitals."""
    shape: tuple[Element, ...]
    """What follows the words."""
    group: Group
    cost: str
    """Worst case within the bounds, in words and measured figures."""
    why: str
    """Why it is safe, in a sentence."""
    since_redis: Version | None = (1, 0)
    """First Redis version that knows it; None: never."""
    since_valkey: Version | None = (7, 2)
    """First Valkey version that knows it; None: never."""
    touches: bool = False
    """Whether it changes the idle time or frequency of the key unless NO-TOUCH is on."""
    counts: bool = False
    """Whether it counts in keyspace_hits or keyspace_misses."""
    is_optional: bool = False
    """Whether only one feature is lost when the server refuses it."""
    in_bulk: bool = False
    """Whether it may be sent for many keys in one write: constant time and one key only."""
    writes_key_spec: bool = False
    """Whether the server's key specification says read and write, so that a read-only key pattern denies it."""

    @property
    def name(self) -> str:
        """The command as people write it: `MEMORY USAGE`."""
        return b" ".join(self.words).decode()

    @property
    def server_name(self) -> str:
        """The command as COMMAND INFO and the ACL rules of 7.0 and later write it: `memory|usage`."""
        return b"|".join(self.words).decode().lower()

    @property
    def acl_rule(self) -> str:
        """The rule that allows it and nothing else."""
        return f"+{self.server_name}"

    @property
    def usage(self) -> str:
        """The whole command with its arguments, as a manual would write it."""
        return " ".join([self.name, *(element.words() for element in self.shape)])

    @property
    def bounds(self) -> tuple[str, ...]:
        """The limits of the arguments, each in a few words."""
        return bounds_of(self.shape)

    @property
    def has_secret(self) -> bool:
        """Whether an argument is a password."""
        return _holds_secret(self.shape)

    def admits(self, argv: Sequence[bytes]) -> bool:
        """Say whether a whole command line fits: the words in capitals and then exactly the shape."""
        count = len(self.words)
        return tuple(argv[:count]) == self.words and take_all(self.shape, argv, count) == len(argv)

    def sample(self, key: bytes) -> tuple[bytes, ...]:
        """Give a whole command line that fits, for the manual and the tests."""
        return (*self.words, *(part for element in self.shape for part in element.sample(key)))


def _holds_secret(elements: Sequence[Element]) -> bool:
    return any(isinstance(element, Secret) or _holds_secret(getattr(element, "elements", ())) for element in elements)
