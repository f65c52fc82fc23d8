"""A level of the schema: its row, and its details.

The details are the fixed head, and in the body the different values of its identifiers, types, times to live, sizes,
the registry's entries, and examples of its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import Known, Mark
from rtui.analysis.query.behind import Behind, step_of
from rtui.analysis.query.patterns import pattern_text
from rtui.analysis.query.query import one_of, query_of
from rtui.analysis.report.document import CoverageKind, NodeKind
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.columns import ANALYSED_COLUMNS, RowLayout, TreeColumn, lay_out_row
from rtui.tui.browse.fact_lines import NAME_LIMIT, KeyFact, fact_line, name_lines
from rtui.tui.browse.namespace_lines import bar_cells_of, figure_lines, heading
from rtui.tui.browse.schema import Level, Schema
from rtui.tui.browse.tree_lines import (
    CLOSED,
    EMPTY,
    INDENT_CELLS,
    NO_SIGN,
    OPEN,
    RowFigures,
    count_text,
    figure_fields,
    indent_cells,
)
from rtui.tui.browse.value_view import ItemKind, RowItem, ValueRow, plain_rows
from rtui.tui.kit.layout import MARGIN, LinePart, bar, display, display_text, prose
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    cut_middle,
    gap,
    joined,
    left,
    literal,
    right,
    type_role,
    width_of,
)

if TYPE_CHECKING:
    from rtui.registry.registry import Registry, RegistryEntry

TITLE_LIMIT: Final = 400
MOST_EXAMPLES: Final = 6
MOST_TYPES: Final = 8
SUMMARY_CELLS: Final = 36
"""A longer pattern is cut in the line for narrow terminals."""

_COUNT_CELLS: Final = 11
_SHARE_CELLS: Final = 6


@dataclass(frozen=True, slots=True)
class LevelDetail:
    """A level under the cursor, with the schema that it belongs to."""

    schema: Schema
    level: Level
    needle: bytes | None = None
    """The text that names are filtered by, beside the scope of the report."""

    @property
    def behind(self) -> Behind:
        found = self.schema.behind(self.level)
        text = one_of("text", [] if self.needle is None else [self.needle])
        return Behind(found.query & query_of(text), found.note)

    @property
    def pattern(self) -> bytes:
        """Its pattern as it is typed in a query: `user:<id>:orders`, with a separator at the end for a namespace."""
        is_rest = self.level.node.kind is NodeKind.OTHER
        nodes = self.level.nodes[1:-1] if is_rest else self.level.nodes[1:]
        return pattern_text([step_of(node) for node in nodes])

    @property
    def title(self) -> SafeText:
        shown = display(self.pattern, limit=TITLE_LIMIT)
        return SafeText(f"{shown}{fmt.OTHER}") if self.level.node.kind is NodeKind.OTHER else shown

    @property
    def keys(self) -> Known:
        return self.schema.keys(self.level)

    def head(self, width: int) -> list[Line]:
        schema, level, keys = self.schema, self.level, self.keys
        mark = Mark.EXACT if keys.mark is Mark.EXACT else Mark.ABOUT
        share = KeyFact(literal("share"), fmt.share(schema.share(level), mark))
        query = cut_middle(SafeText(f"{self.behind.query}"), max(4, width - 2 * MARGIN - len("query     ")))
        last = fact_line(width, KeyFact(literal("query"), query, Role.ACCENT))
        lines = [*name_lines(self.title, width), fact_line(width, KeyFact(literal("keys"), count_text(keys)), share)]
        if not schema.is_of_names:
            return [*lines, *figure_lines(schema.figures(level), width), last]
        kind = literal("namespace") if level.node.separator else literal("key")
        kind = literal("pattern") if any(one.is_folded for one in level.upwards()) else kind
        below = len(level.node.children)
        facts = [KeyFact(literal("type"), kind, Role.MUTED)]
        facts += [KeyFact(literal("inside"), fmt.counted(below, "segment"))] if below else []
        return [
            *lines,
            fact_line(width, *facts),
            fact_line(width, KeyFact(literal("count"), literal("names only: not analysed yet"), Role.MUTED)),
            last,
        ]

    def summary(self) -> list[LinePart]:
        keys = self.keys
        pieces = [
            LinePart(0, (Span(cut_middle(self.title, SUMMARY_CELLS), Role.STRONG),)),
            LinePart(0, (Span(count_text(keys)), Span(SafeText(f" {fmt.noun(keys.value, 'key')}"), Role.MUTED))),
        ]
        found = self.schema.figures(self.level).memory_bytes
        if found is not None:
            pieces.append(LinePart(1, (Span(fmt.size(found.value, found.mark)),)))
        return [*pieces, LinePart(2, (Span(literal("Enter lists the keys"), Role.FAINT),))]

    def rows(self, registry: Registry | None, note: SafeText, width: int) -> list[ValueRow]:
        """Return the body of the details; `note` is the age of an analysis's figures."""
        keys, behind = self.keys, self.behind
        rows = plain_rows(())
        for sentence in _sources(self.schema, note):
            rows += plain_rows(*prose(sentence, width, Role.MUTED))
        if behind.note:
            rows += plain_rows(*prose(SafeText(f"{behind.note[:1].upper()}{behind.note[1:]}."), width, Role.MUTED))
        text = SafeText(f"All {count_text(keys)} keys ›" if keys.value != 1 else "The key ›")
        link = (gap(MARGIN), Span(text, Role.ACCENT))
        rows += [*plain_rows(()), ValueRow(link, RowItem(ItemKind.PATTERN, behind=behind)), *plain_rows(())]
        examples = example_keys(self.level, MOST_EXAMPLES)
        sections = (
            _values(self, width),
            _types(self, width),
            _lives(self, width),
            _sizes(self, width),
            [] if registry is None or not examples else _registered(registry, examples, width),
            _examples(examples, width),
        )
        for section in sections:
            rows += [*section, *plain_rows(())] if section else []
        return rows


