"""The same findings everywhere: in a report, by `rtui check` of that report and of the server, and on the screen."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rtui.analysis.formats.json import read_json
from rtui.cli.main import run
from rtui.registry.load import load_registry
from rtui.tui.analyse.findings_panel import LatestFindings
from tests.servers import Server

REGISTRY = """
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


def plant(server: Server, seed: int) -> None:
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
    plant(server, len(columns) * 7 + len(kind))
    team, out = tmp_path / "team.toml", tmp_path / "r.json"
    team.write_text(REGISTRY)
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
