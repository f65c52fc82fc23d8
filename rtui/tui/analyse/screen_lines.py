"""The lines around the panels of the Analyse screen: title, status, tabs, hints, the lines without a report.

And around a table: the titles, the note, why it is empty, the description of a row, and copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.columns import ALL_COLUMNS, SAMPLE_EVERY, SMALL_KEYSPACE, Asked, Columns
from rtui.analysis.report.document import ColumnState, CoverageKind, NodeKind, Report
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.table import Subject, label
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.run import ESTIMATE_KEYS
from rtui.server.analysis.session import AnalysisStatus
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Lost
from rtui.server.wire.identity import NoTouch
from rtui.tui.analyse.panel import NOTHING_TO_LIST, PanelTable
from rtui.tui.kit.layout import LEAST_REASON, LinePart, ago, display_text, fitted, prose, tab_line
from rtui.tui.kit.panel_screen import nothing_left_lines, notice_lines
from rtui.tui.kit.status_lines import (
    FIGURES_FROM,
    MIN_LABEL_CELLS,
    NAME,
    STATES,
    bar_line,
    cost_pieces,
    link_words,
    progress_bar,
    scope_pieces,
    server_figures,
    speed_pieces,
)  # fmt: skip
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    clip,
    cut,
    cut_middle,
    gap,
    joined,
    line_width,
    literal,
)  # fmt: skip
from rtui.tui.kit.table_rows import TableRows

REASON_CELLS: Final = 120
"""Longer reasons are cut in a bar."""


_WORDS: Final = {
    ScanState.READY: literal("not started"),
    ScanState.SAMPLING: literal("estimate"),
    ScanState.RUNNING: literal("reading"),
    ScanState.FAILED: literal("failed"),
}
"""Words for an analysis where a scan has others."""

_USES: Final = frozenset({"idle", "frequency"})
"""Columns of which a server has one at most, by its policy; the panels about use say why the other is missing."""

_MISSING: Final = {
    ColumnState.DENIED: (literal("denied"), Role.WARN, 1),
    ColumnState.UNSUPPORTED: (literal("not available"), Role.MUTED, 8),
    ColumnState.NOT_ASKED: (literal("not read"), Role.MUTED, 7),
}
"""Text, role and rank of a piece that names the columns missing for this reason."""


KEEP_OR_REPLACE: Final = (SafeText("Keep exact figures"), SafeText("Replace with an estimate from random keys"))
"""The choice before an estimate replaces exact figures."""

LEAVE_OR_PAY: Final = (SafeText("Cancel"), SafeText("Analyse all keys"))
"""Where the server bills commands."""

_WITHOUT_CHANGES: Final = literal("in one gentle pass, without touching idle times or LFU counters.")

_WHILE_IT_RUNS: Final = literal("The tables fill while it runs, and you can pause it at any time.")

_LARGEST_ONLY: Final = literal(
    "Lengths are read of the largest keys only, at the end: without NO-TOUCH that counts as an access."
)
"""Said where NO-TOUCH is off."""


def column_choices(given: Columns | None) -> list[tuple[Columns | None, SafeText]]:
    """Return the choices of columns in words, the command line's first."""
    choices: dict[Columns | None, SafeText] = {}
    if given not in (None, ALL_COLUMNS):
        choices[given] = SafeText(f"As --columns says: {given}")
    choices[None] = SafeText(
        f"Idle times and lengths of one key in {SAMPLE_EVERY}, all else of every key; up to {SMALL_KEYSPACE:,} keys all"
    )
    choices[ALL_COLUMNS] = SafeText("Everything of every key")
    return [*choices.items()]


