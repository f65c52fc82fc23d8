"""A sanitised recording holds numbers and stand-ins, and nothing else of what the server said."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.recording.document import as_json
from rtui.server.recording.sanitising import Sanitiser, harmless_info
from rtui.server.wire.replies import Reply, ServerError

SECRET = b"Sekret"
"""Stands in every name and value."""

PRIVATE = st.builds(lambda before, after: before + SECRET + after, st.binary(max_size=8), st.binary(max_size=8))
REPLIES: st.SearchStrategy[Reply] = st.recursive(
    PRIVATE | st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(PRIVATE, inner, max_size=3),
    max_leaves=10,
)
COMMANDS = [
    (b"SCAN", b"0", b"MATCH", SECRET + b"*", b"COUNT", b"10"),
    (b"GETRANGE", SECRET, b"0", b"99"),
    (b"HSCAN", SECRET, b"0", b"MATCH", SECRET, b"COUNT", b"10"),
    (b"HSCAN", SECRET, b"0", b"COUNT", b"10"),
    (b"HMGET", SECRET, SECRET, SECRET),
    (b"HSTRLEN", SECRET, SECRET),
    (b"HPTTL", SECRET, b"FIELDS", b"1", SECRET),
    (b"HRANDFIELD", SECRET, b"10", b"WITHVALUES"),
    (b"SISMEMBER", SECRET, SECRET),
    (b"ZRANGE", SECRET, b"0", b"9", b"WITHSCORES"),
    (b"ZSCAN", SECRET, b"0", b"MATCH", SECRET, b"COUNT", b"10"),
    (b"ZRANK", SECRET, SECRET),
    (b"ZLEXCOUNT", SECRET, b"[" + SECRET, b"+"),
    (b"LRANGE", SECRET, b"0", b"9"),
    (b"XREVRANGE", SECRET, b"+", b"-", b"COUNT", b"10"),
    (b"XINFO", b"STREAM", SECRET),
    (b"XINFO", b"GROUPS", SECRET),
    (b"XINFO", b"CONSUMERS", SECRET, SECRET),
    (b"XPENDING", SECRET, SECRET),
    (b"MEMORY", b"USAGE", SECRET),
    (b"CLUSTER", b"NODES"),
    (b"INFO", b"server"),
]


def written(*parts: object) -> bytes:
    return msgspec.json.encode([as_json(part) for part in parts])


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: b" ".join(argv[:2]).decode())
def test_all_that_is_known_to_be_asked_is_admitted(argv: tuple[bytes, ...]) -> None:
    assert any(spec.admits(argv) for spec in TABLE)


@given(st.sampled_from(COMMANDS), REPLIES)
def test_nothing_of_names_and_values_is_kept(argv: tuple[bytes, ...], reply: Reply) -> None:
    sanitiser = Sanitiser()
    kept = written(sanitiser.command(argv), sanitiser.reply(argv, reply))
    assert SECRET not in kept


@given(PRIVATE.map(lambda one: one.decode("latin-1")), st.sampled_from(["ERR", "NOPERM", "WRONGTYPE"]))
def test_an_error_quotes_nothing(text: str, code: str) -> None:
    kept = written(Sanitiser().reply((b"TYPE", SECRET), ServerError(f"{code} unknown command '{text}'")))
    assert SECRET not in kept
    assert code.encode() in kept


def test_what_the_interface_needs_is_kept() -> None:
    sanitiser = Sanitiser()
    page = sanitiser.reply((b"SCAN", b"0", b"COUNT", b"10"), [b"48", [b"user:1", b"user:2"]])
    assert isinstance(page, list)
    assert page[0] == b"48"
    assert page[1] == [sanitiser.stand_ins.name(b"user:1"), sanitiser.stand_ins.name(b"user:2")]
    assert sanitiser.command((b"PTTL", b"user:1")) == [b"PTTL", page[1][0]]
    assert sanitiser.command((b"TYPE", PROBE_KEY)) == [b"TYPE", PROBE_KEY]
    assert sanitiser.command((b"GETRANGE", b"user:1", b"0", b"99"))[2:] == [b"0", b"99"]
    assert sanitiser.reply((b"TYPE", b"user:1"), b"string") == b"string"
    assert sanitiser.reply((b"PTTL", b"user:1"), 1234) == 1234
    assert sanitiser.reply((b"GETRANGE", b"user:1", b"0", b"99"), b"value") == b"xxxxx"
    groups = sanitiser.reply((b"XINFO", b"GROUPS", b"s"), [[b"name", b"workers", b"consumers", 2, b"lag", 3]])
    assert groups == [[b"name", sanitiser.stand_ins.name(b"workers"), b"consumers", 2, b"lag", 3]]


def test_the_server_is_not_told_from_others() -> None:
    info = b"\r\n".join([
        b"# Server", b"redis_version:7.4.1", b"run_id:0123456789abcdef", b"tcp_port:7001", b"process_id:4711",
        b"executable:/srv/shop/redis-server", b"config_file:/srv/shop/redis.conf", b"os:Linux 6.1 shop-host",
        b"role:slave", b"master_host:10.1.2.3", b"master_port:7000", b"slave0:ip=10.1.2.4,port=7002,state=online",
        b"master_replid:0123456789abcdef", b"used_memory:1024", b"db0:keys=12,expires=3,avg_ttl=0",
    ])  # fmt: skip
    found = harmless_info(info)
    assert isinstance(found, bytes)
    kept = found.decode()
    for private in ("7001", "4711", "shop", "10.1", "7000", "0123456789abcdef"):
        assert private not in kept
    for needed in ("redis_version:7.4.1", "role:slave", "used_memory:1024", "db0:keys=12,expires=3,avg_ttl=0"):
        assert needed in kept
    nodes = Sanitiser().reply(
        (b"CLUSTER", b"NODES"),
        b"07c37dfeb235213a872192d90877d0cd55635b91 10.1.2.3:7000@17000,shop myself,master - 0 0 1 connected 0-99\n",
    )
    assert isinstance(nodes, bytes)
    assert b"10.1.2.3" not in nodes
    assert b"shop" not in nodes
    assert nodes.endswith(b"myself,master - 0 0 1 connected 0-99\n")
