from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rtui.analysis.facts import GONE, NO_TTL, KeyFacts, Reason, Unknown, gone_key
from rtui.keyspace.text.display import quoted
from rtui.server.guard.command import Secret
from rtui.server.user.copying import command_line, copied_commands, key_as_text
from rtui.server.wire.target import Target, Tls
from tests.server.targets import target_of
from tests.servers import Server

AWKWARD = [
    b"", b"plain", b"two words", b'it\'s "quoted" $HOME `id` \\ !', b"\x1b]52;c;AAAA\x07", b"line\nbreak\r\ttab\0nul",
    b"\xff\xfe invalid", "ключ é 💡".encode(), b"-x", b"--version", b"@file", bytes(range(256)),
]  # fmt: skip
"""Names that a shell, a terminal or redis-cli would take for something else."""


def facts(key: bytes, kind: bytes | Unknown) -> KeyFacts:
    return KeyFacts(key, 0.0, kind, GONE, GONE, GONE, NO_TTL, GONE, GONE)


@settings(deadline=None)
@given(st.binary())
@example(b"\xe2\x80\xaeabc")
@example("zero\u200bwidth".encode())
def test_copied_names_hold_nothing_that_acts(key: bytes) -> None:
    assert key_as_text(key).isprintable()
    assert quoted(key).isprintable()
    assert quoted(key).isascii()


@settings(deadline=None)
@given(st.text(st.characters(categories=["L", "N", "P"]), min_size=1))
def test_plain_text_is_copied_as_it_is(name: str) -> None:
    assert key_as_text(name.encode()) == name


@settings(deadline=None)
@given(st.binary())
def test_a_line_is_one_line_of_ascii_and_one_argument_for_the_key(key: bytes) -> None:
    line = command_line(Target(), "HGETALL", key)
    assert line.isprintable()
    assert line.isascii()
    assert len(shlex.split(line)) == len(["redis-cli", *Target().redis_cli_args(), "--quoted-input", "HGETALL", key])


def test_a_single_quote_does_not_break_the_quotes_of_the_shell() -> None:
    assert command_line(Target(), "GET", b"it's").endswith("""--quoted-input GET '"it\\x27s"'""")


def test_a_line_reaches_the_same_server_and_tells_no_password() -> None:
    target = Target(
        host="10.0.0.5",
        port=7001,
        user="some one",
        password=Secret("very secret"),
        db=3,
        tls=Tls(cacert="/etc/my ca.pem"),
    )
    line = command_line(target, "DUMP", b"key")
    assert "very secret" not in line
    words = shlex.split(line)
    assert words[:5] == ["redis-cli", "-h", "10.0.0.5", "-p", "7001"]
    assert words[words.index("--user") + 1] == "some one"
    assert words[words.index("--cacert") + 1] == "/etc/my ca.pem"
    assert words[words.index("-n") + 1] == "3"
    assert "--askpass" in words
    assert words[-3:] == ["--quoted-input", "DUMP", "key"]


def test_each_type_has_its_own_read_and_unknown_ones_have_the_rest() -> None:
    def titles(kind: bytes | Unknown) -> list[str]:
        return [command.title for command in copied_commands(Target(), facts(b"k", kind))]

    common = titles(b"a type that nobody has heard of")
    assert titles(Unknown(Reason.DENIED)) == common
    assert titles(b"hash")[0] == "read the value: HGETALL"
    for kind in (b"string", b"hash", b"list", b"set", b"zset", b"stream", b"array", b"ReJSON-RL"):
        assert titles(kind)[-len(common) :] == common
        assert len(titles(kind)) > len(common)


def test_what_writes_is_marked() -> None:
    commands = copied_commands(Target(), gone_key(b"k", 0.0))
    assert {line.line.split()[6] for line in commands if line.writes} == {"UNLINK", "EXPIRE", "PERSIST"}


def test_a_user_name_that_would_act_on_a_terminal_is_made_visible() -> None:
    assert command_line(Target(user="a\x1b]0;b\nc"), "DUMP", b"key").isprintable()


@pytest.fixture
def redis_cli() -> str:
    found = shutil.which("redis-cli")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("redis-cli is missing: the Debian package redis-tools brings it", pytrace=False)
        pytest.skip("redis-cli is missing")
    return found


def pasted(line: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line as a shell does."""
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False, timeout=20)


@pytest.mark.parametrize("key", AWKWARD)
def test_a_pasted_line_finds_the_key_whatever_its_name(redis_cli: str, redis70: Server, key: bytes) -> None:
    client = redis70.client()
    client.set(key, "the value")
    said = pasted(command_line(target_of(redis70), "GET", key))
    assert (said.stdout.strip(), said.stderr) == (b"the value", b"")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.binary(max_size=60))
def test_a_pasted_line_carries_any_bytes(redis_cli: str, redis70: Server, key: bytes) -> None:
    redis70.client().set(key, "1")
    assert pasted(command_line(target_of(redis70), "UNLINK", key)).stdout.strip() == b"1"


@pytest.mark.parametrize("key", [b"string", b"hash", b"list", b"set", b"zset", b"stream"])
def test_pasted_commands_are_understood(redis_cli: str, redis70: Server, key: bytes) -> None:
    client = redis70.client()
    client.set("string", "value")
    client.hset("hash", "field", "value")
    client.rpush("list", "value")
    client.sadd("set", "value")
    client.zadd("zset", {"value": 1})
    client.xadd("stream", {"field": "value"})
    for command in copied_commands(target_of(redis70), facts(key, key)):
        if not command.writes:
            said = pasted(command.line)
            assert said.returncode == 0
            assert said.stdout
            assert b"ERR" not in said.stdout + said.stderr
    (unlink,) = [one.line for one in copied_commands(target_of(redis70), facts(key, key)) if " UNLINK " in one.line]
    assert pasted(unlink).stdout.strip() == b"1"
