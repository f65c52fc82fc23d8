"""The facts of a key: the fixed head of the details, its hash slot, and whether several keys share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeVar

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import NO_TTL, Frequency, IdleBasis, KeyFacts, NoTtl, Reason, Unknown, ttl_at
from rtui.analysis.humanize import Mark, counted
from rtui.keyspace.slots import SLOTS, SlotExplanation, TagRule, explain, key_slot
from rtui.keyspace.text.display import SafeText, mixed_note
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import RedisType
from rtui.server.browsing.status import BrowsingStatus
from rtui.tui.browse.tree_lines import REASONS
from rtui.tui.kit.layout import MARGIN, ago, display, display_text, prose
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    clip,
    cut_middle,
    gap,
    joined,
    left,
    line_width,
    literal,
    right,
    type_role,
    width_of,
    wrap,
)

NAME_LIMIT: Final = 400
DAY_S: Final = 86_400

LABEL_CELLS: Final = 10
"""Width of a label with the blanks after it."""

NAME_LINES: Final = 2
"""A name takes this many lines, whatever its length."""

NOTE_GAP: Final = 2
"""Blank cells at least between a name and the note at the end of its lines."""


UNMOVED: Final = literal("")


@dataclass(frozen=True, slots=True)
class FactChange:
    """A change of a fact: its rate, and for a moment the mark that it has just changed."""

    rate: SafeText = UNMOVED
    """Such as `+12/s`; empty if the value does not change."""
    mark: SafeText = UNMOVED
    """`▲`, `▼` or `•` if the value has just changed; else empty."""


FactChanges = Mapping[str, FactChange]
"""By the label of the fact."""

UNCHANGED: Final[FactChanges] = {}


class KeyFact(NamedTuple):
    """A labelled value."""

    label: SafeText
    value: SafeText
    role: Role = Role.TEXT


def name_lines(
    name: SafeText, width: int, role: Role = Role.STRONG, note: Line = (), *, raw: bytes | None = None
) -> list[Line]:
    """Return a name on its lines, cut in the middle if it is too long for them with the `note` at the end.

    For a `raw` name a free line names its letters of another script; after a longer name it only says that there are
    some.
    """
    room, taken = width - 2 * MARGIN, line_width(note) + NOTE_GAP if note else 0
    shown = cut_middle(name, max(room, NAME_LINES * room - taken)) if note else name
    lines: list[Line] = [(gap(MARGIN), Span(part, role)) for part in wrap(shown, room, NAME_LINES)]
    lines += [()] * (NAME_LINES - len(lines))
    mixed = None if raw is None else mixed_note(raw)
    if mixed is not None and lines[-1] and not note:
        return name_lines(name, width, role, (Span(literal("mixes scripts"), Role.WARN),))
    if mixed is not None and not lines[-1]:
        lines[-1] = (gap(MARGIN), Span(cut_middle(mixed, max(room - taken, 0)), Role.WARN))
    space = width - MARGIN - line_width(lines[-1]) - line_width(note)
    return [*lines[:-1], (*lines[-1], gap(space), *note)] if note and space > 0 else lines


def fact_line(width: int, *facts: KeyFact) -> Line:
    """Return a fact over the whole width, or two side by side."""
    room = width - 2 * MARGIN
    spans: list[Span] = [gap(MARGIN)]
    for at, fact in enumerate(facts):
        cells = room * (at + 1) // len(facts) - room * at // len(facts)
        spans.append(Span(left(fact.label, LABEL_CELLS), Role.MUTED))
        spans.append(Span(left(fact.value, cells - LABEL_CELLS), fact.role))
    return tuple(spans)


T = TypeVar("T")


def full_name(key: bytes) -> SafeText:
    return display(key, limit=NAME_LIMIT) if key else literal("(empty name)")


def loading_lines(key: bytes, width: int) -> list[Line]:
    """Return the head while the server has not answered: the same places, nothing in them."""
    labels = ("length", "encoding", "memory", "TTL", "expires", "idle")
    blank = [KeyFact(literal(label), literal("")) for label in labels]
    facts = [KeyFact(literal("type"), literal("…"), Role.FAINT), *blank, slot_fact(key)]
    pairs = zip(facts[::2], facts[1::2], strict=True)
    return [*name_lines(full_name(key), width, raw=key), *(fact_line(width, *pair) for pair in pairs)]


def fact_lines(
    facts: KeyFacts, width: int, *, now_s: float | None = None, changes: FactChanges = UNCHANGED, has_age: bool = False
) -> list[Line]:
    """Return the head for a key: its name, then its facts in their places.

    `now_s`, in seconds since the epoch, is the time for the remaining time to live; None shows it as it was asked.
    `changes` are the changes of a watched key. `has_age` adds how long ago the facts were asked.
    """
    age = age_line(facts.asked_at_s, now_s) if has_age else ()
    if facts.is_gone:
        return [
            *name_lines(full_name(facts.key), width, Role.MUTED, age, raw=facts.key),
            fact_line(width, KeyFact(literal("type"), literal("the key no longer exists"), Role.WARN)),
            (),
            (),
            fact_line(width, KeyFact(literal(""), literal("")), slot_fact(facts.key)),
        ]
    kind, left_ms = facts.redis_type, facts.ttl_ms
    role = Role.TEXT if isinstance(facts.type, Unknown) else type_role(facts.type)
    type_name = _fact(literal("type"), facts.type, lambda name: display(name, limit=32), role)
    cells = (width - 2 * MARGIN + 1) // 2 - LABEL_CELLS
    length = _fact(literal("length"), facts.length, lambda length: _length(length, kind, cells))
    encoding = _fact(literal("encoding"), facts.encoding, lambda name: display(name, limit=32))
    where = " on disk" if facts.is_on_disk else ""
    memory = _fact(literal("memory"), facts.memory_bytes, lambda size: SafeText(f"{fmt.size(size, Mark.ABOUT)}{where}"))
    if now_s is not None:
        left_ms = ttl_at(left_ms, facts.asked_at_s, now_s)
    if isinstance(left_ms, NoTtl):
        ttl = KeyFact(literal("TTL"), literal("none"), Role.MUTED)
    elif left_ms == 0:
        ttl = KeyFact(literal("TTL"), literal("expired"), Role.WARN)
    else:
        ttl = _fact(literal("TTL"), left_ms, fmt.duration)
    expiry = KeyFact(literal("expires"), literal("never") if facts.ttl_ms is NO_TTL else fmt.NOTHING, Role.MUTED)
    if facts.expires_at_s is not None:
        cells = width // 2 - MARGIN - LABEL_CELLS
        expiry = KeyFact(literal("expires"), moment(facts.expires_at_s, facts.asked_at_s, cells))
    if isinstance(facts.frequency, Frequency):
        use = KeyFact(literal("frequency"), _frequency(facts.frequency))
    else:
        is_idle = isinstance(facts.idle_s, Unknown) or facts.idle_basis is IdleBasis.ACCESS
        label = literal("idle") if is_idle else literal("unchanged")
        use = _fact(label, facts.idle_s, lambda idle_s: fmt.duration(idle_s * fmt.SECOND_MS))
    return [
        *name_lines(full_name(facts.key), width, note=age, raw=facts.key),
        fact_line(width, _changed(type_name, changes, cells), _changed(length, changes, cells)),
        fact_line(width, _changed(encoding, changes, cells), _changed(memory, changes, cells)),
        fact_line(width, _changed(ttl, changes, cells), expiry),
        fact_line(width, _changed(use, changes, cells), slot_fact(facts.key)),
        *node_lines(facts, width)[:1],
    ]


def _length(length: int, kind: RedisType, cells: int) -> SafeText:
    whole = counted(length, kind.unit, plural=kind.units)
    return whole if len(whole) <= cells else SafeText(f"{length:,}")


def _changed(fact: KeyFact, changes: FactChanges, cells: int) -> KeyFact:
    """Return a fact marked if it has just changed, with its rate of change behind it if that fits."""
    change = changes.get(fact.label)
    if change is None:
        return fact
    marked = SafeText(change.mark + fact.value)
    text = joined([part for part in (marked, change.rate) if part], " ")
    text = text if width_of(text) <= cells else marked
    return KeyFact(fact.label, text, Role.ACCENT if change.mark else fact.role)


def _fact(label: SafeText, value: T | Unknown, text: Callable[[T], SafeText], role: Role = Role.TEXT) -> KeyFact:
    if not isinstance(value, Unknown):
        return KeyFact(label, text(value), role)
    is_failure = value.reason in (Reason.DENIED, Reason.FAILED)
    return KeyFact(label, REASONS[value.reason].full, Role.WARN if is_failure else Role.MUTED)


def slot_fact(key: bytes) -> KeyFact:
    return KeyFact(literal("slot"), SafeText(str(key_slot(key))))


def node_lines(facts: KeyFacts, width: int) -> list[Line]:
    """Return the node of a cluster that has answered, with its role; on several lines rather than cut."""
    if not facts.node:
        return []
    role = f" · {facts.node_role}" if facts.node_role else ""
    parts = wrap(display_text(f"{facts.node}{role}"), max(1, width - 2 * MARGIN - LABEL_CELLS), 8)
    return [fact_line(width, KeyFact(literal("" if at else "node"), part)) for at, part in enumerate(parts)]


def _frequency(frequency: Frequency) -> SafeText:
    parts = [SafeText(str(frequency.counter))]
    rate = frequency.per_minute
    if rate is not None and frequency.is_at_floor:
        parts.append(SafeText(f"(< {fmt.rate(rate)})"))
    elif rate is not None:
        parts.append(SafeText(f"({fmt.rate(rate, Mark.AT_LEAST if frequency.is_saturated else Mark.ABOUT)})"))
    return joined(parts, " ")


def age_line(asked_at_s: float, now_s: float | None, *, is_short: bool = False) -> Line:
    """Return how long ago facts were fetched, changing every ten seconds at most; nothing while they are fresh."""
    age = ago(None if now_s is None else now_s - asked_at_s)
    return (Span(age if is_short else SafeText(f"updated {age}"), Role.MUTED),) if age else ()


def moment(moment_s: float, now_s: float, cells: int) -> SafeText:
    """Return a time in UTC as exactly as fits into `cells`; the year is left out only if it is the year of `now_s`.

    Of a time within a day of `now_s` the date is left out, not the time of day.
    """
    try:
        when, now = (datetime.fromtimestamp(one, UTC) for one in (moment_s, now_s))
    except (OverflowError, ValueError, OSError):
        return literal("after the year 9999")
    day = when.date().isoformat()
    forms = [f"{day} {when:%H:%M:%S} UTC", f"{day} {when:%H:%M} UTC"]
    if when.year == now.year:
        forms.append(f"{when:%d %b %H:%M} UTC")
    if abs(moment_s - now_s) < DAY_S:
        forms += [f"{when:%H:%M:%S} UTC", f"{when:%H:%M} UTC", f"{when:%H:%M}"]
    else:
        forms += [f"{when:%d %b} UTC"] if when.year == now.year else [f"{day} UTC", day]
    return SafeText(next((form for form in forms if len(form) <= cells), forms[-1]))


def explanations(facts: KeyFacts) -> list[SafeText]:
    """Return why facts are missing, and other remarks on the key, as sentences for below the value."""
    found: dict[str, object] = {
        "type": facts.type,
        "encoding": facts.encoding,
        "length": facts.length,
        "memory": facts.memory_bytes,
        "TTL": facts.ttl_ms,
    }
    if not isinstance(facts.frequency, Frequency):
        found["idle time"] = facts.idle_s
    lines = [
        display_text(f"{label}: {fact.detail}")
        for label, fact in found.items()
        if isinstance(fact, Unknown) and fact.detail and fact.reason is not Reason.GONE
    ]
    return [*lines, *(display_text(note) for note in facts.notes)]


def slot_lines(key: bytes, width: int, facts: KeyFacts | None = None) -> list[Line]:
    """Return the slot, its node, the bytes that were hashed, and the rule, for a panel of this width."""
    found = explain(key)
    lines: list[Line] = [
        (),
        fact_line(width, KeyFact(literal("slot"), SafeText(str(found.slot)), Role.STRONG)),
        fact_line(width, KeyFact(literal(""), SafeText(f"= CRC16 0x{found.crc:04x} mod {SLOTS}"), Role.MUTED)),
        *([] if facts is None else node_lines(facts, width)),
        (),
        _hashed_line(key, found, width),
    ]
    if found.tag is not None:
        where = SafeText(f"bytes {found.tag.start:,} to {found.tag.end - 1:,}, braces included")
        lines.append(fact_line(width, KeyFact(literal("tag"), where)))
    part = "all" if len(found.hashed) == len(key) else f"{len(found.hashed):,} of"
    lines.append(fact_line(width, KeyFact(literal("length"), SafeText(f"{part} {len(key):,} bytes hashed"))))
    lines += [(), *prose(SafeText(f"{found.rule.value[0].upper()}{found.rule.value[1:]}."), width, Role.TEXT)]
    if found.rule is TagRule.TAG:
        sharing = literal("Keys with this tag share the slot: a cluster accepts them in one command.")
        lines += prose(sharing, width, Role.MUTED)
    return lines


def _hashed_line(key: bytes, found: SlotExplanation, width: int) -> Line:
    room = width - 2 * MARGIN - LABEL_CELLS
    label = Span(left(literal("hashed"), LABEL_CELLS), Role.MUTED)
    if found.tag is None:
        whole = display(key, limit=room) if key else literal("(empty)")
        return (gap(MARGIN), label, Span(cut_middle(whole, room), Role.ACCENT))
    inside = cut_middle(display(found.hashed, limit=max(room // 2, 8)), room // 2)
    side = max((room - len(inside) - 2) // 2, 2)
    before = cut_middle(display(key[: found.tag.start], limit=max(side, 8)), side)
    behind = display(key[found.tag.end :], limit=side)
    return (
        gap(MARGIN),
        label,
        Span(SafeText(before + "{"), Role.FAINT),
        Span(inside, Role.ACCENT),
        Span(SafeText("}" + behind), Role.FAINT),
    )


ONE_KEY: Final = literal("One key is marked; press space on others to compare their slots.")
ONE_SERVER: Final = literal("This server is not a cluster, so any keys can be used together. In a cluster:")

_SLOT_CELLS: Final = 6
_GAP_CELLS: Final = 2


def together_lines(keys: Sequence[bytes], status: BrowsingStatus, separators: Separators, width: int) -> list[Line]:
    """Return whether keys may be used together, where each lies, and the tag by which they would share a slot."""
    from rtui.analysis.report.tables.slots import NO_COMMON_TAG, common_tag, verdict  # noqa: PLC0415 - when it is wanted

    slots = [key_slot(key) for key in keys]
    nodes = [
        next((node for node in status.nodes if any(first <= slot <= last for first, last in node.slots)), None)
        for slot in slots
    ]
    is_together = len(set(slots)) == 1
    lines: list[Line] = []
    if len(keys) == 1:
        lines += prose(ONE_KEY, width, Role.MUTED)
    else:
        if status.server.cluster_enabled is False:
            lines += prose(ONE_SERVER, width, Role.MUTED)
        known = () if None in nodes else {node.label for node in nodes if node is not None}
        lines += prose(verdict(set(slots), known), width, Role.GOOD if is_together else Role.WARN)
    lines.append(())
    labels = [literal("nobody") if node is None else node.label for node in nodes] if status.nodes else []
    node_cells = max(map(width_of, labels), default=0)
    for at, (key, slot) in enumerate(zip(keys, slots, strict=True)):
        spans = [gap(MARGIN), Span(right(SafeText(str(slot)), _SLOT_CELLS), Role.MUTED), gap(_GAP_CELLS)]
        if labels:
            role = Role.BAD if nodes[at] is None else Role.MUTED
            spans += [Span(left(labels[at], node_cells), role), gap(_GAP_CELLS)]
        lines.append((*spans, _name_span(key, width - line_width(tuple(spans)) - MARGIN)))
    if not is_together:
        common, indent = common_tag(keys, separators), MARGIN + _GAP_CELLS
        lines += [(), *prose(NO_COMMON_TAG if common is None else common.sentence, width, Role.TEXT)]
        names = () if common is None else common.names
        lines += [(gap(indent), _name_span(name, width - indent - MARGIN, Role.STRONG)) for name in names]
    return [clip(line, width) for line in lines]


def _name_span(name: bytes, cells: int, role: Role = Role.TEXT) -> Span:
    return Span(cut_middle(display(name, limit=max(16, cells)) or literal("(empty)"), cells), role)
