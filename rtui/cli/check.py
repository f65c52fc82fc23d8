"""`rtui check`: list problems of keys, and of servers on request, by rules; exit codes for CI."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, connection_options
from rtui.cli.help import Command
from rtui.cli.output import Output, failures_in
from rtui.keyspace.text.matching import did_you_mean
from rtui.registry.rules import FAMILIES, RULES, Rule, Severity
from rtui.server.user.ending_signals import EndedBySignal
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtui.analysis.findings.finding import Found
    from rtui.analysis.formats.findings import SourcePlace
    from rtui.analysis.report.document import Report
    from rtui.analysis.report.members import ReferenceChecks
    from rtui.cli.run import Follow
    from rtui.registry.registry import Registry
    from rtui.server.wire.command_log import CommandLog

FORMATS: Final = ("text", "json", "md", "sarif", "junit")
ALL_RULES: Final = "all"


def rules_text(chosen: str) -> str:
    if chosen == ALL_RULES:
        return "\n".join(
            f"{heading}\n\n{''.join(_rule_text(rule) for rule in RULES.values() if rule.family is family)}"
            for family, heading in FAMILIES.items()
        )
    if chosen not in RULES:
        raise click.UsageError(f"There is no rule {chosen!r}.{did_you_mean(chosen, RULES)}")
    return _rule_text(RULES[chosen])


def _rule_text(rule: Rule) -> str:
    lines = [f"{rule.id} ({rule.severity}): {rule.title}"]
    for label, text in (("why", rule.reason), ("do", rule.remedy), ("how", rule.basis)):
        lines += wrap(text, 96, initial_indent=f"  {label:<5}", subsequent_indent=" " * 7)
    lines.append(f"  set  {rule.setting}")
    lines += [f"       {name:<10}{one.help}" for name, one in rule.parameters.items()]
    return "\n".join([*lines, "", ""])


@click.command(
    "check",
    cls=Command,
    notes="""\
