from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from rtui.cli.commands import command
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


@pytest.mark.parametrize("module", ["rtui.cli.acl", "rtui.cli.commands"])
def test_neither_the_screen_nor_a_client_is_loaded(module: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not {"textual", "redis", "hiredis", "asyncio"} & set(said.stdout.split())
