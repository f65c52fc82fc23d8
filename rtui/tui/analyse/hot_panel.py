"""The Hot keys panel: the keys that are used most, from the best source that the server offers, and loaded slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis.facts import Frequency
from rtui.analysis.humanize import counted, decimal, rate
from rtui.analysis.report.document import HotKey, HotList, HotReport, HotSource, Report, SlotLoad
from rtui.analysis.report.tables.keys import hot_keys, hot_slots, of_sample
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.chart_lines import Bar, bar_lines, beside_each_other, chart_lines, inset
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable, sample_note
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import Mark, display, display_text
from rtui.tui.kit.layout import prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, joined, literal, type_role, width_of

NAME_LIMIT: Final = 400
"""Characters of a key that are made safe to show."""

NAME_CELLS: Final = 48
"""A key is cut in the middle beyond this."""

MAX_BARS: Final = 10
"""So many keys are drawn; the table below has all of them."""

MAX_SLOTS: Final = 10
"""So many slots are drawn."""

LOW_LINES: Final = 14
"""In fewer lines there are no blank ones."""

MAX_LINES: Final = 20
"""The chart is never higher."""

TITLE_LIMIT: Final = 24
"""Characters of a list's title that its tab shows."""

COLUMN_CELLS: Final = 54
"""Parts that are at least so wide stand beside each other."""

BETWEEN_CELLS: Final = 4
"""So much stands between them."""

BETTER_LINES: Final = 4
"""The reasons for what is missing take at most so many lines."""

IDLE: Final = "seconds idle"
"""The unit where less is hotter, so that a bar would say the opposite of what it shows."""

_SOURCES: Final = {
    HotSource.SERVER: literal("the server's own hot-key report"),
    HotSource.FREQUENCY: literal("LFU counters (OBJECT FREQ)"),
    HotSource.IDLE: literal("idle time (OBJECT IDLETIME)"),
    HotSource.NONE: literal("nothing tells which keys are hot"),
}

_MICROSECONDS_A_MS: Final = 1000


def _cpu(value: float, mark: Mark) -> SafeText:
    """Write microseconds: `850 µs`, `12ms`, `3s`."""
    if value < _MICROSECONDS_A_MS:
        return SafeText(f"{mark}{value:.0f} µs")
    return SafeText(f"{mark}{fmt.duration(round(value / _MICROSECONDS_A_MS))}")


def _idle(value: float, mark: Mark) -> SafeText:
    """Write seconds without use; below one is `now`."""
    return literal("now") if value < 1 else SafeText(f"{mark}{fmt.duration(round(value * fmt.SECOND_MS))}")


def _queries(value: float, mark: Mark) -> SafeText:
    return SafeText(f"{fmt.short_count(value, mark)}/s")


_WRITERS: Final[dict[str, Callable[[float, Mark], SafeText]]] = {
    "accesses/min": rate,
    "µs of CPU": _cpu,
    "bytes of network traffic": fmt.size,
    IDLE: _idle,
    "queries/s": _queries,
}


_METRICS: Final[dict[str, tuple[SafeText, Callable[[float, Mark], SafeText]]]] = {
    "cpu-usec": (literal("CPU time"), _cpu),
    "cpu-usage": (literal("CPU time"), _cpu),
    "network-bytes-in": (literal("bytes received"), fmt.size),
    "network-bytes-out": (literal("bytes sent"), fmt.size),
    "memory-bytes": (literal("bytes"), fmt.size),
    "key-count": (literal("keys"), decimal),
}
"""What a server counts of its slots, by its names, the most telling first."""


