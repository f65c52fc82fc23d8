"""The command: what it loads, what it prints, how it ends; its help, and `rtui doctor`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from rich.cells import cell_len

import rtui
from rtui.analysis.columns import SAMPLED_COLUMNS, SMALL_KEYSPACE
from rtui.analysis.formats.result_rows import FIELD_NAMES
from rtui.analysis.query.terms import TERMS
from rtui.cli import main as command_line
from rtui.cli.connection import ConnectionOptions
from rtui.cli.help import Command
from rtui.cli.main import COMMANDS, group, run
from rtui.cli.output import FORMATS_BY_SUFFIX
from rtui.keyspace.text.help_pages import PAGES, page_text
from rtui.server.engine import EXTENSIONS, NOT_BUILT, OUTDATED, why_not
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, ExitCode, FailureKind, TargetError
from rtui.server.wire.target import Timeouts
from tests.conftest import known
from tests.servers import Server, free_port
from tests.window import QUESTIONS, window

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
    browse = known(command_line.group.get_command(click.Context(command_line.group), "browse"))

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
        ("--bogus", "--bogus"), ("-p x", "-p"), ("a b", "one TARGET"), ("redis://:s3cret/x@host", "@ after the host"),
        ("http://u:s3cret@host", "scheme"), ("slot", "KEY"), ("--memory-budget lots", "512M"),
        ("--match " + "*" * 17, "stars"), ("--pace fast", "--pace"),
    ],
)  # fmt: skip
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
        (ConnectFailure(FailureKind.NAME, "happened", "remedy"), 4, ["rtui: Unknown host", "  happened", "  remedy"]),
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
        ("fnd ttl:none", "find"), ("reprot", "report"), ("Find x", "find"), ("heatlh --format json", "health"),
        ("helpp", "help"), ("verison", "--version"),
    ],
)  # fmt: skip
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


MOST_LINES = 45
MOST_LINES_OF_ALL = 52
COLUMNS = 80


def command_of(name: str) -> click.Command:
    return known(group.get_command(click.Context(group), name))


def said(line: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert run(line) == 0
    out = capsys.readouterr().out
    assert max(map(cell_len, out.splitlines())) <= COLUMNS
    return out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_on_a_screen(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = said([name, "--help"], capsys, monkeypatch)
    assert len(out.splitlines()) <= MOST_LINES
    assert name in PAGES or said(["help", name], capsys, monkeypatch) == out
    command = command_of(name)
    assert isinstance(command, Command)
    asks = any(one.name == "credential_provider" for one in command.params)
    assert ("rtui help connection" in out) is (asks or name == "help")
    shared = {field.name for field in fields(ConnectionOptions)} if asks else set[str]()
    for one in command.params:
        if isinstance(one, click.Option) and not one.hidden and one.name not in {*shared, "help"}:
            assert any(re.search(rf"(?<![\w-]){re.escape(option)}\b", out) for option in one.opts), one.opts
    assert out.split("Examples:\n")[1].count("\n  rtui ") == 1
    codes = out.split("Exit codes:\n")[1]
    for code in re.findall(r"^  (\d+) ", codes, re.MULTILINE):
        assert int(code) in {*map(int, ExitCode), 130}
    for page in re.findall(r"rtui help ([a-z-]+)", out):
        assert page in {*PAGES, *COMMANDS}


def test_the_list_of_commands_and_pages(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = said(["--help"], capsys, monkeypatch)
    assert len(out.splitlines()) <= MOST_LINES_OF_ALL
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\S", out, re.MULTILINE), name
    pages = said(["help"], capsys, monkeypatch)
    for name in PAGES:
        assert re.search(rf"^{name} +\S", pages, re.MULTILINE), name
        assert re.search(rf"[ ,]{name}(,|$)", out.partition("\nPages")[2], re.MULTILINE), name
    for word in ("TARGET", "-h", "--askpass", "rtui help connection", "--version"):
        assert word in out


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_markup_and_is_as_wide_as_the_terminal(name: str) -> None:
    text = page_text(name, COLUMNS)
    assert text.count("\n") > 5
    assert not re.search(r"^#+ [A-Z]|\*\*|^\||\]\(|```", text, re.MULTILINE)
    prose = [line for line in text.splitlines() if not line.startswith("  ") or name not in ("ci", "connection")]
    assert all(cell_len(line) <= COLUMNS or " " not in line.strip() for line in prose)


def test_every_file_is_a_page() -> None:
    root = Path(__file__).parents[2]
    assert {path.stem for path in (root / "rtui" / "help").glob("*.md")} == {*PAGES, "screen"}
    installed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert "rtui.help" in installed


def test_pages_say_what_the_program_does() -> None:
    """Where a page names options, terms, columns, codes and limits, they are all those that there are."""
    connection = page_text("connection", COLUMNS)
    shared = {field.name for field in fields(ConnectionOptions)}
    for one in command_of("report").params:
        if isinstance(one, click.Option) and one.name in shared:
            for option in one.opts:
                assert re.search(rf"(^|[ ,]){re.escape(option)}\b", connection, re.MULTILINE), option
    usual = Timeouts()
    assert f"({usual.lost_s:g})" in connection
    assert f"after {usual.direct_s:g} seconds" in connection
    assert f"after {usual.reply_s:g} seconds" in connection
    terms = page_text("terms", COLUMNS)
    for name in TERMS:
        assert name in ("text", "glob") or re.search(rf"(?<!\w){name}[:<>]", terms), name
    formats = page_text("formats", COLUMNS)
    for suffix, form in FORMATS_BY_SUFFIX.items():
        assert suffix in (".markdown", ".htm") or re.search(rf"^  {form} +{re.escape(suffix)} ", formats, re.MULTILINE)
    for field in ("key", "key_quoted", *FIELD_NAMES.values()):
        assert re.search(rf"^  {field}  ", formats, re.MULTILINE), field
    codes = page_text("exit-codes", COLUMNS)
    for code in ExitCode:
        assert re.search(rf"\b{int(code)}\b", codes), code
    columns = page_text("columns", COLUMNS)
    assert f"{SMALL_KEYSPACE:,} keys or fewer" in columns
    for fact in str(SAMPLED_COLUMNS).split(","):
        assert fact in columns


def test_an_unknown_page_is_a_usage_error_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "conection"]) == 2
    err = capsys.readouterr().err
    assert "id you mean connection?" in err
    assert "exit-codes" in err


SECRETS = ("mallory", "hunter2", "localhost", "acme-internal", "orders:of:acme")


def section(text: str, name: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return line.removeprefix(name)


def test_what_a_server_denies_is_named_and_nothing_secret(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = ["+@all", "-memory", "-slowlog", "~orders:of:acme*"]
    server.admin.execute_command("ACL", "SETUSER", "mallory", "on", ">hunter2", *rights)
    server.admin.set("orders:of:acme", "x")
    profiles = Path(os.environ["XDG_CONFIG_HOME"]) / "rtui/profiles.toml"
    profiles.parent.mkdir(parents=True)
    profiles.write_text('[acme-internal]\nhost = "acme-internal"\npassword = "hunter2"\n')
    profiles.chmod(0o600)
    monkeypatch.setenv("REDISCLI_AUTH", "hunter2")
    assert run(["doctor", f"redis://mallory:hunter2@localhost:{server.port}"]) == 0
    printed = capsys.readouterr()
    assert set(section(printed.out, "denied").strip().split(", ")) == {"MEMORY USAGE", "SLOWLOG GET"}
    assert "INFO memory" in section(printed.out, "allowed")
    assert "1 named" in section(printed.out, "profiles.toml")
    assert "REDISCLI_AUTH" in section(printed.out, "also set")
    assert not [secret for secret in SECRETS if secret in printed.out + printed.err]


def test_no_server_is_asked_unless_one_is_named(
    valkey: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["doctor"]) == 0
    assert "reached by" not in capsys.readouterr().out
    monkeypatch.setenv("RTUI_URL", valkey.url)
    assert run(["doctor"]) == 0
    assert "none" in section(capsys.readouterr().out, "denied")


def test_a_report_is_written_also_of_a_server_that_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert run(["doctor", f"redis://mallory@localhost:{port}", "-o", str(tmp_path / "doctor.md")]) == 4
    written = (tmp_path / "doctor.md").read_text("utf-8")
    assert "**failure**: Connection refused" in written
    assert "localhost" not in written
    assert f"localhost:{port}" in capsys.readouterr().err, "who runs it wants to know"


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "said"), [(b"\x1b[1;2R", "takes 1 of 2"), (b"", "not known")])
def test_the_terminal_is_asked_how_wide_characters_are(
    answer: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUESTIONS, b"\x1b[6n", answer)
    with window(["-m", "rtui", "doctor"]) as shown:
        shown.wait_for(said.encode())
        shown.wait_for(b"writable")
