"""`rtui patterns`: learn key patterns and draft a registry."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, WholeNumber, connection_options
from rtui.cli.help import Command
from rtui.cli.output import Output, failures_in
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.report.document import Report
    from rtui.registry.registry import Registry


@click.command(
    "patterns",
    cls=Command,
    examples=(
        "rtui patterns prod:6379 -o rtui.toml     write a draft",
        "rtui patterns --report report.json       from a report",
    ),
    codes={0: "the patterns are written", 130: "Ctrl-C; patterns seen so far are written"},
)
@connection_options
@opt.scope_options
@opt.result_options("text", "toml", "json")
@click.option(
    "--names",
    "most_names",
    metavar="N",
    type=WholeNumber(0, 4096),
    default=32,
    help="Names side by side with a pattern each (32).",
)
@click.option("--report", "report_name", metavar="FILE", help="From a JSON report, without a server.")
@opt.budget_option
@opt.workers_option
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(
    connection: ConnectionOptions, *, file: Output, most_names: int, report_name: str | None, **asked: Any
) -> None:
    """Learn the patterns of the keys and write a registry draft.

    Each pattern has types, TTLs and sizes as they were seen, with room to grow, and examples.
    """
    from rtui.cli.files import read_report  # noqa: PLC0415 - the help must not wait for it

    demo = opt.demo_choice(asked)
    with failures_in(file, "patterns", keeps_files=True):
        if report_name is not None:
            if demo or connection.place:
                raise click.UsageError("Give either a report or a server.")
            _write(read_report(report_name), file, most_names)
            return
        with opt.asked_server(Target() if demo else connection.target(takes_keys=True), demo) as target:
            sys.exit(_learn(target, asked, file, most_names))


def _learn(target: Target, asked: dict[str, Any], file: Output, most_names: int) -> int:
    from rtui.analysis.columns import parse_columns  # noqa: PLC0415
    from rtui.cli.run import analyse, command_log  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    asked |= {"pace": Pace(asked["pace"]), "registry": _naming_rules(asked["separators"])}
    with command_log(asked.pop("log_file")) as log:
        options = AnalysisOptions(**asked, columns=parse_columns("type,ttl,memory"))
        result = analyse(target, options, log=log)
    code = result.exit_code()
    if result.report is not None:
        _write(result.report, file, most_names)
    return code


def _naming_rules(separators: tuple[bytes, ...]) -> Registry | None:
    """Return a registry without patterns, so that the pass counts the names that break rules."""
    from rtui.registry.load import read_registry  # noqa: PLC0415 - the help must not wait for it

    try:
        return read_registry(f"separators = {json.dumps([one.decode() for one in separators])}")
    except UnicodeDecodeError:
        return None


def _write(report: Report, file: Output, most_names: int) -> None:
    from rtui.analysis.formats import learnt_patterns as forms  # noqa: PLC0415 - the help must not wait for it
    from rtui.analysis.formats.text import table_text  # noqa: PLC0415

    head = report.head
    learnt = forms.learnt_patterns(report.summary.root, head.scope.separators, most_names)
    if file.form == "toml":
        file.write(forms.write_registry(head, learnt, _errors(report)))
    elif file.form == "json":
        file.write(forms.write_patterns_json(head, learnt))
    else:
        file.write(table_text(forms.patterns_table(head, learnt), **{"width": None, **file.text_options}))


def _errors(report: Report) -> list[str]:
    from rtui.analysis.findings.contents import findings  # noqa: PLC0415 - only a draft needs it
    from rtui.registry.rules import Severity  # noqa: PLC0415

    return sorted({one.rule for one in findings(report, None).at_least(Severity.ERROR)})
