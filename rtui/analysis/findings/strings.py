"""Rules about the strings of a pattern: many small ones that could be hashes, and tiny ones beside large ones.

An analysis does not read values. It knows how long strings are, all of them or one in eight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, as_estimate, count_among
from rtui.analysis.findings.finding import Amount, Basis, Draft, Finding, of_namespace
from rtui.analysis.findings.hash_size import Part, hashes_bytes
from rtui.analysis.findings.memory import total
from rtui.analysis.findings.places import below, is_one_pattern, label
from rtui.analysis.query.behind import Behind
from rtui.analysis.query.query import one_of
from rtui.analysis.report.document import Node, NodeKind, ServerReport, Stats
from rtui.analysis.report.members import TTL_EDGES_S, Figure
from rtui.analysis.report.strings import MOST_TINY, StringReport
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.types import STRING

AS_HASH: Final = "strings-as-hash"
NULL: Final = "null-cached"

FEWEST_ASKED: Final = 30
"""Strings whose length was asked, unless those are all, from which on their mean stands for the others."""

MOST_FIELDS: Final = 100
"""With more fields a hash may be no listpack any more."""

MOSTLY: Final = 0.5
"""A share from which on keys of a pattern expire, or are not tiny."""

MOST_NAMED: Final = 4
"""Fields that are named in the evidence."""

_VERSION: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")
_MEASURED: Final = ("redis", "valkey")
_SMALL_ENTRIES: Final = ("valkey", (9, 0))
"""From which version on strings take so little beyond their value that a hash takes more."""


class _Saving(NamedTuple):
    """What hashes would save."""

    parts: Sequence[Part]
    keys: Amount
    memory: Amount
    hashes: float
    saved: float


def knows_string_lengths(basis: Basis) -> bool:
    """Whether the report has lengths of strings by pattern, if there are any."""
    stats = basis.report.summary.root.stats
    return stats.strings is not None or STRING.name not in dict(stats.types)


def strings_as_hash(basis: Basis) -> Iterator[Draft]:
    """Find identifiers, such as `user:{id}:`, below which there are several small strings.

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
                yield Draft(found.keys, found.memory, partial(_as_hash, basis, path, found))


def has_small_entries(server: ServerReport) -> bool | None:
    """Return whether strings take little beyond their value; None for a server of which it is not known."""
    version, product = _VERSION.match(server.version), server.product.lower()
    if product not in _MEASURED or version is None:
        return None
    return product == _SMALL_ENTRIES[0] and (int(version[1]), int(version[2])) >= _SMALL_ENTRIES[1]


def _is_field(node: Node) -> bool:
    """Whether keys that end here are small strings, and all is known of them."""
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
    """Return how long keys live: what lives for another time can't be in one hash. A bin of TTLs, -1 for no TTL."""
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


def _part(node: Node) -> Part:
    stats, found = node.stats, node.stats.strings
    mean = 0 if stats.memory is None else plain(stats.memory.mean)
    return Part(node.name, plain(stats.keys), mean, 0 if found is None else found.mean)


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


def tiny_strings(basis: Basis) -> Iterator[Draft]:
    """Find patterns of strings, most of which expire, with tiny ones among large ones that live long."""
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
            yield Draft(
                Amount(keys, at_least=is_later or basis.cells.is_partial),
                None,
                partial(_tiny, basis, path, keys, others, is_bound=is_later or basis.cells.is_partial),
            )


def tiny_border(left_ms: float) -> int | None:
    """Return the first border of TTLs that is not below a duration; None where none is."""
    return next((at for at, edge_s in enumerate(TTL_EDGES_S) if edge_s * 1000 >= left_ms), None)


def _others_mean(found: StringReport) -> float | None:
    """Return the mean length of those that are not tiny; None where these are not the most."""
    others = found.asked_keys - found.tiny_keys
    if not found.tiny_keys or others < MOSTLY * found.asked_keys:
        return None
    return max(0, found.length_bytes - MOST_TINY * found.tiny_keys) / others


def _extrapolated(count: int, found: StringReport, stats: Stats) -> Figure:
    """Return how many of all strings are like so many of those that were asked."""
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
