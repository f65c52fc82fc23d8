"""Rules about how values are kept: strings that could be hashes, tiny strings, collections just over a compact limit.

An analysis does not read values. It knows how long strings are, all of them or one in eight.

What strings about one thing would take as the fields of one hash, as MEMORY USAGE counts it:

`user:42:name` of 9 bytes and `user:42:email` of 22 take 90 and 104 bytes on Redis 7.0: an entry of the dictionary, the
name of the key, an object and the value. As the hash `user:42` they would need all but the values once, and a listpack:

    7 bytes + for each field its name and its value, each with 2 bytes more (4 from 64 bytes on)

What is needed once is not looked up in a table of versions but taken from the strings themselves: what one takes beyond
its value. A value of up to 20 bytes may be an integer that lies in the object, so nothing is subtracted for it. Each
string overstates what the hash needs by its longer name and by the header of the value: the least of them, without the
part of the name that becomes the field, is still enough. From Valkey 9.0 on entries are as small as can be for strings
and larger for hashes: there the largest of them is taken, with its whole name. The listpack is rounded up to half a
step of the allocator beyond its mean.

Measured on Redis 6.2, 7.0, 8.0, 8.6, 8.10 and Valkey 8.0, 8.1, 9.1 with two to six fields: of the bytes that the
strings take, hashes save at most 3 % less than is computed, and at most 30 % more. `used_memory` fell by more, since
MEMORY USAGE leaves out the table of the dictionary, unless values were small integers, which servers without a limit
of memory share.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil, log2
from shlex import quote
from typing import Final, NamedTuple

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, as_estimate, count_among
from rtui.analysis.findings.finding import Amount, Basis, Finding, below, is_one_pattern, of_namespace
from rtui.analysis.findings.keys import total
from rtui.analysis.query.behind import Behind, label
from rtui.analysis.query.query import one_of, query_of
from rtui.analysis.report.document import EncodingReport, Node, NodeKind, Report, ServerReport, Stats, TypeReport
from rtui.analysis.report.members import LENGTH_EDGES, MOST_TINY, TTL_EDGES_S, Figure, StringReport
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.types import STRING

LISTPACK_BYTES: Final = 7
"""Of an empty listpack: its header and its end."""

LONGEST_INTEGER: Final = 20
"""Digits of the largest number that a string object may hold as such."""

_SHORT: Final = 64
"""Shorter elements of a listpack have headers of one byte."""


class HashPart(NamedTuple):
    """Strings that would be one field; means over all of them."""

    name: bytes
    keys: float
    key_bytes: float
    """MEMORY USAGE of one."""
    value_bytes: float


def hashes_bytes(parts: Sequence[HashPart], hashes: float, *, has_small_entries: bool) -> float:
    """Return the estimated bytes of a number of hashes; `has_small_entries` as in Valkey 9."""
    fields = sum(part.keys * (_element(len(part.name)) + _element(part.value_bytes)) for part in parts)
    listpack = LISTPACK_BYTES + fields / hashes
    step = 16 if listpack <= 128 else 2 ** ceil(log2(listpack)) / 8
    return hashes * (_overhead(parts, has_small_entries=has_small_entries) + listpack + step / 2)


def _element(length: float) -> float:
    return length + (2 if length < _SHORT else 4)


def _overhead(parts: Sequence[HashPart], *, has_small_entries: bool) -> float:
    beyond = [part.key_bytes - (part.value_bytes if part.value_bytes > LONGEST_INTEGER else 0) for part in parts]
    if has_small_entries:
        return max(beyond)
    return min(one - len(part.name) - 1 for one, part in zip(beyond, parts, strict=True))


AS_HASH: Final = "strings-as-hash"
NULL: Final = "null-cached"

FEWEST_ASKED: Final = 30
"""Least strings of known length whose mean is extrapolated to the others."""

MOST_FIELDS: Final = 100
"""Fields of a hash beyond which it may not be a listpack."""

MOSTLY: Final = 0.5
"""A share from which on keys of a pattern expire, or are not tiny."""

MOST_NAMED: Final = 4
_VERSION: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")
_MEASURED: Final = ("redis", "valkey")
_SMALL_ENTRIES: Final = ("valkey", (9, 0))


class _Saving(NamedTuple):
    """The savings by hashes."""

    parts: Sequence[HashPart]
    keys: Amount
    memory: Amount
    hashes: float
    saved: float


def string_lengths_unknown(basis: Basis) -> str:
    stats = basis.report.summary.root.stats
    is_known = stats.strings is not None or STRING.name not in dict(stats.types)
    return "" if is_known else "reports of older versions have no lengths by pattern"


def strings_as_hash(basis: Basis) -> Iterator[Finding]:
    """Find identifiers, such as `user:<id>:`, below which there are several small strings.

    Told is the memory that hashes would save at least. Nothing is told where a figure is missing that it rests on:
    lengths, bytes or TTLs that are not known, more than one identifier in the name, a server that was not measured.
    """
    least = basis.number(AS_HASH, "saves")
    has_small = has_small_entries(basis.report.head.server)
    if has_small is None:
        return
    for path in below(basis.report.summary.root):
        node = path[-1]
        is_thing = node.kind is NodeKind.PATTERN and bool(node.separator) and node.distinct is not None
        if not is_thing or sum(one.kind is NodeKind.PATTERN for one in path) > 1:
            continue
        fields = sorted(filter(_is_field, node.children), key=_life)
        for _, alike in groupby(fields, key=_life):
            found = _saving(basis, node, list(alike), has_small_entries=has_small)
            if found is not None and found.saved >= least:
                yield _as_hash(basis, path, found)


def has_small_entries(server: ServerReport) -> bool | None:
    """Return whether strings take little beyond their value; None for an unknown server."""
    version, product = _VERSION.match(server.version), server.product.lower()
    if product not in _MEASURED or version is None:
        return None
    return product == _SMALL_ENTRIES[0] and (int(version[1]), int(version[2])) >= _SMALL_ENTRIES[1]


def _is_field(node: Node) -> bool:
    stats, found = node.stats, node.stats.strings
    is_literal = node.kind is NodeKind.LITERAL and not node.children and not node.separator
    if not is_literal or found is None or found.long_keys or stats.memory is None or stats.no_ttl_share is None:
        return False
    kinds = [kind for kind, _ in stats.types]
    is_measured = isinstance(stats.keys, Estimate) or stats.memory_known_keys >= stats.keys
    return kinds == [STRING.name] and is_measured and _stands_for_all(found, stats)


def _stands_for_all(found: StringReport, stats: Stats) -> bool:
    return found.asked_keys >= min(FEWEST_ASKED, plain(stats.keys))


def _life(node: Node) -> int:
    """Return the bin of the TTLs of keys, -1 for no TTL: keys of different bins can't be in one hash."""
    bins = node.stats.ttl or ()
    if plain(node.stats.no_ttl_share or 0) > MOSTLY:
        return -1
    return max((at for at, keys in enumerate(bins) if plain(keys)), default=-1)


