"""A report opened from a file: errors first, then the screen."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from rtui.analysis.formats.json import write_json
from rtui.analysis.report.document import Report
from rtui.cli.main import run
from rtui.registry.rules import Severity
from rtui.server.options import BrowseOptions
from tests.bench.window import window
from tests.made_report import made_report

Shown = list[tuple[Report, BrowseOptions, Report | None]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What the screen was opened over; it is not opened really, and there seems to be a terminal."""
    seen: Shown = []

    def show(report: Report, options: BrowseOptions, before: Report | None) -> int:
        seen.append((report, options, before))
        return 0

    screen = ModuleType("rtui.tui.run")
    screen.run_report = show  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rtui.tui.run", screen)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    return seen


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "report.json"
    path.write_text(write_json(made_report()))
    return str(path)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", BrowseOptions()),
        ("--ascii", BrowseOptions(ascii_only=True)),
        ("--theme light", BrowseOptions(theme="light")),
    ],
)
def test_the_report_is_shown(line: str, expected: BrowseOptions, shown: Shown, file: str) -> None:
    assert run(["open", file, *line.split()]) == 0
    assert shown == [(made_report(), expected, None)]


def test_an_earlier_report_is_compared_with(shown: Shown, file: str) -> None:
    assert run(["open", file, "--since", file]) == 0
    assert shown == [(made_report(), BrowseOptions(), made_report())]


def test_a_registry(shown: Shown, file: str, tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.write_text('[rules]\nkey-big = "off"')
    assert run(["open", file, "--registry", str(path)]) == 0
    registry = shown[0][1].registry
    assert registry is not None
    assert registry.rules.severity("key-big") is Severity.OFF
    path.write_text('[rules]\nkey-bug = "off"')
    assert run(["open", file, "--registry", str(path)]) == 2
    assert len(shown) == 1


def test_no_color(shown: Shown, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["open", file]) == 0
    assert shown[0][1].no_color


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"{}"])
def test_errors_come_before_the_screen(
    content: bytes | None, shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_bytes(content)
    assert run(["open", str(path)]) == 2
    assert "The report can't be read" in capsys.readouterr().err
    assert shown == []


def test_standard_input_is_the_keyboard(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["open", "-"]) == 2
    assert "keyboard" in capsys.readouterr().err


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_without_a_terminal_it_says_so(
    stream: str, shown: Shown, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: False)
    assert run(["open", file]) == 2
    assert "not a terminal" in capsys.readouterr().err
    assert shown == []


@pytest.mark.slow
def test_for_real(file: str) -> None:
    with window(["-m", "rtui", "open", file]) as screen:
        screen.wait_for(b"Findings")
        screen.wait_quiet(0.5)
        findings = len(screen.shown)
        screen.type(b"2")
        screen.wait_for(b"namespace", after=findings)
