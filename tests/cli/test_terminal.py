"""What the environment says of the terminal: whether it draws Unicode, is the Linux console, or follows no escapes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rtui.cli.options import draws_unicode, first_environment, terminal_options


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