def _intro(columns: Columns | None, *, has_lengths: bool) -> SafeText:
    if columns is None:
        some = "idle time and length" if has_lengths else "idle time"
        what = (
            f"the type, memory and TTL of every key, and {some} of one key in {SAMPLE_EVERY} "
            f"(of every key if there are up to {SMALL_KEYSPACE:,})"
        )
    elif columns == ALL_COLUMNS:
        facts = "TTL, idle time and length" if has_lengths else "TTL and idle time"
        what = f"the type, memory, {facts} of every key"
    else:
        what = f"the fields given by --columns ({columns})"
    asks_lengths = columns is None or columns.length is not Asked.NONE
    sentences = [f"rtui reads {what} {_WITHOUT_CHANGES}"]
    if asks_lengths and not has_lengths:
        sentences.append(_LARGEST_ONLY)
    elif columns is None:
        sentences.append("The longest keys are found nevertheless.")
    return SafeText(" ".join((*sentences, _WHILE_IT_RUNS)))


def title_line(
    status: AnalysisStatus,
    report: Report | None,
    width: int,
    *,
    clock_s: float | None = None,
    browsed: BrowsingStatus | None = None,
) -> Line:
    """Return the title bar in exactly `width` cells: the server, the analysed keys, how exact the figures are.

    A server is only read; a report from a file has its date, and its age by the
    clock, in seconds since the epoch. Memory and load are those of the browsed server.
    """
    server = status.server if report is None else report.head.server
    dump = None if browsed is None else browsed.dump
    own = display_text(server.label if dump is None else dump.path.name)
    name = cut_middle(own, max(MIN_LABEL_CELLS, width // 4))
    pieces = [LinePart(0, (Span(name, Role.STRONG),))]
    product = display_text(f"{server.product} {server.version}".strip())
    if dump is not None:
        pieces.append(LinePart(0, (Span(dump.about, Role.MUTED),)))
    elif product:
        pieces.append(LinePart(5, (Span(product, Role.MUTED),)))
    if server.role:
        pieces.append(LinePart(6, (Span(display_text(server.role), Role.MUTED),)))
    pieces.append(LinePart(3, (Span(SafeText(f"db{server.db}"), Role.MUTED),)))
    if status.is_live:
        pieces.append(LinePart(1, (Span(literal("READ-ONLY"), Role.GOOD),)))
    elif report is not None:
        made = SafeText(f"{fmt.moment(report.head.made_at_s)} UTC")
        pieces.append(LinePart(1, (Span(literal("report of "), Role.MUTED), Span(made, Role.ACCENT))))
        age = ago(None if clock_s is None else clock_s - report.head.made_at_s)
        if age:
            pieces.append(LinePart(2, (Span(age, Role.STRONG),)))
    if report is not None:
        pieces += scope_pieces(report.head.scope.match, report.head.scope.key_type)
    right = (*_coverage(status, report), gap(1))
    space = width - line_width(NAME) - line_width(right) - 1
    who = clip(fitted(pieces, space), space)
    figures = server_figures(browsed, space - line_width(who), has_keys=False)
    right = (*figures, *((gap(FIGURES_FROM),) if figures else ()), *right)
    return clip((*NAME, *who, gap(width - line_width(NAME) - line_width(who) - line_width(right)), *right), width)


def _coverage(status: AnalysisStatus, report: Report | None) -> Line:
    """Return how many keys the figures rest on, and whether they are exact, estimated or partial."""
    if report is None:
        return (Span(literal("not analysed yet"), Role.FAINT),)
    coverage = report.head.coverage
    if coverage.kind is CoverageKind.EXACT:
        role = Role.GOOD if status.outdated is None else Role.MUTED
        return Span(literal("exact"), role), Span(SafeText(f" · {fmt.keys(coverage.counted_keys)}"), Role.MUTED)
    if coverage.kind is CoverageKind.ESTIMATE:
        sample = SafeText(f" from {fmt.keys(coverage.keys)}")
        return Span(literal("≈ estimate"), Role.ACCENT), Span(sample, Role.MUTED)
    percent = "" if coverage.fraction is None else f" {int(coverage.fraction * 100)}%"
    total = coverage.total_keys
    if total is None or plain(total) < coverage.counted_keys:  # the keyspace has shrunk since it was counted
        total, of_total = coverage.counted_keys, ""
    else:
        of_total = f" of {fmt.written(total, fmt.short_count)}"
    seen = SafeText(f" · {fmt.short_count(coverage.counted_keys)}{of_total} {fmt.noun(total, 'key')}")
    return Span(SafeText(f"≥ partial{percent}"), Role.WARN), Span(seen, Role.MUTED)


def panels_line(titles: Sequence[SafeText], chosen: int, width: int) -> Line:
    """Return the titles of the panels with their keys, shorter where it is narrow."""
    numbered = [SafeText(f"{at} {title}") for at, title in enumerate(titles, 1)]
    if sum(len(title) + 3 for title in numbered) + 1 > width:
        numbered = [SafeText(title.removesuffix(" keys")) for title in numbered]
    return tab_line(numbered, chosen, (), width)


def status_line(
    status: AnalysisStatus, report: Report | None, now_s: float, width: int, *, shows_cost: bool = False
) -> Line:
    """Return the status bar in exactly `width` cells; `now_s` is on the clock of the event loop."""
    state = status.progress.state
    word, role = STATES[state]
    word = _WORDS.get(state, word)
    if status.outdated is not None:
        word, role = literal("outdated"), Role.WARN
    elif status.is_estimate and state is ScanState.RUNNING:
        word = literal("estimate")
    head = link_words(status.link, now_s) or (Span(word, role),)
    numbers = _numbers(status, report, shows_cost=shows_cost)
    return bar_line(head, [*progress_bar(status.progress, width), *numbers, *_notes(status, report)], width)


def _numbers(status: AnalysisStatus, report: Report | None, *, shows_cost: bool) -> list[LinePart]:
    """Return progress, speed and cost, then the columns that are missing, by the reason."""
    progress = status.progress
    state = progress.state
    pieces: list[LinePart] = []
    nouns = SafeText(f" {fmt.noun(progress.keys, 'key')}")
    if status.is_under_way:
        pieces.append(LinePart(1, (Span(fmt.short_count(progress.keys)), Span(nouns, Role.MUTED))))
    elif state.is_over and not shows_cost:
        pieces.append(LinePart(3, (Span(fmt.count(progress.keys)), Span(nouns, Role.MUTED))))
    pieces += speed_pieces(progress, shows_cost=shows_cost)
    if status.is_live and not state.is_over:
        pieces.append(LinePart(1, (Span(literal("pace "), Role.MUTED), Span(SafeText(status.pace.value)))))
    if status.is_under_way or (state.is_over and not shows_cost and status.cost.server_us):
        pieces.append(LinePart(2, (Span(literal("server "), Role.MUTED), Span(fmt.share(status.cost.server_share)))))
    if state.is_over and status.cost.elapsed_s and not shows_cost:
        took = fmt.duration(round(status.cost.elapsed_s * fmt.SECOND_MS))
        pieces.append(LinePart(5, (Span(literal("took "), Role.MUTED), Span(took))))
    age = ago(status.age_s)
    if age:
        pieces.append(LinePart(3, (Span(SafeText(f"updated {age}"), Role.MUTED),)))
    if shows_cost:
        pieces += cost_pieces(status.cost)
    columns = {} if report is None else report.head.columns
    for column_state, (word, role, rank) in _MISSING.items():
        names = [
            display_text(fmt.fact_name(name))
            for name, one in columns.items()
            if one.state is column_state and (column_state is not ColumnState.UNSUPPORTED or name not in _USES)
        ]
        if names:
            pieces.append(LinePart(rank, (Span(SafeText(f"{word}: "), role), Span(joined(names, ", "), role))))
    return pieces


def _notes(status: AnalysisStatus, report: Report | None) -> list[LinePart]:
    """Return why the analysis ended or waits, else the last note about it."""
    if status.progress.reason:
        return [LinePart(1, (Span(cut(status.progress.reason, REASON_CELLS), Role.WARN),), LEAST_REASON)]
    if report is not None and report.head.coverage.reason and not status.is_under_way:
        why = display_text(report.head.coverage.reason, limit=REASON_CELLS)
        return [LinePart(2, (Span(why, Role.WARN),), LEAST_REASON)]
    notes = [*(() if report is None else map(display_text, report.head.notes)), *status.notes]
    return [LinePart(9, (Span(notes[-1], Role.MUTED),))] if notes else []


def offer_lines(status: AnalysisStatus, width: int) -> list[Line]:
    """Return the lines in place of the panel before there is a report."""
    state, reason = status.progress.state, status.progress.reason
    if state is ScanState.FAILED:
        why = reason or literal("The server gave no reason.")
        return notice_lines(literal("The analysis failed"), Role.BAD, width, why, literal("Press r to try again."))
    if isinstance(status.link, Lost) or state is ScanState.WAITING:
        why = reason or literal("The analysis resumes when the connection is back.")
        return notice_lines(literal("Waiting for the server"), Role.WARN, width, why)
    if status.is_under_way:
        title = literal("Paused") if state is ScanState.PAUSED else literal("Reading the first keys…")
        return notice_lines(title, Role.MUTED, width)
    about = _intro(status.columns, has_lengths=status.server.no_touch == NoTouch.ON)
    choices = (
        (literal("enter"), literal("analyse all keys, at the pace below")),
        (literal("e"), SafeText(f"estimate from {ESTIMATE_KEYS:,} random keys: takes seconds at any size")),
        (literal("+ -"), literal("change the pace first")),
        (literal("c"), literal("choose fields")),
    )
    keys = [(gap(3), Span(SafeText(f"{key:<7}"), Role.ACCENT), Span(text)) for key, text in choices]
    return [*notice_lines(literal("What does this keyspace hold?"), Role.STRONG, min(width, 84), about), (), *keys]


def empty_lines(report: Report, width: int) -> list[Line]:
    """Return the lines in place of a panel without keys: the keyspace is empty, or the analysis ended early."""
    scope, coverage = report.head.scope, report.head.coverage
    if coverage.kind is CoverageKind.PARTIAL:
        why = display_text(coverage.reason) if coverage.reason else literal("The reason is unknown.")
        return notice_lines(literal("No keys were seen"), Role.WARN, width, why)
    if scope.match is None and scope.key_type is None:
        title, text = SafeText(f"db{report.head.server.db} is empty"), literal("There are no keys to analyse.")
    else:
        title = literal("No matching keys")
        text = literal("There may be keys with other names or of other types.")
    return notice_lines(title, Role.STRONG, width, text)


def among(table: PanelTable, rows: TableRows) -> SafeText:
    """Return the scope of the filter, such as ` among the 100 largest`; empty for a complete list."""
    return SafeText(f" among the {len(rows.table.rows)} {table.top}" if table.top else "")


def empty_table_lines(report: Report, table: PanelTable, rows: TableRows, width: int) -> list[Line]:
    """Return why a table has no rows: the filter, missing columns, or the table's own reason."""
    if rows.state.filter_text:
        return nothing_left_lines(rows, among(table, rows), width)
    reasons: list[Line] = []
    for name in table.needs:
        column = report.head.columns.get(name)
        if column is not None and column.state in _MISSING:
            reason = f": {column.reason}" if column.reason else ""
            text = display_text(f"{fmt.fact_name(name)} {column.state.value}{reason}", limit=300)
            reasons += [(), *prose(text, width, Role.WARN if column.state is ColumnState.DENIED else Role.MUTED)]
    return [*notice_lines(NOTHING_TO_LIST if reasons else table.empty, Role.STRONG, width), *reasons]


def key_of(subject: Subject) -> bytes | None:
    """Return the key that a row is about, None if it is about several keys or something else.

    `shop:config` in a table of namespaces is a key: no segment of it is a pattern, and no separator ends it.
    """
    if isinstance(subject, bytes):
        return subject
    if not isinstance(subject, tuple) or not subject or subject[-1].separator:
        return None
    return label(subject) if all(step.kind is NodeKind.LITERAL for step in subject) else None


GOES_ON: Final = literal("The analysis continues; press a to see it.")
STAYS_PAUSED: Final = literal("The analysis stays paused; press a to see it, p there to resume.")
"""The notice to a user who leaves an analysis under way."""
