"""The panels of the Server screen: the figures and tables of each tab, the commands, the lines around the panels.

A figure as lines: its course, its meaning here, its normal range, and the advice when it is outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from textual.geometry import Size

from rtui.analysis import humanize
from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.findings.contents import FindingFate
from rtui.analysis.findings.server import ComparedLine, NodeComparison, panels
from rtui.analysis.formats.health import cell_of, change_of, when_text
from rtui.analysis.health.panel import Line as Figure
from rtui.analysis.health.panel import Panel, State, chart_bounds, plotted, top_of_chart, value_text
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit, cell_reason
from rtui.keyspace.text.display import SafeText
from rtui.server.wire.connection import State as LinkState
from rtui.tui.kit.chart_lines import beside_each_other, labelled, paragraph, standing
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.layout import MARGIN, TERMINAL, LinePart, ago, display_text, prose, tab, tab_line
from rtui.tui.kit.panel_screen import notice_lines
from rtui.tui.kit.status_lines import bar_line, link_words
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, left, line_width, literal, right, width_of
from rtui.tui.kit.table import MOVE_COMMANDS, SORT_COMMANDS, ReportTable
from rtui.tui.kit.table_rows import STATUS

BESIDE_FROM: Final = 100
"""From this width on the plot stands beside the text, else below it."""

LABEL_CELLS: Final = 10
"""Cells of the words before the lines: `expected`, `do`, `source`."""

LEAST_PLOT_LINES: Final = 4
"""A plot with fewer lines, its axis among them, is left out."""

LEAST_PLOT_CELLS: Final = 8
"""A plot of fewer cells is left out."""

ROLES: Final = {
    State.PLAIN: Role.TEXT,
    State.NORMAL: Role.GOOD,
    State.WARN: Role.WARN,
    State.BAD: Role.BAD,
    State.UNKNOWN: Role.MUTED,
}


WRONG: Final = frozenset({State.BAD, State.WARN})
"""The states of figures that are not as they should be."""


def sparkline(history: Sequence[float | None], cells: int) -> SafeText:
    """Return how a figure went from its lowest to its highest value, the newest at the right; unknown values are blank.

    Where it has hardly changed all values are low.
    """
    known = plotted(history)
    if not known:
        return literal("")
    return _bars(_resampled(history, cells), min(known), top_of_chart(min(known), max(known)), 1)[0]


def _resampled(history: Sequence[float | None], cells: int) -> list[float | None]:
    """Return at most `cells` values: means of as many neighbours as it takes."""
    count = len(history)
    if count <= cells:
        return list(history)
    bounds = [at * count // cells for at in range(cells + 1)]
    means: list[float | None] = []
    for start, end in pairwise(bounds):
        known = [value for value in history[start:end] if value is not None]
        means.append(sum(known) / len(known) if known else None)
    return means


def _bars(values: Sequence[float | None], low: float, high: float, height: int) -> list[SafeText]:
    """Return vertical bars from `low` at the foot to `high` at the top; blank for an unknown value."""
    span = high - low or 1.0
    least = span / 1000
    return standing([0.0 if value is None else max(least, value - low) for value in values], height, most=span)


def plot_lines(figure: Figure, size: Size, span_s: float | None, *, is_over: bool = False) -> list[Line]:
    """Return a plot of the session with its scale and its times; empty without room or known values.

    `span_s` is the age of the first sample, in seconds; `is_over` is whether the last one was taken long ago, too: then
    it is the time between both.
    """
    known = plotted(figure.history)
    if not known or size.height < LEAST_PLOT_LINES:
        return []
    low, high = chart_bounds(known)
    ends = [value_text(figure, value, TERMINAL) for value in (high, low)]
    gutter = max(map(width_of, ends)) + 1
    cells = size.width - gutter
    if cells < LEAST_PLOT_CELLS:
        return []
    values = _resampled(figure.history, cells)
    bars = _bars(values, low, high, size.height - 1)
    scale = [ends[0], *[literal("")] * (len(bars) - 2), ends[1]]
    role = ROLES[figure.state] if figure.state in WRONG else Role.BAR
    lines: list[Line] = [
        (Span(right(text, gutter - 1), Role.MUTED), gap(1), Span(line, role))
        for text, line in zip(scale, bars, strict=True)
    ]
    began = (
        literal("")
        if span_s is None
        else SafeText(f"{humanize.short_duration(round(span_s) * 1000)} {'before' if is_over else 'ago'}")
    )
    now = right(literal("end" if is_over else "now"), max(0, len(values) - width_of(began)))
    return [*lines, (gap(gutter), Span(began, Role.MUTED), Span(now, Role.MUTED))]


def figure_lines(figure: Figure, size: Size, span_s: float | None = None, *, is_over: bool = False) -> list[Line]:
    """Return all about a figure: its text, and the plot of the session beside or below it, as far as it fits."""
    if size.width >= BESIDE_FROM:
        cells = size.width * 11 // 20
        text = _text_lines(figure, cells - 2)[: size.height]
        plot = plot_lines(figure, Size(size.width - cells, size.height), span_s, is_over=is_over)
        return beside_each_other(text, plot, cells) if plot else text
    text = _text_lines(figure, size.width)[: size.height]
    return [*text, *plot_lines(figure, Size(size.width, size.height - len(text)), span_s, is_over=is_over)]


def _text_lines(figure: Figure, width: int) -> list[Line]:
    """Return the value's meaning here, the normal range, the remedy, and their source."""
    word = SafeText("") if figure.state is State.PLAIN else SafeText(f"  {figure.state}")
    head: Line = (
        Span(display_text(figure.title), Role.STRONG), gap(2), Span(value_text(figure, display=TERMINAL)),
        Span(word, ROLES[figure.state]), gap(2), Span(display_text(figure.field), Role.FAINT),
    )  # fmt: skip
    lines = [head]
    if isinstance(figure.value, Unknown):
        role = Role.WARN if figure.value.reason is Reason.DENIED else Role.MUTED
        lines += paragraph(SafeText(f"{display_text(cell_reason(figure.value))}."), width, role)
    if figure.said:
        lines += paragraph(figure.said, width, Role.TEXT)
    is_wrong = figure.state in WRONG
    for label, text, role in (
        ("do", figure.remedy if is_wrong else "", Role.TEXT),
        ("note", figure.about, Role.MUTED),
        ("expected", figure.normal, Role.MUTED),
        ("rule", figure.rule, Role.MUTED),
        ("source", figure.source, Role.MUTED),
    ):
        if text:
            lines += labelled(label, paragraph(display_text(text), width - LABEL_CELLS, role), LABEL_CELLS)
    return lines


