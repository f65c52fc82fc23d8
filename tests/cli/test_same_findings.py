"""The same findings and names in several commands, and the query of each finding, asked of a server."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rtui.analysis.formats.json import read_json
from rtui.cli.main import run
from rtui.keyspace.text.segments import raw_java_name
from rtui.registry.load import load_registry
from rtui.tui.analyse.findings_panel import LatestFindings
from tests.servers import Server

RULES = """
[[pattern]]
pattern = "shop:cart:<id>"
type = "hash"
ttl = "required"
length = "<=5"

[[pattern]]
pattern = "blob:<id>"
type = "string"
size = "<=1M"
"""

COLUMNS = ("", "ttl", "memory", "ttl,memory", "length", "type", "ttl,length,encoding")
NAMES = ("shop:cart", "blob", "lock:order", "page:{x}", "Mixed:Case", "feed", "tmp")


def plant_everything(server: Server, seed: int) -> None:
    """A keyspace drawn from a seed, with some big keys in it."""
    random, pipeline = Random(seed), server.admin.pipeline(transaction=False)
    for name in NAMES:
        kind, count = random.choice(("string", "hash", "list", "zset")), random.randrange(1, 60)
        for number in range(count):
            key = f"{name}:{number}"
            if kind == "string":
                pipeline.set(key, "x" * random.choice((3, 50, 2_000)))
            elif kind == "hash":
                pipeline.hset(key, mapping={f"f{at}": "v" for at in range(random.choice((1, 4, 200)))})
            elif kind == "list":
                pipeline.rpush(key, *range(random.choice((1, 9, 300))))
            else:
                pipeline.zadd(key, {f"m{at}": at for at in range(random.choice((1, 9, 300)))})
            if random.random() < 0.5:
                pipeline.expire(key, random.choice((30, 3_600, 864_000)))
    pipeline.set("blob:big", "x" * 3_000_000)
    pipeline.set("feed:archive", "x" * 1_200_000)
    pipeline.rpush("feed:long", *range(12_000))
    pipeline.execute()


def told(findings: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Rule, place and sentence of each finding that is about keys."""
    return sorted((one["rule"], one["where"], one["title"]) for one in findings if one["keys"] is not None)


