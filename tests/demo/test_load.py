"""The sample keyspaces as data, and loading them: everything arrives, nothing else could be written to."""

from __future__ import annotations

import ast
import os
import re
import signal
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

import rtui.demo
import rtui.embedded
from rtui.analysis.report.document import HotSource, Report
from rtui.cli.main import run
from rtui.demo.keyspaces import KEYSPACES, write_groups
from rtui.demo.load import EARLIER_AGE_S, Demo, demo_server, pack, send, start_loading
from rtui.demo.writes import Argument, Write, WriteGroup, crc64
from rtui.embedded.server import EmbeddedServer
from rtui.keyspace.slots import explain
from rtui.server.analysis.kept_reports import KeptReports, read_kept
from rtui.server.analysis.run import AnalysisRun
from rtui.server.options import DEFAULT_DEMO_KEYS, AnalysisOptions
from rtui.server.scan.pace import Pace
from tests.conftest import known, require
from tests.server.targets import connected
from tests.wire import Requests

KEYS = 4_000


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    require("valkey-9.1")
    with demo_server(KEYS) as running:
        assert running.wait_loaded()
        yield running


@pytest.fixture
def client(demo: Demo) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=known(demo.target.socket_path)) as connection:
        yield connection


def test_every_key_arrives_and_no_write_is_refused(client: redis.Redis) -> None:
    writes = [write for group in write_groups(KEYS) for write in (*group.own, *group.shared)]
    keys = {pack(("", write[1])) for write in writes if write[0] not in ("XGROUP", "XREADGROUP")}
    expired = int(client.info("stats")["expired_keys"])
    assert client.dbsize() + expired == len(keys)
    assert client.info("errorstats") == {}


def test_it_has_every_type_and_what_is_rare(client: redis.Redis) -> None:
    asked = client.pipeline(transaction=False)
    for key in client.scan_iter(count=1_000):
        asked.type(key)
    expired = {b"none"}
    assert set(asked.execute()) - expired == {b"string", b"hash", b"list", b"set", b"zset", b"stream"}
    assert client.hpttl("awkward:values:field-ttl", "stays", "session") == [-1, pytest.approx(3_600_000, rel=0.1)]
    assert client.xinfo_stream("events:orders")["groups"] == 2
    assert client.pfcount("awkward:values:hyperloglog") == pytest.approx(2_000, rel=0.1)
    assert client.exists(b"", b":", b"\xff\xfe\x00binary at the top") == 3
    assert min(client.object("freq", key) for key in client.scan_iter("order:*", count=1_000)) == 0
    assert max(client.object("freq", key) for key in client.scan_iter("hot:*", count=1_000)) > 200


def check(demo: Demo, *options: str) -> int:
    return run(["check", f"unix://{demo.target.socket_path}", "--pace", "full", *options])


def draft_of(demo: Demo, folder: Path) -> str:
    path = str(folder / "draft.toml")
    assert run(["patterns", f"unix://{demo.target.socket_path}", "--pace", "full", "-o", path]) == 0
    return path


