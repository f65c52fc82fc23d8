"""What has to be known of a value before a command may look into it: the guard judges it whenever it builds one.

What a command costs may depend on the value: on its type, its encoding, its length. Such a command is built only from
what the server has said about these before, as one of the values below. Each says how much it permits, so that whoever
asks can decide in the same words, and the guard refuses whatever goes beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, final

from rtui.keyspace.types import MemoryUsage, type_of

PROBE_KEY: Final = b"rtui:no-such-key"
"""A name that nobody uses: asking for it tells what is allowed without looking at anybody's data."""

EXACT_SINCE: Final = (8, 4)
"""From this version of Redis on the size of every built-in type is counted as it grows and told in constant time."""

MAX_WATCHED: Final = 64
"""Most keys of one write whose size nothing bounds, however cheap others were."""

COMPACT_STEPS: Final = 50_000
"""Entries of a compact encoding that commands may walk over: each look-up of a field walks from the first, 20,000 of
them in 0.4 ms."""

COMPACT_BYTES: Final = 256 * 1024
"""Largest collection of a compact encoding that is read: the server always answers it whole."""

MIN_ENTRY_BYTES: Final = 4
"""Least memory of a field with its value in a compact encoding: two entries, each with a head and a length."""

FEW_ELEMENTS: Final = 10
"""A collection of no more elements may be read when its memory is not known."""

MAX_LOOK_UPS: Final = 10_000
"""Most look-ups of fields by name for one page."""

MAX_MEAN_ENTRY_BYTES: Final = 64 * 1024
"""Largest average entry of a stream whose first and last entry are read on the way."""

MAX_GROUPS: Final = 100
"""Groups of a stream that is asked for them: XINFO GROUPS answers with all, 10,000 of them in 4.5 ms."""

MAX_CONSUMERS: Final = 100
"""Consumers of a group that is asked for them."""

_PAGED_ENCODINGS: Final = frozenset((b"hashtable", b"skiplist"))
"""Encodings whose scan commands obey COUNT. All others, also those still to be invented, count as compact."""

_INDEXED_ENCODINGS: Final = _PAGED_ENCODINGS | {b"intset"}
"""Encodings of which a random element is taken without a walk."""


class Manner(Enum):
    """How MEMORY USAGE of a type may be asked."""

    FREELY = "freely"
    """Constant in time: asked in bulk."""
    WATCHED = "watched"
    """Usually cheap, but nothing bounds it: asked one at a time, on its own, with an eye on the server's clock."""
    NEVER = "never"


@final
@dataclass(frozen=True, slots=True)
class MemoryCost:
    """How it may be asked and, unless freely, why not; a safe sentence without a full stop."""

    manner: Manner
    why: str = ""


_FREELY: Final = MemoryCost(Manner.FREELY)
_STREAM: Final = MemoryCost(
    Manner.WATCHED, "before Redis 8.4 the size of a stream takes a walk over all its groups and consumers"
)
_MODULE: Final = MemoryCost(
    Manner.NEVER, "the type comes from a module, whose answer to MEMORY USAGE may walk the whole value"
)
_UNTYPED: Final = MemoryCost(Manner.NEVER, "the type is not known, so nobody knows what asking costs")


def counts_sizes(product: str | None, version: tuple[int, ...] | None) -> bool:
    """Whether MEMORY USAGE of this server tells exact sizes that it keeps as they grow."""
    return product == "redis" and version is not None and version >= EXACT_SINCE


def most_watched(proved: int) -> int:
    """How many keys one write may ask where the cost has to be watched: one at first, twice as many as were cheap."""
    return max(1, min(MAX_WATCHED, 2 * proved))


class Evidence:
    """What is known of one key, or of several of which the same is known."""

    __slots__ = ()
    words: ClassVar[str] = ""
    """What has to be known, in a few words."""

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Say why this is not enough for a command sent for so many `keys` at once; empty when it is enough.

        `arguments` is what follows the command's name, the key first; empty where there are several keys.
        """
        raise NotImplementedError


@final
@dataclass(frozen=True, slots=True)
class AbsentKey(Evidence):
    """No key is meant but the one that nobody has: the question is whether the command may be used at all."""

    words: ClassVar[str] = "a key that nobody has"

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit the probe's key alone."""
        return (
            ""
            if keys == 1 and tuple(arguments[:1]) == (PROBE_KEY,)
            else "only the probe's own key is known to be absent"
        )


