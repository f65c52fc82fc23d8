"""`rtui find`: what it takes for the server and what for terms, what it writes, and how it ends."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import cast

import pytest

from rtui.analysis.query.parsing import read
from rtui.analysis.query.terms import TERMS
from rtui.cli.find import marked, split_target
from rtui.cli.find_run import Forecast
from rtui.cli.main import run
from rtui.keyspace.text.display import display, quoted
from rtui.server.options import FindOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.search.run import KeySearch
from rtui.server.wire.errors import ExitCode
from rtui.server.wire.target import parse_target
from rtui.tui.kit.settings import SettingsFile, save_query
from tests.cli.test_options import given_by
from tests.servers import Server, free_port

MANY = 120_000


@pytest.mark.parametrize(
    ("arguments", "target", "terms"),
    [
        (["cart"], None, ["cart"]),
        (["user:42", "ttl:none"], None, ["user:42", "ttl:none"]),
        (["prod", "ttl:none"], None, ["prod", "ttl:none"]),
        (["type:hash"], None, ["type:hash"]),
        (["localhost", "cart"], "localhost", ["cart"]),
        (["localhost:7000", "cart"], "localhost:7000", ["cart"]),
        (["redis:6379", "cart"], "redis:6379", ["cart"]),
        (["cache.example.com:80", "cart"], "cache.example.com:80", ["cart"]),
        (["10.0.0.5", "cart"], "10.0.0.5", ["cart"]),
        (["10.0.0.5:6380", "cart", "ttl:none"], "10.0.0.5:6380", ["cart", "ttl:none"]),
        (["[::1]:6379", "cart"], "[::1]:6379", ["cart"]),
        (["redis://u@h/0", "cart"], "redis://u@h/0", ["cart"]),
        (["/no/socket", "cart"], None, ["/no/socket", "cart"]),
        (["-h", "h", "10.0.0.5", "cart"], None, ["10.0.0.5", "cart"]),
        (["localhost"], "localhost", []),
        (["localhost:7", "cart"], "localhost:7", ["cart"]),
        *(
            ([term, "ttl:none"], None, [term, "ttl:none"])
            for term in (
                *("slot:2734", "len:6379", "SLOT:2734", "node:7000", "shard:2000", "!len:6379", "in:7000", "size:1024"),
                *("node:10.0.0.5:6379", "tag:9000", "text:6379", "re:6379", "freq:1024", "pattern:6379", "len>6379"),
            )
        ),
        (["redis://slot:2734", "cart"], "redis://slot:2734", ["cart"]),
        (["-h", "h", "slot:2734"], None, ["slot:2734"]),
    ],
)
def test_the_first_argument_is_the_server_where_it_can_be_nothing_else(
    arguments: list[str], target: str | None, terms: list[str]
) -> None:
    options, _ = given_by(*arguments)
    assert split_target(options) == ((() if target is None else (target,)), tuple(terms))


def test_a_socket_is_a_server(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        options, _ = given_by(path, "cart")
        assert split_target(options) == ((path,), ("cart",))


def plant(server: Server) -> None:
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for number in range(300):
        pipeline.set(f"shop:session:{number}", "x" * number, ex=3600 if number % 2 else None)
    for number in range(20):
        pipeline.hset(f"shop:user:{number}:profile", mapping={"name": "n", "email": "e"})
    pipeline.set(b"\xff raw\x1b[31m", "v")
    pipeline.set(b"=SUM(A1)", "v")
    pipeline.execute()


def found(server: Server, *arguments: str, code: int = 0) -> None:
    assert run(["find", server.url, *arguments]) == code


def test_names_are_written_a_line_each(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "profile")
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == sorted(f"shop:user:{number}:profile" for number in range(20))
    assert err == "rtui: 20 keys.\n"


def test_columns_stand_before_the_names(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "in:shop", "ttl:none", "len>290", "--columns", "type,ttl,len,idle,freq", "--sort", "len")
    out = capfd.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert all(re.fullmatch(r"\d+s", line[4]) for line in lines)
    assert [" ".join(line[:4] + line[5:]) for line in lines] == [
        f"string no TTL {number} – shop:session:{number}" for number in (298, 296, 294, 292)
    ]


@pytest.mark.parametrize(
    ("sort", "listed"),
    [
        ("key", ["2", "10", "1a", "2b"]),
        ("key:desc", ["2b", "1a", "10", "2"]),
        ("key-bytes", ["10", "1a", "2", "2b"]),
        ("KEY-bytes:desc", ["2b", "2", "1a", "10"]),
    ],
)
def test_names_are_sorted_with_their_numbers_or_by_their_bytes(
    valkey: Server, capfd: pytest.CaptureFixture[str], sort: str, listed: list[str]
) -> None:
    valkey.client().mset({f"job:{name}": "" for name in listed})
    found(valkey, "job", "--sort", sort)
    assert capfd.readouterr().out.split() == [f"job:{name}" for name in listed]
    found(valkey, "job", "--sort", sort, "--limit", "2")
    assert capfd.readouterr().out.split() == [f"job:{name}" for name in listed[:2]]


def test_hostile_names_are_safe_to_show(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, r'"\xff"')
    assert capfd.readouterr().out == "\\xff raw␛[31m\n"


def test_json_has_every_byte(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "!in:shop", "--format", "json", "--columns", "type,ttl")
    written = json.loads(capfd.readouterr().out)
    assert written["format"] == "rtui find"
    assert written["query"] == "!in:shop"
    assert written["count"] == 2
    assert written["complete"]
    by_quoted = {one.pop("key_quoted"): one for one in written["keys"]}
    assert by_quoted == {
        r'"\xff raw\x1b[31m"': {"key": None, "type": "string", "ttl_ms": -1},
        '"=SUM(A1)"': {"key": "=SUM(A1)", "type": "string", "ttl_ms": -1},
    }
    found(valkey, "nothing-like-it", "--format", "json")
    assert json.loads(capfd.readouterr().out)["keys"] == []
    found(valkey, "in:shop", "--format", "json", "--count")
    assert json.loads(capfd.readouterr().out)["count"] == 320


def test_csv_has_no_formulas(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "SUM", "--format", "csv", "--columns", "type,size")
    rows = list(csv.reader(capfd.readouterr().out.splitlines()))
    assert rows[0] == ["key", "key_quoted", "type", "memory_bytes", "coverage", "notes"]
    assert rows[1][:3] == ["'=SUM(A1)", '"=SUM(A1)"', "string"]
    assert int(rows[1][3]) > 0
    assert rows[1][4:] == ["", ""]
    assert rows[2:] == [["", "", "", "", "exact", "1 key."]]


def csv_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text, newline="")))


def test_csv_says_whether_these_are_all_keys(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    valkey.admin.set("", "x")
    valkey.admin.set("a", "x")
    found(valkey, "type:string", "--format", "csv")
    *keys, end = csv_of(capfd.readouterr().out)
    assert {(row["key"], row["key_quoted"], row["coverage"]) for row in keys} == {("", '""', ""), ("a", '"a"', "")}
    assert (end["key_quoted"], end["coverage"], end["notes"]) == ("", "exact", "2 keys.")
    found(valkey, "type:string", "--format", "csv", "--limit", "1")
    first, end = csv_of(capfd.readouterr().out)
    assert (first["coverage"], end["coverage"]) == ("", "partial")
    assert "(--limit 1)" in end["notes"]
    found(valkey, "none", "--format", "csv")
    (end,) = csv_of(capfd.readouterr().out)
    assert end["coverage"] == "exact"
    found(valkey, "type:string", "--format", "csv", "--count")
    assert csv_of(capfd.readouterr().out) == [{"count": "2", "coverage": "exact", "notes": "2 keys."}]


@pytest.mark.parametrize(("name", "form"), [("a.json", "json"), ("a.CSV", "csv"), ("a.txt", "text"), ("keys", "text")])
def test_a_file_has_what_would_be_printed(
    name: str, form: str, valkey: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    path = tmp_path / name
    path.write_text("earlier" * 10_000)
    path.chmod(0o640)
    found(valkey, "in:shop", "type:hash", "--sort", "key", "-o", str(path))
    assert capfd.readouterr().out == ""
    found(valkey, "in:shop", "type:hash", "--sort", "key", "--format", form)
    assert path.read_bytes().decode() == capfd.readouterr().out
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_search_that_fails_leaves_the_file(valkey: Server, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text("earlier")
    assert run(["find", "-p", str(free_port()), "key", "-o", str(path)]) == ExitCode.SERVER
    assert path.read_text() == "earlier"
    assert run(["find", valkey.url, "key", "-o", str(tmp_path / "none" / "keys.json")]) == ExitCode.OUTPUT
    assert [one.name for one in tmp_path.iterdir()] == ["keys.json"]


NAMES_OF_BYTES = (b"", b"a b", b"new\nline", b"\xff\xfe", b"tab\t:x", b"-n", b"'quoted\"", b"\xc3\xa9", b"\x1b[31m")


@pytest.mark.parametrize("terms", [["re:(?s)^.*$"], ["ttl:none", "type:string"]])
def test_names_are_written_byte_for_byte_for_xargs(valkey: Server, terms: list[str]) -> None:
    client = valkey.client()
    for name in NAMES_OF_BYTES:
        client.set(name, "v")
    with program(valkey, *terms, "--format", "raw") as process:
        assert process.stdout is not None
        out = process.stdout.read()
    assert process.returncode == 0
    assert sorted(out.split(b"\0")[:-1]) == sorted(NAMES_OF_BYTES)
    assert out.endswith(b"\0")


def test_bare_names_have_no_columns(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["find", valkey.url, "a", "--format", "raw", "--columns", "ttl"]) == 2
    assert "leave --columns out" in capfd.readouterr().err
    plant(valkey)
    found(valkey, "session", "--format", "raw", "--sort", "len", "--limit", "2")
    assert capfd.readouterr().out == "shop:session:299\0shop:session:298\0"
    found(valkey, "session", "-0", "--sort", "len", "--limit", "1")
    assert capfd.readouterr().out == "shop:session:299\0"
    found(valkey, "profile", "--format", "raw", "--count")
    assert capfd.readouterr().out == "20\n"


def test_a_pipe_gets_bare_names_and_facts_on_request(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "ttl:none", "len>296", "type:string")
    assert sorted(capfd.readouterr().out.splitlines()) == ["shop:session:298"]
    found(valkey, "session:29", "ttl:none", "--sort", "memory", "--limit", "2")
    assert len(capfd.readouterr().out.split()) == 2
    found(valkey, "session:298", "--columns", "TTL_ms, length,slot")
    assert capfd.readouterr().out.split()[:3] == ["no", "TTL", "298"]
    found(valkey, "session:298", "--columns", "memory,slot", "--format", "jsonl")
    key, end = map(json.loads, capfd.readouterr().out.splitlines())
    assert list(key) == ["key", "key_quoted", "memory_bytes", "slot"]
    assert end["count"] == 1
    assert run(["find", valkey.url, "a", "--columns", "size,colour"]) == 2
    assert run(["find", valkey.url, "a", "--sort", "slot"]) == 2


def test_it_counts(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "session", "!ttl:none", "--count")
    assert capfd.readouterr().out == "150\n"


def test_it_ends_with_as_many_as_are_wanted(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "session", "--limit", "7", "--columns", "size")
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 7
    assert err == "rtui: 7 keys shown; there are more (--limit 7).\n"
    found(valkey, "session", "--limit", "1", "--format", "json")
    written = json.loads(capfd.readouterr().out)
    assert (written["listed"], len(written["keys"]), written["count"], written["complete"]) == (1, 1, None, False)
    assert 1 <= written["at_least"] <= 300
    assert written["notes"] == ["1 key shown; there are more (--limit 1)."]
    found(valkey, "session", "--limit", "4000", "--format", "json")
    written = json.loads(capfd.readouterr().out)
    assert written["listed"] == written["count"] == written["at_least"] == 300
    assert written["complete"]


def test_which_keys_of_a_sorted_list_are_shown_is_said(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "session", "--sort", "len", "--limit", "2")
    assert capfd.readouterr().err == "rtui: 300 keys; the first 2 of them are shown (--limit 2).\n"
    found(valkey, "session", "--sort", "len")
    assert capfd.readouterr().err == "rtui: 300 keys.\n"


@dataclass
class Going:
    """A search that has got so far."""

    fraction: float | None
    listed: int = 0
    options: FindOptions = field(default_factory=FindOptions)

    @property
    def progress(self) -> Progress:
        return Progress(ScanState.RUNNING, self.fraction)

    @property
    def matches(self) -> Going:
        return self

    @property
    def control(self) -> RunControl:
        return RunControl(self.options.pace)


def said_of(going: Going, **seconds: float) -> list[str | None]:
    """What is said of a search that has got to these fractions after so many seconds."""
    forecast = Forecast(cast("KeySearch", going), 100.0)
    sentences: list[str | None] = []
    for name, fraction in seconds.items():
        going.fraction = fraction
        sentences.append(forecast.due(100.0 + float(name[1:].replace("_", "."))))
    return sentences


def test_how_long_it_takes_is_said_by_its_speed_and_again_where_that_changes() -> None:
    sentences = said_of(Going(None), s0_5=0.001, s1=0.01, s2_9=0.1, s3=0.05, s5=0.1, s7=0.13, s14=0.14, s29=0.95)
    assert sentences == [
        *(None, None, None),
        "Takes about 50s at gentle pace, by its speed so far.",
        *(None, None),
        "Takes about 1m 40s at gentle pace, by its speed so far.",
        "Takes about 30s at gentle pace, by its speed so far.",
    ]


def test_a_search_that_ends_early_is_not_forecast_to_its_end() -> None:
    assert said_of(Going(None), s1=0.5, s3=0.99) == [None, None]
    limited = Going(None, 10, FindOptions(limit=40, stops_at_limit=True, pace=Pace.FULL))
    assert said_of(limited, s1=0.001, s3=0.01)[1] == "Takes about 12s at full pace, by its speed so far."
    timed = Going(None, options=FindOptions(budget_s=20))
    assert said_of(timed, s1=0.001, s3=0.01)[1] == "Takes about 20s at gentle pace, by its speed so far."


def test_nothing_is_forecast_where_cursors_have_no_place() -> None:
    assert Forecast(cast("KeySearch", Going(None)), 0.0).due(60.0) is None


@pytest.mark.parametrize(
    "arguments",
    [["type:hsh"], [], ["a", "--columns", "colour"], ["a", "--sort", "ttl:up"], ["a", "--limit", "0"], ["ttl<10x"]],
)
def test_what_makes_no_sense_ends_before_it_connects(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["find", "redis://127.0.0.1:1/0", *arguments]) == 2
    assert capfd.readouterr().err


def test_a_wrong_term_is_marked(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["find", "-p", "1", "cart", "type:hsh", "ttl<1x"]) == 2
    assert capfd.readouterr().err == (
        "rtui: the query can't be read\n"
        "  cart type:hsh ttl<1x\n"
        "            ^^^\n"
        "  “hsh” is not a known type (quote it to search for it anyway); did you mean hash?\n"
        "  cart type:hsh ttl<1x\n"
        "                    ^^\n"
        "  “x” is no unit of time: there are ms, s, m, h, d, w and y; did you mean 1m?\n"
        "  rtui help terms lists them.\n"
    )


def test_the_mark_is_below_wide_and_hidden_characters() -> None:
    line = "漢字 \x1b[31m type:hsh"
    (problem,) = read(line).problems
    lines = marked(line, problem).splitlines()
    assert lines[0] == "  漢字 ␛[31m type:hsh"
    assert lines[1] == f"{' ' * (2 + 4 + 1 + 5 + 1 + 5)}^^^"


@pytest.mark.parametrize("term", [f"{name}:5" for name in TERMS])
def test_no_term_is_a_server_in_any_subcommand(term: str, capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("browse", "report", "check", "patterns", "health", "history"):
        assert run([command, term]) == 2
        assert f"'{term}' is a term of rtui find, not a server" in capfd.readouterr().err
    assert f"redis://{term}" in (run([term]), capfd.readouterr().err)[1]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["localhost:7000"], "A TARGET"), (["redis://cache"], "A TARGET"), (["10.0.0.5"], "A TARGET"),
        (["-p", "7000"], "--port"), (["--profile", "prod"], "--profile"), (["-n", "3"], "--db"),
        (["--only-node"], "--only-node"), (["-a", "pw"], "--pass"), (["-3"], "-3"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["browse", "find", "report", "check", "patterns"])
def test_no_server_is_named_beside_the_demo(
    command: str, given: list[str], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    terms = ["ttl:none"] if command == "find" else []
    assert run([command, "--demo", *given, *terms]) == 2
    assert f"{named} does not go with --demo" in capfd.readouterr().err


@pytest.mark.parametrize("terms", [["redis:6379"], [""], ["", "ttl:none"], ["-p", "7000", "", "ttl:none"]])
def test_a_search_without_a_term_is_refused(terms: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["find", *terms]) == 2
    assert "Missing TERM" in (said := capfd.readouterr().err) or "empty" in said


@pytest.mark.parametrize(
    ("terms", "meant"),
    [
        (["type:set", "OR", "type:zset"], "type:set,zset"),
        (["size", ">1M"], "'size>1M'"),
        (["session", "tyep:hash"], "type:hash"),
    ],
)
def test_a_near_miss_is_said_in_every_format(
    terms: list[str], meant: str, valkey: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    for form in ("text", "csv", "json"):
        for more in ([], ["--count"]):
            found(valkey, *terms, "--format", form, *more)
            out, err = capfd.readouterr()
            assert err.count(f"did you mean {meant}?") == 1
            if form == "json":
                assert any(f"did you mean {meant}?" in note for note in json.loads(out)["notes"])


def test_a_near_miss_is_said_though_keys_are_found(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    valkey.client().set("x:tll:none", "v")
    found(valkey, "tll:none")
    out, err = capfd.readouterr()
    assert out == "x:tll:none\n"
    assert "did you mean ttl:none?" in err


def test_a_doubt_is_said_only_where_nothing_is_found(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "Session:1")
    assert "did you mean session:1?" in capfd.readouterr().err
    found(valkey, "Session:1", "--format", "json")
    assert any("did you mean session:1?" in note for note in json.loads(capfd.readouterr().out)["notes"])
    valkey.client().set("Session:1", "v")
    found(valkey, "Session:1")
    assert "did you mean" not in capfd.readouterr().err


ODD_NAMES = (
    *(b"a:[1]", b"x:[ab]:y", b"shared[rate][sms]:k", b"[rate]", b"resque:worker:*", b"what?", b"PS::690b\\1::A"),
    *(b"b\\*c", b'q:["]', b"s:[a b]", b"prefix[0-9]suffix", b"[^a]b", b"k[]"),
)


@pytest.mark.sampled("form")
@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_a_whole_name_that_exists_is_found_though_it_is_a_glob(
    name: bytes, form: str, valkey: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    client = valkey.client()
    for other in (*ODD_NAMES, b"a:1", b"x:a:y", b"sharedtm:k", b"5", b"k"):
        client.hset(other, mapping={"f": "v"})
    typed = name.decode() if b" " not in name and b'"' not in name else quoted(name).replace("\\\\", "\\")
    for more in ([], ["type:hash", "ttl:none"]):
        found(valkey, typed, *more, "--format", form)
        out = capfd.readouterr().out
        if form == "text":
            listed = {line.split("  ")[-1] for line in out.splitlines()}
        elif form == "csv":
            listed = {row[1] for row in list(csv.reader(out.splitlines()))[1:-1]}
        else:
            listed = {one["key_quoted"] for one in json.loads(out)["keys"]}
        assert (display(name) if form == "text" else quoted(name)) in listed
        count = len(listed)
        found(valkey, typed, *more, "--count")
        assert capfd.readouterr().out == f"{count}\n"
    found(valkey, typed, "type:string", "--count")
    assert capfd.readouterr().out == "0\n"


def test_a_glob_finds_both_what_it_matches_and_the_key_that_is_named_like_it(
    valkey: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    client = valkey.client()
    client.mset({"w:[12]": "v", "w:1": "v", "w:2": "v", "w:3": "v"})
    found(valkey, "w:[12]")
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["w:1", "w:2", "w:[12]"]
    assert "w:[12] is both a glob and the name of a key: both are found." in err
    found(valkey, "!w:[12]", "w")
    assert capfd.readouterr().out == "w:3\n"
    found(valkey, "w:[12]", "--limit", "1")
    assert len(capfd.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("name", ["tag:5", "slot:7", "in:shop", "!odd", "type:hash", "ttl:none", "re:^x", "len>5"])
def test_a_key_that_is_named_like_a_term_is_not_denied(
    name: str, valkey: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    valkey.client().set(name, "v", ex=1000)
    found(valkey, name)
    out, err = capfd.readouterr()
    quotes = f'"{name}"'
    assert out == ""
    assert f"{name} is a term, and the name of a key, which is found in quotes: {quotes}." in err
    found(valkey, quotes)
    assert capfd.readouterr().out == f"{name}\n"
    valkey.client().delete(name)
    found(valkey, name)
    assert "the name of a key" not in capfd.readouterr().err


def test_a_name_that_was_taken_for_a_server_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["find", "no-such-host.invalid:2000", "ttl:none"]) != 0
    assert """put that in quotes: '"no-such-host.invalid:2000"'""" in capfd.readouterr().err
    assert run(["find", "-p", "7000", "redis://cache", "ttl:none"]) == 2
    assert "Name the server once" in capfd.readouterr().err


def test_how_a_glob_that_finds_nothing_was_read_is_said(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    found(valkey, "shop[user]:profile")
    out, err = capfd.readouterr()
    assert out == ""
    assert "is a glob, which must match" in err
    assert """did you mean '"shop[user]:profile"'?""" in err
    found(valkey, "shop:nobody:*")
    assert capfd.readouterr().err == "rtui: 0 keys.\n"


def test_a_term_that_is_denied_is_named(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    valkey.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~*", "+@all", "-pttl")
    url = valkey.url.replace("redis://", "redis://poor:pw@")
    assert run(["find", url, "ttl:none"]) == ExitCode.SERVER
    err = capfd.readouterr().err
    assert "ttl:none needs PTTL" in err
    assert "rtui acl" in err


def many(server: Server) -> None:
    client = server.client()
    for start in range(0, MANY, 10_000):
        client.mset({f"key:{number}": "v" for number in range(start, start + 10_000)})


def program(server: Server, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rtui", "find", server.url, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_quietly(valkey: Server) -> None:
    many(valkey)
    with program(valkey, "key", "--pace", "full") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"key:")
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == ExitCode.READER_GONE
    assert b"Traceback" not in said
    assert b"fault" not in said


WRITER = """
import signal
from rtui.analysis.formats.result_rows import FoundKeys
from rtui.analysis.report.document import KeyRecord
from rtui.cli.output import STANDARD_STREAM, Output, open_standard_streams
open_standard_streams()
signal.signal(signal.SIGINT, lambda *_: None)
output = FoundKeys(Output(STANDARD_STREAM).write, "text", "", ())
for start in range(0, 80_000, 20_000):
    output.write([KeyRecord(b"%06d" % number) for number in range(start, start + 20_000)])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="how much a pipe holds is asked as on Linux")
