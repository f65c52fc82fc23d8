"""A fleet as a table, as folded findings, as a page and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Reason
from rtui.analysis.findings.finding import severe_and_unjudged
from rtui.analysis.findings.server import server_findings
from rtui.analysis.formats import written
from rtui.analysis.formats.fleet import (
    STATES,
    FleetServer,
    fleet_findings,
    fleet_json,
    fleet_page,
    fleet_table,
    groups_table,
)
from rtui.analysis.health.sample import Missing, Replica, Source
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import Severity
from tests.made_sample import GIB, made_sample

UNLIMITED: dict[str, Any] = {"maxmemory": 0, "used_memory": 15 * GIB, "used_memory_rss": 15 * GIB}
FAILING: dict[str, Any] = {"rdb_last_bgsave_status": "err"}


def server(name: str, labels: dict[str, str] | None = None, **changed: Any) -> FleetServer:
    view = HealthView((made_sample(node=name, **changed), made_sample(5, node=name, **changed)))
    pairs = tuple((SafeText(key), SafeText(value)) for key, value in (labels or {}).items())
    return FleetServer(SafeText(name), SafeText(name), pairs, view, server_findings(view))


def down(name: str) -> FleetServer:
    return FleetServer(SafeText(name), SafeText(name), failure=SafeText(f"Nothing listens on {name}."))


DENIED: dict[str, Any] = {
    "sources": tuple(one for one in Source if one is not Source.INFO_MEMORY),
    "missing": {Source.INFO_MEMORY: Missing(Reason.DENIED)},
    **dict.fromkeys(("maxmemory", "used_memory", "used_memory_rss", "total_system_memory")),
}


def test_the_same_trouble_on_many_servers_is_one_finding_of_those_that_could_be_judged() -> None:
    servers = [server(f"a{at}:1", **(UNLIMITED if at % 2 else {})) for at in range(38)]
    servers += [server(f"b{at}:1", **DENIED) for at in range(3)]
    servers += [server("c:1", **FAILING), down("d:1")]
    found = {one.rule: one for one in fleet_findings(servers)}
    assert found["memory-unlimited"].title == "19 of 39: no maxmemory"
    assert found["persistence-failing"].title.startswith("c:1: ")
    page = written(fleet_page(servers, is_summary=True), "text", width=110)
    assert page.startswith("43 servers: 1 down, 1 with errors, ")
    assert "a1:1, a3:1, a5:1, a7:1, a9:1, a11:1 and 13 more" in page
    assert page.count("Nothing listens on d:1.") == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["ok", "unlimited", "failing", "denied", "down"]), st.sampled_from(["", "x", "y"])),
        max_size=12,
    )
)
def test_each_server_is_counted_once(kinds: Sequence[tuple[str, str]]) -> None:
    makes: dict[str, dict[str, Any]] = {"ok": {}, "unlimited": UNLIMITED, "failing": FAILING, "denied": DENIED}
    servers = [
        down(f"s{at}") if kind == "down" else server(f"s{at}", {"zone": zone} if zone else None, **makes[kind])
        for at, (kind, zone) in enumerate(kinds)
    ]
    table = fleet_table(servers)
    assert sorted(map(str, table.subjects)) == sorted(one.address for one in servers)
    states = [str(row[1]) for row in table.rows]
    assert states == sorted(states, key=STATES.index)
    expected = {"ok": "ok", "unlimited": "warn", "failing": "error", "denied": "unclear", "down": "down"}
    assert sorted(states) == sorted(expected[kind] for kind, _ in kinds)
    for one in fleet_findings(servers):
        breaking = [each.name for each in servers if each.found and one.rule in {f.rule for f in each.found.findings}]
        assert list(one.servers) == breaking
        assert len(breaking) <= one.judged <= len(servers) - sum(kind == "down" for kind, _ in kinds)
    groups = groups_table(servers, "zone")
    assert sum(int(str(row[1])) for row in groups.rows) == len(servers)
    document = json.loads(fleet_json(servers))
    assert [one["address"] for one in document["servers"]] == list(table.subjects)
    assert all(one["of_maxmemory"] is None or one["of_maxmemory"] >= 0 for one in document["servers"])
    is_found, unjudged = severe_and_unjudged([one.found for one in servers if one.found is not None], Severity.ERROR)
    names = {kind for kind, _ in kinds}
    assert (is_found, any(one.is_missing for one in servers)) == ("failing" in names, "down" in names)
    assert bool(unjudged) <= ("denied" in names)


def test_figures_of_a_row() -> None:
    primary = server(
        "p",
        used_memory=GIB,
        maxmemory=4 * GIB,
        replicas=(Replica(b"r:1", "online", 1, 7), Replica(b"r:2", "online", 1, 3)),
    )
    unlimited, replica = server("u", maxmemory=0), server("r", role="slave", master_last_io_seconds_ago=12)
    unheard = server("n", role="slave", master_last_io_seconds_ago=-1, rdb_last_save_time=None)
    table = fleet_table([primary, unlimited, replica, unheard])

    def cells(column: str) -> dict[str, object]:
        at = table.column(column)
        return {str(row[0]): row[at] for row in table.rows}

    assert cells("lag") == {"p": 7, "u": None, "r": 12, "n": None}
    assert cells("of_maxmemory") | {"r": 0, "n": 0} == {"p": 0.25, "u": "no limit", "r": 0, "n": 0}
    assert cells("role") == {"p": "primary", "u": "primary", "r": "replica", "n": "replica"}
    assert cells("last_save")["n"] is None
    assert cells("hit_ratio")["p"] == 700_000 / 770_000
