"""The commands for the length and the value of keys of each type, and the replies to commands about a key as facts.

The second half of the registry of types; `rtui.keyspace.types` has the static facts. A new type needs an entry in each,
its commands in the closed list of `rtui.server.guard`, and, if its content is to be read, a reader in `preview`. For
types of modules `description_from` makes one from a command that describes a value (TS.INFO, BF.INFO …). This is also
the only place that knows the range of each reply.

Of a type without such a command only name, size and memory are shown, of a JSON document the type of its root and its
size. Of a vector set VINFO is shown, and a page of elements with their attributes and vectors: VRANGE lists elements by
name from Redis 8.4 on; before, a random sample is shown. A page has so few elements that their vectors have at most
`PAGE_NUMBERS` numbers; vectors of very many dimensions are left out.

A reply outside its range is not a fact, whatever its type: a fault of a server, a proxy or a module costs that fact and
nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from rtui.analysis.facts import GONE, NO_EXPIRY, NO_TTL, Reason, Ttl, Unknown
from rtui.keyspace import types
from rtui.keyspace.types import NO_TYPE
from rtui.server import guard
from rtui.server.facts.preview.collections import read_array, read_list, read_set, read_stream, read_zset
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
from rtui.server.facts.preview.page import Meaning, Preview, PreviewCell, PreviewColumn, PreviewKind, PreviewRow, Unread
from rtui.server.facts.preview.strings import read_string
from rtui.server.facts.preview.value_reader import NO_ANSWER, ValueReader, byte_items, cell, integer, items, mapping
from rtui.server.guard.command import KeyCommand
from rtui.server.guard.evidence import VectorEvidence
from rtui.server.guard.spec import MAX_FIELD_BYTES
from rtui.server.wire.capability import Capabilities, Feature, unknown_from
from rtui.server.wire.errors import Reply, ServerError

_JSON_SIZES: Final[dict[bytes, tuple[str, KeyCommand]]] = {
    b"object": ("members", guard.json_objlen),
    b"array": ("elements", guard.json_arrlen),
    b"string": ("characters", guard.json_strlen),
}
"""The unit of the size and its command, by the type of the root."""


async def read_nothing(reader: ValueReader) -> Preview:
    """Check that the key still exists; nothing else is read of an undeclared type."""
    await reader.begin()
    why = "rtui does not read values of this type"
    return replace(reader.preview(PreviewKind.DESCRIPTION), refusal=Unknown(Reason.UNSUPPORTED, why))


def description_from(command: KeyCommand) -> Callable[[ValueReader], Awaitable[Preview]]:
    """Return a reader that shows the reply to this command, a map of names and values."""

    async def read_description(reader: ValueReader) -> Preview:
        shown = reader.preview(PreviewKind.DESCRIPTION)
        (reply,) = await reader.begin(command(reader.key))
        if isinstance(reply, ServerError):
            return replace(shown, refusal=unknown_from(reply))
        return replace(shown, summary=summary_of(reply))

    return read_description


def summary_of(reply: Reply) -> tuple[tuple[str, PreviewCell], ...]:
    """Return the single values of a description, in the server's order; lists within it are left out."""
    return tuple(
        (name.decode("utf-8", "backslashreplace"), cell(value))
        for name, value in mapping(reply).items()
        if isinstance(value, (bytes, int, float))
    )


async def describe_json(reader: ValueReader) -> Preview:
    """Read the type of a JSON document's root, and its size if it has one."""
    shown = reader.preview(PreviewKind.DESCRIPTION)
    (reply,) = await reader.begin(guard.json_type(reader.key))
    if isinstance(reply, ServerError):
        return replace(shown, refusal=unknown_from(reply))
    root = _single(reply)
    summary = [("JSON type", cell(root))]
    sized = _JSON_SIZES.get(root) if isinstance(root, bytes) else None
    if sized is not None:
        title, command = sized
        (size,) = await reader.querier.run(command(reader.key))
        summary.append((title, cell(_single(size))))
    why = "JSON.GET has no size limit"
    return replace(shown, summary=tuple(summary), refusal=Unknown(Reason.NOT_ASKED, why))


def _single(reply: Reply) -> Reply:
    """Return the only item of the list in which newer servers wrap their reply."""
    found = items(reply)
    return found[0] if found else reply


