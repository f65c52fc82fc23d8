"""The Hot keys panel: the keys that are used most, from the best source that the server offers, and loaded slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import Frequency
from rtui.analysis.humanize import Mark, NumberFormat, counted, decimal, rate
from rtui.analysis.report.document import HotKey, HotList, HotReport, HotSource, Report, SlotLoad
from rtui.analysis.report.tables.keys import hot_keys, hot_slots, of_sample
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable, sample_note, unfound
from rtui.tui.kit.chart_lines import HorizontalBar, bar_lines, beside_each_other, inset, paragraph
from rtui.tui.kit.layout import display, display_text
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, gap, joined, literal, type_role, width_of

NAME_LIMIT: Final = 400
"""Characters of a key that are made safe to show."""

NAME_CELLS: Final = 48
"""Longer keys are cut in the middle."""

MAX_BARS: Final = 10
"""Keys in a list and slots that are drawn; the tables have all of them."""

LOW_LINES: Final = 14
"""A chart of fewer lines has no blank ones."""

TITLE_LIMIT: Final = 24
"""Characters of a list's title in its tab."""

COLUMN_CELLS: Final = 54
BETWEEN_CELLS: Final = 4
"""Sections stand beside each other where each gets at least this width, with so many blank cells between two."""

MISSING_LINES: Final = 4
"""Lines at most of the reasons why a better source is missing."""

IDLE: Final = "seconds idle"
"""The unit in which less is hotter, so that bars would mislead."""

_SOURCES: Final = {
    HotSource.SERVER: literal("the server's own hot-key report"),
    HotSource.FREQUENCY: literal("LFU counters (OBJECT FREQ)"),
    HotSource.IDLE: literal("idle time (OBJECT IDLETIME)"),
    HotSource.NONE: literal("nothing tells which keys are hot"),
}

_MICROSECONDS_A_MS: Final = 1000


def _cpu(value: float, mark: Mark) -> SafeText:
    """Return microseconds as text: `850 µs`, `12ms`, `3s`."""
    if value < _MICROSECONDS_A_MS:
        return SafeText(f"{mark}{value:.0f} µs")
    return SafeText(f"{mark}{fmt.duration(round(value / _MICROSECONDS_A_MS))}")


_WRITERS: Final[dict[str, NumberFormat]] = {
    "accesses/min": rate,
    "µs of CPU": _cpu,
    "bytes of network traffic": fmt.size,
    IDLE: lambda value, mark: (
        literal("now") if value < 1 else SafeText(f"{mark}{fmt.duration(round(value * fmt.SECOND_MS))}")
    ),
    "queries/s": lambda value, mark: SafeText(f"{fmt.short_count(value, mark)}/s"),
}
"""How a value is written, by the unit of its list."""

_METRICS: Final[dict[str, tuple[SafeText, NumberFormat]]] = {
    "cpu-usec": (literal("CPU time"), _cpu),
    "cpu-usage": (literal("CPU time"), _cpu),
    "network-bytes-in": (literal("bytes received"), fmt.size),
    "network-bytes-out": (literal("bytes sent"), fmt.size),
    "memory-bytes": (literal("bytes"), fmt.size),
    "key-count": (literal("keys"), decimal),
}
"""Title and writer of the figures that a server keeps of its slots, by their names; the first one known is drawn."""


def value_text(hot: HotKey, unit: str) -> SafeText:
    """Return how hot a key is, in the unit of its list; a counter at its top is a lower bound."""
    counter = hot.record.frequency
    if unit == "accesses/min" and counter is not None and Frequency(counter).is_at_floor:
        return SafeText(f"< {rate(hot.value)}")
    return _WRITERS.get(unit, decimal)(hot.value, Mark.AT_LEAST if hot.at_least else Mark.EXACT)


@dataclass(frozen=True, slots=True)
class HotKeysState(PanelState):
    """What the panel shows."""

    since_s: float = 0.0
    """Seconds since the figures were read from the server."""


