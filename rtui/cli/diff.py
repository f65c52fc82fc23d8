"""`rtui diff`: what grew, shrank, came and went between two reports, with thresholds for CI."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli.connection import WholeNumber
from rtui.cli.options import format_option, output_option, registry_choice, registry_options
from rtui.cli.output import STANDARD_STREAM, Output, failures_in
from rtui.server.wire.errors import ExitCode

if TYPE_CHECKING:
    from rtui.analysis.report.thresholds import FailOn

_EPILOG: Final = """\
A and B are JSON reports, - for standard input, or reports that rtui has kept: TARGET@latest, TARGET@yesterday,
TARGET@2026-11-22 (UTC), TARGET@3 (by its number in rtui history). Numbers of an estimate changed only where the
intervals of both reports do not overlap; a partial report counts as at least so much; what was denied is unknown.

\b
Thresholds
  --fail-on 'memory>+20%'                 all keys take a fifth more than before
  --fail-on 'shop:session: keys>+10000'   so many more keys in a namespace
  --fail-on 'no-ttl>+5pt'                 the share of keys that never expire
  --fail-on 'keys<-50%'                   half of the keys are gone
  --fail-on 'memory>4GiB'                 what B has, whatever A had
  --fail-on 'new-namespaces>0'
  --fail-on 'new-errors>0'                a rule finds an error where it found nothing before

\b
  [NAMESPACE] MEASURE COMPARISON NUMBER[UNIT]
    NAMESPACE   as the comparison shows it; all keys without one
    MEASURE     keys, memory, no-ttl (share of keys that never expire),
                new-namespaces, gone-namespaces (below NAMESPACE, down to --depth;
                what lies within a new one is not counted again),
                new-findings, new-errors, grown-findings, gone-findings (of all keys)
    COMPARISON  > >= < <=
    NUMBER      with a sign the change from A to B, else what B has
    UNIT        %, pt (percentage points, for a change of no-ttl); k M G T for keys
                (thousands); B KiB MiB GiB TiB for memory, which needs a unit
                (K and KB mean KiB, and so on: 1 KiB is 1,024 bytes)

\b
  A namespace or finding is listed as grown or shrunk from 1 % on.

\b
Findings
  Both reports are judged by the same rules, those of rtui check, with the severities and
  parameters of the registry. Rules that need what only one of the reports has are not
  compared; a finding that a partial report may have missed may be new.

\b
Exit codes
  0  no threshold is reached
  1  one is reached; all are named, with what it is
  2  the command line makes no sense, or a file can't be read
  3  none is reached, but one can't be judged: it was denied, is within the interval
     of an estimate, may be more in a partial report, or no namespace is called so
  5  the output can't be written
"""


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


@click.command("diff", epilog=_EPILOG)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--depth", metavar="N", type=WholeNumber(1, 64), help="Levels of namespaces to list and count (all).")
@format_option(FORMATS)
@output_option
@click.option(
    "--fail-on",
    "thresholds",
    metavar="EXPR",
    multiple=True,
    callback=_thresholds,
    help="A threshold, see below; may be repeated.",
)
@click.option(
    "--top",
    metavar="N",
    type=WholeNumber(1, 10_000),
    help="Namespaces and findings listed of each kind of change (20; all in JSON).",
)
@registry_options
@click.help_option("--help")
def command(
    before: str,
    after: str,
    *,
    depth: int | None,
    form: str | None,
    output: str,
    thresholds: tuple[FailOn, ...],
    top: int | None,
    **asked: Any,
) -> None:
    """Compare two reports: keys, bytes and the share without TTL of every namespace, and what is wrong."""
    from rtui.analysis.findings.contents import compare_findings  # noqa: PLC0415
    from rtui.analysis.formats import written  # noqa: PLC0415
    from rtui.analysis.formats.comparison import DEFAULT_TOP, comparison_json, comparison_page  # noqa: PLC0415
    from rtui.analysis.report.comparison import compare  # noqa: PLC0415 - the help must not wait for it
    from rtui.analysis.report.thresholds import Outcome, judge  # noqa: PLC0415
    from rtui.cli.files import read_report  # noqa: PLC0415
    from rtui.server.wire.target import Target  # noqa: PLC0415

    if before == after == STANDARD_STREAM:
        raise click.UsageError("Only one of the reports can come from standard input.")
    file = Output(output)
    form = file.form(form, FORMATS)
    file.check()
    with failures_in(file, form, "diff"):
        registry = registry_choice(asked).load(Target())
        reports = read_report(before), read_report(after)
        diff, findings = compare(*reports), compare_findings(*reports, None if registry is None else registry.rules)
        judgements = [judge(threshold, diff, depth, findings.counted()) for threshold in thresholds]
        if form == "json":
            text = comparison_json(diff, judgements, findings=findings, depth=depth, top=top)
        else:
            page = comparison_page(diff, judgements, findings=findings, depth=depth, top=top or DEFAULT_TOP)
            text = written(page, form)
        file.write(text)
    for outcome, code in ((Outcome.REACHED, ExitCode.FOUND), (Outcome.UNKNOWN, ExitCode.UNKNOWN)):
        found = [one for one in judgements if one.outcome is outcome]
        for one in found:
            click.echo(f"rtui: {outcome}: {one.expression} ({one.why})", err=True)
        if found:
            sys.exit(code)
