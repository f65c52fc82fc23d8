"""Users who may not ask: each panel says which right it lacks, nothing unknown is a figure, an ACL line is enough."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.sample import Source
from rtui.server.guard.acl import acl_line, parse_release
from rtui.server.guard.spec import CommandGroup
from rtui.tui.server.panels import NODES, OVERVIEW, PANELS, content_of
from tests.server.browsing.test_session import browsing
from tests.server.health.driven import Looking, looking
from tests.server.raw_commands import raw
from tests.server.targets import eventually, target_of
from tests.server.test_denied import POOR, let_in
from tests.servers import Server


def told(looked: Looking, denied: Collection[Source]) -> dict[str, str]:
    """What each tab says instead of figures."""
    panels = looked.health.panels
    return {one.id: "\n".join(content_of(one, panels, denied).notes) for one in PANELS if one.id != NODES}


def denied_in(looked: Looking) -> set[Source]:
    missing = looked.samples[-1].missing
    return {source for source, why in missing.items() if why.reason is Reason.DENIED}


async def test_each_panel_says_which_right_it_lacks(server: Server) -> None:
    let_in(server, "+ping", "+hello")
    async with looking(server, user=POOR) as looked:
        await looked.look()
        await looked.look()
    says = told(looked, denied_in(looked))
    for panel in PANELS:
        for source in set(panel.sources) & denied_in(looked):
            assert source in says[panel.id], panel.id
            assert source in says[OVERVIEW]
    assert set(says) - {one for one, text in says.items() if "denied: " in text and "rtui acl --with " in text} == set()
    assert "rtui acl --with settings" in says["configuration"]
    assert "rtui acl --with health --with settings" in says[OVERVIEW]
    lines = [line for panel in looked.health.panels for line in panel.lines]
    assert [line.id for line in lines if isinstance(line.value, int | float)] == []
    assert looked.broken == []
    assert {one.rule for one in looked.health.found.unjudged} >= {"memory-fragmented", "command-slow", "output-buffers"}


@pytest.mark.parametrize(
    ("rule", "panel", "source"),
    [
        ("-info", "memory", "INFO memory"),
        ("-info", "load", "INFO commandstats"),
        ("-slowlog", "slow", "SLOWLOG GET"),
        ("-latency", "slow", "LATENCY LATEST"),
        ("-client|list", "clients", "CLIENT LIST"),
        ("-config|get", "configuration", "CONFIG GET"),
    ],
)
async def test_one_right_that_is_lacking(valkey: Server, rule: str, panel: str, source: str) -> None:
    let_in(valkey, "+@all", rule)
    async with looking(valkey, user=POOR) as looked:
        await looked.look()
    says = told(looked, denied_in(looked))
    assert f"denied: {source}" in says[panel] or f", {source}" in says[panel]
    assert all(rule == "-info" or one in (panel, OVERVIEW) or "denied" not in says[one] for one in says)


async def test_a_line_of_acl_is_enough(server: Server) -> None:
    groups = (CommandGroup.HEALTH, CommandGroup.SETTINGS)
    line = acl_line(parse_release(server.name), user="poor", groups=groups).replace(">PASSWORD", ">pw")
    raw(server, *line.split(" "))
    async with looking(server, user=POOR) as looked, looking(server) as other:
        for one in (looked, other):
            await one.look()
            await one.look()
    assert not denied_in(looked)
    mine, theirs = (
        {line.id: isinstance(line.value, Unknown) for panel in one.health.panels for line in panel.lines}
        for one in (looked, other)
    )
    assert mine == theirs


async def test_without_the_settings_all_but_these_are_known(server: Server) -> None:
    line = acl_line(parse_release(server.name), user="poor", groups=(CommandGroup.HEALTH,)).replace(">PASSWORD", ">pw")
    raw(server, *line.split(" "))
    async with looking(server, user=POOR) as looked:
        await looked.look()
    assert denied_in(looked) == {Source.SETTINGS}
    assert "rtui acl --with settings" in told(looked, denied_in(looked))["configuration"]


async def test_a_node_of_a_cluster_that_does_not_tell_of_it(cluster_node: Server) -> None:
    let_in(cluster_node, "+@all", "-cluster|info")
    async with looking(cluster_node, user=POOR) as looked:
        await looked.look()
    assert Source.CLUSTER_INFO in denied_in(looked)
    assert "rtui acl --with cluster" in told(looked, denied_in(looked))["persistence"]


async def test_a_session_of_a_user_who_may_do_nothing_but_scan(valkey: Server, tmp_path: Path) -> None:
    let_in(valkey, "+scan", "+ping", "+hello")
    async with browsing(target_of(valkey, **POOR), tmp_path) as session:
        health = session.health
        health.begin()
        await eventually(lambda: health.nodes and health.denied(health.nodes[0]))
        (node,) = health.nodes
        assert {Source.INFO_MEMORY, Source.SLOW_LOG, Source.SETTINGS} <= set(health.denied(node))
        assert session.status.trouble is None
        health.end()
