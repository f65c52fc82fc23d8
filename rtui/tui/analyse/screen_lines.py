"""The lines around the panel of the Analyse screen: title, status, tabs, hints, and what is shown without a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.report.document import ColumnState, Coverage, CoverageKind, Report, ServerReport
from rtui.analysis.report.tables.table import noun_of, written
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_run import ESTIMATE_KEYS
from rtui.server.analysis_source import AnalysisStatus
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Lost
from rtui.server.wire.identity import NoTouch
from rtui.tui.kit.format import ago, display, display_text
from rtui.tui.kit.layout import Piece, fitted, prose, tab_line
from rtui.tui.kit.status_lines import MIN_LABEL_CELLS, NAME, bar_line, cost_pieces, link_words, progress_bar
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, cut_middle, gap, joined, line_width, literal

REASON_CELLS: Final = 120
"""Longer reasons are cut in a bar."""

_STATES: Final = {
    ScanState.READY: (literal("not started"), Role.MUTED),
    ScanState.SAMPLING: (literal("estimate"), Role.MUTED),
    ScanState.RUNNING: (literal("asking"), Role.MUTED),
    ScanState.PAUSED: (literal("paused"), Role.WARN),
    ScanState.WAITING: (literal("waiting"), Role.WARN),
    ScanState.DONE: (literal("complete"), Role.GOOD),
    ScanState.STOPPED: (literal("stopped"), Role.WARN),
    ScanState.FAILED: (literal("failed"), Role.BAD),
}

_MISSING: Final = {
    ColumnState.DENIED: (literal("denied"), Role.WARN, 1),
    ColumnState.UNSUPPORTED: (literal("not available"), Role.MUTED, 8),
    ColumnState.NOT_ASKED: (literal("not asked"), Role.MUTED, 7),
}
"""Text, role and rank of a piece that names the columns missing for this reason."""


FILTER_HINT: Final[Line] = (
    Span(literal(" enter"), Role.ACCENT),
    Span(literal(" keeps the rows that have this text"), Role.MUTED),
    Span(literal("  esc"), Role.ACCENT),
    Span(literal(" shows all"), Role.MUTED),
)
"""Shown while a filter is typed."""

FILE_HINT: Final[Line] = (
    Span(literal(" enter"), Role.ACCENT),
    Span(literal(" writes the table as it is shown: .csv, .md or .json"), Role.MUTED),
    Span(literal("  esc"), Role.ACCENT),
    Span(literal(" cancels"), Role.MUTED),
)
"""Shown while the name of a file is typed."""

KEEP_OR_REPLACE: Final = (SafeText("Keep them"), SafeText("Replace them by an estimate from random keys"))
"""The choice before an estimate replaces exact figures."""

_INTRO_WITH_LENGTHS: Final = literal(
    "rtui reads the type, memory, time to live, last use and length of every key in one gentle pass, without changing "
    "when a key was last used. The tables fill while it runs, and you can pause it at any time."
)

_INTRO_WITHOUT_LENGTHS: Final = literal(
    "rtui reads the type, memory, time to live and last use of every key in one gentle pass, without changing when a "
    "key was last used. Only the largest keys have their lengths read, at the end: here that counts as a use. "
    "The tables fill while it runs, and you can pause it at any time."
)
"""The introduction where NO-TOUCH is off."""


def title_line(
    status: AnalysisStatus,
    report: Report | None,
    width: int,
    label: SafeText | None = None,
) -> Line:
    """Return the title bar in exactly `width` cells; `label` replaces the server's own.

    A report from a file says when it was made.
    """
    right = (*_coverage(status, report), gap(1))
    space = width - line_width(NAME) - line_width(right) - 1
    server = status.server if report is None else report.head.server
    name = cut_middle(display_text(server.label) if label is None else label, max(MIN_LABEL_CELLS, width // 4))
    pieces = [Piece(0, (Span(name, Role.STRONG),)), *_identity(server), *_read_only_or_date(status, report)]
    who = clip(fitted(pieces, space), space)
    return clip((*NAME, *who, gap(width - line_width(NAME) - line_width(who) - line_width(right)), *right), width)


def _identity(server: ServerReport) -> list[Piece]:
    """Return which server the figures are of."""
    pieces = []
    product = display_text(f"{server.product} {server.version}".strip())
    if product:
        pieces.append(Piece(5, (Span(product, Role.MUTED),)))
    if server.role:
        pieces.append(Piece(6, (Span(display_text(server.role), Role.MUTED),)))
    return [*pieces, Piece(3, (Span(SafeText(f"db{server.db}"), Role.MUTED),))]


def _read_only_or_date(status: AnalysisStatus, report: Report | None) -> list[Piece]:
    """Return that a server is only read, or when a report from a file was made; and which keys it is about."""
    scope = [] if report is None else _scope(report)
    if status.is_live:
        return [Piece(1, (Span(literal("READ-ONLY"), Role.GOOD),)), *scope]
    if report is None:
        return []
    made = SafeText(f"{fmt.moment(report.head.made_at_s)} UTC")
    return [Piece(1, (Span(literal("report of "), Role.MUTED), Span(made, Role.ACCENT))), *scope]


def _scope(report: Report) -> list[Piece]:
    """Return which keys a report is about, where those are not all."""
    scope = report.head.scope
    pieces = []
    if scope.match is not None:
        pattern = cut(display(scope.match, limit=64), 32)
        pieces.append(Piece(2, (Span(literal("matching "), Role.MUTED), Span(pattern, Role.ACCENT))))
    if scope.kind is not None:
        pieces.append(Piece(2, (Span(literal("type "), Role.MUTED), Span(display(scope.kind, limit=16), Role.ACCENT))))
    return pieces


def _coverage(status: AnalysisStatus, report: Report | None) -> Line:
    """Return how many keys the figures rest on, and whether they are exact, estimated or partial."""
    if report is None:
        return (Span(literal("nothing is known yet"), Role.FAINT),)
    coverage = report.head.coverage
    if coverage.kind is CoverageKind.EXACT:
        role = Role.GOOD if status.outdated is None else Role.MUTED
        return Span(literal("exact"), role), Span(SafeText(f" · {fmt.keys(coverage.counted_keys)}"), Role.MUTED)
    if coverage.kind is CoverageKind.ESTIMATE:
        return Span(literal("≈ estimate"), Role.ACCENT), Span(SafeText(f" from {fmt.keys(coverage.keys)}"), Role.MUTED)
    return Span(SafeText(f"≥ partial{_percent(coverage)}"), Role.WARN), Span(_seen_of(coverage), Role.MUTED)


def _percent(coverage: Coverage) -> str:
    """Return the scanned part of the keyspace, where it is known."""
    return "" if coverage.fraction is None else f" {int(coverage.fraction * 100)} %"


def _seen_of(coverage: Coverage) -> SafeText:
    """Return the number of keys seen, and of how many."""
    seen = fmt.short_count(coverage.keys)
    if coverage.total_keys is None:
        return SafeText(f" · {seen} {fmt.noun(coverage.keys, 'key')}")
    total = coverage.total_keys
    return SafeText(f" · {seen} of {written(total, fmt.short_count)} {noun_of(total, 'key')}")


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
    word, role = _STATES[status.progress.state] if status.outdated is None else (literal("outdated"), Role.WARN)
    word = literal("estimate") if status.is_estimate and status.progress.state is ScanState.RUNNING else word
    head = link_words(status.link, now_s) or (Span(word, role),)
    pieces = [*progress_bar(status.progress, width), *_numbers(status, report, shows_cost=shows_cost)]
    return bar_line(head, pieces, width)


def _numbers(status: AnalysisStatus, report: Report | None, *, shows_cost: bool) -> list[Piece]:
    """Return progress, speed and cost, then the columns that are missing, then notes."""
    progress = status.progress
    state = progress.state
    pieces: list[Piece] = []
    nouns = SafeText(f" {fmt.noun(progress.keys, 'key')}")
    if status.is_under_way:
        pieces.append(Piece(1, (Span(fmt.short_count(progress.keys)), Span(nouns, Role.MUTED))))
    elif state.is_over and not shows_cost:
        pieces.append(Piece(3, (Span(fmt.count(progress.keys)), Span(nouns, Role.MUTED))))
    if state is ScanState.RUNNING and not shows_cost:
        pieces.append(Piece(4, (Span(fmt.short_count(progress.keys_per_s)), Span(literal("/s"), Role.MUTED))))
    if state is ScanState.RUNNING and progress.eta_s is not None:
        left = fmt.duration(max(1, round(progress.eta_s)) * fmt.SECOND_MS)
        pieces.append(Piece(6, (Span(left), Span(literal(" left"), Role.MUTED))))
    if status.is_live and not state.is_over:
        pieces.append(Piece(1, (Span(literal("pace "), Role.MUTED), Span(SafeText(status.pace.value)))))
    if status.is_under_way or (state.is_over and not shows_cost and status.cost.server_us):
        pieces.append(Piece(2, (Span(literal("server "), Role.MUTED), Span(fmt.share(status.cost.server_share)))))
    if state.is_over and status.cost.elapsed_s and not shows_cost:
        took = fmt.duration(round(status.cost.elapsed_s * fmt.SECOND_MS))
        pieces.append(Piece(5, (Span(literal("took "), Role.MUTED), Span(took))))
    age = ago(status.age_s)
    if age:
        pieces.append(Piece(3, (Span(SafeText(f"asked {age}"), Role.MUTED),)))
    if shows_cost:
        pieces += cost_pieces(status.cost)
    return [*pieces, *_missing(report), *_notes(status, report)]


def _missing(report: Report | None) -> list[Piece]:
    """Return the columns that are missing, by the reason."""
    columns = {} if report is None else report.head.columns
    pieces = []
    for state, (word, role, rank) in _MISSING.items():
        names = [display_text(fmt.fact_name(name)) for name, column in columns.items() if column.state is state]
        if names:
            pieces.append(Piece(rank, (Span(SafeText(f"{word}: "), role), Span(joined(names, ", "), role))))
    return pieces


def _notes(status: AnalysisStatus, report: Report | None) -> list[Piece]:
    """Return why the analysis ended or waits, else the last note about it."""
    if status.progress.reason:
        return [Piece(1, (Span(cut(status.progress.reason, REASON_CELLS), Role.WARN),))]
    if report is not None and report.head.coverage.reason and not status.is_under_way:
        return [Piece(2, (Span(display_text(report.head.coverage.reason, limit=REASON_CELLS), Role.WARN),))]
    notes = [*status.notes, *(() if report is None else map(display_text, report.head.notes))]
    return [Piece(9, (Span(notes[-1], Role.MUTED),))] if notes else []


def offer_lines(status: AnalysisStatus, width: int) -> list[Line]:
    """Return what is shown in place of the panel before there is a report."""
    state = status.progress.state
    if state is ScanState.FAILED:
        why = status.progress.reason or literal("The server did not say why.")
        return [*_heading(literal("The analysis failed"), Role.BAD), (), *prose(why, width, Role.MUTED), (),
                *prose(literal("r tries again."), width, Role.MUTED)]  # fmt: skip
    if isinstance(status.link, Lost) or state is ScanState.WAITING:
        text = status.progress.reason or literal("The analysis goes on when the connection is back.")
        return [*_heading(literal("Waiting for the server"), Role.WARN), (), *prose(text, width, Role.MUTED)]
    if status.is_under_way:
        title = literal("Paused") if state is ScanState.PAUSED else literal("Asking the first keys…")
        return _heading(title, Role.MUTED)
    about = _INTRO_WITH_LENGTHS if status.server.no_touch == NoTouch.ON else _INTRO_WITHOUT_LENGTHS
    choices = (
        (literal("enter"), literal("ask every key, at the pace below")),
        (literal("e"), SafeText(f"estimate from {ESTIMATE_KEYS:,} random keys: seconds, however many there are")),
        (literal("+ -"), literal("choose another pace first")),
    )
    keys = [(gap(3), Span(SafeText(f"{key:<7}"), Role.ACCENT), Span(text)) for key, text in choices]
    return [*_heading(literal("What does this keyspace hold?"), Role.STRONG), (),
            *prose(about, min(width, 84), Role.MUTED),
            (), *keys]  # fmt: skip


def empty_lines(report: Report, width: int) -> list[Line]:
    """Return what is shown in place of the panel where no key was seen: there are none, or the analysis ended early."""
    scope, coverage = report.head.scope, report.head.coverage
    if coverage.kind is CoverageKind.PARTIAL:
        why = display_text(coverage.reason) if coverage.reason else literal("Nobody knows why.")
        return [*_heading(literal("No key was seen"), Role.WARN), (), *prose(why, width, Role.MUTED)]
    is_all = scope.match is None and scope.kind is None
    title = SafeText(f"db{report.head.server.db} is empty") if is_all else literal("No key is of what was asked for")
    text = literal("There were no keys to ask.") if is_all else literal("There may be keys of other names or types.")
    return [*_heading(title, Role.STRONG), (), *prose(text, width, Role.MUTED)]


def _heading(title: SafeText, role: Role) -> list[Line]:
    return [(), (gap(1), Span(title, role))]
