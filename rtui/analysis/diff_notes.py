"""What one has to know to read the comparison of two reports."""

from __future__ import annotations

from collections.abc import Iterator

from rtui.analysis.report import Coverage, CoverageKind, Head, Report
from rtui.analysis.words import keys
from rtui.keyspace.display import display, display_text


def notes_of(before: Report, after: Report) -> tuple[str, ...]:
    """Safe sentences, the weightiest first: what differs beside the keys, and what is missing on either side."""
    return tuple(_notes(before, after))


def _notes(before: Report, after: Report) -> Iterator[str]:
    heads = before.head, after.head
    if heads[1].made_at_s < heads[0].made_at_s:
        yield "The first report is the later one."
    yield from _places(*heads)
    yield from _scopes(*heads)
    for name, report in (("first", before), ("second", after)):
        yield from _gaps(name, report)


def _places(before: Head, after: Head) -> Iterator[str]:
    first, second = before.server, after.server
    if first.label != second.label:
        yield f"The servers differ: {display_text(first.label)} and {display_text(second.label)}."
    if first.db != second.db:
        yield f"The databases differ: {first.db} and {second.db}."
    if first.role != second.role:
        yield f"The roles differ: {display_text(first.role) or 'unknown'} and {display_text(second.role) or 'unknown'}."
    versions = [f"{server.product} {server.version}".strip() for server in (first, second)]
    if versions[0] != versions[1]:
        shown = [display_text(version) or "unknown" for version in versions]
        yield f"The servers' versions differ, and with them what a key takes: {shown[0]} and {shown[1]}."


def _scopes(before: Head, after: Head) -> Iterator[str]:
    first, second = before.scope, after.scope
    if first.separators != second.separators:
        yield "The separators differ, so only the totals are compared."
    if first.match != second.match:
        yield f"The patterns differ: {_wanted(first.match)} and {_wanted(second.match)}."
    if first.kind != second.kind:
        yield f"The types asked for differ: {_wanted(first.kind)} and {_wanted(second.kind)}."
    if first.depth != second.depth:
        yield "The depths differ: namespaces are compared as far down as both go."


def _wanted(raw: bytes | None) -> str:
    return "all keys" if raw is None else display(raw, limit=80)


def _gaps(name: str, report: Report) -> Iterator[str]:
    coverage = report.head.coverage
    if coverage.kind is CoverageKind.PARTIAL:
        yield f"The {name} report is partial{_because(coverage)}: there is at least as much as it says."
    if coverage.kind is CoverageKind.ESTIMATE:
        yield (
            f"The {name} report is an estimate from {keys(coverage.keys)}: "
            "what lies within its intervals is not distinguishable."
        )
    if coverage.repeats_possible:
        yield f"The {name} report may count keys twice, since the server resized its table meanwhile."
    for column in ("memory", "ttl"):
        found = report.head.columns.get(column)
        if found is not None and found.state.value != "complete":
            reason = f", {display_text(found.reason)}" if found.reason else ""
            yield f"The {name} report's {column} is {found.state.value}{reason}."
    if report.summary.folded:
        yield f"In the {name} report {keys(report.summary.folded)} lie beyond the budget of namespaces."


def _because(coverage: Coverage) -> str:
    return f" ({display_text(coverage.reason)})" if coverage.reason else ""
