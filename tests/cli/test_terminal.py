"""What the environment says of the terminal; `rtui settings`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from rtui.cli.options import draws_unicode, first_environment, terminal_options
from rtui.cli.settings import command


@pytest.mark.parametrize(
    ("environment", "is_unicode"),
    [
        ({}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "POSIX"}, False),
        ({"LANG": "en_GB.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "ca_ES.UTF-8@valencia"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, True),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "", "LC_CTYPE": ""}, True),
    ],
    ids=str,
)
def test_the_locale_says_what_can_be_drawn(environment: Mapping[str, str], is_unicode: bool) -> None:
    assert draws_unicode(environment) is is_unicode


def test_without_a_file_of_the_process_its_environment_is_taken_as_it_is(tmp_path: Path) -> None:
    assert first_environment(tmp_path / "none") is os.environ


PRINT_OPTIONS = """
import click
from rtui.cli.options import appearance_options
click.command()(appearance_options(lambda **given: print(given["ascii_only"])))()
"""


@pytest.mark.parametrize(
    ("environment", "arguments", "is_ascii"),
    [
        ({"LANG": "C"}, (), True),
        ({}, (), True),
        ({"LANG": "C.UTF-8"}, (), False),
        ({"LANG": "C"}, ("--no-ascii",), False),
        ({"LANG": "C.UTF-8"}, ("--ascii",), True),
        ({"LC_CTYPE": "C.UTF-8"}, (), False),
    ],
    ids=str,
)
def test_python_does_not_hide_the_locale(
    environment: dict[str, str], arguments: tuple[str, ...], is_ascii: bool
) -> None:
    command = [sys.executable, "-c", PRINT_OPTIONS, *arguments]
    given = environment | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(is_ascii)


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({"TERM": "linux"}, {"no_color": False, "on_console": True}),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, {"no_color": True, "on_console": False}),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, {"no_color": False, "on_console": False}),
    ],
    ids=str,
)
def test_what_the_interface_is_told(
    environment: dict[str, str], options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert terminal_options() == options


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_follows_no_escapes_is_told_so_and_gets_none(term: str) -> None:
    main, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "rtui", "--demo"],
        stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "TERM": term, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    os.set_blocking(main, False)
    os.close(terminal)
    with pytest.raises(OSError, match=r"\[Errno"):
        os.read(main, 1)
    os.close(main)
    assert done.returncode == 2
    assert f"This terminal (TERM={term}) can't move its cursor" in done.stderr
    assert "\x1b" not in done.stderr


pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "rtui"


def run(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(command, args)
    assert result.exit_code == code, result.output
    return result.output


def test_it_prints_all_with_what_each_is_for() -> None:
    run("theme", "rtui-light")
    lines = run().splitlines()
    assert [line.split() for line in lines if line.startswith(("theme", "ascii"))] == [
        ["theme", '"rtui-light"', "Name", "of", "the", "theme;", "--theme", "takes", "precedence."],
        ["ascii", "false", "(default)", "Draw", "with", "ASCII", "characters", "only,", "as", "with", "--ascii."],
    ]


def test_it_sets_prints_and_forgets_one(folder: Path) -> None:
    assert run("--path") == f"{folder / 'settings.toml'}\n"
    run("tree.columns", '["keys", "TTL"]')
    assert '["keys","TTL"]' in run("tree.columns")
    run("keys.browse.filter", '["slash", "ctrl+g"]')
    run("tree.columns", "--reset")
    assert "(default)" in run("tree")
    run("--reset")
    assert '["slash","ctrl+g"]' in run("keys")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("thene", "x"), "There is no setting thene. Did you mean theme?"),
        (("thene",), "There is no setting thene."),
        (("ascii", "maybe"), "ascii: expected `bool`, got `str`."),
        (("rows.keep", "2000000000"), "rows.keep: expected `int` <= 1000000000."),
        (("theme", "x", "--reset"), "Give either a value or --reset."),
        (("keys.browse.filtr", "x"), "There is no command browse.filtr. Did you mean browse.filter?"),
    ],
)
def test_what_cannot_be_is_a_usage_error(args: tuple[str, ...], said: str) -> None:
    assert said in run(*args, code=2)


def test_a_wrong_file_is_a_usage_error(folder: Path) -> None:
    folder.mkdir()
    (folder / "settings.toml").write_text("theme = 1\n")
    assert "theme: expected `str | null`, got `int`." in run(code=2)