def value_text(hot: HotKey, unit: str) -> SafeText:
    """Write how hot a key is in the unit of its list; a counter at its top is a lower bound."""
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
    key = "3"
    help = "Show the keys that are used most, from the best source that the server offers."
    initial = HotKeysState()
    shows_hot_keys = True

    def tables(self, report: Report, _state: HotKeysState) -> tuple[PanelTable, ...]:
        """Return the lists of hot keys, then the loaded slots where the server counts them or there are no lists."""
        tables = [
            PanelTable(
                f"hot {at}",
                display_text(one.title, limit=TITLE_LIMIT),
                partial(_hot_table, report, at),
                note=sample_note(of_sample(report))[:1],
                top=literal("hottest"),
                empty=literal("No key stands out"),
            )
            for at, one in enumerate(report.hot.lists)
        ]
        if report.hot.slots or not tables:
            empty = literal("The server keeps no statistics of its slots")
            table = PanelTable(
                "hot slots", literal("slots"), partial(hot_slots, report), top=literal("busiest"), empty=empty
            )
            tables.append(table)
        return tuple(tables)

    def chart_height(self, report: Report, _state: HotKeysState, space: Size) -> int:
        """Return how many lines the chart takes."""
        return len(hot_lines(report, space.width - 2, chart_lines(MAX_LINES, space.height)))

    def chart(self, report: Report, state: HotKeysState, size: Size) -> list[Line]:
        """Return the source and the hottest keys."""
        return inset(hot_lines(report, size.width - 2, size.height, state.since_s))

    def aged(self, state: HotKeysState, seconds: float) -> HotKeysState:
        """Return the state so many seconds after the server was asked for its hot keys."""
        return replace(state, since_s=seconds)


def _hot_table(report: Report, at: int) -> Table:
    """Return one of the lists, without its note, which repeats what the chart says."""
    return replace(hot_keys(report)[at], note="")


def hot_lines(report: Report, width: int, height: int, since_s: float = 0.0) -> list[Line]:
    """Return the panel in at most `height` lines, `since_s` seconds after the server was asked."""
    hot = report.hot
    better = _better(hot, width)[: max(0, min(BETTER_LINES, height - 3))]
    is_low = height < LOW_LINES
    lines = [*_source(hot, width, since_s), *([] if is_low else [()])]
    room = height - len(lines) - len(better) - (not is_low)
    blocks = [*(_list_block(one, room) for one in hot.lists), *([_slot_block(hot.slots, room)] if hot.slots else [])]
    lines += _arranged(blocks, width, room)
    if better:
        lines += better if is_low or len(lines) + len(better) >= height else [(), *better]
    return [clip(line, width) for line in lines[:height]]


def _source(hot: HotReport, width: int, since_s: float) -> list[Line]:
    """Name the source, what it measures and how old it is."""
    role = Role.WARN if hot.source is HotSource.NONE else Role.STRONG
    spans = [Span(literal("from "), Role.MUTED)] if hot.source is not HotSource.NONE else []
    spans.append(Span(_SOURCES[hot.source], role))
    if hot.age_s is not None:
        age_s = int(max(0.0, hot.age_s) + since_s)
        age = f"{fmt.duration(age_s * fmt.SECOND_MS)} old" if age_s else "just now"
        spans.append(Span(SafeText(f" · {age}"), Role.MUTED))
    if hot.lfu is not None:
        assumed = " (assumed)" if hot.lfu.assumed else ""
        settings = f" · log factor {hot.lfu.log_factor}, decay {hot.lfu.decay_minutes} min{assumed}"
        spans.append(Span(SafeText(settings), Role.MUTED))
    lines: list[Line] = [tuple(spans)]
    if hot.about and hot.source is not HotSource.NONE:
        lines += [line[1:] for line in prose(display_text(hot.about), width + 2, Role.MUTED)][:2]
    return lines


Block = Callable[[int], list[Line]]
"""Makes a part of the panel for a width."""