def _saving(basis: Basis, node: Node, fields: Sequence[Node], *, has_small_entries: bool) -> _Saving | None:
    if not 1 < len(fields) <= MOST_FIELDS or node.distinct is None:
        return None
    parts = [_part(one) for one in fields]
    keys = sum(part.keys for part in parts)
    hashes = min(keys, max(as_estimate(node.distinct).high, *(part.keys for part in parts)))
    memory = sum(part.keys * part.key_bytes for part in parts)
    saved = memory - hashes_bytes(parts, hashes, has_small_entries=has_small_entries)
    counted = Amount(total([one.stats.keys for one in fields]), basis.cells.is_partial)
    measured = Amount(total([one.stats.memory_bytes or 0 for one in fields]), basis.cells.is_partial)
    return _Saving(parts, counted, measured, hashes, saved)


def _part(node: Node) -> HashPart:
    stats, found = node.stats, node.stats.strings
    mean = 0 if stats.memory is None else plain(stats.memory.mean)
    return HashPart(node.name, plain(stats.keys), mean, 0 if found is None else found.mean)


def _as_hash(basis: Basis, path: Sequence[Node], found: _Saving) -> Finding:
    names = [
        f"{display(part.name, limit=30)}: {part.key_bytes:.0f} B a key, values of {part.value_bytes:.0f} B"
        for part in found.parts
    ]
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"and {humanize.counted(len(names) - MOST_NAMED, 'more field')}"]
    per_hash = (found.memory.value - found.saved) / found.hashes
    server = basis.report.head.server
    return of_namespace(
        basis,
        AS_HASH,
        path,
        title=f"{found.keys.keys('small string')} of {label(path)} would take at least "
        f"{humanize.size(round(found.saved))} less of {found.memory.size()} as hashes",
        keys=found.keys,
        memory=found.memory,
        narrowed=lambda behind: behind.with_terms(one_of("type", [STRING.name])),
        evidence=[
            "; ".join(names),
            f"computed: {humanize.count(round(found.hashes))} hashes of {per_hash:.0f} B at most, "
            f"as MEMORY USAGE of {server.product} {server.version} counts",
        ],
    )