SPARKLINE_CELLS: Final = 16
MOST_OF_A_PANEL: Final = 3
"""The first figures of each panel in the overview, beside the wrong ones."""

NODES: Final = "nodes"
OVERVIEW: Final = "overview"
FIGURES: Final = "figures"


class ServerPanel(NamedTuple):
    """A tab of the screen."""

    id: str
    title: SafeText
    short: SafeText
    """Its title where room is short."""
    key: str
    help: str
    """One sentence for the help screen."""
    words: str
    """Redis' words for it, by which it is found."""
    parts: tuple[str, ...] = ()
    """The ids of the panels of a server's health that it shows."""
    sources: tuple[Source, ...] = ()
    """The sources of these panels."""


PANELS: Final = (
    ServerPanel(
        NODES, literal("Nodes"), literal("Nodes"), "0", "Show the nodes of a cluster, those that differ marked.",
        "cluster nodes info shards",
    ),
    ServerPanel(
        OVERVIEW, literal("Overview"), literal("Overview"), "1",
        "Show problems first, then the most important metrics of each panel.",
        "info health stats",
    ),
    ServerPanel(
        "memory", literal("Memory"), literal("Memory"), "2",
        "Show memory, maxmemory and eviction policy, fragmentation, and keys by database.",
        "info memory doctor used_memory maxmemory fragmentation eviction", ("memory",),
        (Source.INFO_MEMORY, Source.INFO_KEYSPACE, Source.KEY_SIZES),
    ),
    ServerPanel(
        "load", literal("Load"), literal("Load"), "3",
        "Show commands per second, hit ratio, network, CPU, and the commands that take the most time.",
        "info stats commandstats errorstats ops monitor cpu hit ratio", ("load",),
        (Source.INFO_STATS, Source.INFO_CPU, Source.COMMAND_STATS, Source.LATENCY_STATS, Source.ERROR_STATS),
    ),
    ServerPanel(
        "slow", literal("Slow"), literal("Slow"), "4",
        "Show the slow log by command and namespace, large requests and replies, and latency events.",
        "slowlog get latency doctor history latest", ("slow",),
        (Source.SLOW_LOG, Source.LARGE_REQUESTS, Source.LARGE_REPLIES, Source.LATENCY_EVENTS),
    ),
    ServerPanel(
        "persistence", literal("Persistence & replication"), literal("Persistence"), "5",
        "Show RDB and AOF, forks and their cost, replicas and their lag.",
        "bgsave save lastsave rdb aof info replication replica lag role", ("persistence", "replication"),
        (Source.INFO_PERSISTENCE, Source.INFO_REPLICATION, Source.CLUSTER_INFO, Source.CLUSTER_NODES),
    ),
    ServerPanel(
        "clients", literal("Clients"), literal("Clients"), "6",
        "Show the clients, their buffers, and who sends KEYS.", "client list info connections maxclients",
        ("clients",), (Source.INFO_CLIENTS, Source.CLIENTS),
    ),
    ServerPanel(
        "configuration", literal("Configuration"), literal("Config"), "7",
        "Show the CONFIG settings behind these metrics, with their defaults.", "config get settings parameters",
        ("configuration",), (Source.SETTINGS,),
    ),
)  # fmt: skip
"""All panels; their keys, commands and help follow from this list."""

