"""Troubles that people call at night about, each found alone; nothing found in ordinary use; and no rights."""

from __future__ import annotations

import contextlib
import random
import secrets
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.panel import Panel, State
from rtui.analysis.health.possible import range_of
from rtui.analysis.health.sample import Source
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import Severity
from rtui.server.guard.acl import acl_line, parse_release
from rtui.server.guard.spec import CommandGroup
from rtui.server.health.info import sample_of_info
from rtui.server.health.session import problems_of
from rtui.tui.server_panels import NODES, OVERVIEW, PANELS, content_of
from tests.conftest import require
from tests.fakes.servers import ALL, FakeKey, FakeServer
from tests.grammar import Grammar, load
from tests.server.browsing.test_session import browsing
from tests.server.health.driven import Given, Looking, looking, raw_clients
from tests.server.targets import eventually, raw, target_of
from tests.server.test_denied import POOR, let_in
from tests.servers import VERSIONS, Server, running, wait_until


def told(looked: Looking, denied: Collection[Source]) -> dict[str, str]:
    """What each tab says instead of figures."""
    panels = looked.health.panels
    return {one.id: "\n".join(content_of(one, panels, denied).notes) for one in PANELS if one.id != NODES}


def denied_in(looked: Looking) -> set[Source]:
    return {source for source, why in looked.samples[-1].missing.items() if why.reason is Reason.DENIED}


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


TIMES: Final = 30
WRITE: Final = b"SET more x\r\n"


@dataclass(frozen=True)
class Trouble:
    """A trouble, and the rules that find it."""

    make: Callable[[Server], contextlib.AbstractContextManager[object]]
    """Make it, and take its cause away at the end."""
    rules: frozenset[str]


TROUBLES: Final[dict[str, Trouble]] = {}


def trouble(*rules: str) -> Callable[[Callable[[Server], Iterator[None]]], None]:
    def register(make: Callable[[Server], Iterator[None]]) -> None:
        TROUBLES[make.__name__] = Trouble(contextmanager(make), frozenset(rules))

    return register


def fail(server: Server, line: bytes, error: bytes, times: int = TIMES, before: bytes = b"") -> None:
    """Send a command that is answered with an error, after others that are answered with OK."""
    with raw_clients(server, 1, before) as (client,):
        replies = client.makefile("rb")
        for _ in range(before.count(b"\n")):
            assert replies.readline().startswith(b"+OK")
        for _ in range(times):
            client.sendall(line)  # one at a time: Redis 8 leaves the rest unread after a failed AUTH
            assert replies.readline().startswith(b"-" + error)


@contextmanager
def settings(server: Server, **values: str | int) -> Iterator[None]:
    """Other settings meanwhile."""
    names = [name.replace("_", "-") for name in values]
    before = {name: str(server.admin.config_get(name)[name]) for name in names}
    for name, value in zip(names, values.values(), strict=True):
        server.admin.config_set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            server.admin.config_set(name, value)


def fill(server: Server, policy: str) -> contextlib.AbstractContextManager[None]:
    """Less memory than is used by keys of which none has a TTL."""
    with server.client() as client:
        client.mset({f"shop:user:{at}": "x" * 100 for at in range(300)})
    used = server.admin.info("memory")["used_memory"]
    return settings(server, maxmemory=used * 3 // 4, maxmemory_policy=policy)


@trouble("writes-refused", "memory-near-limit")
def full_memory(server: Server) -> Iterator[None]:
    with fill(server, "noeviction"):
        fail(server, WRITE, b"OOM")
        yield


@trouble("writes-refused", "eviction-impossible")
def full_memory_without_any_ttl(server: Server) -> Iterator[None]:
    with fill(server, "volatile-lru"):
        fail(server, WRITE, b"OOM")
        yield


@trouble("writes-refused")
def too_few_replicas(server: Server) -> Iterator[None]:
    with settings(server, min_replicas_to_write=1):
        fail(server, WRITE, b"NOREPLICAS")
        yield


@trouble("eviction-impossible")
def keys_that_a_volatile_policy_can_not_evict(server: Server) -> Iterator[None]:
    with server.client() as client:
        client.mset({f"shop:user:{at}": "x" for at in range(300)})
    with settings(server, maxmemory="900mb", maxmemory_policy="volatile-lfu"):
        yield
    server.admin.flushall()


@trouble("connections-refused")
def too_many_connections(server: Server) -> Iterator[None]:
    connected = int(server.admin.info("clients")["connected_clients"])
    with settings(server, maxclients=connected), raw_clients(server, TIMES) as clients:
        assert all(client.recv(64).startswith(b"-ERR max") for client in clients)
    yield


@trouble("clients-limit")
def nearly_as_many_connections_as_there_may_be(server: Server) -> Iterator[None]:
    with settings(server, maxclients=20), raw_clients(server, 16) as clients:
        for client in clients:
            client.recv(16)
        yield


@trouble("command-banned")
def keys(server: Server) -> Iterator[None]:
    with server.client(client_name="batchjob") as client:
        for _ in range(5):
            client.keys("*")
        yield


@trouble("monitor-attached")
def monitor(server: Server) -> Iterator[None]:
    with raw_clients(server, 1, b"MONITOR\r\n") as (client,):
        assert client.recv(16).startswith(b"+OK")
        yield


@trouble("logins-failed")
def wrong_passwords(server: Server) -> Iterator[None]:
    fail(server, b"AUTH shop wrong\r\n", b"WRONGPASS")
    yield


@trouble("acl-denied")
def denied_commands(server: Server) -> Iterator[None]:
    server.admin.acl_setuser("shop", enabled=True, nopass=True, commands=["+get", "+client"], keys=["shop:*"])
    for line in (b"SET shop:1 x\r\n", b"GET other\r\n"):
        fail(server, line, b"NOPERM", before=b"AUTH shop x\r\n")
    yield


@trouble("calls-failed")
def another_type(server: Server) -> Iterator[None]:
    fail(server, b"LPUSH shop:cart x\r\n", b"WRONGTYPE", 300, before=b"SET shop:cart x\r\n")
    yield


@trouble("calls-failed")
def missing_arguments(server: Server) -> Iterator[None]:
    fail(server, b"HSET shop:cart\r\n", b"ERR wrong number", 300)
    yield


@trouble("hit-ratio-low")
def misses(server: Server) -> Iterator[None]:
    with server.client() as client:
        pipeline = client.pipeline(transaction=False)
        for at in range(1_000):
            pipeline.get(f"shop:gone:{at}")
        pipeline.execute()
    yield


@trouble("clients-closed")
def a_subscriber_that_reads_nothing(server: Server) -> Iterator[None]:
    limit = "pubsub 65536 0 0"
    with settings(server, client_output_buffer_limit=limit), raw_clients(server, 4, b"SUBSCRIBE news\r\n"):
        wait_until(lambda: server.admin.pubsub_numsub("news")[0][1] == 4, server.log)
        while server.admin.publish("news", "x" * 100_000):
            pass
        yield


@trouble("expire-cycles-late")
def many_keys_that_expire_at_once(server: Server) -> Iterator[None]:
    for first in range(0, 300_000, 10_000):
        script = f"for at = {first}, {first + 9_999} do redis.call('SET', 'page:' .. at, 'x', 'PX', 1500) end"
        server.admin.eval(script, 0)
    wait_until(lambda: server.admin.info("stats")["expired_time_cap_reached_count"] > 1, server.log)
    yield
    server.admin.flushall()


GIVEN: Final[Given] = {"expire-cycles-late": {"count": 2, "now": 2}}
"""Lower limits of what would take a real server hours."""

UNCOUNTED: Final = {"clients-closed": "client_output_buffer_limit_disconnections"}
"""By rule the field that not all versions have."""


def expected(server: Server, rules: frozenset[str]) -> set[str]:
    told = server.admin.info("stats")
    return {rule for rule in rules if rule not in UNCOUNTED or UNCOUNTED[rule] in told}


@pytest.mark.parametrize("name", TROUBLES)
async def test_a_trouble_is_found_by_its_rule_alone(server: Server, name: str) -> None:
    made = TROUBLES[name]
    async with looking(server, GIVEN) as watched:
        await watched.look()
        assert watched.broken == [], "it is healthy before"
        with made.make(server):
            await watched.look()
            assert set(watched.broken) == expected(server, made.rules), "by somebody who watches"
            async with looking(server, GIVEN) as looked:
                await looked.look()
                await looked.look()
            assert set(looked.broken) == expected(server, made.rules), "by somebody who looks later"
        server.admin.config_set("maxmemory", 0)
        server.admin.config_resetstat()
        await watched.look()
        assert watched.broken == [], "its cause is gone"


ALONE: Final = {
    "many_keys_that_expire_at_once", "keys_that_a_volatile_policy_can_not_evict",
    "nearly_as_many_connections_as_there_may_be",
}  # fmt: skip
"""Troubles that can't be together with others: of other settings, or none could connect any more."""


@pytest.mark.slow
async def test_all_troubles_together(server: Server) -> None:
    names = [name for name in TROUBLES if name not in ALONE and not TROUBLES[name].rules & {"writes-refused"}]
    names += ["full_memory_without_any_ttl"]
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(TROUBLES[name].make(server))
        async with looking(server, GIVEN) as looked:
            await looked.look()
            await looked.look()
    rules = {rule for name in names for rule in TROUBLES[name].rules}
    assert set(looked.broken) == expected(server, frozenset(rules))
    found = {one.rule: one for one in looked.health.found.findings}
    assert found["eviction-impossible"].severity is Severity.ERROR
    assert any("batchjob" in line for line in found["command-banned"].evidence)


KEYS_IN_USE = 3_000
OPTIONS = ("--maxmemory", "500mb", "--maxmemory-policy", "volatile-lru")


def use(server: Server, names: list[bytes], rng: random.Random) -> None:
    """Read most keys that are there and some that are not, write a few, some of them with a TTL."""
    with server.client(client_name="shop") as client:
        pipeline = client.pipeline(transaction=False)
        for _ in range(1_500):
            name = rng.choice(names)
            if rng.random() < 0.9:
                pipeline.exists(name)
            elif rng.random() < 0.5:
                pipeline.get(b"gone:" + name)
            else:
                pipeline.set(b"session:" + name, b"x" * rng.randint(10, 500), ex=rng.randint(600, 90_000))
        pipeline.execute()


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_is_found_on_a_server_in_ordinary_use(version: str) -> None:
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    with running(require(version), *OPTIONS) as server:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server.socket)
            load(connection, Grammar(seed, 40), KEYS_IN_USE)
        with server.client() as client:  # as many have a TTL as a volatile policy is chosen for
            names = sorted(client.scan_iter(count=1_000))
            rng.shuffle(names)
            for name in names[: KEYS_IN_USE // 2]:
                client.expire(name, rng.randint(3_600, 500_000))
        async with looking(server) as looked:
            await looked.look()
            await looked.analyse()
            for _ in range(7):
                use(server, names, rng)
                await looked.look()
        found = [f"{one.rule}: {one.title} {one.evidence}" for one in looked.health.found.findings]
        assert found == [], f"seed {seed}"
        assert not looked.health.found.unjudged, f"seed {seed}"
        lines = [line for panel in looked.health.panels for line in panel.lines]
        assert {line.state for line in lines} <= {State.PLAIN, State.NORMAL, State.UNKNOWN}
        unknown = {line.id: line.value for line in lines if isinstance(line.value, Unknown)}
        assert all(value.detail == "this server does not tell it" for value in unknown.values()), unknown


SECTIONS = ("server", "clients", "memory", "persistence", "stats", "replication", "cluster")
NODE = SafeText("10.0.0.5:6379")


@pytest.mark.parametrize("said", ["-5", "18446744073709551615", "nan", "1e400", "4102444799", "250.5%", "abc"])
def test_what_can_not_be_is_no_trouble(said: str) -> None:
    replies = {
        section: "".join(
            f"{one.name}:{said}\r\n"
            for one in FIELDS.values()
            if one.source == f"INFO {section}" and one.name != "role"
        ).encode()
        for section in SECTIONS
    }
    sample = sample_of_info(replies, NODE, 1_700_000_000_000)
    figures = {name: value for name, value in sample.info.items() if FIELDS[name].unit is not FieldUnit.TEXT}
    assert all(value in range_of(FIELDS[name]) for name, value in figures.items())
    _, trouble = problems_of({NODE: HealthView((sample,))})
    assert trouble is None or figures, "it is of figures that can be"
    assert trouble is None or "saved" not in trouble.word
