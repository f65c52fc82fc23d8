"""The hash slot of a key and why it is that one."""

from __future__ import annotations

from rtui.keyspace.display import SafeText
from rtui.keyspace.slot import SLOTS, SlotExplanation, TagRule, explain
from rtui.tui.ink import Line, Role, Span, cut_middle, gap, own
from rtui.tui.lines.facts_grid import MARGIN, Fact, prose, single_line
from rtui.tui.shown import display


def slot_lines(key: bytes, width: int) -> list[Line]:
    """Return the slot, the bytes that were hashed, and the rule, for a panel of this width."""
    found = explain(key)
    lines: list[Line] = [
        (),
        single_line(Fact(own("slot"), SafeText(str(found.slot)), Role.STRONG), width),
        single_line(Fact(own(""), SafeText(f"= CRC16 0x{found.crc:04x} mod {SLOTS}"), Role.MUTED), width),
        (),
        _key_line(key, found, width),
    ]
    if found.tag_start is not None and found.tag_end is not None:
        where = SafeText(f"bytes {found.tag_start:,} to {found.tag_end - 1:,}, braces included")
        lines.append(single_line(Fact(own("tag"), where), width))
    lines.append(single_line(Fact(own("length"), _how_much(found, key)), width))
    lines += [(), *prose(SafeText(f"{found.rule.value[0].upper()}{found.rule.value[1:]}."), width, Role.TEXT)]
    if found.rule is TagRule.TAG:
        lines += prose(
            own("Keys with this tag share the slot: a cluster takes them in one command."), width, Role.MUTED
        )
    return lines


def _how_much(found: SlotExplanation, key: bytes) -> SafeText:
    """Say how many of the bytes are hashed."""
    part = "all" if len(found.hashed) == len(key) else f"{len(found.hashed):,} of"
    return SafeText(f"{part} {len(key):,} bytes hashed")


def _key_line(key: bytes, found: SlotExplanation, width: int) -> Line:
    """Return what is hashed, in its place within the key."""
    room = width - 2 * MARGIN - 10
    label = Span(own("hashed    "), Role.MUTED)
    if found.rule is not TagRule.TAG or found.tag_start is None or found.tag_end is None:
        whole = display(key, limit=room) if key else own("(empty)")
        return (gap(MARGIN), label, Span(cut_middle(whole, room), Role.ACCENT))
    inside = cut_middle(display(found.hashed, limit=max(room // 2, 8)), room // 2)
    side = max((room - len(inside) - 2) // 2, 2)
    before = _end_of(key[: found.tag_start], side)
    after = key[found.tag_end :]
    behind = display(after, limit=side) if after else own("")
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
        return own("")
    return cut_middle(display(raw, limit=max(cells, 8)), cells)
