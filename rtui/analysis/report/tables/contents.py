"""The contents of a report file: its head in words (when, where, coverage, cost, what was denied), then its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rtui.analysis import humanize
from rtui.analysis.columns import ALL_COLUMNS
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import ColumnState, Coverage, CoverageKind, Report
from rtui.analysis.report.tables.expiry import about_to_expire, cliffs, no_ttl
from rtui.analysis.report.tables.keys import big_keys, hot_keys, hot_slots, longer_keys
from rtui.analysis.report.tables.nodes import nodes
from rtui.analysis.report.tables.registered import coverage_of, registry_tables
from rtui.analysis.report.tables.slots import cluster_of, slot_tags, slots
from rtui.analysis.report.tables.table import Column, Table, Unit
from rtui.analysis.report.tables.totals import (
    encodings,
    frequency_histogram,
    idle_histogram,
    keysizes,
    outline,
    ttl_histogram,
    types,
)
from rtui.keyspace.text.display import display, display_text


def about(report: Report) -> Table:
    """Return the head of the report in words, a line each."""
    rows = tuple((what, text) for what, text in _lines(report) if text)
    if report.summary.registry is not None:
        rows += (("registry", coverage_of(report.summary.registry)),)
    columns = (Column("what", "", Unit.TEXT, 12), Column("said", "", Unit.TEXT))
    return Table("about", "About this report", columns, rows)


def headline(report: Report) -> str:
    """Return what there is in one line: `1.6G in 1,000,000 keys · exact`."""
    stats = report.summary.root.stats
    kind = report.head.coverage.kind
    mark = Mark.AT_LEAST if kind is CoverageKind.PARTIAL else Mark.EXACT
    keys = f"{humanize.written_keys(stats.keys, mark)} {'key' if stats.keys == 1 else 'keys'}"
    if stats.memory_bytes is None:
        return f"{keys} · {kind}"
    memory = stats.memory_bytes
    if isinstance(memory, Estimate):
        return f"{humanize.estimated(memory, humanize.size)} in {keys} · {kind}"
    unknown = stats.keys - stats.memory_known_keys if isinstance(stats.keys, int) else 0
    if unknown <= 0:
        return f"{humanize.size(memory, mark)} in {keys} · {kind}"
    held = humanize.size(memory, Mark.AT_LEAST)
    return f"{held} in {keys} · {kind}, but the memory of {humanize.keys(unknown)} is not known"


def coverage_text(coverage: Coverage) -> str:
    """Return the kind and size of the coverage: `exact, 1,000 keys`."""
    if coverage.kind is CoverageKind.ESTIMATE:
        return f"estimated from {_sample(coverage)}, with 95 % intervals"
    if coverage.kind is CoverageKind.PARTIAL:
        much = "" if coverage.fraction is None else f", {humanize.share(coverage.fraction)} of the keyspace"
        why = f": {coverage.reason}" if coverage.reason else ""
        return f"partial, {humanize.keys(coverage.counted_keys)}{much}{why}"
    return f"exact, {humanize.keys(coverage.counted_keys)}"


def coverage_sentence(coverage: Coverage) -> str:
    """Return the same as a sentence."""
    if coverage.kind is CoverageKind.ESTIMATE:
        return f"The figures are estimated from {_sample(coverage)}; each one has its 95 % interval."
    if coverage.kind is CoverageKind.PARTIAL:
        return f"The figures are {coverage_text(coverage)}."
    inspected = f"counted, {humanize.count(coverage.keys)} of them inspected" if coverage.unread else "inspected"
    return f"The figures are exact: {humanize.keys(coverage.counted_keys)} were {inspected}."


def _sample(coverage: Coverage) -> str:
    if coverage.total_keys is None:
        return f"{humanize.keys(coverage.keys)} chosen at random"
    return f"{humanize.count(coverage.keys)} of {humanize.written_keys(coverage.total_keys)} keys, chosen at random"


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield headings and texts, some empty."""
    head, cluster = report.head, report.cluster
    server, scope, coverage, cost = head.server, head.scope, head.coverage, head.cost
    engine = f" ({head.engine} engine)" if head.engine else ""
    by = f" by rtui {head.rtui_version}{engine}" if head.rtui_version else ""
    yield "made", f"{humanize.moment(head.made_at_s)} UTC{by}"
    named = " · ".join(part for part in (f"{server.product} {server.version}".strip(), server.role) if part)
    yield "server", " · ".join(part for part in (server.label, named, f"db{server.db}") if part)
    if cluster is not None:
        yield "cluster", f"{humanize.counted(len(cluster.nodes), 'node')} asked, each for the keys of its slots"
    if server.used_memory_bytes is not None:
        limit = f" of {humanize.size(server.maxmemory_bytes)}" if server.maxmemory_bytes else ""
        policy = server.maxmemory_policy or "policy not known"
        yield "used memory", f"{humanize.size(server.used_memory_bytes)}{limit}, {policy}"
    yield "coverage", coverage_text(coverage)
    left_out: list[str] = []
    if coverage.vanished:
        left_out.append(f"{humanize.keys(coverage.vanished)} gone before inspection")
    if coverage.unread:
        unread = humanize.keys(coverage.unread)
        left_out.append(f"of {unread} only the name is known, which is too long to be asked for")
    if coverage.repeats_possible:
        why = "" if cluster is not None else ", since the server resized its table"
        left_out.append(f"keys may have been counted twice{why}")
    yield "left out", ", ".join(left_out)
    asked = [] if scope.match is None else [f"keys that match {display(scope.match)}"]
    if scope.key_type is not None:
        asked.append(f"keys of type {display(scope.key_type, limit=64)}")
    asked.append("separators " + " ".join(display(one, limit=16) for one in scope.separators))
    if scope.depth is not None:
        asked.append(humanize.counted(scope.depth, "level"))
    lists = f"lists of {humanize.count(scope.top)}"
    yield "scope", ", ".join((*asked, lists, f"big by {display_text(scope.preset, limit=64)}"))
    if scope.columns != ALL_COLUMNS:
        yield "asked", f"type,{scope.columns}".removesuffix(",type")
    yield "pace", scope.pace
    share = humanize.share(cost.server_share)
    source = "as it counts itself" if cost.is_measured else "by round trips"
    yield (
        "cost",
        f"{humanize.counted(cost.commands, 'command')}, {humanize.size(cost.bytes_in + cost.bytes_out)} of traffic, "
        f"{humanize.seconds(cost.server_us / 1e6)} of the server's time ({source}), {share} of it "
        f"for {humanize.seconds(cost.elapsed_s)}",
    )
    yield "NO-TOUCH", server.no_touch
    for name, column in head.columns.items():
        if column.state is not ColumnState.COMPLETE:
            yield display_text(name, limit=40), f"{column.state}: {column.reason}" if column.reason else column.state
    for note in head.notes:
        yield "note", note


def tables(report: Report) -> list[Table]:
    """Return the tables of a report file below its head; some may have no rows."""
    is_standalone = not report.head.server.cluster_enabled
    fewest_primaries, longer = 3, longer_keys(report)
    return [
        outline(report),
        types(report),
        encodings(report),
        big_keys(report),
        replace(big_keys(report, "length"), note=f"{longer}." if longer else ""),
        *hot_keys(report),
        hot_slots(report),
        *registry_tables(report),
        cliffs(report),
        about_to_expire(report),
        ttl_histogram(report),
        no_ttl(report),
        idle_histogram(report),
        frequency_histogram(report),
        *([] if report.cluster is None else [nodes(report)]),
        slots(report, top=20),
        slot_tags(report),
        *([cluster_of(report, fewest_primaries)] if is_standalone and any(report.summary.slots.keys) else []),
        keysizes(report),
    ]
