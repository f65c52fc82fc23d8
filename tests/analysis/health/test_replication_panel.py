"""The Replication panel: what changed in the samples, what is behind and how long that takes, who has a say."""

from __future__ import annotations

from typing import Any

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.durability_panels import needed_sentinels, quorum_of, replication_panel
from rtui.analysis.health.panel import Line
from rtui.analysis.health.sample import Missing, Peer, Replica, Sample, SentinelView, Source
from rtui.analysis.health.view import HealthView
from tests.made_sample import MIB, made_sample

OTHER = "f" * 40


def lines(*samples: Sample) -> dict[str, Line]:
    return {line.id: line for line in replication_panel(HealthView(samples)).lines}


def role(*changes: dict[str, Any]) -> str:
    """What is said of the role after samples with these changes."""
    return str(lines(*(made_sample(30 * at, **changed) for at, changed in enumerate(changes)))["role"].said)


def test_what_has_changed() -> None:
    primary: dict[str, Any] = {"role": "master"}
    replica: dict[str, Any] = {"role": "slave", "master_host": "10.0.0.7", "master_port": 6379}
    assert role(primary, primary) == ""
    assert role(primary, replica).startswith("primary until 2")
    assert role(replica, primary).startswith("replica until 2")
    assert role(replica, {**replica, "master_host": "10.0.0.8"}).startswith("followed 10.0.0.7:6379 until 2")
    assert role(primary, {**primary, "run_id": OTHER}).startswith("another server answers since 2")
    assert role(primary, {**primary, "run_id": OTHER, "uptime_in_seconds": 9}) == ""
    assert role(primary, replica, primary).count(" until ") == 2
    assert role({"role": None}, primary) == ""


def test_bytes_that_are_not_acknowledged() -> None:
    behind: dict[str, Any] = {
        "connected_slaves": 2,
        "replicas": (Replica(b"a", "online", MIB, 0), Replica(b"b", "online", 3 * MIB, 1)),
    }
    first, last = (made_sample(30 * at, master_repl_offset=(1 + 3 * at) * MIB, **behind) for at in range(2))
    assert "replica_behind" not in lines(made_sample())
    line = lines(first, last)["replica_behind"]
    assert (line.value, line.said) == (3 * MIB, "30s of the present writes")
    assert list(line.history) == [0, 3 * MIB]


def test_a_replica_whose_offset_is_not_told() -> None:
    sample = made_sample(connected_slaves=1, replicas=(Replica(b"a", "wait_bgsave"),))
    assert isinstance(lines(sample)["replica_behind"].value, Unknown)


def test_primaries_that_have_a_say() -> None:
    peers = (
        Peer(b"a", slots=5_000, is_self=True),
        Peer(b"b", slots=5_000),
        Peer(b"c", slots=6_384, state="down"),
        Peer(b"d", is_replica=True, is_linked=False),
        Peer(b"e"),
    )
    found = quorum_of(made_sample(peers=peers))
    assert (found.reached, found.primaries) == (2, 3)
    assert found.words == "2 of 3 primaries with slots are in reach; a failover takes 2 of them"
    line = lines(made_sample(cluster_enabled=1, peers=peers))["nodes_out_of_reach"]
    assert line.value == 2


def test_nodes_that_may_not_be_listed_are_unknown() -> None:
    missing = {Source.CLUSTER_NODES: Missing(Reason.DENIED)}
    line = lines(made_sample(cluster_enabled=1, missing=missing))["nodes_out_of_reach"]
    assert line.value == Unknown(Reason.DENIED)


def test_how_many_sentinels_a_failover_takes() -> None:
    def needed(*views: SentinelView) -> int | None:
        return needed_sentinels(made_sample(sentinels=views))

    assert needed(SentinelView("a", quorum=2, sentinels=5)) == 3
    assert needed(SentinelView("a", quorum=4, sentinels=5)) == 4
    assert needed(SentinelView("a", failure="refused")) is None
    assert "sentinels_answering" not in lines(made_sample())
