"""The help: of each command on a screen of 80 columns, and pages about what commands have in common."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest
from rich.cells import cell_len

from rtui.analysis.columns import SAMPLED_COLUMNS, SMALL_KEYSPACE
from rtui.analysis.formats.result_rows import FIELD_NAMES
from rtui.analysis.query.terms import TERMS
from rtui.cli.connection import ConnectionOptions
from rtui.cli.help import Command
from rtui.cli.main import COMMANDS, group, run
from rtui.cli.output import FORMATS_BY_SUFFIX
from rtui.keyspace.text.help_pages import PAGES, page_text
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import Timeouts

MOST_LINES = 45
MOST_LINES_OF_ALL = 52
COLUMNS = 80


def command_of(name: str) -> click.Command:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return command


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
    assert said(["help"], capsys, monkeypatch) == out
    for name in (*COMMANDS, *PAGES):
        assert re.search(rf"^  {name} +\S", out, re.MULTILINE), name
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
