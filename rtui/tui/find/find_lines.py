"""The lines around the list of found keys: title, query and count, what stands in place of rows, notes, status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.humanize import Mark, counted
from rtui.analysis.query.query import Problem
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.progress import ScanState
from rtui.server.search.search import Search, Stage
from rtui.tui.find.found_rows import BY_BYTES, COLUMNS, SORTS, FoundRows
from rtui.tui.kit.layout import LEAST_REASON, Piece, ago, display_text, prose
from rtui.tui.kit.panel_view import key_hint
from rtui.tui.kit.status_lines import (
    SEARCH,
    STATES,
    bar_line,
    cost_pieces,
    link_words,
    progress_bar,
    speed_pieces,
)
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, line_width, literal

FILE_HINT: Final = key_hint(literal(" writes the list; the ending says how"), literal(" goes back"))
"""Stands in the footer while the name of a file is typed."""

MIN_QUERY_CELLS: Final = 20


def query_line(rows: FoundRows, now_s: float, width: int) -> Line:
    """Return the query and how many keys it has found, which of them are listed, and how old that is."""
    search = rows.search
    figures = (*_count_line(rows), *_age_spans(search.as_of_s, now_s))
    text = str(search.query) or "all keys"
    room = max(MIN_QUERY_CELLS, width - line_width(figures) - 4)
    line: Line = (gap(1), Span(cut(SafeText(text), room), Role.ACCENT), gap(2), *figures)
    return clip((*line, gap(width - line_width(line))), width)


def _count_line(rows: FoundRows) -> Line:
    """Return how many keys were found, live: `≥ 1,204 keys`, or `the first 10,000 of ≥ 48,211 keys`."""
    search = rows.search
    if search.stage in (Stage.PREPARING, Stage.ASKING):
        return ()
    count, listed = search.count, len(rows)
    mark = search.mark if search.stage is Stage.OVER else Mark.AT_LEAST
    total = Span(humanize.keys(count, mark), Role.STRONG)
    if listed >= count or not listed:
        return (total,)
    if search.order is None:
        which = SafeText(f"the first {humanize.count(listed)} of ")
    else:
        fact = next(one.column.title for one in COLUMNS.values() if one.fact is search.order.fact)
        which = SafeText(f"the top {humanize.count(listed)} by {fact} of ")
    return Span(which, Role.MUTED), total


def _age_spans(as_of_s: float | None, now_s: float) -> Line:
    """Return how old what is searched is: `as of 14:02 UTC, 3m ago`."""
    if as_of_s is None:
        return ()
    moment, age = humanize.moment(as_of_s), ago(now_s - as_of_s)
    is_today = moment[:10] == humanize.moment(now_s)[:10]
    text = f"as of {moment[11 if is_today else 0 : 16]} UTC{f', {age}' if age else ''}"
    return gap(2), Span(SafeText(text), Role.MUTED)


def status_line(search: Search, now_s: float, width: int, *, shows_cost: bool) -> Line:
    """Return how the search is doing and what it costs, in exactly `width` cells; `now_s` is the event loop's time."""
    progress, cost = search.progress, search.cost
    word, role = STATES[progress.state]
    if search.stage is Stage.ASKING:
        word, role = literal("not begun"), Role.MUTED
    elif progress.state is ScanState.RUNNING:
        word = SEARCH
    elif progress.state is ScanState.FAILED:
        word = literal("search failed")
    pieces = [*progress_bar(progress, width)]
    if progress.keys:
        pieces.append(Piece(1, (Span(counted(progress.keys, "name")), Span(literal(" looked at"), Role.MUTED))))
    pieces += speed_pieces(progress, shows_cost=shows_cost) if search.as_of_s is None else []
    if search.stage is Stage.RUNNING and search.as_of_s is None:
        pieces.append(Piece(1, (Span(literal("pace "), Role.MUTED), Span(SafeText(search.control.pace.value)))))
        pieces.append(Piece(2, (Span(literal("server "), Role.MUTED), Span(humanize.share(cost.server_share)))))
    if search.as_of_s is not None:
        pieces.append(Piece(2, (Span(literal("kept from the analysis, R asks the server"), Role.MUTED),)))
    elif shows_cost or search.stage is Stage.OVER:
        pieces += [Piece(piece.rank + 3, piece.line) for piece in cost_pieces(cost)]
    if progress.state is ScanState.STOPPED and search.control.stop_reason:
        pieces.append(Piece(1, (Span(search.control.stop_reason, Role.WARN),), LEAST_REASON))
    head = () if search.stage is Stage.OVER else link_words(search.link, now_s)
    return bar_line(head or (Span(word, role),), pieces, width)


