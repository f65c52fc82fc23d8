"""Tables of the biggest keys, by memory or by length, of the hottest keys and slots, and of when keys expire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import exp
from typing import Final, Literal

from rtui.analysis import humanize
from rtui.analysis.columns import SAMPLE_EVERY, Asked
from rtui.analysis.report.document import CoverageKind, HotSource, KeyRecord, Node, Report, Stats, Step
from rtui.analysis.report.members import HOUR_S
from rtui.analysis.report.tables.cells import KEYS, Cells, Owners, plain, so_far
from rtui.analysis.report.tables.table import (
    COVERAGE_MARKS,
    AtLeast,
    Cell,
    Column,
    Row,
    Subject,
    Table,
    Unit,
    find,
    path_of,
)
from rtui.analysis.report.tables.totals import NAMESPACE, below_root, namespace_cell, of_namespaces
from rtui.keyspace.text.display import display, display_text
from rtui.keyspace.types import STRING, type_of

KEY = Column("key", "key", Unit.NAME, 0)
KIND = Column("type", "type", Unit.NAME, 9)
MEMORY = Column("memory", "memory", Unit.BYTES, 8, "MEMORY USAGE with its default samples")
_LENGTH = Column("length", "length", Unit.COUNT, 11, "Bytes of a string, else the number of elements")
_TTL = Column("ttl", "TTL", Unit.DURATION, 8, "Remaining TTL when it was read")
_IDLE = Column("idle", "idle", Unit.DURATION, 8, "Time since the last access")
_FREQUENCY = Column("frequency", "freq", Unit.COUNT, 5, "LFU access counter, 0 to 255")
_ENCODING = Column("encoding", "encoding", Unit.NAME, 10)
_NOTE = Column("note", "note", Unit.TEXT, 20)
SizeMeasure = Literal["memory", "length"]


def big_keys(report: Report, by: SizeMeasure = "memory", kind: bytes | None = None) -> Table:
    big = report.summary.big
    if kind is None:
        records = big.by_memory if by == "memory" else big.by_length
    else:
        records = (big.by_type_memory if by == "memory" else big.by_type_length).get(kind, ())
    of = "" if kind is None else f" of type {display(kind, limit=64)}"
    cells, owners = Cells(report), Owners(report)
    use = _FREQUENCY if any(record.frequency is not None for record in records) else _IDLE
    columns: tuple[Column, ...] = (KEY, KIND, MEMORY, _LENGTH, _TTL, use, _ENCODING, *owners.columns)
    rows: list[tuple[Cell, ...]] = []
    for record in records:
        facts = (
            record.key,
            cells.known(record.key_type, "type"),
            cells.known(record.memory_bytes, "memory"),
            cells.known(record.length, "length"),
            cells.ttl(record),
            cells.known(record.frequency if use is _FREQUENCY else record.idle_s, use.id),
            cells.known(record.encoding, "encoding"),
            *owners.of_key(record.key),
        )
        rows.append((*facts, record.note or None))
    if any(record.note for record in records):
        columns = (*columns, _NOTE)
    else:
        rows = [row[:-1] for row in rows]
    subjects = tuple(record.key for record in records)
    lacking = longer_keys(report, kind) if by == "length" else ""
    note = f"{lacking}. {_note(report)}" if lacking else _note(report)
    return Table(f"big_keys_by_{by}", f"Biggest keys{of} by {by}", columns, tuple(rows), subjects, note)


_LONGER = Column("longer", "longer than", Unit.COUNT, 11, "Bytes of a string, else the number of elements")
_LARGER = Column("larger", "larger than", Unit.BYTES, 11, "Bytes of memory")
_OVER = Column("keys", "keys", Unit.KEYS, 11, "Keys above either")


def above_thresholds(report: Report, limits_of: Callable[[bytes], tuple[int | None, int | None]]) -> Table:
    """`limits_of` returns the thresholds of a type: length and bytes of memory, None for one that does not apply."""
    cells = Cells(report)
    found = {kind: count for kind, count in report.summary.big.over.items() if plain(count) > 0}
    most_first = sorted(found.items(), key=lambda one: -plain(one[1]))
    rows = tuple((kind, *limits_of(kind), cells.amount(count)) for kind, count in most_first)
    return Table("above_thresholds", "Keys above the thresholds", (KIND, _LONGER, _LARGER, _OVER), rows)


def looked_at(report: Report) -> str:
    """Return, in an estimate, of how many keys a list is, as a sentence without a full stop; else an empty text."""
    coverage, keys = report.head.coverage, report.summary.root.stats.keys
    if coverage.kind is not CoverageKind.ESTIMATE:
        return ""
    return f"Only {humanize.count(coverage.keys)} of {humanize.written_keys(keys)} keys were analysed"


def longer_keys(report: Report, kind: bytes | None = None) -> str:
    """Return which longer keys a list by length may lack, since not all lengths were asked; empty where it lacks none.

    A sentence without a full stop, about the keys of one type, or of all whose length is a number of elements.
    """
    lacking = [
        (name, most)
        for name, most in sorted(report.summary.big.length_not_asked.items())
        if (name != STRING.name if kind is None else name == kind)
    ]
    if not lacking:
        return ""
    types = ", ".join(
        display(name, limit=64) + ("" if most is None else f" (up to {humanize.count(most)} {type_of(name).units})")
        for name, most in lacking
    )
    asked = f"length was read of one key in {SAMPLE_EVERY} and of the largest"
    return f"There may be longer keys of type {types}: {asked}"


def _note(report: Report) -> str:
    over = [(kind, count) for kind, count in report.summary.big.over.items() if plain(count) > 0]
    name = display_text(report.head.scope.preset, limit=64)
    sampled = looked_at(report)
    unseen = f"{sampled}: there may be larger ones among the others. " if sampled else ""
    if not over:
        none = "None of them" if unseen else "No key"
        seen = "" if unseen else so_far(report.head.coverage)
        return f"{unseen}{none} is above the thresholds of {name}{seen}."
    mark = COVERAGE_MARKS[report.head.coverage.kind]
    counts = ", ".join(f"{display(kind, limit=64)} {humanize.written_keys(count, mark)}" for kind, count in over)
    return f"{unseen}Keys above the thresholds of {name}: {counts}."


_SLOT = Column("slot", "slot", Unit.NUMBER, 6)


def hot_keys(report: Report) -> tuple[Table, ...]:
    """The note names the source of the lists, its sample in an estimate, and the requirements of a better source."""
    hot = report.hot
    note = " ".join(hot.better)
    if hot.source is not HotSource.NONE:
        sampled = of_sample(report)
        about = f"Source: {hot.source}" + (f", {hot.about}" if hot.about else "")
        note = " ".join((*([f"{sampled}."] if sampled else []), f"{about}.", *hot.better))
    cells, owners = Cells(report), Owners(report)
    tables = []
    for number, of in enumerate(hot.lists, 1):
        unit = Unit.DURATION if of.unit.startswith("seconds") else Unit.COUNT
        value = Column("value", of.unit, unit, max(10, len(of.unit)))
        use = (_FREQUENCY,) if any(key.record.frequency is not None for key in of.keys) else ()
        rows: list[tuple[Cell, ...]] = []
        for key in of.keys:
            record = key.record
            kind, memory = cells.known(record.key_type, "type"), cells.known(record.memory_bytes, "memory")
            counter: tuple[Cell, ...] = (cells.known(record.frequency, "frequency"),) if use else ()
            heat = AtLeast(key.value) if key.at_least else key.value
            rows.append((record.key, kind, heat, *counter, memory, cells.ttl(record), *owners.of_key(record.key)))
        columns = (KEY, KIND, value, *use, MEMORY, _TTL, *owners.columns)
        subjects = tuple(key.record.key for key in of.keys)
        tables.append(Table(f"hot_keys_{number}", f"Hot keys: {of.title}", columns, tuple(rows), subjects, note))
    return tuple(tables)


def hot_slots(report: Report) -> Table:
    loads = report.hot.slots
    metrics = list(dict.fromkeys(name for load in loads for name in load.values))
    owners = Owners(report)
    counted = (Column(name, name, Unit.COUNT, max(11, len(name))) for name in metrics)
    columns = (_SLOT, *counted, *owners.columns)
    rows = tuple((load.slot, *map(load.values.get, metrics), *owners.cells(load.slot)) for load in loads)
    subjects = tuple(load.slot for load in loads)
    return Table("hot_slots", "Most loaded slots (CLUSTER SLOT-STATS)", columns, rows, subjects)


def of_sample(report: Report) -> str:
    """Return the same for hot keys that rtui itself has found; empty where the server counts them.

    In a pass over all keys, of how many of them it asked the last use.
    """
    if report.hot.source not in {HotSource.FREQUENCY, HotSource.IDLE}:
        return ""
    if report.head.scope.columns.idle is Asked.SAMPLED:
        what = "Access counter" if report.hot.source is HotSource.FREQUENCY else "Idle time"
        return f"{what} was read of one key in {SAMPLE_EVERY} only"
    return looked_at(report)


SOON_S: Final = HOUR_S
"""A big or hot key whose life ends within this time is about to expire."""

_NO_TTL = Column("no_ttl_keys", "no TTL", Unit.KEYS, 11, "Keys without TTL")
_NO_TTL_SHARE = Column("no_ttl_share", "share", Unit.SHARE, 5, "Of the keys whose TTL is known")
_NO_TTL_MEMORY = Column("no_ttl_memory", "no TTL memory", Unit.BYTES, 12, "Memory of keys without TTL")
_SOONEST = Column("soonest_expiry", "soonest (UTC)", Unit.TIME, 19, "Soonest expiry of its keys")
_FROM = Column("start", "from (UTC)", Unit.TIME, 19)
_TO = Column("end", "to (UTC)", Unit.TIME, 19)
_OF_NAMESPACE = Column("share_of_namespace", "share", Unit.SHARE, 5, "Of all keys of the namespace")
_EXPECTED = Column("expected_keys", "expected", Unit.KEYS, 8, "Keys expected to expire then, by the rate around it")
_CLIFF_NAMESPACE = Column("namespace", "namespace", Unit.TEXT, 0)
_AT = Column("expires_at", "expires (UTC)", Unit.TIME, 19)
_IN = Column("expires_in", "in", Unit.DURATION, 8, "From the time of the report")
_WHY = Column("because", "because", Unit.TEXT, 8)


def expiry(report: Report, path: Sequence[Step | bytes] = ()) -> Table:
    nodes = find(report.summary.root, path)
    below = [] if nodes is None else [(*nodes, child) for child in nodes[-1].children] or [nodes]
    return _by_namespace(report, "expiry", "Expiry by namespace", below)


def no_ttl(report: Report) -> Table:
    paths = [nodes for nodes in below_root(report) if _lasting(nodes[-1].stats)]
    return _by_namespace(report, "no_ttl", "Namespaces with keys that have no TTL", paths)


def cliffs(report: Report) -> Table:
    cells = Cells(report)
    found = report.summary.expiry
    rows: list[tuple[Cell, ...]] = []
    subjects: list[Subject] = []
    for one in found.cliffs:
        figures = (cells.amount(one.keys), one.share, cells.amount(one.memory_bytes, "memory"))
        rows.append((one.label, one.start_s, one.end_s, *figures, one.expected_keys))
        nodes = find(report.summary.root, one.path)
        subjects.append(None if nodes is None else path_of(nodes))
    note = ""
    if found.timelines:
        chance = humanize.share(1 - exp(-found.false_alarms))
        note = f"Chance of such a cliff by accident: {chance}."
        if found.false_alarms >= 1:
            expected = humanize.counted(round(found.false_alarms), "cliff")
            note = f"About {expected} would appear by accident."
    columns = (_CLIFF_NAMESPACE, _FROM, _TO, KEYS, _OF_NAMESPACE, MEMORY, _EXPECTED)
    return Table("cliffs", "Expiry cliffs", columns, tuple(rows), tuple(subjects), note)


def about_to_expire(report: Report, within_s: float = SOON_S) -> Table:
    now = report.head.made_at_s
    found: dict[bytes, tuple[float, KeyRecord, str]] = {}
    summary = report.summary
    big = (*summary.big.by_memory, *summary.big.by_length)
    hot = (*summary.hottest, *(key.record for one in report.hot.lists for key in one.keys))
    for why, records in (("big", big), ("hot", hot)):
        for record in records:
            at = record.expires_at_s
            if at is not None and now <= at <= now + within_s:
                both = record.key in found and found[record.key][2] != why
                found[record.key] = at, record, "big, hot" if both else why
    soonest = sorted(found.values(), key=lambda one: one[0])
    cells = Cells(report)
    rows = tuple(
        (one.key, cells.known(one.key_type, "type"), cells.known(one.memory_bytes, "memory"), at, at - now, why)
        for at, one, why in soonest
    )
    title = f"Big or hot keys that expire within {humanize.seconds(within_s)}"
    columns = (KEY, KIND, MEMORY, _AT, _IN, _WHY)
    sampled = looked_at(report)
    subjects = tuple(one.key for _, one, _ in soonest)
    return Table("about_to_expire", title, columns, rows, subjects, f"{sampled}." if sampled else "")


def _by_namespace(report: Report, table_id: str, title: str, paths: Iterable[tuple[Node, ...]]) -> Table:
    cells = Cells(report)
    chosen = sorted(paths, key=lambda nodes: -_lasting(nodes[-1].stats))

    def row(at: int) -> Row:
        stats = chosen[at][-1].stats
        lasting, lasting_memory = cells.lasting(stats)
        share = cells.known(stats.no_ttl_share, "ttl")
        figures = (cells.amount(stats.keys), lasting, share, lasting_memory, stats.soonest_expiry_s)
        return (namespace_cell(chosen[at]), *figures)

    columns = (NAMESPACE, KEYS, _NO_TTL, _NO_TTL_SHARE, _NO_TTL_MEMORY, _SOONEST)
    return of_namespaces(Table(table_id, title, columns, ()), chosen, row)


def _lasting(stats: Stats) -> float:
    return plain(stats.no_ttl_keys or 0)
