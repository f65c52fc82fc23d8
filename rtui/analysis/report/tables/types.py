"""Tables of types, encodings, lengths, idle times and access counters."""

from __future__ import annotations

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Report
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, Figure
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells, plain, share_of
from rtui.analysis.report.tables.expiry import spans
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit

_VAGUE = 0.5
"""Shares with a wider interval get a note that the keys are too few."""

_TYPE = Column("type", "type", Unit.NAME, 12)
_MEMORY = Column("memory", "bytes", Unit.BYTES, 8)
_SHARE_OF_MEMORY = Column("share_of_memory", "of bytes", Unit.SHARE, 8, "Of the memory of all keys")
_MEAN = Column("memory_mean", "mean", Unit.BYTES, 7)
_P50 = Column("memory_p50", "p50", Unit.BYTES, 7)
_P99 = Column("memory_p99", "p99", Unit.BYTES, 7)
_MAX = Column("memory_max", "max", Unit.BYTES, 7)
_NO_TTL = Column("no_ttl_share", "no TTL", Unit.SHARE, 6)
_UNIT = Column("length_unit", "length of", Unit.TEXT, 9)
_LENGTH_P50 = Column("length_p50", "length p50", Unit.COUNT, 10)
_LENGTH_P99 = Column("length_p99", "length p99", Unit.COUNT, 10)
_LENGTH_MAX = Column("length_max", "length max", Unit.COUNT, 10)
_ENCODING = Column("encoding", "encoding", Unit.NAME, 14)
_OF_TYPE = Column("share_of_type", "share", Unit.SHARE, 5, "Of the keys of the type")
_HISTOGRAM = Column("histogram", "histogram", Unit.TEXT, 26)
_FROM = Column("from_length", "from", Unit.COUNT, 12, "The least length in the bin")
_IDLE = Column("idle", "idle", Unit.TEXT, 12, "Since they were used last")
_COUNTER = Column("counter", "counter", Unit.TEXT, 12, "The access counter of the LFU policies")


def types(report: Report) -> Table:
    """Return what each type of keys adds up to."""
    cells = Cells(report)
    totals = (KEYS, SHARE_OF_KEYS, _MEMORY, _SHARE_OF_MEMORY, _MEAN, _P50, _P99, _MAX, _NO_TTL)
    rows: list[tuple[Cell, ...]] = []
    for one in report.summary.types:
        figures = cells.figures(one.stats)
        _, p50, _, p99, longest = cells.quantiles(one.length, "length")
        rows.append((one.name, *(figures[column.id] for column in totals), one.unit, p50, p99, longest))
    columns = (_TYPE, *totals, _UNIT, _LENGTH_P50, _LENGTH_P99, _LENGTH_MAX)
    return Table("types", "Types", columns, tuple(rows))


def encodings(report: Report) -> Table:
    """Return how the server stores the keys of each type."""
    cells = Cells(report)
    found = report.summary.encodings
    rows = tuple((one.kind, one.encoding, cells.amount(one.keys), one.share) for one in found)
    column = report.head.columns.get("encoding")
    note = f"{column.reason[:1].upper()}{column.reason[1:]}." if column is not None and column.reason else ""
    if any(isinstance(one.share, Estimate) and one.share.high - one.share.low > _VAGUE for one in found):
        note += " Of a type with few keys those are too few to tell."
    return Table("encodings", "Encodings", (_TYPE, _ENCODING, KEYS, _OF_TYPE), rows, note=note)


def keysizes(report: Report) -> Table:
    """Return the histograms of lengths that the server keeps of the whole database."""
    rows = tuple((one.name, low, count) for one in report.keysizes for low, count in one.bins)
    note = "Kept by the server itself, of the whole database." if rows else ""
    return Table("keysizes", "Lengths by the server's INFO keysizes", (_HISTOGRAM, _FROM, KEYS), rows, note=note)


def idle_histogram(report: Report) -> Table:
    """Return how many keys were not used for how long."""
    stats = report.summary.root.stats
    return Table("idle", "Idle time", (_IDLE, KEYS, SHARE_OF_KEYS), _bins(report, spans(IDLE_EDGES_S), stats.idle))


def frequency_histogram(report: Report) -> Table:
    """Return how many keys have which access counter."""
    ends = [edge - 1 for edge in FREQUENCY_EDGES]
    starts = [0, *FREQUENCY_EDGES]
    titles = [
        *(str(low) if low == high else f"{low} – {high}" for low, high in zip(starts, ends, strict=False)),
        f"{FREQUENCY_EDGES[-1]}, the top",
    ]
    stats = report.summary.root.stats
    return Table(
        "frequency", "Access counters", (_COUNTER, KEYS, SHARE_OF_KEYS), _bins(report, titles, stats.frequency)
    )


def _bins(report: Report, titles: list[str], figures: tuple[Figure, ...] | None) -> tuple[tuple[Cell, ...], ...]:
    cells = Cells(report)
    total = sum(map(plain, figures or ()))
    return tuple(
        (title, cells.amount(figure), share_of(figure, total))
        for title, figure in zip(titles, figures or (), strict=False)
    )
