from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence

import pytest
import redis
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import NoPermissionError

from rtui.cli.allowed import DEFAULT_RELEASE
from rtui.cli.allowed import acl_command as command
from rtui.server.guard.acl import (
    OLDEST,
    ON_REQUEST_GROUPS,
    OPTIONAL_GROUPS,
    REQUIRED_GROUPS,
    AclError,
    acl_line,
    granted,
    parse_release,
)
from rtui.server.guard.spec import CommandGroup, Spec
from tests.clusters import TestCluster
from tests.server.guard.harmless import samples
from tests.server.targets import fill, raw
from tests.servers import Server

WORD = "a-word-for-tests"

FORBIDDEN = [
    line.split(" ")
    for line in (
        *("SET string x", "DEL string", "UNLINK string", "EXPIRE string 1", "PERSIST string", "FLUSHALL", "FLUSHDB"),
        *("RENAME string s2", "COPY string s2", "MOVE string 1", "SWAPDB 0 1", "KEYS *", "RANDOMKEY", "TOUCH string"),
        *("GET string", "MGET string", "GETDEL string", "GETEX string", "APPEND string x", "DUMP string", "SORT list"),
        *("HGETALL hash", "HKEYS hash", "HSET hash f v", "SMEMBERS set", "SPOP set", "LPUSH list x", "ZADD zset 1 x"),
        *("XADD stream * f v", "XREAD STREAMS stream 0", "XGROUP DESTROY stream group", "XTRIM stream MAXLEN 0"),
        *("PFCOUNT string", "PFADD string x", "BLPOP list 1", "BITFIELD string SET u8 0 1", "SUBSCRIBE a"),
        *("PSUBSCRIBE *", "PUBLISH a b", "MONITOR", "EVAL return 0", "SCRIPT FLUSH", "MULTI", "WAIT 0 1"),
        *("CONFIG SET maxmemory 0", "CONFIG GET *", "CONFIG RESETSTAT", "CONFIG REWRITE", "DEBUG SLEEP 0"),
        *("CLIENT KILL ID 1", "CLIENT PAUSE 1", "CLIENT LIST", "CLIENT TRACKING ON", "SLOWLOG RESET", "SLOWLOG GET"),
        *("LATENCY RESET", "SAVE", "BGSAVE", "BGREWRITEAOF", "REPLICAOF no one", "CLUSTER FAILOVER", "CLUSTER RESET"),
        *("MEMORY PURGE", "MEMORY DOCTOR", "ACL SETUSER other on", "ACL LIST", "OBJECT REFCOUNT string"),
        *("MODULE LIST", "SHUTDOWN NOSAVE", "COMMAND DOCS", "COMMAND COUNT", "HOTKEYS START METRICS 1 CPU"),
        *("VADD vectors VALUES 2 1 2 x", "VREM vectors element", "ARSET array 0 x", "CLIENT NO-EVICT ON"),
    )
]
"""Commands that the user must not have."""

FOR_STRANGERS = {"auth", "hello", "quit", "reset"}
"""Commands that a server takes from everybody, logged in or not."""


def run(*args: str) -> Result:
    return CliRunner().invoke(command, args)


def line_for(server: Server, *args: str) -> list[str]:
    """The printed line for a server, with a password in place of the placeholder, as words."""
    result = run("--for", server.name, *args)
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    return [f">{WORD}" if word == ">PASSWORD" else word for word in line.split(" ")]


def allow(server: Server, *args: str) -> None:
    reply = raw(server, *line_for(server, *args))
    assert reply in (b"OK", "OK"), reply


def denied(reply: object) -> bool:
    return isinstance(reply, NoPermissionError)


def text_of(reply: object) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def dry_runs(server: Server, lines: Sequence[Sequence[bytes | str]]) -> list[str]:
    """What the server says to each line if the user sent it: OK, or why not."""
    pipeline = server.admin.pipeline(transaction=False)
    for line in lines:
        pipeline.execute_command("ACL", "DRYRUN", "rtui", *line)
    return [text_of(reply) for reply in pipeline.execute(raise_on_error=False)]


def key_of(spec: Spec) -> bytes:
    values = (
        CommandGroup.STRING, CommandGroup.HASH, CommandGroup.LIST, CommandGroup.SET, CommandGroup.ZSET,
        CommandGroup.STREAM, CommandGroup.ARRAY, CommandGroup.VECTORS,
    )  # fmt: skip
    return spec.group.value.encode() if spec.group in values else b"string"


def test_the_user_may_send_everything_on_the_list(server: Server) -> None:
    fill(server)
    allow(server, "--cluster")
    specs = granted(parse_release(server.name), groups=[CommandGroup.CLUSTER])
    assert len(specs) > 40
    for spec in specs:
        for line in samples(spec, key_of(spec)):
            assert not denied(raw(server, *line, user="rtui", password=WORD)), spec.usage


def test_the_user_may_look_at_a_key_without_a_name(server: Server) -> None:
    server.admin.set("", "x")
    allow(server)
    for line in ("TYPE", "MEMORY USAGE", "STRLEN"):
        assert not denied(raw(server, *line.split(), b"", user="rtui", password=WORD)), line


