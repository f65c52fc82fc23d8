"""Lengths of some keys only: which are asked, that memory bounds the others, and that the longest are found."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rtui.analysis.columns import SAMPLED_COLUMNS
from rtui.analysis.report.document import Scope
from rtui.keyspace.types import HASH, LIST, SET, SHORT_LENGTH, STRING, TYPES, ZSET
from rtui.server.scan.progress import ScanState
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.inspection.gathered import Gathered, inspecting
from tests.server.targets import connected, target_of
from tests.servers import Server

COUNTS = (1, 2, 3, 10, 100, 500, 513, 5_000)


def fill_lean(client: Any) -> None:
    """Write values that take as little memory as their length allows."""
    for number in (0, 7, 10_000, -(1 << 63), (1 << 63) - 1):
        client.set(f"i{number}", number)
    for count in COUNTS:
        client.set(f"s{count}", "x" * count)
        client.hset(f"h{count}", mapping={str(field): field % 10 for field in range(count)})
        client.hset(f"H{count}", mapping={f"{field:x}": "" for field in range(count)})
        client.sadd(f"S{count}", *range(count))
        client.sadd(f"t{count}", *(f"{member:x}" for member in range(count)))
        client.zadd(f"z{count}", {str(member): member for member in range(count)})
        client.zadd(f"Z{count}", {f"{member:x}": 0 for member in range(count)})
    client.hset("h", "", "")
    client.sadd("S", "")
    client.zadd("z", {"": 0})


def test_memory_bounds_the_length_on_every_server(server: Server) -> None:
    client: Any = server.client()
    every_type.fill(server, client)
    for largest in (0, 100_000):
        for kind in ("hash", "zset", "set"):
            for entries in client.config_get(f"{kind}-m*-entries"):
                client.config_set(entries, min(largest, 1) if "-min-" in entries else largest)
        fill_lean(client)
        for key in client.keys("*"):
            kind = client.type(key)
            least = TYPES[kind].least_element_bytes
            length = client.execute_command(every_type.LENGTHS[kind], key) if least else 0
            if length > SHORT_LENGTH:
                assert length * least <= client.memory_usage(key), (key, length)
        client.flushall()


def fill(client: Any, keys: int) -> None:
    """Write keys of five types whose lengths are heavy in their tails, shuffled by the server's own hash."""
    pipe = client.pipeline(transaction=False)
    for number in range(keys):
        size = round(2_000_000 / (1 + number * 7_919 % keys) ** 1.2) // 100 + 1
        kind = number % 5
        if kind == 0:
            pipe.set(f"s:{number}", "x" * size)
        elif kind == 1:
            pipe.hset(f"h:{number}", mapping={str(field): field for field in range(min(size, 2_000))})
        elif kind == 2:
            pipe.sadd(f"t:{number}", *range(min(size, 2_000)))
        elif kind == 3:
            pipe.zadd(f"z:{number}", {str(member): member for member in range(min(size, 2_000))})
        else:
            pipe.rpush(f"l:{number}", *range(min(size, 2_000)))
        if number % 500 == 499:
            pipe.execute()
    pipe.execute()


async def test_a_sampled_pass_asks_one_key_in_eight_and_the_long_ones(server: Server) -> None:
    client: Any = server.client()
    fill(client, 6_000)
    found = Gathered(Scope(top=10))
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        scan, pipeline = await inspecting(connection, found, columns=SAMPLED_COLUMNS)
        await scan.run()
        sent = Counter(argv[0] for argv in proxy.commands())
    assert scan.state is ScanState.DONE
    assert pipeline.waiting == 0
    assert set(found.times.values()) == {1}
    assert len(found.facts) == 6_000
    sampled = {key for key, facts in found.facts.items() if facts["idle"] is not None}
    assert 6_000 // 8 - 1 <= len(sampled) <= 6_000 // 8 + 1
    assert all(facts["ttl"] == -1 and facts["memory"] for facts in found.facts.values())
    lengths = {key: facts["length"] for key, facts in found.facts.items() if facts["length"] is not None}
    if not every_type.has_no_touch(server):
        assert not lengths
        return
    assert sampled <= set(lengths)
    assert sum(sent[name.encode()] for name in every_type.LENGTHS.values()) < 6_500
    for kind, prefix in ((STRING, b"s"), (HASH, b"h"), (SET, b"t"), (ZSET, b"z"), (LIST, b"l")):
        keys = client.keys(prefix + b":*")
        true = sorted(((client.execute_command(every_type.LENGTHS[kind.name], key), key) for key in keys), reverse=True)
        threshold = true[9][0]
        assert {key for length, key in true if length > threshold} <= set(lengths)
        assert all(lengths[key] == length for length, key in true if key in lengths)
