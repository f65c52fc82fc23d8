"""The facts of a key: the fixed head of the detail panel."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import NO_TTL, Frequency, IdleBasis, KeyFacts, NoTtl, Reason, Unknown, ttl_at
from rtui.keyspace.slots import SLOTS, SlotExplanation, TagRule, explain, key_slot
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import Mark, display, display_text
from rtui.tui.kit.layout import LABEL_CELLS, MARGIN, NO_FACT, Fact, name_lines, pair_line, prose, single_line
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, gap, joined, literal, type_role

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
    return Fact(literal("length"), humanize.counted(facts.length, kind.unit, plural=kind.units))


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
    ago = fmt.ago(now_s - asked_at_s)
    return (Span(SafeText(f"asked {ago}"), Role.MUTED),) if ago else ()


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
        parts.append(SafeText(f"(< {humanize.rate(rate)})"))
    elif rate is not None:
        parts.append(SafeText(f"({humanize.rate(rate, Mark.AT_LEAST if frequency.is_saturated else Mark.ABOUT)})"))
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
    if found.tag_start is not None and found.tag_end is not None:
        where = SafeText(f"bytes {found.tag_start:,} to {found.tag_end - 1:,}, braces included")
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
    if found.rule is not TagRule.TAG or found.tag_start is None or found.tag_end is None:
        whole = display(key, limit=room) if key else literal("(empty)")
        return (gap(MARGIN), label, Span(cut_middle(whole, room), Role.ACCENT))
    inside = cut_middle(display(found.hashed, limit=max(room // 2, 8)), room // 2)
    side = max((room - len(inside) - 2) // 2, 2)
    before = _end_of(key[: found.tag_start], side)
    after = key[found.tag_end :]
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
