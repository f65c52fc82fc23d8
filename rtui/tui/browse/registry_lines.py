"""The registry beside a key: three lines with its pattern, purpose and unmet expectations; the tab of its references.

References are rows that lead to the keys that this one points to, and to the keys expected to point to it; above them
stands the way that led here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import KeyFacts, NoTtl, Unknown
from rtui.analysis.humanize import Mark
from rtui.keyspace.text.display import SafeText
from rtui.registry.expectations import NO_TTL, Check, FoundKey
from rtui.registry.naming import rule_ids
from rtui.registry.registry import Registry, RegistryEntry
from rtui.registry.rules import RULES, Severity
from rtui.server.facts.references import KeyReferences, Link
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.fact_lines import LABEL_CELLS
from rtui.tui.browse.tree_lines import REASONS
from rtui.tui.browse.value_view import ItemKind, RowItem, ValueRow, plain_rows
from rtui.tui.kit.layout import MARGIN, LinePart, display, display_text, fitted, prose
from rtui.tui.kit.styled_text import (
    ELLIPSIS,
    Line,
    Role,
    Span,
    clip,
    cut,
    cut_middle,
    gap,
    left,
    literal,
    right,
    width_of,
)

_ROLES: Final = {Severity.WARN: Role.WARN, Severity.ERROR: Role.BAD}


class RegistryLines:
    """A registry's lines on keys."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def lines(self, key: bytes, facts: KeyFacts | None, width: int) -> list[Line]:
        """Return the pattern of a key, its purpose, and its checks; `facts` are None until the server has answered."""
        registry = self.registry
        index = registry.matcher.match(key)
        entry = None if index is None else registry.entries[index]
        checks = [] if facts is None or facts.is_gone else _checks(registry, entry, facts)
        name = registry.naming.broken(key, -1 if index is None else index)
        broken = [_piece(registry, rule, literal("✗ "), display_text(_title(rule))) for rule in rule_ids(name)]
        rows = (
            (literal("pattern"), _pattern(registry, entry, width - 2 * MARGIN - LABEL_CELLS)),
            (literal("for"), _purpose(entry)),
            (literal("rules"), [*checks, *broken]),
        )
        return [_line(label, pieces, width) for label, pieces in rows]

    def reference_rows(self, detail: Detail, way: Sequence[bytes], width: int) -> list[ValueRow]:
        """Return the rows of the tab of references; `way` are the keys that led to this one, each to the next."""
        key = detail.key
        if key is None:
            return []
        rows = plain_rows(())
        if way:
            rows += plain_rows(_way_line([*way, key], width), ())
        if detail.failure is not None:
            return [*rows, *plain_rows(*prose(detail.failure, width, Role.WARN))]
        found = detail.references
        if found is None:
            is_gone = detail.facts is not None and detail.facts.is_gone
            text = literal("The key no longer exists.") if is_gone else literal("asking…")
            return [*rows, *plain_rows(*prose(text, width, Role.FAINT))]
        dangling = SafeText(f"{fmt.count(found.dangling)} dangling") if found.dangling else literal("")
        rows += _section(literal("Points to"), found.outgoing, width, dangling)
        if not found.outgoing:
            rows += plain_rows(*prose(_why_nothing(self.registry, key, found), width, Role.MUTED), ())
        rows += _section(literal("Kept twice, also in"), found.twins, width)
        rows += _section(literal("Should point here"), found.incoming, width)
        for note in found.notes:
            text = display_text(note)
            rows += plain_rows(*prose(SafeText(f"{text[:1].upper()}{text[1:]}."), width, Role.FAINT))
        return rows


def _line(label: SafeText, pieces: Sequence[LinePart], width: int) -> Line:
    room = width - 2 * MARGIN - LABEL_CELLS
    shown = clip(fitted(pieces, room), room) if pieces else (Span(fmt.NOTHING, Role.FAINT),)
    return (gap(MARGIN), Span(left(label, LABEL_CELLS), Role.MUTED), *shown)


def _pattern(registry: Registry, entry: RegistryEntry | None, room: int) -> list[LinePart]:
    if entry is None:
        severity = registry.rules.severity("key-unregistered")
        return [LinePart(0, (Span(literal("none registered"), _ROLES.get(severity, Role.MUTED)),))]
    pieces = [LinePart(0, (Span(cut_middle(display_text(entry.pattern.text), room), Role.STRONG),))]
    if entry.origin:
        pieces.append(LinePart(2, (Span(display_text(entry.origin), Role.MUTED),)))
    if entry.owner:
        pieces.append(LinePart(1, (Span(literal("owner "), Role.MUTED), Span(display_text(entry.owner)))))
    return pieces


