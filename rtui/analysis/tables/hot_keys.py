"""The hottest keys, a table for each measure of the best source there is."""

from __future__ import annotations

from rtui.analysis.report import HotList, HotSource, Report
from rtui.analysis.tables.big_keys import FREQUENCY, KEY, KIND, MEMORY, TTL, looked_at
from rtui.analysis.tables.cells import Cells
from rtui.analysis.tables.table import AtLeast, Cell, Column, Table, Unit

_SLOT = Column("slot", "slot", Unit.NUMBER, 6)


def hot_keys(report: Report) -> tuple[Table, ...]:
    """Return a table for each list, hottest first; none where there is no source."""
    return tuple(_table(report, one, number) for number, one in enumerate(report.hot.lists))


def hot_slots(report: Report) -> Table:
    """Return the most loaded slots where the server counts them, by the server's names of what it counts."""
    loads = report.hot.slots
    metrics = list(dict.fromkeys(name for load in loads for name in load.values))
    columns = (_SLOT, *(Column(name, name, Unit.COUNT, max(11, len(name))) for name in metrics))
    rows = tuple((load.slot, *(load.values.get(name) for name in metrics)) for load in loads)
    return Table(
        "hot_slots", "Most loaded slots, as the server counts", columns, rows, tuple(one.slot for one in loads)
    )


def _table(report: Report, of: HotList, number: int) -> Table:
    """Return the table of one list."""
    cells = Cells(report)
    value = Column(
        "value", of.unit, Unit.DURATION if of.unit.startswith("seconds") else Unit.COUNT, max(10, len(of.unit))
    )
    use = (FREQUENCY,) if any(key.record.frequency is not None for key in of.keys) else ()
    columns = (KEY, KIND, value, *use, MEMORY, TTL)
    rows: list[tuple[Cell, ...]] = []
    for key in of.keys:
        record = key.record
        counter: tuple[Cell, ...] = (cells.fact(record.frequency, "frequency"),) if use else ()
        heat = AtLeast(key.value) if key.at_least else key.value
        rows.append(
            (
                record.key,
                cells.fact(record.kind, "type"),
                heat,
                *counter,
                cells.fact(record.memory_bytes, "memory"),
                cells.ttl(record),
            )
        )
    table_id = f"hot_keys_{number + 1}"
    subjects = tuple(key.record.key for key in of.keys)
    return Table(table_id, f"Hot keys: {of.title}", columns, tuple(rows), subjects, _note(report))


def of_sample(report: Report) -> str:
    """Say of hot keys that rtui found itself in an estimate how few it looked at; nothing of others."""
    return looked_at(report) if report.hot.source in {HotSource.FREQUENCY, HotSource.IDLE} else ""


def _note(report: Report) -> str:
    """Say where the list comes from and what would be better, and in an estimate how many keys it is of."""
    hot = report.hot
    if hot.source is HotSource.NONE:
        return " ".join(hot.better)
    about = f"Source: {hot.source}" + (f", {hot.about}" if hot.about else "")
    sampled = of_sample(report)
    return " ".join((*([f"{sampled}."] if sampled else []), f"{about}.", *hot.better))
