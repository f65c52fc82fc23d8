"""The details of a namespace: the fixed head, and in the body its biggest keys, its patterns, and its children.

Children are counted in slices, and without opening the namespace, which would make the store larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import RowFacts, Unknown
from rtui.analysis.humanize import Known, Mark, NamespaceFigures, counted
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import unpack_inline
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import prefix_pattern
from rtui.keyspace.text.segments import Separators
from rtui.tui.browse.fact_lines import LABEL_CELLS, NAME_LIMIT, KeyFact, fact_line, name_lines
from rtui.tui.browse.tree_lines import TreeTotals, count_text, known_count, share_of
from rtui.tui.browse.value_view import ItemKind, RowItem, ValueRow, plain_rows
from rtui.tui.kit.layout import MARGIN, bar, display, prose
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, gap, left, literal, right, type_role, width_of

if TYPE_CHECKING:  # they are imported with all that adds up
    from rtui.tui.browse.tree_figures import InsideNamespace

GROWTH: Final = 1.125
"""During a scan a namespace is counted again when it has grown by this factor."""

LARGEST: Final = 200
"""Most children that are listed, the largest ones."""

MOST_COUNTED: Final = 200_000
"""Unopened namespaces of more keys are not counted just because the cursor rests on them."""

FEW_ASKED: Final = 100
"""Namespaces of no more keys are asked how big these are when the cursor rests on them: as many as rows on a screen."""

SLICE_CHILDREN: Final = 2_048
"""The number of children handled between two checks of the clock."""


@dataclass(frozen=True, slots=True)
class ChildCount:
    """A namespace directly below: its label with the separator, its keys, and whether they are from a sample."""

    label: bytes
    keys: float
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class ChildCounts:
    """The namespaces directly below one, largest first, and the keys directly below, when it had `of` keys in all."""

    parts: tuple[ChildCount, ...] = ()
    namespaces: int = 0
    keys: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class CountedState:
    """The state in which a namespace was counted: how many keys it had, and whether it was open."""

    node: Namespace
    keys: int
    opened: bool
    complete: bool
    """Whether the scan had seen every key."""

    def is_due(self, last: CountedState) -> bool:
        """Return whether to count again: on any change of totals, and after a scan, when few keys are asked."""
        if self.node is not last.node or self.opened != last.opened:
            return True
        if not self.complete:
            return self.keys > last.keys * GROWTH
        return self.keys != last.keys or (not last.complete and 0 < self.keys <= FEW_ASKED)


def count_children(node: Namespace, separators: Separators) -> Slices[ChildCounts | None]:
    """Count the children of a namespace, in slices; None if they are not known or counting would take long."""
    slicer, of, kept = Slicer(), node.count, node.suffixes
    if node.listed:
        found: list[tuple[float, int]] = []
        for start in range(0, len(node.labels), SLICE_CHILDREN):
            ordinals = range(start, min(start + SLICE_CHILDREN, len(node.labels)))
            found += [(-weight, at) for weight, at in zip(node.weights(ordinals), ordinals, strict=True)]
            found = sorted(found)[:LARGEST]
            yield from slicer.pause()
        parts = tuple(ChildCount(node.labels[at], -weight, -weight > node.count_at(at)) for weight, at in found)
        return ChildCounts(parts, len(node.labels), node.key_total, of)
    if node.dropped or of > MOST_COUNTED or kept is None:
        return None
    counts: Counter[bytes] = Counter()
    keys, brace_before = 0, node.brace_before
    batches = [unpack_inline(kept)] if isinstance(kept, bytes) else (chunk.names() for _, chunk in kept.chunks())
    for names in batches:
        unsplit, groups = separators.group_batch(names, brace_before=brace_before)
        keys += len(unsplit)
        for label, _, rests in groups:
            counts[label] += len(rests)
        yield from slicer.pause()
    parts = tuple(ChildCount(label, count) for label, count in counts.most_common(LARGEST))
    return ChildCounts(parts, len(counts), keys, of)


_MIN_BAR_CELLS: Final = 8
_MAX_BAR_CELLS: Final = 24
_LEAST_BAR_CELLS: Final = 3
"""Of a bar that gives its room to names."""

MOST_SINGLE: Final = 10
"""Namespaces of one key that are listed; more of them are one row."""


def namespace_lines(node: Namespace, totals: TreeTotals, width: int) -> list[Line]:
    path = node.path()
    known = known_count(node, totals.complete)
    part = share_of(node, totals)
    mark = Mark.EXACT if totals.complete and known.mark is Mark.EXACT else Mark.ABOUT
    share = KeyFact(literal("share"), fmt.NOTHING if part is None else fmt.share(part, mark))
    keys = KeyFact(literal("keys"), count_text(known))
    pattern = cut_middle(display(prefix_pattern(path), limit=NAME_LIMIT), width - 2 * MARGIN - LABEL_CELLS)
    glob = fact_line(width, KeyFact(literal("pattern"), pattern, Role.ACCENT))
    head = name_lines(display(path, limit=NAME_LIMIT), width, raw=path)
    if totals.figures is not None:
        found = totals.figures.figures(node, known)
        return [*head, fact_line(width, keys, share), *figure_lines(found, width), glob]
    level = KeyFact(literal("level"), SafeText(str(len(node.segments()))))
    return [
        *head,
        fact_line(width, KeyFact(literal("type"), literal("namespace"), Role.MUTED), keys),
        fact_line(width, level, share),
        fact_line(width, KeyFact(literal("count"), _knowledge(node, known.mark, totals))),
        glob,
    ]


def figure_lines(found: NamespaceFigures, width: int) -> list[Line]:
    memory = _figure(found.memory_bytes, fmt.size)
    if found.memory_bytes is not None and found.share is not None:
        both = SafeText(f"{memory} · {fmt.share(found.share.value, found.share.mark)}")
        memory = both if width_of(both) < (width - 2 * MARGIN) // 2 - LABEL_CELLS else memory
    idle = _figure(found.idle, fmt.share)
    return [
        fact_line(
            width, KeyFact(literal("memory"), memory), KeyFact(literal("mean"), _figure(found.mean_bytes, fmt.size))
        ),
        fact_line(
            width, KeyFact(literal("no TTL"), _figure(found.no_ttl, fmt.share)), KeyFact(literal("idle >30d"), idle)
        ),
    ]


def _figure(known: Known | None, form: fmt.NumberFormat) -> SafeText:
    return fmt.NOTHING if known is None else form(known.value, known.mark)


def _knowledge(node: Namespace, mark: Mark, totals: TreeTotals) -> SafeText:
    if totals.is_outdated:
        return literal("counted earlier; outdated")
    if mark is Mark.ABOUT and node.estimate is not None:
        low, high = fmt.short_count(node.estimate.low), fmt.short_count(node.estimate.high)
        return SafeText(f"sample, 95 %: {low} to {high}")
    if totals.is_part:
        known = literal("exact") if mark is Mark.EXACT else literal("at least")
        return SafeText(f"{known}, within the filter")
    if mark is Mark.EXACT:
        return literal("exact (scan complete)")
    return literal("at least (scan in progress)")


def inside_rows(
    node: Namespace, children: ChildCounts | None, asked: Sequence[RowFacts] | None, totals: TreeTotals, width: int
) -> list[ValueRow]:
    """Return the biggest keys and the patterns of a namespace, then its children.

    `asked` are its biggest keys, just asked from the server, None if not asked.
    """
    known = known_count(node, totals.complete)
    rows = plain_rows(())
    patterns: list[ValueRow] = []
    note = literal("")
    biggest = None if asked is None else [_Big.of(one) for one in asked]
    if totals.figures is not None:
        found, below = totals.figures.figures(node, known), totals.figures.inside(node)
        for sentence in _sentences(found, totals):
            rows += plain_rows(*prose(sentence, width, Role.MUTED))
        rows += plain_rows(())
        patterns = _pattern_rows(found, below, width)
        if biggest is None:
            biggest = [_Big(one.key, one.key_type, one.memory_bytes or 0) for one in below.biggest]
            note = _missing_note(biggest, below.complete_above)
    elif not totals.is_part:
        how = literal("Not analysed yet: press a for memory, biggest keys and patterns.")
        rows += plain_rows(*prose(how, width, Role.FAINT), ())
    if biggest:
        rows += _biggest_rows(node, biggest, width)
    if note:
        rows += plain_rows(*prose(note, width, Role.MUTED))
    if known.value > len(biggest or ()):
        all_keys = SafeText(
            f"All {count_text(known)} keys by memory ›" if known.value != 1 else "The key with its memory ›"
        )
        rows.append(ValueRow((gap(MARGIN), Span(all_keys, Role.ACCENT)), RowItem(ItemKind.BY_SIZE, node.path())))
    return [*rows, *plain_rows(()), *patterns, *child_rows(node, children, totals, width)]


class _Big(NamedTuple):
    """One of the biggest keys."""

    key: bytes
    key_type: bytes | None
    memory_bytes: int

    @classmethod
    def of(cls, facts: RowFacts) -> _Big:
        known = facts.memory_bytes if isinstance(facts.memory_bytes, int) else 0
        return cls(facts.key, None if isinstance(facts.type, Unknown) else facts.type, known)


def _missing_note(biggest: Sequence[_Big], least: int | None) -> SafeText:
    """Return which of the biggest keys a report lacks; empty if it has all of them.

    `least` is the size above which no key is missing, None if any key may be missing.
    """
    if not biggest:
        if least is None:
            return literal("None of the biggest keys found is here.")
        return SafeText(f"None of the biggest keys is here: all are {fmt.size(least)} or less.")
    if least is None:
        return literal("Others may be as big: not all keys were analysed.")
    is_whole = biggest[-1].memory_bytes >= least
    return literal("") if is_whole else SafeText(f"List is incomplete below {fmt.size(least)}.")


def _sentences(found: NamespaceFigures, totals: TreeTotals) -> list[SafeText]:
    """Return where the figures of an analysis come from and how far they hold."""
    then = literal("") if totals.analysis_note == "" else SafeText(f", {totals.analysis_note}")
    if found.memory_bytes is None and found.no_ttl is None:
        return [SafeText(f"Not covered by the analysis{then}.")]
    if found.pattern is not None:
        pattern = display(found.pattern, limit=NAME_LIMIT)
        return [SafeText(f"≈ estimated from the mean of {pattern}{then}.")]
    marks = {Mark.EXACT: literal("Exact"), Mark.AT_LEAST: literal("At least"), Mark.ABOUT: literal("From a sample")}
    known = marks[(found.memory_bytes or found.no_ttl or Known(0, Mark.ABOUT)).mark]
    changed = literal(" Key count has changed since; press R to rescan.") if found.has_changed else literal("")
    return [SafeText(f"{known}{then}.{changed}")]


def heading(title: SafeText, width: int, *columns: tuple[SafeText, int]) -> Line:
    """Return the title of a section, with the titles of its columns at the right."""
    cells = sum(size for _, size in columns)
    room = width - 2 * MARGIN - cells
    titles = [Span(right(text, size), Role.FAINT) for text, size in columns]
    return (gap(MARGIN), Span(left(title, room), Role.STRONG), *titles)


def bar_cells_of(width: int) -> int:
    return max(_MIN_BAR_CELLS, min(_MAX_BAR_CELLS, width // 6))


class _BarRow(NamedTuple):
    name: SafeText
    figures: tuple[Span, ...]
    part: float
    """The part of the bar that is filled, from 0 to 1."""
    item: RowItem | None = None


def _bar_rows(rows: Sequence[_BarRow], width: int, title: SafeText | None, *columns: SafeText) -> list[ValueRow]:
    """Return rows of names, figures and bars, below a heading if there is a title.

    Columns are as wide as their figures, and bars give room to names that would be cut.
    """
    sizes = [
        max(width_of(column), *(width_of(row.figures[at].text) for row in rows)) + 2
        for at, column in enumerate(columns)
    ]
    room = width - 2 * MARGIN - sum(sizes) - 2
    cells = max(_LEAST_BAR_CELLS, min(bar_cells_of(width), room - max(width_of(row.name) for row in rows)))
    titles = *zip(columns, sizes, strict=True), (literal(""), cells + 2)
    lines = [] if title is None else plain_rows(heading(title, width, *titles))
    room = max(4, room - cells)
    for row in rows:
        filled, blank = bar(row.part, cells)
        name = Span(left(cut_middle(row.name, room), room))
        figures = [Span(right(one.text, size), one.role) for one, size in zip(row.figures, sizes, strict=True)]
        lines.append(ValueRow((gap(MARGIN), name, *figures, gap(2), Span(filled, Role.BAR), Span(blank)), row.item))
    return lines


def _biggest_rows(node: Namespace, biggest: Sequence[_Big], width: int) -> list[ValueRow]:
    skipped, largest = len(node.path()), max(1, biggest[0].memory_bytes)
    rows = []
    for one in biggest:
        key_type = literal("") if one.key_type is None else display(one.key_type, limit=16)
        figures = Span(key_type, type_role(one.key_type)), Span(fmt.size(one.memory_bytes, Mark.ABOUT))
        name = display(one.key[skipped:], limit=NAME_LIMIT) or literal("(empty)")
        rows.append(_BarRow(name, figures, one.memory_bytes / largest, RowItem(ItemKind.KEY, one.key)))
    return _bar_rows(rows, width, literal("Biggest keys"), literal("type"), literal("memory"))


def _pattern_rows(found: NamespaceFigures, inside: InsideNamespace, width: int) -> list[ValueRow]:
    if not inside.patterns:
        return []
    title = literal("Patterns")
    if found.pattern is not None:
        title = SafeText(f"Patterns of all of {display(found.pattern, limit=NAME_LIMIT)}")
    rows, mark = [], inside.mark
    for nodes, behind in zip(inside.patterns, inside.behind, strict=True):
        stats, name = nodes[-1].stats, b"".join(one.name + one.separator for one in nodes)
        memory = fmt.NOTHING if stats.memory_bytes is None else _plain(stats.memory_bytes, fmt.size, mark)
        figures = Span(_plain(stats.keys, fmt.short_count, mark)), Span(memory, Role.MUTED)
        text = display(name, limit=NAME_LIMIT) if name else fmt.OTHER
        rows.append(_BarRow(text, figures, inside.share(nodes[-1]), RowItem(ItemKind.PATTERN, behind=behind)))
    lines = _bar_rows(rows, width, title, literal("keys"), literal("memory"))
    return [*lines, *_left_out(inside.more_patterns), *plain_rows(())]


def _left_out(number: int) -> list[ValueRow]:
    text = SafeText(f"and {counted(number, 'smaller one')}")
    return plain_rows((gap(MARGIN), Span(text, Role.FAINT))) if number > 0 else []


def _plain(figure: float | Estimate, form: fmt.NumberFormat, mark: Mark) -> SafeText:
    return form(figure.value, Mark.ABOUT) if isinstance(figure, Estimate) else form(figure, mark)


def child_rows(node: Namespace, inside: ChildCounts | None, totals: TreeTotals, width: int) -> list[ValueRow]:
    """Return the children of a namespace, largest first, with their parts of the namespace."""
    if node.dropped:
        text = literal(
            "Its names were dropped to stay within the memory budget; the count is kept. Open it to scan for them."
        )
        return plain_rows(*prose(text, width, Role.MUTED))
    if inside is None:
        return plain_rows(*prose(literal("Open it to see what is inside."), width, Role.MUTED))
    is_total = totals.complete and inside.of == node.count and (node.opened or not node.listed)
    seen = Mark.EXACT if is_total else Mark.AT_LEAST
    parts = sorted([*inside.parts, *([ChildCount(b"", inside.keys)] if inside.keys else [])], key=lambda one: -one.keys)
    total = max(1.0, sum(part.keys for part in parts))
    namespaces, keys = counted(inside.namespaces, "namespace", seen), counted(inside.keys, "key", seen)
    summary = SafeText(f"{namespaces} and {keys} directly below")
    rows, path = [], node.path()
    left_out = inside.namespaces - len(inside.parts)
    single = [part for part in parts if part.label and part.keys <= 1]
    if len(single) > MOST_SINGLE:
        parts = [part for part in parts if part not in single]
        total += left_out
    for part in parts:
        name = display(part.label, limit=64) if part.label else literal("(keys right here)")
        count = count_text(Known(part.keys, Mark.ABOUT if part.is_estimate else seen))
        item = RowItem(ItemKind.NAMESPACE, path + part.label) if part.label else None
        rows.append(_BarRow(name, _counted(count, part.keys / total), part.keys / total, item))
    if len(single) > MOST_SINGLE:
        of_one, left_out = len(single) + left_out, 0
        figures = _counted(count_text(Known(of_one, seen)), of_one / total)
        rows.append(_BarRow(SafeText(f"{of_one:,} namespaces of 1 key"), figures, of_one / total))
    lines = _bar_rows(rows, width, None, literal(""), literal("")) if rows else []
    more = _left_out(left_out)
    return [
        *plain_rows((gap(MARGIN), Span(summary, Role.MUTED)), ()),
        *lines,
        *([*plain_rows(()), *more] if more else []),
    ]


def _counted(count: SafeText, share: float) -> tuple[Span, Span]:
    return Span(count), Span(fmt.share(share), Role.MUTED)