def note_lines(rows: FoundRows, width: int, most: int) -> list[Line]:
    """Return what a reader of the list has to know, in at most so many lines."""
    search = rows.search
    sentences = [hint.sentence for hint in search.query.hints if search.kept]
    if rows.note:
        sentences.append(SafeText(f"{rows.note[:1].upper()}{rows.note[1:]}."))
    if search.failure is not None and search.kept:
        sentences.append(search.failure.happened)
    sentences += search.notes
    is_part = search.order is None and search.count > len(rows) > 0
    if is_part and rows.sort is not None:
        fact = SORTS[rows.sort].column.title
        found = humanize.count(len(rows))
        sentences.append(
            SafeText(f"Sorted are the first {found} keys that were found; R finds the top ones by {fact}.")
        )
    lines = [line for sentence in sentences for line in prose(sentence, width, Role.WARN)]
    return lines[:most]


def in_place_lines(search: Search, width: int) -> list[Line]:
    """Return what stands in place of rows while there are none."""
    if search.failure is not None:
        return _failure_lines(search, width)
    if search.stage is Stage.ASKING:
        plan = search.plan or literal("asks the server")
        sentence = SafeText(f"This {plan}.")
        meant = _meant_lines(search.query.hints, width)
        keys: Line = (
            gap(1), Span(literal("enter"), Role.ACCENT), Span(literal(" begins   "), Role.MUTED),
            Span(literal("/"), Role.ACCENT), Span(literal(" changes the query   "), Role.MUTED),
            Span(literal("esc"), Role.ACCENT), Span(literal(" goes back"), Role.MUTED),
        )  # fmt: skip
        return [(), *prose(sentence, width, Role.TEXT), *meant, (), clip(keys, width)]
    text = None
    if search.stage is Stage.PREPARING:
        text = literal("Finding out what this asks of the server …")
    elif search.stage is Stage.RUNNING:
        text = literal("No key has been found yet.")
    elif search.progress.state is ScanState.STOPPED:
        text = literal("No key was found before the search ended.")
    elif search.mark is not Mark.EXACT:
        text = literal("No key was found, but not all could be decided.")
    if text is not None:
        return [(), *prose(text, width, Role.MUTED), *_meant_lines(search.query.hints, width)]
    text = SafeText(f"No key is found by {display_text(str(search.query), limit=400)}.")
    hint: Line = (gap(1), Span(literal("/"), Role.ACCENT), Span(literal(" changes the query"), Role.MUTED))
    meant = _meant_lines((*search.query.hints, *search.query.doubts), width)
    return [(), *prose(text, width, Role.TEXT), *meant, (), hint]


def _meant_lines(problems: Sequence[Problem], width: int) -> list[Line]:
    """Return what is probably meant by words that are searched for, below an empty line."""
    lines = [line for one in problems for line in prose(one.sentence, width, Role.WARN)]
    return [(), *lines] if lines else []


def _failure_lines(search: Search, width: int) -> list[Line]:
    failure = search.failure
    assert failure is not None  # noqa: S101 - only then
    lines: list[Line] = [(), (gap(1), Span(cut(SafeText(failure.title), width - 2), Role.BAD))]
    lines += prose(failure.happened, width, Role.TEXT)
    if failure.remedy:
        lines += prose(failure.remedy, width, Role.MUTED)
    return lines


def sort_names(columns: Sequence[str]) -> list[str | None]:
    """Return what rows can be sorted by, one after the other; None is the order in which they were found."""
    return [None, *columns, BY_BYTES]


def sort_titles(names: Sequence[str | None]) -> list[SafeText]:
    """Return what these are called in a list."""
    return [literal("as they were found") if one is None else SafeText(SORTS[one].column.title) for one in names]
