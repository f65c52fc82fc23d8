"""What is known of a namespace: the fixed head of the details, and in their body its biggest keys, its patterns, and
what lies directly below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark, counted
from rtui.analysis.namespace_figures import Known, NamespaceFigures
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import prefix_pattern
from rtui.tui.browse.detail_fetcher import ChildCount, ChildCounts
from rtui.tui.browse.fact_lines import LABEL_CELLS, NAME_LIMIT, Fact, fact_line, name_lines
from rtui.tui.browse.tree_lines import KnownCount, Totals, known_count, share_of
from rtui.tui.kit.layout import MARGIN, bar, display, prose
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, gap, left, literal, right, type_role, width_of

if TYPE_CHECKING:  # they are imported with all that adds up
    from rtui.analysis.report.document import KeyRecord, Node
    from rtui.tui.browse.tree_figures import InsideNamespace

_MIN_BAR_CELLS: Final = 8
_MAX_BAR_CELLS: Final = 24
_COUNT_CELLS: Final = 11
_SIZE_CELLS: Final = 11
_TYPE_CELLS: Final = 8
_SHARE_CELLS: Final = 5


def namespace_lines(node: Namespace, totals: Totals, width: int) -> list[Line]:
    """Return the head for a namespace, in the same places as that of a key."""
    path = node.path()
    known = known_count(node, totals.complete)
    part = share_of(node, totals)
    mark = Mark.EXACT if totals.complete and known.mark is Mark.EXACT else Mark.ABOUT
    share = Fact(literal("share"), fmt.NOTHING if part is None else fmt.share(part, mark))
    keys = Fact(literal("keys"), known.text)
    pattern = cut_middle(display(prefix_pattern(path), limit=NAME_LIMIT), width - 2 * MARGIN - LABEL_CELLS)
    glob = fact_line(width, Fact(literal("pattern"), pattern, Role.ACCENT))
    head = name_lines(display(path, limit=NAME_LIMIT), width)
    if totals.figures is not None:
        found = totals.figures.figures(node, known.known)
        return [*head, fact_line(width, keys, share), *_figure_lines(found, width), glob]
    level = Fact(literal("level"), SafeText(str(len(node.segments()))))
    return [
        *head,
        fact_line(width, Fact(literal("type"), literal("namespace"), Role.MUTED), keys),
        fact_line(width, level, share),
        fact_line(width, Fact(literal("known"), _knowledge(node, known.mark, totals))),
        glob,
    ]


def _figure_lines(found: NamespaceFigures, width: int) -> list[Line]:
    """Return the figures of an analysis on two lines."""
    memory = _figure(found.memory_bytes, fmt.size)
    if found.memory_bytes is not None and found.share is not None:
        both = SafeText(f"{memory} · {fmt.share(found.share.value, found.share.mark)}")
        memory = both if width_of(both) < (width - 2 * MARGIN) // 2 - LABEL_CELLS else memory
    idle = _figure(found.idle, fmt.share)
    return [
        fact_line(width, Fact(literal("memory"), memory), Fact(literal("mean"), _figure(found.mean_bytes, fmt.size))),
        fact_line(width, Fact(literal("no TTL"), _figure(found.no_ttl, fmt.share)), Fact(literal("idle >30d"), idle)),
    ]


def _figure(known: Known | None, form: fmt.NumberFormat) -> SafeText:
    return fmt.NOTHING if known is None else form(known.value, known.mark)


def _knowledge(node: Namespace, mark: Mark, totals: Totals) -> SafeText:
    """Return where the count comes from."""
    if totals.is_outdated:
        return literal("counted before; it no longer holds")
    if mark is Mark.ABOUT and node.estimate is not None:
        low, high = fmt.short_count(node.estimate.low), fmt.short_count(node.estimate.high)
        return SafeText(f"sample, 95 %: {low} to {high}")
    if totals.is_part:
        known = literal("exact") if mark is Mark.EXACT else literal("at least")
        return SafeText(f"{known}, of what the filter shows")
    if mark is Mark.EXACT:
        return literal("exact: the scan has seen every key")
    return literal("at least: the scan has not finished")


def inside_lines(node: Namespace, inside: ChildCounts | None, totals: Totals, width: int) -> list[Line]:
    """Return what an analysis knows of the inside of a namespace, then what lies directly below it."""
    lines: list[Line] = [()]
    if totals.figures is None:
        if not totals.is_part:
            lines += prose(
                literal("No analysis yet: press a for its bytes, its biggest keys and patterns."), width, Role.FAINT
            )
            lines.append(())
    else:
        found = totals.figures.figures(node, known_count(node, totals.complete).known)
        for sentence in _sentences(found, totals):
            lines += prose(sentence, width, Role.MUTED)
        below = totals.figures.inside(node)
        if below is not None:
            lines += [(), *_biggest_lines(node, below, width), *_pattern_lines(found, below, width)]
    return [*lines, *child_lines(node, inside, totals, width)]


def _sentences(found: NamespaceFigures, totals: Totals) -> list[SafeText]:
    """Return where the figures of an analysis come from and how far they hold."""
    then = literal("") if totals.analysis_note == "" else SafeText(f", {totals.analysis_note}")
    if found.memory_bytes is None and found.no_ttl is None:
        return [SafeText(f"The analysis has no figures of it{then}.")]
    if found.pattern is not None:
        pattern = display(found.pattern, limit=NAME_LIMIT)
        return [SafeText(f"≈ by the mean of {pattern}{then}.")]
    marks = {Mark.EXACT: literal("Exact"), Mark.AT_LEAST: literal("At least"), Mark.ABOUT: literal("From a sample")}
    known = marks[(found.memory_bytes or found.no_ttl or Known(0, Mark.ABOUT)).mark]
    changed = literal(" The number of its keys has changed since.") if found.has_changed else literal("")
    return [SafeText(f"{known}{then}.{changed}")]


def _heading(title: SafeText, width: int, *columns: tuple[SafeText, int]) -> Line:
    """Return the title of a section, with those of its columns at the right."""
    cells = sum(size for _, size in columns)
    room = width - 2 * MARGIN - cells
    titles = [Span(right(text, size), Role.FAINT) for text, size in columns]
    return (gap(MARGIN), Span(left(title, room), Role.STRONG), *titles)


def _bar_cells(width: int) -> int:
    return max(_MIN_BAR_CELLS, min(_MAX_BAR_CELLS, width // 6))


def _biggest_lines(node: Namespace, inside: InsideNamespace, width: int) -> list[Line]:
    """Return the biggest keys below a namespace, and above which size none is missing."""
    cells = _bar_cells(width)
    columns = (literal("type"), _TYPE_CELLS + 1), (literal("bytes"), _SIZE_CELLS), (literal(""), cells + 2)
    lines: list[Line] = [_heading(literal("Biggest keys"), width, *columns)]
    largest = max((one.memory_bytes or 0 for one in inside.biggest), default=0)
    skipped = len(node.path())
    lines += [
        _record_line(one, one.key[skipped:], (one.memory_bytes or 0) / max(1, largest), width) for one in inside.biggest
    ]
    least = inside.complete_above
    if not inside.biggest and least is None:
        lines += prose(literal("None of the biggest keys that were found is here."), width, Role.MUTED)
    elif not inside.biggest and least:
        lines += prose(SafeText(f"None is here: each of its keys has {fmt.size(least)} at most."), width, Role.MUTED)
    return [*lines, ()]


def _record_line(record: KeyRecord, name: bytes, part: float, width: int) -> Line:
    """Return one of the biggest keys."""
    cells = _bar_cells(width)
    room = max(4, width - 2 * MARGIN - _TYPE_CELLS - 1 - _SIZE_CELLS - cells - 2)
    filled, blank = bar(part, cells)
    key_type = literal("") if record.key_type is None else display(record.key_type, limit=16)
    return (
        gap(MARGIN),
        Span(left(cut_middle(display(name, limit=NAME_LIMIT) if name else literal("(empty)"), room), room)),
        gap(1),
        Span(right(key_type, _TYPE_CELLS), type_role(record.key_type)),
        Span(right(fmt.size(record.memory_bytes or 0, Mark.ABOUT), _SIZE_CELLS)),
        gap(2),
        Span(filled, Role.BAR),
        Span(blank),
    )


def _pattern_lines(found: NamespaceFigures, inside: InsideNamespace, width: int) -> list[Line]:
    """Return the patterns of keys below a namespace, most bytes first."""
    if not inside.patterns:
        return []
    cells = _bar_cells(width)
    columns = (literal("keys"), _COUNT_CELLS), (literal("bytes"), _SIZE_CELLS), (literal(""), cells + 2)
    title = literal("Patterns")
    if found.pattern is not None:
        title = SafeText(f"Patterns of all of {display(found.pattern, limit=NAME_LIMIT)}")
    lines = [_heading(title, width, *columns)]
    lines += [_pattern_line(nodes, inside.share(nodes[-1]), inside.mark, width) for nodes in inside.patterns]
    if inside.more_patterns:
        lines.append((gap(MARGIN), Span(SafeText(f"and {counted(inside.more_patterns, 'smaller one')}"), Role.FAINT)))
    return [*lines, ()]


def _pattern_line(nodes: Sequence[Node], part: float, mark: Mark, width: int) -> Line:
    """Return one pattern: its name below the namespace, keys, bytes, and its part of those of the namespace."""
    cells = _bar_cells(width)
    room = max(4, width - 2 * MARGIN - _COUNT_CELLS - _SIZE_CELLS - cells - 2)
    stats, filled = nodes[-1].stats, bar(part, cells)
    name = b"".join(one.name + one.separator for one in nodes)
    text = fmt.OTHER if not name else cut_middle(display(name, limit=NAME_LIMIT), room)
    memory = fmt.NOTHING if stats.memory_bytes is None else _plain(stats.memory_bytes, fmt.size, mark)
    return (
        gap(MARGIN),
        Span(left(text, room)),
        Span(right(_plain(stats.keys, fmt.short_count, mark), _COUNT_CELLS)),
        Span(right(memory, _SIZE_CELLS), Role.MUTED),
        gap(2),
        Span(filled[0], Role.BAR),
        Span(filled[1]),
    )


def _plain(figure: float | Estimate, form: fmt.NumberFormat, mark: Mark) -> SafeText:
    """Return a figure of a report without its interval."""
    return form(figure.value, Mark.ABOUT) if isinstance(figure, Estimate) else form(figure, mark)


def child_lines(node: Namespace, inside: ChildCounts | None, totals: Totals, width: int) -> list[Line]:
    """Return what lies directly below a namespace, largest first, with its part of the namespace."""
    if node.dropped:
        text = literal(
            "Its names were dropped to keep within the memory budget; the count is kept. Open it to scan for them."
        )
        return prose(text, width, Role.MUTED)
    if inside is None:
        return prose(literal("Open it to see what is inside."), width, Role.MUTED)
    is_total = totals.complete and inside.of == node.count and (node.opened or not node.listed)
    seen = Mark.EXACT if is_total else Mark.AT_LEAST
    parts = [*inside.parts, *([ChildCount(b"", inside.keys)] if inside.keys else [])]
    total = max(1.0, sum(part.keys for part in parts))
    bar_cells = _bar_cells(width)
    room = max(8, width - 2 * MARGIN - _COUNT_CELLS - _SHARE_CELLS - bar_cells - 2)
    summary = f"{counted(inside.namespaces, 'namespace')} and {counted(inside.keys, 'key')} directly below"
    lines: list[Line] = [(gap(MARGIN), Span(SafeText(summary), Role.MUTED)), ()]
    for part in sorted(parts, key=lambda part: -part.keys):
        name = display(part.label, limit=64) if part.label else literal("(keys right here)")
        count = KnownCount(part.keys, Mark.ABOUT if part.is_estimate else seen)
        filled, blank = bar(part.keys / total, bar_cells)
        lines.append((
            gap(MARGIN),
            Span(left(cut_middle(name, room), room)),
            Span(right(count.text, _COUNT_CELLS)),
            Span(right(fmt.share(part.keys / total), _SHARE_CELLS), Role.MUTED),
            gap(2),
            Span(filled, Role.BAR),
            Span(blank),
        ))  # fmt: skip
    left_out = inside.namespaces - len(inside.parts)
    if left_out > 0:
        lines += [(), (gap(MARGIN), Span(SafeText(f"and {counted(left_out, 'smaller one')}"), Role.FAINT))]
    return lines
