"""A report opened from a file: errors first, then the screen."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from rtui.analysis.formats.json import write_json
from rtui.analysis.formats.samples import SamplesHeader, header_line, sample_line
from rtui.analysis.report.document import Report
from rtui.cli.main import run
from rtui.registry.rules import Severity
from rtui.server.health.session import SavedHealth
from rtui.server.options import BrowseOptions
from tests.made_report import made_report
from tests.made_sample import made_sample
from tests.window import window

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
        ("--theme rtui-light", BrowseOptions(theme="rtui-light")),
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


@pytest.fixture
def samples(tmp_path: Path) -> str:
    path = tmp_path / "samples.jsonl"
    header = SamplesHeader(began_ms=made_sample().at_ms, server="10.0.0.5:6379")
    path.write_text("".join([header_line(header), *(sample_line(made_sample(at), header) for at in (0, 5))]))
    return str(path)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> list[SavedHealth]:
    """What the Server screen was opened over."""
    found: list[SavedHealth] = []

    def show(health: SavedHealth, _options: BrowseOptions) -> int:
        found.append(health)
        return 0

    sys.modules["rtui.tui.run"].run_samples = show  # type: ignore[attr-defined]
    return found


def test_samples_are_shown(seen: list[SavedHealth], samples: str) -> None:
    assert run(["open", samples]) == 0
    (health,) = seen
    assert health.nodes == ("10.0.0.5:6379",)
    assert health.file == "samples.jsonl · 2 samples, 2026-09-21 14:13:20 to 14:13:25 UTC"
    assert health.compared(health.nodes[0]) is None


def test_earlier_samples_are_compared_with(seen: list[SavedHealth], samples: str, file: str) -> None:
    assert run(["open", samples, "--since", samples, "--report", file]) == 0
    (health,) = seen
    compared = health.compared(health.nodes[0])
    assert compared is not None
    assert compared.now.report is not None
    assert run(["open", samples, "--since", file]) == 2


def test_samples_without_any(seen: list[SavedHealth], samples: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(samples)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert run(["open", samples]) == 2
    assert "there is no sample in it" in capsys.readouterr().err
    assert seen == []


def test_a_report_needs_no_report(shown: Shown, file: str) -> None:
    assert run(["open", file, "--report", file]) == 2
