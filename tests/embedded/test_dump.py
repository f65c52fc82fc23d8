"""Dumps that real servers have saved, opened by servers of rtui's own; and files that are no dumps, or damaged ones."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from rtui.cli.main import run
from rtui.embedded.dump_head import DumpError, DumpHead, is_dump
from rtui.server import guard, wall_clock
from rtui.server.guard.command import build_batch
from rtui.server.guard.evidence import PROBE_KEY, AbsentKey
from rtui.server.wire.errors import ExitCode, Reply
from rtui.server.wire.lane import as_of_dump
from tests.conftest import require
from tests.servers import Server, binaries

Json = dict[str, object]

DAY_S = 86_400


@pytest.fixture(autouse=True)
def installed() -> None:
    require("valkey-9.1")


@pytest.fixture
def saved(server: Server, tmp_path: Path) -> Path:
    """A dump of two databases; of the keys in the first one two have expired by now, as of the dump none had."""
    admin = server.admin
    admin.set("user:1", "x" * 1_000)
    admin.set("user:2", "y", ex=30 * DAY_S)
    admin.hset("cart:1", mapping={"a": "1", "b": "2"})
    admin.set("session:1", "z", px=1_500)
    admin.hset("session:2", mapping={"field": "value"})
    admin.pexpire("session:2", 1_500)
    other = server.client(db=7, username=b"default")
    other.rpush("queue", *range(500))
    began_s = time.monotonic()
    admin.save()
    assert time.monotonic() - began_s < 1, "nothing may expire while it is saved"
    path = tmp_path / "night.rdb"
    path.write_bytes((server.folder / "dump.rdb").read_bytes())
    while admin.exists("session:1", "session:2"):
        pass
    return path


Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line: exit code, standard output, standard error."""

    def ran(*args: object) -> tuple[int, str, str]:
        code = run([str(one) for one in args])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


def test_a_dump_is_reported_as_of_when_it_was_made(saved: Path, cli: Cli) -> None:
    before = hashlib.sha256(saved.read_bytes()).digest(), saved.stat()
    code, out, err = cli("report", saved, "--format", "json", "--columns", "all", "--no-keep")
    assert code == 0, err
    document = json.loads(out)
    assert document["head"]["coverage"]["keys"] == 5
    assert (hashlib.sha256(saved.read_bytes()).digest(), saved.stat().st_mtime_ns) == (before[0], before[1].st_mtime_ns)
    assert "as of" in err, "which moment and whose dump is said"
    head = document["head"]
    assert (head["scope"]["pace"], head["server"]["role"]) == ("full", "")
    assert {head["columns"][name]["state"] for name in ("idle", "frequency")} == {"unsupported"}
    assert "the dump holds no idle times" in head["columns"]["idle"]["reason"]
    assert "NOPERM" not in out
    assert any(note.startswith("Memory is as Valkey 9.1") and "the dump is of" in note for note in head["notes"])


def test_keys_that_have_expired_since_are_found_with_their_ttls(saved: Path, cli: Cli) -> None:
    code, out, err = cli("find", saved, "ttl<10s type:string,hash size>0", "--format", "json")
    assert code == 0, err
    found = {one["key"]: one for one in json.loads(out)["keys"]}
    assert set(found) == {"session:1", "session:2"}
    assert all(0 < one["ttl_ms"] <= 2_500 and one["memory_bytes"] > 0 for one in found.values()), "to the second"
    assert found["session:2"]["type"] == "hash"


@given(st.lists(st.integers(-2, 2_000_000), min_size=6, max_size=6), st.integers(0, 1_000_000))
def test_only_times_to_live_become_those_of_the_dump(numbers: list[int], stopped_ms: int) -> None:
    keys, field = (b"a", b"b"), guard.hpttl(PROBE_KEY, b"f", evidence=AbsentKey())
    commands = [guard.strlen(b"a"), build_batch((guard.strlen, guard.pttl), keys), field]
    replies: list[Reply] = [*numbers[:5], [numbers[5]]]
    with wall_clock.stopped_at(stopped_ms):
        found = as_of_dump(commands, replies)
    left = [one if one < 0 else max(0, one - stopped_ms) for one in numbers]
    assert found == [*numbers[:2], left[2], numbers[3], left[4], left[5:]]


