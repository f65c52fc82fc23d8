"""The commands for the length and the value of keys of each type, and the replies to commands about a key as facts.

The second half of the registry of types; `rtui.keyspace.types` has the static facts. A new type needs an entry in each,
its commands in the closed list of `rtui.server.guard`, and, if its content is to be read, a reader in `preview`:
`description_from` makes one from a command that describes a value. This is also the only place that knows the range of
each reply.

A reply outside its range is not a fact, whatever its type: a fault of a server, a proxy or a module costs that fact and
nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from rtui.analysis.facts import GONE, NO_EXPIRY, NO_TTL, Reason, Ttl, Unknown
from rtui.keyspace import types
from rtui.keyspace.types import NO_TYPE
from rtui.server import guard
from rtui.server.facts.preview.collections import read_array, read_list, read_set, read_zset
from rtui.server.facts.preview.descriptions import describe_json, description_from, read_nothing, read_vectors
from rtui.server.facts.preview.finding import (
    find_in_array,
    find_in_hash,
    find_in_list,
    find_in_set,
    find_in_stream,
    find_in_string,
    find_in_zset,
)
from rtui.server.facts.preview.hashes import read_hash
from rtui.server.facts.preview.page import Preview
from rtui.server.facts.preview.streams import read_stream
from rtui.server.facts.preview.strings import read_string
from rtui.server.facts.preview.value_reader import ValueReader
from rtui.server.guard.command import KeyCommand
from rtui.server.wire.capability import Capabilities, Feature, unknown_from
from rtui.server.wire.errors import Reply, ServerError


@dataclass(frozen=True, slots=True)
class TypeQueries:
    """The commands for keys of one type; the defaults are for undeclared types."""

    length: KeyCommand | None = None
    """The command that returns the length in constant time."""
    preview: Callable[[ValueReader], Awaitable[Preview]] = read_nothing
    """Reads one page of the value, within the bounds of `preview.value_reader`."""
    find: Callable[[ValueReader], Awaitable[Preview]] = read_nothing
    """Reads one page of matches in the value."""


QUERIES: Final[dict[bytes, TypeQueries]] = {
    types.STRING.name: TypeQueries(guard.strlen, read_string, find_in_string),
    types.HASH.name: TypeQueries(guard.hlen, read_hash, find_in_hash),
    types.LIST.name: TypeQueries(guard.llen, read_list, find_in_list),
    types.SET.name: TypeQueries(guard.scard, read_set, find_in_set),
    types.ZSET.name: TypeQueries(guard.zcard, read_zset, find_in_zset),
    types.STREAM.name: TypeQueries(guard.xlen, read_stream, find_in_stream),
    types.ARRAY.name: TypeQueries(guard.arcount, read_array, find_in_array),
    types.VECTOR_SET.name: TypeQueries(guard.vcard, read_vectors),
    types.JSON.name: TypeQueries(preview=describe_json),
    types.TIME_SERIES.name: TypeQueries(preview=description_from(guard.ts_info)),
    types.BLOOM_FILTER.name: TypeQueries(preview=description_from(guard.bf_info)),
    types.VALKEY_BLOOM_FILTER.name: TypeQueries(preview=description_from(guard.bf_info)),
    types.CUCKOO_FILTER.name: TypeQueries(preview=description_from(guard.cf_info)),
    types.COUNT_MIN_SKETCH.name: TypeQueries(preview=description_from(guard.cms_info)),
    types.TOP_K.name: TypeQueries(preview=description_from(guard.topk_info)),
    types.T_DIGEST.name: TypeQueries(preview=description_from(guard.tdigest_info)),
}
"""By the name that TYPE replies."""


def queries_of(type_name: bytes | None) -> TypeQueries:
    return QUERIES.get(type_name or b"", TypeQueries())


def length_commands() -> dict[bytes, KeyCommand]:
    return {name: queries.length for name, queries in QUERIES.items() if queries.length is not None}


MAX_INTEGER: Final = (1 << 63) - 1

MAX_NAME_BYTES: Final = 64
"""The longest name of a type or an encoding."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The valid replies to a command: a name, or a number from `low` to `high`."""

    is_name: bool = False
    low: int = 0
    high: int = MAX_INTEGER
    gone: int | bytes | None = None
    """The reply for a key that does not exist, if that is a value."""
    nil_is_gone: bool = False
    """Whether the reply for a key that does not exist is nil."""

    def fits(self, reply: Reply) -> bool:
        if self.is_name:
            return type(reply) is bytes and reply != self.gone and 0 < len(reply) <= MAX_NAME_BYTES
        return type(reply) is int and self.low <= reply <= self.high

    def means_gone(self, reply: Reply) -> bool:
        return self.nil_is_gone if reply is None else self.gone is not None and reply == self.gone

    def all_fit(self, replies: Sequence[Reply]) -> bool:
        """Whether each of many replies is valid, without a Python call for each."""
        if set(map(type, replies)) != {bytes if self.is_name else int}:
            return False
        if self.is_name:
            return all(map(self.fits, set(replies)))
        return self.low <= min(replies) and max(replies) <= self.high  # type: ignore[type-var, operator]


