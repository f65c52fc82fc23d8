"""What is known of a key: each fact is a value or an Unknown that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Annotated, Final

from msgspec import Meta

from rtui.keyspace.types import RedisType, type_of

LFU_INITIAL: Final = 5
"""The access counter of a new key, from which it only grows by accesses (LFU_INIT_VAL in evict.c)."""

LFU_HIGHEST: Final = 255
"""The highest value of the access counter; keys accessed more often all have it."""


class Reason(StrEnum):
    """Why a fact is not known."""

    DENIED = "denied"
    """The user may not run the command, or may not read this key."""
    UNKNOWN_COMMAND = "unknown command"
    """The server does not have the command, or has it under another name."""
    GONE = "gone"
    """The key is no longer there, or has been replaced by another of its name, then the detail says so."""
    UNSUPPORTED = "unsupported"
    """The server has the command, but no answer with its eviction policy, or for this type or encoding."""
    NOT_ASKED = "not asked"
    """rtui has not asked, mostly because that would touch the key."""
    TOO_LARGE = "too large"
    FAILED = "failed"
    """The server answered with another error; the detail is its text."""
    IMPOSSIBLE = "impossible"
    """What the server says can't be, such as memory below 0; the detail is what it says."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that is not known; `detail` is a safe sentence without a full stop, or empty."""

    reason: Reason
    detail: str = ""

    def __bool__(self) -> bool:
        return False


NOT_ASKED: Final = Unknown(Reason.NOT_ASKED)
GONE: Final = Unknown(Reason.GONE, "the key no longer exists")


class NoTtl(Enum):
    """The time to live of a key that does not expire."""

    NO_TTL = "no TTL"


NO_TTL: Final = NoTtl.NO_TTL
NO_EXPIRY: Final = -1
"""What PTTL replies for a key that does not expire: the form it has in columns of numbers and in reports."""

Ttl = int | NoTtl | Unknown
"""A time to live in milliseconds, or that the key does not expire, or why that is not known."""


class IdleBasis(StrEnum):
    """What idle time is counted from."""

    ACCESS = "access"
    """The last read or write of the key: every eviction policy but the following."""
    WRITE = "write"
    """The last write: the `*-lrm` policies of Redis 8.6."""


@dataclass(frozen=True, slots=True)
class LfuSettings:
    """How the server counts accesses; `assumed` where it was not asked and these are the defaults."""

    log_factor: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 10
    decay_minutes: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    assumed: bool = True


@dataclass(frozen=True, slots=True)
class Frequency:
    """A key's logarithmic access counter, 0 to 255, and what it means under the server's settings."""

    counter: int
    settings: LfuSettings = LfuSettings()

    @property
    def is_saturated(self) -> bool:
        """Whether the counter has its highest value: the rate is a lower bound then, and such keys can't be ranked."""
        return self.counter >= LFU_HIGHEST

    @property
    def is_at_floor(self) -> bool:
        """Whether the counter says only that there is less than one access in a decay time, or none at all."""
        return self.counter <= LFU_INITIAL

    @property
    def per_minute(self) -> float | None:
        """Accesses a minute at which the counter stays the same; None where it never decays.

        One access raises it with probability 1 / ((counter - 5) × factor + 1), every decay time lowers it by one.
        A counter of 5 or less says only that there is less than one access in a decay time.
        """
        if self.settings.decay_minutes <= 0:
            return None
        above = max(0, self.counter - LFU_INITIAL)
        return (above * self.settings.log_factor + 1) / self.settings.decay_minutes


def ttl_at(ttl: Ttl, asked_at_s: float, now_s: float) -> Ttl:
    """Return what is left at `now_s` of a time to live that was read at `asked_at_s`, 0 when it has run out.

    A clock that has been set back since counts as if no time had passed.
    """
    if not isinstance(ttl, int):
        return ttl
    passed_ms = int(max(0.0, now_s - asked_at_s) * 1000)
    return max(0, ttl - passed_ms)


class _Dated:
    """What follows from facts and from when the server was asked for them."""

    __slots__ = ()
    type: bytes | Unknown
    ttl_ms: Ttl
    asked_at_s: float

    @property
    def is_gone(self) -> bool:
        return isinstance(self.type, Unknown) and self.type.reason is Reason.GONE

    @property
    def expires_at_s(self) -> float | None:
        return self.asked_at_s + self.ttl_ms / 1000 if isinstance(self.ttl_ms, int) else None


@dataclass(frozen=True, slots=True)
class RowFacts(_Dated):
    """The facts that are shown beside the name of a listed key; the last three only where there is room for them.

    The encoding is known of a hash besides.
    """

    key: bytes
    type: bytes | Unknown
    ttl_ms: Ttl
    memory_bytes: int | Unknown
    """MEMORY USAGE with its default number of samples: an estimate for collections on most versions."""
    asked_at_s: float
    """When the server was asked, in seconds since the epoch by this machine's clock."""
    length: int | Unknown = NOT_ASKED
    encoding: bytes | Unknown = NOT_ASKED
    idle_s: int | Unknown = NOT_ASKED

    @property
    def has_more(self) -> bool:
        return self.idle_s is not NOT_ASKED or isinstance(self.type, Unknown)

    def at(self, now_s: float) -> RowFacts:
        left = ttl_at(self.ttl_ms, self.asked_at_s, now_s)
        return self if left == self.ttl_ms else replace(self, ttl_ms=left, asked_at_s=now_s)


@dataclass(frozen=True, slots=True)
class KeyFacts(_Dated):
    """Everything that is known of one key besides its value."""

    key: bytes
    asked_at_s: float
    """When the server was asked, in seconds since the epoch by this machine's clock."""
    type: bytes | Unknown
    encoding: bytes | Unknown
    length: int | Unknown
    """Bytes of a string, else the number of elements: see `redis_type`."""
    memory_bytes: int | Unknown
    ttl_ms: Ttl
    idle_s: int | Unknown
    frequency: Frequency | Unknown
    idle_basis: IdleBasis = IdleBasis.ACCESS
    touched: bool = False
    """Whether asking counted as an access itself: NO-TOUCH was off and a length was asked for."""
    notes: tuple[str, ...] = ()
    """What a reader has to know about the facts, in safe sentences."""
    node: str = ""
    """`host:port` of the node of a cluster that has answered."""
    node_role: str = ""
    """`primary` or `replica`, of that node; empty if it did not say."""
    is_on_disk: bool = False
    """Whether `memory_bytes` are what the key takes on disk."""

    @property
    def redis_type(self) -> RedisType:
        return type_of(None if isinstance(self.type, Unknown) else self.type)

    @property
    def row(self) -> RowFacts:
        return RowFacts(
            self.key,
            self.type,
            self.ttl_ms,
            self.memory_bytes,
            self.asked_at_s,
            self.length,
            self.encoding,
            self.idle_s,
        )

    @property
    def mean_element_bytes(self) -> float | None:
        if isinstance(self.memory_bytes, Unknown) or isinstance(self.length, Unknown) or not self.length:
            return None
        return self.memory_bytes / self.length


def gone_row(key: bytes, asked_at_s: float) -> RowFacts:
    return RowFacts(key, GONE, GONE, GONE, asked_at_s)


def gone_key(key: bytes, asked_at_s: float) -> KeyFacts:
    return KeyFacts(key, asked_at_s, GONE, GONE, GONE, GONE, GONE, GONE, GONE)
