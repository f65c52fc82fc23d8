"""Evidence about a value, and consent of the user, that a command requires.

The cost of a command may depend on the value: on its type, its encoding, its length. Such a command is built only with
an `Evidence`, which holds the server's statements about these. Each kind of evidence tells how much it permits, so that
callers can decide beforehand by the same rules, and the guard refuses anything beyond. A command that changes something
in the server is built only with the user's `Consent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import ClassVar, Final, final

from rtui.keyspace.types import MemoryUsage, type_of

PROBE_KEY: Final = b"rtui:no-such-key"
"""A key name that nobody uses: a command on it shows the user's rights, and reads nobody's data."""

EXACT_SINCE: Final = (8, 4)
"""From this version on Redis maintains the size of every built-in type, and MEMORY USAGE takes constant time."""

MAX_WATCHED: Final = 64
"""The most keys of unbounded cost in one write, however cheap earlier ones were."""

COMPACT_STEPS: Final = 50_000
"""The most entries of a compact encoding that commands may walk over: each look-up of a field walks from the first,
20,000 of them in 0.4 ms."""

COMPACT_BYTES: Final = 256 * 1024
"""The largest collection in a compact encoding that is read: the server always returns it whole."""

MIN_ENTRY_BYTES: Final = 4
"""The least memory of a field with its value in a compact encoding: two entries, each with a head and a length."""

FEW_ELEMENTS: Final = 10
"""A collection of up to this many elements may be read without knowing its memory."""

MAX_LOOK_UPS: Final = 10_000
"""The most look-ups of fields by name for one page."""

LEX_LOOK_UPS: Final = 2
"""The cost of ZLEXCOUNT in look-ups: it compares the bytes of every member."""

MAX_MEAN_ENTRY_BYTES: Final = 64 * 1024
"""The largest average entry of a stream whose first and last entries come with a reply."""

MAX_GROUPS: Final = 100
"""The most groups of a stream that are listed: XINFO GROUPS returns all, 10,000 of them in 4.5 ms."""

MAX_CONSUMERS: Final = 100
"""The most consumers of a group that are listed: XINFO CONSUMERS returns all."""

_PAGED_ENCODINGS: Final = frozenset((b"hashtable", b"skiplist"))
"""Encodings whose scan commands respect COUNT. All others, including future ones, count as compact."""

_INDEXED_ENCODINGS: Final = _PAGED_ENCODINGS | {b"intset"}
"""Encodings that give a random element without a walk."""


class MemoryUsagePolicy(Enum):
    """Whether MEMORY USAGE may be sent for keys of a type."""

    FREE = "free"
    """Constant time: sent in bulk."""
    WATCHED = "watched"
    """Usually cheap, but unbounded: sent for few keys at a time while the server's time is measured."""
    NEVER = "never"


@final
@dataclass(frozen=True, slots=True)
class MemoryCost:
    """The policy and, unless it is free, the reason: a safe sentence without a full stop."""

    policy: MemoryUsagePolicy
    why: str = ""


_FREE: Final = MemoryCost(MemoryUsagePolicy.FREE)
_STREAM: Final = MemoryCost(
    MemoryUsagePolicy.WATCHED, "before Redis 8.4 the size of a stream takes a walk over all its groups and consumers"
)
_MODULE: Final = MemoryCost(MemoryUsagePolicy.NEVER, "for module types MEMORY USAGE may walk the whole value")
_UNTYPED: Final = MemoryCost(MemoryUsagePolicy.NEVER, "the type is not known, so the cost is unknown")


def counts_sizes(product: str | None, version: tuple[int, ...] | None) -> bool:
    """Whether MEMORY USAGE of this server returns exact sizes that it maintains as values grow."""
    return product == "redis" and version is not None and version >= EXACT_SINCE


def most_watched(proved: int) -> int:
    """Return the most watched keys in one write: one at first, then twice as many as proved cheap."""
    return max(1, min(MAX_WATCHED, 2 * proved))


