"""`rtui slot`: hash slots of keys, their nodes, and a hash tag that keys could share."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rtui.cli.connection import ConnectionOptions, connection_options
from rtui.cli.help import Command
from rtui.cli.options import result_options, separator_option
from rtui.cli.output import Output, failures_in, writes_unicode
from rtui.keyspace.slots import SLOTS, SlotExplanation, explain
from rtui.keyspace.text.display import Display, EscapeSyntaxError, SafeText, quoted, unescape
from rtui.keyspace.text.segments import Separators
from rtui.server.wire.errors import ExitCode

if TYPE_CHECKING:
    from rtui.analysis.report.tables.slots import CommonTag
    from rtui.server.deployment.nodes import Deployment
    from rtui.server.wire.target import Target


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a slot by a server."""

    text: SafeText
    node: SafeText | None = None
    """`host:port` of it; None where no node does, or nobody knows."""
    moves_to: SafeText | None = None


@click.command(
    "slot",
    cls=Command,
    examples=("rtui slot 'user:{42}:cart'", "rtui slot -h prod user:42:profile cart:42"),
    codes={0: "the keys share a slot, or it is one key", 1: "the keys do not share a slot"},
)
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@partial(connection_options, arguments=None)
@separator_option
@result_options("text", "json", is_older=True)
@click.option("--quoted", "escaped", is_flag=True, help=r"Resolve \xNN, \n, \" in KEY.")
@click.help_option("--help")
def command(
    keys: tuple[str, ...], connection: ConnectionOptions, *, separators: tuple[bytes, ...], file: Output, escaped: bool
) -> None:
    """Print the hash slot of each KEY, and why it is that one.

    With several keys, say whether a cluster accepts them in one multi-key command, and if not, which hash tag would
    allow that. No server is asked unless -u, -h, -p, -s or --profile names one; then the node of each slot is named,
    and where a slot is being moved to.
    """
    names = _names(keys, escaped=escaped)
    explained = [explain(name) for name in names]
    slots = {one.slot for one in explained}
    with failures_in(file, "slot"):
        owners = _owners(connection.target(), slots) if connection.names_server({}) else {}
        common = None
        if len(slots) > 1:
            from rtui.analysis.report.tables.slots import common_tag  # noqa: PLC0415 - not for a single key

            common = common_tag(names, Separators(separators))
    if file.form == "json":
        file.write(f"{json.dumps(slot_document(names, owners, common), indent=2)}\n")
    else:
        display = Display(ascii_only=file.is_standard and not writes_unicode())
        paragraphs = [_paragraph(name, one, owners, display) for name, one in zip(names, explained, strict=True)]
        if len(names) > 1:
            paragraphs.append(_together(slots, owners))
        if len(slots) > 1:
            paragraphs.append(_tag_paragraph(common, display))
        file.write("\n\n".join(paragraphs) + "\n")
    if len(slots) > 1:
        sys.exit(ExitCode.FOUND)


def _names(keys: Sequence[str], *, escaped: bool) -> list[bytes]:
    try:
        return [unescape(os.fsencode(key)) if escaped else os.fsencode(key) for key in keys]
    except EscapeSyntaxError as error:
        raise click.BadParameter(str(error), param_hint="KEY") from error


def _owners(target: Target, slots: set[int]) -> dict[int, Owner]:
    import asyncio  # noqa: PLC0415 - most ask no server

    return asyncio.run(_ask_owners(target, slots))


async def _ask_owners(target: Target, slots: set[int]) -> dict[int, Owner]:
    from rtui.server.deployment.nodes import Deployment  # noqa: PLC0415 - most ask no server

    deployment = Deployment(target)
    try:
        await deployment.open()
        return await owners_of(deployment, slots)
    finally:
        await deployment.close()


