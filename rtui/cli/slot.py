"""`rtui slot`: the hash slot of keys and why, without a server."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from rtui.keyspace.slots import SLOTS, SlotExplanation, explain
from rtui.keyspace.text.display import Display, EscapeSyntaxError, quoted, unescape


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
    names = []
    for key in keys:
        try:
            names.append(unescape(os.fsencode(key)) if escaped else os.fsencode(key))
        except EscapeSyntaxError as error:
            raise click.BadParameter(str(error), param_hint="KEY") from error
    explained = [explain(name) for name in names]
    slots = {one.slot for one in explained}
    if as_json:
        records = [_record(name, one) for name, one in zip(names, explained, strict=True)]
        click.echo(json.dumps({"keys": records, "same_slot": len(slots) == 1}, indent=2))
    else:
        display = Display(ascii_only=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8")
        click.echo("\n\n".join(_paragraph(name, one, display) for name, one in zip(names, explained, strict=True)))
        if len(names) > 1 and len(slots) == 1:
            click.echo(f"\nTogether: yes. All lie in slot {explained[0].slot}, so one multi-key command may use them.")
        elif len(names) > 1:
            click.echo(
                f"\nTogether: no. They lie in {len(slots):,} slots, and a cluster refuses one command across slots "
                "(CROSSSLOT). Keys with the same {tag} share a slot."
            )
    if len(slots) > 1:
        sys.exit(1)


def _paragraph(name: bytes, explanation: SlotExplanation, display: Display) -> str:
    size = f"{len(name):,} {'byte' if len(name) == 1 else 'bytes'}"
    hashed = f"the whole key, {size}"
    if explanation.tag is not None:
        tag = display.name(explanation.hashed, limit=64)
        hashed = f"{tag} ({len(explanation.hashed):,} of {size}"
        hashed += f", between the {{ at offset {explanation.tag.start:,} and the }} at {explanation.tag.end - 1:,})"
    return "\n".join(
        (
            display.name(name) or "(the empty key)",
            f"  slot    {explanation.slot} = CRC16 0x{explanation.crc:04x} mod {SLOTS}",
            f"  hashed  {hashed}",
            f"  why     {explanation.rule.value}",
        )
    )


def _record(name: bytes, explanation: SlotExplanation) -> dict[str, Any]:
    """Return a key for JSON: as text (null if it is not UTF-8), and as `redis-cli --quoted-input` reads it."""

    def text(raw: bytes) -> str | None:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None

    return {
        "key": text(name),
        "key_quoted": quoted(name),
        "slot": explanation.slot,
        "crc16": f"0x{explanation.crc:04x}",
        "hashed": text(explanation.hashed),
        "hashed_quoted": quoted(explanation.hashed),
        "tag": None if explanation.tag is None else explanation.tag._asdict(),
        "rule": explanation.rule.name.lower(),
        "why": explanation.rule.value,
    }