def _purpose(entry: RegistryEntry | None) -> list[LinePart]:
    if entry is None:
        return []
    pieces = []
    if entry.deprecated:
        text = SafeText(f"deprecated: {display_text(entry.deprecated)}")
        pieces.append(LinePart(0, (Span(text, Role.WARN),)))
    if entry.purpose:
        pieces.append(LinePart(1 if entry.deprecated else 0, (Span(display_text(entry.purpose)),)))
    if entry.scene:
        pieces.append(LinePart(2, (Span(display_text(entry.scene), Role.MUTED),)))
    return pieces


def _checks(registry: Registry, entry: RegistryEntry | None, facts: KeyFacts) -> list[LinePart]:
    """Return the expectations, unmet ones first."""
    if entry is None:
        return []
    found = FoundKey(
        None if isinstance(facts.type, Unknown) else facts.type,
        NO_TTL if isinstance(facts.ttl_ms, NoTtl) else None if isinstance(facts.ttl_ms, Unknown) else facts.ttl_ms,
        None if isinstance(facts.memory_bytes, Unknown) else facts.memory_bytes,
        None if isinstance(facts.length, Unknown) else facts.length,
    )
    checks = sorted(entry.expectations.checks(found), key=lambda check: check.breach is None)
    return [_check(registry, check, found) for check in checks]


def _check(registry: Registry, check: Check, found: FoundKey) -> LinePart:
    expected = display_text(check.expected)
    short = expected if check.fact == "type" else SafeText(f"{check.fact} {expected}")
    if check.breach is not None:
        what = SafeText(f"{check.fact}: expected {expected}, {_found(check, found)}")
        return _piece(registry, check.breach.value, literal("✗ "), what)
    if not check.is_known:
        return LinePart(2, (Span(SafeText(f"? {short}"), Role.FAINT),))
    return LinePart(1, (Span(literal("✓ "), Role.GOOD), Span(short, Role.MUTED)))


def _found(check: Check, found: FoundKey) -> SafeText:
    if check.fact == "type":
        return SafeText(f"is {display(found.type or b'', limit=32)}")
    if check.fact == "TTL":
        left_ms = found.ttl_ms
        if left_ms is None or left_ms == NO_TTL:
            return literal("has none")
        return SafeText(f"{fmt.duration(left_ms)} left")
    if check.fact == "size":
        return SafeText(f"has {fmt.size(found.memory_bytes or 0, Mark.ABOUT)}")
    return SafeText(f"has {fmt.count(found.length or 0)}")


def _piece(registry: Registry, rule: str, mark: SafeText, what: SafeText) -> LinePart:
    """Return a broken rule, coloured by its severity; a rule that is off is muted."""
    severity = registry.rules.severity(rule)
    role = _ROLES.get(severity, Role.MUTED)
    return LinePart(0 if severity is Severity.ERROR else 1, (Span(mark, role), Span(cut(what, 60), role)))


def _title(rule: str) -> str:
    title = RULES[rule].title
    return title[0].lower() + title[1:] if not title.startswith("UTF") else title


NAME_LIMIT: Final = 200

_MARK_CELLS: Final = 2
_SOURCE_CELLS: Final = 30
_BETWEEN: Final = " › "
_CRUMB_CELLS: Final = 28


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


def _why_nothing(registry: Registry, key: bytes, found: KeyReferences) -> SafeText:
    entry = registry.entry_of(key)
    if entry is None:
        return literal("The registry has no pattern for this key, so its references are not known.")
    if not found.is_declared:
        pattern = display_text(entry.pattern.text, limit=NAME_LIMIT)
        return SafeText(f"The registry declares no references for {pattern}.")
    return literal("The value contains no reference to a key.")


def _section(title: SafeText, links: Sequence[Link], width: int, note: SafeText = SafeText("")) -> list[ValueRow]:  # noqa: B008
    if not links:
        return []
    room = width - 2 * MARGIN
    heading = (gap(MARGIN), Span(title, Role.STRONG), Span(right(note, max(0, room - width_of(title))), Role.BAD))
    return [
        *plain_rows(heading),
        *(ValueRow(_link_line(one, width), RowItem(ItemKind.KEY, one.key)) for one in links),
        *plain_rows(()),
    ]


def _link_line(link: Link, width: int) -> Line:
    """Return the row of a referenced key: whether it exists, its name, and its source in the value."""
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
    if isinstance(link.is_there, Unknown):
        return literal("? "), Role.WARN, SafeText(f"{REASONS[link.is_there.reason].short}, ")
    if link.is_there:
        return literal("✓ "), Role.GOOD, literal("")
    return literal("✗ "), Role.BAD, literal("missing, ")