class Evidence:
    """Knowledge about one key, or shared by several keys."""

    __slots__ = ()
    words: ClassVar[str] = ""
    """The required knowledge in a few words."""

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Return why this does not permit a command for this many `keys` at once; empty if it does.

        `arguments` follow the command's name, the key first; empty for several keys.
        """
        raise NotImplementedError


@final
@dataclass(frozen=True, slots=True)
class AbsentKey(Evidence):
    """The key is PROBE_KEY, which nobody has: the reply shows whether the command may be used at all."""

    words: ClassVar[str] = "a key that does not exist"

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit PROBE_KEY alone."""
        is_probe = keys == 1 and tuple(arguments[:1]) == (PROBE_KEY,)
        return "" if is_probe else "only the probe's own key is known to be absent"


@final
@dataclass(frozen=True, slots=True)
class TypeEvidence(Evidence):
    """The type of a key as TYPE replies, and the server; one without product and version counts as an old Redis."""

    words: ClassVar[str] = "the type of the key, product and version of the server"
    key_type: bytes | None
    product: str | None
    version: tuple[int, ...] | None
    proved: int = 0
    """The number of keys of this type that one write sent before, at next to no cost for the server."""

    @property
    def memory_cost(self) -> MemoryCost:
        """The cost of MEMORY USAGE with its default samples. Valkey samples the groups of a stream like elements."""
        if self.key_type is None:
            return _UNTYPED
        work = type_of(self.key_type).memory_usage
        if work is MemoryUsage.UNBOUNDED:
            return _MODULE
        walks_groups = not counts_sizes(self.product, self.version) and self.product != "valkey"
        return _STREAM if work is MemoryUsage.WALKS_GROUPS and walks_groups else _FREE

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a free type for any number of keys, and a watched one for a few."""
        cost = self.memory_cost
        too_many = cost.policy is MemoryUsagePolicy.WATCHED and keys > most_watched(self.proved)
        return cost.why if too_many or cost.policy is MemoryUsagePolicy.NEVER else ""


@final
@dataclass(frozen=True, slots=True)
class CollectionEvidence(Evidence):
    """Encoding, number of elements and memory of a hash, set or sorted set; None for unknown ones."""

    words: ClassVar[str] = "encoding, and length or memory where it is a compact one"
    encoding: bytes | None
    length: int | None
    memory_bytes: int | None

    @property
    def is_compact(self) -> bool:
        """Whether a scan may return the whole value whatever COUNT says (db.c, scanGenericCommand)."""
        return self.encoding not in _PAGED_ENCODINGS

    @property
    def is_small(self) -> bool:
        """Whether the whole value may be read in one reply."""
        return self.memory_bytes is not None and self.memory_bytes <= COMPACT_BYTES

    @property
    def may_be_scanned(self) -> bool:
        """Whether a page may be read: COUNT is respected, or the value is small, or it has few elements."""
        is_short = self.memory_bytes is None and self.length is not None and 0 <= self.length <= FEW_ELEMENTS
        return not self.is_compact or self.is_small or is_short

    @property
    def may_be_sampled(self) -> bool:
        """Whether random elements may be read: without a walk, or with a short one over all elements."""
        most = self._most_elements
        return self.encoding in _INDEXED_ENCODINGS or (most is not None and most <= COMPACT_STEPS)

    @property
    def look_ups(self) -> int:
        """The most fields that may be looked up by name for one page; in a compact encoding each walks over all of
        them."""
        if not self.is_compact:
            return MAX_LOOK_UPS
        most = self._most_elements
        return 0 if most is None else COMPACT_STEPS // max(1, most)

    @property
    def _most_elements(self) -> int | None:
        """An upper bound of the number of elements, or None."""
        if self.length is not None and self.length >= 0:
            return self.length
        return None if self.memory_bytes is None else self.memory_bytes // MIN_ENTRY_BYTES

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit pages, random elements, or look-ups of the named fields, by command."""
        match command:
            case "HSCAN" | "SSCAN" | "ZSCAN" if self.may_be_scanned:
                return ""
            case "HRANDFIELD" | "SRANDMEMBER" if self.may_be_sampled:
                return ""
            case "HMGET" | "HSTRLEN" if len(arguments) - 1 <= self.look_ups:
                return ""
            case "SISMEMBER" | "ZRANK" | "ZCOUNT" | "ZLEXCOUNT":
                if self.look_ups >= (LEX_LOOK_UPS if command == "ZLEXCOUNT" else 1):
                    return ""
            case "HPTTL" if len(arguments) - 3 <= self.look_ups:
                return ""
        return "in a compact encoding it walks over all elements, which may be too many"


