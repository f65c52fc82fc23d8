"""What the charts of an analysis say: within their cells, in safe text, and nothing that the report does not know."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from textual.geometry import Size

from rtui.analysis.facts import LfuSettings
from rtui.analysis.query.behind import expiring, ttl_bin
from rtui.analysis.query.parsing import parse
from rtui.analysis.report.document import (
    ClusterNode,
    ClusterReport,
    EncodingReport,
    HotKey,
    HotList,
    HotReport,
    HotSource,
    KeyRecord,
    NodeKind,
    Report,
    SlotLoad,
    SlotTag,
    Step,
    TypeReport,
)
from rtui.analysis.report.members import DAY_S, HOUR_S
from rtui.analysis.report.tables.slots import slots as fullest_slots
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import HOSTILE
from rtui.tui.analyse.expiry_panel import ExpiryPanel, ExpiryState, TimeRange, axis_for, ticks
from rtui.tui.analyse.hot_panel import HotKeysPanel, HotKeysState
from rtui.tui.analyse.panel import AnalysePanel
from rtui.tui.analyse.size_panels import BigKeysPanel, TypesPanel
from rtui.tui.analyse.slots_panel import CLUSTER_SIZES, SlotsPanel, SlotsState, cursor_slot, map_for, skew_text
from rtui.tui.kit.chart_lines import (
    MEAN,
    SHADES,
    HorizontalBar,
    SlotMap,
    bar_lines,
    fitting_map,
    flagged,
    map_lines,
    shade_of,
    standing,
)
from rtui.tui.kit.layout import TERMINAL
from rtui.tui.kit.styled_text import Line, Role, line_width
from rtui.tui.kit.terminal import plain
from tests.conftest import known
from tests.made_report import (
    MADE_AT_S,
    clustered_report,
    denied_report,
    empty_report,
    estimate_report,
    made_report,
    partial_report,
    quantiles,
    stats,
    unsettled_report,
)

EVIL = b"evil:\x1b]0;owned\x07[/red]\xe2\x80\xae\xff"

Chart = Callable[[Report, int, int], list[Line]]


def hostile_report() -> Report:
    """A report in which every name and text is hostile."""
    made = made_report()
    record = KeyRecord(EVIL, key_type=EVIL, frequency=255)
    lists = tuple(
        HotList("\x1b[31mtitle", unit, (HotKey(record, 1e12, at_least=True), HotKey(record, 3.0)))
        for unit in ("accesses/min", "µs of CPU", "bytes of network traffic", "seconds idle", "\x9bunit")
    )
    slots = (SlotLoad(7, {"\x1b[2J": 3}),)
    hot = HotReport(HotSource.SERVER, "\x1b[2Jabout", 3e9, ("\x1b[2Jbetter" * 40,), lists, slots, LfuSettings())
    summary = made.summary
    cliff = replace(summary.expiry.cliffs[0], label="\x1b[31m" * 9)
    line = replace(summary.expiry.timelines[0], label="\u202e" * 99)
    return replace(
        made,
        hot=hot,
        keysizes=(replace(made.keysizes[0], name="distrib_\x1b[31m_sizes"),),
        summary=replace(
            summary,
            types=(TypeReport(EVIL, stats(9, 90, 3), quantiles(4), "\x1b[5m"),),
            encodings=(EncodingReport(EVIL, EVIL, 4, 0.5),),
            expiry=replace(summary.expiry, timelines=(line,), cliffs=(cliff,)),
            slots=replace(summary.slots, tags=(SlotTag(0, EVIL, 9, None),)),
        ),
    )


REPORTS = {
    "exact": made_report(), "estimate": estimate_report(), "partial": partial_report(), "denied": denied_report(),
    "empty": empty_report(), "hostile": hostile_report(),
}  # fmt: skip


def hot_lines(report: Report, width: int, height: int, since_s: float = 0.0) -> list[Line]:
    return HotKeysPanel().chart(report, HotKeysState(since_s=since_s), Size(width, height))


def types_lines(report: Report, width: int, height: int) -> list[Line]:
    return TypesPanel().chart(report, TypesPanel().initial, Size(width, height))


def slots_lines(report: Report, width: int, height: int, state: SlotsState) -> list[Line]:
    return SlotsPanel().chart(report, state, Size(width, height))


def expiry_lines(
    report: Report, width: int, height: int, time_range: TimeRange = TimeRange.HOUR, timeline: int = 0
) -> list[Line]:
    """The chart with the cursor on the namespace of a timeline; without that one, that of all keys."""
    subject = None
    if timeline < len(report.summary.expiry.timelines):
        path = report.summary.expiry.timelines[timeline].path
        subject = tuple(Step(name, b":", NodeKind.LITERAL) for name in path)
    return ExpiryPanel().chart(report, ExpiryState(subject=subject, time_range=time_range), Size(width, height))


def charts() -> Iterator[tuple[str, Chart]]:
    """Every chart in every state that changes what it draws."""
    yield "hot", hot_lines
    yield "types", types_lines
    for time_range in TimeRange:
        for at in (0, 2, 9):
            yield f"expiry {time_range.name} {at}", partial(expiry_lines, time_range=time_range, timeline=at)
    for cursor in (0, 5474, SLOTS - 1):
        for by_bytes in (False, True):
            chosen = SlotsState(pinned=(None, cursor), by_bytes=by_bytes, nodes=CLUSTER_SIZES[cursor % 3])
            yield f"slots {cursor} {by_bytes}", partial(slots_lines, state=chosen)


CHARTS = dict(charts())


@pytest.fixture
def ascii_only() -> Iterator[None]:
    TERMINAL.ascii_only = True
    yield
    TERMINAL.ascii_only = False


def said(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in line) for line in lines)


@given(st.sampled_from(list(REPORTS)), st.sampled_from(list(CHARTS)), st.integers(40, 220), st.integers(6, 50))
def test_charts_stay_within_their_cells_and_are_safe(report: str, chart: str, width: int, height: int) -> None:
    lines = CHARTS[chart](REPORTS[report], width, height)
    assert len(lines) <= height
    assert max(map(line_width, lines)) <= width
    assert not HOSTILE.search(said(lines).replace("\n", ""))


@given(st.sampled_from(list(REPORTS)), st.sampled_from(list(CHARTS)), st.integers(40, 220))
def test_a_chart_is_the_same_each_time(report: str, chart: str, width: int) -> None:
    assert CHARTS[chart](REPORTS[report], width, 24) == CHARTS[chart](REPORTS[report], width, 24)


@pytest.mark.usefixtures("ascii_only")
@pytest.mark.parametrize("chart", CHARTS)
def test_a_plain_terminal_gets_every_chart_in_ascii(chart: str) -> None:
    lines = CHARTS[chart](made_report(), 120, 24)
    assert plain(said(lines).replace("\n", " ")).isascii()
    assert "?" not in plain(said(lines).replace("\n", " "))
    assert "\\u00" not in said(lines)


@pytest.mark.usefixtures("ascii_only")
def test_steps_stay_apart_without_blocks_and_colours() -> None:
    assert len({shade.ascii_character for shade in SHADES}) == len(SHADES)
    (row,) = standing(list(range(9)), 1)
    assert len(set(row)) == 9


def test_shades_differ_by_character_alone() -> None:
    assert len({shade.character for shade in SHADES}) == len(SHADES)


# bars


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=60), st.integers(1, 12))
def test_standing_bars_are_as_high_as_their_values(values: list[float], height: int) -> None:
    rows = standing(values, height)
    assert [len(row) for row in rows] == [len(values)] * height
    filled = [sum(row[at] != " " for row in rows) for at in range(len(values))]
    assert all((count > 0) == (value > 0) for count, value in zip(filled, values, strict=True))
    assert all(a <= b for (_, a), (_, b) in zip(*[sorted(zip(values, filled, strict=True))] * 2, strict=True))


@given(st.floats(0, 1), st.integers(20, 120))
def test_a_lying_bar_never_hides_what_is_little(fraction: float, width: int) -> None:
    from rtui.tui.kit.styled_text import literal

    (line,) = bar_lines([HorizontalBar(literal("name"), (literal("12"),), fraction)], width, whole=1.0)
    assert line_width(line) <= width
    assert bool([span for span in line if span.role is Role.BAR and span.text.strip()]) == (fraction > 0)


# hot


def test_hot_keys_name_their_source_its_age_and_what_would_be_better() -> None:
    text = said(hot_lines(made_report(), 120, 20))
    assert "LFU counters (OBJECT FREQ) · 4s old" in text
    assert "Redis 8.6 has" in text


def test_the_age_of_hot_keys_grows_after_they_were_asked_for() -> None:
    made = made_report()
    assert "(OBJECT FREQ) · 1m 4s old" in said(hot_lines(made, 120, 20, 60.0))
    running = replace(made, hot=replace(made.hot, age_s=0.0))
    assert "(OBJECT FREQ) · just now" in said(hot_lines(running, 120, 20))
    assert "(OBJECT FREQ) · 3s old" in said(hot_lines(running, 120, 20, 3.7))


def test_keys_at_the_top_of_the_counter_have_one_rate_and_no_rank() -> None:
    text = said(hot_lines(made_report(), 120, 20))
    assert "≥ 41/s  3 keys at the maximum of the counter, unranked" in text
    (names,) = [line for line in text.split("\n") if "shop:list:0002" in line]
    assert names.split() == sorted(names.split())


def test_less_idle_is_hotter_so_there_is_no_bar() -> None:
    record = KeyRecord(b"a")
    keys = (HotKey(record, 0.0), HotKey(record, 90.0))
    hot = HotReport(HotSource.IDLE, lists=(HotList("Last use", "seconds idle", keys),))
    lines = hot_lines(replace(made_report(), hot=hot), 100, 12)
    assert "now" in said(lines)
    assert "1m 30s" in said(lines)
    assert not any(span.role is Role.BAR for line in lines for span in line)


def test_the_load_of_slots_is_told_where_the_server_counts_it() -> None:
    made = made_report()
    hot = replace(made.hot, slots=(SlotLoad(37, {"key-count": 3, "cpu-usec": 90_000}),))
    text = said(hot_lines(replace(made, hot=hot), 160, 20))
    assert "Slots  CPU time" in text
    assert "slot 37  90ms" in text


def test_without_a_source_it_says_why() -> None:
    text = said(hot_lines(denied_report(), 100, 12))
    assert "no source for hot keys" in text
    assert "OBJECT IDLETIME are denied" in text


# expiry


def test_a_cliff_is_marked_under_its_column_and_named_in_words() -> None:
    lines = expiry_lines(made_report(), 120, 14)
    (cliff,) = [line for line in said(lines).split("\n") if "▲" in line]
    assert "14:31–14:33 · 114,000 keys of shop:session · 38% of it · 250 MiB" in cliff
    bars = [line for line in lines if any(span.role is Role.WARN and "█" in span.text for span in line)]
    starts = {line_width(line[:at]) for line in bars for at, span in enumerate(line) if span.role is Role.WARN}
    assert cliff.index("▲") in range(min(starts), min(starts) + 4)


def test_what_lies_beyond_the_axis_is_counted() -> None:
    assert "later →" in said(expiry_lines(made_report(), 120, 14))
    assert "later →" not in said(expiry_lines(made_report(), 120, 14, TimeRange.ALL))


def test_the_zone_of_times_is_named() -> None:
    assert "times are UTC" in said(expiry_lines(made_report(), 120, 14))


def test_figures_say_how_far_they_can_be_trusted() -> None:
    assert "≥ 114,000 keys" in said(expiry_lines(partial_report(), 120, 14))
    assert "≈ 250,000" not in said(expiry_lines(made_report(), 120, 30))
    assert "≈31%" in said(expiry_lines(estimate_report(), 120, 30))


def test_unknown_times_to_live_are_no_zero() -> None:
    made = denied_report()
    bare = replace(made.summary.root.stats, no_ttl_keys=None, no_ttl_share=None, ttl=None)
    report = replace(made, summary=replace(made.summary, root=replace(made.summary.root, stats=bare)))
    assert "TTLs are not known" in said(expiry_lines(report, 120, 30))


@given(st.sampled_from(TimeRange), st.integers(20, 200), st.floats(0, 4e9), st.floats(0, 1e11))
def test_axes_hold_what_they_promise(time_range: TimeRange, cells: int, now_s: float, far_s: float) -> None:
    axis = axis_for(time_range, now_s + far_s + 60.0, now_s, cells)
    assert axis.start_s <= now_s < axis.start_s + axis.step_s
    assert axis.columns <= cells
    assert axis.step_s % 60 == 0
    if time_range.reach_s:
        assert axis.end_s >= now_s + time_range.reach_s
    places = [cell for cell, _ in ticks(axis, 12)]
    assert places == sorted(places)
    assert all(0 <= cell < cells for cell in places)


def test_columns_begin_at_round_times() -> None:
    assert axis_for(TimeRange.DAY, 0.0, MADE_AT_S, 100).start_s % (15 * 60) == 0
    assert axis_for(TimeRange.WEEK, 0.0, MADE_AT_S, 100).start_s % (2 * HOUR_S) == 0
    assert axis_for(TimeRange.ALL, MADE_AT_S + 90 * DAY_S + 1.0, MADE_AT_S, 100).step_s == DAY_S


@pytest.mark.parametrize("wanted", TimeRange)
def test_a_click_on_a_time_range_chooses_it(wanted: TimeRange) -> None:
    panel, size, report = ExpiryPanel(), Size(120, 20), made_report()
    text = said(panel.chart(report, ExpiryState(), size)[1:2])
    clicked = known(panel.clicked(report, ExpiryState(), size, text.rindex(wanted.title), 1))
    assert clicked.time_range is wanted
    assert panel.clicked(report, ExpiryState(), size, 1, 1) is None
    assert panel.clicked(report, ExpiryState(), size, text.rindex(wanted.title), 2) is None


def clicks(panel: AnalysePanel[Any], report: Report, size: Size) -> dict[str, list[str]]:
    """The queries behind the cells of a chart, by the text of their line, each once from left to right."""
    lines = panel.chart(report, panel.initial, size)
    found: dict[str, list[str]] = {}
    for y, line in enumerate(lines):
        queries = [panel.behind(report, panel.initial, size, x, y) for x in range(size.width)]
        found[said([line]).strip()] = [*dict.fromkeys(str(one.query) for one in queries if one is not None)]
    return found


@pytest.mark.sampled("size")
@pytest.mark.parametrize("size", [Size(80, 12), Size(120, 25), Size(200, 25)])
@pytest.mark.parametrize("make", [made_report, partial_report, estimate_report, denied_report, empty_report])
def test_every_query_behind_a_chart_can_be_edited(make: Callable[[], Report], size: Size) -> None:
    for panel in (ExpiryPanel(), TypesPanel()):
        for queries in clicks(panel, make(), size).values():
            for query in queries:
                assert str(parse(query)) == query


def test_a_click_on_a_bar_of_the_timeline_finds_what_expires_then() -> None:
    panel, size, report = ExpiryPanel(), Size(120, 25), made_report()
    axis = axis_for(TimeRange.HOUR, 0.0, report.head.made_at_s, size.width - 2 - 7)
    for at in (0, axis.columns // 2, axis.columns - 1):
        x = 1 + 7 + -(-at * axis.cells // axis.columns)
        found = known(panel.behind(report, ExpiryState(), size, x, 3))
        start_s = axis.start_s + at * axis.step_s
        assert found.query == expiring(start_s, start_s + axis.step_s).query
    assert panel.behind(report, ExpiryState(), size, 3, 3) is None
    assert panel.behind(report, ExpiryState(), size, size.width - 1, 3) is None


def test_a_click_on_a_histogram_finds_the_keys_of_its_bar() -> None:
    report = made_report()
    found = clicks(ExpiryPanel(), report, Size(120, 25))
    for number, name in enumerate(("under 1m", "1m – 10m", "10m – 1h")):
        line = next(one for one in found if one.startswith(name))
        assert found[line][0] == str(ttl_bin(number, report.head.made_at_s).query)
    assert next(queries for line, queries in found.items() if line.startswith("no TTL"))[0] == "ttl:none"
    heads = next(at for at, line in enumerate(found) if "most keys without TTL" in line)
    first = [*found.values()][heads + 1]
    assert first[-1].endswith("ttl:none")
    assert len(first) == 2


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_click_on_a_type_or_an_encoding_finds_its_keys(width: int) -> None:
    report = made_report()
    found = clicks(TypesPanel(), report, Size(width, 40))
    shown = [query for queries in found.values() for query in queries]
    assert [f"type:{one.name.decode()}" for one in report.summary.types] == [one for one in shown if " " not in one]
    encodings = {f"type:{one.key_type.decode()} enc:{one.encoding.decode()}" for one in report.summary.encodings}
    assert encodings == {one for one in shown if " " in one}


# slots


@given(st.integers(16, 300), st.integers(2, 60))
def test_a_field_covers_all_slots_once(width: int, height: int) -> None:
    field = fitting_map(width, height)
    assert field.columns <= width
    assert field.rows <= height
    assert field.columns * field.rows * field.slots_per_cell == SLOTS


@given(st.integers(0, SLOTS - 1), st.integers(-40, 40), st.integers(-200, 200))
def test_the_cursor_never_leaves_the_field(slot: int, rows: int, columns: int) -> None:
    field = SlotMap(64, 16)
    assert 0 <= field.moved(slot, rows, columns) < SLOTS
    assert field.moved(slot, 0, 0) == field.cell(slot)[0]


@given(st.integers(60, 220), st.integers(8, 50), st.integers(0, SLOTS - 1))
def test_a_click_on_the_cursor_finds_its_cell(width: int, height: int, slot: int) -> None:
    size = Size(width, height)
    field = map_for(size)
    row, column = field.place(slot)
    clicked = known(SlotsPanel().clicked(made_report(), SlotsState(), size, 9 + column, 1 + row))
    assert clicked.pinned == (None, field.cell(slot)[0])
    assert SlotsPanel().clicked(made_report(), SlotsState(), size, 9 + field.columns, 1) is None


def test_the_cell_under_the_cursor_stands_out() -> None:
    field = SlotMap(64, 8)
    lines = map_lines(field, [1] * SLOTS, flagged(None), 5474, is_count=True)
    marked = [at for at, line in enumerate(lines) if any(span.role is Role.HEAT_ON for span in line)]
    assert marked == [field.place(5474)[0]]
    assert "›" in said([lines[marked[0]]])


def test_load_is_brightness() -> None:
    found = [shade_of(load, 1000.0, is_count=True) for load in (100, 700, 1000, 1300, 5000)]
    assert found == list(SHADES)
    assert shade_of(5, 0.0, is_count=True) is MEAN


@pytest.mark.parametrize("even", [0.1, 1.0, 49.0, 1_000.0])
def test_keys_spread_at_random_leave_the_map_quiet(even: float) -> None:
    dice = Random(5)
    loads = [sum(expovariate_count(dice, even)) for _ in range(200)]
    assert {shade_of(load, even, is_count=True) for load in loads} == {MEAN}


def expovariate_count(dice: Random, even: float) -> Iterator[int]:
    """Ones, as many as a cell gets that should get `even`: the arrivals of a Poisson process in one unit of time."""
    at = dice.expovariate(even)
    while at < 1.0:
        yield 1
        at += dice.expovariate(even)


def test_chance_is_not_known_of_bytes() -> None:
    assert shade_of(70, 49.0, is_count=True) is MEAN
    assert shade_of(70, 49.0, is_count=False) is SHADES[3]


def test_skew_is_told_in_words_with_what_loads_the_slot() -> None:
    text = skew_text(made_report())
    assert "Random spread does not explain it: the hash tag {user:1} holds 9,000 of them" in text
    even = replace(made_report().summary.slots, keys=array("Q", [60] * SLOTS), tags=())
    assert "Random spread explains it" in skew_text(
        replace(made_report(), summary=replace(made_report().summary, slots=even))
    )


def test_a_server_on_its_own_is_imagined_as_a_cluster_and_a_node_of_one_is_not() -> None:
    assert "as a cluster of  3 [6]" in said(slots_lines(made_report(), 120, 24, SlotsState(nodes=6)))
    made = made_report()
    slots = replace(made.summary.slots, owned=((0, 5460),))
    node = replace(made, summary=replace(made.summary, slots=slots))
    text = said(slots_lines(node, 120, 24, SlotsState(pinned=(None, 9000))))
    assert "as a cluster" not in text
    assert "belongs to another node" in text


def test_a_cluster_has_the_owner_under_the_cursor_and_what_is_wrong_with_slots() -> None:
    report = unsettled_report()
    wide, low = (slots_lines(report, *size, SlotsState(pinned=(None, 4_000))) for size in ((120, 24), (80, 13)))
    for lines in (wide, low):
        text = said(lines)
        assert "in 16,201 slots of 3 nodes · 3 moving · 183 not served" in text
        assert "slots 4,000–4,0" in text
        assert "10.0.0.1:6379" in text
        assert "as a cluster" not in text
    text = said(wide)
    assert "slot 4,000 is moving to 10.0.0.3:6379" in text
    assert "» moving  × nobody's" in text
    assert text.count("×××××××××××") == 1
    assert "10.0.0.2:6379  ≥ 620,000  62%" in text
    assert "not served" in said(slots_lines(report, 120, 24, SlotsState(pinned=(None, 16_383))))[200:]
    shared = said(slots_lines(report, 120, 24, SlotsState(pinned=(None, 5_461))))
    assert "10.0.0.2:6379 and 1 more node" in shared


def test_slots_that_are_not_listed_yet_are_no_light_ones() -> None:
    """Each listed slot holds its part: that others hold nothing yet says nothing of it."""
    report = clustered_report()
    keys = array("Q", [60] * 2_000 + [7] * 10 + [0] * (SLOTS - 2_010))
    slots = replace(report.summary.slots, keys=keys, tags=(), listed=((0, 1_999),))
    partial = replace(report, summary=replace(report.summary, slots=slots))
    wide, low = (slots_lines(partial, *size, SlotsState(pinned=(None, 64))) for size in ((120, 24), (80, 13)))
    assert "1.0× the mean of scanned slots" in said(wide)
    assert "1.0× the mean" in said(low)
    assert "1.0× the mean of 60 of those scanned so far" in skew_text(partial)
    assert {character for line in low[1:9] for span in line[2:] for character in span.text} == {"·", "┼", "›", " "}
    ahead = SlotsState(pinned=(None, 8_200))
    for size in ((120, 24), (80, 13)):
        assert "not scanned yet" in said(slots_lines(partial, *size, ahead))
    table = fullest_slots(partial, 50)
    at = [one.id for one in table.columns].index("times_even")
    assert [row[at] for row in table.rows[:50]] == [pytest.approx(1.0)] * 50
    begun = replace(slots, listed=())
    text = said(slots_lines(replace(report, summary=replace(report.summary, slots=begun)), 120, 24, SlotsState()))
    assert "No slot has been scanned completely yet" in text


def test_the_time_of_a_slot_stands_under_the_cursor_where_the_server_counts_it() -> None:
    made = made_report()
    loads = (SlotLoad(37, {"key-count": 3, "cpu-usec": 90_000}), SlotLoad(9_000, {"key-count": 3}))
    timed = replace(made, hot=replace(made.hot, slots=loads))
    assert "≥ 90ms of CPU time" in said(slots_lines(timed, 120, 24, SlotsState(pinned=(None, 37))))
    assert "CPU time" not in said(slots_lines(timed, 120, 24, SlotsState(pinned=(None, 9_000))))


def test_the_cells_of_nodes_side_by_side_have_different_colours() -> None:
    lines = slots_lines(clustered_report(), 120, 24, SlotsState(pinned=(None, 0)))
    roles = {span.role for line in lines for span in line if "·····" in span.text}
    assert roles == {Role.HASH, Role.LIST, Role.STRING}


def test_the_row_of_a_node_puts_the_cursor_onto_its_first_slot() -> None:
    report = unsettled_report()
    assert cursor_slot(report, SlotsState(subject="10.0.0.3:6379")) == 10_923
    assert [one.id for one in SlotsPanel().tables(report, SlotsState())] == ["nodes", "slots", "slot_tags"]


def test_more_nodes_than_there_is_room_for_are_counted() -> None:
    report = clustered_report()
    nodes = tuple(
        ClusterNode(f"{at:040}", f"10.0.{at}.1:6379", slots=((at * 16, at * 16 + 15),), keys=50) for at in range(1_024)
    )
    text = said(slots_lines(replace(report, cluster=ClusterReport(nodes)), 120, 24, SlotsState()))
    assert "of 1,024 nodes" in text
    assert "more in the table" in text


def test_bytes_that_are_not_known_are_said_to_be_unknown() -> None:
    assert "memory is not known" in said(slots_lines(denied_report(), 120, 24, SlotsState(by_bytes=True)))


# types


def test_types_have_counts_bytes_and_lengths() -> None:
    text = said(types_lines(made_report(), 120, 24))
    assert "150,000   286 MiB          6 · 54 · 360 fields" in text
    assert "hash" in text


def test_encodings_of_a_sample_have_their_interval() -> None:
    text = said(types_lines(made_report(), 120, 24))
    assert "string embstr  ≈72% (70–73%)" in text
    assert "hash listpack           100%" in text


def test_an_unknown_type_has_the_name_that_the_server_gives() -> None:
    made = made_report()
    odd = TypeReport(b"vectorset", stats(5, 50, 5), None, "vectors")
    text = said(types_lines(replace(made, summary=replace(made.summary, types=(odd,))), 120, 24))
    assert "vectorset" in text
    assert "length unknown" in text


def test_denied_memory_is_said_with_the_reason() -> None:
    text = said(types_lines(denied_report(), 120, 24))
    assert "memory denied: NOPERM" in text
    assert "length not asked" in text


def test_the_servers_own_histograms_are_shown_where_there_is_room() -> None:
    text = said(types_lines(made_report(), 120, 24))
    assert "INFO keysizes" in text
    assert "1Mi" in text


@pytest.mark.parametrize("panel", [BigKeysPanel(), HotKeysPanel()], ids=["big", "hot"])
def test_lists_of_a_sample_say_that_most_keys_were_not_looked_at(panel: AnalysePanel[Any]) -> None:
    sampled, exact = panel.tables(estimate_report(), panel.initial)[0], panel.tables(made_report(), panel.initial)[0]
    said_first = "Only 20,000 of ≈ 1.00M (950k–1.05M) keys were analysed"
    assert said([sampled.note]).startswith(said_first)
    assert "looked at" not in said([exact.note])