Rules (rtui check --rules lists them, with their parameters):
A registry sets each rule to "off", "warn" or "error". Rules about names,
expectations and patterns need one; queue-growing needs --since.
""",
    examples=(
        "rtui check prod:6379 --registry keys.toml --server -o findings.sarif",
        "rtui check --demo    a bad day: exit code 1",
    ),
    codes={
        0: "no finding as severe as --fail-on",
        1: "there are such findings",
        3: "no findings, but some rules were not checked",
    },
)
@connection_options
@opt.scope_options
@opt.registry_options
@click.option("--report", "report_file", metavar="FILE", help="Check a JSON report, not a server; - for stdin.")
@click.option("--server", "with_server", is_flag=True, help="Check the server, too, by the rules of rtui health.")
@click.option("--since", metavar="EARLIER", help="An earlier report, or TARGET@latest: find growth.")
@opt.result_options(*FORMATS)
@opt.severity_option
@opt.budget_option
@opt.workers_option
@opt.dask_options
@click.option(
    "--references",
    "followed",
    type=click.Choice(("sample", "all", "off")),
    default="sample",
    help="References to follow (sample).",
)
@click.option("--rules", "rules", is_flag=False, flag_value=ALL_RULES, metavar="[ID]", help="Explain a rule, or all.")
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    *,
    report_file: str | None,
    since: str | None,
    file: Output,
    rules: str | None,
    **given: Any,
) -> None:
    """Inspect every key once and list problems, errors first."""
    if rules is not None:
        click.echo(rules_text(rules), nl=False)
        return
    with failures_in(file, "check"):
        code = _run(connection, file, report_file=report_file, since=since, **given)
    sys.exit(code)


def _run(
    connection: ConnectionOptions,
    file: Output,
    *,
    report_file: str | None,
    with_server: bool,
    since: str | None,
    fail_on: str,
    **asked: Any,
) -> int:
    choice, demo = opt.registry_choice(asked), opt.demo_choice(asked)
    asked["dask"] = opt.dask_choice(asked)
    if report_file is not None and (demo or connection.names_server({})):
        raise click.UsageError("Give either a server or --report.")
    if report_file is not None and with_server:
        raise click.UsageError("--server needs a server; a report has none of its figures.")
    target = Target() if demo or report_file is not None else connection.target(takes_keys=True)
    registry = choice.load(target)
    from rtui.cli.files import read_report  # noqa: PLC0415 - the help must not wait for it

    before = None if since is None else read_report(since)
    judge = Judge(registry, before, file, Severity(fail_on))
    asked["registry"] = registry
    followed, follow = asked.pop("followed"), None
    opt.take_separators(asked, registry)
    if report_file is not None:
        return judge.exit_code(read_report(report_file))
    from rtui.cli.run import follow_references  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    asked["pace"] = Pace(asked["pace"])
    if registry is not None and followed != "off":
        follow = follow_references(registry, asked["pace"], asked["match"], are_all=followed == "all")
    if asked["dask"] is not None and target.dump is not None and (with_server or follow is not None):
        raise click.UsageError("A task loads the dump: leave --server out, and references (--references off).")
    with opt.asked_server(target, demo, asked["dask"]) as server:
        return _check(server, asked, judge, follow, with_server=with_server)


def _check(target: Target, asked: dict[str, Any], judge: Judge, follow: Follow | None, *, with_server: bool) -> int:
    from rtui.cli.run import analyse, command_log  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415

    with command_log(asked.pop("log_file")) as log:
        result = analyse(target, AnalysisOptions(**asked), log=log)
        is_whole = result.report is not None and result.ended_by is None and result.failure is None
        references = follow(target, log) if follow is not None and is_whole else None
        servers, lost = _servers(target, log, judge, result.report) if with_server and is_whole else ([], 0)
    if result.report is None or result.ended_by is not None:
        if result.ended_by is not None:
            click.echo("rtui: interrupted: nothing is judged", err=True)
            raise EndedBySignal(result.ended_by)
        raise RtuiError("Nothing was inspected", result.failure or "The server gave no key.")
    code = judge.exit_code(result.report, references, servers)
    if result.failure is not None:
        click.echo(f"rtui: The analysis broke off: {result.failure}", err=True)
        lost = ExitCode.SERVER
    return code if code == ExitCode.FOUND else lost or code


def _servers(target: Target, log: CommandLog, judge: Judge, report: Report | None) -> tuple[list[Found], int]:
    from rtui.analysis.findings.server import server_findings  # noqa: PLC0415 - for one option
    from rtui.cli.health_run import HealthRun, Judged  # noqa: PLC0415

    judged = Judged(judge.registry, report)
    code = HealthRun(judged).watch(target, None, log)
    return [server_findings(view) for view in judged.views()], code


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges a report, prints the findings, and gives the exit code."""

    registry: Registry | None
    before: Report | None
    output: Output
    fail_on: Severity

    def exit_code(
        self, report: Report, references: ReferenceChecks | None = None, servers: Sequence[Found] = ()
    ) -> int:
        from msgspec.structs import replace  # noqa: PLC0415 - the help must not wait for it

        from rtui.analysis.findings.contents import findings, with_registry  # noqa: PLC0415
        from rtui.analysis.findings.finding import reaches  # noqa: PLC0415
        from rtui.analysis.report.document import CoverageKind  # noqa: PLC0415

        levels = None if self.registry is None else self.registry.rules
        found = with_registry(findings(report, levels, self.before, references), report, self.registry)
        found = found.with_servers(servers) if servers else found
        self.output.write(self._written(report, found))
        if found.at_least(self.fail_on):
            return ExitCode.FOUND
        is_partial = report.head.coverage.kind is CoverageKind.PARTIAL
        if is_partial:
            reason = report.head.coverage.reason or "not every key was inspected"
            click.echo(f"rtui: the report is partial: {reason}", err=True)
        deciding = tuple(one for one in found.unjudged if reaches(one.severity, self.fail_on))
        for why, rules in replace(found, unjudged=deciding).doubts.items():
            click.echo(f"rtui: not checked: {', '.join(rules)} ({why})", err=True)
        return ExitCode.UNKNOWN if is_partial or deciding else ExitCode.FINE

    def _written(self, report: Report, found: Found) -> str:
        from rtui.analysis.formats import written  # noqa: PLC0415 - the help must not wait for it
        from rtui.analysis.formats.findings import findings_json, findings_junit, findings_page, findings_sarif  # noqa: PLC0415  # noqa: PLC0415

        if self.output.form == "sarif":
            return findings_sarif(report, found, {} if self.registry is None else _places(self.registry))
        if self.output.form == "junit":
            return findings_junit(report, found, self.fail_on)
        if self.output.form == "json":
            return findings_json(report, found)
        return written(findings_page(report, found), self.output.form)


def _places(registry: Registry) -> dict[str, SourcePlace]:
    from rtui.analysis.formats.findings import SourcePlace  # noqa: PLC0415 - one format needs it
    from rtui.analysis.report.members import TEXT_LIMIT  # noqa: PLC0415
    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    files = {path for entry in registry.entries if (path := entry.file or registry.path) is not None}
    sources = {path: _source(path) for path in files}
    found: dict[str, SourcePlace] = {}
    for entry in registry.entries:
        source = sources.get(entry.file or registry.path or Path())
        if source is not None and 0 < entry.line <= len(source[1]):
            uri, lines = source
            place = SourcePlace(uri, entry.line, len(lines[entry.line - 1]) + 1)
            found.setdefault(display_text(entry.pattern.text, limit=TEXT_LIMIT), place)
    return found


def _source(path: Path) -> tuple[str, list[str]] | None:
    """Return the path of a file from the root of its repository, percent-encoded, and its lines; None for others.

    Without a repository that is the working directory, or one above with the file in it.
    """
    resolved, here = path.resolve(), Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if root is None:
        root = resolved.parent if here.is_relative_to(resolved.parent) else here
    if not resolved.is_relative_to(root):
        return None
    try:
        return quote(resolved.relative_to(root).as_posix()), resolved.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
