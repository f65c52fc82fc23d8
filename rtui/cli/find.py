"""`rtui find`: the keys that a query finds, by their names and by what the server knows of them."""

from __future__ import annotations

import re
import stat
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rtui.cli import options as opt
from rtui.cli.connection import ConnectionOptions, WholeNumber, connection_options, in_shell, is_term
from rtui.cli.output import Output, failures_in
from rtui.embedded.dump_head import is_dump
from rtui.keyspace.text.display import SafeText
from rtui.server.user.ending_signals import exit_status
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.target import SCHEMES, Target

if TYPE_CHECKING:
    from rtui.analysis.query.query import MatchOrder, Problem, Query
    from rtui.analysis.query.terms import Fact
    from rtui.server.options import FindOptions

FORMATS: Final = ("text", "json", "csv", "raw")

SORTED_LIMIT: Final = 1_000
"""Keys that are listed with --sort unless --limit says how many."""

NO_LIMIT: Final = sys.maxsize

LEAST_SERVER_PORT: Final = 1024
"""`user:42` is a name, `redis:6379` a server."""

_HOST_AND_PORT: Final = re.compile(r"(?P<host>[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_ADDRESS: Final = re.compile(r"localhost|[0-9]{1,3}(\.[0-9]{1,3}){3}")

_EPILOG: Final = """\
\b
Terms; all of them have to apply, and a ! before one turns it round
  cart, user:*:cart   a part of the name (lower case matches capitals, too), or a glob
  re:^user:[0-9]+$    a regular expression (RE2)
  in:shop:user        below a namespace
  pattern:user:{id}:orders   {id} {uuid} {hash} {date} {ip} {email} stand for identifiers, {n} for a number
  tag:campaign42  slot:2734  slot:0-5460
  node:10.0.0.5:6379  shard:1   of a cluster: the keys that a node serves; no other node is scanned
  type:hash,set  enc:listpack
  ttl:none  ttl<10m  ttl:10m..1h  expires:2026-11-22T21:31..21:33
  idle>30d  freq>100  size>1M  len>10000
  @name               a query saved for this server or profile on screen (^S)
Names with spaces, quotes or other bytes stand in double quotes: "two words", "\\xff".
Put terms in single quotes for the shell.

\b
TARGET as for browsing. It is the first argument where that is a URL, the path of a
socket, host:port or an address and terms follow; any other host is named with -h.
A term is never taken for one: a host named slot is redis://slot:2734.

\b
Exit codes
  0    the search is over, whether there are such keys or not
  2    the command line makes no sense; a wrong term is marked
  4    the server could not be reached, its connection was lost for good, or a term
       needs what it refuses; what had been found until then is written
  5    the output can't be written
  141  nobody reads the output any more, as after | head
  130  Ctrl-C: what had been found is written; a second one leaves at once; 143, 129
       and 131: SIGTERM, SIGHUP and SIGQUIT, likewise

Keys are written as they are found, or at the end with --sort. FILE is replaced when the search is over, never before;
a search that fails before it has begun leaves it as it was. What they cost, what could not be decided and how many
there are stands on standard error.

\b
Formats
  text  a line for each key, made safe to show: its facts, then its name
  json  key (null where it is no UTF-8), key_quoted for redis-cli --quoted-input, facts;
        at the end listed, count (null unless all were found), at_least, and notes
  csv   the same as columns; key_quoted is never empty for a key. The last row is of no
        key: its coverage is exact where all keys are listed, partial or failed where
        they are not, and its notes say why. Without such a row the file is cut off.
  raw   the names alone, byte for byte, with a NUL behind each: for xargs -0
"""


@click.command("find", epilog=_EPILOG)
@partial(connection_options, arguments="[TARGET] TERM...")
@opt.separator_option
@opt.pace_option
@opt.format_option(FORMATS, "As what (by the suffix of -o, else text); see below.")
@opt.output_option
@click.option(
    "--columns", metavar="FACTS", help="Facts to list, such as type,ttl,size,len,idle,freq,enc (those in the terms)."
)
@click.option(
    "--sort", metavar="FACT", help="By a fact, key or key-bytes: most first or a to z; FACT:asc or FACT:desc."
)
@click.option("--limit", metavar="N", type=WholeNumber(1), help="End with so many keys; after --sort (1000).")
@click.option("--count", "counts_only", is_flag=True, help="Print how many there are.")
@opt.budget_option
@opt.log_option
@opt.demo_options("Search sample keyspaces on an embedded server.")
@click.help_option("--help")
def command(
    connection: ConnectionOptions,
    form: str | None,
    output: str,
    *,
    log_file: Path | None,
    **asked: Any,
) -> None:
    """Find keys by terms about their names and facts.

    Each fact is asked only of keys that may still match, and nothing is changed.
    """
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
    file = Output(output)
    form = file.form(form, FORMATS)
    query = _query(_with_saved(" ".join(terms), None if demo else given))
    if form == "raw" and asked["columns"] is not None:
        raise click.UsageError("--format raw has names only: leave --columns out.")
    options = _options(query, **(asked if form != "raw" else asked | {"columns": "key"}))
    with opt.asked_server(Target() if demo else given.target(), demo) as target:
        try:
            how = {"file": file, "form": form, "log_file": log_file, "counts_only": asked["counts_only"]}
            sys.exit(_find(target, query, options, **how))
        except ConnectFailure as failed:
            if place and failed.kind is FailureKind.NAME:
                failed.remedy = SafeText(f"For names with {place[0]} in them, put that in quotes: '\"{place[0]}\"'.")
            raise


def split_target(connection: ConnectionOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the TARGET, if there is one, and the terms."""
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
    if is_dump(Path(text)):
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
    """Return a line with saved queries in place of their names; near misses are printed."""
    if "@" not in line or connection is None:
        return line
    from rtui.tui.kit.settings import SettingsFile, expanded, saved_queries, settings_path, unknown_names  # noqa: PLC0415 - few want it  # noqa: PLC0415

    saved = saved_queries(SettingsFile.opened(settings_path()).settings, connection.target())
    for name, near in unknown_names(line, saved).items():
        if near is not None:
            click.echo(f"rtui: there is no query @{name}, so names with that are found; @{near} is one.", err=True)
    return expanded(line, saved)


def _query(line: str) -> Query:
    """Read the terms, and print hints; a wrong one is printed and ends the program."""
    from rtui.analysis.query.hints import read_with_hints  # noqa: PLC0415 - the help must not wait for it

    reading = read_with_hints(line)
    if reading.problems:
        click.echo("rtui: the query can't be read", err=True)
        for problem in reading.problems:
            click.echo(marked(line, problem), err=True)
        click.echo("  rtui find --help lists the terms.", err=True)
        sys.exit(click.UsageError.exit_code)
    for hint in reading.query.hints:
        click.echo(f"rtui: {in_shell(hint)}", err=True)
    return reading.query


def marked(line: str, problem: Problem) -> str:
    """Return a line with a part marked below, and the problem with that part."""
    from rich.cells import cell_len  # noqa: PLC0415 - only here

    from rtui.keyspace.text.display import display_text  # noqa: PLC0415

    start, end = problem.span.start, problem.span.end
    before, wrong, after = (display_text(part, limit=4096) for part in (line[:start], line[start:end], line[end:]))
    mark = " " * cell_len(before) + "^" * max(1, cell_len(wrong))
    return f"  {before}{wrong}{after}\n  {mark}\n  {in_shell(problem)}"


def _options(
    query: Query,
    *,
    separators: tuple[bytes, ...],
    pace: str,
    columns: str | None,
    sort: str | None,
    limit: int | None,
    counts_only: bool,
    budget_s: float | None,
) -> FindOptions:
    from rtui.analysis.query.terms import Fact  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.options import FindOptions  # noqa: PLC0415
    from rtui.server.scan.pace import Pace  # noqa: PLC0415

    wanted = query.facts if columns is None else _facts(columns)
    order = None if sort is None or counts_only else _order(sort)
    if order is not None and order.fact not in (*wanted, Fact.NAME):
        wanted = (*wanted, order.fact)
    if order is not None and limit is None:
        limit = SORTED_LIMIT
    return FindOptions(
        separators=separators,
        columns=() if counts_only else tuple(fact for fact in wanted if fact is not Fact.NAME),
        limit=0 if counts_only else limit or NO_LIMIT,
        order=order,
        stops_at_limit=limit is not None and order is None and not counts_only,
        pace=Pace(pace),
        budget_s=budget_s,
    )


def _facts(text: str) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(_fact(name.strip(), "--columns") for name in text.split(",")))


def _fact(name: str, option: str) -> Fact:
    from rtui.analysis.query.terms import Fact  # noqa: PLC0415

    try:
        return Fact(name.lower())
    except ValueError:
        there_are = ", ".join(fact.value for fact in Fact)
        raise click.BadParameter(f"there is {there_are}", param_hint=option) from None


def _order(text: str) -> MatchOrder:
    from rtui.analysis.query.query import MatchOrder  # noqa: PLC0415
    from rtui.analysis.query.terms import Fact  # noqa: PLC0415

    name, _, direction = text.partition(":")
    is_by_bytes = name.lower() == "key-bytes"
    fact = Fact.NAME if is_by_bytes else _fact(name, "--sort")
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
    *,
    file: Output,
    form: str,
    log_file: Path | None,
    counts_only: bool,
) -> int:
    """Search, write the keys, print the notes on standard error, and return the exit code."""
    from rtui.cli.find_run import FoundKeys, find  # noqa: PLC0415 - the help must not wait for it
    from rtui.cli.run import command_log  # noqa: PLC0415

    facts = tuple(dict.fromkeys(options.columns))
    file.check()
    with (
        failures_in(file, form if file.is_standard else "", "find"),
        command_log(log_file) as log,
        file.opened() as send,
    ):
        output = FoundKeys(send, form, query, facts, counts_only=counts_only, is_terminal=file.is_terminal)
        result = find(target, query, options, output, log=log)
    for note in result.notes:
        click.echo(f"rtui: {note}", err=True)
    if result.failure is not None:
        raise result.failure
    return 0 if result.ended_by is None else exit_status(result.ended_by)
