"""`rtui history`, and reports that are named by when they were made."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from rtui.analysis import humanize
from rtui.analysis.findings.contents import findings
from rtui.cli.main import run
from rtui.registry.rules import Severity
from rtui.server.analysis.kept_reports import KeptReports
from tests.made_report import estimate_report, made_report, partial_report
from tests.servers import Server


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rtui" / "reports"


def keep_three(state: Path) -> KeptReports:
    kept, now_s = KeptReports("10.0.0.5:6379", 0, state), time.time()
    for age_s, report in ((90_000, partial_report()), (700, estimate_report()), (60, made_report())):
        kept.keep(replace(report, head=replace(report.head, made_at_s=now_s - age_s)))
    return kept


def test_reports_are_listed(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = keep_three(state)
    for line in ("history 10.0.0.5", "history"):
        assert run(line.split()) == 0
        head, *rows = capsys.readouterr().out.splitlines()
        assert "3 reports" in head
        assert str(kept.folder) in head
        errors = sum(one.severity is Severity.ERROR for one in findings(made_report()).findings)
        assert f"  {humanize.counted(errors, 'error')}, " in rows[0]
        assert ["exact" in rows[0], "estimate" in rows[1], "partial" in rows[2]] == [True] * 3
        assert [row.split()[0] for row in rows] == ["1", "2", "3"]
        assert re.search(r"\b1m( \d+s)? ago", rows[0])
        assert "≥ 1,000,000 keys" in rows[2] or "≥" in rows[2]


def test_as_json(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_three(state)
    assert run(["history", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["coverage"] for one in found] == ["exact", "estimate", "partial"]
    assert [Path(one["path"]).is_file() for one in found] == [True] * 3
    assert found[0]["keys"] == made_report().summary.root.stats.keys
    listed = findings(made_report()).findings
    assert sum(found[0]["findings"].values()) == len(listed) > found[0]["findings"]["error"] > 0


@pytest.mark.parametrize("junk", [b"", b"junk", b"\x1f\x8b\x08\0\0\0", None])
def test_one_that_can_not_be_read_is_said_and_changes_no_number(
    junk: bytes | None, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = keep_three(state)
    path = kept.files()[1].path
    path.unlink()
    if junk is None:
        path.mkdir()
    else:
        path.write_bytes(junk)
    assert run(["history"]) == 0
    out, err = capsys.readouterr()
    assert [row.split()[0] for row in out.splitlines()[1:]] == ["1", "3"]
    assert f"rtui: {path} can't be read" in err
    assert run(["history", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert [(one["number"], one["coverage"]) for one in json.loads(out)] == [(1, "exact"), (3, "partial")]
    assert f"rtui: {path} can't be read" in err
    opening, comparing = ["history", "10.0.0.5", "--open", "2"], ["diff", "10.0.0.5@1", "10.0.0.5@2"]
    for words, name in ((opening, str(path)), (comparing, "10.0.0.5@2")):
        assert run(words) == 2
        assert f"rtui: The report can't be read\n  {name}: " in capsys.readouterr().err
    assert run(["diff", "10.0.0.5@1", "10.0.0.5@3"]) == 0


def test_nothing_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history"]) == 0
    out, err = capsys.readouterr()
    assert (out, "No report is kept" in err) == ("", True)
    assert run(["history", "prod", "--open", "1"]) == 2
    assert run(["history", "--open", "1"]) == 2


def test_kept_reports_are_compared(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_three(state)
    assert run(["diff", "10.0.0.5@3", "10.0.0.5:6379@latest"]) == 0
    assert "partial" in capsys.readouterr().out
    assert run(["diff", "10.0.0.5@7", "10.0.0.5@latest"]) == 2
    assert "There is no report 7" in capsys.readouterr().err
    for path in sorted(state.rglob("*.gz"))[:1]:
        assert run(["diff", str(path), str(path)]) == 0


def test_a_report_of_a_server_is_kept_unless_unwanted(
    valkey: Server, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey.admin.set("a", "1")
    assert run(["report", valkey.url, "--no-keep"]) == 0
    assert not state.exists()
    assert run(["report", valkey.url]) == 0
    capsys.readouterr()
    assert run(["history", valkey.url]) == 0
    assert "1 report," in capsys.readouterr().out


def test_a_folder_that_can_not_be_written_is_said(
    valkey: Server, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey.admin.set("a", "1")
    state.parent.mkdir(parents=True)
    state.write_text("no folder")
    assert run(["report", valkey.url, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["format"] == "rtui report"
    assert "not kept" in err