BY_ID: Final = {panel.id: panel for panel in PANELS}

HOMES: Final = {part: panel for panel in PANELS for part in panel.parts}
"""The tab that a panel of a server's health is shown on."""


METRICS: Final = tuple(
    (HOMES[panel.id], line)
    for panel in panels(HealthView((Sample(0, ""),)))
    if panel.id in HOMES
    for line in panel.lines
)
"""The metrics that every server has, with the tabs that they are on."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a tab."""

    figures: tuple[tuple[ServerPanel, Figure], ...] = ()
    """Each with the tab that it is at home on."""
    tables: tuple[Table, ...] = ()
    notes: tuple[SafeText, ...] = ()
    compared: Mapping[tuple[str, str], ComparedLine] | None = None
    """The figures then and now, by panel of the health and figure; None if there are no earlier samples."""


def content_of(
    panel: ServerPanel, known: Sequence[Panel], denied: Collection[Source] = (), compared: NodeComparison | None = None
) -> Content:
    """Return the content of a tab out of the panels of a server's health; `denied` are sources refused to the user."""
    then = None
    if compared is not None:
        then = {(one.id, each.line.id): each for one, lines in compared.figures for each in lines}
    if panel.id == OVERVIEW:
        since = () if compared is None else _since(compared)
        return Content(_overview(known), notes=(*since, *_rights(list(denied))), compared=then)
    shown = [one for one in known if one.id in panel.parts]
    notes = dict.fromkeys(note for one in shown for note in one.notes)
    return Content(
        tuple((panel, figure) for one in shown for figure in one.lines),
        tuple(table for one in shown for table in one.tables),
        (*_rights([source for source in panel.sources if source in denied]), *notes),
        then,
    )


def _since(compared: NodeComparison) -> tuple[SafeText, ...]:
    """Return the time of the earlier samples, and the fates of findings."""
    fates = Counter(one.fate for one in compared.findings.changes.values())
    told = ", ".join(f"{fate.value} {count}" for fate, count in fates.items())
    new = ", ".join(one.finding.rule for one in compared.findings.of_fate(FindingFate.NEW))
    gone = ", ".join(one.finding.rule for one in compared.findings.of_fate(FindingFate.GONE))
    named = "".join(f"; {word} {rules}" for word, rules in (("new:", new), ("gone:", gone)) if rules)
    return (SafeText(f"then is {when_text(compared.then)}; findings: {told or 'none'}{named}"),)


_GROUPS: Final = {Source.SETTINGS: "settings", Source.CLUSTER_INFO: "cluster", Source.CLUSTER_NODES: "cluster"}
"""The groups of `rtui acl --with` by source; `health` for the others."""

_ORDER: Final = ("health", "settings", "cluster")


def _rights(denied: Sequence[Source]) -> tuple[SafeText, ...]:
    """Return how to get the rights that are lacking, and which these are; first, so that no line breaks the command."""
    if not denied:
        return ()
    groups = {_GROUPS.get(source, "health") for source in denied}
    rights = [f"--with {group}" for group in sorted(groups, key=_ORDER.index)]
    names = ", ".join(sorted(denied))
    return (SafeText(f"rtui acl {' '.join(rights)} prints an ACL user for what is not permitted: {names}"),)


def _overview(known: Sequence[Panel]) -> tuple[tuple[ServerPanel, Figure], ...]:
    """Return the bad figures, then the figures to watch, then the first figures of each panel."""
    figures = [(HOMES[one.id], figure) for one in known if one.id in HOMES for figure in one.lines]
    wrong = [entry for state in (State.BAD, State.WARN) for entry in figures if entry[1].state is state]
    first = [
        (HOMES[one.id], figure)
        for one in known
        if one.id in HOMES
        for figure in one.lines[:MOST_OF_A_PANEL]
        if figure.state not in WRONG
    ]
    return (*wrong, *first)


