"""What a registry says of a key: three lines with its pattern, what it is for, and whether what is expected is met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import KeyFacts, NoTtl, Unknown
from rtui.analysis.humanize import Mark
from rtui.keyspace.text.display import SafeText
from rtui.registry.expectations import NO_TTL, Check, Found
from rtui.registry.naming import rule_ids
from rtui.registry.registry import Entry, Registry
from rtui.registry.rules import RULES, Severity
from rtui.tui.kit.layout import MARGIN, Piece, display, display_text, fitted
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, cut_middle, gap, left, literal

LABEL_CELLS: Final = 10
"""Width of a label with the blanks after it."""

_ROLES: Final = {Severity.WARN: Role.WARN, Severity.ERROR: Role.BAD}


def registry_lines(registry: Registry, key: bytes, facts: KeyFacts | None, width: int) -> list[Line]:
    """Return the pattern of a key, its purpose, and its checks; `facts` are None until the server has answered."""
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


def _line(label: SafeText, pieces: Sequence[Piece], width: int) -> Line:
    room = width - 2 * MARGIN - LABEL_CELLS
    shown = clip(fitted(pieces, room), room) if pieces else (Span(fmt.NOTHING, Role.FAINT),)
    return (gap(MARGIN), Span(left(label, LABEL_CELLS), Role.MUTED), *shown)


def _pattern(registry: Registry, entry: Entry | None, room: int) -> list[Piece]:
    if entry is None:
        severity = registry.rules.severity("key-unregistered")
        return [Piece(0, (Span(literal("none has been registered"), _ROLES.get(severity, Role.MUTED)),))]
    pieces = [Piece(0, (Span(cut_middle(display_text(entry.pattern.text), room), Role.STRONG),))]
    if entry.origin:
        pieces.append(Piece(2, (Span(display_text(entry.origin), Role.MUTED),)))
    if entry.owner:
        pieces.append(Piece(1, (Span(literal("owner "), Role.MUTED), Span(display_text(entry.owner)))))
    return pieces


def _purpose(entry: Entry | None) -> list[Piece]:
    if entry is None:
        return []
    pieces = []
    if entry.deprecated:
        text = SafeText(f"deprecated: {display_text(entry.deprecated)}")
        pieces.append(Piece(0, (Span(text, Role.WARN),)))
    if entry.purpose:
        pieces.append(Piece(1 if entry.deprecated else 0, (Span(display_text(entry.purpose)),)))
    if entry.scene:
        pieces.append(Piece(2, (Span(display_text(entry.scene), Role.MUTED),)))
    return pieces


def _checks(registry: Registry, entry: Entry | None, facts: KeyFacts) -> list[Piece]:
    """Return the expectations, those that are not met first."""
    if entry is None:
        return []
    found = Found(
        None if isinstance(facts.type, Unknown) else facts.type,
        NO_TTL if isinstance(facts.ttl_ms, NoTtl) else None if isinstance(facts.ttl_ms, Unknown) else facts.ttl_ms,
        None if isinstance(facts.memory_bytes, Unknown) else facts.memory_bytes,
        None if isinstance(facts.length, Unknown) else facts.length,
    )
    checks = sorted(entry.expectations.checks(found), key=lambda check: check.breach is None)
    return [_check(registry, check, found) for check in checks]


def _check(registry: Registry, check: Check, found: Found) -> Piece:
    expected = display_text(check.expected)
    short = expected if check.fact == "type" else SafeText(f"{check.fact} {expected}")
    if check.breach is not None:
        what = SafeText(f"{check.fact}: expected {expected}, {_found(check, found)}")
        return _piece(registry, check.breach.value, literal("✗ "), what)
    if not check.is_known:
        return Piece(2, (Span(SafeText(f"? {short}"), Role.FAINT),))
    return Piece(1, (Span(literal("✓ "), Role.GOOD), Span(short, Role.MUTED)))


def _found(check: Check, found: Found) -> SafeText:
    """Return what a key has instead of what is expected."""
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


def _piece(registry: Registry, rule: str, mark: SafeText, what: SafeText) -> Piece:
    """Return what is broken, in the colour of how much it matters; rules that are off are not shown so."""
    severity = registry.rules.severity(rule)
    role = _ROLES.get(severity, Role.MUTED)
    return Piece(0 if severity is Severity.ERROR else 1, (Span(mark, role), Span(cut(what, 60), role)))


def _title(rule: str) -> str:
    """Return what breaks a rule, as a part of a line."""
    title = RULES[rule].title
    return title[0].lower() + title[1:] if not title.startswith("UTF") else title
