"""Searches of real servers: what they find is what asking about each key finds, and they ask no more than they said."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.humanize import Mark
from rtui.analysis.query.behind import encoding_keys, keys_of, slot_keys, tag_keys, type_keys, without_ttl
from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.query import MatchOrder, Query
from rtui.analysis.query.terms import Fact
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Separators
from rtui.server.analysis.run import AnalysisRun
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import AnalysisOptions, FindOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.search.candidates import MOST_TOUCHED
from rtui.server.search.run import KeySearch
from rtui.server.search.search import UnansweredTermError
from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import NoTouch
from tests.conftest import known
from tests.grammar import Grammar, load
from tests.monitor import Recorder
from tests.oracles.keyspaces import grown
from tests.proxy import DelayProxy
from tests.server.targets import connected, numbered, plant, target_of
from tests.server.test_denied import POOR, let_in
from tests.servers import Server

FULL = FindOptions(pace=Pace.FULL, limit=1_000_000)
COLON = Separators()


async def found(connection: Connection, line: str, options: FindOptions = FULL, **more: Any) -> KeySearch:
    run = KeySearch(Deployment.over(connection), parse(line), options, **more)
    await run.run()
    return run


def names(run: KeySearch) -> set[bytes]:
    keys = [record.key for record in run.matches.kept]
    assert len(keys) == len(set(keys)) == run.count
    return set(keys)


class Asked:
    """What redis-py answers about each key of a server."""

    def __init__(self, server: Server) -> None:
        self.client = server.client()
        self.keys = [bytes(key) for key in self.client.scan_iter(count=1000)]
        pipeline = self.client.pipeline(transaction=False)
        for key in self.keys:
            for command in ("TYPE", "PTTL", "MEMORY USAGE", "OBJECT ENCODING", "OBJECT IDLETIME"):
                pipeline.execute_command(*command.split(), key)
        replies = pipeline.execute()
        self.facts = {key: replies[5 * at : 5 * at + 5] for at, key in enumerate(self.keys)}

    def length(self, key: bytes) -> int:
        """Asks, and so touches the key."""
        commands = {"hash": "HLEN", "list": "LLEN", "set": "SCARD", "zset": "ZCARD", "stream": "XLEN"}
        key_type = self.facts[key][0]
        text = key_type.decode() if isinstance(key_type, bytes) else str(key_type)
        return int(self.client.execute_command(commands.get(text, "STRLEN"), key))

    def fitting(self, fits: Callable[[bytes, str, int, int, str], bool]) -> set[bytes]:
        """The keys of which a function says so, by name, type, TTL, memory and encoding."""
        passing = set()
        for key, (key_type, ttl_ms, memory, encoding, _) in self.facts.items():
            texts = [one.decode() if isinstance(one, bytes) else str(one) for one in (key_type, encoding)]
            if fits(key, texts[0], ttl_ms, memory, texts[1]):
                passing.add(key)
        return passing


HOUR, DAY = 3_600_000, 86_400_000

BY_FACTS: dict[str, Callable[[bytes, str, int, int, str], bool]] = {
    "ttl:none": lambda key, kind, ttl, memory, enc: ttl == -1,
    "!ttl:none": lambda key, kind, ttl, memory, enc: ttl != -1,
    "ttl<1h": lambda key, kind, ttl, memory, enc: 0 <= ttl < HOUR,
    "ttl>10d": lambda key, kind, ttl, memory, enc: ttl > 10 * DAY,
    "ttl:none,10d..200d": lambda key, kind, ttl, memory, enc: ttl == -1 or 10 * DAY <= ttl < 200 * DAY,
    "type:hash": lambda key, kind, ttl, memory, enc: kind == "hash",
    "type:hash,set": lambda key, kind, ttl, memory, enc: kind in ("hash", "set"),
    "!type:string": lambda key, kind, ttl, memory, enc: kind != "string",
    "enc:embstr,int": lambda key, kind, ttl, memory, enc: enc in ("embstr", "int"),
    "size>200": lambda key, kind, ttl, memory, enc: memory > 200,
    "size:100..1K type:string,zset": lambda key, kind, ttl, memory, enc: (
        kind in ("string", "zset") and 100 <= memory <= 1024
    ),
    "type:stream size>100": lambda key, kind, ttl, memory, enc: kind == "stream" and memory > 100,
    "idle<1d !enc:raw ttl:none": lambda key, kind, ttl, memory, enc: enc != "raw" and ttl == -1,
    "idle>1d": lambda key, kind, ttl, memory, enc: False,
    "user": lambda key, kind, ttl, memory, enc: b"user" in key.lower(),
    "in:shop ttl:none": lambda key, kind, ttl, memory, enc: key.startswith(b"shop:") and ttl == -1,
    "slot:0-8000 type:list": lambda key, kind, ttl, memory, enc: kind == "list" and key_slot(key) <= 8000,
    "tag:cart": lambda key, kind, ttl, memory, enc: b"{cart}" in key and key.index(b"{") == key.index(b"{cart}"),
    r'"\xff" !type:set': lambda key, kind, ttl, memory, enc: b"\xff" in key and kind != "set",
    "": lambda key, kind, ttl, memory, enc: True,
}


@pytest.mark.slow
async def test_what_is_found_is_what_asking_about_each_key_finds(server: Server) -> None:
    grown(server.client(), keys=1_200, seed=len(server.name))
    asked = Asked(server)
    async with connected(target_of(server)) as connection:
        for line, fits in BY_FACTS.items():
            run = await found(connection, line)
            assert run.progress.state is ScanState.DONE, (line, run.progress.reason)
            assert names(run) == asked.fitting(fits), line
            assert run.mark is Mark.EXACT, (line, run.notes)


async def test_names_match_as_they_do_here(server: Server) -> None:
    grown(server.client(), keys=800, seed=3)
    keys = Asked(server).keys
    lines = ["*:*[0-9]", "Mail", r"re:^[a-z]+:\d+", "pattern:<*>:<id>", "pattern:shop:", "in:app,queue", "!user"]
    async with connected(target_of(server)) as connection:
        for line in lines:
            assert names(await found(connection, line)) == {*NameFilter(parse(line), COLON).keep(keys)}, line


async def test_lengths(valkey: Server) -> None:
    grown(valkey.client(), keys=800, seed=5)
    asked = Asked(valkey)
    async with connected(target_of(valkey)) as connection:
        run = await found(connection, "len>100")
        wanted = {key for key in asked.keys if asked.length(key) > 100}
        assert names(run) == wanted
        assert {record.length for record in run.matches.kept} == {asked.length(key) for key in wanted}
        assert run.finders[""].rights.touched == 0


async def test_lengths_are_asked_of_few_keys_where_that_counts_as_a_use(redis70: Server) -> None:
    client = redis70.client()
    for number in range(3 * MOST_TOUCHED):
        client.rpush(f"long:{number}", *range(200))
        client.sadd(f"short:{number}", 1)
    async with connected(target_of(redis70)) as connection:
        assert connection.no_touch is not NoTouch.ON
        run = KeySearch(Deployment.over(connection), parse("len>100"), FULL)
        await run.preparation.prepare()
        with Recorder(redis70) as recorder:
            await run.run()
        lengths = [one for one in recorder.commands if one.name in ("LLEN", "SCARD")]
        assert len(lengths) == MOST_TOUCHED
        assert not any(one.argv[1].startswith(b"short") for one in lengths)
        assert run.count == MOST_TOUCHED
        assert run.mark is Mark.AT_LEAST
        assert run.finders[""].undecided == {Fact.LENGTH: 2 * MOST_TOUCHED}
        assert any("counts as a use" in note for note in run.notes)
        read = [one.argv[1] for one in lengths]
        assert all(connection.own_reads.get(key) is not None for key in read)
        first_use = [one for one in recorder.commands if one.argv[0].upper() == b"OBJECT" and one.argv[2] in read]
        assert {one.argv[2] for one in first_use} == set(read)


ALLOWED = {
    Fact.TYPE: "TYPE", Fact.TTL: "PTTL", Fact.IDLE: "OBJECT", Fact.FREQUENCY: "OBJECT", Fact.ENCODING: "OBJECT",
    Fact.MEMORY: "MEMORY",
}  # fmt: skip


HANDSHAKE = {"CLIENT", "ECHO", "PING", "SELECT", "COMMAND"}
"""What a lane begins with."""


@pytest.mark.parametrize("line", ["cart", "ttl:none", "in:shop size>1K", "type:hash enc:listpack", "!type:set idle<1h"])
async def test_only_what_the_plan_says_is_asked(server: Server, line: str) -> None:
    grown(server.client(), keys=600, seed=11)
    async with connected(target_of(server)) as connection:
        run = KeySearch(Deployment.over(connection), parse(line), replace(FULL, columns=(Fact.TTL,)))
        await run.preparation.prepare()
        with Recorder(server) as recorder:
            await run.run()
    assert run.preparation.plan is not None
    asked = Counter(one.name for one in recorder.commands)
    facts = {ALLOWED[fact] for fact in (*run.preparation.plan.stages, *run.preparation.plan.columns)}
    assert set(asked) <= facts | {"SCAN", "DBSIZE", "INFO"} | HANDSHAKE
    assert run.preparation.ahead is not None
    assert run.preparation.ahead.commands is not None
    assert sum(asked[name] for name in facts) <= run.preparation.ahead.commands
    for scan in (one for one in recorder.commands if one.name == "SCAN" and b"MATCH" in one.argv):
        assert run.preparation.plan.server.match in scan.argv


async def test_a_key_that_is_excluded_is_asked_nothing_more(valkey: Server) -> None:
    plant(valkey, numbered(300))
    valkey.client().expire("key:7", 1_000)
    async with connected(target_of(valkey)) as connection:
        run = KeySearch(Deployment.over(connection), parse("!ttl:none size>1"), FULL)
        await run.preparation.prepare()
        with Recorder(valkey) as recorder:
            await run.run()
    assert names(run) == {b"key:7"}
    assert [one.argv[-1] for one in recorder.commands if one.name in ("TYPE", "MEMORY")] == [b"key:7"] * 2


async def test_a_term_that_is_refused_ends_it_before_anything_is_asked(server: Server) -> None:
    plant(server, numbered(50))
    let_in(server, "+@all", "-pttl")
    async with connected(target_of(server, **POOR)) as connection:
        run = await found(connection, "key ttl<10m size>1")
        assert run.progress.state is ScanState.FAILED
        assert isinstance(run.failure, UnansweredTermError)
        assert "ttl<10m needs PTTL" in run.failure.happened
        assert "rtui acl" in run.failure.remedy
        assert run.cost.commands == 0
        assert names(await found(connection, "key:4 size>1")) == {b"key:4", *(b"key:4%d" % n for n in range(10))}


async def test_keys_that_are_refused_are_not_taken_for_others(redis70: Server) -> None:
    plant(redis70, [*numbered(20, b"open:"), *numbered(30, b"closed:")])
    redis70.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~open:*", "+@all")
    async with connected(target_of(redis70, **POOR)) as connection:
        run = await found(connection, "ttl:none")
        assert names(run) == set(numbered(20, b"open:"))
        assert run.mark is Mark.AT_LEAST
        assert run.finders[""].undecided == {Fact.TTL: 30}
        assert any("30 keys not checked (ttl:none" in note for note in run.notes)
        for line in ("size>1", "len>0", "type:string size<1m"):  # the type decides what asking costs
            run = await found(connection, line)
            notes = [note for note in run.notes if "30 keys not checked" in note]
            assert notes, line
            assert all("is denied for some keys" in note for note in notes), notes
            assert not any("nobody knows" in note for note in run.notes)
        assert names(await found(connection, "in:open ttl:none")) == set(numbered(20, b"open:"))
        assert (await found(connection, "in:open ttl:none")).mark is Mark.EXACT


async def test_keys_that_go_meanwhile_are_counted(valkey: Server) -> None:
    plant(valkey, numbered(3_000))
    client = valkey.client()
    async with connected(target_of(valkey)) as connection:
        run = KeySearch(Deployment.over(connection), parse("ttl:none"), replace(FULL, columns=(Fact.MEMORY,)))
        await run.preparation.prepare()
        client.flushdb()
        await run.run()
        assert run.count == 0
        assert run.mark is Mark.EXACT


@pytest.mark.slow
@pytest.mark.parametrize("line", ["key", "ttl:none size>1"])
async def test_a_lost_connection_loses_nothing(server: Server, line: str) -> None:
    planted = plant(server, numbered(20_000))
    async with DelayProxy(server.port) as proxy:
        target = replace(target_of(server), host="127.0.0.1", port=proxy.port)
        async with connected(target) as connection:
            proxy.cut_after(150_000)
            run = await found(connection, line)
            assert run.progress.state is ScanState.DONE
            assert len(proxy.requests) > 2
            assert names(run) == planted


@pytest.mark.parametrize("line", ["a[1]:0", "a[1]:0 type:string size>1", 'a[1]:0 "[1]:"', "a[1]:0 type:hash"])
@pytest.mark.parametrize("is_held", [False, True])
async def test_a_key_that_is_named_like_a_glob_is_found_whatever_brings_the_names(
    valkey: Server, line: str, is_held: bool
) -> None:
    planted = plant(valkey, [b"a[1]:0", b"a[1]:1", b"a1:0", b"a1:1"])
    held = held_names(planted) if is_held else None
    async with connected(target_of(valkey)) as connection:
        run = await found(connection, line, held=held, held_at_s=1_790_000_000.0)
    wanted = {b"a[1]:0"} if '"' in line else {b"a[1]:0", b"a1:0"}
    assert names(run) == (set() if "hash" in line else wanted)


@pytest.mark.slow
async def test_a_key_that_is_named_like_a_glob_is_found_once_though_the_connection_is_lost(valkey: Server) -> None:
    planted = plant(valkey, [*(b"a1:%d" % number for number in range(20_000)), b"a[1]:*"])
    async with DelayProxy(valkey.port) as proxy:
        target = replace(target_of(valkey), host="127.0.0.1", port=proxy.port)
        async with connected(target) as connection:
            proxy.cut_after(150_000)
            run = await found(connection, "a[1]:* ttl:none")
            assert len(proxy.requests) > 1
            assert names(run) == planted


def held_names(keys: set[bytes]) -> HeldNames:
    """A store that has these names, some of its namespaces open."""
    store = NamespaceStore(COLON)
    store.add(sorted(keys))
    store.complete = True
    return HeldNames(store)


async def test_names_that_are_held_are_not_asked_for(server: Server) -> None:
    keys = set(grown(server.client(), keys=900, seed=17))
    asked = Asked(server)
    gone, later = sorted(keys)[0], b"later"
    async with connected(target_of(server)) as connection:
        server.client().delete(gone)
        server.client().set(later, "v")
        with Recorder(server) as recorder:
            run = await found(connection, "type:string,set ttl:none", held=held_names(keys), held_at_s=1_790_000_000.0)
            by_name = await found(connection, "user", held=held_names(keys), held_at_s=1_790_000_000.0)
        wanted = asked.fitting(lambda key, kind, ttl, memory, enc: kind in ("string", "set") and ttl == -1)
        assert names(run) == wanted - {gone}
        assert run.progress.state is ScanState.DONE
        assert any("2026-09-21" in note for note in run.notes)
        assert names(by_name) == {key for key in keys if b"user" in key.lower()}
        assert "TYPE" in {one.name for one in recorder.commands}
        assert "SCAN" not in {one.name for one in recorder.commands}


async def test_the_first_and_the_top_matches(valkey: Server) -> None:
    client = valkey.client()
    for number in range(500):
        client.set(f"key:{number}", "v" * number)
    async with connected(target_of(valkey)) as connection:
        first = await found(connection, "key", replace(FULL, limit=10, columns=(Fact.MEMORY,)))
        assert first.count == 500
        assert len(first.matches.kept) == 10
        assert all(record.memory_bytes for record in first.matches.kept)
        top = FindOptions(
            limit=7, columns=(Fact.LENGTH,), order=MatchOrder(Fact.LENGTH, is_descending=True), pace=Pace.FULL
        )
        largest = await found(connection, "key", top)
        assert [record.length for record in largest.matches.kept] == [499, 498, 497, 496, 495, 494, 493]
        by_name = await found(connection, "key:1", replace(top, columns=(), order=MatchOrder(Fact.NAME)))
        assert [record.key for record in by_name.matches.kept][:3] == [b"key:1", b"key:10", b"key:11"]
        ended = await found(connection, "key", replace(FULL, limit=10, stops_at_limit=True))
        assert ended.progress.state in (ScanState.STOPPED, ScanState.DONE)
        assert len(ended.matches.kept) == 10


async def test_it_is_paused_resumed_and_stopped(valkey: Server) -> None:
    planted = plant(valkey, numbered(30_000))
    async with connected(target_of(valkey)) as connection:
        run = KeySearch(Deployment.over(connection), Query(), FULL)
        await run.preparation.prepare()
        run.control.pause()
        assert run.progress.state is ScanState.PAUSED
        run.control.resume()
        await run.run()
        assert names(run) == planted
        stopped = KeySearch(Deployment.over(connection), parse("ttl:none"), FULL)
        stopped.control.stop()
        await stopped.run()
        assert stopped.progress.state is ScanState.STOPPED
        assert stopped.mark is Mark.AT_LEAST


async def test_how_many_keys_match_is_estimated(valkey: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.search.search.LARGE", 10_000)
    plant(valkey, [*numbered(15_000, b"shop:"), *numbered(15_000, b"app:")])
    async with connected(target_of(valkey)) as connection:
        run = KeySearch(Deployment.over(connection), parse("in:shop ttl:none"), FULL)
        await run.preparation.prepare()
        assert run.preparation.ahead is not None
        assert run.preparation.plan is not None
        sentence = run.preparation.plan.sentence(run.preparation.ahead, "full")
        assert sentence.startswith("scans 30,000 keys, then reads PTTL of ≈ ")
        await run.run()
        assert run.count == 15_000


async def test_access_counters(lfu_server: Server) -> None:
    client = lfu_server.client()
    client.mset({"hot": "v", "cold": "v"})
    for _ in range(50):
        client.get("hot")
    async with connected(target_of(lfu_server)) as connection:
        assert names(await found(connection, "freq>20")) == {b"hot"}
        refused = await found(connection, "idle>1d")
        assert isinstance(refused.failure, UnansweredTermError)


async def test_a_node_of_a_cluster(cluster_node: Server) -> None:
    plant(cluster_node, [b"{a}:1"])
    client = cluster_node.client()
    for number in range(500):
        client.set(f"key:{number}", "v")
    async with connected(target_of(cluster_node, cluster=True)) as connection:
        run = await found(connection, "slot:0-8191 ttl:none")
        wanted = {b"key:%d" % number for number in range(500) if key_slot(b"key:%d" % number) < 8192}
        assert names(run) == wanted | ({b"{a}:1"} if key_slot(b"{a}:1") < 8192 else set())


async def test_numbers_of_a_report_are_those_of_the_keys_behind_them(server: Server) -> None:
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(server.socket)
        load(plain, Grammar(len(server.name), patterns=12), 1_500)
    async with connected(target_of(server)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, columns=EVERYTHING))
        await analysis.run(reports_meanwhile=False)
        summary = known(analysis.report).summary
        numbers = [(keys_of(path), path[-1].stats.keys) for path in list(summary.root.walk())[:12]]
        numbers += [(without_ttl(), summary.root.stats.no_ttl_keys or 0)]
        numbers += [(type_keys(one.name), one.stats.keys) for one in summary.types]
        numbers += [(encoding_keys(one.key_type, one.encoding), one.keys) for one in summary.encodings]
        numbers += [(tag_keys(tag), tag.keys) for tag in summary.slots.tags[:3]]
        numbers += [(slot_keys(0, 5460), sum(summary.slots.keys[:5461]))]
        for behind, number in numbers:
            run = await found(connection, str(behind.query))
            if behind.is_exact:
                assert len(names(run)) == number, str(behind.query)
