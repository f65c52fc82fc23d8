"""Facts of keys, asked in as few round trips as possible and in an order in which asking spoils nothing.

What a listed key shows takes one round trip for all rows. What the key under the cursor shows takes two: idle time and
frequency, type, TTL, encoding and memory touch nothing in any version; only the length, asked last, counts as an access
where NO-TOUCH is not on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.facts import (
    GONE,
    NO_TTL,
    Frequency,
    IdleBasis,
    KeyFacts,
    LfuSettings,
    Reason,
    RowFacts,
    Ttl,
    Unknown,
    gone_key,
    gone_row,
)
from rtui.server import guard
from rtui.server.answers import expected
from rtui.server.asking import Asking, Looks
from rtui.server.capability import Capabilities, Feature, Verdict
from rtui.server.errors import ServerError
from rtui.server.guard import MAX_BULK_KEY_BYTES, MAX_KEY_BYTES, PerKey
from rtui.server.identity import ServerIdentity
from rtui.server.reply import Reply
from rtui.server.unknowns import unknown_for, unknown_from

LENGTHS: Final[dict[bytes, PerKey]] = {
    b"string": guard.strlen,
    b"hash": guard.hlen,
    b"list": guard.llen,
    b"set": guard.scard,
    b"zset": guard.zcard,
    b"stream": guard.xlen,
    b"array": guard.arcount,
    b"vectorset": guard.vcard,
}
"""By type, the command that tells the length in constant time."""

NEVER_EMPTY: Final = frozenset((b"hash", b"list", b"set", b"zset"))
"""Types that the server removes with their last element: a length of 0 means that the key is gone."""

_ROW: Final[tuple[PerKey, ...]] = (guard.key_type, guard.pttl, guard.memory_usage)

_NO_TTL_REPLY: Final = -1

REPLICA_NOTE: Final = "idle time and frequency are this replica's own: what clients read on the primary is not in them"
"""How to read the facts of a replica."""


async def row_facts(
    connection: Looks,
    keys: Sequence[bytes],
    capabilities: Capabilities | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> list[RowFacts]:
    """Ask type, TTL and memory of the rows on screen in one round trip, in the order of the keys.

    `clock` gives seconds since the epoch.

    Names over 64 KiB are not sent. Where `capabilities` knows nothing yet, the first key goes ahead alone, so that a
    command that is refused is refused once. Raises ConnectionLost.
    """
    asking = Asking(connection, Capabilities() if capabilities is None else capabilities)
    sendable = [key for key in keys if len(key) <= MAX_BULK_KEY_BYTES]
    found: dict[bytes, RowFacts] = {}
    if len(sendable) > 1 and any(asking.capabilities.verdict(ask.spec.name) is Verdict.UNTRIED for ask in _ROW):
        found.update(await _rows(asking, sendable[:1], clock))
    found.update(await _rows(asking, [key for key in sendable if key not in found], clock))
    return [found[key] if key in found else _long_row(key, clock()) for key in keys]


async def _rows(asking: Asking, keys: Sequence[bytes], clock: Callable[[], float]) -> dict[bytes, RowFacts]:
    """Ask of each key what may be asked."""
    asks = [ask for ask in _ROW if asking.capabilities.may(ask.spec.name)]
    if not asks or not keys:
        return {key: _row(asking.capabilities, key, {}, clock()) for key in keys}
    batches = [guard.each(asks, portion) for portion in guard.portions(keys, len(asks))]
    replies = await asking.connection.run(*batches)
    asked_at_s = clock()
    names = [ask.spec.name for ask in asks]
    asking.learn(names * len(keys), replies)
    width = len(names)
    rows = (dict(zip(names, replies[at : at + width], strict=True)) for at in range(0, len(replies), width))
    return {key: _row(asking.capabilities, key, row, asked_at_s) for key, row in zip(keys, rows, strict=True)}


def _row(capabilities: Capabilities, key: bytes, replies: dict[str, Reply], asked_at_s: float) -> RowFacts:
    answers = _Answers(capabilities, replies)
    if answers.say_gone:
        return gone_row(key, asked_at_s)
    return RowFacts(key, answers.type, answers.ttl_ms, answers.memory_bytes, asked_at_s)


def _long_row(key: bytes, asked_at_s: float) -> RowFacts:
    unknown = Unknown(Reason.TOO_LARGE, f"a name of {len(key):,} bytes: longer ones than 64 KiB are not sent for rows")
    return RowFacts(key, unknown, unknown, unknown, asked_at_s)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Replies by command, read as facts; a command without a reply was not sent, because it is known to be refused."""

    capabilities: Capabilities
    replies: dict[str, Reply]

    def fact(self, feature: str) -> bytes | int | Unknown:
        """Give a reply as a fact, checked for what it may be."""
        if feature not in self.replies:
            unknown = unknown_for(self.capabilities, feature)
            return Unknown(Reason.NOT_ASKED) if unknown is None else unknown
        reply = self.replies[feature]
        if isinstance(reply, ServerError):
            return unknown_from(reply)
        question = expected(feature)
        if question.says_gone(reply):
            return GONE
        if question.fits(reply) and isinstance(reply, (bytes, int)):
            return reply
        return Unknown(
            Reason.FAILED, f"the answer to {feature} is no {'name' if question.is_name else 'number'} that it could be"
        )

    def number(self, feature: str) -> int | Unknown:
        """Give a reply that has to be a number."""
        fact = self.fact(feature)
        return Unknown(Reason.FAILED) if isinstance(fact, bytes) else fact

    def name(self, feature: str) -> bytes | Unknown:
        """Give a reply that has to be a name."""
        fact = self.fact(feature)
        return Unknown(Reason.FAILED) if isinstance(fact, int) else fact

    @property
    def type(self) -> bytes | Unknown:
        """The type's name."""
        return self.name(Feature.TYPE)

    @property
    def ttl_ms(self) -> Ttl:
        """What PTTL says."""
        left = self.number(Feature.PTTL)
        return NO_TTL if left == _NO_TTL_REPLY else left

    @property
    def memory_bytes(self) -> int | Unknown:
        """What MEMORY USAGE says."""
        return self.number(Feature.MEMORY_USAGE)

    @property
    def say_gone(self) -> bool:
        """Whether any reply says that there is no such key: the last word counts, and a key does not come back."""
        return any(expected(feature).says_gone(reply) for feature, reply in self.replies.items())


async def key_facts(
    connection: Looks,
    key: bytes,
    capabilities: Capabilities | None = None,
    *,
    may_touch: bool = True,
    lfu: LfuSettings = LfuSettings(),  # noqa: B008 - a frozen value
    clock: Callable[[], float] = time.time,
) -> KeyFacts:
    """Ask all facts of one key in two round trips; `clock` gives seconds since the epoch.

    Without `may_touch` the length is left out where asking it would count as an access. Raises ConnectionLost.
    """
    if len(key) > MAX_KEY_BYTES:
        return _long_key(key, clock())
    asking = Asking(connection, Capabilities() if capabilities is None else capabilities)
    answers = await _still(asking, key)
    asked_at_s = clock()
    if answers.say_gone:
        return gone_key(key, asked_at_s)
    length = await _length(asking, key, answers.type, may_touch=may_touch)
    if length == 0 and answers.type in NEVER_EMPTY:
        return gone_key(key, asked_at_s)
    server = asking.connection.server
    return KeyFacts(
        key=key,
        asked_at_s=asked_at_s,
        type=answers.type,
        encoding=answers.name(Feature.OBJECT_ENCODING),
        length=length,
        memory_bytes=answers.memory_bytes,
        ttl_ms=answers.ttl_ms,
        idle_s=answers.number(Feature.OBJECT_IDLETIME),
        frequency=_frequency(answers.number(Feature.OBJECT_FREQ), lfu),
        idle_basis=IdleBasis.WRITE if "lrm" in (server.maxmemory_policy or "") else IdleBasis.ACCESS,
        touched=asking.touches and isinstance(length, int),
        notes=(REPLICA_NOTE,) if server.role == "replica" else (),
    )


async def _still(asking: Asking, key: bytes) -> _Answers:
    """Ask everything that touches nothing, first of all what looking could change."""
    keeps_frequency = asking.connection.server.is_lfu
    recency, other = guard.object_idletime, guard.object_freq
    if keeps_frequency:
        recency, other = other, recency
    asks = (recency, guard.key_type, guard.pttl, guard.object_encoding, guard.memory_usage)
    names = [ask.spec.name for ask in asks]
    replies = dict(zip(names, await asking.run(*(ask(key) for ask in asks)), strict=True))
    if _is_policy_error(replies[recency.spec.name]):
        (replies[other.spec.name],) = await asking.connection.run(other(key))
    else:
        replies[other.spec.name] = ServerError(_not_kept(asking.connection.server, other))
    return _Answers(asking.capabilities, replies)


def _is_policy_error(reply: Reply) -> bool:
    """Whether the server keeps the other of idle time and frequency, since somebody has changed the policy."""
    return isinstance(reply, ServerError) and unknown_from(reply).reason is Reason.UNSUPPORTED


def _not_kept(server: ServerIdentity, ask: PerKey) -> str:
    """Say in the words of an error reply that the policy does not keep this."""
    kept = "access frequencies" if ask is guard.object_freq else "idle times"
    policy = f"maxmemory policy {server.maxmemory_policy}" if server.maxmemory_policy else "this maxmemory policy"
    return f"{policy} keeps no {kept}"


def _frequency(counter: int | Unknown, lfu: LfuSettings) -> Frequency | Unknown:
    return counter if isinstance(counter, Unknown) else Frequency(counter, lfu)


async def _length(asking: Asking, key: bytes, kind: bytes | Unknown, *, may_touch: bool) -> int | Unknown:
    if isinstance(kind, Unknown):
        return Unknown(Reason.NOT_ASKED, "the type is not known")
    ask = LENGTHS.get(kind)
    if ask is None:
        return Unknown(Reason.UNSUPPORTED, "no command tells the length of this type")
    if asking.touches and not may_touch:
        return Unknown(Reason.NOT_ASKED, "asking would count as an access")
    (reply,) = await asking.run(ask(key))
    return _Answers(asking.capabilities, {ask.spec.name: reply}).number(ask.spec.name)


def _long_key(key: bytes, asked_at_s: float) -> KeyFacts:
    unknown = Unknown(Reason.TOO_LARGE, f"a name of {len(key):,} bytes: longer ones than 1 MiB are not sent")
    return KeyFacts(key, asked_at_s, unknown, unknown, unknown, unknown, unknown, unknown, unknown)
