"""Files of reports on the command line: two compared, one opened."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import ModuleType

import pytest

from rtui.analysis.formats.json import write_json
from rtui.analysis.formats.samples import SamplesHeader, header_line, sample_line
from rtui.analysis.report.document import Report
from rtui.cli.main import run
from rtui.keyspace.text.display import HOSTILE
from rtui.registry.rules import Severity
from rtui.server.health.session import SavedHealth
from rtui.server.options import BrowseOptions
from tests.analysis.findings.test_comparison import locks
from tests.analysis.report.test_comparison import report
from tests.conftest import known
from tests.made_report import denied_report, estimate_report, made_report, node, partial_report
from tests.made_sample import made_sample
from tests.window import window

BEFORE = report(node(b"shop", (1000, 102_400, 250)), node(b"gone", (1, 60, 0)))
AFTER = report(node(b"shop", (1200, 204_800, 360)), node(b"new", (3, 90, 0)))


def saved(folder: Path, name: str, of: Report) -> str:
    path = folder / name
    path.write_text(write_json(of))
    return str(path)


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    return [saved(tmp_path, "before.json", BEFORE), saved(tmp_path, "after.json", AFTER)]


def test_text_is_the_default(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", *pair]) == 0
    out, err = capsys.readouterr()
    assert "shop:      1,000 → 1,200" in out
    assert err == ""


def test_markdown(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", *pair, "--format", "md"]) == 0
    assert "| `shop:` | 1,000 → 1,200 |" in capsys.readouterr().out


def test_json(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", *pair, "--format", "json", "--fail-on", "new-namespaces>0"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["fail_on"][0]["outcome"] == "reached"
    assert {one["namespace"]: one["fate"] for one in document["namespaces"]} == {
        "shop:": "grew",
        "new:": "came",
        "gone:": "went",
    }


@pytest.mark.parametrize(
    ("thresholds", "code", "said"),
    [
        (["memory>+1000%"], 0, ""),
        (["memory>+50%"], 1, "rtui: reached: memory>+50% (it is 99.9707%)\n"),
        (["memory>+1000%", "shop: keys>=+200", "new-namespaces>0"], 1, "reached: shop: keys>=+200 (it is 200 keys)"),
        (["shop no-ttl>+5pt"], 0, ""),
        (["shop no-ttl>=+5pt"], 1, "reached"),
        (["nobody keys>1"], 3, "not checked: nobody keys>1 (neither report has a namespace of this name)"),
        (["nobody keys>1", "keys>1"], 1, "reached: keys>1"),
        (["memory>20%"], 2, "memory>20%: a change in percent needs a sign, as in 'memory>+20%'"),
        (["ke\x1bys>1"], 2, "ke␛ys>1: write it like"),
    ],
)
def test_thresholds(
    thresholds: list[str], code: int, said: str, pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = [part for threshold in thresholds for part in ("--fail-on", threshold)]
    assert run(["diff", *pair, *options]) == code
    err = capsys.readouterr().err
    assert said in err
    assert bool(err) == bool(code)
    assert not HOSTILE.search(err.replace("\n", ""))


@pytest.mark.parametrize(
    ("other", "threshold"),
    [(denied_report(), "memory>+1000%"), (partial_report(), "keys>+20%"), (estimate_report(), "memory>+1%")],
)
def test_what_is_not_checked_has_its_own_code(
    other: Report, threshold: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [saved(tmp_path, "a.json", made_report()), saved(tmp_path, "b.json", other)]
    assert run(["diff", *names, "--fail-on", threshold]) == 3
    out, err = capsys.readouterr()
    assert "not checked" in err
    assert "NOT CHECKED" in out


def test_depth_and_top_bound_what_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def tree(keys: int) -> Report:
        below = [node(b"n%d" % number, (keys, keys, 0)) for number in range(5)]
        return report(node(b"top", (5 * keys, 5 * keys, 0), *below))

    pair = [saved(tmp_path, "a.json", tree(1)), saved(tmp_path, "b.json", tree(2))]
    assert run(["diff", *pair, "--top", "2"]) == 0
    assert "… and 4 more" in capsys.readouterr().out
    assert run(["diff", *pair, "--depth", "1"]) == 0
    assert "n0" not in capsys.readouterr().out


def test_one_may_come_from_standard_input(
    pair: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path(pair[0]).read_bytes())))
    assert run(["diff", "-", pair[1]]) == 0
    assert "1,000 → 1,200" in capsys.readouterr().out
    assert run(["diff", "-", "-"]) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"a": 1}', "not a report of rtui"),
        (b'{"format": "rtui report", "schema": 999}', "newer rtui"),
        (b"[" * 100_000, ""),
    ],
)
def test_a_file_that_can_not_be_read(
    content: bytes | None, said: str, pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil\x1b[31m.json"
    if content is not None:
        path.write_bytes(content)
    assert run(["diff", pair[0], str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rtui: The report can't be read\n  ")
    assert said in err
    assert not HOSTILE.search(err.replace("\n", ""))


def test_a_folder_is_no_report(pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", str(tmp_path), pair[1]]) == 2
    assert "Is a directory" in capsys.readouterr().err


def test_findings_by_the_severities_of_the_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [saved(tmp_path, "a.json", locks(a=0)), saved(tmp_path, "b.json", locks(a=1))]
    team = tmp_path / "team.toml"
    team.write_text('[rules]\nlock-without-ttl = "warn"')
    assert run(["diff", *pair, "--no-registry", "--fail-on", "new-errors>0"]) == 1
    assert capsys.readouterr().err == "rtui: reached: new-errors>0 (it is 1 new)\n"
    assert run(["diff", *pair, "--registry", str(team), "--fail-on", "new-errors>0"]) == 0
    assert "Findings: new (1)\nwarn  lock-without-ttl  1 lock of a-lock: has no TTL\n" in capsys.readouterr().out
    assert run(["diff", *pair, "--registry", str(tmp_path / "none.toml")]) == 2


def test_the_exit_codes_and_thresholds_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "--help"]) == run(["help", "thresholds"]) == 0
    out = capsys.readouterr().out
    for word in ("Exit codes", "  3  ", "memory>+20%", "new-namespaces", "percentage points"):
        assert word in out


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
    assert known(shown[0][1].registry).rules.severity("key-big") is Severity.OFF
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
    assert known(health.compared(health.nodes[0])).now.report is not None
    assert run(["open", samples, "--since", file]) == 2


def test_samples_without_any(seen: list[SavedHealth], samples: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(samples)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert run(["open", samples]) == 2
    assert "there is no sample in it" in capsys.readouterr().err
    assert seen == []


def test_a_report_needs_no_report(shown: Shown, file: str) -> None:
    assert run(["open", file, "--report", file]) == 2
