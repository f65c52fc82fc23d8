"""The lines of the title bar and the status bar, and the warnings above the screens' content.

The title names the server, promises that nothing is written, and has the server's own figures; the status is that of
the scan. A warning says that the rows are outdated, why, and which command refreshes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import counted
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.wire.connection import Closed, Lost, Online, State
from rtui.server.wire.identity import NoTouch, Outdated
from rtui.tui.kit.layout import BETWEEN, LEAST_REASON, LinePart, ago, bar, display, display_text, fitted
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, cut_middle, gap, joined, line_width, literal

MIN_LABEL_CELLS: Final = 20
"""A server label is cut in the middle beyond a quarter of the line, but not below this."""

IDENTITY_CELLS: Final = 60
"""Cells of the line that the identity keeps when figures want more."""

FIGURES_FROM: Final = 2
"""Blank cells between a title and the figures of the server."""

LEAST_LABEL_CELLS: Final = 8
"""A server label is not cut below this where it stands over another screen's rows."""

NAME: Final[Line] = (Span(literal(" rtui"), Role.BADGE), Span(literal("  ")))
"""The left end of the bar."""


def title_line(status: BrowsingStatus, width: int) -> Line:
    """Return the title bar in exactly `width` cells: the server, rtui's promise, and the server's figures."""
    server = status.server
    own = status.label if status.dump is None else display_text(status.dump.path.name)
    name = cut_middle(own, max(MIN_LABEL_CELLS, width // 4))
    mark: Line = ()
    if status.mark is not None:
        mark = Span(SafeText(f"[{cut(status.mark.word, 12)}]"), _MARKS[status.mark.colour]), gap(1)
    pieces = [LinePart(0, (*mark, Span(name, Role.STRONG))), *_product_pieces(status)]
    if status.nodes:
        pieces.append(LinePart(1, (_cluster_span(status),)))
    elif server.cluster_note:
        pieces.append(LinePart(1, (Span(display_text(server.cluster_note), Role.WARN),)))
    pieces.append(LinePart(2, (Span(SafeText(f"db{status.db}"), Role.MUTED),)))
    pieces.append(LinePart(0, (Span(literal("READ-ONLY"), Role.GOOD),)))
    if status.no_touch is NoTouch.ON:
        pieces.append(LinePart(3, (Span(literal("NO-TOUCH"), Role.GOOD),)))
    else:
        why = literal("denied") if status.no_touch is NoTouch.DENIED else literal("not supported")
        pieces.append(LinePart(1, (Span(SafeText(f"NO-TOUCH {why}"), Role.WARN),)))
    figures = fitted(_figures(status), max(0, width - IDENTITY_CELLS))
    room = width - line_width(NAME) - line_width(figures) - 2
    who = clip(fitted(pieces, room), room)
    blank = width - line_width(NAME) - line_width(who) - line_width(figures) - 1
    return clip((*NAME, *who, gap(blank), *figures, gap(1)), width)


def _product_pieces(status: BrowsingStatus) -> list[LinePart]:
    """Return the product with its version, and the role of a single server; for a dump, the server that wrote it."""
    if status.dump is not None:
        return [LinePart(0, (Span(status.dump.about, Role.MUTED),))]
    server, pieces = status.server, []
    if server.product_name:
        words = [server.product_name, *([display_text(server.version_text)] if server.version_text else [])]
        pieces.append(LinePart(5, (Span(joined(words, " "), Role.MUTED),)))
    if server.role and not status.nodes:  # else that of one node
        pieces.append(LinePart(4, (Span(display_text(server.role), Role.MUTED),)))
    return pieces


def _cluster_span(status: BrowsingStatus) -> Span:
    lost = sum(isinstance(node.link, Lost) and node.link.reason is not None for node in status.nodes)
    if lost:
        return Span(SafeText(f"{lost} of {counted(len(status.nodes), 'node')} can't be reached"), Role.WARN)
    return Span(SafeText(f"cluster of {counted(len(status.nodes), 'node')}"), Role.MUTED)


def over_title(label: SafeText, db: int | None, what: SafeText, width: int, status: BrowsingStatus | None) -> Line:
    """Return the title bar of a screen over the tree: the server, its database unless all are meant, `what` is shown.

    The server's figures from its status take the rest of the width; `status` is None if no server is browsed.
    """
    if status is not None and status.dump is not None:
        label = display_text(status.dump.path.name)
    others = [LinePart(0, (Span(literal("READ-ONLY"), Role.GOOD),)), LinePart(1, (Span(what, Role.MUTED),))]
    if db is not None:
        others.insert(0, LinePart(2, (Span(SafeText(f"db{db}"), Role.MUTED),)))
    room = width - line_width(NAME)
    rest = line_width((*fitted(others, room), BETWEEN))
    name = LinePart(0, (Span(cut_middle(label, max(LEAST_LABEL_CELLS, room - rest)), Role.STRONG),))
    line = clip((*NAME, *fitted([name, *others], room)), width)
    figures = server_figures(status, width - line_width(line) - 1)
    if status is not None:
        pieces = [name, *_product_pieces(status), *others]
        line = clip((*NAME, *fitted(pieces, room - line_width(figures) - FIGURES_FROM)), width) if figures else line
    return (*line, gap(width - line_width(line) - line_width(figures) - 1), *figures) if figures else line


_MARKS: Final = {
    "red": Role.BAD, "yellow": Role.WARN, "green": Role.GOOD, "blue": Role.HASH, "magenta": Role.SET,
    "cyan": Role.STREAM,
}  # fmt: skip


def server_figures(status: BrowsingStatus | None, room: int, *, has_keys: bool = True) -> Line:
    """Return the figures of a server that fit into `room` cells with blanks before them; empty without a status.

    `has_keys` is whether the number of its keys is among them.
    """
    if status is None:
        return ()
    line = fitted(_figures(status, has_keys=has_keys), room - FIGURES_FROM)
    return line if line_width(line) <= room - FIGURES_FROM else ()


_ASKING: Final = (ScanState.SAMPLING, ScanState.RUNNING)
"""While rtui's own commands are many of those that the server counts."""


def _figures(status: BrowsingStatus, *, has_keys: bool = True) -> list[LinePart]:
    """Return the server's figures; the last known ones while the connection is lost."""
    server, is_lost = status.server, isinstance(status.link, Lost)
    role = Role.MUTED if is_lost else Role.TEXT
    pieces: list[LinePart] = [LinePart(0, (Span(literal("last known"), Role.WARN),))] if is_lost else []
    if server.used_memory_bytes is not None:
        used = fmt.size(server.used_memory_bytes)
        limit = server.maxmemory_bytes
        text = joined((used, fmt.size(limit)), "/") if limit else used
        whose = literal("mem ") if status.dump is None else SafeText(f"mem in {display_text(server.full_name)} ")
        pieces.append(LinePart(2, (Span(whose, Role.MUTED), Span(text, role))))
    elif said := server.impossible.get("used_memory"):
        text = SafeText(f"unknown (the server says {said})")
        pieces.append(LinePart(2, (Span(literal("mem "), Role.MUTED), Span(text, Role.WARN))))
    if has_keys and status.keys is not None:
        keys = fmt.written_keys(status.keys)
        pieces.append(LinePart(0, (Span(keys, role), Span(SafeText(f" {fmt.noun(status.keys, 'key')}"), Role.MUTED))))
    if server.ops_per_s is not None and not is_lost and status.dump is None:
        is_busy = any(one is not None and one.state in _ASKING for one in (status.progress, status.analysis))
        unit = literal(" ops/s incl. rtui" if is_busy else " ops/s")
        pieces.append(LinePart(3, (Span(fmt.short_count(server.ops_per_s)), Span(unit, Role.MUTED))))
    return pieces


BAR_SHARE: Final = 6
"""The progress bar takes one part in this many of the line."""

MIN_BAR_CELLS: Final = 8
MAX_BAR_CELLS: Final = 32

STATES: Final = {
    ScanState.READY: (literal("starting"), Role.MUTED),
    ScanState.SAMPLING: (literal("sample"), Role.MUTED),
    ScanState.RUNNING: (literal("scan"), Role.MUTED),
    ScanState.PAUSED: (literal("paused"), Role.WARN),
    ScanState.WAITING: (literal("waiting"), Role.WARN),
    ScanState.DONE: (literal("complete"), Role.GOOD),
    ScanState.STOPPED: (literal("stopped"), Role.WARN),
    ScanState.FAILED: (literal("scan failed"), Role.BAD),
}


WAITS: Final = literal("scan waits")
"""Stands for a scan that is suspended while an analysis is under way."""

NO_TEXT: Final = literal("")


def status_line(
    status: BrowsingStatus,
    now_s: float,
    width: int,
    *,
    shows_cost: bool = False,
    note: SafeText | None = None,
    doing: SafeText = NO_TEXT,
) -> Line:
    """Return the status bar in exactly `width` cells, `note` last; `now_s` is on the clock of the event loop.

    `doing` names the watched keys, and the number of marked ones.
    """
    word, role = STATES[status.progress.state] if status.outdated is None else (literal("outdated"), Role.WARN)
    if status.analysis is not None and status.progress.state is ScanState.PAUSED:
        word, role = WAITS, Role.MUTED
    head = link_words(status.link, now_s) or (Span(word, role),)
    done = [LinePart(0, (Span(doing, Role.ACCENT),))] if doing else []
    other: list[LinePart] = []
    if (analysis := status.analysis) is not None:
        state = "analysis paused" if analysis.state is ScanState.PAUSED else "analysis"
        part = "" if analysis.fraction is None else f" {fmt.share(analysis.fraction)}"
        other = [LinePart(0, (Span(SafeText(f"{state}{part}"), Role.ACCENT),))]
    numbers = _numbers(status, note, shows_cost=shows_cost)
    return bar_line(head, [*done, *progress_bar(status.progress, width), *numbers, *other], width)


def run_action_of(span: Span, owner: str) -> str | None:
    """Return the action of a piece of a status bar: pausing a run or going on with it, and the next faster pace."""
    if span.text in _PAUSABLE:
        return f"{owner}.pause"
    return f"{owner}.faster" if span.text == _PACE or span.text in _PACES else None


SEARCH: Final = literal("search")
"""The word for a search while it runs."""

_PAUSABLE: Final = frozenset({SEARCH, *(STATES[state][0] for state in (ScanState.RUNNING, ScanState.PAUSED))})
_PACE: Final = literal("pace ")
_PACES: Final = frozenset(pace.value for pace in Pace)


def title_action_of(span: Span) -> str | None:
    """Return the action of a piece of a title: other servers behind the name, other databases behind that."""
    if span.role is Role.MUTED and _DATABASE.fullmatch(span.text):
        return "app.databases"
    return "app.servers" if span.role is Role.STRONG else None


_DATABASE: Final = re.compile(r"db\d+")


def bar_line(head: Line, pieces: Sequence[LinePart], width: int) -> Line:
    """Return a bar of exactly `width` cells: its first words, and behind them as much as fits."""
    room = width - 4 - line_width(head)
    rest = fitted(pieces, room) if room > 0 else ()
    line = clip((gap(1), *head, gap(2), *rest), width)
    return (*line, gap(width - line_width(line)))


SILENT_S: Final = 2.0
"""A server that owes an answer for longer than these seconds is shown as silent: over a slow link it takes less."""


def link_words(link: State, now_s: float) -> Line:
    """Return that the connection is lost and when it is retried, or why it has ended, or since when it is silent.

    Empty while connected to a server that answers.
    """
    if isinstance(link, Online):
        silent = fmt.duration(int(link.silent_s) * fmt.SECOND_MS)
        return (Span(SafeText(f"no answer for {silent}"), Role.WARN),) if link.silent_s >= SILENT_S else ()
    if isinstance(link, Closed) and link.reason is not None:
        return Span(literal("connection ended"), Role.BAD), Span(SafeText(f" · {link.reason.title}"), Role.WARN)
    if not isinstance(link, Lost):
        return ()
    seconds = max(0, round(link.retry_at - now_s))
    when = f"in {seconds} s" if seconds else "now"
    return Span(literal("connection lost"), Role.BAD), Span(SafeText(f" · try {link.attempt + 1} {when}"), Role.WARN)


def progress_bar(progress: Progress, width: int) -> list[LinePart]:
    """Return the progress bar with its percentage; none when there is nothing to be measured or nothing left to do."""
    fraction = progress.fraction
    if fraction is None or progress.state in (ScanState.DONE, ScanState.READY, ScanState.SAMPLING):
        return []
    cells = min(MAX_BAR_CELLS, max(MIN_BAR_CELLS, width // BAR_SHARE))
    filled, blank = bar(fraction, cells)
    percent = SafeText(f" {int(fraction * 100):3d}%")
    return [LinePart(0, (Span(filled, Role.BAR), Span(blank, Role.TRACK), Span(percent)))]


def _numbers(status: BrowsingStatus, note: SafeText | None, *, shows_cost: bool) -> list[LinePart]:
    progress = status.progress
    is_over = progress.state.is_over
    keys = fmt.count(progress.keys) if is_over else fmt.short_count(progress.keys)
    pieces = [LinePart(1, (Span(keys), Span(SafeText(f" {fmt.noun(progress.keys, 'key')}"), Role.MUTED)))]
    age = ago(status.seen_age_s)
    if is_over and age:
        now = "" if status.came_or_went is None else f", {fmt.count(status.came_or_went)} now by DBSIZE"
        pieces.append(LinePart(3, (Span(SafeText(f"seen {age}{now}"), Role.MUTED),)))
    pieces += [*scope_pieces(status.match, status.key_type), *speed_pieces(progress, shows_cost=shows_cost)]
    if not is_over:
        pieces.append(LinePart(1, (Span(_PACE, Role.MUTED), Span(SafeText(status.pace.value)))))
        pieces.append(LinePart(2, (Span(literal("server "), Role.MUTED), Span(fmt.share(status.cost.server_share)))))
    if shows_cost:
        pieces += cost_pieces(status.cost)
    if progress.reason:
        pieces.append(LinePart(1, (Span(progress.reason, Role.WARN),), LEAST_REASON))
    elif note is not None or status.notes:
        pieces.append(LinePart(7, (Span(note or status.notes[-1], Role.MUTED),)))
    return pieces


def scope_pieces(match: bytes | None, key_type: bytes | None) -> list[LinePart]:
    """Return the filters of the scan, unless all keys are asked for."""
    pieces = []
    if match is not None:
        pattern = cut(display(match, limit=64), 32)
        pieces.append(LinePart(2, (Span(literal("matching "), Role.MUTED), Span(pattern, Role.ACCENT))))
    if key_type is not None:
        name = display(key_type, limit=16)
        pieces.append(LinePart(2, (Span(literal("type "), Role.MUTED), Span(name, Role.ACCENT))))
    return pieces


def speed_pieces(progress: Progress, *, shows_cost: bool) -> list[LinePart]:
    """Return the speed of a running pass, unless its cost is shown instead, and the time left."""
    pieces: list[LinePart] = []
    if progress.state is ScanState.RUNNING and not shows_cost:
        pieces.append(LinePart(4, (Span(fmt.short_count(progress.keys_per_s)), Span(literal("/s"), Role.MUTED))))
    if progress.state is ScanState.RUNNING and progress.eta_s is not None:
        left = fmt.duration(max(1, round(progress.eta_s)) * fmt.SECOND_MS)
        pieces.append(LinePart(6, (Span(left), Span(literal(" left"), Role.MUTED))))
    return pieces


def cost_pieces(cost: Cost) -> list[LinePart]:
    """Return the total cost for the server, in parts of which some fit everywhere."""
    mark = "" if cost.is_measured else "≈ "
    parts = (
        (1, counted(cost.commands, "command")),
        (3, joined((fmt.size(cost.bytes_out), literal("out")), " ")),
        (3, joined((fmt.size(cost.bytes_in), literal("in")), " ")),
        (1, SafeText(f"{mark}{fmt.duration(round(cost.server_us / 1000))} of server CPU")),
    )
    return [LinePart(rank, (Span(text, Role.MUTED),)) for rank, text in parts]


_BETWEEN: Final = Span(SafeText(" "))


def browse_banner(status: BrowsingStatus) -> Callable[[int], Line] | None:
    """Return the warning that the tree is outdated, for any width; None while it is not."""
    if status.outdated is None:
        return None
    return _banner(status.outdated, "This list is from", status.seen_age_s, "Press R to rescan.")


def analyse_banner(why: Outdated | None, age_s: float | None) -> Callable[[int], Line] | None:
    """Return the warning that the figures of an analysis are outdated, for any width; None while they are not."""
    return None if why is None else _banner(why, "These figures are from", age_s, "Press r to refresh.")


def _banner(why: Outdated, what: str, age_s: float | None, remedy: str) -> Callable[[int], Line]:
    pieces = [
        LinePart(0, (Span(SafeText(f"{why.value}."), Role.WARN),)),
        LinePart(2, (Span(SafeText(f"{what} {ago(age_s) or 'before'}."), Role.TEXT),)),
        LinePart(1, (Span(SafeText(remedy), Role.ACCENT),)),
    ]
    return lambda width: clip((gap(1), *fitted(pieces, width - 2, _BETWEEN)), width)