def test_a_signal_in_the_middle_of_writing_loses_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        room = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
        waiting = bytearray(4)
        while int.from_bytes(waiting, sys.byteorder) < room:
            fcntl.ioctl(process.stdout, termios.FIONREAD, waiting)
        process.send_signal(signal.SIGINT)
        lines = process.stdout.readlines()
    assert lines == [b"%06d\n" % number for number in range(80_000)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_was_found_before_ctrl_c_is_written(valkey: Server, form: str) -> None:
    many(valkey)
    with program(valkey, "ttl:none", "--format", form) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        if form == "json":
            first += b"".join(process.stdout.readline() for _ in range(4))
        process.send_signal(signal.SIGINT)
        out, said = first + process.stdout.read(), process.stderr.read()
    assert process.returncode == 130
    assert b"incomplete, since it was interrupted" in said
    assert "then reads PTTL of up to 120,000 keys" in said.decode()
    if form == "json":
        written = json.loads(out)
        assert 0 < len(written["keys"]) < MANY
        assert not written["complete"]
    else:
        assert 0 < len(out.splitlines()) < MANY


def test_a_saved_query_is_found_by_its_name(
    valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.toml"
    monkeypatch.setattr("rtui.tui.kit.settings.settings_path", lambda: path)
    settings = SettingsFile(path)
    save_query(settings, parse_target(valkey.url), "profiles", "in:shop type:hash")
    settings.flush()
    plant(valkey)
    found(valkey, "@profiles", "!:1", "--count")
    assert capfd.readouterr().out == "9\n"
    found(valkey, "@profile", "--count")
    out, err = capfd.readouterr()
    assert out == "0\n"
    assert "@profiles exists" in err
