"""`rtui acl`, `rtui commands` and `rtui slot`, which ask little of a server or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import NoPermissionError
from rich.cells import cell_len

from rtui.cli.allowed import DEFAULT_RELEASE, acl_command, commands_command
from rtui.cli.main import run
from rtui.cli.slot import command as slot_command
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import HOSTILE, unescape
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
from rtui.server.guard.closed_list import SETTINGS, TABLE
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


def run_acl(*args: str) -> Result:
    return CliRunner().invoke(acl_command, args)


def line_for(server: Server, *args: str) -> list[str]:
    """The printed line for a server, with a password in place of the placeholder, as words."""
    result = run_acl("--for", server.name, *args)
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
    assert WORD not in run_acl("--hash", digest).output


def test_the_default_line_is_for_every_server_from_7_2_on(server: Server) -> None:
    result = run_acl()
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
    result = run_acl("--for", first.name, "--hash", sha256, "--on-every-node", f"{first.host}:{first.port}")
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
    assert "for every node of the cluster, replicas included" in run_acl("--cluster").stderr
    for address in ("", "host", "--help:1", "a b:1", "host:1;ls"):
        assert run_acl("--on-every-node", address).exit_code == 2


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
    assert " ~* " in run_acl("--for", "redis-6.2").stdout
    newer = run_acl("--for", "redis-8.0").stdout
    assert " %R~* " in newer
    assert newer.rstrip().endswith("(~* -@all +vcard +vinfo +vrandmember +vgetattr +vemb)")
    assert "(" not in run_acl("--for", "redis-8.0", "--without", "vectors").stdout
    assert "vcard" not in run_acl("--for", "valkey-9.1").stdout


def test_modules_are_allowed_on_request() -> None:
    assert "json" not in run_acl("--for", "redis-8.0").stdout
    line = run_acl("--for", "redis-8.0", "--with", "json", "--with", "bloom").stdout
    assert "+json.type" in line[line.index("(") :]
    assert "+cf.info" in line
    assert "ts.info" not in line
    assert "cf.info" not in run_acl("--for", "valkey-9.1", "--with", "bloom").stdout


@pytest.mark.parametrize(
    "args",
    [
        ("--for", "redis"), ("--for", "redis-5.0"), ("--for", "valkey-7.0"), ("--for", "dragonfly-1.0"),
        ("--for", "redis-8.x"), ("--user", "two words"), ("--user", ""), ("--user", "a\nb"), ("--hash", "abc"),
        ("--hash", "Z" * 64), ("--without", "keyspace"), ("--without", "connection"), ("--with", "cluster"), ("extra",),
    ],
)  # fmt: skip
def test_usage_errors(args: tuple[str, ...]) -> None:
    result = run_acl(*args)
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


def printed(width: int, *args: str) -> list[str]:
    result = CliRunner().invoke(commands_command, args, env={"COLUMNS": str(width), "TERM": "dumb", "NO_COLOR": "1"})
    assert result.exit_code == 0
    return result.stdout.splitlines()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_fits_and_leaves_nothing_out(width: int) -> None:
    lines = printed(width)
    assert max(cell_len(line) for line in lines) <= width
    words = set(" ".join(lines).split())
    for spec in TABLE:
        parts = " ".join((spec.usage.replace("|", " "), spec.cost, spec.why, *spec.bounds[1:])).split()
        assert set(parts) <= words, spec.usage


def test_one_group_only() -> None:
    text = "\n".join(printed(120, "--group", "zset"))
    assert "ZRANGE" in text
    assert "HSCAN" not in text
    assert "SCAN cursor" not in text


def test_json_is_the_whole_list() -> None:
    records = json.loads(CliRunner().invoke(commands_command, ["--json"]).stdout)
    assert sorted(record["usage"] for record in records) == sorted(spec.usage for spec in TABLE)
    by_usage = {record["usage"]: record for record in records}
    for spec in TABLE:
        record = by_usage[spec.usage]
        assert record["command"] == spec.name
        assert record["cost"] == spec.cost
        assert record["why"] == spec.why
        assert record["bounds"] == list(spec.bounds)
        assert record["acl"] == spec.acl_rule
        assert record["touches"] is spec.touches
        assert record["consent"] is spec.needs_consent
    assert by_usage["HPTTL key FIELDS n field […]"]["since_valkey"] == "9.0"
    assert by_usage["ARCOUNT key"]["since_valkey"] is None
    assert by_usage["CONFIG GET setting"]["settings"] == list(SETTINGS)


def test_json_of_a_group() -> None:
    records = json.loads(CliRunner().invoke(commands_command, ["--json", "--group", "json", "--group", "bloom"]).stdout)
    assert {record["group"] for record in records} == {"json", "bloom"}


def test_an_unknown_group_is_a_usage_error() -> None:
    assert CliRunner().invoke(commands_command, ["--group", "none"]).exit_code == 2


def test_every_group_has_entries() -> None:
    assert {spec.group for spec in TABLE} == set(CommandGroup)


@pytest.mark.parametrize("module", ["rtui.cli.allowed"])
def test_neither_the_screen_nor_a_client_is_loaded(module: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not {"textual", "redis", "hiredis", "asyncio"} & set(said.stdout.split())


@pytest.mark.parametrize("line", [["commands"], ["slot", "a", "b"]])
def test_json_is_one_option_everywhere_and_the_older_one_stays(
    line: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for asked in (["--format", "json"], ["--json"]):
        run([*line, *asked])
        texts.append(capfd.readouterr().out)
    run([*line, "-o", str(tmp_path / "a.json")])
    assert capfd.readouterr().out == ""
    assert [*texts, (tmp_path / "a.json").read_text()] == texts[:1] * 3
    json.loads(texts[0])
    run([*line, "-o", str(tmp_path / "a.txt")])
    assert "\x1b" not in (tmp_path / "a.txt").read_text()
    run([*line, "--help"])
    assert "--json" not in capfd.readouterr().out


def run_slot(*args: str) -> Result:
    return CliRunner().invoke(slot_command, list(args))


def test_one_key_with_its_reason() -> None:
    result = run_slot("{user1000}.following")
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
    result = run_slot(key)
    assert result.exit_code == 0
    assert said in result.output


def test_keys_of_one_slot_may_be_used_together() -> None:
    result = run_slot("{user1000}.following", "{user1000}.followers", "user1000")
    assert result.exit_code == 0
    assert "Together: yes. All lie in slot 3443" in result.output


def test_keys_of_different_slots_may_not() -> None:
    result = run_slot("user:1:cart", "user:1:orders")
    assert result.exit_code == 1
    assert "Together: no. They lie in 2 slots" in result.output
    assert "CROSSSLOT" in result.output


def test_json() -> None:
    result = run_slot("--json", "foo{{bar}}zap", "plain")
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
    result = run_slot("--json", "--quoted", "--", "".join(f"\\x{byte:02x}" for byte in raw))
    assert result.exit_code == 0
    assert result.output.isascii()
    (record,) = json.loads(result.output)["keys"]
    assert unescape(record["key_quoted"].encode()) == raw
    assert record["key"] is None or record["key"].encode() == raw
    assert record["slot"] == key_slot(raw)


def test_escapes_are_literal_unless_asked_for() -> None:
    (literal,) = json.loads(run_slot("--json", r"\x41").output)["keys"]
    (resolved,) = json.loads(run_slot("--json", "--quoted", r"\x41").output)["keys"]
    assert (literal["key"], resolved["key"]) == (r"\x41", "A")


def test_a_bad_escape_is_a_usage_error() -> None:
    result = run_slot("--quoted", "\\q\x1b[31m")
    assert result.exit_code == 2
    assert "no escape" in result.output
    assert "\x1b" not in result.output


def test_hostile_names_are_shown_safely() -> None:
    result = run_slot("\x1b]52;c;eA==\x07\u202e\x9b", "{\x1b[2J}x")
    assert not HOSTILE.search(result.output.replace("\n", ""))
    assert "␛]52" in result.output


def test_no_key_is_a_usage_error() -> None:
    assert run_slot().exit_code == 2


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
    result = run_slot("user:42:profile", "cart:42")
    assert result.exit_code == 1
    assert "The hash tag {42} would put them into slot 8000:\n  user:{42}:profile\n  cart:{42}\n" in result.output
    document = json.loads(run_slot("--json", "user/42", "cart/42", "--separator", "/").output)
    assert document["common_tag"]["keys"] == ["user/{42}", "cart/{42}"]
    assert "No identifier is in all of these names" in run_slot("a", "b").output


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
def test_a_cluster_says_which_node_serves_a_slot_and_where_it_moves(cluster: TestCluster) -> None:
    source, target = cluster.members[0], cluster.members[1]
    tag = next(name for name in (b"%d" % at for at in range(100)) if key_slot(name) in range(5_000))
    slot = key_slot(tag)
    url = ["-u", f"redis://{target.server.host}:{target.server.port}"]
    label = f"{source.server.host}:{source.server.port}"
    assert f"  node    {label}\n" in run_slot(*url, tag.decode()).output
    cluster.begin_moves([slot], source.server, target.server)
    try:
        result = run_slot(*url, tag.decode())
        moves_to = f"{target.server.host}:{target.server.port}"
        assert f"  node    {label}, from which the slot is being moved to {moves_to}\n" in result.output
        (record,) = json.loads(run_slot(*url, "--json", tag.decode()).output)["keys"]
        assert (record["node"], record["moving_to"]) == (label, moves_to)
    finally:
        cluster.cancel_moves([slot], source.server, target.server)


def test_one_server_says_that_it_is_in_no_cluster(valkey: Server) -> None:
    result = run_slot("-p", str(valkey.port), "a")
    assert result.exit_code == 0
    assert "  node    none: the server is in no cluster\n" in result.output