PAGE_ELEMENTS: Final = 50
PAGE_NUMBERS: Final = 16_384
"""The most numbers in the vectors of one page: a number takes the server 0.1 µs and 20 bytes of the reply."""

NEVER: Final = (1 << 30,)
"""A version that no Valkey has: it has no vector sets."""

VECTOR: Final = b"vector"
ATTRIBUTES: Final = b"attributes"
COLUMNS: Final = (
    PreviewColumn("element", Meaning.NAME),
    PreviewColumn("of it", Meaning.NAME),
    PreviewColumn("value", Meaning.VALUE),
)
_NUMBER: Final = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


async def read_vectors(reader: ValueReader) -> Preview:
    """Read the description of a vector set, and the elements behind the page's first."""
    shown = reader.preview(PreviewKind.DESCRIPTION)
    (reply,) = await reader.begin(guard.vinfo(reader.key))
    if isinstance(reply, ServerError):
        return replace(shown, refusal=unknown_from(reply))
    shown = replace(shown, summary=summary_of(reply))
    evidence = VectorEvidence(integer(mapping(reply).get(b"vector-dim")))
    per_page = PAGE_NUMBERS // max(1, evidence.dimensions or 1) if evidence.is_small else PAGE_ELEMENTS
    count = min(PAGE_ELEMENTS, per_page, reader.require_items("element"))
    lists = reader.supports(redis=(8, 4), valkey=NEVER)
    start = b"(" + reader.page.position if isinstance(reader.page.position, bytes) else b"-"
    command = guard.vrange(reader.key, start, count=count) if lists else guard.vrandmember(reader.key, count)
    (listed,) = await reader.querier.run(command)
    if not isinstance(listed, list):
        why = unknown_from(listed) if isinstance(listed, ServerError) else NO_ANSWER
        return replace(shown, refusal=replace(why, detail=f"its elements are not shown: {why.detail or why.reason}"))
    names = byte_items(listed)
    rows, notes = await _rows(reader, names, evidence)
    if not lists:
        notes.append(f"a random sample of {len(names)} elements: this server has no VRANGE, which came with Redis 8.4")
    is_more = lists and len(names) == count and len(names[-1]) <= MAX_FIELD_BYTES
    return replace(
        shown,
        columns=COLUMNS,
        rows=tuple(rows),
        elements=len(names),
        first=reader.page.seen if lists else None,
        next_page=reader.page.following(names[-1], shown=len(names)) if is_more else None,
        notes=(*reader.size_notes, *notes),
    )


async def _rows(
    reader: ValueReader, names: Sequence[bytes], evidence: VectorEvidence
) -> tuple[list[PreviewRow], list[str]]:
    """Return two rows for an element, its vector and its attributes if it has any, and notes."""
    asked = [name for name in names if len(name) <= MAX_FIELD_BYTES]
    vectors = [guard.vemb(reader.key, name, evidence) for name in asked] if evidence.is_small else []
    replies = await reader.querier.run(*(guard.vgetattr(reader.key, name) for name in asked), *vectors)
    attributes = dict(zip(asked, replies, strict=False))
    numbers = dict(zip(asked, replies[len(asked) :], strict=False))
    rows: list[PreviewRow] = []
    for name in names:
        rows.append((name, VECTOR, _vector(numbers.get(name))))
        found = attributes.get(name)
        if isinstance(found, ServerError):
            rows.append((None, ATTRIBUTES, unknown_from(found)))
        elif found is not None:
            rows.append((None, ATTRIBUTES, cell(found)))
    if evidence.is_small:
        return rows, []
    dimensions = "of unknown length" if evidence.dimensions is None else f"of {evidence.dimensions:,} numbers"
    return rows, [f"vectors {dimensions} are not read"]


def _vector(reply: Reply) -> PreviewCell | Unknown:
    """Return a vector as a JSON list, with the numbers exactly as the server writes them."""
    if isinstance(reply, ServerError):
        return unknown_from(reply)
    if reply is None:
        return Unread(None)
    parts = [part if isinstance(part, bytes) else repr(part).encode() for part in items(reply)]
    return b"[" + b", ".join(part if _NUMBER.fullmatch(part) else b'"' + part + b'"' for part in parts) + b"]"


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
