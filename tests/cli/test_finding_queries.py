"""The query of each finding, asked of the server that was checked: it finds the keys that the finding counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtui.cli.main import run
from tests.servers import Server

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
