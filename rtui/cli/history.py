"""`rtui history`: the reports of earlier passes that are kept, of one server or of all."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli.arguments import WholeNumber
from rtui.cli.connection import ConnectionOptions, connection_options
from rtui.cli.options import appearance_options, format_option, require_terminal
from rtui.server.options import BrowseOptions

if TYPE_CHECKING:
    from rtui.server.analysis.kept_reports import KeptReport, KeptReports

_EPILOG: Final = """\
Each analysis that ends, on screen or by rtui report, is kept unless --no-keep is given: up to 30 reports and 64 MiB
of a server and database, of 50 of them. Beyond that the oldest go, but the first of each day goes last. The files are
JSON reports compressed with gzip, and readable by you only; they can be deleted like any others. Findings
are those that rtui check lists without a registry.

\b
  rtui history prod:6379                             list them, with the path of each
  rtui history prod:6379 --open 3                    show the third of the list
  rtui diff prod:6379@yesterday prod:6379@latest     compare two
"""


@click.command("history", epilog=_EPILOG)
@connection_options
@format_option(("text", "json"), "As what (text).")
@click.option("--open", "number", type=WholeNumber(1), metavar="N", help="Show the report of this number.")
@appearance_options
def command(
    connection: ConnectionOptions, form: str | None, number: int | None, ascii_only: bool, theme: str | None
) -> None:
    """List the reports that rtui has kept, the newest first; no server is asked.

    TARGET as for browsing; without one, all servers. The exit code is 2 where --open names no report.
    """
    from rtui.cli.files import read_report  # noqa: PLC0415 - the help must not wait for it
    from rtui.keyspace.text.display import display_text  # noqa: PLC0415
    from rtui.server.analysis.kept_reports import KeptReports, NotKeptError, all_kept  # noqa: PLC0415

    if connection.names_server() or connection.db is not None:
        target = connection.target()
        found = [KeptReports(target.label, target.db)]
    elif number is not None:
        raise click.UsageError("Name the server whose report is to be opened.")
    else:
        found = all_kept()
    now_s = time.time()
    if number is None:
        (_print_json if form == "json" else _print_text)(found, now_s)
        for unreadable in (path for kept in found for path in kept.unreadable):
            click.echo(f"rtui: {display_text(str(unreadable))} can't be read, and can be deleted", err=True)
        return
    try:
        path = found[0].find(str(number), now_s)
    except NotKeptError as error:
        raise click.UsageError(str(error)) from None
    report = read_report(str(path))
    require_terminal("a report is shown on one")
    options = BrowseOptions(ascii_only=ascii_only, theme=theme, no_color=bool(os.environ.get("NO_COLOR")))
    from rtui.tui.run import run_report  # noqa: PLC0415

    sys.exit(run_report(report, options))


def _print_json(found: list[KeptReports], now_s: float) -> None:
    from rtui.analysis.formats.json import json_value  # noqa: PLC0415

    entries = [json_value(_entry(one, now_s)) for kept in found for one in kept.reports()]
    click.echo(json.dumps(entries, indent=1))


def _entry(one: KeptReport, now_s: float) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 - the help must not wait for it

    head = one.head
    coverage, scope = head.coverage, head.scope
    return {
        "server": head.server.label,
        "db": head.server.db,
        "number": one.number,
        "path": os.fsencode(one.file.path),
        "made_at_s": head.made_at_s,
        "age_s": max(0.0, now_s - head.made_at_s),
        "run_id": head.server.run_id,
        "coverage": coverage.kind.value,
        "keys": msgspec.to_builtins(one.stats.keys),
        "memory_bytes": msgspec.to_builtins(one.stats.memory_bytes),
        "match": scope.match,
        "type": scope.key_type,
        "findings": None if one.findings is None else {severity.value: n for severity, n in one.findings.items()},
        "notes": [note for note in (coverage.reason, *head.notes) if note],
        "file_bytes": one.file.size_bytes,
    }


def _print_text(found: list[KeptReports], now_s: float) -> None:
    """Print each server with its folder, then a line for each report."""
    is_empty = True
    for kept in found:
        listed = list(kept.reports())
        if listed:
            if not is_empty:
                click.echo()
            _print_server(kept, listed, now_s)
            is_empty = False
    if is_empty:
        click.echo("No report is kept: each analysis that ends is, unless --no-keep is given.", err=True)


def _print_server(kept: KeptReports, listed: list[KeptReport], now_s: float) -> None:
    from rtui.analysis import humanize  # noqa: PLC0415
    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    server = listed[0].head.server
    taken = humanize.size(sum(one.file.size_bytes for one in listed))
    click.echo(
        f"{display_text(server.label)} db{server.db} · {humanize.counted(len(listed), 'report')}, {taken} in "
        f"{display_text(str(kept.folder))}"
    )
    rows = [_cells(one, now_s) for one in listed]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    is_right = (True, False, True, True, True, False, False, False)
    for row in rows:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_right, strict=True)
        )
        click.echo("  " + "  ".join(cells).rstrip())


def _cells(one: KeptReport, now_s: float) -> tuple[str, ...]:
    """Return number, time, age, keys, bytes, findings, coverage with what else is to know, and file of a report."""
    from rtui.analysis import humanize  # noqa: PLC0415
    from rtui.analysis.report.document import CoverageKind  # noqa: PLC0415
    from rtui.analysis.report.tables.table import COVERAGE_MARKS  # noqa: PLC0415
    from rtui.keyspace.text.display import display, display_text  # noqa: PLC0415

    head, stats = one.head, one.stats
    mark = COVERAGE_MARKS[head.coverage.kind]
    memory = "–" if stats.memory_bytes is None else humanize.written(stats.memory_bytes, humanize.size, mark)
    told = [head.coverage.kind.value]
    if head.coverage.kind is CoverageKind.PARTIAL and head.coverage.fraction is not None:
        told[0] += f", {humanize.share(head.coverage.fraction)} seen"
    for word, raw in (("match", head.scope.match), ("type", head.scope.key_type)):
        if raw is not None:
            told.append(f"{word} {display(raw, limit=40)}")
    return (
        str(one.number),
        str(humanize.moment(head.made_at_s)),
        f"{humanize.duration(round(max(0.0, now_s - head.made_at_s) * 1000))} ago",
        f"{humanize.written_keys(stats.keys, mark)} keys",
        str(memory),
        _findings_text(one),
        ", ".join(told),
        str(display_text(one.file.path.name)),
    )


def _findings_text(one: KeptReport) -> str:
    """Return how much is wrong by a report: `2 errors, 14 warnings`."""
    from rtui.analysis import humanize  # noqa: PLC0415
    from rtui.registry.rules import Severity  # noqa: PLC0415

    if one.findings is None:
        return humanize.NOTHING
    words = {Severity.ERROR: "error", Severity.WARN: "warning"}
    return (
        ", ".join(humanize.counted(number, words[of]) for of, number in one.findings.items() if number)
        or "nothing wrong"
    )