class HotKeysPanel(Panel[HotKeysState]):
    """The hottest keys as bars, under the name of their source; a table for each of its lists, and one for slots."""

    id = "hot"
    title = literal("Hot keys")
    key = "4"
    help = "Show the keys that are used most, from the best source that the server offers."
    initial = HotKeysState()
    shows_hot_keys = True
    max_lines = 20

    def tables(self, report: Report, _state: HotKeysState) -> tuple[PanelTable, ...]:
        """Return the lists of hot keys, then the loaded slots where the server counts them or there are no lists."""
        tables = [
            PanelTable(
                f"hot {at}",
                display_text(one.title, limit=TITLE_LIMIT),
                partial(_hot_table, report, at),
                note=sample_note(of_sample(report))[:1],
                top=literal("hottest"),
                empty=unfound(report, "No key stands out"),
            )
            for at, one in enumerate(report.hot.lists)
        ]
        if report.hot.slots or not tables:
            empty = literal("The server keeps no statistics of its slots")
            make = partial(hot_slots, report)
            tables.append(PanelTable("hot slots", literal("slots"), make, top=literal("busiest"), empty=empty))
        return tuple(tables)

    def chart(self, report: Report, state: HotKeysState, size: Size) -> list[Line]:
        """Return the source, the hottest keys of each list beside or below each other, and missing sources."""
        hot, width, is_low = report.hot, size.width - 2, size.height < LOW_LINES
        better = joined([display_text(one) for one in hot.better], " ")
        missing = paragraph(better, width, Role.MUTED) if hot.better else []
        missing = missing[: max(0, min(MISSING_LINES, size.height - 3))]
        lines = [*_source_lines(hot, width, state.since_s), *([] if is_low else [()])]
        space = size.height - len(lines) - len(missing) - (not is_low)
        sections: list[Callable[[int], list[Line]]] = [partial(_list_section, one, space) for one in hot.lists]
        if hot.slots:
            sections.append(partial(_slots_section, hot.slots, space))
        columns = min(len(sections), (width + BETWEEN_CELLS) // (COLUMN_CELLS + BETWEEN_CELLS))
        arranged: list[Line] = []
        if columns >= 2:
            cells = (width + BETWEEN_CELLS) // columns
            for at, section in enumerate(sections[:columns]):
                arranged = beside_each_other(arranged, section(cells - BETWEEN_CELLS)[:space], at * cells)
        else:
            for section in sections:
                more = section(width)
                if arranged and len(arranged) + 1 + len(more) > space:
                    break
                arranged += [*([()] if arranged else []), *more]
            arranged = arranged[: max(0, space)]
        lines += arranged
        if missing:
            lines += missing if is_low or len(lines) + len(missing) >= size.height else [(), *missing]
        return inset(lines, size)

    def aged(self, state: HotKeysState, seconds: float) -> HotKeysState:
        """Return the state so many seconds after the server was asked for its hot keys."""
        return replace(state, since_s=seconds)


def _hot_table(report: Report, at: int) -> Table:
    """Return one of the lists, without its note, which repeats what the chart says."""
    return replace(hot_keys(report)[at], note="")


def _source_lines(hot: HotReport, width: int, since_s: float) -> list[Line]:
    """Return the name of the source, how old its figures are, and what they measure."""
    if hot.source is HotSource.NONE:
        spans = [Span(_SOURCES[hot.source], Role.WARN)]
    else:
        spans = [Span(literal("from "), Role.MUTED), Span(_SOURCES[hot.source], Role.STRONG)]
    if hot.age_s is not None:
        age_s = int(max(0.0, hot.age_s) + since_s)
        age = f"{fmt.duration(age_s * fmt.SECOND_MS)} old" if age_s else "just now"
        spans.append(Span(SafeText(f" · {age}"), Role.MUTED))
    if hot.lfu is not None:
        assumed = " (assumed)" if hot.lfu.assumed else ""
        settings = f" · log factor {hot.lfu.log_factor}, decay {hot.lfu.decay_minutes} min{assumed}"
        spans.append(Span(SafeText(settings), Role.MUTED))
    has_about = hot.about and hot.source is not HotSource.NONE
    return [tuple(spans), *(paragraph(display_text(hot.about), width, Role.MUTED)[:2] if has_about else [])]


def _key_name(hot: HotKey) -> SafeText:
    return display(hot.record.key, limit=NAME_LIMIT) or literal("(empty name)")


def _key_role(hot: HotKey) -> Role:
    return type_role(hot.record.key_type) if hot.record.key_type else Role.TEXT


def _list_section(found: HotList, space: int, width: int) -> list[Line]:
    """Return one list: the keys that cannot be ranked together, then the others as bars.

    Idle times have no bars, since less is hotter.
    """
    title: Line = (
        Span(display_text(found.title), Role.ACCENT),
        Span(SafeText(f"  {display_text(found.unit)}"), Role.MUTED),
    )
    if not found.keys:
        return [title, (Span(literal("no keys"), Role.MUTED),)]
    unranked = _unranked_lines([one for one in found.keys if one.at_least], found.unit, width)
    ranked = [one for one in found.keys if not one.at_least][: max(0, min(MAX_BARS, space - 1 - len(unranked)))]
    highest = max(one.value for one in found.keys)
    has_bars = found.unit != IDLE and highest > 0
    bars = [
        HorizontalBar(
            _key_name(one), (value_text(one, found.unit),), one.value if has_bars else None, _key_role(one)
        )
        for one in ranked
    ]  # fmt: skip
    return [title, *unranked, *bar_lines(bars, width, whole=highest, name_cells=NAME_CELLS)]


def _unranked_lines(keys: Sequence[HotKey], unit: str, width: int) -> list[Line]:
    """Return the keys whose counter is at its top: one rate for all, and their names in the order of names."""
    if not keys:
        return []
    note = SafeText(f"  {counted(len(keys), 'key')} at the top of the counter, which cannot be ranked")
    names: list[Span] = [gap(2)]
    used, left_out = 2, len(keys)
    for one in sorted(keys, key=lambda hot: hot.record.key):
        name = cut_middle(_key_name(one), min(32, max(8, width // 3)))
        if used + width_of(name) + 12 > width and left_out < len(keys):
            break
        names += (Span(name, _key_role(one)), gap(2))
        used += width_of(name) + 2
        left_out -= 1
    if left_out:
        names.append(Span(SafeText(f"+{left_out:,} more"), Role.FAINT))
    return [(Span(value_text(keys[0], unit), Role.WARN), Span(note, Role.MUTED)), tuple(names)]


def _slots_section(slots: Sequence[SlotLoad], space: int, width: int) -> list[Line]:
    """Return the most loaded slots, by the first figure that the server keeps of them."""
    name = next(one for one in (*_METRICS, *slots[0].values, "") if not one or slots[0].values.get(one))
    title, write = _METRICS.get(name, (display_text(name), decimal))
    loads = sorted(((one.values.get(name, 0), one.slot) for one in slots), key=lambda load: -load[0])
    bars = [
        HorizontalBar(SafeText(f"slot {slot:,}"), (write(value, Mark.EXACT),), value)
        for value, slot in loads[: max(0, min(MAX_BARS, space - 1))]
    ]
    return [(Span(literal("Slots"), Role.ACCENT), Span(SafeText(f"  {title}"), Role.MUTED)), *bar_lines(bars, width)]