@final
@dataclass(frozen=True, slots=True)
class EntryEvidence(Evidence):
    """The average size of a stream's entries, or None."""

    words: ClassVar[str] = "the average size of an entry"
    mean_bytes: float | None

    @property
    def is_light(self) -> bool:
        """Whether a reply may contain two entries."""
        return self.mean_bytes is not None and self.mean_bytes <= MAX_MEAN_ENTRY_BYTES

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a description that contains two entries."""
        return "" if self.is_light else "its first and last entry come along in full, which may be large"


@final
@dataclass(frozen=True, slots=True)
class GroupEvidence(Evidence):
    """The number of a stream's groups, from XINFO STREAM."""

    words: ClassVar[str] = "the number of groups"
    groups: int

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a short list."""
        return "" if 0 <= self.groups <= MAX_GROUPS else f"a list of more than {MAX_GROUPS} groups has no pages"


@final
@dataclass(frozen=True, slots=True)
class ConsumerEvidence(Evidence):
    """The number of a group's consumers, from XINFO GROUPS."""

    words: ClassVar[str] = "the number of consumers of the group"
    consumers: int

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a short list."""
        is_short = 0 <= self.consumers <= MAX_CONSUMERS
        return "" if is_short else f"a list of more than {MAX_CONSUMERS} consumers has no pages"


MAX_DIMENSIONS: Final = 4096
"""The most dimensions of a vector that is read: each takes 0.1 µs, and 20 bytes of the reply."""


@final
@dataclass(frozen=True, slots=True)
class VectorEvidence(Evidence):
    """The number of dimensions of a vector set, from VINFO; or None."""

    words: ClassVar[str] = "the number of dimensions"
    dimensions: int | None

    @property
    def is_small(self) -> bool:
        """Whether a vector may be read."""
        return self.dimensions is not None and 0 < self.dimensions <= MAX_DIMENSIONS

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit vectors of few dimensions."""
        return "" if self.is_small else f"a vector of more than {MAX_DIMENSIONS:,} numbers has no pages"


MAX_CLIENTS: Final = 1000
"""The most connected clients that are listed: CLIENT LIST returns all, 5,000 of them in 6 ms and 1.7 MB."""


@final
@dataclass(frozen=True, slots=True)
class ClientsEvidence(Evidence):
    """The number of connected clients, from INFO clients; or None."""

    words: ClassVar[str] = "the number of connected clients"
    connected: int | None

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a short list."""
        is_short = self.connected is not None and 0 <= self.connected <= MAX_CLIENTS
        return "" if is_short else f"a list of more than {MAX_CLIENTS:,} clients has no pages"


MAX_TRACKED_KEYS: Final = 64
"""The most keys that a server tracks in one hot-key session."""


class SlotMetric(StrEnum):
    """A measurement of keys in a hot-key session."""

    CPU = "CPU"
    """The time of the key's commands."""
    NET = "NET"
    """The bytes received and sent by the key's commands."""


@dataclass(frozen=True, slots=True)
class Consent:
    """The user's agreement to start a hot-key session, with its extent; the guard bounds each number."""

    duration_s: int
    """The time after which the server ends it by itself."""
    sample_ratio: int
    """Every n-th command is measured."""
    metrics: tuple[SlotMetric, ...] = (SlotMetric.CPU, SlotMetric.NET)
    count: int = MAX_TRACKED_KEYS
    """The number of keys tracked for each metric."""
    discards_result: bool = False
    """Whether the result of an earlier session, perhaps another operator's, may be lost: the server keeps one only."""
