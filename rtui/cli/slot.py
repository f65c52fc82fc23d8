"""`rtui slot`: the hash slot of keys and why, without a server."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from rtui.keyspace.slots import SLOTS, SlotExplanation, explain
from rtui.keyspace.text.display import Display, EscapeSyntaxError, quoted, unescape

_DIFFERENT_SLOTS = 1
"""Exit code where several keys do not share a slot."""


@click.command("slot")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, in ASCII.")
@click.option("--quoted", "escaped", is_flag=True, help=r"Resolve \xNN, \n, \" and the like in every KEY.")
@click.help_option("--help")
def command(keys: tuple[str, ...], as_json: bool, escaped: bool) -> None:
    """Say which of the 16,384 hash slots each KEY belongs to, and why.

    With several keys, say too whether a cluster accepts them in one multi-key command. The exit code is 0 if they share
    a slot, or if there is one key only, and 1 if they do not.

    No server is asked.
    """
    names = [_bytes_of(key, escaped=escaped) for key in keys]
    explained = [explain(name) for name in names]
    slots = sorted({explanation.slot for explanation in explained})
    if as_json:
        click.echo(json.dumps(_document(names, explained), indent=2))
    else:
        display = Display(ascii_only=not _speaks_unicode())
        click.echo("\n\n".join(_paragraph(*pair, display) for pair in zip(names, explained, strict=True)))
        if len(names) > 1:
            click.echo(f"\n{_verdict(slots)}")
    if len(slots) > 1:
        raise SystemExit(_DIFFERENT_SLOTS)


def _bytes_of(key: str, *, escaped: bool) -> bytes:
    """Return the very bytes that were given to the process, escapes resolved where that was asked for."""
    raw = os.fsencode(key)
    if not escaped:
        return raw
    try:
        return unescape(raw)
    except EscapeSyntaxError as error:
        raise click.BadParameter(str(error), param_hint="KEY") from error


def _speaks_unicode() -> bool:
    """Tell whether standard output can carry any character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _paragraph(name: bytes, explanation: SlotExplanation, display: Display) -> str:
    """Return the lines for one key, for people."""
    hashed = f"the whole key, {_bytes(len(name))}"
    if explanation.tag_start is not None and explanation.tag_end is not None:
        tag = display.name(explanation.hashed, limit=64)
        hashed = f"{tag} ({len(explanation.hashed):,} of {_bytes(len(name))}"
        hashed += f", between the {{ at offset {explanation.tag_start:,} and the }} at {explanation.tag_end - 1:,})"
    return "\n".join(
        (
            display.name(name) or "(the empty key)",
            f"  slot    {explanation.slot} = CRC16 0x{explanation.crc:04x} mod {SLOTS}",
            f"  hashed  {hashed}",
            f"  why     {explanation.rule.value}",
        )
    )


def _bytes(count: int) -> str:
    """Return a number of bytes in words."""
    return f"{count:,} byte" if count == 1 else f"{count:,} bytes"


def _verdict(slots: Sequence[int]) -> str:
    """Return the line on using the keys together."""
    if len(slots) == 1:
        return f"Together: yes. All lie in slot {slots[0]}, so one multi-key command may use them."
    return (
        f"Together: no. They lie in {len(slots):,} slots, and a cluster refuses one command across slots (CROSSSLOT). "
        "Keys with the same {tag} share a slot."
    )


def _document(names: Sequence[bytes], explained: Sequence[SlotExplanation]) -> dict[str, Any]:
    """Return the JSON object: every key with its slot, and whether they share it."""
    return {
        "keys": [_record(*pair) for pair in zip(names, explained, strict=True)],
        "same_slot": len({explanation.slot for explanation in explained}) == 1,
    }


def _record(name: bytes, explanation: SlotExplanation) -> dict[str, Any]:
    """Return one key for JSON: as text (null if it is no UTF-8) and as `redis-cli --quoted-input` reads it."""
    tag = None
    if explanation.tag_start is not None:
        tag = {"start": explanation.tag_start, "end": explanation.tag_end}
    return {
        "key": _text(name),
        "key_quoted": quoted(name),
        "slot": explanation.slot,
        "crc16": f"0x{explanation.crc:04x}",
        "hashed": _text(explanation.hashed),
        "hashed_quoted": quoted(explanation.hashed),
        "tag": tag,
        "rule": explanation.rule.name.lower(),
        "why": explanation.rule.value,
    }


def _text(raw: bytes) -> str | None:
    """Return UTF-8 as text; JSON in ASCII escapes whatever is in it."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
