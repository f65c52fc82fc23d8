"""References over a whole keyspace: what dangles and which copies disagree, of all keys and of a sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis
from redis.cluster import RedisCluster

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.members import CheckedReference, ReferenceChecks
from rtui.cli.main import run
from rtui.keyspace.text.display import SafeText
from rtui.registry.load import read_registry
from rtui.server.analysis.references import ReferenceCheck, ReferenceOptions
from rtui.server.deployment.nodes import Deployment
from rtui.server.scan.pace import Pace
from rtui.server.wire.target import ReplicaPolicy
from tests.clusters import TestCluster
from tests.server.deployment.test_nodes import deployed
from tests.server.targets import target_of
from tests.servers import Server

TEXT = """
[[pattern]]
pattern = "user:<userId>:orders"
references = [{ from = "member", to = "order:<member>", twin = "order:index:user:<userId>" }]
[[pattern]]
pattern = "order:index:user:<userId>"
[[pattern]]
pattern = "user:list"
references = [{ from = "member", to = "user:<member>" }]
[[pattern]]
pattern = "user:<id>"
placeholders = { id = "int" }
references = [{ from = "json:roleId", to = "role:<value>" }]
[[pattern]]
pattern = "order:<id>"
"""
REGISTRY = read_registry(TEXT)
USERS = 100
GONE = 7
"""Each such user has an order that is gone."""
UNLIKE = 50
"""Each such user's copy lacks one."""


def plant(client: redis.Redis | RedisCluster) -> None:
    pipeline = client.pipeline(transaction=False)
    for user in range(USERS):
        pipeline.set(f"user:{user}", json.dumps({"roleId": 1 if user else 9}))
        orders = [f"{user}-{number}" for number in range(3)]
        pipeline.sadd(f"user:{user}:orders", *orders)
        pipeline.sadd(f"order:index:user:{user}", *(orders[1:] if user % UNLIKE == 0 else orders))
        for order in orders[user % GONE == 0 :]:
            pipeline.set(f"order:{order}", "{}")
        pipeline.sadd("user:list", user)
    pipeline.sadd("user:list", "nobody")
    pipeline.set("role:1", "{}")
    pipeline.sadd("user:0:orders", *(f"0-{number}" for number in range(3, 250)))
    pipeline.execute()


async def checked(deployment: Deployment, keys: int | None) -> ReferenceChecks:
    check = ReferenceCheck(deployment, REGISTRY, ReferenceOptions(keys, pace=Pace.FULL))
    await check.run()
    assert check.found.failure == ""
    assert check.found.is_complete
    return check.found


def one(found: ReferenceChecks, pattern: str, *, is_twin: bool = False) -> CheckedReference:
    (of,) = (of for of in found.references if (of.pattern, of.is_twin) == (pattern, is_twin))
    return of


async def test_all_and_a_sample(valkey: Server) -> None:
    plant(valkey.admin)
    async with deployed(target_of(valkey)) as deployment:
        found = await checked(deployment, None)
        orders = one(found, "user:<userId>:orders")
        gone = {user for user in range(USERS) if user % GONE == 0}
        assert (orders.matching, orders.looked_at, orders.broken) == (USERS, USERS, len(gone))
        assert orders.values == 3 * USERS + 247
        assert orders.broken_values == len(gone) + 247
        key, missing = orders.examples[0]
        assert missing.startswith(b"order:" + key.split(b":")[1] + b"-")
        twin = one(found, "user:<userId>:orders", is_twin=True)
        assert (twin.target, twin.broken, twin.is_sample) == ("order:index:user:<userId>", USERS // UNLIKE, False)
        listed = one(found, "user:list")
        assert (listed.looked_at, listed.values, listed.examples) == (1, USERS + 1, [(b"user:list", b"user:nobody")])
        assert one(found, "user:<id>").examples == [(b"user:0", b"role:9")]
        assert not found.touched

        sampled = one(await checked(deployment, 40), "user:<userId>:orders")
        assert (sampled.matching, sampled.looked_at, sampled.is_sample) == (USERS, 40, True)
        assert isinstance(sampled.broken, Estimate)
        assert sampled.broken_keys <= sampled.broken.low <= sampled.broken.value <= sampled.broken.high <= USERS

        stopped = ReferenceCheck(deployment, REGISTRY)
        stopped.control.stop(SafeText("it was enough"))
        await stopped.run()
        assert (stopped.found.failure, stopped.found.is_complete) == ("it was enough", False)


@pytest.mark.parametrize("replicas", ["never", "prefer"])
@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_each_key_of_a_cluster_is_asked_at_its_node(
    cluster: TestCluster, valkey: Server, replicas: ReplicaPolicy
) -> None:
    with cluster.client() as client:
        plant(client)
    plant(valkey.admin)
    async with (
        deployed(target_of(valkey)) as alone,
        deployed(target_of(cluster.members[1].server, replicas=replicas)) as whole,
    ):
        expected, found = await checked(alone, None), await checked(whole, None)
    assert found.keys == expected.keys
    for ours, theirs in zip(found.references, expected.references, strict=True):
        figures = ("matching", "looked_at", "skipped", "broken", "values", "broken_values", "broken_keys", "unknown")
        assert [getattr(ours, one) for one in figures] == [getattr(theirs, one) for one in figures]


def test_what_check_says_of_them(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(valkey.admin)
    registry = tmp_path / "team.toml"
    registry.write_text(TEXT)
    asked = ["check", valkey.url, "--registry", str(registry), "--pace", "full", "--fail-on", "warn"]
    assert run([*asked, "--format", "json", "--references", "all"]) == 1
    found = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["rule"].startswith("reference")]
    assert [one["rule"] for one in found].count("reference-dangling") == 3
    (twin,) = (one for one in found if one["rule"] == "reference-twin")
    assert twin["where"] == "user:<userId>:orders"
    run([*asked, "--references", "off"])
    assert "point to a key" not in capsys.readouterr().out
    run(asked)
    out = capsys.readouterr().out
    assert "of user:<userId>:orders point to a missing key: member → order:<member>" in out
    assert "user:list → user:nobody" in out
