"""Options that subcommands share: scope, columns, registry, output, the demo, the look of the screen."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from rtui.analysis.columns import Columns, ColumnsError, parse_columns
from rtui.cli.connection import FILE_NAME, Decorator, Number, WholeNumber, grouped
from rtui.cli.output import STANDARD_STREAM, Output
from rtui.keyspace.text.glob import PatternError, check_pattern
from rtui.server.options import DEFAULT_DEMO_KEYS, DaskOptions, DemoDay, PaceName, RegistryChoice

if TYPE_CHECKING:
    from rtui.registry.registry import Registry
    from rtui.server.wire.target import Target

MAX_DEMO_KEYS: Final = 10_000_000
"""More sample keys than this would need more memory than most machines have."""


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> bytes | None:
    if value == "":
        raise click.BadParameter("it is empty", ctx, param)
    return None if value is None else os.fsencode(value)


def _separators(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[bytes, ...]:
    found = [_bytes(ctx, param, value) for value in values]
    return tuple(dict.fromkeys(one for one in found if one is not None)) or (b":",)


def _pattern(ctx: click.Context, param: click.Parameter, value: str | None) -> bytes | None:
    raw = _bytes(ctx, param, value)
    try:
        return None if raw is None else check_pattern(raw)
    except PatternError as error:
        raise click.BadParameter(str(error), ctx, param) from None


separator_option: Final = click.option(
    "--separator",
    "separators",
    metavar="TEXT",
    multiple=True,
    callback=_separators,
    help="Separator of names (:); may be repeated.",
)

pace_option: Final = click.option(
    "--pace", type=click.Choice(get_args(PaceName)), default="gentle", help="Load on the server (gentle)."
)

depth_option: Final = click.option("--depth", metavar="N", type=WholeNumber(1, 64), help="Levels of namespaces (all).")

top_option: Final = click.option(
    "--top", metavar="N", type=WholeNumber(1, 10_000), default=100, help="Keys in each list (100)."
)

severity_option: Final = click.option(
    "--fail-on",
    "fail_on",
    type=click.Choice(("error", "warn")),
    default="error",
    help="Severity for exit code 1 (error).",
)

rows_options: Final = grouped(
    separator_option,
    click.option("--match", metavar="GLOB", callback=_pattern, help="Only keys that match, filtered by the server."),
    click.option("--type", "key_type", metavar="TYPE", callback=_bytes, help="Only keys of this type."),
)
"""Decorate a command: it gets `separators`, `match` and `key_type` as bytes."""

scope_options: Final = grouped(rows_options, pace_option)
"""Decorate a command: the same, and the name of the `pace`."""


def _columns(ctx: click.Context, param: click.Parameter, value: str | None) -> Columns | None:
    try:
        return None if value is None else parse_columns(value)
    except ColumnsError as error:
        raise click.BadParameter(str(error), ctx, param) from None


columns_option: Final = click.option(
    "--columns", metavar="FACTS", callback=_columns, help="Facts to read (rtui help columns)."
)
"""Decorate a command: it gets `columns`, None for what suits the number of keys."""

_C_LOCALES: Final = ("", "C", "POSIX")
_COERCED: Final = ("C.UTF-8", "C.utf8", "UTF-8")
"""The values of LC_CTYPE that Python sets if the locale is C (PEP 538)."""


def first_environment(process: Path = Path("/proc/self/environ")) -> Mapping[str, str]:
    """Return the environment of the start of this process, before Python changed its locale; on Linux only."""
    try:
        pairs = process.read_bytes().split(b"\0")
    except OSError:
        return os.environ
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in (pair.partition(b"=") for pair in pairs)}


def draws_unicode(environment: Mapping[str, str]) -> bool:
    name = next((environment[one] for one in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(one)), "")
    return name not in _C_LOCALES and name.upper().replace("-", "").partition("@")[0].endswith("UTF8")


def _ascii(_ctx: click.Context, _param: click.Parameter, value: bool | None) -> bool:
    if value is not None:
        return value
    if os.environ.get("LC_CTYPE") in _COERCED and not os.environ.get("LC_ALL"):
        return not draws_unicode(first_environment())
    return not draws_unicode(os.environ)


def _theme(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from rtui.keyspace.text.matching import did_you_mean  # noqa: PLC0415 - few choose a theme here
    from rtui.tui.kit.themes import theme_names  # noqa: PLC0415

    names = theme_names()
    if value not in names:
        near = did_you_mean(value, names)
        raise click.BadParameter(f"there is no theme {value!r}.{near} There is {', '.join(names)}.", ctx, param)
    return value


appearance_options: Final = grouped(
    click.option(
        "--ascii/--no-ascii", "ascii_only", default=None, callback=_ascii, help="Draw with ASCII only (by the locale)."
    ),
    click.option("--theme", metavar="NAME", callback=_theme, help="Theme; NO_COLOR=1 for no colours."),
)

budget_option: Final = click.option(
    "--budget-seconds", "budget_s", metavar="S", type=Number(min=0, min_open=True), help="Stop after S seconds."
)

workers_option: Final = click.option(
    "--workers", metavar="N", type=WholeNumber(1, 256), default=1, help="Processes for the nodes of a cluster (1)."
)
"""Decorate a command: it gets `workers`; one server is inspected by this process alone."""

_DASK_FILES: Final = {"dask_ca": "tls_ca_file", "dask_cert": "tls_client_cert", "dask_key": "tls_client_key"}
"""By the parameter, the name that Dask has for the file."""

MOST_TASKS: Final = 256
"""Workers of Dask on this machine."""

dask_options: Final = grouped(
    click.option(
        "--dask",
        metavar="WHERE",
        help="Dask (rtui help scale): local[:N], tls://HOST:PORT with --dask-ca, --dask-cert, --dask-key FILE.",
    ),
    *(
        click.option(f"--{name.replace('_', '-')}", name, metavar="FILE", type=click.Path(path_type=Path), help="PEM.")
        for name in _DASK_FILES
    ),
)
"""Decorate a command: it gets what `dask_choice` takes."""


def dask_choice(given: dict[str, Any], folder: str | None = None) -> DaskOptions | None:
    """Take the values of `dask_options` out of the options; None for no Dask. Raises `click.UsageError`.

    Tasks write rows into the `folder`, if there is one.
    """
    where = given.pop("dask")
    files = {_DASK_FILES[name]: path for name in _DASK_FILES if (path := given.pop(name)) is not None}
    if where is None:
        if files:
            raise click.UsageError("--dask-ca, --dask-cert and --dask-key belong to --dask tls://HOST:PORT.")
        return None
    for name, value in (("--workers", given.get("workers", 1) > 1), ("--estimate", given.get("estimate_keys"))):
        if value:
            raise click.UsageError(f"Give either --dask or {name}.")
    if given.get("log_file") is not None:
        raise click.UsageError("--log has nothing of what tasks send: leave it or --dask out.")
    if any(find_spec(name) is None for name in ("distributed", "cryptography")):
        raise click.UsageError("--dask needs Dask's distributed: pip install 'redis-rtui[scale]'")
    kind, _, number = where.partition(":")
    if kind == "local":
        if number and not (number.isdecimal() and 0 < int(number) <= MOST_TASKS):
            raise click.UsageError(f"--dask local:N has from 1 to {MOST_TASKS} workers.")
        if files:
            raise click.UsageError("--dask local makes certificates of its own.")
        return DaskOptions(workers=int(number or min(MOST_TASKS, os.cpu_count() or 1)), folder=folder)
    if not where.startswith("tls://"):
        raise click.UsageError(
            "--dask takes local, local:N or tls://HOST:PORT: names of keys and credentials go to a scheduler, "
            "so nothing is sent to one without TLS."
        )
    return DaskOptions(where, files=files, folder=folder)


def result_options(*formats: str, otherwise: str = "text", is_older: bool = False) -> Decorator:
    """`otherwise` is the format of files whose ending says nothing; commands that are `is_older` had --json."""
    choice = click.option("--format", "form", type=click.Choice(formats), help="Output format (by FILE, else text).")
    place = click.option(
        "-o", "--output", metavar="FILE", type=FILE_NAME, default=STANDARD_STREAM, help="Output file; - for stdout (-)."
    )

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_file(*args: Any, output: str, form: str | None = None, **given: Any) -> Any:
            file = Output(output, form, formats or ("text",), otherwise)
            file.check()
            return function(*args, file=file, **given)

        older = [click.option("--json", "form", flag_value="json", hidden=True)] if is_older else []
        return grouped(*([choice] if formats else []), place, *older)(with_file)

    return decorated


def _file_option(name: str, help: str) -> Decorator:
    """Decorate a command: it gets the path of a file or None, as `log_file` for `log`."""
    kind = click.Path(path_type=Path)
    return click.option(f"--{name}", f"{name}_file", metavar="FILE", type=kind, help=help)


log_option: Final = _file_option("log", "Log every command sent, as lines of JSON.")
record_option: Final = _file_option("record", "Record the session for rtui replay.")

registry_options: Final = grouped(
    click.option(
        "--registry",
        "registry_name",
        metavar="FILE",
        type=FILE_NAME,
        help="Registry of keys (rtui.toml); --no-registry for none.",
    ),
    click.option("--no-registry", "has_no_registry", is_flag=True, help="Ignore any registry."),
)
"""Decorate a command: it gets `registry_name` and `has_no_registry`, for `registry_choice`."""


def take_separators(given: dict[str, Any], registry: Registry | None) -> None:
    """Split names where the registry says, unless `separator_option` was given on the command line."""
    source = click.get_current_context().get_parameter_source("separators")
    if registry is not None and source is click.core.ParameterSource.DEFAULT:
        given["separators"] = registry.separators


def registry_choice(given: dict[str, Any]) -> RegistryChoice:
    name, is_off = given.pop("registry_name"), given.pop("has_no_registry")
    if name is not None and is_off:
        raise click.UsageError("Give either --registry or --no-registry.")
    return RegistryChoice(name, is_off)


keep_option: Final = click.option("--keep/--no-keep", default=True, help="Keep the report for comparison (on).")


demo_options: Final = grouped(
    click.option("--demo", is_flag=True, help="Use sample keys; --demo-keys N, --demo-day bad or good."),
    click.option(
        "--demo-keys",
        metavar="N",
        type=WholeNumber(1, MAX_DEMO_KEYS),
        default=DEFAULT_DEMO_KEYS,
        help="Number of demo keys (50,000).",
    ),
    click.option("--demo-day", type=click.Choice(get_args(DemoDay)), default="bad", help="With findings, or without."),
)
"""Decorate a command: it gets `demo`, `demo_keys` and `demo_day`, for `demo_choice`."""


def demo_choice(given: dict[str, Any]) -> tuple[int, DemoDay] | None:
    is_demo, *choice = (given.pop(name) for name in ("demo", "demo_keys", "demo_day"))
    return (choice[0], choice[1]) if is_demo else None


@contextmanager
def asked_server(target: Target, demo: tuple[int, DemoDay] | None, dask: DaskOptions | None = None) -> Iterator[Target]:
    """Give the server to ask: `target`, or for a demo or a dump one of our own, which then has all keys.

    A dump that a task reads is not loaded here.
    """
    if target.dump is not None and dask is None:
        from rtui.embedded.dump import opened  # noqa: PLC0415 - only dumps need it

        with opened(target, target.dump, _loading_line(target.label)) as loaded:
            assert loaded.dump is not None  # noqa: S101 - it was just loaded
            click.echo(f"rtui: {loaded.dump.note}", err=True)
            yield loaded
        return
    if demo is None:
        yield target
        return
    from rtui.demo.load import demo_server  # noqa: PLC0415 - only the demo needs it

    with demo_server(*demo) as server:
        server.wait_loaded()
        yield server.target


def _loading_line(label: str) -> Callable[[float], object]:
    def said(share: float) -> None:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K" if share == 1 else f"\rrtui: loading {label}: {share:.0%}", nl=False, err=True)

    return said


def terminal_options() -> dict[str, Any]:
    return {"no_color": bool(os.environ.get("NO_COLOR")), "on_console": os.environ.get("TERM") == "linux"}


NO_CURSOR: Final = ("dumb", "unknown")
"""Terminals that show escape sequences instead of following them, such as the shells of editors."""


def require_terminal(why: str) -> None:
    """Raise a usage error unless there is a terminal that can move its cursor; `why` ends the sentence."""
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if not stream.isatty():
            raise click.UsageError(f"Standard {name} is not a terminal, and {why}.")
    if sys.__stderr__ is None:
        raise click.UsageError(f"Standard error is closed, and {why}.")
    if (term := os.environ.get("TERM", "")) in NO_CURSOR:
        raise click.UsageError(
            f"This terminal (TERM={term}) can't move its cursor, and {why}. "
            "Set TERM to what it is, such as xterm-256color; rtui report needs no terminal."
        )
