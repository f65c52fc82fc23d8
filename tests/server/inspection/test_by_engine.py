"""All keys of a server as tables, beside what an independent client is told of each; and what goes wrong meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from random import Random

import polars as pl
import pytest

from rtui.analysis.columns import SAMPLED_COLUMNS, Asked, Columns
from rtui.server.guard.command import Secret
from rtui.server.inspection.pipeline import TOO_COSTLY_NOTE
from rtui.server.inspection.tables import LengthFloors
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.progress import ScanState
from rtui.server.scan.server_time import COSTLY_S, MAX_COSTLY
from rtui.table.schema import keys_of
from tests.grammar import Grammar, load
from tests.proxy import Fault, FaultProxy
from tests.server import every_type
from tests.server.inspection.kept import Kept, expiries_agree, reading, said, told
from tests.server.targets import connected, eventually, numbered, plant, target_of, uproot
from tests.servers import Server
from tests.wire import bulk

KEYS = 3_000

DISTINCT = Columns(idle=Asked.ALL, length=Asked.ALL, encoding=Asked.ALL)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.wire.opening.FIRST_PAUSE_S", 0.0005)


def grow(server: Server, keys: int = KEYS) -> None:
    """Write made-up keys, one of every type, and names of odd bytes."""
    client = server.client()
    every_type.fill(server, client)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server.socket)
        load(connection, Grammar(keys), keys)
    plant(server, [b"", b"\xff\xfe", b"a\r\nb", b"{tag}:1", b"{}:2", "über:ü".encode(), b"x" * 3_000])


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "dialect"), [(2, None), (3, None), (3, Dialect.OPAQUE)])
async def test_the_rows_are_those_of_a_client_that_asks_key_by_key(
    server: Server, protocol: int, dialect: Dialect | None
) -> None:
    grow(server)
    found = Kept()
    async with connected(target_of(server, protocol=protocol)) as connection:
        scan, inspection = await reading(connection, found, dialect=dialect)
        await scan.run()
    assert scan.state is ScanState.DONE
    assert inspection.waiting == 0
    rows = found.rows
    assert said(rows) == told(server)
    assert expiries_agree(server, rows)
    assert rows["node"].unique().to_list() == [f"127.0.0.1:{server.port}"]
    assert rows["database"].unique().to_list() == [0]
    assert rows["sampled"].all()
    assert rows["idle_s"].null_count() == rows["frequency"].len() - rows["frequency"].null_count() == 0
    assert (found.vanished, found.unread) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["unix_server", "tls_server", "lfu_server"])
async def test_so_they_are_however_the_server_is_reached(request: pytest.FixtureRequest, transport: str) -> None:
    server: Server = request.getfixturevalue(transport)
    grow(server)
    found = Kept()
    async with connected(target_of(server)) as connection:
        scan, _ = await reading(connection, found)
        await scan.run()
    assert scan.state is ScanState.DONE
    rows = found.rows
    assert said(rows) == told(server)
    used = "frequency" if transport == "lfu_server" else "idle_s"
    assert rows[used].null_count() == 0


@pytest.mark.slow
async def test_a_sample_is_one_key_in_eight_and_the_longest_are_exact(valkey: Server) -> None:
    grow(valkey, 12_000)
    found = Kept()
    async with connected(target_of(valkey)) as connection:
        scan, inspection = await reading(connection, found, columns=SAMPLED_COLUMNS)
        await scan.run()
    rows, asked = found.rows, told(valkey)
    assert Counter(keys_of(rows)) == Counter(key for key, *_ in asked)
    sampled = rows.filter("sampled")
    assert abs(sampled.height - rows.height / 8) <= 1
    assert sampled["idle_s"].null_count() == sampled["length"].null_count() == 0
    assert rows.filter(~pl.col("sampled"))["idle_s"].null_count() == rows.height - sampled.height
    lengths = {key: length for key, _, _, length, _, _ in asked}
    known = found.by_key
    assert all(row["length"] in (None, lengths[key]) for key, row in known.items())
    for kind in ("string", "hash", "set", "zset"):
        of_kind = [key for key, row in known.items() if row["type"] == kind]
        longest = sorted(of_kind, key=lambda key: -(lengths[key] or 0))[: found.big.top]
        least = min(lengths[key] or 0 for key in longest)
        late = inspection.last_stages.late_lengths
        if late.left(kind.encode(), LengthFloors(found.big)) and least > 20:
            assert all(known[key]["length"] is not None for key in longest), kind
    by_type = rows.group_by(pl.col("type").cast(pl.String)).agg(
        keys=pl.len(), known=pl.col("encoding").is_not_null().sum()
    )
    for _, keys, encodings in by_type.iter_rows():
        assert encodings == -(-keys // 16)


async def test_columns_that_are_left_out_are_null(valkey: Server) -> None:
    grow(valkey, 300)
    found = Kept()
    only = Columns(ttl=Asked.NONE, memory=Asked.NONE, idle=Asked.NONE, length=Asked.NONE, encoding=Asked.NONE)
    async with connected(target_of(valkey)) as connection:
        scan, _ = await reading(connection, found, columns=only)
        await scan.run()
    rows = found.rows
    assert Counter(zip(keys_of(rows), rows["type"].to_list(), strict=True)) == Counter(
        (key, kind) for key, kind, *_ in told(valkey)
    )
    for column in ("expires_ms", "memory_bytes", "length", "idle_s", "frequency", "encoding"):
        assert rows[column].null_count() == rows.height


@pytest.mark.slow
@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(3))
async def test_keys_that_go_and_change_their_type_meanwhile(server: Server, seed: int) -> None:
    rng = Random(seed)
    names = numbered(6_000)
    plant(server, names)
    gone, retyped = set(rng.sample(names[:3_000], 700)), set(rng.sample(names[3_000:], 700))
    client = server.client()

    def change() -> None:
        uproot(server, gone | retyped)
        writing = client.pipeline(transaction=False)
        for name in retyped:
            writing.rpush(name, "a", "b")
        writing.execute()

    found = Kept()
    async with connected(target_of(server)) as connection:
        scan, _ = await reading(connection, found)
        found.at(1_000, change)
        await scan.run()
    assert scan.state is ScanState.DONE
    known, has_lengths = found.by_key, every_type.has_no_touch(server)
    assert known.keys() >= {*names} - gone - retyped
    assert known.keys() <= {*names}
    assert len(known) + found.vanished == scan.progress.keys
    for key, row in known.items():
        was = ("string", 1 if has_lengths else None)
        now = ("list", 2 if has_lengths else None)
        assert (row["type"], row["length"]) in ({was, now} if key in retyped else {was}), key
        assert row["memory_bytes"] > 0


LACKING = {
    "-type": {"type", "memory_bytes", "length", "encoding"},
    "-pttl": {"expires_ms"},
    "-memory|usage": {"memory_bytes"},
    "-object|idletime": {"idle_s"},
    "-object|encoding": {"encoding"},
    "-strlen": {"length"},
    "-pttl -type -object|idletime": {"type", "memory_bytes", "length", "encoding", "expires_ms", "idle_s"},
}


@pytest.mark.parametrize("rights", LACKING)
async def test_what_the_user_may_not_ask_is_null_and_all_else_is_known(valkey: Server, rights: str) -> None:
    names = plant(valkey, numbered(600))
    valkey.client().execute_command(
        "ACL", "SETUSER", "limited", "on", ">pw", "%R~*", "%R~", "+@all", *rights.split(" ")
    )
    found = Kept()
    async with connected(target_of(valkey, user="limited", password=Secret("pw"))) as connection:
        scan, _ = await reading(connection, found)
        await scan.run()
    assert scan.state is ScanState.DONE
    rows = found.rows
    assert Counter(keys_of(rows)) == Counter(names)
    missing = {column for column in rows.columns if rows[column].null_count() == rows.height}
    assert missing - {"raw", "frequency"} == LACKING[rights]
    assert all(rows[column].null_count() == 0 for column in set(rows.columns) - missing)


@pytest.mark.slow
async def test_a_right_that_is_taken_back_in_the_middle(valkey: Server) -> None:
    names = plant(valkey, numbered(20_000))
    client = valkey.client()
    client.execute_command("ACL", "SETUSER", "limited", "on", ">pw", "%R~*", "%R~", "+@all")
    found = Kept()
    async with connected(target_of(valkey, user="limited", password=Secret("pw"))) as connection:
        scan, _ = await reading(connection, found)
        found.at(1, lambda: client.execute_command("ACL", "SETUSER", "limited", "-pttl", "-memory|usage"))
        await scan.run()
    assert scan.state is ScanState.DONE
    rows = found.rows
    assert Counter(keys_of(rows)) == Counter(names)
    assert 0 < rows["expires_ms"].null_count() < rows.height
    assert 0 < rows["memory_bytes"].null_count() < rows.height
    assert rows["type"].null_count() == rows["length"].null_count() == 0
    assert client.info("commandstats")["cmdstat_pttl"]["rejected_calls"] < 10_000


async def test_keys_that_the_user_may_not_read_are_known_by_name(valkey: Server) -> None:
    plant(valkey, [*numbered(400, b"mine:"), *numbered(400, b"theirs:")])
    valkey.client().execute_command("ACL", "SETUSER", "limited", "on", ">pw", "%R~mine:*", "+@all")
    found = Kept()
    async with connected(target_of(valkey, user="limited", password=Secret("pw"))) as connection:
        scan, _ = await reading(connection, found)
        await scan.run()
    known = found.by_key
    assert len(known) == 800
    assert {known[key]["memory_bytes"] is None for key in numbered(400, b"theirs:")} == {True}
    assert {known[key]["type"] for key in numbered(400, b"mine:")} == {"string"}


FAULTS = {
    "loading": Fault("loading", b"-LOADING Redis is loading the dataset in memory\r\n"),
    "busy": Fault("busy", b"-BUSY Redis is busy running a script.\r\n"),
    "hung up": Fault("hung up", None),
    "no protocol": Fault("no protocol", b"?what\r\n"),
}
WORDS = {
    "type": (b"TYPE",),
    "ttl": (b"PTTL",),
    "memory": (b"MEMORY", b"USAGE"),
    "length": (b"STRLEN",),
    "encoding": (b"OBJECT", b"ENCODING"),
}


@pytest.mark.slow
@pytest.mark.sampled("fault", "words", "dialect", one_in=6)
@pytest.mark.parametrize(
    ("words", "dialect"), [*((words, None) for words in WORDS), *((words, Dialect.OPAQUE) for words in WORDS)]
)
@pytest.mark.parametrize("fault", FAULTS)
async def test_keys_are_asked_again_when_the_server_can_not_answer(
    valkey: Server, words: str, dialect: Dialect | None, fault: str
) -> None:
    names = plant(valkey, numbered(10_000))
    found = Kept()
    async with FaultProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan, _ = await reading(connection, found, dialect=dialect)
        found.at(1, lambda: proxy.strike(WORDS[words], FAULTS[fault]))
        running = asyncio.create_task(scan.run())
        async with asyncio.timeout(30):
            await eventually(lambda: proxy.struck)
            proxy.heal()
            await running
    assert scan.state is ScanState.DONE
    rows = found.rows
    assert Counter(keys_of(rows)) == Counter(names)
    for column in ("type", "expires_ms", "memory_bytes", "length"):
        assert rows[column].null_count() == 0, column
    assert found.vanished == 0


ODD = {
    "out of memory": Fault("out of memory", b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"),
    "a text": Fault("a text", bulk(b"seven")),
    "too small": Fault("too small", b":-7\r\n"),
    "an array": Fault("an array", b"*2\r\n:1\r\n:2\r\n"),
}


@pytest.mark.parametrize("fault", ODD)
@pytest.mark.parametrize("words", ["ttl", "memory", "length"])
async def test_an_answer_that_can_not_be_costs_that_one_fact(valkey: Server, words: str, fault: str) -> None:
    names = plant(valkey, numbered(400))
    found = Kept()
    async with FaultProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan, _ = await reading(connection, found)
        proxy.strike(WORDS[words], ODD[fault])
        await scan.run()
    rows = found.rows
    assert Counter(keys_of(rows)) == Counter(names)
    lost = {"ttl": "expires_ms", "memory": "memory_bytes", "length": "length"}[words]
    assert {column for column in ("type", "expires_ms", "memory_bytes", "length") if rows[column].null_count()} == {
        lost
    }


async def test_streams_that_prove_costly_are_skipped_and_it_is_said(redis70: Server) -> None:
    client = redis70.client()
    for number in range(30):
        client.xadd(f"stream:{number}", {"a": "1"})
    found = Kept()
    async with connected(target_of(redis70)) as connection:
        scan, inspection = await reading(connection, found)
        for _ in range(MAX_COSTLY):
            inspection.last_stages.cost_watch.observe(1, 2 * COSTLY_S)
        await scan.run()
    assert found.rows["memory_bytes"].null_count() == found.rows.height == 30
    assert found.rows["encoding"].to_list() == ["stream"] * 30
    assert found.notes == {b"stream": TOO_COSTLY_NOTE}


async def test_names_too_long_for_bulk_are_told(valkey: Server) -> None:
    long = b"l" * (64 * 1024 + 1)
    plant(valkey, [b"short", long])
    found = Kept()
    async with connected(target_of(valkey)) as connection:
        scan, _ = await reading(connection, found)
        await scan.run()
    assert keys_of(found.rows) == [b"short"]
    assert found.unread == [long]


async def test_long_names_are_asked_in_several_writes(valkey: Server) -> None:
    names = plant(valkey, [b"%d" % number + b"n" * 60_000 for number in range(200)])
    found = Kept()
    async with connected(target_of(valkey)) as connection:
        scan, _ = await reading(connection, found)
        await scan.run()
    found_times = Counter(keys_of(found.rows))
    assert set(found_times) == set(names)
    assert scan.repeats_possible or set(found_times.values()) == {1}
