"""What a user has to agree to before a command is sent that changes something in the server."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rtui.server.guard.evidence import Evidence
from rtui.server.guard.shape import Element, Secret, bounds_of, samples_of, take_all

MAX_TRACKED_KEYS: Final = 64
"""Most keys that a server keeps in one hot-key session."""


class Metric(StrEnum):
    """What a hot-key session measures of each key."""

    CPU = "CPU"
    """Time that its commands take."""
    NET = "NET"
    """Bytes that its commands bring in and send out."""


@dataclass(frozen=True, slots=True)
class Consent:
    """The user's word that a hot-key session may be started, and how far it goes; the guard bounds each number."""

    duration_s: int
    """When the server ends it by itself."""
    sample_ratio: int
    """One command in so many is measured."""
    metrics: tuple[Metric, ...] = (Metric.CPU, Metric.NET)
    count: int = MAX_TRACKED_KEYS
    """Keys kept for each metric."""
    discards_result: bool = False
    """Whether the result of an earlier session, perhaps another operator's, may be lost: the server keeps one only."""


Version = tuple[int, ...]
"""A server version as numbers: (7, 2)."""


FIRST_REDIS: Final[Version] = (1, 0)
"""The first Redis there was."""

FIRST_VALKEY: Final[Version] = (7, 2)
"""The first Valkey, which was Redis 7.2."""


class Group(enum.Enum):
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


MODULE_GROUPS: Final = frozenset({Group.JSON, Group.TIMESERIES, Group.BLOOM})
"""Groups whose commands a module brings: a server without it knows none of them."""


MAX_REQUEST_BYTES: Final = 2 << 20
"""Most bytes that one command line may have in all: a key of the longest kind and as much again."""


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
    since_redis: Version | None = FIRST_REDIS
    """First Redis version that knows it; None: never."""
    since_valkey: Version | None = FIRST_VALKEY
    """First Valkey version that knows it; None: never."""
    touches: bool = False
    """Whether it changes the idle time or frequency of the key unless NO-TOUCH is on."""
    counts: bool = False
    """Whether it counts in keyspace_hits or keyspace_misses."""
    is_optional: bool = False
    """Whether only one feature is lost when the server refuses it."""
    in_bulk: bool = False
    """Whether it may be sent for many keys in one write: constant time and one key only."""
    has_write_key_spec: bool = False
    """Whether the server takes it for a writer of its key, as it does with commands of modules: `%R~` denies it."""
    needs_consent: bool = False
    """Whether it changes something in the server beside this connection: it is sent only when the user has agreed."""
    evidence: type[Evidence] | None = None
    """What has to be known of the key before it may be built, where its cost depends on the value; None for nothing."""

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
        return any(isinstance(element, Secret) for element in self.shape)

    def admits(self, argv: Sequence[bytes]) -> bool:
        """Say whether a whole command line fits: the words in capitals and then exactly the shape."""
        count = len(self.words)
        if tuple(argv[:count]) != self.words or take_all(self.shape, argv, count) != len(argv):
            return False
        return sum(map(len, argv)) <= MAX_REQUEST_BYTES

    def samples(self, key: bytes) -> tuple[tuple[bytes, ...], ...]:
        """Give whole command lines that fit, one for every way to fill the shape, at the upper limits."""
        return tuple((*self.words, *arguments) for arguments in samples_of(self.shape, key))