async def owners_of(deployment: Deployment, slots: set[int]) -> dict[int, Owner]:
    """Return the owners of slots by an open deployment; raises ConnectionLost."""
    topology = deployment.topology
    if topology is None:
        is_node = deployment.home.server.cluster_enabled
        why = "unknown: only this node was asked" if is_node else "none: the server is in no cluster"
        return dict.fromkeys(slots, Owner(SafeText(why)))
    found = {slot: topology.owners.get(slot) for slot in slots}
    moves = await deployment.moves_of({node_id for node_id in found.values() if node_id is not None})
    targets = {move.slot: deployment.label_of(move.destination) for move in moves}
    labels = {slot: None if node_id is None else deployment.label_of(node_id) for slot, node_id in found.items()}
    return {slot: _owner(node, targets.get(slot)) for slot, node in labels.items()}


def _owner(node: SafeText | None, moves_to: SafeText | None) -> Owner:
    if not node:
        return Owner(SafeText("none: no node of the cluster serves the slot"))
    text = f"{node}, from which the slot is being moved to {moves_to}" if moves_to else node
    return Owner(SafeText(text), node, moves_to or None)


def _paragraph(name: bytes, explanation: SlotExplanation, owners: Mapping[int, Owner], display: Display) -> str:
    size = f"{len(name):,} {'byte' if len(name) == 1 else 'bytes'}"
    hashed = f"the whole key, {size}"
    if explanation.tag is not None:
        tag = display.name(explanation.hashed, limit=64)
        hashed = f"{tag} ({len(explanation.hashed):,} of {size}"
        hashed += f", between the {{ at offset {explanation.tag.start:,} and the }} at {explanation.tag.end - 1:,})"
    lines = [
        display.name(name) or "(the empty key)",
        f"  slot    {explanation.slot} = CRC16 0x{explanation.crc:04x} mod {SLOTS}",
        f"  hashed  {hashed}",
        f"  why     {explanation.rule.value}",
    ]
    owner = owners.get(explanation.slot)
    if owner is not None:
        lines.append(f"  node    {display.text(owner.text)}")
    return "\n".join(lines)


def _together(slots: set[int], owners: Mapping[int, Owner]) -> str:
    from rtui.analysis.report.tables.slots import verdict  # noqa: PLC0415 - not for a single key

    nodes = {owners[slot].node for slot in slots} if owners else set()
    return verdict(slots, () if None in nodes else {node for node in nodes if node is not None})


def _tag_paragraph(common: CommonTag | None, display: Display) -> str:
    from rtui.analysis.report.tables.slots import NO_COMMON_TAG  # noqa: PLC0415 - not for a single key

    if common is None:
        return NO_COMMON_TAG
    return "\n".join([display.text(common.sentence), *(f"  {display.name(name)}" for name in common.names)])


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def slot_document(names: Sequence[bytes], owners: Mapping[int, Owner], common: CommonTag | None) -> dict[str, Any]:
    """Return keys with their slots and owners, and the tag that they could share, for JSON."""
    explained = [explain(name) for name in names]
    return {
        "keys": [_record(name, one, owners) for name, one in zip(names, explained, strict=True)],
        "same_slot": len({one.slot for one in explained}) == 1,
        "common_tag": _tag_record(common),
    }


def _record(name: bytes, explanation: SlotExplanation, owners: Mapping[int, Owner]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "key": _text(name),
        "key_quoted": quoted(name),
        "slot": explanation.slot,
        "crc16": f"0x{explanation.crc:04x}",
        "hashed": _text(explanation.hashed),
        "hashed_quoted": quoted(explanation.hashed),
        "tag": None if explanation.tag is None else explanation.tag._asdict(),
        "rule": explanation.rule.name.lower(),
        "why": explanation.rule.value,
    }
    owner = owners.get(explanation.slot)
    return found if owner is None else found | {"node": owner.node, "moving_to": owner.moves_to}


def _tag_record(common: CommonTag | None) -> dict[str, Any] | None:
    if common is None:
        return None
    return {
        "tag": _text(common.tag),
        "tag_quoted": quoted(common.tag),
        "slot": common.slot,
        "keys": [_text(name) for name in common.names],
        "keys_quoted": [quoted(name) for name in common.names],
    }
