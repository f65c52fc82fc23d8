"""What a key points to and who should point to it, as rows that lead there; above them the way that led here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import Unknown
from rtui.keyspace.text.display import SafeText
from rtui.registry.registry import Registry
from rtui.server.facts.references import KeyReferences, Link
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.tree_lines import REASONS
from rtui.tui.browse.value_rows import Item, ItemKind, ValueRow
from rtui.tui.kit.layout import MARGIN, display, display_text, prose
from rtui.tui.kit.styled_text import ELLIPSIS, Line, Role, Span, cut, cut_middle, gap, left, literal, right, width_of

NAME_LIMIT: Final = 200
"""Characters of a name at most."""

_MARK_CELLS: Final = 2
_SOURCE_CELLS: Final = 30
_BETWEEN: Final = " › "
_CRUMB_CELLS: Final = 28


def reference_rows(detail: Detail, registry: Registry, width: int, way: Sequence[bytes] = ()) -> list[ValueRow]:
    """Return the rows for a key; `way` are the keys from which one led to the next, the last one to this key."""
    key = detail.key
    if key is None:
        return []
    rows = _lines(())
    if way:
        rows += _lines(_way_line([*way, key], width), ())
    if detail.failure is not None:
        return [*rows, *_lines(*prose(detail.failure, width, Role.WARN))]
    found = detail.references
    if found is None:
        is_gone = detail.facts is not None and detail.facts.is_gone
        text = literal("The key is gone.") if is_gone else literal("asking…")
        return [*rows, *_lines(*prose(text, width, Role.FAINT))]
    rows += _section(literal("Points to"), found.outgoing, width, _dangling_note(found))
    if not found.outgoing:
        rows += _lines(*prose(_why_nothing(registry, key, found), width, Role.MUTED), ())
    rows += _section(literal("Kept twice, also in"), found.twins, width)
    rows += _section(literal("Should point here"), found.incoming, width)
    for note in found.notes:
        text = display_text(note)
        rows += _lines(*prose(SafeText(f"{text[:1].upper()}{text[1:]}."), width, Role.FAINT))
    return rows


def _lines(*lines: Line) -> list[ValueRow]:
    return [ValueRow(line) for line in lines]


def _way_line(way: Sequence[bytes], width: int) -> Line:
    """Return the keys that led here, the latest as far as there is room."""
    room = width - 2 * MARGIN
    names = [cut_middle(display(key, limit=NAME_LIMIT) or literal("(empty)"), _CRUMB_CELLS) for key in way]
    shown = [names[-1]]
    for name in names[-2::-1]:
        used = sum(width_of(one) + len(_BETWEEN) for one in shown) + len(ELLIPSIS)
        if used + width_of(name) + len(_BETWEEN) > room:
            break
        shown.insert(0, name)
    before = [*([SafeText(ELLIPSIS)] if len(shown) < len(names) else []), *shown[:-1]]
    path = SafeText("".join(f"{name}{_BETWEEN}" for name in before))
    return (gap(MARGIN), Span(path, Role.MUTED), Span(cut(shown[-1], max(1, room - width_of(path))), Role.STRONG))


def _dangling_note(found: KeyReferences) -> SafeText:
    return SafeText(f"{fmt.count(found.dangling)} dangling") if found.dangling else literal("")


def _why_nothing(registry: Registry, key: bytes, found: KeyReferences) -> SafeText:
    entry = registry.entry_of(key)
    if entry is None:
        return literal("The registry has no pattern for this name, so what it points to is not known.")
    if not found.is_declared:
        pattern = display_text(entry.pattern.text, limit=NAME_LIMIT)
        return SafeText(f"The registry says of no value of {pattern} that it points to a key.")
    return literal("Nothing in the value points to a key.")


def _section(title: SafeText, links: Sequence[Link], width: int, note: SafeText = SafeText("")) -> list[ValueRow]:  # noqa: B008
    if not links:
        return []
    room = width - 2 * MARGIN
    heading = (
        gap(MARGIN),
        Span(title, Role.STRONG),
        Span(right(note, max(0, room - width_of(title))), Role.BAD),
    )
    return [
        *_lines(heading),
        *(ValueRow(_link_line(one, width), Item(ItemKind.KEY, one.key)) for one in links),
        *_lines(()),
    ]


def _link_line(link: Link, width: int) -> Line:
    """Return one key: whether it is there, its name, and what of the value it comes from."""
    source_cells = min(_SOURCE_CELLS, max(8, width // 3))
    room = max(4, width - 2 * MARGIN - _MARK_CELLS - source_cells - 1)
    name = display(link.key, limit=NAME_LIMIT) or literal("(empty)")
    mark, role, said = _presence(link)
    source = SafeText(f"{display_text(link.source, limit=64)}")
    if link.value is not None and link.value not in link.key:
        source = SafeText(f"{source} {display(link.value, limit=32)}")
    return (
        gap(MARGIN),
        Span(mark, role),
        Span(left(cut_middle(name, room), room), Role.MUTED if link.is_there is False else Role.TEXT),
        gap(1),
        Span(left(cut(SafeText(f"{said}{source}"), source_cells), source_cells), role if said else Role.MUTED),
    )


def _presence(link: Link) -> tuple[SafeText, Role, SafeText]:
    """Return mark, colour and word for whether a key is there."""
    if isinstance(link.is_there, Unknown):
        return literal("? "), Role.WARN, SafeText(f"{REASONS[link.is_there.reason].short}, ")
    if link.is_there:
        return literal("✓ "), Role.GOOD, literal("")
    return literal("✗ "), Role.BAD, literal("missing, ")
