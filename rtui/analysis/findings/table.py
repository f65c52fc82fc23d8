"""The findings as a table, for screens and files."""

from __future__ import annotations

from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import Column, Row, Table, Unit
from rtui.keyspace.text.display import SafeText

COLUMNS = (
    Column("severity", "", Unit.TEXT, 5, "How much it matters: a warning or an error"),
    Column("finding", "finding", Unit.TEXT, 0),
    Column("memory", "bytes", Unit.BYTES, 9, "Of the keys that it is about"),
    Column("keys", "keys", Unit.KEYS, 9),
    Column("rule", "rule", Unit.TEXT, 18),
)


def findings_table(found: Found) -> Table:
    """Return a row for each finding, most costly first; what it is about is told by its rule and place."""
    return Table(
        "findings",
        "What is wrong",
        COLUMNS,
        tuple(map(_row, found.findings)),
        identities(found),
        note=remarks(found),
        tells_by_subject=True,
    )


def _row(one: Finding) -> Row:
    memory, keys = (None if figure is None else figure.cell for figure in (one.memory, one.keys))
    return one.severity.value, one.title, memory, keys, one.rule


def identities(found: Found) -> tuple[str, ...]:
    """Return what tells each finding from the others, also in a later report: its rule and place."""
    seen: dict[str, int] = {}
    names = []
    for one in found.findings:
        name = f"{one.rule} {one.where}"
        number = seen[name] = seen.get(name, 0) + 1
        names.append(name if number == 1 else f"{name} #{number}")
    return tuple(names)


def remarks(found: Found) -> str:
    """Return what is not in the list: places beyond the most costly ones, and rules that could not be judged."""
    parts = [f"{counted(one.places, 'more place')} of {one.rule}" for one in found.unlisted]
    parts += [f"not judged: {', '.join(rules)}, since {why}" for why, rules in doubts(found).items()]
    return "; ".join([*parts, *found.notes])


def doubts(found: Found) -> dict[SafeText, list[str]]:
    """Return the rules that could not be judged, by why."""
    by_why: dict[SafeText, list[str]] = {}
    for one in found.unjudged:
        by_why.setdefault(one.why, []).append(one.rule)
    return by_why