def _sources(schema: Schema, note: SafeText) -> list[SafeText]:
    coverage = schema.report.head.coverage
    if not schema.is_of_names:
        marks = {Mark.EXACT: "Exact", Mark.AT_LEAST: "At least", Mark.ABOUT: "From a sample"}
        return [SafeText(f"{marks[schema.reported.mark]}{f', {note}' if note else ''}.")]
    how = "Exact, from the names." if schema.reported.mark is Mark.EXACT else "At least, from the known names."
    found = [SafeText(f"{how} Press a to analyse memory, types and TTLs.")]
    if isinstance(coverage.total_keys, int) and coverage.total_keys > coverage.unread:
        missing = fmt.keys(coverage.total_keys - coverage.unread)
        found.append(SafeText(f"{missing} are not counted: their names exceed the memory budget."))
    return found


def _values(detail: LevelDetail, width: int) -> list[ValueRow]:
    """Return the number of different segments at each folded position."""
    levels = [one for one in detail.level.upwards() if one.is_folded][::-1]
    if not levels:
        return []
    rows = plain_rows(heading(literal("Identifiers"), width, (literal("different"), _COUNT_CELLS)))
    for level in levels:
        known = detail.schema.distinct(level)
        count = fmt.NOTHING if known is None else count_text(known)
        steps = [step_of(node) for node in level.nodes[1:]]
        name = display(pattern_text(steps), limit=NAME_LIMIT)
        room = max(4, width - 2 * MARGIN - _COUNT_CELLS)
        rows += plain_rows((gap(MARGIN), Span(left(cut_middle(name, room), room)), Span(right(count, _COUNT_CELLS))))
    return rows


def _types(detail: LevelDetail, width: int) -> list[ValueRow]:
    stats = detail.level.node.stats
    if not stats.types:
        return []
    cells, whole = bar_cells_of(width), max(1.0, plain(stats.keys))
    columns = (literal("keys"), _COUNT_CELLS), (literal(""), _SHARE_CELLS + cells + 2)
    rows = plain_rows(heading(literal("Types"), width, *columns))
    room = max(4, width - 2 * MARGIN - _COUNT_CELLS - _SHARE_CELLS - cells - 2)
    for name, figure in stats.types[:MOST_TYPES]:
        known = detail.schema.reported.known(figure)
        count = fmt.NOTHING if known is None else count_text(known)
        part = plain(figure) / whole
        filled, blank = bar(part, cells)
        rows += plain_rows((
            gap(MARGIN),
            Span(left(display(name, limit=16), room), type_role(name)),
            Span(right(count, _COUNT_CELLS)),
            Span(right(fmt.share(part), _SHARE_CELLS), Role.MUTED),
            gap(2),
            Span(filled, Role.BAR),
            Span(blank),
        ))  # fmt: skip
    return rows