_COLUMNS: Final = (
    Column("metric", "metric", Unit.TEXT),
    Column("field", "field", Unit.TEXT, 26, "Redis' name: a field of INFO, a setting or a command", yields=True),
    Column("value", "value", Unit.COUNT, 10),
    Column(STATUS, "status", Unit.TEXT, 7, "whether the value is as expected"),
    Column("session", "session", Unit.TEXT, SPARKLINE_CELLS, "the trend since this screen was first opened"),
    Column("expected", "expected", Unit.TEXT, 20),
)
_COMPARED_COLUMNS: Final = (
    *_COLUMNS[:2],
    _COLUMNS[3],
    Column("then", "then", Unit.COUNT, 10),
    Column("value", "now", Unit.COUNT, 10),
    Column("change", "change", Unit.COUNT, 8, "from then to now"),
    *_COLUMNS[4:],
)
_PANEL_COLUMN: Final = Column("panel", "panel", Unit.TEXT, 12, "the panel with the details", yields=True)


def figures_table(content: Content, *, is_overview: bool = False) -> Table:
    """Return the figures of a tab as a table; its subjects are `panel/figure`.

    The overview's figures name their tabs, and its title has the number of bad ones.
    """
    rows: list[Row] = []
    for panel, figure in content.figures:
        value = figure.value if isinstance(figure.value, Unknown) else value_text(figure, display=TERMINAL)
        state = "" if figure.state is State.PLAIN else figure.state.value
        cells: tuple[Cell, ...] = (value, state)
        if content.compared is not None:
            cells = (state, *_compared_cells(figure, panel, value, content.compared))
        cells = (figure.title, figure.field, *cells, sparkline(figure.history, SPARKLINE_CELLS), figure.normal)
        rows.append((*cells, panel.title) if is_overview else cells)
    columns = _COLUMNS if content.compared is None else _COMPARED_COLUMNS
    columns = (*columns, _PANEL_COLUMN) if is_overview else columns
    subjects = tuple(f"{panel.id}/{figure.id}" for panel, figure in content.figures)
    title = _summary(content) if is_overview else "metrics"
    return Table(FIGURES, title, columns, rows, subjects, tells_by_subject=True)


def _compared_cells(
    figure: Figure, panel: ServerPanel, value: Cell, compared: Mapping[tuple[str, str], ComparedLine]
) -> tuple[Cell, Cell, Cell]:
    found = next((one for part in panel.parts if (one := compared.get((part, figure.id))) is not None), None)
    if found is None:
        return None, value, None
    return cell_of(found.then), value, change_of(found)


def _summary(content: Content) -> str:
    """Return the number of bad metrics and of warnings: `1 bad, 2 warnings`.

    If nothing could be judged, it does not claim that nothing is wrong.
    """
    states = Counter(figure.state for _, figure in content.figures)
    bad, warned, unknown = (states[one] for one in (State.BAD, State.WARN, State.UNKNOWN))
    parts = [f"{bad} bad"] if bad else []
    parts += [humanize.counted(warned, "warning")] if warned else []
    parts += [f"{humanize.counted(unknown, 'check')} unknown"] if unknown else []
    if states[State.NORMAL] and not bad + warned:
        parts.insert(0, "no problems")
    return ", ".join(parts)


_server = partial(ScreenCommand, group=Group.SERVER, owner=Owner.SERVER)

SERVER_COMMANDS: Final = (
    *(
        _server(
            panel.id, (panel.key,), panel.short, panel.help, call=f"show_panel('{panel.id}')",
            when=(Condition.CLUSTER,) if panel.id == NODES else (), words=panel.words,
        )
        for panel in PANELS
    ),
    _server("next_panel", ("tab",), "Next panel", "Show the next panel."),
    _server(
        "previous_panel", ("shift+tab",), "Previous panel", "Show the previous panel.", label="⇧tab",
        call="next_panel(-1)",
    ),
    *(command for command in MOVE_COMMANDS if command.id != "open"),
    _server(
        "open", ("enter", "right", "l"), "Open",
        "Go to the row's key, keys, panel or node, else show the whole row.",
        when=(Condition.HAS_ROWS,), footer=1,
    ),
    _server(
        "whole_row", (), "Whole row", "Show all details of the row.", when=(Condition.HAS_ROWS,),
    ),
    _server(
        "next_list", ("right_square_bracket",), "Next list", "Show the next list of the panel.",
        when=(Condition.SEVERAL_LISTS,), footer=6,
    ),
    _server(
        "previous_list", ("left_square_bracket",), "Previous list", "Show the previous list.",
        when=(Condition.SEVERAL_LISTS,), call="next_list(-1)",
    ),
    *SORT_COMMANDS,
    _server("filter", ("slash",), "Filter", "Show the rows that contain a text.", when=(Condition.HAS_ROWS,), footer=8),
    _server(
        "copy_row", ("y",), "Copy", "Copy the name of the row, or the whole row where it has none.",
        when=(Condition.HAS_ROWS,), footer=4,
    ),
    _server("copy_menu", ("Y",), "Copy as…", "Choose what to copy of the row.", when=(Condition.HAS_ROWS,)),
    _server(
        "write", ("w",), "Export", "Export the list to a .csv, .md or .json file, or all samples to a .jsonl file.",
        when=(Condition.HAS_ROWS,), footer=9, call="export", words="export save csv json download",
    ),
    _server(
        "ask", ("r",), "Refresh", "Refresh now; the server is polled every few seconds anyway.",
        when=(Condition.LIVE,), footer=10, words="refresh reload",
    ),
    _server("back", ("escape",), "Back", "Go back one step: end the filter, show all nodes, or leave.", footer=11),
)  # fmt: skip


