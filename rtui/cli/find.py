"""`rtui find`: list the keys that match a query."""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, WholeNumber, connection_options, in_shell, is_term
from rtui.cli.help import Command
from rtui.cli.output import Output, failures_in, writes_unicode
from rtui.embedded.dump_head import is_dump
from rtui.keyspace.text.display import Display, SafeText
from rtui.server.files import is_keys_file
from rtui.server.user.ending_signals import exit_status
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.target import SCHEMES, Target

if TYPE_CHECKING:
    from rtui.analysis.query.query import MatchOrder, Problem, Query
    from rtui.server.options import FindOptions

FORMATS: Final = ("text", "json", "jsonl", "csv", "md", "raw")

SORTED_LIMIT: Final = 1_000
"""Keys that are listed with --sort unless --limit says how many."""

NO_LIMIT: Final = sys.maxsize

LEAST_SERVER_PORT: Final = 1024
"""`user:42` is a name, `redis:6379` a server."""

_HOST_AND_PORT: Final = re.compile(r"(?P<host>[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_ADDRESS: Final = re.compile(r"localhost|[0-9]{1,3}(\.[0-9]{1,3}){3}")


@click.command(
    "find",
    cls=Command,
    notes="""\
Terms (all must match, ! negates; rtui help terms):
cart  user:*:cart  re:^user:[0-9]+$      part of the name, glob, RE2
in:shop:user  pattern:user:<id>  tag:campaign42
type:hash,set  enc:listpack  slot:0-5460  node:10.0.0.5:6379  shard:1
ttl:none  ttl<10m  ttl:10m..1h  idle>30d  freq>100  size>1M  len>10000
""",
    examples=(
        "rtui find prod:6379 in:shop ttl:none 'size>1M' --sort size",
        "rtui find prod:6379 'session:*' -0 | xargs -0 -n1 redis-cli TTL",
    ),
    codes={0: "the search is over, whether there are such keys or not", 130: "Ctrl-C; found keys are written"},
)
@partial(connection_options, arguments="[TARGET] TERM...")
@opt.separator_option
@opt.pace_option
@opt.result_options(*FORMATS)
@click.option("-0", "--null", "form", flag_value="raw", help="Bare names, NUL-terminated: for xargs -0.")
@click.option("--columns", metavar="FACTS", help="Facts to list: type,ttl,size,len,idle,freq,enc,slot.")
@click.option("--sort", metavar="FACT", help="By a fact, key or key-bytes; FACT:asc, FACT:desc.")
@click.option("--limit", metavar="N", type=WholeNumber(1), help="Stop after N keys (with --sort 1000).")
@click.option("--count", "counts_only", is_flag=True, help="Print the number of keys.")
@opt.budget_option
@opt.log_option
@opt.demo_options
@click.help_option("--help")
def command(connection: ConnectionOptions, *, file: Output, log_file: Path | None, **asked: Any) -> None:
    """List the keys that match all terms: facts on a terminal, bare names in a pipe."""
    place, terms = split_target(connection)
    given = replace(connection, place=place)
    demo = opt.demo_choice(asked)
    if demo is not None:
        given.require_no_server()
    if "" in terms:
        raise click.UsageError("An argument is empty: is a variable not set?")
    if not terms:
        where = f" {place[0]!r} is the server." if place and _HOST_AND_PORT.fullmatch(place[0]) else ""
        raise click.UsageError(f"Missing TERM: say what to find.{where}")
    query = _query(_with_saved(" ".join(terms), None if demo else given))
    if file.form == "raw" and asked["columns"] is not None:
        raise click.UsageError("-0 writes bare names: leave --columns out.")
    sort, named = asked.pop("sort"), asked.pop("columns")
    order = None if sort is None or asked["counts_only"] else _order(sort)
    columns = _columns(named, query, order, file)
    options = _options(query, columns, order, **asked)
    with opt.asked_server(Target() if demo else given.target(), demo) as target:
        try:
            how = {"file": file, "log_file": log_file, "counts_only": asked["counts_only"]}
            sys.exit(_find(target, query, options, columns, **how))
        except ConnectFailure as failed:
            if place and failed.kind is FailureKind.NAME:
                failed.remedy = SafeText(f"For names with {place[0]} in them, put that in quotes: '\"{place[0]}\"'.")
            raise


def split_target(connection: ConnectionOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    arguments = connection.place
    named = (connection.host, connection.port, connection.socket, connection.url, connection.profile)
    if not arguments:
        return (), ()
    if any(one is not None for one in named):
        if arguments[0].partition("://")[0] in SCHEMES:
            raise click.UsageError("Name the server once: by TARGET, by -u, by -h, -p and -s, or by --profile.")
        return (), arguments
    return (arguments[:1], arguments[1:]) if _is_target(arguments[0]) else ((), arguments)


def _is_target(text: str) -> bool:
    """Whether an argument can only be a server or a dump; a term never is one."""
    if is_term(text):
        return False
    if is_dump(Path(text)) or is_keys_file(Path(text)):
        return True
    if "://" in text or _ADDRESS.fullmatch(text):
        return True
    found = _HOST_AND_PORT.fullmatch(text)
    if found is not None:
        host, port = found["host"], found["port"]
        is_address = host is None or _ADDRESS.fullmatch(host) is not None
        return is_address or int(port) >= LEAST_SERVER_PORT or ("." in host and len(port) > 1)
    try:
        return text.startswith(("/", "./")) and stat.S_ISSOCK(Path(text).stat().st_mode)
    except OSError:
        return False


def _with_saved(line: str, connection: ConnectionOptions | None) -> str:
    if "@" not in line or connection is None:
        return line
    from rtui.tui.kit.settings import SettingsFile, expanded, saved_queries, settings_path, unknown_names  # noqa: PLC0415 - few want it  # noqa: PLC0415

    saved = saved_queries(SettingsFile.opened(settings_path()).settings, connection.target())
    for name, near in unknown_names(line, saved).items():
        if near is not None:
            click.echo(f"rtui: there is no query @{name}, so it was searched in names; @{near} exists.", err=True)
    return expanded(line, saved)


def _query(line: str) -> Query:
    from rtui.analysis.query.hints import read_with_hints  # noqa: PLC0415 - the help must not wait for it

    reading = read_with_hints(line)
    if reading.problems:
        click.echo("rtui: the query can't be read", err=True)
        for problem in reading.problems:
            click.echo(marked(line, problem), err=True)
        click.echo("  rtui help terms lists them.", err=True)
        sys.exit(click.UsageError.exit_code)
    for hint in reading.query.hints:
        click.echo(f"rtui: {in_shell(hint)}", err=True)
    return reading.query


def marked(line: str, problem: Problem) -> str:
    from rich.cells import cell_len  # noqa: PLC0415 - only here

    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    start, end = problem.span.start, problem.span.end
    before, wrong, after = (display_text(part, limit=4096) for part in (line[:start], line[start:end], line[end:]))
    mark = " " * cell_len(before) + "^" * max(1, cell_len(wrong))
    return f"  {before}{wrong}{after}\n  {mark}\n  {in_shell(problem)}"


def _options(
    query: Query,
    columns: Sequence[str],
    order: MatchOrder | None,
    *,
    separators: tuple[bytes, ...],
    pace: str,
    limit: int | None,
    counts_only: bool,
    budget_s: float | None,
) -> FindOptions:
    from rtui.analysis.query.terms import Fact  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.options import FindOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    asked = [Fact(one) for one in columns if one != "slot"] + ([] if order is None else [order.fact])
    if order is not None and limit is None:
        limit = SORTED_LIMIT
    return FindOptions(
        separators=separators,
        columns=() if counts_only else tuple(fact for fact in dict.fromkeys(asked) if fact is not Fact.NAME),
        limit=0 if counts_only else limit or NO_LIMIT,
        order=order,
        stops_at_limit=limit is not None and order is None and not counts_only,
        pace=Pace(pace),
        budget_s=budget_s,
    )


def _columns(text: str | None, query: Query, order: MatchOrder | None, file: Output) -> list[str]:
    """Text that no terminal shows has bare names."""
    from rtui.analysis.query.terms import Fact  # noqa: PLC0415 - the help must not wait for it

    if text is not None:
        found = [_column(name.strip(), "--columns") for name in text.split(",")]
    elif file.form == "raw" or (file.form == "text" and not file.is_terminal):
        found = []
    else:
        found = [*query.facts, *([] if order is None else [order.fact])]
    return [one for one in dict.fromkeys(found) if one != Fact.NAME]


def _column(name: str, option: str) -> str:
    from rtui.analysis.formats.result_rows import FIELD_NAMES  # noqa: PLC0415 - the help must not wait for it

    known = {"key": "key", **{field: one for one, field in FIELD_NAMES.items()}, **{one: one for one in FIELD_NAMES}}
    known["memory"] = known["size"]
    if name.lower() not in known:
        raise click.BadParameter(f"there is {', '.join(('key', *FIELD_NAMES))}", param_hint=option)
    return known[name.lower()]


def _order(text: str) -> MatchOrder:
    from rtui.analysis.query.query import MatchOrder  # noqa: PLC0415
    from rtui.analysis.query.terms import Fact  # noqa: PLC0415

    name, _, direction = text.partition(":")
    is_by_bytes = name.lower() == "key-bytes"
    column = "key" if is_by_bytes else _column(name, "--sort")
    if column == "slot":
        raise click.BadParameter("keys are not sorted by slot", param_hint="--sort")
    fact = Fact(column)
    if direction not in ("", "asc", "desc"):
        raise click.BadParameter("write FACT, FACT:asc or FACT:desc", param_hint="--sort")
    is_text = fact in (Fact.NAME, Fact.TYPE, Fact.ENCODING, Fact.TTL)
    return MatchOrder(
        fact, is_descending=direction == "desc" or (not direction and not is_text), is_by_bytes=is_by_bytes
    )


def _find(
    target: Target,
    query: Query,
    options: FindOptions,
    columns: Sequence[str],
    *,
    file: Output,
    log_file: Path | None,
    counts_only: bool,
) -> int:
    from rtui.analysis.formats.result_rows import FoundKeys  # noqa: PLC0415 - the help must not wait for it
    from rtui.cli.find_run import find  # noqa: PLC0415
    from rtui.cli.run import command_log  # noqa: PLC0415

    with failures_in(file, "find", keeps_files=True), command_log(log_file) as log, file.opened() as send:
        shown = Display(ascii_only=file.is_standard and not writes_unicode())
        kind = {"counts_only": counts_only, "is_terminal": file.is_terminal}
        output = FoundKeys(send, file.form, str(query), columns, shown=shown, **kind)
        result = find(target, query, options, output, log=log)
    for note in result.notes:
        click.echo(f"rtui: {note}", err=True)
    if result.failure is not None:
        raise result.failure
    return 0 if result.ended_by is None else exit_status(result.ended_by)