def _lives(detail: LevelDetail, width: int) -> list[ValueRow]:
    """Return how many keys expire, and how long those live."""
    stats, known = detail.level.node.stats, detail.schema.figures(detail.level).no_ttl
    if known is None:
        return []
    seen = "" if known.mark is Mark.EXACT else " that were seen"
    left = ""
    if stats.ttl_range_s is not None:
        low, high = (fmt.duration(round(one * fmt.SECOND_MS)) for one in stats.ttl_range_s)
        left = f" {low} left" if low == high else f" {low} to {high} left"
    if known.value == 1:
        text = SafeText(f"No key{seen} has a TTL.")
    elif known.value == 0:
        text = SafeText(f"All keys{seen} have a TTL; remaining{left} when analysed.")
    else:
        share = fmt.share(known.value, known.mark)
        text = SafeText(f"{share} of the keys have no TTL; the others{left} when analysed.")
    return plain_rows(heading(literal("TTL"), width), *prose(text, width, Role.TEXT))


def _sizes(detail: LevelDetail, width: int) -> list[ValueRow]:
    sizes = detail.level.node.stats.memory
    if sizes is None:
        return []
    is_seen = detail.schema.report.head.coverage.kind is CoverageKind.EXACT
    of_all = Mark.EXACT if is_seen else Mark.ABOUT
    parts = [(name, plain(one)) for name, one in (("p50", sizes.p50), ("p90", sizes.p90), ("p99", sizes.p99))]
    facts = [KeyFact(SafeText(name), fmt.size(value, of_all)) for name, value in parts]
    facts.append(KeyFact(literal("largest"), fmt.size(sizes.max, Mark.EXACT if is_seen else Mark.AT_LEAST)))
    return plain_rows(heading(literal("Sizes"), width), fact_line(width, *facts[:2]), fact_line(width, *facts[2:]))


def example_keys(level: Level, most: int) -> list[bytes]:
    """Return example keys of a level: those of its pattern, or one for each pattern below, the heaviest first."""
    if level.node.examples:
        return list(level.node.examples[:most])
    found: list[bytes] = []
    for nodes in level.node.walk(level.nodes[:-1]):
        node = nodes[-1]
        if node.examples:
            found.append(node.examples[0])
        elif not node.children and all(one.kind is NodeKind.LITERAL for one in nodes) and not node.separator:
            found.append(b"".join(one.name + one.separator for one in nodes))
        if len(found) >= most:
            break
    return found


def _examples(examples: Sequence[bytes], width: int) -> list[ValueRow]:
    if not examples:
        return []
    room = max(4, width - 2 * MARGIN)
    rows = plain_rows(heading(literal("Examples"), width))
    for key in examples:
        name = display(key, limit=NAME_LIMIT) if key else literal("(empty name)")
        rows.append(ValueRow((gap(MARGIN), Span(left(cut_middle(name, room), room))), RowItem(ItemKind.KEY, key)))
    return rows


def _registered(registry: Registry, examples: Sequence[bytes], width: int) -> list[ValueRow]:
    entries: list[RegistryEntry | None] = []
    for key in examples:
        entry = registry.entry_of(key)
        if entry not in entries:
            entries.append(entry)
    rows = plain_rows(heading(literal("Registry (matched by examples)"), width))
    for entry in entries:
        if entry is None:
            rows += plain_rows(*prose(literal("Some of them have no registered pattern."), width, Role.MUTED))
            continue
        rows += plain_rows(*_entry_lines(entry, width))
    if entries == [None]:
        rows = [rows[0], *plain_rows(*prose(literal("No registered pattern."), width, Role.MUTED))]
    return rows


