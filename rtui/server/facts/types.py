"""The commands for keys of each type: for the length, and for the preview.

This is the second half of the registry of types; `rtui.keyspace.types` has the static facts. A new type needs an entry
in each, its commands in the closed list of `rtui.server.guard`, and, if its content is to be read, a reader in
`preview`: `description_from` makes one from a command that describes a value.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from rtui.keyspace import types
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
