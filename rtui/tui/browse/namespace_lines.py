"""What is known of a namespace: the fixed head of the detail panel, and what lies inside."""

from __future__ import annotations

from typing import Final

from rtui.analysis.humanize import counted
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.browse.child_counts import ChildCount, ChildCounts
from rtui.tui.browse.key_lines import NAME_LIMIT
from rtui.tui.browse.tree_lines import Totals, known_count, share_of
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import Mark, display
from rtui.tui.kit.layout import MARGIN, Fact, name_lines, pair_line, prose, single_line
from rtui.tui.kit.styled_text import Line, Role, Span, cut, cut_middle, gap, joined, left, literal, right, width_of

_MIN_BAR_CELLS: Final = 8
_MAX_BAR_CELLS: Final = 24
_COUNT_CELLS: Final = 11
_SHARE_CELLS: Final = 5


def namespace_lines(node: Namespace, totals: Totals, width: int) -> list[Line]:
    """Return the head for a namespace, in the same places as that of a key."""
    path = node.path()
    known = known_count(node, totals.complete)
    part = share_of(node, totals)
    mark = Mark.EXACT if totals.complete and known.mark is Mark.EXACT else Mark.ABOUT
    share = literal("–") if part is None else fmt.share(part, mark)
    return [
        *name_lines(display(path, limit=NAME_LIMIT), width),
        pair_line(
            Fact(literal("type"), literal("namespace"), Role.MUTED),
            Fact(literal("keys"), _count(known.keys, known.mark)),
            width,
        ),
        pair_line(Fact(literal("level"), SafeText(str(_level(node)))), Fact(literal("share"), share), width),
        single_line(Fact(literal("known"), _knowledge(node, known.mark, totals)), width),
        single_line(Fact(literal("pattern"), cut_middle(_pattern(path), width - 14), Role.ACCENT), width),
    ]


def _count(keys: float, mark: Mark) -> SafeText:
    return fmt.short_count(keys, mark) if mark is Mark.ABOUT else fmt.count(round(keys), mark)


def _level(node: Namespace) -> int:
    return len(node.segments())


def _knowledge(node: Namespace, mark: Mark, totals: Totals) -> SafeText:
    """Say where the count comes from."""
    is_part = totals.is_part
    if totals.is_outdated:
        return literal("counted before; it no longer holds")
    match mark:
        case Mark.EXACT:
            return (
                literal("exact, of what the filter shows") if is_part else literal("exact: the scan has seen every key")
            )
        case Mark.AT_LEAST:
            return (
                literal("at least, of what the filter shows")
                if is_part
                else literal("at least: the scan has not finished")
            )
        case _:
            low = node.estimate.low if node.estimate else 0.0
            high = node.estimate.high if node.estimate else 0.0
            return SafeText(f"sample, 95 %: {fmt.short_count(low)} to {fmt.short_count(high)}")


def _pattern(path: bytes) -> SafeText:
    return display(prefix_pattern(path), limit=NAME_LIMIT)


def child_lines(node: Namespace, inside: ChildCounts | None, totals: Totals, width: int) -> list[Line]:
    """Return what lies directly below a namespace, largest first, with its part of the namespace."""
    if node.dropped:
        text = literal(
            "Its names were dropped to keep within the memory budget; the count is kept. Open it to scan for them."
        )
        return [(), *prose(text, width, Role.MUTED)]
    if inside is None:
        return [(), *prose(literal("Open it to see what is inside."), width, Role.MUTED)]
    is_total = totals.complete and inside.of == node.count and (node.opened or not node.listed)
    seen = Mark.EXACT if is_total else Mark.AT_LEAST
    parts = [*inside.parts, *([ChildCount(b"", inside.keys)] if inside.keys else [])]
    total = max(1.0, sum(part.keys for part in parts))
    lines: list[Line] = [(), _summary(inside), ()]
    for part in sorted(parts, key=lambda part: -part.keys):
        name = display(part.label, limit=64) if part.label else literal("(keys right here)")
        count = _count(part.keys, Mark.ABOUT if part.is_estimate else seen)
        lines.append(_part_line(name, count, part.keys / total, width))
    left_out = inside.namespaces - len(inside.parts)
    if left_out > 0:
        lines += [(), (gap(MARGIN), Span(SafeText(f"and {counted(left_out, 'smaller one')}"), Role.FAINT))]
    return lines


def _summary(inside: ChildCounts) -> Line:
    spaces, keys = inside.namespaces, inside.keys
    text = f"{counted(spaces, 'namespace')} and {counted(keys, 'key')} directly below"
    return (gap(MARGIN), Span(SafeText(text), Role.MUTED))


def _part_line(name: SafeText, keys: SafeText, part: float, width: int) -> Line:
    bar_cells = max(_MIN_BAR_CELLS, min(_MAX_BAR_CELLS, width // 6))
    figures = _COUNT_CELLS + _SHARE_CELLS + bar_cells + 2
    room = max(8, width - 2 * MARGIN - figures)
    filled, blank = fmt.bar(part, bar_cells)
    shown = cut(name, room) if width_of(name) <= room else cut_middle(name, room)
    return (
        gap(MARGIN),
        Span(left(shown, room)),
        Span(right(keys, _COUNT_CELLS)),
        Span(right(fmt.share(part), _SHARE_CELLS), Role.MUTED),
        gap(2),
        Span(filled, Role.BAR),
        Span(blank),
    )


MOST_DATABASES = 8
"""So many other databases are named."""


def notice_lines(status: BrowsingStatus, needle: bytes | None, width: int) -> list[Line]:
    """Return why there are no rows and what to do about it; `needle` is what names are searched for."""
    state = status.progress.state
    if state is ScanState.FAILED:
        why = status.progress.reason or literal("The server did not say why.")
        return _card(literal("The scan failed"), Role.BAD, why, literal("R tries again."), width)
    if needle is not None:
        text = SafeText(f"No name holds {display(needle, limit=60)}")
        more = (
            literal("Escape shows everything again.")
            if status.complete
            else literal("The scan goes on; what matches will appear here.")
        )
        return _card(text, Role.STRONG, more, None, width)
    if not status.complete:
        title = literal("Paused") if state is ScanState.PAUSED else literal("Looking for the first keys…")
        return _card(title, Role.MUTED, None, None, width)
    if status.match is not None or status.key_type is not None:
        parts = [literal("No key")]
        if status.match is not None:
            parts.append(SafeText(f"matches {display(status.match, limit=60)}"))
        if status.key_type is not None:
            parts.append(SafeText(f"is of type {display(status.key_type, limit=16)}"))
        return _card(joined(parts, " "), Role.STRONG, literal("Escape shows everything again."), None, width)
    return _card(SafeText(f"db{status.db} is empty"), Role.STRONG, literal("The server has no keys in this database."),
                 _elsewhere(status), width)  # fmt: skip


def _elsewhere(status: BrowsingStatus) -> SafeText | None:
    """Say which other databases have keys."""
    others = {db: keys for db, keys in (status.server.databases or {}).items() if db != status.db and keys}
    if not others:
        return None
    found = [SafeText(f"db{db} has {fmt.count(keys)}") for db, keys in sorted(others.items())[:MOST_DATABASES]]
    return SafeText(f"{joined(found, ', ')}: choose one with -n.")


def _card(title: SafeText, role: Role, text: SafeText | None, more: SafeText | None, width: int) -> list[Line]:
    lines: list[Line] = [(), (gap(1), Span(title, role))]
    for paragraph in (text, more):
        if paragraph is not None:
            lines += [(), *prose(paragraph, width, Role.MUTED)]
    return lines