def _entry_lines(entry: RegistryEntry, width: int) -> list[Line]:
    room = max(4, width - 2 * MARGIN)
    lines: list[Line] = [(gap(MARGIN), Span(cut_middle(display_text(entry.pattern.text), room), Role.ACCENT))]
    said = [display_text(entry.purpose)] if entry.purpose else []
    said += [SafeText(f"owner {display_text(entry.owner)}")] if entry.owner else []
    if said:
        lines += prose(joined(said), width, Role.TEXT)
    if entry.deprecated:
        lines += prose(SafeText(f"deprecated: {display_text(entry.deprecated)}"), width, Role.WARN)
    return lines


COLUMNS: Final = frozenset({TreeColumn.KEYS, TreeColumn.SHARE, TreeColumn.BAR}) | ANALYSED_COLUMNS
"""The columns of a level: those of namespaces of the tree, without those of keys."""

CRUMB_LIMIT: Final = 24


def lay_out_levels(
    width: int, enabled: frozenset[TreeColumn], longest: int, *, is_analysed: bool, sort: Sort
) -> RowLayout:
    columns = enabled & (COLUMNS if is_analysed else COLUMNS - ANALYSED_COLUMNS)
    return lay_out_row(width, columns, longest, is_analysed=is_analysed, sort=sort)


def level_line(level: Level, schema: Schema, layout: RowLayout, *, is_outdated: bool = False) -> Line:
    """Return the row of a level in exactly the width of the layout; `is_outdated`: the names are of an earlier scan."""
    keys = schema.keys(level)
    is_old = is_outdated or not schema.is_current
    figures = RowFigures(
        keys,
        schema.share(level),
        Mark.EXACT if keys.mark is Mark.EXACT else Mark.ABOUT,
        None if schema.is_of_names else schema.figures(level),
        is_old,
        is_old,
    )
    sign = NO_SIGN if not level.node.children else OPEN if level.is_open else CLOSED
    indent, many = indent_cells(level.depth, layout.name_cells), times_text(schema.distinct(level))
    room = layout.name_cells - indent - width_of(sign) - 1
    name_room = max(4, room - width_of(many))
    name = cut_middle(level_name(level, max(room, 16)), name_room)
    role = Role.FAINT if not level.node.name else Role.ACCENT if level.is_folded else Role.TEXT
    return (
        Span(SafeText(" " * indent + sign), Role.FAINT),
        Span(name, Role.MUTED if is_old else role),
        Span(left(many, max(0, room + 1 - width_of(name))), Role.MUTED),
        *figure_fields(figures, layout.fields),
    )


def level_name(level: Level, limit: int) -> SafeText:
    if level.node.kind is NodeKind.OTHER:
        return fmt.OTHER
    return display(level.node.shown, limit=limit) if level.node.name else EMPTY


def times_text(many: Known | None) -> SafeText:
    """Return the number of different segments of a level: ` ×50,000`, ` ×≈50.2k`; empty for a name."""
    if many is None:
        return literal("")
    mark = many.mark.strip()
    return SafeText(f" ×{mark}{count_text(many).removeprefix(many.mark)}")


def level_cells(level: Level) -> int:
    """Return about how many cells the name of a level takes when nothing of it is cut, with its indent and sign."""
    indent = MARGIN + level.depth * INDENT_CELLS + width_of(NO_SIGN)
    many = 12 if level.is_folded else 0
    return indent + len(level.node.name) + many + 1


def schema_title(level: Level | None, needle: bytes | None, note: SafeText, cells: int) -> SafeText:
    """Return the title over the rows: "Schema", the levels above the one under the cursor, and a note.

    `needle` is the text that names are filtered by. In a narrow title the levels are dropped first, then the note.
    """
    if needle is not None:
        return SafeText(f"Schema of keys matching {display(needle, limit=40)}")
    above = [] if level is None else [level_name(one, CRUMB_LIMIT) for one in level.upwards() if one.parent is not None]
    whole, bare = joined([literal("Schema"), *above[:0:-1]], " › "), literal("Schema")
    titles = [joined([one, note]) for one in (whole, bare)] if note else [whole]
    return next((one for one in titles if width_of(one) <= cells), bare)