def test_every_database_is_there(saved: Path, cli: Cli) -> None:
    code, out, err = cli("find", "-n", "7", saved, "type:list", "--format", "json")
    assert code == 0, err
    assert [one["key"] for one in json.loads(out)["keys"]] == ["queue"]


def test_the_time_goes_on_when_the_dump_is_closed(saved: Path, cli: Cli) -> None:
    cli("find", saved, "user:1")
    assert not wall_clock.is_stopped()
    assert abs(wall_clock.now_s() - time.time()) < DAY_S


def test_findings_and_patterns(saved: Path, cli: Cli) -> None:
    assert cli("check", saved)[0] in (ExitCode.FINE, ExitCode.FOUND, ExitCode.UNKNOWN)
    code, out, err = cli("patterns", saved)
    assert code == 0, err
    assert "session:" in out


def test_another_server_loads_it(saved: Path, server: Server, cli: Cli) -> None:
    """Redis has no import mode: it drops keys that have expired, and how many is said."""
    program = binaries()[server.name].path
    code, out, err = cli("find", saved, "*", "--count", "--server-binary", program)
    if server.version < (7, 0):
        assert code == ExitCode.USAGE
        assert "Redis 7.0" in err
        return
    assert code == 0, err
    imports = server.product == "valkey" and server.version >= (8, 1)
    assert int(out) == (5 if imports else 3)
    assert ("2 keys have expired since and are not shown" in err) is not imports


def _without_checksum(whole: bytes) -> bytes:
    return whole[:-8] + bytes(8)


CHANGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda whole: whole[: len(whole) // 2], "truncated, or still being written"),
    "truncated in a stream": (lambda whole: whole[: whole.index(b"consumer")], "truncated"),
    "checksum": (lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]), "checksum does not match"),
    "length": (
        lambda whole: _without_checksum(whole.replace(b"\x06entire", b"\x40\xffentire")),
        "The value of length is damaged: a length in it is wrong",
    ),
    "newer": (lambda whole: b"REDIS0999" + whole[9:], "newer than this server"),
    "gzip": (gzip.compress, "compressed by gzip"),
    "xz": (lzma.compress, "compressed by xz"),
    "empty": (lambda _: b"", "is empty"),
    "aof": (lambda _: b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n", "append-only file"),
    "manifest": (lambda _: b"file appendonly.aof.1.base.rdb seq 1 type b\n", "base file"),
    "text": (lambda _: b"hello", "not a dump"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_is_wrong_with_a_file_is_said(kind: str, valkey: Server, tmp_path: Path, cli: Cli) -> None:
    valkey.admin.hset("hash", mapping={f"field{index}": "x" * 50 for index in range(100)})
    valkey.admin.xadd("stream", {"field": "value"})
    valkey.admin.xgroup_create("stream", "group", "0")
    valkey.admin.xreadgroup("group", "consumer", {"stream": ">"})
    valkey.admin.set("length", "entire")
    valkey.admin.save()
    whole = (valkey.folder / "dump.rdb").read_bytes()
    change, expected = CHANGES[kind]
    path = tmp_path / "dump.rdb"
    path.write_bytes(change(whole))
    code, out, err = cli("report", path)
    assert (code, out) == (ExitCode.USAGE, "")
    assert expected in err


def test_paths_that_are_no_files_are_refused_at_once(tmp_path: Path, cli: Cli) -> None:
    pipe, folder, missing = (tmp_path / name for name in ("pipe.rdb", "appendonlydir", "missing.rdb"))
    os.mkfifo(pipe)
    folder.mkdir()
    (folder / "appendonly.aof.manifest").write_text("")
    for path, expected in ((pipe, "not a regular file"), (folder, "*.base.rdb"), (missing, "No such file")):
        code, _, err = cli("report", path)
        assert code == ExitCode.USAGE
        assert expected in err


def test_dumps_are_compared_with_dumps_and_reports(saved: Path, server: Server, cli: Cli, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    assert cli("report", saved, "--format", "json", "--no-keep", "-o", before)[0] == 0
    server.admin.set("cart:2", "new")
    server.admin.save()
    later = server.folder / "dump.rdb"
    for first in (before, saved):
        code, out, err = cli("diff", first, later, "--format", "json")
        assert code == 0, err
        fates = {one["namespace"]: one["fate"] for one in json.loads(out)["namespaces"]}
        assert {name: fates[name] for name in ("cart:", "session:", "user:")} == {
            "cart:": "grew",
            "session:": "went",
            "user:": "same",
        }
    assert cli("diff", saved, tmp_path / "missing.rdb")[0] == ExitCode.USAGE


NEEDLE = {"text": "a Needle in it"}


def holding(admin: Redis) -> set[str]:
    """Write keys of every type with a needle, some only to be seen by a decoder, and as many without."""
    packed = zlib.compress(json.dumps(NEEDLE).encode())
    filler = [f"item {index}" for index in range(300)]
    admin.set("plain", "x" * 100_000 + "needle" + "x" * 100_000)
    admin.set("border", "x" * ((1 << 20) - 3) + "needle" + "x" * 100)
    admin.set("escaped", '{"name": "n\\u0065edle"}')
    admin.set("packed", packed)
    admin.hset("field", mapping=dict.fromkeys([*filler, "needle"], "x"))
    admin.hset("value", mapping={"one": "x", "two": packed})
    admin.rpush("list", *filler, packed, *filler)
    admin.sadd("set", *filler, "needles")
    admin.zadd("zset", {**dict.fromkeys(filler, 1.0), "the needle": 2.0})
    for index in range(300):
        admin.xadd("stream", {"at": index, "of": "needle" if index == 7 else "hay"})
    found = {os.fsdecode(name) for name in admin.scan_iter()}
    for name in found:
        admin.copy(name, f"without:{name}")
    admin.set("without:plain", "need" * 1_000)
    admin.set("without:border", "x" * (1 << 20))
    admin.set("without:escaped", '{"name": "need"}')
    admin.set("without:packed", zlib.compress(b"hay"))
    admin.hdel("without:field", "needle")
    admin.hset("without:value", "two", "x")
    admin.ltrim("without:list", 301, -1)
    admin.srem("without:set", "needles")
    admin.zrem("without:zset", "the needle")
    admin.xtrim("without:stream", maxlen=200, approximate=False)
    return found


def test_values_of_a_dump_are_searched_in_all_types_and_decoded(server: Server, tmp_path: Path, cli: Cli) -> None:
    expected = holding(server.admin)
    server.admin.save()
    path = tmp_path / "dump.rdb"
    path.write_bytes((server.folder / "dump.rdb").read_bytes())
    before = hashlib.sha256(path.read_bytes()).digest()
    by = [] if server.product == "valkey" else ["--server-binary", binaries()[server.name].path]
    code, out, err = cli("find", path, "value:needle", *by)
    if server.version < (7, 0):
        assert "Redis 7.0" in err
        return
    assert code == 0, err
    assert set(out.split()) == expected
    code, out, err = cli("find", path, "!value:needle type:list,hash", "--count", *by)
    assert (code, out) == (0, "3\n"), err
    assert cli("find", path, "value:needle", "value:two", "type:hash", *by)[1] == "value\n", "all terms, in any parts"
    assert hashlib.sha256(path.read_bytes()).digest() == before


def test_values_of_a_live_server_are_not_searched(server: Server, cli: Cli) -> None:
    server.admin.set("key", "needle")
    code, out, err = cli("find", server.url, "value:needle")
    assert (code, out) == (ExitCode.SERVER, "")
    assert "Search a dump of it" in err


def test_commands_behind_the_dump_of_an_append_only_file_are_not_read(saved: Path, cli: Cli) -> None:
    saved.write_bytes(saved.read_bytes() + b"*3\r\n$3\r\nSET\r\n$3\r\nnew\r\n$1\r\n1\r\n")
    code, out, err = cli("find", saved, "*", "--count")
    assert (code, out) == (0, "5\n")
    assert "what follows the dump in the file is not read" in err


def test_a_dump_of_another_kind_of_server_is_said(valkey: Server, redis810: Server, tmp_path: Path, cli: Cli) -> None:
    valkey.admin.hset("hash", "field", "value")
    valkey.admin.execute_command("HEXPIRE", "hash", "1000", "FIELDS", "1", "field")
    valkey.admin.save()
    path = tmp_path / "dump.rdb"
    path.write_bytes((valkey.folder / "dump.rdb").read_bytes())
    code, _, err = cli("report", path, "--server-binary", binaries()[redis810.name].path)
    assert code == ExitCode.USAGE
    assert "It is of valkey 9.1" in err


def test_an_unknown_type_is_said_whatever_other_servers_are_found(
    redis810: Server, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis810.admin.hset("hash", "field", "value")
    redis810.admin.execute_command("HEXPIRE", "hash", "1000", "FIELDS", "1", "field")
    redis810.admin.save()
    path = tmp_path / "dump.rdb"
    path.write_bytes((redis810.folder / "dump.rdb").read_bytes())
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho Redis server v=5.0.3 sha=00000000:0 malloc=libc bits=64 build=0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = cli("report", path)
    assert code == ExitCode.USAGE
    assert "a type that this server does not know" in err
    code, out, err = cli("find", path, "*", "--server-binary", binaries()["redis-8.10"].path)
    assert (code, out) == (0, "hash\n"), err


def test_more_memory_than_is_free_is_refused(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "huge.rdb"
    path.write_bytes(b"REDIS0011" + aux(b"used-mem", str(1 << 60).encode()))
    code, _, err = cli("report", path)
    assert code == ExitCode.USAGE
    assert "1.00 EiB of memory" in err
    assert "--force" in err


def test_health_is_about_servers(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(b"REDIS0011")
    code, _, err = cli("health", path)
    assert code == ExitCode.USAGE
    assert "dump" in err


def aux(name: bytes, value: bytes) -> bytes:
    return b"\xfa" + bytes([len(name)]) + name + bytes([len(value)]) + value


@given(st.binary(max_size=300))
def test_any_bytes_are_a_head_or_an_error(data: bytes) -> None:
    for head in (data, b"REDIS0011" + data, b"VALKEY080\xfa" + data):
        try:
            found = DumpHead.of(Path("any.rdb"), head)
        except DumpError:
            continue
        assert found.version >= 0


@given(
    st.dictionaries(st.sampled_from(["redis-ver", "ctime", "used-mem", "aof-base", "other"]), st.integers(0, 1 << 31))
)
def test_fields_come_back(fields: dict[str, int]) -> None:
    data = b"REDIS0009"
    for name, value in fields.items():
        plain = str(value).encode()
        packed = b"\xc2" + value.to_bytes(4, "little", signed=True) if value < 1 << 31 else None
        data += b"\xfa" + bytes([len(name)]) + name.encode() + (packed or bytes([len(plain)]) + plain)
    head = DumpHead.of(Path("any.rdb"), data + b"\xfe\x00")
    assert head.made_at_s == fields.get("ctime")
    assert head.used_memory_bytes == fields.get("used-mem")
    assert head.server == (None if "redis-ver" not in fields else f"redis {fields['redis-ver']}")


def test_which_files_are_taken_for_dumps(tmp_path: Path) -> None:
    named, like, other = tmp_path / "a.rdb", tmp_path / "b", tmp_path / "c"
    named.write_bytes(b"")
    like.write_bytes(b"VALKEY080")
    other.write_bytes(b"REDISH")
    assert is_dump(named)
    assert is_dump(like)
    assert is_dump(tmp_path / "missing.rdb"), "a path, and no server"
    assert not is_dump(Path("missing.rdb")), "it may be a name to find"
    assert not is_dump(tmp_path)
    assert not is_dump(Path("x" * 300))