@final
@dataclass(frozen=True, slots=True)
class TypeEvidence(Evidence):
    """The type of a key as the server named it, and what the server is; a server that does not say is an old Redis."""

    words: ClassVar[str] = "the type of the key, product and version of the server"
    key_type: bytes | None
    product: str | None
    version: tuple[int, ...] | None
    proved: int = 0
    """So many keys of this type were asked in one write before, and the server took next to no time for them."""

    @property
    def memory_cost(self) -> MemoryCost:
        """How MEMORY USAGE with its default samples may be asked. Valkey samples groups of a stream as elements."""
        if self.key_type is None:
            return _UNTYPED
        work = type_of(self.key_type).memory_usage
        if work is MemoryUsage.UNBOUNDED:
            return _MODULE
        walks_groups = not counts_sizes(self.product, self.version) and self.product != "valkey"
        return _STREAM if work is MemoryUsage.WALKS_GROUPS and walks_groups else _FREELY

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit what is asked freely, and a few keys of what has to be watched."""
        cost = self.memory_cost
        if cost.manner is Manner.NEVER or (cost.manner is Manner.WATCHED and keys > most_watched(self.proved)):
            return cost.why
        return ""


@final
@dataclass(frozen=True, slots=True)
class CollectionEvidence(Evidence):
    """Encoding, number of elements and memory of a hash or set, each None where it is not known."""

    words: ClassVar[str] = "encoding, and length or memory where it is a compact one"
    encoding: bytes | None
    length: int | None
    memory_bytes: int | None

    @property
    def is_compact(self) -> bool:
        """Whether HSCAN and SSCAN may answer with the whole value whatever COUNT says (db.c, scanGenericCommand)."""
        return self.encoding not in _PAGED_ENCODINGS

    @property
    def is_small(self) -> bool:
        """Whether the whole value may be read in one reply."""
        return self.memory_bytes is not None and self.memory_bytes <= COMPACT_BYTES

    @property
    def may_be_scanned(self) -> bool:
        """Whether a page may be asked for: it obeys COUNT, or the whole is small, or next to nothing."""
        is_short = self.memory_bytes is None and self.length is not None and 0 <= self.length <= FEW_ELEMENTS
        return not self.is_compact or self.is_small or is_short

    @property
    def may_be_sampled(self) -> bool:
        """Whether random elements may be asked for: without a walk, or by a short one over all elements."""
        most = self._most_elements
        return self.encoding in _INDEXED_ENCODINGS or (most is not None and most <= COMPACT_STEPS)

    @property
    def look_ups(self) -> int:
        """How many fields may be looked up by name for one page; in a compact encoding each walks over all of them."""
        if not self.is_compact:
            return MAX_LOOK_UPS
        most = self._most_elements
        return 0 if most is None else COMPACT_STEPS // max(1, most)

    @property
    def _most_elements(self) -> int | None:
        """How many elements there are at most, None where nobody knows."""
        if self.length is not None and self.length >= 0:
            return self.length
        return None if self.memory_bytes is None else self.memory_bytes // MIN_ENTRY_BYTES

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit by command: pages, random elements, or look-ups of as many fields as are named."""
        match command:
            case "HSCAN" | "SSCAN" if self.may_be_scanned:
                return ""
            case "HRANDFIELD" | "SRANDMEMBER" if self.may_be_sampled:
                return ""
            case "HMGET" | "HSTRLEN" if len(arguments) - 1 <= self.look_ups:
                return ""
            case "HPTTL" if len(arguments) - 3 <= self.look_ups:
                return ""
        return "in a compact encoding it walks over all elements, which may be too many"


@final
@dataclass(frozen=True, slots=True)
class EntryEvidence(Evidence):
    """How large an entry of a stream is on average, None where nobody knows."""

    words: ClassVar[str] = "the average size of an entry"
    mean_bytes: float | None

    @property
    def is_light(self) -> bool:
        """Whether two entries may come along."""
        return self.mean_bytes is not None and self.mean_bytes <= MAX_MEAN_ENTRY_BYTES

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a description that brings two entries."""
        return "" if self.is_light else "its first and last entry come along in full, which may be large"


@final
@dataclass(frozen=True, slots=True)
class GroupEvidence(Evidence):
    """How many groups a stream has, as XINFO STREAM says."""

    words: ClassVar[str] = "the number of groups"
    groups: int

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a list that is short."""
        return "" if 0 <= self.groups <= MAX_GROUPS else f"a list of more than {MAX_GROUPS} groups has no pages"


@final
@dataclass(frozen=True, slots=True)
class ConsumerEvidence(Evidence):
    """How many consumers a group has, as XINFO GROUPS says."""

    words: ClassVar[str] = "the number of consumers of the group"
    consumers: int

    def refusal(self, command: str, arguments: Sequence[bytes], keys: int) -> str:
        """Permit a list that is short."""
        is_short = 0 <= self.consumers <= MAX_CONSUMERS
        return "" if is_short else f"a list of more than {MAX_CONSUMERS} consumers has no pages"