@pytest.mark.slow
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("kind", ["redis70", "redis810", "valkey"])
def test_a_report_its_check_and_the_screen_say_the_same(
    kind: str, columns: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server: Server = request.getfixturevalue(kind)
    plant_everything(server, len(columns) * 7 + len(kind))
    team, out = tmp_path / "team.toml", tmp_path / "r.json"
    team.write_text(RULES)
    chosen = ["--columns", columns] if columns else []
    assert (
        run(["report", server.url, *chosen, "--registry", str(team), "--format", "json", "-o", str(out), "--no-keep"])
        == 0
    )
    written = json.loads(out.read_text())
    capsys.readouterr()
    run(["check", "--report", str(out), "--registry", str(team), "--format", "json"])
    checked = json.loads(capsys.readouterr().out)
    registry = load_registry(team)
    found, _ = LatestFindings(registry.rules, registry)._find(read_json(out.read_bytes()), None)
    on_screen = [{"rule": one.rule, "where": one.where, "title": one.title, "keys": one.keys} for one in found.findings]
    assert told(written["findings"]) == told(checked["findings"]) == told(on_screen)
    assert [one["rule"] for one in checked["not_judged"]] == [one.rule for one in found.unjudged]
    if not columns:
        run(["check", server.url, "--registry", str(team), "--format", "json"])
        live = json.loads(capsys.readouterr().out)
        timeless = {"key-idle", "expiry-cliff"}
        assert [one for one in told(live["findings"]) if one[0] not in timeless] == [
            one for one in told(checked["findings"]) if one[0] not in timeless
        ]
    big = [one["title"] for one in checked["findings"] if one["rule"] == "key-big"]
    knows_memory, knows_length = (
        "memory" in columns or not columns,
        kind != "redis70" and ("length" in columns or not columns),
    )
    assert any("string" in one for one in big) == (knows_memory or knows_length)
    unjudged = {one["rule"] for one in checked["not_judged"]}
    assert ("key-big" in unjudged) == (not knows_memory and not knows_length)
    alone = [one for one in checked["notes"] if one.startswith("key-big goes by")]
    assert bool(alone) == (knows_memory is not knows_length)


REGISTRY = """
[rules]
lock-long = { severity = "warn", longest = "10m" }
key-unregistered = { severity = "error", keys = 10 }
key-big = { severity = "warn", string = "8K", elements = 50 }
[naming]
case = "lower"
[[pattern]]
pattern = "sess:<id>"
type = "hash"
ttl = "30m..2h"
length = "<=3"
[[pattern]]
pattern = "blob:<id>"
type = "string"
ttl = "none"
size = "100..1K"
[[pattern]]
pattern = "tiny:<id>"
size = ">=200"
[[pattern]]
pattern = "old:<id>"
deprecated = "use blob"
[[pattern]]
pattern = "{kind}:lock:<id>"
"""

ABOUT_NONE = ("pattern-unused",)
UNTELLABLE = ("name-empty-segment", "name-long", "name-huge", "name-case", "name-characters", "name-mixed-separators")
"""Rules about names of which the query language can't tell who breaks them."""


def plant(server: Server) -> None:
    writes = server.admin.pipeline(transaction=False)
    for at in range(30):
        writes.hset(f"sess:{at}", mapping={"a": "1", "b": "2"})
        writes.expire(f"sess:{at}", 3_600 if at % 3 else 90_000)
        writes.set(f"blob:{at}", "x" * (300 if at % 5 else 5_000))
        writes.set(f"tiny:{at}", "x" * (10 if at % 10 == 0 else 400))
        writes.set(f"a:lock:{at}", "me", ex=30 if at % 2 else 9_000)
        writes.set(f"stray:{at}", "x")
    for at in range(3):
        writes.set(f"sess:9{at}1", "a string", ex=3_600)
        writes.hset(f"sess:8{at}1", mapping={str(field): "x" for field in range(9)})
        writes.expire(f"sess:8{at}1", 3_600)
        writes.hset(f"sess:7{at}1", "a", "1")
        writes.set(f"blob:6{at}1", "x" * 200, ex=5_000)
        writes.set(f"old:{at}", "x")
        writes.set(f"b:lock:{at}", "me")
        writes.set(f"few:{at}:x", "x")
    writes.mset({"with space:1": "x", "it's": "x", "a::b": "x", "x{}:y": "x", "a\ttab": "x"})
    writes.rpush("long:list", *range(100))
    writes.set("big:one", "x" * 20_000)
    writes.execute()


@pytest.mark.slow
def test_queries_of_findings(valkey: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    team = tmp_path / "team.toml"
    team.write_text(REGISTRY)
    run(["check", valkey.url, "--registry", str(team), "--format", "json"])
    findings = json.loads(capfd.readouterr().out)["findings"]
    asked = [one for one in findings if one["rule"] not in (*ABOUT_NONE, *UNTELLABLE)]
    wrong = []
    for one in asked:
        assert run(["find", valkey.url, "--count", one["query"]]) == 0, one
        count = int(capfd.readouterr().out)
        least = one["keys"]["at_least"] if isinstance(one["keys"], dict) else one["keys"]
        is_exact = not isinstance(one["keys"], dict) and one["where"] != "no namespace"
        if count < least or (count > least and is_exact):
            wrong.append((one["rule"], one["where"], one["keys"], one["query"], count))
    assert wrong == []
    assert {one["rule"] for one in asked} >= {
        *("type-wrong", "ttl-missing", "ttl-too-long", "ttl-unexpected", "size-out-of-range", "length-out-of-range"),
        *("key-unregistered", "pattern-deprecated", "lock-without-ttl", "lock-long", "key-big"),
        *("name-whitespace", "name-quotes", "tag-empty"),
    }
    evidence = {(one["rule"], one["where"]): one["evidence"] for one in asked}
    assert evidence["lock-without-ttl", "b:lock:"][0].startswith("such as b:lock:")
    assert evidence["lock-long", "a:lock:"][0].startswith("among keys such as a:lock:")
    queries = {(one["rule"], one["where"]): one["query"] for one in asked}
    assert queries["ttl-too-long", "sess:<id>"] == "sess:* ttl>2h"
    assert queries["size-out-of-range", "tiny:<id>"] == "tiny:* size<200"
    assert queries["length-out-of-range", "sess:<id>"] == "sess:* len>3"


@pytest.mark.slow
def test_queries_about_names_are_of_their_place_alone(
    valkey: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a glob tells who breaks the rule, the keys of the namespace that do not are left out."""
    bad = {"name-control": b"\x1b[2J", "name-encoding": b"\xff", "name-whitespace": b" ", "name-quotes": b"'"}
    names: list[bytes] = []
    for wrong in bad.values():
        for at in range(3):
            names += [b"team:a:%d%s" % (at, wrong), b"[x]*:%d%s" % (at, wrong), b"%d%s" % (at, wrong)]
            names += [b"w%s:%d" % (wrong, at)]
    fine = [b"team:a:1", b"team:b:1", b"[x]*:1", b"1", b"xx:1"]
    valkey.admin.mset(dict.fromkeys([*names, *fine], "x"))
    team = tmp_path / "team.toml"
    team.write_text("")
    run(["check", valkey.url, "--registry", str(team), "--format", "json"])
    findings = [one for one in json.loads(capfd.readouterr().out)["findings"] if one["rule"] in bad]
    assert {(one["rule"], one["where"]) for one in findings} >= {
        (rule, where) for rule in bad for where in ("team:a:", "[x]*:", "no namespace")
    }
    for one in findings:
        assert run(["find", valkey.url, "--format", "json", one["query"]]) == 0
        found = json.loads(capfd.readouterr().out)["keys"]
        assert len(found) >= one["keys"], one
        if one["rule"] != "name-control":  # of which a glob finds names that are not printable otherwise
            assert len(found) == one["keys"], one
        assert {key["key_quoted"] for key in found}.isdisjoint(f'"{name.decode()}"' for name in fine), one
        assert not one["command"].endswith(("'*'", " *")), one


TEXTS = [f"user:cache:{number}" for number in (*range(1, 40), 100, 1000)]


def plant_java_names(server: Server) -> None:
    client = server.client()
    client.mset({raw_java_name(text.encode()) or b"": "x" for text in TEXTS})
    client.mset({b"user:cache:10": "text", b"\xac\xed\0\5t\0\7abc": "of another length"})


def test_they_are_one_pattern_of_the_registry(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant_java_names(valkey)
    assert run(["patterns", valkey.url]) == 0
    assert ["user:cache:<id>", "42"] in [line.split()[:2] for line in capfd.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("terms", "count"),
    [
        (["cache:1"], 14), (["user:cache:10*"], 4), (["in:user"], 42), (["in:⛾user:cache"], 41),
        (["pattern:user:cache:<id>", "type:string"], 42), (["user:cache:1000"], 1), (["abc"], 1),
    ],
)  # fmt: skip
def test_they_are_found_by_their_text(
    valkey: Server, capfd: pytest.CaptureFixture[str], terms: list[str], count: int
) -> None:
    plant_java_names(valkey)
    assert run(["find", valkey.url, *terms, "--count"]) == 0
    assert capfd.readouterr().out == f"{count}\n"


def test_two_keys_of_one_text_are_two(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant_java_names(valkey)
    assert run(["find", valkey.url, "user:cache:10", "!user:cache:10?*", "--format", "json"]) == 0
    keys = json.loads(capfd.readouterr().out)["keys"]
    assert sorted(one["key_quoted"] for one in keys) == [r'"\xac\xed\x00\x05t\x00\ruser:cache:10"', '"user:cache:10"']


def test_they_are_reported(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant_java_names(valkey)
    assert run(["report", valkey.url, "--no-keep"]) == 0
    out = capfd.readouterr().out
    assert "41 keys have a Java-serialised name: JdkSerializationRedisSerializer wrote it" in out
    assert {line.split()[1] for line in out.splitlines() if line.startswith("  ⛾user:cache:<id>")} == {"41"}
    assert run(["report", valkey.url, "--no-keep", "--format", "json"]) == 0
    (found,) = (one for one in json.loads(capfd.readouterr().out)["findings"] if one["rule"] == "name-java-serialised")
    assert found["keys"] == 41