def tiny_strings(basis: Basis) -> Iterator[Finding]:
    left_ms, fewest = basis.number(NULL, "left"), basis.number(NULL, "keys")
    first = tiny_border(left_ms)
    if first is None:
        return
    is_later = TTL_EDGES_S[first] * 1000 > left_ms
    for path in below(basis.report.summary.root):
        stats, found = path[-1].stats, path[-1].stats.strings
        if found is None or not is_one_pattern(path) or not _stands_for_all(found, stats):
            continue
        others = _others_mean(found)
        is_cache = stats.no_ttl_share is not None and plain(stats.no_ttl_share) <= MOSTLY
        if not is_cache or others is None or others < basis.number(NULL, "others"):
            continue
        long = found.tiny_ttl[0] + sum(found.tiny_ttl[first + 2 :])
        keys = _extrapolated(long, found, stats)
        if long and plain(keys) >= fewest:
            yield _tiny(basis, path, keys, others, is_bound=is_later or basis.cells.is_partial)


def tiny_border(left_ms: float) -> int | None:
    return next((at for at, edge_s in enumerate(TTL_EDGES_S) if edge_s * 1000 >= left_ms), None)


def tiny_unknown(basis: Basis) -> str:
    if why := basis.why_unknown("type", "ttl", "length") or string_lengths_unknown(basis):
        return why
    is_told = tiny_border(basis.number(NULL, "left")) is not None
    edge = humanize.seconds(TTL_EDGES_S[-1])
    return "" if is_told else f"reports have TTLs only up to {edge} apart; set left to less"


def _others_mean(found: StringReport) -> float | None:
    others = found.asked_keys - found.tiny_keys
    if not found.tiny_keys or others < MOSTLY * found.asked_keys:
        return None
    return max(0, found.length_bytes - MOST_TINY * found.tiny_keys) / others


def _extrapolated(count: int, found: StringReport, stats: Stats) -> Figure:
    strings = dict(stats.types).get(STRING.name, 0)
    whole = as_estimate(strings)
    if whole.low == whole.high <= found.asked_keys:
        return count
    share = count_among(count, found.asked_keys, max(found.asked_keys, round(whole.value)))
    if not isinstance(strings, Estimate):
        return share
    scale = whole.value or 1
    return Estimate(share.low * whole.low / scale, share.value, share.high * whole.high / scale)


def _tiny(basis: Basis, path: Sequence[Node], keys: Figure, others: float, *, is_bound: bool) -> Finding:
    amount = Amount(keys, at_least=is_bound)
    left = humanize.seconds(basis.number(NULL, "left") / 1000)
    verb = "holds" if keys == 1 else "hold"

    def tiny(behind: Behind) -> Behind:
        note = SafeText(f"those with less than {left} left are found, too")
        return behind.with_terms(one_of("type", [STRING.name]), one_of("len", [Bounds(None, MOST_TINY)]), note=note)

    return of_namespace(
        basis,
        NULL,
        path,
        title=f"{amount.keys('string')} of {label(path)} {verb} {MOST_TINY} bytes at most, with more than {left} left; "
        f"the others have {others:,.0f} bytes on average",
        keys=amount,
        memory=None,
        narrowed=tiny,
        evidence=["values are not read: whether these stand for nothing (null, nil, {}) only a look at one can tell"],
    )


