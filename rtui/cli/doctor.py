"""`rtui doctor`: what rtui runs on and what a server lets it do, for a bug report; nothing in it is secret.

Names of hosts, users, keys, files and profiles are left out, and so are the server's own error texts, which quote them.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import select
import shutil
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import click

import rtui
from rtui.cli.connection import ConnectionOptions, connection_options
from rtui.cli.help import Command
from rtui.cli.main import engine_state
from rtui.cli.options import asked_server, demo_choice, demo_options, draws_unicode, first_environment, result_options
from rtui.cli.output import Output, failures_in
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

VARIABLES: Final = ("COLORTERM", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
"""The variables of the environment whose values are shown; of others that count only their names are."""

COUNTING: Final = re.compile(r"RTUI_\w+|REDISCLI_AUTH|NO_COLOR|TEXTUAL\w*|PYTHON\w+|SSL_\w+")
"""Variables that change what rtui does."""

WIDTHS: Final = {
    "a": "letter", "─": "line", "█": "block", "▸": "triangle", "≈": "sign", "é": "accent", "漢": "ideograph",
}  # fmt: skip

ANSWER_S: Final = 1.0
_POSITION: Final = re.compile(rb"\x1b\[[0-9]+;([0-9]+)R")
_REQUIREMENT: Final = re.compile(r"[\w.-]+")


@click.command(
    "doctor",
    cls=Command,
    examples=("rtui doctor -o report.md", "rtui doctor redis://app@10.0.0.5:6379/0"),
    codes={0: "the report is written", 4: "it is written; the server can't be reached"},
)
@connection_options
@result_options("text", "md")
@demo_options
@click.help_option("--help")
def command(connection: ConnectionOptions, *, file: Output, **asked: Any) -> None:
    """Print versions, terminal and locale, and what a server allows, for a bug report.

    Without TARGET and RTUI_URL no server is asked. Names of hosts, users, keys and files, and passwords, are left out.
    """
    from rtui.analysis.formats import written  # noqa: PLC0415 - the help must not wait for it
    from rtui.analysis.formats.blocks import BlockPage, Facts  # noqa: PLC0415

    demo = demo_choice(asked)
    target = None if demo is None and not connection.names_server() else Target() if demo else connection.target()
    sections = {"Versions": _versions(), "Terminal": _terminal(), "Settings": _settings()}
    failure: RtuiError | None = None
    with failures_in(file, "doctor"):
        blocks = [Facts(title, [*rows]) for title, rows in sections.items()]
        if target is not None:
            server, failure = _asked(target, demo)
            blocks.append(Facts("Server", server))
        file.write(written(BlockPage("rtui doctor", blocks), file.form, **file.text_options))
    if failure is not None:
        raise failure


def _versions() -> Iterator[tuple[str, str]]:
    kind = "bundle" if getattr(sys, "frozen", False) else "package"
    yield "rtui", f"{rtui.__version__}, {kind}, engine {engine_state()}"
    yield "Python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "system", f"{platform.platform()}, {' '.join(platform.libc_ver()) or 'libc not known'}"
    found: dict[str, list[str]] = {"libraries": [], "extras": []}
    with suppress(metadata.PackageNotFoundError):
        for line in sorted(metadata.requires("redis-rtui") or ()):
            if (match := _REQUIREMENT.match(line)) is not None and "extra == 'dev'" not in line.replace('"', "'"):
                with suppress(metadata.PackageNotFoundError):
                    place = "extras" if "extra ==" in line else "libraries"
                    found[place].append(f"{match[0]} {metadata.version(match[0])}")
    for name, versions in found.items():
        yield name, ", ".join(dict.fromkeys(versions)) or "none"


def _terminal() -> Iterator[tuple[str, str]]:
    from rtui.tui.kit.themes import Palette, terminal_palette  # noqa: PLC0415 - it imports Textual

    environment = {**os.environ, "LC_CTYPE": first_environment().get("LC_CTYPE", "")}
    colours = {Palette.TRUE: "16 million", Palette.XTERM: "256", Palette.ANSI: "16"}[terminal_palette()]
    size = shutil.get_terminal_size()
    pipes = [name for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")) if not stream.isatty()]
    if pipes:
        yield "not a terminal", f"standard {' and '.join(pipes)}"
    yield "size", f"{size.columns} × {size.lines}"
    yield "colours", f"{colours}{', off by NO_COLOR' if environment.get('NO_COLOR') else ''}"
    yield "characters", "Unicode" if draws_unicode(environment) else "ASCII, by the locale"
    yield "widths", _widths_text(WIDTHS, asked_widths([*WIDTHS]))
    yield "within", ", ".join(_around(environment)) or "no tmux, screen or SSH"
    yield "clipboard", ", ".join(_clipboard(environment))
    for name in VARIABLES:
        if environment.get(name):
            yield name, environment[name]
    others = sorted(name for name in environment if COUNTING.fullmatch(name))
    yield "also set", ", ".join(others) or "none"


def asked_widths(characters: Sequence[str]) -> list[int] | None:
    """Return the cells that the terminal gives each character, as it tells; None without a terminal that answers."""
    terminal = next((number for number in range(3) if os.isatty(number)), None)
    if terminal is None:
        return None
    try:
        before = termios.tcgetattr(terminal)
        tty.setcbreak(terminal)
        try:
            return [_asked_width(terminal, one) for one in characters]
        finally:
            os.write(terminal, b"\r\x1b[K")
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
    except (OSError, TimeoutError, termios.error):
        return None


def _asked_width(terminal: int, character: str) -> int:
    """Write a character at the beginning of the line and ask where the cursor is then; raises TimeoutError."""
    os.write(terminal, f"\r{character}\x1b[6n".encode())
    answer, until_s = b"", time.monotonic() + ANSWER_S
    while (found := _POSITION.search(answer)) is None:
        ready, _, _ = select.select([terminal], [], [], max(0.0, until_s - time.monotonic()))
        if not ready:
            raise TimeoutError
        answer += os.read(terminal, 64)
    return int(found[1]) - 1


def _widths_text(names: Mapping[str, str], found: Sequence[int] | None) -> str:
    from rich.cells import cell_len  # noqa: PLC0415 - the help must not wait for it

    if found is None:
        return "not known: the terminal does not say where its cursor is"
    wrong = [
        f"{name} ({character}) takes {cells} of {cell_len(character)}"
        for (character, name), cells in zip(names.items(), found, strict=True)
        if cells != cell_len(character)
    ]
    return "; ".join(wrong) or "as expected"


def _around(environment: Mapping[str, str]) -> Iterator[str]:
    if environment.get("TMUX"):
        version = _output_of("tmux", "-V") or "tmux"
        options = [_output_of("tmux", "show-options", "-gv", one) for one in ("default-terminal", "set-clipboard")]
        yield f"{version} (default-terminal {options[0] or '?'}, set-clipboard {options[1] or '?'})"
    if environment.get("STY"):
        yield "GNU screen"
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        yield "SSH"


def _output_of(*arguments: str) -> str:
    try:
        done = subprocess.run(arguments, capture_output=True, timeout=ANSWER_S, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def _clipboard(environment: Mapping[str, str]) -> Iterator[str]:
    from rtui.tui.kit.clipboard import programs, unfit_for_osc52  # noqa: PLC0415 - it imports Textual

    found = [name for one in programs(environment) if shutil.which(name := str(one.name)) is not None]
    without = unfit_for_osc52(b"", environment) or "OSC 52, which no terminal confirms"
    yield from dict.fromkeys(found) if found else [without.removesuffix(".")]


def _settings() -> Iterator[tuple[str, str]]:
    from rtui.server.files import config_folder, state_folder  # noqa: PLC0415 - the help must not wait for it
    from rtui.server.user.known_servers import Profiles  # noqa: PLC0415
    from rtui.tui.kit.settings import SettingsFile, settings_path  # noqa: PLC0415

    path = settings_path()
    failure = SettingsFile.opened(path).failure
    state = "can't be used" if failure is not None else "read" if path.exists() else "none"
    yield "settings.toml", state
    profiles = Profiles()
    names = profiles.names()
    yield "profiles.toml", f"{len(names)} named" if names else "can't be used" if profiles.path.exists() else "none"
    themes = len([*config_folder().glob("themes/*.toml")])
    yield "own themes", str(themes)
    folder = state_folder()
    place = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    yield "state folder", "writable" if os.access(place, os.W_OK) else "not writable: nothing is remembered"


def _asked(target: Target, demo: Any) -> tuple[list[tuple[str, str]], RtuiError | None]:
    way = ["TLS" if target.tls is not None else "no TLS", "socket" if target.socket_path is not None else "TCP"]
    way += [word for word, is_used in (("SSH", target.way.via), ("proxy", target.way.proxy)) if is_used]
    way += ["Sentinels"] if target.sentinels is not None else []
    rows = [("reached by", ", ".join(way)), ("user", "named" if target.user else "default")]
    try:
        with asked_server(target, demo) as server:
            rows += asyncio.run(_ask(server))
    except RtuiError as error:
        return [*rows, ("failure", error.title)], error
    return rows, None


async def _ask(target: Target) -> list[tuple[str, str]]:
    from rtui.analysis.facts import Reason  # noqa: PLC0415 - the help must not wait for all this
    from rtui.cli.run import connected  # noqa: PLC0415
    from rtui.server.health.watch import HealthWatch  # noqa: PLC0415
    from rtui.server.wire.capability import Capabilities, Feature, Verdict  # noqa: PLC0415

    async with connected(target, None) as (deployment, _):
        home, capabilities = deployment.home, Capabilities()
        await capabilities.probe(home)
        watch = HealthWatch(deployment)
        await watch.look()
        server, topology = home.server, deployment.topology
        found = {str(one): str(capabilities[one].verdict) for one in Feature}
        samples = [one.samples[-1] for one in watch.nodes if one.samples]
    for sample in samples:
        found = {str(source): str(Verdict.YES) for source in sample.sources} | found
        found |= {str(source): str(missing.reason) for source, missing in sample.missing.items()}
    yes, denied = str(Verdict.YES), str(Reason.DENIED)
    others = [name for name, verdict in found.items() if verdict not in (yes, denied)]
    named = {"allowed": _of(found, yes), "denied": _of(found, denied), "not available": others}
    primaries = 0 if topology is None else sum(1 for shard in topology.shards if shard.slots)
    nodes = f"{len([*topology.nodes])} nodes, {primaries} with slots" if topology is not None else server.mode or "?"
    return [
        ("server", f"{server.full_name}, {server.role or 'role not known'}"),
        ("deployment", nodes),
        ("maxmemory policy", str(server.maxmemory_policy or "not known")),
        ("keys", "not known" if server.databases is None else f"{sum(server.databases.values()):,}"),
        ("NO-TOUCH", str(home.no_touch)),
        ("nodes asked", f"{len(samples)} of {len(watch.nodes)}"),
        *((name, ", ".join(commands) or "none") for name, commands in named.items()),
    ]


def _of(found: Mapping[str, str], verdict: str) -> Iterable[str]:
    return [name for name, one in found.items() if one == verdict]
