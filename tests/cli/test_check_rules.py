"""Rules that need more than one look at one plain server, each on servers that break it and on such as don't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtui.cli.main import run
from tests.servers import Server


def findings_of(capsys: pytest.CaptureFixture[str], rule: str, server: Server, *options: str) -> list[dict[str, Any]]:
    """What `rtui check` finds by one rule."""
    target = f"127.0.0.1:{server.port}"
    run(["check", target, "--no-registry", "--format", "json", *options])
    document = json.loads(capsys.readouterr().out)
    assert rule in document["checked"]
    return [one for one in document["findings"] if one["rule"] == rule]


def test_a_list_that_only_grows(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    admin, earlier = valkey.admin, str(tmp_path / "earlier.json")
    for name, length in (("queue:mail", 900), ("queue:calm", 3_000), ("queue:worked", 3_000), ("queue:small", 10)):
        admin.rpush(name, *range(length))
    assert run(["report", f"127.0.0.1:{valkey.port}", "--no-registry", "--format", "json", "-o", earlier]) == 0
    assert findings_of(capsys, "queue-growing", valkey, "--since", earlier) == []
    admin.rpush("queue:mail", *range(600))
    admin.lpop("queue:worked", 2_000)
    admin.rpush("queue:worked", *range(1_500))
    admin.rpush("queue:small", *range(10))
    admin.rpush("queue:new", *range(5_000))
    (found,) = findings_of(capsys, "queue-growing", valkey, "--since", earlier)
    assert found["title"].startswith("List queue:mail grew from 900 to 1,500 elements in ")
    assert found["query"] == "glob:queue:mail"


def test_a_hot_key_about_to_expire(lfu_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    writes = lfu_server.admin.pipeline(transaction=False)
    for at in range(50):
        writes.set(f"product:{at}", "x" * 50, ex=200)
    writes.set("product:later", "x", ex=9_000)
    writes.set("settings", "x")
    writes.set("lock:product:7", "me", px=100_000)
    writes.execute()
    assert findings_of(capsys, "hot-key-expiring", lfu_server) == []
    reads = lfu_server.admin.pipeline(transaction=False)
    for name in 30 * ("product:7", "product:later", "settings", "lock:product:7"):
        reads.get(name)
    reads.execute()
    (found,) = findings_of(capsys, "hot-key-expiring", lfu_server)
    assert found["title"].startswith("Hot key product:7 has 3m ")


RULES = """
[rules]
strings-as-hash = { severity = "warn", saves = "10K" }
"""


def test_strings_of_users_and_of_a_cache(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "team.toml"
    path.write_text(RULES)
    pipeline = valkey.admin.pipeline(transaction=False)

    def found() -> dict[str, dict[str, Any]]:
        pipeline.execute()
        run(["check", f"127.0.0.1:{valkey.port}", "--registry", str(path), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        assert {"strings-as-hash", "null-cached"} <= set(document["checked"])
        return {one["rule"]: one for one in document["findings"]}

    for at in range(500):
        pipeline.hset(f"user:{at}", mapping={"name": f"ann{at}", "email": f"ann{at}@example.com"})
        pipeline.set(f"page:{at}:html", "<p>" * 100)
        pipeline.set(f"page:{at}:text", "words " * 50)
        pipeline.set(f"product:{at}", "x" * 300 if at % 5 else "null", px=600_000 if at % 5 else 30_000)
    assert not {"strings-as-hash", "null-cached"} & set(found())
    for at in range(500):
        for name in ("name", "email", "city", "street", "phone"):
            pipeline.set(f"client:{at}:{name}", f"{name} of {at}")
        pipeline.set(f"product:{at}", "x" * 300 if at % 5 else "null", px=600_000)
    both = found()
    assert both["strings-as-hash"]["title"].startswith("2,500 small strings of client:{id}: would take at least ")
    assert both["null-cached"]["title"].startswith(
        "100 strings of product:{id} hold 4 bytes at most, with more than 1m"
    )
    assert both["null-cached"]["query"] == "pattern:product:{id} type:string len<5"


def test_hashes_just_over_a_limit(redis810: Server, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = redis810.admin.pipeline(transaction=False)

    def write(name: str, fields: int) -> None:
        for at in range(120):
            pipeline.hset(f"{name}:{at}", mapping={str(field): "x" for field in range(fields)})
        pipeline.execute()

    write("order", 512)
    assert findings_of(capsys, "encoding-over", redis810) == []
    write("cart", 540)
    (found,) = findings_of(capsys, "encoding-over", redis810)
    assert found["title"].startswith("≥ 120 hash keys have 513 to 640 fields, just over the limit of 512")
    assert found["query"] == "type:hash len:513..640"


def test_keys_of_one_thing_in_several_slots(cluster_node: Server, capsys: pytest.CaptureFixture[str]) -> None:
    def write(*names: str) -> None:
        pipeline = cluster_node.admin.pipeline(transaction=False)
        for name in names:
            for at in range(100):
                pipeline.set(name.replace("ID", str(at)), "ann")
        pipeline.execute()

    write("{user:ID}:name", "{user:ID}:email", "session:ID")
    assert findings_of(capsys, "cross-slot", cluster_node) == []
    write("shop:ID:name", "shop:ID:owner")
    (found,) = findings_of(capsys, "cross-slot", cluster_node)
    assert found["title"].startswith("200 keys of shop:{id}: have no hash tag: ")
    assert found["keys"] == 200
