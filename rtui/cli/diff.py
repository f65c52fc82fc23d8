"""`rtui diff`: compare two reports, with thresholds for CI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli.connection import FILE_NAME, WholeNumber
from rtui.cli.help import Command
from rtui.cli.options import registry_choice, registry_options, result_options
from rtui.cli.output import STANDARD_STREAM, Output, failures_in
from rtui.server.files import is_keys_file
from rtui.server.wire.errors import ExitCode

if TYPE_CHECKING:
    from rtui.analysis.formats.comparison import KeyFates
    from rtui.analysis.report.thresholds import FailOn

FORMATS: Final = ("text", "json", "md")


def _thresholds(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[FailOn, ...]:
    """Parse the thresholds; a usage error names the invalid one and says why."""
    from rtui.analysis.report.thresholds import FailOnError, parse_fail_on  # noqa: PLC0415
    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    found = []
    for value in values:
        try:
            found.append(parse_fail_on(value))
        except FailOnError as error:
            raise click.BadParameter(f"{display_text(value, limit=80)}: {error}", ctx, param) from None
    return tuple(found)


@click.command(
    "diff",
    cls=Command,
    notes="""\
A and B:
JSON reports (- for stdin), dumps (dump.rdb), or kept reports: TARGET@latest,
TARGET@yesterday, TARGET@2026-11-22 (UTC), TARGET@3 (its number in rtui
history).
""",
    examples=(
        "rtui diff prod:6379@yesterday prod:6379@latest",
        "rtui diff monday.rdb tuesday.rdb --fail-on 'memory>+20%'",
    ),
    codes={
        0: "no threshold is reached",
        1: "a threshold is reached",
        3: "none is reached, but not all could be judged",
        4: "",
    },
)
@click.argument("before", metavar="A", type=FILE_NAME)
@click.argument("after", metavar="B", type=FILE_NAME)
@click.option("--server-binary", "program", metavar="PATH", type=Path, help="The server that loads dumps.")
@click.option("--depth", metavar="N", type=WholeNumber(1, 64), help="Levels of namespaces (all).")
@result_options(*FORMATS)
@click.option(
    "--fail-on",
    "thresholds",
    metavar="EXPR",
    multiple=True,
    callback=_thresholds,
    help="Threshold (rtui help thresholds).",
)
@click.option(
    "--top",
    metavar="N",
    type=WholeNumber(1, 10_000),
    help="Rows of each kind (20; in JSON all).",
)
@registry_options
@click.help_option("--help")
def command(
    before: str,
    after: str,
    *,
    program: Path | None,
    depth: int | None,
    file: Output,
    thresholds: tuple[FailOn, ...],
    top: int | None,
    **asked: Any,
) -> None:
    """Compare two reports or dumps: keys, memory and share without TTL of namespaces, and findings.

    Two files of keys are compared key by key, too.
    """
    from rtui.analysis.findings.contents import compare_findings  # noqa: PLC0415
    from rtui.analysis.formats import written  # noqa: PLC0415
    from rtui.analysis.formats.comparison import DEFAULT_TOP, comparison_json, comparison_page  # noqa: PLC0415
    from rtui.analysis.report.comparison import compare  # noqa: PLC0415 - the help must not wait for it
    from rtui.analysis.report.thresholds import Outcome, judge  # noqa: PLC0415
    from rtui.cli.files import read_report  # noqa: PLC0415
    from rtui.server.wire.target import Target  # noqa: PLC0415

    if before == after == STANDARD_STREAM:
        raise click.UsageError("Only one of the reports can come from standard input.")
    are_keys = all(one != STANDARD_STREAM and is_keys_file(Path(one)) for one in (before, after))
    with failures_in(file, "diff"):
        registry = registry_choice(asked).load(Target())
        reports = read_report(before, program), read_report(after, program)
        keys = _compared_keys(Path(before), Path(after), top or DEFAULT_TOP) if are_keys else None
        diff, findings = compare(*reports), compare_findings(*reports, None if registry is None else registry.rules)
        judgements = [judge(threshold, diff, depth, findings.counted()) for threshold in thresholds]
        if file.form == "json":
            text = comparison_json(diff, judgements, findings=findings, keys=keys, depth=depth, top=top)
        else:
            page = comparison_page(diff, judgements, findings=findings, keys=keys, depth=depth, top=top or DEFAULT_TOP)
            text = written(page, file.form)
        file.write(text)
    for outcome, code in ((Outcome.REACHED, ExitCode.FOUND), (Outcome.UNKNOWN, ExitCode.UNKNOWN)):
        found = [one for one in judgements if one.outcome is outcome]
        for one in found:
            click.echo(f"rtui: {outcome}: {one.expression} ({one.why})", err=True)
        if found:
            sys.exit(code)


def _compared_keys(before: Path, after: Path, top: int) -> KeyFates:
    from rtui.server.analysis.keys_report import UnreadableKeysError, opened  # noqa: PLC0415 - imports Polars
    from rtui.table.keys_file import KeysFileError, compare_keys  # noqa: PLC0415

    try:
        return compare_keys(opened(before), opened(after), top)
    except KeysFileError as error:  # both were read already, so they have changed meanwhile
        raise UnreadableKeysError(after, error) from None
