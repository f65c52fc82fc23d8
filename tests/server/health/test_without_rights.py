"""Health without rights, on compatible servers, and what rtui leaves in what it looks at."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.panel import Panel, State
from rtui.analysis.health.sample import Source
from rtui.server.guard.acl import acl_line, parse_release
from rtui.server.guard.spec import CommandGroup
from rtui.tui.server_panels import NODES, OVERVIEW, PANELS, content_of
from tests.fakes.base import FakeKey, FakeServer
from tests.fakes.servers import ALL
from tests.server.browsing.test_session import browsing
from tests.server.health.driven import Looking, looking, raw_clients
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
    assert all("not permitted: " in text and "rtui acl --with " in text for text in says.values()), says
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
    assert f"not permitted: {source}" in says[panel] or f", {source}" in says[panel]
    others = "\n".join(text for one, text in says.items() if one not in (panel, OVERVIEW))
    assert rule == "-info" or ("not permitted" not in others and "denied" not in others)


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
    assert "default_user_open" not in mine, "that user has a password"
    assert mine == {name: is_unknown for name, is_unknown in theirs.items() if name != "default_user_open"}


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


ROUNDS = 10
USUAL_S = 0.01
"""slowlog-log-slower-than, as it is by default."""


def worked_s(server: Server) -> float:
    """The processor time of the thread that carries commands out."""
    told = server.admin.info("cpu")
    return float(told["used_cpu_user_main_thread"]) + float(told["used_cpu_sys_main_thread"])


async def test_nothing_of_rtui_is_slow(server: Server) -> None:
    """All commands of a full sample together take less processor time than what goes to the slow log takes alone.

    The slow log itself counts the time on the clock: while the machine does something else, it has entries of any
    command, so it proves nothing here.
    """
    async with looking(server) as looked:
        await looked.look()
        before_s = worked_s(server)
        for _ in range(ROUNDS):
            await looked.look()
        took_s = worked_s(server) - before_s
    assert took_s < ROUNDS * USUAL_S
    assert server.admin.config_get("slowlog-log-slower-than") == {"slowlog-log-slower-than": "10000"}


async def test_what_rtui_sends_is_told_apart_in_the_slow_log(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    async with looking(server, {"command-slow": {"longest": 0.0}}) as looked:
        await looked.look()
        sample = await looked.look()
    own = [one for one in sample.slow if one.is_own]
    assert "INFO" in {one.name for one in own}
    assert not any("INFO" in one.title for one in looked.health.found.findings if one.rule == "command-slow")
    assert looked.line("slow", "slow_entries_of_rtui").value == len(own)


async def test_passwords_are_not_in_the_log(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    with raw_clients(server, 1, b"AUTH somebody word-of-a-test\r\n") as (client,):
        assert client.recv(64).startswith(b"-WRONGPASS")
    server.admin.execute_command("ACL", "SETUSER", "somebody", ">word-of-a-test")
    server.admin.config_set("masterauth", "word-of-a-test")
    async with looking(server) as looked:
        sample = await looked.look()
    assert {"ACL", "CONFIG"} <= {one.name for one in sample.slow}
    assert "word-of-a-test" not in repr(sample)
    assert "word-of-a-test" not in repr(looked.health.panels)


KEYS = {b"shop:product:%d" % at: FakeKey() for at in range(20)}


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server asked for what it says anyway as soon as it has answered."""
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.02)


def texts(panel: Panel) -> dict[str, object]:
    """The figures of a panel that are known."""
    return {
        line.id: line.value for line in panel.lines if not isinstance(line.value, Unknown) and line.value is not None
    }


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
async def test_a_session_at_a_compatible_server(kind: type[FakeServer], tmp_path: Path) -> None:
    async with kind(KEYS) as fake, browsing(fake.target, tmp_path) as session:
        health = session.health
        await eventually(lambda: bool(health.nodes))
        health.begin()
        await eventually(lambda: health.nodes and health.panels(health.nodes[0]) and fake.sent(b"CONFIG") != [])
        health.ask_now()
        (node,) = health.nodes
        await eventually(lambda: health.first_at_s(node) != health.asked_at_s(node))
        panels = {panel.id: panel for panel in health.panels(node)}
        health.end()
        assert len(panels) == 7
        assert health.failure(node) is None
        assert session.status.trouble is None
    states = {line.state for panel in panels.values() for line in panel.lines}
    assert states <= {State.PLAIN, State.NORMAL, State.UNKNOWN}
    known = {line_id: value for panel in panels.values() for line_id, value in texts(panel).items()}
    numbers = {line_id: value for line_id, value in known.items() if isinstance(value, int | float)}
    assert numbers == {}, "it tells no number"
    assert known.get("role") in ({"primary"} if "role" in kind.more_info else {None})
    assert known.get("maxmemory_policy") == kind.more_info.get("maxmemory_policy")