TITLE_CELLS: Final = 14
"""Of the names of facts in the card of a row."""

CARD_LINES: Final = 40
"""Lines of a figure in a card, which can be scrolled."""


def panels_line(panels: Sequence[ServerPanel], chosen: int, width: int) -> Line:
    """Return the titles of the panels with their keys, shorter where it is narrow."""
    line = tab_line([SafeText(f"{one.key} {one.title}") for one in panels], chosen, (), width)
    if line_width(line) <= width:
        return line
    for titles in ([f"{one.key} {one.short}" for one in panels], [one.short for one in panels]):
        line = tuple(tab(SafeText(title), is_chosen=at == chosen) for at, title in enumerate(titles))
        if line_width(line) <= width:
            break
    return clip(line, width)


def node_line(node: SafeText | None, nodes: Sequence[SafeText], width: int) -> Line:
    """Return which node of a cluster is shown, and how to get back to all."""
    if node is None:
        return ()
    of = SafeText(f" · node {nodes.index(node) + 1} of {len(nodes)}" if node in nodes else "")
    hint = Span(literal(" · 0 or esc shows all nodes"), Role.FAINT)
    return clip((gap(MARGIN), Span(node, Role.STRONG), Span(of, Role.MUTED), hint), width)


def warning_line(warning: SafeText, width: int) -> Line:
    return clip((gap(MARGIN), Span(warning, Role.WARN)), width)


def status_line(link: LinkState, failure: SafeText | None, age_s: float | None, now_s: float, width: int) -> Line:
    """Return how the asking goes; `now_s` is on the clock of the event loop, `age_s` that of the last sample."""
    head: Line = link_words(link, now_s)
    pieces = []
    if not head:
        head = (Span(literal("watching") if failure is None else literal("no answer"), Role.MUTED),)
    if failure is not None:
        pieces.append(LinePart(1, (Span(failure, Role.WARN),), 24))
    if age_s is not None:
        pieces.append(LinePart(0, (Span(SafeText(f"updated {ago(age_s) or 'just now'}"), Role.MUTED),)))
    return bar_line(head, pieces, width)


def file_line(file: SafeText, width: int) -> Line:
    pieces = [
        LinePart(0, (Span(file, Role.TEXT),), 30),
        LinePart(1, (Span(literal("not connected to a server"), Role.MUTED),)),
    ]
    return bar_line((Span(literal("a file"), Role.WARN),), pieces, width)


def waiting_lines(failure: SafeText | None, width: int) -> list[Line]:
    if failure is None:
        return notice_lines(literal("Waiting for the server…"), Role.MUTED, width)
    return notice_lines(literal("The server has not answered"), Role.WARN, width, failure)


def row_card(shown: ReportTable) -> TextCard:
    """Return the card of the row under the cursor: a paragraph for each cell, its title beside it."""
    table, texts = shown.rows.table, shown.body.texts

    def lines(width: int) -> list[Line]:
        lines: list[Line] = [()]
        for column, text in zip(table.columns, texts, strict=True):
            first, *rest = prose(text, width - TITLE_CELLS - 1, Role.TEXT)
            lines.append((gap(1), Span(left(SafeText(column.title), TITLE_CELLS), Role.MUTED), *first[1:]))
            lines += [(gap(TITLE_CELLS + 1), *line[1:]) for line in rest]
        return [*lines, ()]

    return TextCard(table.title, "row", lines)


def whole_figure_lines(figure: Figure, width: int) -> list[Line]:
    return [(), *((gap(1), *line) for line in figure_lines(figure, Size(width - 2, CARD_LINES)))]
