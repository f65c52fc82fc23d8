"""A rule about encodings: collections with little more elements than a compact encoding may have."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.findings.finding import Amount, Basis, Draft, Finding
from rtui.analysis.findings.memory import total
from rtui.analysis.findings.places import type_line
from rtui.analysis.query.behind import Behind
from rtui.analysis.query.query import one_of, query_of
from rtui.analysis.report.document import EncodingReport, Report, TypeReport
from rtui.analysis.report.members import LENGTH_EDGES
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.quantities import Bounds

OVER: Final = "encoding-over"

_LARGE: Final = {b"hash": (b"hashtable",), b"set": (b"hashtable",), b"zset": (b"skiplist",)}
"""The encodings without a limit."""

_NUMBERS: Final = b"intset"
"""The encoding of sets of numbers, which has a limit of its own."""

OVER_NOTE: Final = SafeText("some of them may be over the limit by the size of an element, too")


def has_limited_types(basis: Basis) -> bool:
    """Whether there are keys of a type with a compact encoding, so far as types are known."""
    return not basis.knows("type") or any(one.name in _LARGE for one in basis.report.summary.types)


def types_without_lengths(basis: Basis) -> tuple[bytes, ...]:
    """Return the types with a compact encoding that have enough keys, but not one whose length is known."""
    fewest = basis.number(OVER, "keys")
    limited = (one for one in basis.report.summary.types if one.name in _LARGE and one.lengths is None)
    return tuple(one.name for one in limited if plain(one.stats.keys) >= fewest)


def lengths_over(basis: Basis) -> Iterator[Draft]:
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
            yield Draft(keys, None, partial(_over, basis, one, keys, LENGTH_EDGES[last], _share(one.name, asked)))


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
    """Return how many keys of a type have the large encoding."""
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
        find_command=lambda: type_line(one.name),
        evidence=(
            SafeText(share),
            SafeText(f"rtui does not read {name}-max-listpack-entries: where it is another, set {name} of the rule"),
        ),
    )
