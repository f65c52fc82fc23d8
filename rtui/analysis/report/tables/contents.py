"""The contents of a report file: its head in words (when, where, coverage, cost, denied commands), then its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.columns import ALL_COLUMNS
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.facts import Unknown
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import ColumnState, Coverage, CoverageKind, Report
from rtui.analysis.report.members import RegistryReport, weight_of
from rtui.analysis.report.tables import totals
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells
from rtui.analysis.report.tables.keys import about_to_expire, big_keys, cliffs, hot_keys, hot_slots, longer_keys, no_ttl
from rtui.analysis.report.tables.slots import cluster_of, nodes, slot_tags, slots
from rtui.analysis.report.tables.table import Column, Row, Subject, Table, Unit, path_of
from rtui.keyspace.text.display import display, display_text

_PATTERN: Final = Column("pattern", "pattern", Unit.TEXT, 0, "As registered")
_BYTES: Final = Column("memory", "memory", Unit.BYTES, 8, "Sum of MEMORY USAGE")
_TYPES: Final = Column("types", "types", Unit.MIX, 22)
_OWNER: Final = Column("owner", "owner", Unit.TEXT, 12)
_PURPOSE: Final = Column("purpose", "purpose", Unit.TEXT, 24)
_RULE: Final = Column("rule", "rule", Unit.TEXT, 20)
_EXPECTED: Final = Column("expected", "expected", Unit.TEXT, 12, "By the registry")
_EXAMPLE: Final = Column("example", "example", Unit.NAME, 0, "One of the keys")
_NAMESPACE: Final = Column("namespace", "namespace", Unit.NAME, 0, "The beginning of the keys; <id> and the like")
_WHERE: Final = Column(
    "where", "where", Unit.MIX, 32, "Registered patterns, or how the keys begin; * is without namespace"
)

_FACTS: Final = {"type": "type", "ttl": "ttl", "size": "memory", "length": "length"}


def coverage_of(found: RegistryReport) -> str:
    keys = humanize.written(found.registered_share, humanize.share)
    text = f"{found.file or found.title or 'the registry'}: {keys} of the keys"
    if found.registered_memory_share is not None:
        text += f" and {humanize.written(found.registered_memory_share, humanize.share)} of the memory"
    unused = sum(not one.inspected_keys for one in found.entries)
    text += f" have one of {humanize.counted(len(found.entries), 'pattern')}"
    return f"{text}, {unused:,} of which no key has" if unused else text


def registry_tables(report: Report) -> Iterator[Table]:
    found = report.summary.registry
    if found is not None:
        yield registered(report, found)
        yield broken(report, found)
        yield unregistered(report, found)
        yield unused(report, found)
    yield names(report)


def registered(report: Report, found: RegistryReport) -> Table:
    cells = Cells(report)
    entries = sorted((one for one in found.entries if one.inspected_keys), key=weight_of, reverse=True)
    rows = tuple(
        (
            one.pattern,
            cells.amount(one.keys),
            cells.amount(one.memory_bytes, "memory")
            if isinstance(one.memory_bytes, Estimate)
            else cells.part(one.memory_bytes, one.memory_known_keys >= one.inspected_keys),
            one.share_keys,
            one.types or cells.unknown("type"),
            one.owner,
            f"deprecated: {one.deprecated}" if one.deprecated else one.purpose,
        )
        for one in entries
    )
    columns = (_PATTERN, KEYS, _BYTES, SHARE_OF_KEYS, _TYPES, _OWNER, _PURPOSE)
    return Table("registered", "Registered patterns", columns, rows, note=f"{coverage_of(found)}.")


def broken(report: Report, found: RegistryReport) -> Table:
    cells = Cells(report)
    rows: list[tuple[float, Row, Subject]] = []
    unknown: dict[str, None] = {}
    for entry in found.entries:
        for one in entry.expectations:
            if one.keys is None:
                unknown[_FACTS[one.rule.partition("-")[0]]] = None
                continue
            count, is_whole = as_estimate(one.keys).value, one.known_keys >= entry.inspected_keys
            if count:
                example = one.examples[0] if one.examples else None
                keys = cells.part(one.keys, is_whole)
                memory = cells.part(one.memory_bytes, is_whole)
                rows.append((count, (entry.pattern, one.rule, one.expected, keys, memory, example), example))
    rows.sort(key=lambda row: -row[0])
    columns = (_PATTERN, _RULE, _EXPECTED, KEYS, _BYTES, _EXAMPLE)
    note = " ".join(f"{_unjudged(cells, fact)}." for fact in unknown)
    title = "Keys that violate the registry"
    return Table("broken", title, columns, tuple(row for _, row, _ in rows), tuple(key for _, _, key in rows), note)


def _unjudged(cells: Cells, fact: str) -> str:
    reason = cells.unknown(fact)
    why = f": {reason.reason}" if isinstance(reason, Unknown) else ""
    return f"{humanize.fact_name(fact)} is expected, but not known{why}"


def unregistered(report: Report, found: RegistryReport) -> Table:
    cells = Cells(report)
    listed = [one for one in found.unregistered if one.place]
    wanted = {one.place for one in listed}
    paths = {place: path_of(nodes) for place, nodes in enumerate(report.summary.root.walk()) if place in wanted}
    rows = tuple(
        (
            one.namespace,
            cells.amount(one.keys),
            cells.amount(one.memory_bytes, "memory"),
            one.examples[0] if one.examples else None,
        )
        for one in listed
    )
    subjects = tuple(paths.get(one.place) for one in listed)
    whole = humanize.written_keys(found.unregistered_keys, cells.mark)
    note = f"{whole} {humanize.noun(found.unregistered_keys, 'key')} in all." if found.unregistered else ""
    for rest in (one for one in found.unregistered if not one.place):
        note += f" {humanize.written_keys(rest.keys, cells.mark)} of them not listed"
        note += "".join(f", such as {display(one.beginning)}… ({one.length:,} bytes)" for one in rest.long_names[:1])
        note += "."
    columns = (_NAMESPACE, KEYS, _BYTES, _EXAMPLE)
    return Table("unregistered", "Keys without a registered pattern", columns, rows, subjects, note)


def unused(report: Report, found: RegistryReport) -> Table:
    cells = Cells(report)
    rows = tuple((one.pattern, one.owner, one.purpose) for one in found.entries if not one.inspected_keys)
    is_whole = not (cells.is_partial or cells.is_estimate)
    note = "" if is_whole or not rows else "Not all keys were seen; there may be some."
    return Table("unused", "Registered patterns without keys", (_PATTERN, _OWNER, _PURPOSE), rows, note=note)


def names(report: Report) -> Table:
    cells, found = Cells(report), report.summary.naming
    broken = [one for one in (() if found is None else found.rules) if as_estimate(one.keys).value]
    broken.sort(key=lambda one: -as_estimate(one.keys).value)
    rows = tuple(
        (
            one.rule,
            cells.amount(one.keys),
            one.share_keys,
            cells.amount(one.memory_bytes, "memory"),
            tuple((place.pattern.encode() or place.namespace or b"*", place.keys) for place in one.places),
            one.examples[0] if one.examples else None,
        )
        for one in broken
    )
    subjects = tuple(one.examples[0] if one.examples else None for one in broken)
    columns = (_RULE, KEYS, SHARE_OF_KEYS, _BYTES, _WHERE, _EXAMPLE)
    return Table("names", "Names that break naming rules", columns, rows, subjects)


def about(report: Report) -> Table:
    rows = tuple((what, text) for what, text in _lines(report) if text)
    if report.summary.registry is not None:
        rows += (("registry", coverage_of(report.summary.registry)),)
    columns = (Column("what", "", Unit.TEXT, 12), Column("said", "", Unit.TEXT))
    return Table("about", "About this report", columns, rows)


def headline(report: Report) -> str:
    """Return a summary in one line: `1.6G in 1,000,000 keys · exact`."""
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
    if coverage.kind is CoverageKind.ESTIMATE:
        return f"The figures are estimated from {_sample(coverage)}; each has a 95 % interval."
    if coverage.kind is CoverageKind.PARTIAL:
        return f"The figures are {coverage_text(coverage)}."
    inspected = f"counted, {humanize.count(coverage.keys)} of them inspected" if coverage.unread else "inspected"
    return f"The figures are exact: {humanize.keys(coverage.counted_keys)} were {inspected}."


def _sample(coverage: Coverage) -> str:
    if coverage.total_keys is None:
        return f"{humanize.keys(coverage.keys)} chosen at random"
    return f"{humanize.count(coverage.keys)} of {humanize.written_keys(coverage.total_keys)} keys, chosen at random"


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    head, cluster = report.head, report.cluster
    server, scope, coverage, cost = head.server, head.scope, head.coverage, head.cost
    by = f" by rtui {head.rtui_version}" if head.rtui_version else ""
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
        left_out.append(f"{humanize.keys(coverage.vanished)} expired or deleted before inspection")
    if coverage.unread:
        unread = humanize.keys(coverage.unread)
        left_out.append(f"{unread} could not be read: the name is too long")
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
        yield "facts read", f"type,{scope.columns}".removesuffix(",type")
    yield "pace", scope.pace
    share = humanize.share(cost.server_share)
    source = "measured by the server" if cost.is_measured else "from round trips"
    yield (
        "cost",
        f"{humanize.counted(cost.commands, 'command')}, {humanize.size(cost.bytes_in + cost.bytes_out)} of traffic, "
        f"{humanize.seconds(cost.server_us / 1e6)} of server CPU ({source}), {share} "
        f"of {humanize.seconds(cost.elapsed_s)}",
    )
    yield "NO-TOUCH", server.no_touch
    for name, column in head.columns.items():
        if column.state is not ColumnState.COMPLETE:
            yield display_text(name, limit=40), f"{column.state}: {column.reason}" if column.reason else column.state
    for note in head.notes:
        yield "note", note


def tables(report: Report) -> list[Table]:
    is_standalone = not report.head.server.cluster_enabled
    fewest_primaries, longer = 3, longer_keys(report)
    return [
        totals.outline(report),
        totals.types(report),
        totals.encodings(report),
        big_keys(report),
        replace(big_keys(report, "length"), note=f"{longer}." if longer else ""),
        *hot_keys(report),
        hot_slots(report),
        *registry_tables(report),
        cliffs(report),
        about_to_expire(report),
        totals.ttl_histogram(report),
        no_ttl(report),
        totals.idle_histogram(report),
        totals.frequency_histogram(report),
        *([] if report.cluster is None else [nodes(report)]),
        slots(report, top=20),
        slot_tags(report),
        *([cluster_of(report, fewest_primaries)] if is_standalone and any(report.summary.slots.keys) else []),
        totals.keysizes(report),
    ]
