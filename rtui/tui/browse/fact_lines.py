"""What is known of a key or a namespace: the fixed head of the details, the hash slot, and what lies inside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import NO_TTL, Frequency, IdleBasis, KeyFacts, NoTtl, Reason, Unknown, ttl_at
from rtui.analysis.humanize import Mark, counted
from rtui.keyspace.slots import SLOTS, SlotExplanation, TagRule, explain, key_slot
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import prefix_pattern
from rtui.tui.browse.detail_fetcher import ChildCount, ChildCounts
from rtui.tui.browse.tree_lines import Totals, known_count, share_of
from rtui.tui.kit.format import ago, bar, display, display_text
from rtui.tui.kit.layout import LABEL_CELLS, MARGIN, NO_FACT, Fact, name_lines, pair_line, prose, single_line
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    cut,
    cut_middle,
    gap,
    joined,
    left,
    literal,
    right,
    type_role,
    width_of,
)

NAME_LIMIT: Final = 400
"""Characters of a name that are shown here at most."""

_REASONS: Final = {
    Reason.DENIED: literal("denied"),
    Reason.UNKNOWN_COMMAND: literal("no such command"),
    Reason.GONE: literal("–"),
    Reason.UNSUPPORTED: literal("not available"),
    Reason.NOT_ASKED: literal("not asked"),
    Reason.TOO_LARGE: literal("too large to ask"),
    Reason.FAILED: literal("failed"),
}


def full_name(key: bytes) -> SafeText:
    """Return a key as it is shown in full."""
    return display(key, limit=NAME_LIMIT) if key else literal("(empty name)")


def loading_lines(key: bytes, width: int) -> list[Line]:
    """Return the head while the server has not answered: the same places, nothing in them."""
    return [
        *name_lines(full_name(key), width),
        pair_line(Fact(literal("type"), literal("…"), Role.FAINT), Fact(literal("length"), literal("")), width),
        pair_line(Fact(literal("encoding"), literal("")), Fact(literal("memory"), literal("")), width),
        pair_line(Fact(literal("TTL"), literal("")), Fact(literal("expires"), literal("")), width),
        pair_line(Fact(literal("idle"), literal("")), _slot(key), width),
    ]


def fact_lines(facts: KeyFacts, width: int, *, now_s: float | None = None) -> list[Line]:
    """Return the head for a key: its name, then its facts in their places.

    `now_s`, in seconds since the epoch, says how far the time to live has run down; None: it is as it was asked.
    """
    if facts.is_gone:
        return [
            *name_lines(full_name(facts.key), width, Role.MUTED),
            single_line(Fact(literal("type"), literal("gone: the key is no longer there"), Role.WARN), width),
            (),
            (),
            pair_line(NO_FACT, _slot(facts.key), width),
        ]
    return [
        *name_lines(full_name(facts.key), width),
        pair_line(_type(facts), _length(facts), width),
        pair_line(_encoding(facts), _memory(facts), width),
        pair_line(_ttl(facts, now_s), _expiry(facts, width), width),
        pair_line(_use(facts), _slot(facts.key), width),
    ]


def _type(facts: KeyFacts) -> Fact:
    if isinstance(facts.type, Unknown):
        return _unknown(literal("type"), facts.type)
    return Fact(literal("type"), display(facts.type, limit=32), type_role(facts.type))


def _encoding(facts: KeyFacts) -> Fact:
    if isinstance(facts.encoding, Unknown):
        return _unknown(literal("encoding"), facts.encoding)
    return Fact(literal("encoding"), display(facts.encoding, limit=32))


def _length(facts: KeyFacts) -> Fact:
    if isinstance(facts.length, Unknown):
        return _unknown(literal("length"), facts.length)
    kind = facts.redis_type
    return Fact(literal("length"), fmt.counted(facts.length, kind.unit, plural=kind.units))


def _memory(facts: KeyFacts) -> Fact:
    if isinstance(facts.memory_bytes, Unknown):
        return _unknown(literal("memory"), facts.memory_bytes)
    return Fact(literal("memory"), fmt.size(facts.memory_bytes, Mark.ABOUT))


def _ttl(facts: KeyFacts, now_s: float | None) -> Fact:
    left = facts.ttl_ms if now_s is None else ttl_at(facts.ttl_ms, facts.asked_at_s, now_s)
    if isinstance(left, Unknown):
        return _unknown(literal("TTL"), left)
    if isinstance(left, NoTtl):
        return Fact(literal("TTL"), literal("none"), Role.MUTED)
    return Fact(literal("TTL"), fmt.duration(left)) if left else Fact(literal("TTL"), literal("expired"), Role.WARN)


def age_line(asked_at_s: float, now_s: float) -> Line:
    """Return how long ago facts were fetched, changing every ten seconds at most; nothing while they are fresh."""
    age = ago(now_s - asked_at_s)
    return (Span(SafeText(f"asked {age}"), Role.MUTED),) if age else ()


def _expiry(facts: KeyFacts, width: int) -> Fact:
    moment_s = facts.expires_at_s
    if moment_s is None:
        never = facts.ttl_ms is NO_TTL
        return Fact(literal("expires"), literal("never") if never else fmt.NOTHING, Role.MUTED)
    return Fact(literal("expires"), moment(moment_s, facts.asked_at_s, width // 2 - MARGIN - LABEL_CELLS))


def moment(moment_s: float, now_s: float, cells: int) -> SafeText:
    """Return a moment in UTC as exactly as fits into `cells`; the year is left out only where it is that of `now_s`."""
    try:
        when, now = (datetime.fromtimestamp(one, UTC) for one in (moment_s, now_s))
    except (OverflowError, ValueError, OSError):
        return literal("after the year 9999")
    day = when.date().isoformat()
    forms = (
        f"{day} {when:%H:%M:%S} UTC",
        f"{day} {when:%H:%M} UTC",
        f"{when:%d %b %H:%M} UTC" if when.year == now.year else f"{day} UTC",
        f"{when:%d %b} UTC" if when.year == now.year else day,
    )
    return SafeText(next((form for form in forms if len(form) <= cells), forms[-1]))


def _use(facts: KeyFacts) -> Fact:
    """Return idle time or frequency, whichever the server keeps, or why neither is known."""
    if isinstance(facts.frequency, Frequency):
        return Fact(literal("frequency"), _frequency(facts.frequency))
    if isinstance(facts.idle_s, Unknown):
        return _unknown(literal("idle"), facts.idle_s)
    label = literal("idle") if facts.idle_basis is IdleBasis.ACCESS else literal("unchanged")
    return Fact(label, fmt.duration(facts.idle_s * fmt.SECOND_MS))


def _frequency(frequency: Frequency) -> SafeText:
    parts = [SafeText(str(frequency.counter))]
    rate = frequency.per_minute
    if rate is not None and frequency.is_at_floor:
        parts.append(SafeText(f"(< {fmt.rate(rate)})"))
    elif rate is not None:
        parts.append(SafeText(f"({fmt.rate(rate, Mark.AT_LEAST if frequency.is_saturated else Mark.ABOUT)})"))
    return joined(parts, " ")


def _slot(key: bytes) -> Fact:
    return Fact(literal("slot"), SafeText(str(key_slot(key))))


def _unknown(label: SafeText, why: Unknown) -> Fact:
    role = Role.WARN if why.reason in (Reason.DENIED, Reason.FAILED) else Role.MUTED
    return Fact(label, _REASONS[why.reason], role)


def explanations(facts: KeyFacts) -> list[SafeText]:
    """Return why facts are missing and what else is to be known, as sentences for below the value."""
    found = [facts.type, facts.encoding, facts.length, facts.memory_bytes, facts.ttl_ms]
    labels = ["type", "encoding", "length", "memory", "TTL"]
    if not isinstance(facts.frequency, Frequency):
        found.append(facts.idle_s)
        labels.append("idle time")
    lines = [
        display_text(f"{label}: {fact.detail}")
        for label, fact in zip(labels, found, strict=True)
        if isinstance(fact, Unknown) and fact.detail and fact.reason is not Reason.GONE
    ]
    return [*lines, *(display_text(note) for note in facts.notes)]


def slot_lines(key: bytes, width: int) -> list[Line]:
    """Return the slot, the bytes that were hashed, and the rule, for a panel of this width."""
    found = explain(key)
    lines: list[Line] = [
        (),
        single_line(Fact(literal("slot"), SafeText(str(found.slot)), Role.STRONG), width),
        single_line(Fact(literal(""), SafeText(f"= CRC16 0x{found.crc:04x} mod {SLOTS}"), Role.MUTED), width),
        (),
        _key_line(key, found, width),
    ]
    if found.tag is not None:
        where = SafeText(f"bytes {found.tag.start:,} to {found.tag.end - 1:,}, braces included")
        lines.append(single_line(Fact(literal("tag"), where), width))
    lines.append(single_line(Fact(literal("length"), _how_much(found, key)), width))
    lines += [(), *prose(SafeText(f"{found.rule.value[0].upper()}{found.rule.value[1:]}."), width, Role.TEXT)]
    if found.rule is TagRule.TAG:
        lines += prose(
            literal("Keys with this tag share the slot: a cluster takes them in one command."), width, Role.MUTED
        )
    return lines


def _how_much(found: SlotExplanation, key: bytes) -> SafeText:
    """Say how many of the bytes are hashed."""
    part = "all" if len(found.hashed) == len(key) else f"{len(found.hashed):,} of"
    return SafeText(f"{part} {len(key):,} bytes hashed")


def _key_line(key: bytes, found: SlotExplanation, width: int) -> Line:
    """Return what is hashed, in its place within the key."""
    room = width - 2 * MARGIN - 10
    label = Span(literal("hashed    "), Role.MUTED)
    if found.tag is None:
        whole = display(key, limit=room) if key else literal("(empty)")
        return (gap(MARGIN), label, Span(cut_middle(whole, room), Role.ACCENT))
    inside = cut_middle(display(found.hashed, limit=max(room // 2, 8)), room // 2)
    side = max((room - len(inside) - 2) // 2, 2)
    before = _end_of(key[: found.tag.start], side)
    after = key[found.tag.end :]
    behind = display(after, limit=side) if after else literal("")
    return (
        gap(MARGIN),
        label,
        Span(SafeText(before + "{"), Role.FAINT),
        Span(inside, Role.ACCENT),
        Span(SafeText("}" + behind), Role.FAINT),
    )


def _end_of(raw: bytes, cells: int) -> SafeText:
    """Return the end of a name that may be long."""
    if not raw:
        return literal("")
    return cut_middle(display(raw, limit=max(cells, 8)), cells)


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
    filled, blank = bar(part, bar_cells)
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