def test_the_user_may_send_nothing_else(server: Server) -> None:
    fill(server)
    allow(server, "--cluster")
    for line in FORBIDDEN:
        reply = raw(server, *line, user="rtui", password=WORD)
        unknown = isinstance(reply, Exception) and "unknown" in str(reply).lower()
        protected = line[0] == "DEBUG" and isinstance(reply, Exception) and "not allowed" in str(reply)
        assert denied(reply) or unknown or protected, (line, reply)
    assert server.admin.dbsize() == len(set(server.admin.scan_iter()))
    assert server.admin.get("string") in (b"abc", "abc")


def test_the_server_agrees_without_being_asked_for_real(server: Server) -> None:
    allow(server, "--cluster")
    if server.version < (7, 0):
        assert isinstance(raw(server, "ACL", "DRYRUN", "rtui", "PING"), redis.ResponseError)
        return
    specs = granted(parse_release(server.name), groups=[CommandGroup.CLUSTER])
    lines = [line for spec in specs for line in samples(spec, key_of(spec))]
    assert dict(zip(lines, dry_runs(server, lines), strict=True)) == dict.fromkeys(lines, "OK")
    assert "OK" not in dry_runs(server, FORBIDDEN)


def test_all_that_the_user_may_do_is_on_the_list(server: Server) -> None:
    """Every command and subcommand that the server has is tried, not only those we thought of."""
    allow(server, "--cluster")
    names = {spec.server_name for spec in granted(parse_release(server.name), groups=[CommandGroup.CLUSTER])}
    if server.version < (7, 0):
        (line,) = [one for one in raw(server, "ACL", "LIST") if b"user rtui " in one]
        rules = {word.decode() for word in line.split() if word.startswith((b"+", b"-"))}
        assert rules == {"-@all"} | {f"+{name}" for name in names}
        return
    arities = dict(commands_of(server))
    assert names <= arities.keys()
    lines = [[*name.split("|"), *["x"] * (abs(arity) - 1 - name.count("|"))] for name, arity in arities.items()]
    answers = dict(zip(arities, dry_runs(server, lines), strict=True))
    assert not [answer for answer in answers.values() if "wrong number" in answer]
    allowed = {name for name, answer in answers.items() if "has no permissions to run" not in answer}
    assert allowed == names | FOR_STRANGERS


def commands_of(server: Server) -> Iterator[tuple[str, int]]:
    """Each command with its arity; of a command with subcommands only those."""
    for known in raw(server, "COMMAND"):
        for name, arity, *_ in known[9] or [known]:
            yield name.decode().lower(), arity


def test_groups_can_be_left_out(server: Server) -> None:
    fill(server)
    without = [group for group in OPTIONAL_GROUPS if group not in ON_REQUEST_GROUPS]
    allow(server, *(part for group in without for part in ("--without", group.value)))
    for spec in granted(parse_release(server.name)):
        reply = raw(server, *samples(spec, key_of(spec))[0], user="rtui", password=WORD)
        assert denied(reply) == (spec.group not in REQUIRED_GROUPS), spec.usage


def test_a_hash_in_place_of_the_password(server: Server) -> None:
    digest = hashlib.sha256(WORD.encode()).hexdigest()
    allow(server, "--hash", digest, "--user", "looker")
    assert raw(server, "PING", user="looker", password=WORD) in (b"PONG", "PONG")
    assert WORD not in run("--hash", digest).output


def test_the_default_line_is_for_every_server_from_7_2_on(server: Server) -> None:
    result = run()
    (line,) = result.stdout.splitlines()
    assert DEFAULT_RELEASE in result.stderr
    reply = raw(server, *line.split(" "))
    if server.version >= parse_release(DEFAULT_RELEASE).version:
        assert reply in (b"OK", "OK")
    elif server.version >= (7, 0):
        assert isinstance(reply, redis.ResponseError)


def rights(server: Server) -> list[object]:
    """What the server says of the user, the commands in an order of their own in each process."""
    reply = server.admin.execute_command("ACL", "GETUSER", "rtui")
    return [sorted(part.split()) if isinstance(part, bytes) else part for part in reply.values()]


@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
def test_one_command_makes_the_user_on_every_node_of_a_cluster(cluster: TestCluster) -> None:
    if shutil.which("redis-cli") is None:
        pytest.skip("redis-cli is missing")
    first = cluster.members[0].server
    sha256 = hashlib.sha256(WORD.encode()).hexdigest()
    result = run("--for", first.name, "--hash", sha256, "--on-every-node", f"{first.host}:{first.port}")
    assert result.exit_code == 0, result.output
    try:
        subprocess.run(result.stdout, shell=True, check=True, capture_output=True)  # noqa: S602 - as people use it
        users = [rights(member.server) for member in cluster.members]
        allow(first, "--cluster", "--hash", sha256)
        assert users == [rights(first)] * len(cluster.members)
    finally:
        for member in cluster.members:
            member.server.admin.acl_deluser("rtui")


