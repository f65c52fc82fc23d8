"""The command: what it loads, what it prints, how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import rtui
from rtui.cli import main as command_line
from rtui.cli.main import group, run
from rtui.server.engine import EXTENSIONS, NOT_BUILT, OUTDATED, why_not
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, ExitCode, FailureKind, TargetError
from tests.servers import Server

HEAVY = (
    *("textual", "redis", "asyncio", "hiredis", "rich", "ssl", "platformdirs", "msgspec", "importlib.metadata"),
    *("polars", "numpy"),
)
"""What nobody should wait for who only asks for help."""


AFTER_A_REPORT = ("textual", "redis", "rich", "platformdirs", "rtui.analysis.formats.html")
"""What a report as text has no use for."""


def loaded_by(line: str, heavy: Sequence[str] = HEAVY) -> set[str]:
    """Which of these a fresh interpreter has loaded after a command line."""
    code = (
        f"import sys; from rtui.cli.main import run; code = run({line.split()!r}); "
        f"print('\\n', *[name for name in {heavy!r} if name in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "line",
    ["--help", "--version", "slot user:1", "acl", "commands --json", "report --help", "diff --help", "help connection"],
)
def test_what_needs_no_server_loads_little(line: str) -> None:
    assert loaded_by(line) == set()


def test_a_report_loads_nothing_of_the_interface_or_of_other_formats(valkey: Server) -> None:
    assert loaded_by(f"report --no-keep -p {valkey.port}", AFTER_A_REPORT) == set()


def test_the_tree_does_not_wait_for_what_analyses_need() -> None:
    code = (
        "import sys, rtui.tui.app, rtui.tui.browse.screen, rtui.server.browsing.session; "
        "print(*[name for name in sys.modules if name.startswith('rtui.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    rooms = ("rtui.table", "rtui.analysis.report", "rtui.server.inspection", "rtui.tui.analyse")
    assert "rtui.server.browsing.passes" in loaded
    assert not [name for name in loaded if name.startswith(rooms)]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert rtui.__version__ in capsys.readouterr().out


def test_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "rtui", "--version"], capture_output=True, text=True, check=True)
    assert rtui.__version__ in done.stdout


def test_a_subcommand_is_the_file_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["slot", "user:1"]) == 0
    assert "user:1" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["options", "profiles", "main", "cache:7000", "-h cache", "", "../slot", "slot.py"])
def test_anything_else_is_browsing(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    browse = command_line.group.get_command(click.Context(command_line.group), "browse")
    assert browse is not None

    def context(info_name: str | None, args: list[str], parent: click.Context, **more: object) -> click.Context:
        called.append(list(args))
        return click.Context(browse, parent=parent)

    monkeypatch.setattr(browse, "make_context", context)
    monkeypatch.setattr(browse, "invoke", lambda context: None)
    assert run(line.split()) == 0
    assert called == [line.split()]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--bogus", "--bogus"),
        ("-p x", "-p"),
        ("a b", "one TARGET"),
        ("redis://:s3cret/x@host", "@ after the host"),
        ("http://u:s3cret@host", "scheme"),
        ("slot", "KEY"),
        ("--memory-budget lots", "512M"),
        ("--match " + "*" * 17, "stars"),
        ("--pace fast", "--pace"),
    ],
)
def test_a_command_line_that_makes_no_sense(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert "s3cret" not in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (TargetError("title", "happened", "remedy"), 2, ["rtui: title", "  happened", "  remedy"]),
        (
            ConnectFailure(FailureKind.NAME, "happened", "remedy"),
            4,
            ["rtui: Unknown host", "  happened", "  remedy"],
        ),
        (ConnectionLost("happened"), 4, ["rtui: Connection lost", "  happened"]),
        (KeyboardInterrupt(), 130, []),
        (click.Abort(), 130, []),
        (SystemExit(7), 7, []),
        (SystemExit(), 0, []),
    ],
)
def test_how_it_ends(
    error: BaseException,
    code: int,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command_line.group, "main", failing_with(error))
    assert run([]) == code
    assert capsys.readouterr().err.splitlines() == lines


def test_a_fault_of_its_own_shows_nothing_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RTUI_DEBUG", raising=False)
    monkeypatch.setattr(command_line.group, "main", failing_with(ValueError("s3cret")))
    assert run(["redis://:s3cret@host"]) == 70
    err = capsys.readouterr().err
    assert "ValueError" in err
    assert "RTUI_DEBUG" in err
    assert "s3cret" not in err
    assert "Traceback" not in err


def test_for_those_who_debug_there_is_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RTUI_DEBUG", "1")
    monkeypatch.setattr(command_line.group, "main", failing_with(ValueError("why")))
    assert run([]) == 70
    assert "Traceback" in capsys.readouterr().err


def failing_with(error: BaseException) -> object:
    def main(*args: object, **more: object) -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("fnd ttl:none", "find"),
        ("reprot", "report"),
        ("Find x", "find"),
        ("heatlh --format json", "health"),
        ("helpp", "help"),
        ("verison", "--version"),
    ],
)
def test_a_mistyped_command_is_said(
    line: str, meant: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", nowhere)
    assert run(line.split()) == 2
    assert f"There is no command {line.split(maxsplit=1)[0]}" in (said := capfd.readouterr().err)
    assert f"Did you mean rtui {meant}?" in said


def nowhere(*_: object) -> None:
    raise OSError


def test_a_host_that_is_called_nearly_like_a_command_is_one(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: [])
    assert run(["fnd"]) == 2
    assert "is not a terminal" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-p abc", "'abc' is not a whole number from 1 to 65,535"),
        ("-p 99999", "'99999' is not a whole number from 1 to 65,535"),
        ("report --top 0", "'0' is not a whole number from 1 to 10,000"),
        ("-n x", "'x' is not a whole number from 0 to"),
        ("find a --limit many", "'many' is not a whole number from 1 on"),
        ("find a --budget-seconds 0", "'0' is not a number above 0"),
        ("replay f --speed 1000", "'1000' is not a number from 0.1 to 100"),
        ("health --watch x", "'x' is not a number from"),
        ("cache 7000", "Did you mean cache:7000?"),
        ("-p 7000 find ttl:none", "rtui find"),
        ("-h redis://cache", "a URL is the TARGET"),
        ("-h cache:7000", "-h cache -p 7000"),
        ("--theme rtui-ligth", "Did you mean rtui-light?"),
        ("history --theme nope", "There is rtui-ansi16, rtui-dark"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said(line: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    assert said in capfd.readouterr().err


@pytest.mark.parametrize("arguments", [[""], ["-h", ""], ["-u", ""], ["report", ""]])
def test_an_empty_argument_is_not_this_machine(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "is a variable not set?" in capfd.readouterr().err


def test_an_engine_that_was_not_built_is_said_in_a_sentence(tmp_path: Path) -> None:
    assert why_not(tmp_path) == NOT_BUILT
    for name in EXTENSIONS:
        (tmp_path / f"{name}{EXTENSION_SUFFIXES[0]}").touch()
    assert why_not(tmp_path) is None
    source = tmp_path / "_scan.pyx"
    source.touch()
    os.utime(source, (time.time() + 60, time.time() + 60))
    assert why_not(tmp_path) == OUTDATED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--version"], 0, "engine: not built"),
        (["--help"], 0, "--askpass"),
        (["report", "--help"], 0, "--estimate"),
        (["slot", "a"], 0, "15495"),
        (["report", "-p", "1"], 4, f"rtui: Not installed as a whole\n  {NOT_BUILT}\n"),
        (["find", "-p", "1", "a"], 4, NOT_BUILT),
        (["-p", "1"], 4, NOT_BUILT),
    ],
)
def test_without_an_engine_only_what_scans_is_missing(args: list[str], code: int, said: str) -> None:
    unbuilt = "import importlib.machinery, sys; importlib.machinery.EXTENSION_SUFFIXES = []"
    run = f"{unbuilt}\nfrom rtui.cli.main import run\nsys.exit(run({args!r}))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", ["check", "diff a", "find", "report", "health", "replay", "slot", "settings"])
def test_a_usage_error_is_the_usage_and_what_is_wrong(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*line.split(), "--no-such-option"]) == ExitCode.USAGE
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("Usage: rtui")
    assert [one.partition(":")[0] for one in said if "Error" in one or "Try" in one] == ["Error"]


@pytest.mark.parametrize(
    ("before", "begun", "completed"),
    [
        ("", "pat", {"patterns"}),
        ("", "--dem", {"--demo", "--demo-keys", "--demo-day"}),
        ("", "--vers", {"--version"}),
        ("", "dump", {"file"}),
        ("10.0.0.5", "--mem", {"--memory-budget"}),
        ("--pace", "n", {"normal"}),
        ("help", "exi", {"exit-codes"}),
        ("report prod", "--esti", {"--estimate"}),
        ("report --format", "ht", {"html"}),
        ("diff a.json", "b", {"file"}),
        ("open", "x", {"file"}),
    ],
)
def test_shells_complete_the_command_line(before: str, begun: str, completed: set[str]) -> None:
    found = ShellComplete(group, {}, "rtui", "_RTUI_COMPLETE").get_completions(before.split(), begun)
    assert {one.value if one.type == "plain" else one.type for one in found} == completed
