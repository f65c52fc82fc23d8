"""One entry of the closed list: a command with the arguments it may have, what it costs at worst and why it is safe."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final

from rtui.server.guard.arguments import AnyBytes, Element, take_all
from rtui.server.guard.evidence import Evidence

Version = tuple[int, ...]
"""A server version as numbers: (7, 2)."""

FIRST_REDIS: Final[Version] = (1, 0)
"""The first Redis there was."""

FIRST_VALKEY: Final[Version] = (7, 2)
"""The first Valkey, which was Redis 7.2."""

MAX_REQUEST_BYTES: Final = 2 << 20
"""Most bytes that one command line may have in all: a key of the longest kind and as much again."""


class CommandGroup(enum.Enum):
    """What a command is for."""

    CONNECTION = "connection"
    SERVER = "server"
    SETTINGS = "settings"
    HOTKEYS = "hotkeys"
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


MODULE_GROUPS: Final = frozenset({CommandGroup.JSON, CommandGroup.TIMESERIES, CommandGroup.BLOOM})
"""Groups whose commands a module brings: a server without it knows none of them."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One command, or one way to use a command, that may be sent."""

    group: CommandGroup
    words: tuple[bytes, ...]
    """The command and its subcommand, in capitals."""
    shape: tuple[Element, ...]
    """What follows the words."""
    cost: str
    """Worst case within the bounds, in words and measured figures."""
    why: str
    """Why it is safe, in a sentence."""
    since_redis: Version | None = FIRST_REDIS
    """First Redis version that knows it; None: never."""
    since_valkey: Version | None = FIRST_VALKEY
    """First Valkey version that knows it; None: never."""
    touches: bool = False
    """Whether it changes the idle time or frequency of the key unless NO-TOUCH is on."""
    counts: bool = False
    """Whether it counts in keyspace_hits or keyspace_misses."""
    is_required: bool = False
    """Whether nothing works without it; otherwise only one feature is lost when the server refuses it."""
    in_bulk: bool = False
    """Whether it may be sent for many keys in one write: constant time and one key only."""
    has_write_key_spec: bool = False
    """Whether the server takes it for a writer of its key, as it does with commands of modules: `%R~` denies it."""
    needs_consent: bool = False
    """Whether it changes something in the server beside this connection: it is sent only when the user has agreed."""
    evidence: type[Evidence] | None = None
    """What has to be known of the key before it may be built, where its cost depends on the value; None for nothing."""

    name: str = field(init=False)
    """The command as people write it: `MEMORY USAGE`."""
    has_secret: bool = field(init=False)
    """Whether an argument is a password."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", b" ".join(self.words).decode())
        is_secret = any(isinstance(element, AnyBytes) and element.is_secret for element in self.shape)
        object.__setattr__(self, "has_secret", is_secret)

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
        return " ".join([self.name, *(element.usage for element in self.shape)])

    @property
    def bounds(self) -> tuple[str, ...]:
        """The limits of the arguments, each in a few words."""
        return tuple(bound for element in self.shape for bound in element.bounds)

    def admits(self, argv: tuple[bytes, ...]) -> bool:
        """Whether a whole command line fits: the words in capitals and then exactly the shape."""
        count = len(self.words)
        if argv[:count] != self.words or take_all(self.shape, argv, count) != len(argv):
            return False
        return sum(map(len, argv)) <= MAX_REQUEST_BYTES