def test_a_bad_day_is_found_and_a_draft_of_it_passes(
    demo: Demo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(demo, "--no-registry") == 1
    assert {"key-big", "lock-without-ttl", "tag-skew"} <= set(capsys.readouterr().out.split())
    assert check(demo, "--registry", draft_of(demo, tmp_path)) == 0


def test_nothing_is_found_on_a_good_day_and_a_draft_of_it_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("valkey-9.1")
    with demo_server(1_200, day="good") as demo:
        assert demo.wait_loaded()
        assert check(demo, "--no-registry", "--fail-on", "warn") == 0
        assert "0 errors and 0 warnings" in capsys.readouterr().out
        assert check(demo, "--registry", draft_of(demo, tmp_path)) == 0
        assert check(demo, "--registry", "restaurant", "--references", "all") == 0


def test_it_does_not_listen_on_the_network_or_write_to_disk(client: redis.Redis) -> None:
    assert client.config_get("port") == {"port": "0"}
    assert client.config_get("save") == {"save": ""}
    assert client.config_get("appendonly") == {"appendonly": "no"}


def test_only_the_embedded_server_is_ever_connected_to() -> None:
    """Connections are made in embedded/server.py alone, to the socket in its own folder."""
    ways = {"connect", "connect_ex", "create_connection", "open_unix_connection", "open_connection"}
    connecting = [
        (path.name, ast.unparse(node.value))
        for package in (rtui.demo, rtui.embedded)
        for path in Path(package.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ways
    ]
    assert sorted(connecting) == [
        ("dump.py", "server"),
        ("load.py", "server"),
        ("server.py", "connection"),
        ("server.py", "self"),
    ]


def test_packed_writes_are_read_back() -> None:
    requests = Requests()
    requests.feed(pack(("SET", b"\xff", "ü", -1)))
    assert requests.commands == [[b"SET", b"\xff", "ü".encode(), b"-1"]]


def test_refused_writes_are_told() -> None:
    require("valkey-9.1")
    with EmbeddedServer() as server, server.connect() as connection:
        errors = send(connection, [("SET", "a", 1), ("LPUSH", "a", 1), ("NONSENSE", "a")])
        assert [error.split()[0] for error in errors] == ["WRONGTYPE", "ERR"]


def test_the_loader_ends_with_the_server() -> None:
    require("valkey-9.1")
    with EmbeddedServer() as server:
        loader = start_loading(server, 10_000_000)
        os.kill(server.pid, signal.SIGKILL)
        assert loader.wait(timeout=20) == 1


def test_the_demo_can_be_left_while_it_loads() -> None:
    require("valkey-9.1")
    with demo_server(10_000_000) as running:
        assert running.is_loading
    assert not running.is_loading


def test_an_earlier_report_is_there_to_compare_with(demo: Demo) -> None:
    demo.keep_earlier()
    (earlier,) = KeptReports(demo.target.label, demo.target.db, demo.reports_folder).reports()
    head = earlier.head
    assert (head.server.label, head.server.db) == (demo.target.label, demo.target.db)
    assert time.time() - head.made_at_s == pytest.approx(EARLIER_AGE_S, rel=0.01)
    assert head.made_at_s == pytest.approx(earlier.file.made_at_s, abs=0.001)
    assert head.coverage.keys == pytest.approx(DEFAULT_DEMO_KEYS, rel=0.01)
    assert head.rtui_version == rtui.__version__, "make demo-report"
    assert {child.name for child in read_kept(earlier.file).summary.root.children} >= {b"PRO", b"app", b"ecm"}


@pytest.mark.slow
def test_its_health_is_judged_without_reports_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    require("valkey-9.1")
    assert run(["health", "--demo", "--demo-keys", "100"]) == 0
    assert capsys.readouterr().out.startswith("demo · valkey 9.1")
    assert run(["health", "--demo", "--demo-keys", "100", "--report", "latest"]) == 2
    assert run(["health", "--demo", "127.0.0.1"]) == 2


ANALYSED_KEYS = 12_000


async def analysed() -> Report:
    with demo_server(ANALYSED_KEYS) as demo:
        assert demo.wait_loaded()
        async with connected(demo.target) as connection:
            analysing = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
            await analysing.run()
    return known(analysing.report)


@pytest.mark.slow
async def test_every_panel_has_something_to_show() -> None:
    require("valkey-9.1")
    report = await analysed()
    summary, hot = report.summary, report.hot
    assert {cliff.label for cliff in summary.expiry.cliffs} >= {"app:session:", "PRO:LOGIN:"}
    assert summary.slots.tags[0].tag == b"campaign42"
    assert summary.big.over[b"string"] == 2
    assert [record.key_type for record in summary.big.by_memory[:2]] == [b"string", b"string"]
    assert hot.source is HotSource.FREQUENCY
    assert hot.lists[0].keys[0].record.key == b"hot:config"
    assert len({key.value for key in hot.lists[0].keys[:20]}) > 10
    frequency = known(summary.root.stats.frequency)
    assert frequency[0] != 0, "some that nobody uses"
    assert frequency[-2] != 0, "some that everybody does"
    lasting = {child.name for child in summary.root.children if child.stats.no_ttl_share == 1.0}
    assert lasting >= {b"order", b"user", b"social"}
    assert {(one.key_type, one.encoding) for one in summary.encodings} >= {(b"set", b"intset"), (b"string", b"int")}
    assert len(summary.types) == 6


PATTERNS = {
    "app-conventions": r"app:(session|token|temp|rate|cache|tags|lock|queue|counter|rank|analytics):",
    "project-table-id": r"PRO:[A-Z]+:",
    "restaurant": r"(user|role|permission|category|dish|cart|cartDetail|order|orderDetail|cache):",
    "ecm": r"(ecm|lock):[^:]+:",
    "internals": r"(p|lock:p|promo|hot:p):\d+$|social:\{user:\d+\}:(profile|posts)$",
}
"""What nearly all names of a keyspace look like; the rest are planted."""


def key_of(write: Write) -> bytes:
    return raw(write[1])


def raw(part: Argument) -> bytes:
    return part if isinstance(part, bytes) else str(part).encode()


def names(made: list[WriteGroup]) -> list[bytes]:
    return list(dict.fromkeys(key_of(write) for group in made for write in group.own))


def test_a_seed_decides_everything() -> None:
    def stream(seed: int) -> bytes:
        return b"".join(pack(write) for group in write_groups(3_000, seed) for write in (*group.own, *group.shared))

    assert stream(1) == stream(1)
    assert stream(1) != stream(2)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [10_000, DEFAULT_DEMO_KEYS, 200_000])
def test_the_number_of_keys_is_about_what_was_asked(keys: int) -> None:
    assert keys <= sum(group.keys for group in write_groups(keys)) <= keys * 1.02 + 300


@given(st.integers(0, 3_000), st.integers())
@settings(max_examples=15, deadline=None)
def test_any_number_of_keys_has_everything_that_was_planted(keys: int, seed: int) -> None:
    planted = {b"", b"MyApp_User_Profile_12345", b"u1000flw", b"lock:p:0", b"user:index:email:nobody@example.com"}
    assert planted <= set(names(list(write_groups(keys, seed))))


@pytest.mark.parametrize("name", KEYSPACES)
def test_no_key_is_made_twice(name: str) -> None:
    made = list(KEYSPACES[name][0](Random(1), 5_000))
    assert len(names(made)) == sum(group.keys for group in made)


@pytest.mark.parametrize("name", KEYSPACES)
def test_names_follow_their_convention(name: str) -> None:
    keyspace, _ = KEYSPACES[name]
    found = names(list(keyspace(Random(1), 5_000)))
    following = [key for key in found if re.match(PATTERNS[name].encode(), key)]
    assert len(found) * 0.97 < len(following)


def test_all_five_grow_from_the_start() -> None:
    first = names(list(islice(write_groups(50_000), 200)))
    for pattern in PATTERNS.values():
        assert any(re.match(pattern.encode(), key) for key in first)


def test_the_top_of_the_tree_can_be_overlooked() -> None:
    """Every key at the top, or namespace there, is one that was put there on purpose."""
    tops = {key.partition(b":")[0] for key in names(list(write_groups(20_000))) if not key.startswith(b"{")}
    assert len(tops) < 70


def test_one_tag_holds_far_more_than_its_share() -> None:
    keyspace, _ = KEYSPACES["project-table-id"]
    found = names(list(keyspace(Random(1), 8_000)))
    hot = [key for key in found if b"{campaign42}" in key]
    assert len({explain(key).slot for key in hot}) == 1
    assert len(hot) > len(found) / 10


def test_many_sessions_expire_within_two_minutes() -> None:
    keyspace, _ = KEYSPACES["app-conventions"]
    ttls = [
        int(write[2]) / 60_000
        for group in keyspace(Random(1), 10_000)
        for write in group.own
        if write[0] == "PEXPIRE" and b"app:session:" in key_of(write)
    ]
    assert 0.35 < len([ttl for ttl in ttls if 31 <= ttl <= 33]) / len(ttls) < 0.45


def test_the_checksum_is_the_one_of_redis() -> None:
    assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA
