"""Patterns on the command line: a draft that can be used at once, from a server or a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtui.analysis.formats.json import write_json
from rtui.cli.main import run
from rtui.registry.load import load_registry
from tests.made_report import made_report, partial_report
from tests.servers import Server


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
    assert (session.pattern.text, session.expectations.types) == ("shop:session:{id}", (b"string",))
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
    data = json.loads(capsys.readouterr().out)
    assert data["keys"] == made_report().summary.root.stats.keys
    report.write_text(write_json(partial_report()))
    assert run(["patterns", "--report", str(report), "--format", "toml"]) == 0
    assert "# Not every key was inspected" in capsys.readouterr().out
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
