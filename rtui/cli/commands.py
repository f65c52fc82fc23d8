"""`rtui commands`: everything that rtui may send to a server, with bounds, cost and why it is safe."""

from __future__ import annotations

import json
from itertools import groupby

import click

from rtui.server.guard.acl import OLDEST
from rtui.server.guard.closed_list import SETTINGS, TABLE
from rtui.server.guard.command import MAX_BULK_KEY_BYTES
from rtui.server.guard.spec import FIRST_VALKEY, KEY, MAX_REQUEST_BYTES, CommandGroup, Spec, Version, format_bytes

TOUCHES = "†"
"""Marks commands that count as a use of the key."""

CONSENT = "§"
"""Marks commands that change something in the server."""

BULK = "‡"
"""Marks commands that may be sent for many keys at once."""


def _version(version: Version | None) -> str | None:
    return None if version is None else ".".join(map(str, version))


def _record(spec: Spec) -> dict[str, object]:
    return {
        "command": spec.name,
        "usage": spec.usage,
        "group": spec.group.value,
        "bounds": list(spec.bounds),
        "cost": spec.cost,
        "why": spec.why,
        "acl": spec.acl_rule,
        "since_redis": _version(spec.since),
        "since_valkey": _version(spec.since_valkey),
        "touches": spec.touches,
        "counts": spec.counts,
        "optional": not spec.is_required,
        "bulk": spec.in_bulk,
        "consent": spec.needs_consent,
        "evidence": None if spec.evidence is None else spec.evidence.words,
        "settings": list(SETTINGS) if spec.group is CommandGroup.SETTINGS else None,
    }


def _print_table(specs: list[Spec]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only here, so that --json starts fast
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold")
    table.add_column("command and bounds", ratio=11)
    table.add_column("at worst", ratio=9)
    table.add_column("why it is safe", ratio=9)
    for group, members in groupby(specs, key=lambda spec: spec.group):
        table.add_row(Text(group.value.upper(), style="underline"))
        for spec in members:
            first = Text(spec.usage.replace("|", " | "), style="bold")
            for mark, applies in ((TOUCHES, spec.touches), (BULK, spec.in_bulk), (CONSENT, spec.needs_consent)):
                first.append(f" {mark}" if applies else "", "not bold")
            details = [bound for bound in spec.bounds if bound not in KEY.bounds]
            if spec.evidence is not None:
                details.append(f"only when known: {spec.evidence.words}")
            if spec.since is None:
                details.append(f"since Valkey {_version(spec.since_valkey)}")
            elif spec.since >= OLDEST["redis"]:
                valkey = "" if spec.since_valkey in (None, FIRST_VALKEY) else f", Valkey {_version(spec.since_valkey)}"
                details.append(f"since Redis {_version(spec.since)}{valkey}")
            for detail in details:
                first.append(f"\n{detail}", style="not bold dim")
            table.add_row(first, Text(spec.cost), Text(spec.why))
    console = Console(highlight=False, emoji=False, markup=False)
    console.print(table)
    console.print(f"{TOUCHES} counts as a use of the key unless CLIENT NO-TOUCH is on (Redis 7.2, Valkey)")
    console.print(f"{BULK} may be sent for many keys in one write, each key ≤ {format_bytes(MAX_BULK_KEY_BYTES)}")
    console.print(f"{CONSENT} changes something in the server, and is sent only after the user has agreed to it")
    if any(spec.group is CommandGroup.SETTINGS for spec in specs):
        console.print(f"a setting is one of {', '.join(SETTINGS)}")
    console.print(f"every {', '.join(KEY.bounds)}, every request ≤ {format_bytes(MAX_REQUEST_BYTES)}")


@click.command("commands")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document instead of a table.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    type=click.Choice([group.value for group in CommandGroup], case_sensitive=False),
    help="Only commands of this group. May be repeated.",
)
def command(*, as_json: bool, groups: tuple[str, ...]) -> None:
    """Print the closed list of commands that rtui may send.

    Nothing else can be sent: every request is built from this list, and the bounds are checked each time.
    """
    wanted = set(map(CommandGroup, groups)) or set(CommandGroup)
    order = list(CommandGroup).index
    specs = sorted((spec for spec in TABLE if spec.group in wanted), key=lambda spec: order(spec.group))
    if as_json:
        click.echo(json.dumps([_record(spec) for spec in specs], ensure_ascii=False, indent=2))
    else:
        _print_table(specs)
