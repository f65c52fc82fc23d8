"""`rtui export` on the command line: what is written where, how it ends, and what reads it."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from rtui.analysis.formats.json import read_json
from rtui.cli.main import run
from rtui.server.wire.errors import ExitCode
from rtui.table.keys_file import KeysFile
from tests.cli.test_report import plant, plant_many
from tests.servers import Server


def test_every_key_is_a_row_in_each_format(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    for name in ("keys.parquet", "keys.csv", "keys.jsonl", "keys/"):
        assert run(["export", valkey.url, "-o", f"{tmp_path}/{name}"]) == ExitCode.FINE
        assert "320 keys in " in capsys.readouterr().err
    assert not [*tmp_path.glob(".*")]
    table = pl.concat(KeysFile.open(tmp_path / "keys.parquet").tables())
    assert sorted(table["name"].to_list()) == sorted(key.decode() for key in valkey.admin.scan_iter())
    assert table["node"].unique().to_list() == [f"127.0.0.1:{valkey.port}"]
    with (tmp_path / "keys.csv").open(newline="") as file:
        assert sum(int(row["memory_bytes"]) for row in csv.DictReader(file)) == table["memory_bytes"].sum()
    lines = [json.loads(line) for line in (tmp_path / "keys.jsonl").read_text().splitlines()]
    assert sum(one["length"] for one in lines) == table["length"].sum()
    folder = KeysFile.open(tmp_path / "keys")
    assert folder.height == 320
    assert folder.head is not None
    assert folder.head.head.coverage.keys == 320


def test_reports_checks_and_patterns_take_a_file_for_a_server(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    keys = str(tmp_path / "keys.parquet")
    assert run(["export", valkey.url, "-o", keys]) == ExitCode.FINE
    capsys.readouterr()
    parts = {"report --no-keep": "summary", "check --no-registry": "findings", "patterns": "patterns"}
    for command, part in parts.items():
        said = []
        for target in (valkey.url, keys):
            assert run([*command.split(), target, "--format", "json"]) == ExitCode.FINE
            found = json.loads(capsys.readouterr().out)[part]
            said.append(found["namespaces"] if part == "summary" else found)
        on_server, of_file = ([{name: one.get(name) for name in SAME} for one in found] for found in said)
        assert of_file == on_server
        assert on_server or part == "findings"


SAME = ("depth", "name", "keys", "memory_bytes", "types", "no_ttl_keys", "rule", "where", "pattern", "examples")
"""What two passes say of keys that nobody has changed, one after the other."""


@pytest.mark.slow
def test_interrupted_it_has_the_keys_seen_so_far(valkey: Server, tmp_path: Path) -> None:
    plant_many(valkey)
    path = tmp_path / "keys.parquet"
    line = [sys.executable, "-m", "rtui", "export", valkey.url, "-o", str(path), "--columns", "type,ttl,memory"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        while valkey.admin.info("commandstats").get("cmdstat_pttl", {}).get("calls", 0) < 20_000:
            assert process.poll() is None
        assert not path.exists()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 130, said
    assert path.exists(), said
    file = KeysFile.open(path)
    assert 0 < file.height < 150_000
    assert f"{file.height:,} keys in " in said
    assert "the file is partial: it was interrupted" in said
    assert file.head is not None
    assert (file.head.head.coverage.kind.value, file.head.rows) == ("partial", file.height)
    assert run(["report", str(path), "-o", str(tmp_path / "report.json"), "--no-keep"]) == ExitCode.FINE
    report = read_json((tmp_path / "report.json").read_bytes())
    assert report.head.coverage.keys == file.height
    assert report.head.coverage.reason == "it was interrupted"


def test_nothing_is_left_or_replaced_where_nothing_was_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "keys.parquet"
    path.write_text("before")
    for output in (str(path), f"{tmp_path}/folder/"):
        assert run(["export", "127.0.0.1:1", "-o", output]) == ExitCode.SERVER
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]
    assert run(["export", "127.0.0.1:1", "-o", str(tmp_path / "keys.xls")]) == ExitCode.USAGE
    assert run(["export", "127.0.0.1:1", "-o", f"{tmp_path}/"]) == ExitCode.USAGE
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["health", "browse", "slot a", "find x"])
def test_what_needs_a_server_does_not_take_a_file_for_one(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It must not end up at a server on this machine."""
    path = tmp_path / "keys.parquet"
    pl.DataFrame({"key": ["a"]}).write_parquet(path)
    command, *words = line.split()
    assert run([command, *(["-u"] if command == "slot" else []), str(path), *words]) in (
        ExitCode.USAGE,
        ExitCode.SERVER,
    )
    assert "keys.parquet" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "check", "patterns", "export -o new.csv"])
def test_a_damaged_file_ends_in_one_clear_error(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keys.parquet").write_bytes(b"PAR1" + 90 * b"\xfe" + b"\x40\0\0\0PAR1")
    assert run([*command.split(), "keys.parquet"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert said.startswith("rtui: The file of keys can't be read\n  ")
    assert said.count("\n") == 2
    assert not Path("new.csv").exists()


def test_two_files_are_compared_key_by_key_and_merged(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    before, after = (str(tmp_path / f"{name}.parquet") for name in ("before", "after"))
    assert run(["export", valkey.url, "-o", before]) == ExitCode.FINE
    valkey.admin.delete("shop:session:0")
    valkey.admin.set(b"shop:\xff", "new")
    valkey.admin.persist("shop:session:1")
    valkey.admin.append("shop:session:2", 500 * "x")
    assert run(["export", valkey.url, "-o", after]) == ExitCode.FINE
    capsys.readouterr()
    assert run(["diff", before, after, "--format", "json", "--no-registry"]) == ExitCode.FINE
    found = json.loads(capsys.readouterr().out)["keys"]
    names = {fate: [one["key_quoted"].strip('"') for one in keys["first"]] for fate, keys in found.items()}
    assert names == {
        "came": ["shop:\\xff"],
        "went": ["shop:session:0"],
        "grew": ["shop:session:2"],
        "lasting": ["shop:session:1"],
    }
    assert run(["diff", before, after, "--no-registry"]) == ExitCode.FINE
    said = capsys.readouterr().out
    assert "Keys: lost their TTL (1, " in said
    assert "shop:session:2  144 B → " in said
    assert run(["merge", before, after, "-o", str(tmp_path / "merged.json")]) == ExitCode.FINE
    report = read_json((tmp_path / "merged.json").read_bytes())
    assert (report.head.coverage.keys, report.head.coverage.kind.value) == (640, "exact")
    assert run(["merge", str(tmp_path / "merged.json")]) == ExitCode.USAGE
    assert "no file of keys" in capsys.readouterr().err