NUMBER: Final = Expected()
"""A length, which is 0 for a key that does not exist."""

_EXPECTED: Final[dict[str, Expected]] = {
    Feature.TYPE: Expected(is_name=True, gone=NO_TYPE),
    Feature.PTTL: Expected(low=NO_EXPIRY, gone=-2),
    Feature.MEMORY_USAGE: Expected(nil_is_gone=True),
    Feature.OBJECT_ENCODING: Expected(is_name=True, nil_is_gone=True),
    Feature.OBJECT_IDLETIME: Expected(nil_is_gone=True),
    Feature.OBJECT_FREQ: Expected(high=255, nil_is_gone=True),
}


def expected(command: str) -> Expected:
    """Return the valid replies to a command about a key, by its name; a length for commands without an entry."""
    return _EXPECTED.get(command, NUMBER)


@dataclass(frozen=True, slots=True)
class KeyAnswers:
    """The replies about one key, by command."""

    capabilities: Capabilities
    """The verdicts on commands, for those that were not sent."""
    replies: dict[str, Reply]

    @property
    def is_gone(self) -> bool:
        """Whether any reply means that there is no such key: later replies count as much as earlier ones."""
        return any(expected(command).means_gone(reply) for command, reply in self.replies.items())

    @property
    def type(self) -> bytes | Unknown:
        return self.name(Feature.TYPE)

    @property
    def ttl_ms(self) -> Ttl:
        left = self.number(Feature.PTTL)
        return NO_TTL if left == NO_EXPIRY else left

    def name(self, command: str) -> bytes | Unknown:
        return cast("bytes | Unknown", self._fact(command, ""))

    def number(self, command: str, why_not_sent: str = "") -> int | Unknown:
        return cast("int | Unknown", self._fact(command, why_not_sent))

    def _fact(self, command: str, why_not_sent: str) -> bytes | int | Unknown:
        """Return a reply within the range of its command, else Unknown with the reason; the range decides its type."""
        if command not in self.replies:
            if self.capabilities.allows(command):
                return Unknown(Reason.NOT_ASKED, why_not_sent)
            refused = self.capabilities[command]
            return Unknown(Reason(refused.verdict.value), refused.reason)
        reply, wanted = self.replies[command], expected(command)
        if isinstance(reply, ServerError):
            return unknown_from(reply)
        if wanted.means_gone(reply):
            return GONE
        if wanted.fits(reply):
            return cast("bytes | int", reply)
        return _not_fitting(command, reply, "name" if wanted.is_name else "number")


def _not_fitting(command: str, reply: Reply, what: str) -> Unknown:
    """Return Unknown for an invalid reply, with the number if it is one."""
    if isinstance(reply, int):
        return Unknown(Reason.IMPOSSIBLE, f"the server says {reply}")
    return Unknown(Reason.FAILED, f"the reply to {command} is not a valid {what}")
