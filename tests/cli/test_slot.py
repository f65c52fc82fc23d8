from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from rtui.cli.slot import command
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import HOSTILE, unescape
from tests.clusters import TestCluster
from tests.servers import Server


def run(*args: str) -> Result:
    return CliRunner().invoke(command, list(args))


def test_one_key_with_its_reason() -> None:
    result = run("{user1000}.following")
    assert result.exit_code == 0
    assert result.output == (
        "{user1000}.following\n"
        "  slot    3443 = CRC16 0x4d73 mod 16384\n"
        "  hashed  user1000 (8 of 20 bytes, between the { at offset 0 and the } at 9)\n"
        "  why     only the tag between the first { and the first } after it is hashed\n"
    )


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("foo{}{bar}", "nothing lies between"),
        ("foo{bar", "no } follows"),
        ("foo", "there is no {"),
        ("", "(the empty key)"),
        ("a", "the whole key, 1 byte\n"),
    ],
)
def test_a_key_without_a_tag_says_why(key: str, said: str) -> None:
    result = run(key)
    assert result.exit_code == 0
    assert said in result.output


def test_keys_of_one_slot_may_be_used_together() -> None:
    result = run("{user1000}.following", "{user1000}.followers", "user1000")
    assert result.exit_code == 0
    assert "Together: yes. All lie in slot 3443" in result.output


def test_keys_of_different_slots_may_not() -> None:
    result = run("user:1:cart", "user:1:orders")
    assert result.exit_code == 1
    assert "Together: no. They lie in 2 slots" in result.output
    assert "CROSSSLOT" in result.output


def test_json() -> None:
    result = run("--json", "foo{{bar}}zap", "plain")
    assert result.exit_code == 1
    document = json.loads(result.output)
    assert document["same_slot"] is False
    tagged, plain = document["keys"]
    assert tagged == {
        "key": "foo{{bar}}zap",
        "key_quoted": '"foo{{bar}}zap"',
        "slot": 4015,
        "crc16": "0xcfaf",
        "hashed": "{bar",
        "hashed_quoted": '"{bar"',
        "tag": {"start": 3, "end": 9},
        "rule": "tag",
        "why": "only the tag between the first { and the first } after it is hashed",
    }
    assert plain["tag"] is None
    assert plain["rule"] == "no_brace"


@given(st.binary(max_size=30))
def test_json_is_exact_and_ascii_for_any_bytes(raw: bytes) -> None:
    result = run("--json", "--quoted", "--", "".join(f"\\x{byte:02x}" for byte in raw))
    assert result.exit_code == 0
    assert result.output.isascii()
    (record,) = json.loads(result.output)["keys"]
    assert unescape(record["key_quoted"].encode()) == raw
    assert record["key"] is None or record["key"].encode() == raw
    assert record["slot"] == key_slot(raw)


def test_escapes_are_literal_unless_asked_for() -> None:
    (literal,) = json.loads(run("--json", r"\x41").output)["keys"]
    (resolved,) = json.loads(run("--json", "--quoted", r"\x41").output)["keys"]
    assert (literal["key"], resolved["key"]) == (r"\x41", "A")


def test_a_bad_escape_is_a_usage_error() -> None:
    result = run("--quoted", "\\q\x1b[31m")
    assert result.exit_code == 2
    assert "no escape" in result.output
    assert "\x1b" not in result.output


def test_hostile_names_are_shown_safely() -> None:
    result = run("\x1b]52;c;eA==\x07\u202e\x9b", "{\x1b[2J}x")
    assert not HOSTILE.search(result.output.replace("\n", ""))
    assert "␛]52" in result.output


def test_no_key_is_a_usage_error() -> None:
    assert run().exit_code == 2


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_raw_bytes_reach_it_and_any_terminal_can_carry_the_answer(encoding: str) -> None:
    """As a process: an argument that is no UTF-8, and an output that may not carry Unicode."""
    program = "import sys; from rtui.cli.slot import command; command()"
    raw = b"\xff{\x1b\xc3\xa9}"
    result = subprocess.run(
        [sys.executable.encode(), b"-c", program.encode(), raw],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    shown = "\\xff{␛é}" if encoding == "utf-8" else "\\xff{\\x1b\\u00e9}"
    assert result.stdout.decode(encoding).splitlines()[0] == shown
    assert f"slot    {key_slot(raw)} " in result.stdout.decode(encoding)


def test_the_tag_that_would_let_keys_share_a_slot() -> None:
    result = run("user:42:profile", "cart:42")
    assert result.exit_code == 1
    assert "The hash tag {42} would put them into slot 8000:\n  user:{42}:profile\n  cart:{42}\n" in result.output
    document = json.loads(run("--json", "user/42", "cart/42", "--separator", "/").output)
    assert document["common_tag"]["keys"] == ["user/{42}", "cart/{42}"]
    assert "No identifier is in all of these names" in run("a", "b").output


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
def test_a_cluster_says_which_node_serves_a_slot_and_where_it_moves(cluster: TestCluster) -> None:
    source, target = cluster.members[0], cluster.members[1]
    tag = next(name for name in (b"%d" % at for at in range(100)) if key_slot(name) in range(5_000))
    slot = key_slot(tag)
    url = ["-u", f"redis://{target.server.host}:{target.server.port}"]
    label = f"{source.server.host}:{source.server.port}"
    assert f"  node    {label}\n" in run(*url, tag.decode()).output
    cluster.begin_moves([slot], source.server, target.server)
    try:
        result = run(*url, tag.decode())
        moves_to = f"{target.server.host}:{target.server.port}"
        assert f"  node    {label}, from which the slot is being moved to {moves_to}\n" in result.output
        (record,) = json.loads(run(*url, "--json", tag.decode()).output)["keys"]
        assert (record["node"], record["moving_to"]) == (label, moves_to)
    finally:
        cluster.cancel_moves([slot], source.server, target.server)


def test_one_server_says_that_it_is_in_no_cluster(valkey: Server) -> None:
    result = run("-p", str(valkey.port), "a")
    assert result.exit_code == 0
    assert "  node    none: the server is in no cluster\n" in result.output
