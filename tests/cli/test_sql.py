"""`rtui sql`: over a server and a dump, in every format, what it asks the server, and how it ends."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import polars as pl
import pytest

from rtui.cli.main import run
from tests.conftest import require
from tests.servers import Server

pytestmark = pytest.mark.slow

GROUPED = "SELECT type, count(*) AS keys, sum(length) AS length FROM keys GROUP BY type ORDER BY 1"
ODD = "SELECT key, key_quoted, ttl_ms, 1.0 / 0 AS x FROM keys WHERE type = 'string' ORDER BY key_quoted"


def plant(server: Server) -> None:
    admin = server.admin
    for number in range(20):
        admin.hset(f"user:{number}:profile", mapping={"a": "1", "b": "2"})
    admin.set(b"odd\xff", "x")
    admin.set("=evil\x1b[31m", "yy")


def test_a_server_in_every_format(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    log = tmp_path / "log"
    assert run(["sql", GROUPED, valkey.url, "--pace", "full", "--log", str(log)]) == 0
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()] == [
        ["2", "rows"], ["type", "keys", "length"], ["hash", "20", "40"], ["string", "2", "3"],
    ]  # fmt: skip
    assert err == ""
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    sent = {name for one in entries if one["purpose"] != "permission probe" for name in one["commands"]}
    assert {"TYPE", "HLEN", "STRLEN"} <= sent
    assert not {"PTTL", "MEMORY USAGE", "OBJECT IDLETIME", "OBJECT ENCODING"} & sent

    names = {form: str(tmp_path / f"r.{form}") for form in ("csv", "json", "jsonl", "md", "parquet")}
    for name in names.values():
        assert run(["sql", ODD, valkey.url, "--pace", "full", "-o", name]) == 0
    found = json.loads(Path(names["json"]).read_text())
    evil = {"key": "=evil\x1b[31m", "key_quoted": '"=evil\\x1b[31m"', "ttl_ms": -1, "x": None}
    odd = {"key": "odd\\xff", "key_quoted": '"odd\\xff"', "ttl_ms": -1, "x": None}
    assert found["rows"] == [evil, odd]
    assert (found["statement"], found["coverage"], found["more"]) == (ODD, "exact", False)
    *lines, end = map(json.loads, Path(names["jsonl"]).read_text().splitlines())
    assert lines == [evil, odd] and end["listed"] == 2
    rows = list(csv.DictReader(StringIO(Path(names["csv"]).read_text())))
    assert [row["key"] for row in rows] == ["'=evil␛[31m", "odd\\xff", ""]
    assert rows[-1]["coverage"] == "exact"
    assert "\x1b" not in Path(names["md"]).read_text()
    assert pl.read_parquet(names["parquet"])["key"].to_list() == ["=evil\x1b[31m", "odd\\xff"]
    assert json.loads(pl.read_parquet_metadata(names["parquet"])["rtui"])["coverage"] == "exact"


def test_a_dump(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require("valkey-9.1")
    plant(valkey)
    valkey.admin.save()
    dump = tmp_path / "night.rdb"
    dump.write_bytes((valkey.folder / "dump.rdb").read_bytes())
    assert (
        run(["sql", "SELECT pattern, keys FROM patterns ORDER BY keys DESC LIMIT 1", str(dump), "--format", "csv"]) == 0
    )
    assert capsys.readouterr().out.splitlines()[1].startswith("user:<id>:profile,20,")


def test_findings_are_those_of_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    demo = ["--demo", "--demo-keys", "2000", "--pace", "full", "--no-registry"]
    assert run(["sql", "SELECT rule, severity, place FROM findings", *demo, "--format", "jsonl"]) == 0
    *found, _ = map(json.loads, capsys.readouterr().out.splitlines())
    run(["check", *demo, "--format", "json"])
    expected = json.loads(capsys.readouterr().out)["findings"]
    assert {(one["rule"], one["severity"], one["place"]) for one in found} == {
        (one["rule"], one["severity"], one["where"]) for one in expected
    }


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT kye FROM keys", "       ^^^\n  There is no column kye; did you mean key?"),
        ("DROP TABLE keys", "Begin with SELECT or WITH, not with DROP"),
        ("SELECT * FROM read_csv('/etc/passwd')", "A table is keys, patterns or findings"),
        ("SELECT key FROM keys WHERE slot > 'a'", "Cannot compare string with numeric type"),
    ],
)
def test_a_wrong_statement_ends_before_the_server_is_asked(
    valkey: Server, sql: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = valkey.admin.info("stats")["total_commands_processed"]
    assert run(["sql", sql, valkey.url]) == 2
    assert said in capsys.readouterr().err
    assert valkey.admin.info("stats")["total_commands_processed"] - before <= 1


def test_a_long_result_says_that_there_is_more(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    assert run(["sql", "SELECT key FROM keys", valkey.url, "--limit", "3", "--format", "json", "--pace", "full"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["listed"], found["more"], found["coverage"]) == (3, True, "partial")
    assert err == f"rtui: {found['notes'][0]}\n"


def test_parquet_is_not_written_to_a_terminal_and_a_statement_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql"]) == 2
    assert "Missing STATEMENT" in capsys.readouterr().err


def test_a_pass_that_its_time_has_ended_says_so(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = valkey.admin.pipeline(transaction=False)
    for number in range(120_000):
        pipe.set(f"user:{number}", "x")
    pipe.execute()
    counted = "SELECT count(*) AS n FROM keys"
    assert run(["sql", counted, valkey.url, "--budget-seconds", "0.3", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert 0 < found["rows"][0]["n"] < 120_000
    assert found["coverage"] == "partial"
    assert "of the keyspace only: the 0.3 s budget was used up." in err
    assert err == f"rtui: {found['notes'][0]}\n"


def test_a_file_of_keys_says_what_its_server_says(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    valkey.admin.set("expires", "x", ex=3_600)
    path = str(tmp_path / "keys.parquet")
    assert run(["export", valkey.url, "-o", path, "--pace", "full"]) == 0
    capsys.readouterr()
    asked = "SELECT key_quoted, pattern, type, memory_bytes FROM keys ORDER BY key_quoted"
    texts = []
    for place in (valkey.url, path):
        assert run(["sql", asked, place, "--format", "jsonl", "--pace", "full"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 24
    assert run(["sql", "SELECT ttl_ms FROM keys WHERE key = 'expires'", path, "--format", "jsonl"]) == 0
    assert 3_500_000 < json.loads(capsys.readouterr().out.splitlines()[0])["ttl_ms"] <= 3_600_000
