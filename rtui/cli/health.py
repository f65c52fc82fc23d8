"""`rtui health`: how a server is, or all nodes of a cluster: once, every few seconds, out of a file, or since one."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli.connection import ConnectionOptions, Number, connection_options
from rtui.cli.options import format_option, log_option, registry_choice, registry_options
from rtui.cli.output import Output, failures_in
from rtui.registry.rules import Severity
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.findings.server import HealthThreshold

LINES: Final = "jsonl"
"""The samples themselves, a line each; the other formats interpret them."""

FORMATS: Final = ("text", "json", LINES, "md", "html", "prom", "sarif", "junit")

LEAST_WATCH_S: Final = 1.0
"""Samples at shorter intervals would cost the server more than 1 ms a second."""

ROUNDS: Final = 2
"""The samples of a single look: rates need two."""

_EPILOG: Final = """\
A sample is what the server says of itself: INFO, the slow log and its like, delays, clients and settings. It takes
less than 1 ms of the server's time a second. What the user may not ask is named in the sample; rtui acl --with health
--with settings prints a user who may, and with --cluster one for the nodes of a cluster.

\b
  rtui health prod:6379                                  what is wrong, and every figure
  rtui health prod:6379 --watch 5 -o samples.jsonl       a sample every five seconds, until Ctrl-C
  rtui health samples.jsonl -o page.html                 what was wrong then, with charts
  rtui health prod:6379 --since samples.jsonl            what has changed since then
  rtui health prod:6379 --watch 60 -o /metrics/rtui.prom for a textfile collector
  rtui open samples.jsonl                                the same file on the screen

\b
Formats
  text, json, md, html and prom say what the samples mean: figures with what is normal,
  and what is wrong, by the rules of rtui check --rules; sarif and junit have the findings
  alone. Rates take two samples: without --watch they are taken a second apart.
  jsonl is the samples themselves: a header, then an object a sample, with what was asked
  for it by its "sources"; what was asked earlier, such as settings, stays as it was.
  Without --format the ending of FILE says which; jsonl for any other. A new .jsonl is
  written line by line, any other file is replaced as a whole, with --watch each time,
  and keeps its permissions; a new one is readable by you only.

\b
Keys
  Rules that join a server and its keys, such as eviction-of-lasting, go by a report of
  the keys: that of --report, else the latest that rtui has kept of this server, if it was
  made within a day of the samples. The output says which.

\b
--fail-on, may be repeated
  error, warn              a finding of this severity or above
  'used_memory>4GiB'       a figure, by its id in json
  'used_memory>+20%'       its change since --since; 'hit_ratio<-5pt' of a share
  'new-findings>0'         since --since; also new-errors, grown-findings, gone-findings
  '10.0.0.5:7001 connected_clients>=1k'    of one node; else of any
  Units are k M G T, for bytes B KiB MiB GiB TiB, for times us ms s m h d.

\b
Exit codes
  0    each node has given a sample
  1    --fail-on found something
  2    the command line makes no sense, or a file can't be read
  3    --fail-on found nothing, but not all could be judged
  4    the server, or a node of the cluster, could not be reached
  5    the output can't be written
  130  Ctrl-C, also where that ends --watch; 143, 129 and 131: SIGTERM, SIGHUP and
       SIGQUIT
"""


def _fail_on(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[Severity | None, tuple[HealthThreshold, ...]]:
    """Read the severities, of which the least counts, and the thresholds; raises a usage error."""
    from rtui.analysis.findings.server import parse_threshold  # noqa: PLC0415 - the help must not wait
    from rtui.analysis.report.thresholds import FailOnError  # noqa: PLC0415
    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    severities = [one for one in (Severity.WARN, Severity.ERROR) if one.value in values]
    thresholds = []
    for value in values:
        if value in list(severities):
            continue
        try:
            thresholds.append(parse_threshold(value))
        except FailOnError as error:
            raise click.BadParameter(f"{display_text(value, limit=80)}: {error}", ctx, param) from None
    return (severities[0] if severities else None), tuple(thresholds)


@click.command("health", epilog=_EPILOG)
@connection_options
@click.option(
    "--watch",
    "every_s",
    type=Number(min=LEAST_WATCH_S),
    metavar="S",
    help="Ask every S seconds until Ctrl-C; a larger cluster takes longer.",
)
@format_option(FORMATS, "As what (by the ending of -o, else text; see below).")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a file.")
@click.option(
    "--report",
    "report_name",
    metavar="REPORT",
    help="What is known of the keys: a JSON report, TARGET@yesterday, latest (the latest kept), or none.",
)
@click.option(
    "--since",
    type=click.Path(path_type=Path),
    metavar="SAMPLES",
    help="Earlier samples: each figure then and now, and findings that are new, gone and still there.",
)
@click.option(
    "--fail-on",
    "fail_on",
    metavar="error|warn|EXPR",
    multiple=True,
    callback=_fail_on,
    help="From what on the exit code is 1, see below (never).",
)
@registry_options
@click.option("--mask", "is_masked", is_flag=True, help="Leave ids and addresses of clients out.")
@log_option
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    *,
    every_s: float | None,
    form: str | None,
    output: Path | None,
    report_name: str | None,
    since: Path | None,
    fail_on: tuple[Severity | None, tuple[HealthThreshold, ...]],
    is_masked: bool,
    log_file: Path | None,
    **asked: Any,
) -> None:
    """Say how a server is: memory, load, slow commands, persistence, replication, clients, settings.

    TARGET as for browsing, or a file of samples that this command has written.
    """
    from rtui.cli import files  # noqa: PLC0415 - the help must not wait for all this
    from rtui.cli.health_run import HealthRun, Judged, lines_to, views_of, written  # noqa: PLC0415

    whole = Output("-" if output is None else str(output))
    form, (severity, thresholds) = whole.form(form, FORMATS, LINES), fail_on
    if since is None and any(one.needs_earlier for one in thresholds):
        raise click.UsageError("A change, and a number of new or gone findings, need earlier samples: --since.")
    opened = None if len(connection.place) != 1 else files.samples_file(Path(connection.place[0]))
    if opened is not None and every_s is not None:
        raise click.UsageError("A file can't be watched.")
    target = connection.target() if opened is None else None
    if target is not None and target.dump is not None:
        raise click.UsageError("A dump has keys but no server whose health could be judged: rtui check is for keys.")
    judged = Judged(registry_choice(asked).load(target or Target()), severity=severity, thresholds=thresholds)
    if since is not None:
        judged.since = views_of(list(files.earlier_samples(since).nodes.values()), judged.registry)
    if opened is not None:
        judged.report = files.report_of_samples(report_name, opened)
    elif target is not None:
        judged.report = files.keys_report(report_name, target.label, target.db)
    with ExitStack() as stack:
        stack.enter_context(failures_in(whole, form, "health"))
        write = None
        if form == LINES:
            write = stack.enter_context(lines_to(None if whole.is_standard else output))
        else:
            whole.check()
        run = HealthRun(judged, write, is_masked=is_masked)

        def write_whole() -> None:
            if form != LINES:
                whole.write(written(form, judged))

        if target is None:
            assert opened is not None  # noqa: S101 - one of them there is
            code = run.read(opened)
        else:
            after_each = write_whole if every_s is not None and not whole.is_standard else lambda: None
            rounds = 1 if form == LINES else ROUNDS
            code = run.watch(target, every_s, log_file, after_each, rounds=rounds)
        write_whole()
    judgement = judged.exit_code()
    is_judged = judgement == ExitCode.FOUND and code == ExitCode.SERVER
    sys.exit(judgement if is_judged else code or judgement)
