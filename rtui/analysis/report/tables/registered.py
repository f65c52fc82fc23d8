"""Tables of what a registry says: its patterns, what breaks them, what has none, and names that break rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.facts import Unknown
from rtui.analysis.report.document import Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.registered import EntryReport, RegistryReport
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells
from rtui.analysis.report.tables.table import Cell, Column, Row, Subject, Table, Unit, path_of
from rtui.keyspace.text.display import display

_PATTERN: Final = Column("pattern", "pattern", Unit.TEXT, 0, "As the registry has it")
_BYTES: Final = Column("memory", "bytes", Unit.BYTES, 8, "Sum of MEMORY USAGE")
_TYPES: Final = Column("types", "types", Unit.MIX, 22)
_OWNER: Final = Column("owner", "owner", Unit.TEXT, 12)
_PURPOSE: Final = Column("purpose", "purpose", Unit.TEXT, 24)
_RULE: Final = Column("rule", "rule", Unit.TEXT, 20)
_EXPECTED: Final = Column("expected", "expected", Unit.TEXT, 12, "By the registry")
_EXAMPLE: Final = Column("example", "example", Unit.NAME, 0, "One of the keys")
_NAMESPACE: Final = Column("namespace", "namespace", Unit.NAME, 0, "The beginning of the keys; {id} and the like")
_WHERE: Final = Column(
    "where", "where", Unit.MIX, 32, "Registered patterns, or how the keys begin; * is without namespace"
)

_FACTS: Final = {"type": "type", "ttl": "ttl", "size": "memory", "length": "length"}
"""By the beginning of a rule's id, the fact that it needs."""


def coverage_of(found: RegistryReport) -> str:
    """Return how much of a keyspace has a registered pattern, in words."""
    keys = humanize.written(found.registered_share, humanize.share)
    text = f"{found.file or found.title or 'the registry'}: {keys} of the keys"
    if found.registered_memory_share is not None:
        text += f" and {humanize.written(found.registered_memory_share, humanize.share)} of the bytes"
    unused = sum(not one.inspected_keys for one in found.entries)
    text += f" have one of {humanize.counted(len(found.entries), 'pattern')}"
    return f"{text}, {unused:,} of which no key has" if unused else text


def registry_tables(report: Report) -> Iterator[Table]:
    """Yield what there is to say, some of it without rows."""
    found = report.summary.registry
    if found is not None:
        yield registered(report, found)
        yield broken(report, found)
        yield unregistered(report, found)
        yield unused(report, found)
    yield names(report)


def registered(report: Report, found: RegistryReport) -> Table:
    """Return the patterns that have keys, most bytes first."""
    cells = Cells(report)
    entries = sorted((one for one in found.entries if one.inspected_keys), key=_weight, reverse=True)
    rows = tuple(
        (
            one.pattern,
            cells.amount(one.keys),
            _memory(cells, one.memory_bytes, one.memory_known_keys, one.inspected_keys),
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
    """Return what keys break of what is expected of them, most keys first."""
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
    title = "Keys that are not as registered"
    return Table("broken", title, columns, tuple(row for _, row, _ in rows), tuple(key for _, _, key in rows), note)


def _unjudged(cells: Cells, fact: str) -> str:
    """Return that something is expected which is known of no key."""
    reason = cells.unknown(fact)
    why = f": {reason.reason}" if isinstance(reason, Unknown) else ""
    return f"{humanize.fact_name(fact)} is expected, but not known{why}"


def unregistered(report: Report, found: RegistryReport) -> Table:
    """Return the namespaces whose keys have no registered pattern, most bytes first."""
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
        note += f" {humanize.written_keys(rest.keys, cells.mark)} of them in no row"
        note += "".join(f", such as {display(one.beginning)}… ({one.length:,} bytes)" for one in rest.long_names[:1])
        note += "."
    columns = (_NAMESPACE, KEYS, _BYTES, _EXAMPLE)
    return Table("unregistered", "Keys without a registered pattern", columns, rows, subjects, note)


def unused(report: Report, found: RegistryReport) -> Table:
    """Return the patterns that no key has, as far as keys were seen."""
    cells = Cells(report)
    rows = tuple((one.pattern, one.owner, one.purpose) for one in found.entries if not one.inspected_keys)
    is_whole = not (cells.is_partial or cells.is_estimate)
    note = "" if is_whole or not rows else "Not all keys were seen: they may have some."
    return Table("unused", "Registered patterns without keys", (_PATTERN, _OWNER, _PURPOSE), rows, note=note)


def names(report: Report) -> Table:
    """Return the naming rules that are broken, most keys first, with the namespaces and patterns where."""
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
    return Table("names", "Names that break rules", columns, rows, subjects)


def _weight(one: EntryReport) -> tuple[float, float]:
    return (0.0 if one.memory_bytes is None else as_estimate(one.memory_bytes).value), as_estimate(one.keys).value


def _memory(cells: Cells, value: Figure | None, known: int, keys: int) -> Cell:
    """Return the bytes of keys, of which so many are known."""
    return cells.amount(value, "memory") if isinstance(value, Estimate) else cells.part(value, known >= keys)
