"""`rtui history`: the reports that are kept; `rtui patterns`: a draft that can be used at once."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from rtui.analysis import humanize
from rtui.analysis.findings.contents import findings
from rtui.analysis.formats.json import write_json
from rtui.cli.main import run
from rtui.registry.load import load_registry
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
    path = keep_three(state).files()[1].path
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


def test_a_draft_of_a_server(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = valkey.admin.pipeline(transaction=False)
    for number in range(300):
        pipeline.set(f"shop:session:{number}", "x" * 100, ex=3_600)
    pipeline.hset("shop:settings", mapping={"name": "n"})
    pipeline.set("shop:session:" + "9" * 2_000, "x", ex=3_600)
    pipeline.execute()
    out = tmp_path / "rtui.toml"
    assert run(["patterns", valkey.url, "--pace", "full", "-o", str(out)]) == 0
    registry = load_registry(out)
    assert registry.warnings == ()
    assert -1 not in registry.matcher.match_page(list(valkey.admin.scan_iter()))
    session, settings = sorted(registry.entries, key=lambda entry: entry.pattern.text)
    assert (session.pattern.text, session.expectations.types) == ("shop:session:<id>", (b"string",))
    assert session.expectations.ttl is not None
    assert session.expectations.ttl.text == "<=1h"
    assert len(session.examples) == 3
    assert settings.pattern.text == "shop:settings"
    assert capsys.readouterr() == ("", "")
    assert run(["check", valkey.url, "--pace", "full", "--no-registry"]) == 0
    assert run(["check", valkey.url, "--pace", "full", "--registry", str(out)]) == 0
    assert "longer than any name should be" in capsys.readouterr().out


def test_of_a_report_without_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    report.write_text(write_json(made_report()))
    assert run(["patterns", "--report", str(report)]) == 0
    assert capsys.readouterr().out.startswith("Patterns of ")
    assert run(["patterns", "--report", str(report), "--format", "json", "--names", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"] == made_report().summary.root.stats.keys
    report.write_text(write_json(partial_report()))
    assert run(["patterns", "--report", str(report), "--format", "toml"]) == 0
    assert "# Not every key was analysed" in capsys.readouterr().out
    assert run(["patterns", "prod:6379", "--report", str(report)]) == 2
    assert run(["patterns", "--report", str(tmp_path / "none.json")]) == 2


def test_what_is_an_error_today_is_a_warning_in_the_draft(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.json").write_text(write_json(made_report()))
    assert run(["check", "--report", "report.json"]) == 1
    assert run(["patterns", "--report", "report.json", "-o", "rtui.toml"]) == 0
    assert run(["check", "--report", "report.json"]) in (0, 3)
    assert "[rules]" in (tmp_path / "rtui.toml").read_text()
    capsys.readouterr()