OVER: Final = "encoding-over"
_LARGE: Final = {b"hash": (b"hashtable",), b"set": (b"hashtable",), b"zset": (b"skiplist",)}
_NUMBERS: Final = b"intset"
"""The encoding of sets of numbers, which has a limit of its own."""

OVER_NOTE: Final = SafeText("some of them may be over the limit by the size of an element, too")


def has_limited_types(basis: Basis) -> bool:
    return not basis.knows("type") or any(one.name in _LARGE for one in basis.report.summary.types)


def lengths_unknown(basis: Basis) -> str:
    fewest = basis.number(OVER, "keys")
    limited = (one for one in basis.report.summary.types if one.name in _LARGE and one.lengths is None)
    names = [display(one.name, limit=40) for one in limited if plain(one.stats.keys) >= fewest]
    why = basis.why_unknown("type", "encoding", "length")
    return why or (f"the report does not have lengths of type {', '.join(names)}" if names else "")


def lengths_over(basis: Basis) -> Iterator[Finding]:
    """Find the types of which many keys have little more elements than the compact encoding may have.

    Counted are lengths that are certainly over the limit. A type of which no key in the sample has the large encoding
    has another limit here, and of sets among which there are numbers it is not known which of two limits counts.
    """
    fewest = basis.number(OVER, "keys")
    encodings = _encodings(basis.report)
    for one in basis.report.summary.types:
        asked = encodings.get(one.name, ())
        if one.name not in _LARGE or one.lengths is None or not _is_split(one.name, asked):
            continue
        limit, highest = _limits(basis, one)
        first, last = bisect_left(LENGTH_EDGES, limit), bisect_left(LENGTH_EDGES, highest + 1) - 1
        found = total(one.lengths[first:last]) if last > first else 0
        if plain(found) >= fewest:
            is_bound = not isinstance(found, Estimate)
            keys = Amount(found, at_least=is_bound)
            yield _over(basis, one, keys, LENGTH_EDGES[last], _share(one.name, asked))


def _limits(basis: Basis, one: TypeReport) -> tuple[int, int]:
    limit = int(basis.number(OVER, one.name.decode()))
    return limit, int(limit * basis.number(OVER, "within"))


def _encodings(report: Report) -> dict[bytes, tuple[EncodingReport, ...]]:
    kinds = dict.fromkeys(one.key_type for one in report.summary.encodings)
    return {kind: tuple(one for one in report.summary.encodings if one.key_type == kind) for kind in kinds}


def _is_split(key_type: bytes, asked: Sequence[EncodingReport]) -> bool:
    """Whether keys of the large encoding were seen, and none of a compact one with another limit."""
    seen = {one.encoding for one in asked if plain(one.keys)}
    return bool(seen.intersection(_LARGE[key_type])) and _NUMBERS not in seen


def _share(key_type: bytes, asked: Sequence[EncodingReport]) -> str:
    (large,) = _LARGE[key_type]
    share = next((one.share for one in asked if one.encoding == large), 0.0)
    return f"{humanize.written(share, humanize.share)} of all of this type are {large.decode()}"


def _over(basis: Basis, one: TypeReport, keys: Amount, highest: int, share: str) -> Finding:
    limit, _ = _limits(basis, one)
    name, large = display(one.name, limit=40), _LARGE[one.name][0].decode()
    verb = "has" if as_estimate(keys.figure).value == 1 else "have"

    def behind() -> Behind:
        return Behind(query_of(one_of("type", [one.name]), one_of("len", [Bounds(limit + 1, highest)])), OVER_NOTE)

    return Finding(
        rule=OVER,
        severity=basis.severity(OVER),
        title=SafeText(
            f"{keys.keys(f'{name} key')} {verb} {limit + 1:,} to {highest:,} {one.unit}, just over the limit of "
            f"{limit:,} for listpacks: {large}"
        ),
        where=SafeText(f"type {name}"),
        keys=keys,
        memory=None,
        find_behind=behind,
        find_command=lambda: SafeText(f"redis-cli --scan --type {quote(display(one.name, limit=60))}"),
        evidence=(
            SafeText(share),
            SafeText(f"rtui does not read {name}-max-listpack-entries: where it is another, set {name} of the rule"),
        ),
    )