def test_the_nodes_of_a_cluster_need_the_user_each() -> None:
    assert "for every node of the cluster, replicas included" in run("--cluster").stderr
    for address in ("", "host", "--help:1", "a b:1", "host:1;ls"):
        assert run("--on-every-node", address).exit_code == 2


def test_a_node_of_a_cluster(cluster_node: Server) -> None:
    allow(cluster_node)
    assert denied(raw(cluster_node, "CLUSTER", "NODES", user="rtui", password=WORD))
    allow(cluster_node, "--cluster")
    for line in ("CLUSTER NODES", "CLUSTER INFO", "READONLY"):
        assert not isinstance(raw(cluster_node, *line.split(), user="rtui", password=WORD), Exception)
    for line in ("CLUSTER FAILOVER", "CLUSTER FORGET x", "READWRITE"):
        assert denied(raw(cluster_node, *line.split(), user="rtui", password=WORD))


def test_settings_and_hot_key_sessions_are_allowed_on_request(server: Server) -> None:
    allow(server)
    setting = ("CONFIG", "GET", "lfu-log-factor")
    session = ("HOTKEYS", "START", "METRICS", "1", "CPU", "COUNT", "1", "DURATION", "1", "SAMPLE", "10")
    assert denied(raw(server, *setting, user="rtui", password=WORD))
    has_sessions = server.product == "redis" and server.version >= (8, 6)
    assert denied(raw(server, *session, user="rtui", password=WORD)) == has_sessions
    allow(server, "--with", "settings", "--with", "hotkeys")
    assert not isinstance(raw(server, *setting, user="rtui", password=WORD), Exception)
    assert denied(raw(server, "CONFIG", "SET", "maxmemory", "0", user="rtui", password=WORD))
    if has_sessions:
        assert raw(server, *session, user="rtui", password=WORD) in (b"OK", "OK")
        for word in ("STOP", "RESET"):
            assert denied(raw(server, "HOTKEYS", word, user="rtui", password=WORD))


def test_read_only_key_patterns_and_a_selector_where_there_are_such() -> None:
    assert " ~* " in run("--for", "redis-6.2").stdout
    newer = run("--for", "redis-8.0").stdout
    assert " %R~* " in newer
    assert newer.rstrip().endswith("(~* -@all +vcard +vinfo +vrandmember +vgetattr +vemb)")
    assert "(" not in run("--for", "redis-8.0", "--without", "vectors").stdout
    assert "vcard" not in run("--for", "valkey-9.1").stdout


def test_modules_are_allowed_on_request() -> None:
    assert "json" not in run("--for", "redis-8.0").stdout
    line = run("--for", "redis-8.0", "--with", "json", "--with", "bloom").stdout
    assert "+json.type" in line[line.index("(") :]
    assert "+cf.info" in line
    assert "ts.info" not in line
    assert "cf.info" not in run("--for", "valkey-9.1", "--with", "bloom").stdout


@pytest.mark.parametrize(
    "args",
    [
        ("--for", "redis"), ("--for", "redis-5.0"), ("--for", "valkey-7.0"), ("--for", "dragonfly-1.0"),
        ("--for", "redis-8.x"), ("--user", "two words"), ("--user", ""), ("--user", "a\nb"), ("--hash", "abc"),
        ("--hash", "Z" * 64), ("--without", "keyspace"), ("--without", "connection"), ("--with", "cluster"), ("extra",),
    ],
)  # fmt: skip
def test_usage_errors(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert "SETUSER" not in result.stdout
    assert "Traceback" not in result.output


@given(
    st.sampled_from(sorted(OLDEST)),
    st.integers(0, 12),
    st.integers(0, 30),
    st.sets(st.sampled_from(OPTIONAL_GROUPS)),
    st.sets(st.sampled_from(OPTIONAL_GROUPS)),
)
def test_a_line_is_one_line_of_rules_for_listed_commands(
    product: str, major: int, minor: int, groups: set[CommandGroup], without: set[CommandGroup]
) -> None:
    if (major, minor) < OLDEST[product]:
        with pytest.raises(AclError):
            parse_release(f"{product}-{major}.{minor}")
        return
    release = parse_release(f"{product}-{major}.{minor}")
    line = acl_line(release, groups=groups, without=without)
    assert line.isascii()
    assert line.isprintable()
    rules = [word.strip("()") for word in line.split(" ") if word.strip("(").startswith("+")]
    specs = granted(release, groups=groups, without=without)
    assert sorted(rules) == sorted({spec.acl_rule for spec in specs})
    assert not any(spec.group in without for spec in specs)
    assert "+@" not in line
    assert line.count("-@all") == (2 if "(" in line else 1)


@given(st.text(max_size=40))
def test_a_user_name_cant_smuggle_rules_in(user: str) -> None:
    try:
        line = acl_line(parse_release("redis-7.0"), user=user)
    except AclError:
        return
    assert len(line.split()) == len(acl_line(parse_release("redis-7.0")).split())
