from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from rtui.cli.allowed import commands_command as command
from rtui.cli.main import run
from rtui.server.guard.closed_list import SETTINGS, TABLE
from rtui.server.guard.spec import CommandGroup


def printed(width: int, *args: str) -> list[str]:
    result = CliRunner().invoke(command, args, env={"COLUMNS": str(width), "TERM": "dumb", "NO_COLOR": "1"})
    assert result.exit_code == 0
    return result.stdout.splitlines()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_fits_and_leaves_nothing_out(width: int) -> None:
    lines = printed(width)
    assert max(cell_len(line) for line in lines) <= width
    words = set(" ".join(lines).split())
    for spec in TABLE:
        parts = " ".join((spec.usage.replace("|", " "), spec.cost, spec.why, *spec.bounds[1:])).split()
        assert set(parts) <= words, spec.usage


def test_one_group_only() -> None:
    text = "\n".join(printed(120, "--group", "zset"))
    assert "ZRANGE" in text
    assert "HSCAN" not in text
    assert "SCAN cursor" not in text


def test_json_is_the_whole_list() -> None:
    result = CliRunner().invoke(command, ["--json"])
    records = json.loads(result.stdout)
    assert sorted(record["usage"] for record in records) == sorted(spec.usage for spec in TABLE)
    by_usage = {record["usage"]: record for record in records}
    for spec in TABLE:
        record = by_usage[spec.usage]
        assert record["command"] == spec.name
        assert record["cost"] == spec.cost
        assert record["why"] == spec.why
        assert record["bounds"] == list(spec.bounds)
        assert record["acl"] == spec.acl_rule
        assert record["touches"] is spec.touches
        assert record["consent"] is spec.needs_consent
    assert by_usage["HPTTL key FIELDS n field […]"]["since_valkey"] == "9.0"
    assert by_usage["ARCOUNT key"]["since_valkey"] is None
    assert by_usage["CONFIG GET setting"]["settings"] == list(SETTINGS)


def test_json_of_a_group() -> None:
    records = json.loads(CliRunner().invoke(command, ["--json", "--group", "json", "--group", "bloom"]).stdout)
    assert {record["group"] for record in records} == {"json", "bloom"}


def test_an_unknown_group_is_a_usage_error() -> None:
    assert CliRunner().invoke(command, ["--group", "none"]).exit_code == 2


def test_every_group_has_entries() -> None:
    assert {spec.group for spec in TABLE} == set(CommandGroup)


@pytest.mark.parametrize("module", ["rtui.cli.allowed"])
def test_neither_the_screen_nor_a_client_is_loaded(module: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not {"textual", "redis", "hiredis", "asyncio"} & set(said.stdout.split())


@pytest.mark.parametrize("line", [["commands"], ["slot", "a", "b"]])
def test_json_is_one_option_everywhere_and_the_older_one_stays(
    line: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for asked in (["--format", "json"], ["--json"]):
        run([*line, *asked])
        texts.append(capfd.readouterr().out)
    run([*line, "-o", str(tmp_path / "a.json")])
    assert capfd.readouterr().out == ""
    assert [*texts, (tmp_path / "a.json").read_text()] == texts[:1] * 3
    json.loads(texts[0])
    run([*line, "-o", str(tmp_path / "a.txt")])
    assert "\x1b" not in (tmp_path / "a.txt").read_text()
    run([*line, "--help"])
    assert "--json" not in capfd.readouterr().out
