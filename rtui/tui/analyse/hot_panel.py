"""The Hot keys panel: the keys that are used most, from the best source that the server offers, and loaded slots.

Hot keys are read again while the panel is shown. In a session, which a dialog asks for first, the server finds them
itself; that is not only reading.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import Frequency
from rtui.analysis.humanize import Mark, NumberFormat, counted, decimal, rate
from rtui.analysis.report.document import HotKey, HotList, HotReport, HotSource, Report, SlotLoad
from rtui.analysis.report.tables.keys import hot_keys, hot_slots, of_sample
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.session import AnalysisSource, AnalysisStatus
from rtui.server.guard.evidence import Consent
from rtui.server.hot.report import HOT_EVERY_S
from rtui.server.wire.connection import Online
from rtui.server.wire.errors import RtuiError
from rtui.tui.analyse.panel import AnalysePanel, PanelState, PanelTable, sample_note, unfound
from rtui.tui.kit.chart_lines import HorizontalBar, bar_lines, beside_each_other, inset, paragraph
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.layout import display, display_text, prose, tab
from rtui.tui.kit.panel_screen import following
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, gap, joined, left, literal, type_role, width_of

DEFAULT: Final = Consent(duration_s=60, sample_ratio=100)


class Choice(NamedTuple):
    """A field of the consent whose value the user chooses."""

    key: SafeText
    """Takes the next option, and after the last one the first."""
    field: str
    label: SafeText
    options: Sequence[Any]
    text: Callable[[Any], SafeText]


CHOICES: Final = (
    Choice(literal("d"), "duration_s", literal("duration"), (10, 60, 300, 1800),
           lambda duration_s: fmt.duration(duration_s * fmt.SECOND_MS)),
    Choice(literal("s"), "sample_ratio", literal("measured"), (1000, 100, 10), lambda one: SafeText(f"1 in {one:,}")),
    Choice(literal("l"), "discards_result", literal("earlier result"), (False, True),
           lambda discards: literal("may be lost") if discards else literal("keep it")),
)  # fmt: skip

_KEY_CELLS: Final = 4
_LABEL_CELLS: Final = 14

_ABOUT: Final = literal(
    "rtui only reads. This is the one exception: HOTKEYS START makes the server track CPU time and network bytes by "
    "key for this time. It changes no key and no setting, and it ends by itself; rtui does not stop or reset it."
)
_COST: Final = literal(
    "Cost: with every command sampled, redis-benchmark was 17 % slower on Redis 8.6; with one in 100, 1.6 %. Commands "
    "of rtui are counted, too: do not analyse all keys while it runs."
)
_KEPT: Final = literal(
    "The server keeps one result: that of an earlier session, perhaps another operator's, would be lost. A running "
    "session is never touched."
)


class HotSessionScreen(CardScreen[Consent | None]):
    """Dismissed with the consent that the user has given by pressing `y`; else with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "dismiss", show=False),
        *(Binding(choice.key, f"next_option({at})", show=False) for at, choice in enumerate(CHOICES)),
        Binding("y", "agree", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("Start a hot-key session?", "consent")
        self.consent = DEFAULT

    def action_next_option(self, at: int) -> None:
        field, options = CHOICES[at].field, CHOICES[at].options
        self.consent = replace(self.consent, **{field: following(options, getattr(self.consent, field))})
        self.body.set_content(self.lines)

    def action_agree(self) -> None:
        self.dismiss(self.consent)

    def lines(self, width: int) -> list[Line]:
        lines = [*prose(_ABOUT, width, Role.TEXT), ()]
        for text in (_COST, _KEPT):
            lines += [*prose(text, width, Role.MUTED), ()]
        for choice in CHOICES:
            spans = [_key(choice.key), Span(left(choice.label, _LABEL_CELLS), Role.MUTED)]
            for option in choice.options:
                is_chosen = option == getattr(self.consent, choice.field)
                spans += (gap(1), tab(choice.text(option), is_chosen=is_chosen))
            lines.append((gap(1), *spans))
        return [
            *lines,
            (),
            (gap(1), _key(literal("y")), Span(literal("start the session on the server"), Role.STRONG)),
            (gap(1), _key(literal("esc")), Span(literal("cancel: leave the server as it is"))),
        ]


class HotKeys:
    """Has the hot keys of an analysis read while a screen shows them: a session may have begun or ended elsewhere."""

    def __init__(self, source: AnalysisSource, screen: Screen[Any], are_shown: Callable[[], bool]) -> None:
        """The screen runs the workers and shows the notices; `are_shown` returns whether hot keys are on it now."""
        self._source, self._screen, self._are_shown = source, screen, are_shown
        self._due_s = 0.0
        """When they are read again, on the clock of the event loop."""

    def refresh(self, status: AnalysisStatus) -> None:
        """Read them again if it is time, they are on the screen, and nothing else asks the server."""
        now_s, source = asyncio.get_running_loop().time(), self._source
        can_ask = status.is_live and isinstance(status.link, Online) and not status.is_under_way
        is_wanted = self._are_shown() and source.report is not None and source.reports_hot_keys
        if is_wanted and can_ask and now_s >= self._due_s:
            self._due_s = now_s + HOT_EVERY_S
            self._screen.run_worker(
                self._read(), group="hot keys", exclusive=True, exit_on_error=False, description="hot keys"
            )

    async def _read(self) -> None:
        """Read them; the status bar shows a lost connection, and other failures show in the next analysis."""
        with contextlib.suppress(RtuiError):
            await self._source.ask_hot()

    def start_session(self, consent: Consent) -> None:
        name = "hot-key session"
        self._screen.run_worker(self._start(consent), group=name, exit_on_error=False, description=name)

    async def _start(self, consent: Consent) -> None:
        try:
            await self._source.start_hot_session(consent)
        except RtuiError as error:
            text = " ".join(filter(None, (error.happened, error.remedy)))
            self._screen.notify(text, title=error.title, severity="warning", markup=False, timeout=10)
        else:
            self._due_s = 0.0
            self.refresh(self._source.status)
            lasts = fmt.duration(consent.duration_s * fmt.SECOND_MS)
            text = f"It ends by itself in {lasts}; results appear in this panel."
            self._screen.notify(text, title="Tracking hot keys", markup=False, timeout=10)


def _key(key: SafeText) -> Span:
    return Span(left(key, _KEY_CELLS), Role.ACCENT)


NAME_LIMIT: Final = 400
NAME_CELLS: Final = 48
"""Longer keys are cut in the middle."""

MAX_BARS: Final = 10
"""Keys in a list and slots that are drawn; the tables have all of them."""

LOW_LINES: Final = 14
"""A chart of fewer lines has no blank ones."""

TITLE_LIMIT: Final = 24
COLUMN_CELLS: Final = 54
BETWEEN_CELLS: Final = 4
"""The least width of sections beside each other, and the blank cells between two."""

MISSING_LINES: Final = 4
"""Lines at most of the reasons why a better source is missing."""

IDLE: Final = "seconds idle"
"""The unit in which less is hotter, so that bars would mislead."""

_SOURCES: Final = {
    HotSource.SERVER: literal("the server's own hot-key report"),
    HotSource.FREQUENCY: literal("LFU counters (OBJECT FREQ)"),
    HotSource.IDLE: literal("idle time (OBJECT IDLETIME)"),
    HotSource.NONE: literal("no source for hot keys"),
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
"""Formatters of values, by the unit of their list."""

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
    """The state of the panel."""

    since_s: float = 0.0
    """Seconds since the figures were read from the server."""


class HotKeysPanel(AnalysePanel[HotKeysState]):
    """The hottest keys as bars, under the name of their source; a table for each of its lists, and one for slots."""

    id = "hot"
    title = literal("Hot keys")
    key = "4"
    help = "Show the most used keys, from the best source that the server offers."
    words = "hotkeys object freq idletime lfu lru"
    is_ranking = True
    initial = HotKeysState()
    shows_hot_keys = True
    max_lines = 20

    def tables(self, report: Report, _state: HotKeysState) -> tuple[PanelTable, ...]:
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
            empty = literal("The server keeps no slot statistics")
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
        return replace(state, since_s=seconds)


def _hot_table(report: Report, at: int) -> Table:
    """Return a list without its note, which repeats the chart."""
    return replace(hot_keys(report)[at], note="")


def _source_lines(hot: HotReport, width: int, since_s: float) -> list[Line]:
    """Return the name of the source, the age of its figures, and their meaning."""
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
    note = SafeText(f"  {counted(len(keys), 'key')} at the maximum of the counter, unranked")
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