def _arranged(blocks: Sequence[Block], width: int, room: int) -> list[Line]:
    """Put as many parts beside each other as are wide enough, or where only one is, under each other as they fit."""
    columns = min(len(blocks), (width + BETWEEN_CELLS) // (COLUMN_CELLS + BETWEEN_CELLS))
    if columns >= 2:
        cells = (width + BETWEEN_CELLS) // columns
        lines: list[Line] = []
        for at, block in enumerate(blocks[:columns]):
            lines = beside_each_other(lines, block(cells - BETWEEN_CELLS)[:room], at * cells)
        return lines
    lines = []
    for block in blocks:
        made = block(width)
        if lines and len(lines) + 1 + len(made) > room:
            break
        lines += [*([()] if lines else []), *made]
    return lines[: max(0, room)]


def _key_name(key: bytes) -> SafeText:
    return display(key, limit=NAME_LIMIT) if key else literal("(empty name)")


def _list_block(found: HotList, room: int) -> Block:
    """Return the part of one list: the keys without a rank in a group of their own, then the others as bars."""

    def make(width: int) -> list[Line]:
        top = [one for one in found.keys if one.at_least]
        ranked = [one for one in found.keys if not one.at_least]
        head: Line = (
            Span(display_text(found.title), Role.ACCENT),
            Span(SafeText(f"  {display_text(found.unit)}"), Role.MUTED),
        )
        group = _unranked(top, found.unit, width)
        most = max((one.value for one in found.keys), default=0.0)
        shown = ranked[: max(0, min(MAX_BARS, room - 1 - len(group)))]
        bars = [_bar(one, found.unit, most) for one in shown]
        if not found.keys:
            group = [(Span(literal("no keys"), Role.MUTED),)]
        return [head, *group, *bar_lines(bars, width, name_cells=NAME_CELLS)]

    return make


def _bar(hot: HotKey, unit: str, most: float) -> Bar:
    """Return the bar of a key; of idle times there are none, since less is hotter."""
    part = None if unit == IDLE or most <= 0 else hot.value / most
    role = Role.TEXT if hot.record.kind is None else type_role(hot.record.kind)
    return Bar(_key_name(hot.record.key), (value_text(hot, unit),), part, role)


def _unranked(keys: Sequence[HotKey], unit: str, width: int) -> list[Line]:
    """Return the keys whose counter is at its top: one rate for all, their names side by side, in no order of heat."""
    if not keys:
        return []
    rate = value_text(keys[0], unit)
    head: Line = (
        Span(rate, Role.WARN),
        Span(SafeText(f"  {counted(len(keys), 'key')} at the top of the counter, which cannot be ranked"), Role.MUTED),
    )
    names: list[Span] = [gap(2)]
    used, left_out = 2, len(keys)
    for one in sorted(keys, key=lambda hot: hot.record.key):
        name = cut_middle(_key_name(one.record.key), min(32, max(8, width // 3)))
        if used + width_of(name) + 12 > width and left_out < len(keys):
            break
        names += (Span(name, type_role(one.record.kind) if one.record.kind else Role.TEXT), gap(2))
        used += width_of(name) + 2
        left_out -= 1
    if left_out:
        names.append(Span(SafeText(f"+{left_out:,} more"), Role.FAINT))
    return [head, tuple(names)]


def _slot_block(slots: Sequence[SlotLoad], room: int) -> Block:
    """Return the part of the most loaded slots, by the first thing that the server counts of them."""
    name = next(one for one in (*_METRICS, *slots[0].values, "") if not one or slots[0].values.get(one))
    title, write = _METRICS.get(name, (display_text(name), decimal))
    shown = sorted(slots, key=lambda one: -one.values.get(name, 0))[: max(0, min(MAX_SLOTS, room - 1))]
    most = max((one.values.get(name, 0) for one in shown), default=0)

    def make(width: int) -> list[Line]:
        head: Line = (Span(literal("Slots"), Role.ACCENT), Span(SafeText(f"  {title}"), Role.MUTED))
        bars = []
        for one in shown:
            value = one.values.get(name, 0)
            text = write(value, Mark.EXACT)
            bars.append(Bar(SafeText(f"slot {one.slot:,}"), (text,), value / most if most else 0.0))
        return [head, *bar_lines(bars, width)]

    return make


def _better(hot: HotReport, width: int) -> list[Line]:
    """Say why a better source is missing and what would enable it."""
    if not hot.better:
        return []
    text = joined([display_text(one) for one in hot.better], " ")
    return [line[1:] for line in prose(text, width + 2, Role.MUTED)]
