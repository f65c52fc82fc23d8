"""Recording, its files, and answering from them: within its limit, never a password, by command and time."""

from __future__ import annotations

import asyncio
import gzip
import json
import stat
from itertools import pairwise
from pathlib import Path
from random import Random

import hiredis
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.options import BrowseOptions
from rtui.server.recording.document import (
    MAX_FILE_BYTES,
    End,
    Exchange,
    Header,
    Key,
    Recording,
    RecordingError,
    as_json,
    read_recording,
    reply_of,
)
from rtui.server.recording.player import NOT_RECORDED, Player, packed
from rtui.server.recording.recorder import Recorder, RecordError, session_header
from rtui.server.scan.cursor import Dialect
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, Reply, ServerError
from rtui.server.wire.target import Target
from tests.servers import Server

WORD = "a-very-secret-word"


def begun(path: Path, *, most_bytes: int = 1 << 20) -> Recorder:
    recorder = Recorder(path, most_bytes=most_bytes)
    recorder.begin(session_header(recorder, BrowseOptions(), size=(80, 24), settings={}, version="1"))
    return recorder


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    begun(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["there", "missing/one", ".", "null\0byte"])
def test_a_file_that_cannot_be_made_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(RecordError):
        Recorder(tmp_path / name)
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_what_was_recorded_is_read(tmp_path: Path, name: str) -> None:
    path, log = tmp_path / name, CommandLog()
    recorder = begun(path)
    recorder.attach(log, 4)
    (report,) = log.on_replies
    report([guard.pttl(b"k\xff")], [12], 0.5)
    recorder.add(Key(recorder.at_ms, "down"))
    report([guard.pttl(b"l")], [ServerError("NOPERM no")], 0.0)
    recorder.close()
    read = read_recording(path)
    assert [one.command for one in read.exchanges] == [["PTTL", "k\xff"], ["PTTL", "l"]]
    assert [(one.db, one.reply) for one in read.exchanges] == [(4, 12), (4, {"error": "NOPERM no"})]
    assert len(read.inputs) == 1
    assert read.end is not None
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_the_file_ends_at_its_limit(tmp_path: Path, name: str) -> None:
    path, log = tmp_path / name, CommandLog()
    recorder = begun(path, most_bytes=5000)
    recorder.attach(log, 0)
    for number in range(200):
        log.on_replies[0]([guard.pttl(b"key:%d" % number)], [number], 0.0)
    recorder.close()
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    assert 4000 < len(data) <= 5000
    read = read_recording(path)
    assert read.end is not None
    assert read.end.why == "size"
    assert [one.reply for one in read.exchanges] == list(range(len(read.exchanges)))
    assert "maximum size" in recorder.why_ended
    recorder.add(Key(0, "down"))  # nothing more, and no failure


def test_a_full_disk_ends_the_recording_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullDisk:
        def __enter__(self) -> FullDisk:
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("rtui.server.recording.recorder.os.fdopen", lambda *_args, **_options: FullDisk())
    recorder = begun(tmp_path / "a")
    recorder.add(Key(0, "down"))
    recorder.close()
    assert "No space left" in recorder.why_ended


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_password_is_nowhere(redis70: Server, tmp_path: Path, protocol: int) -> None:
    redis70.admin.execute_command("ACL", "SETUSER", "app", "on", f">{WORD}", "~*", "+@all")
    path, log = tmp_path / "a", CommandLog()
    recorder = begun(path)
    recorder.attach(log, 0)

    async def connect(word: str) -> None:
        target = Target(port=redis70.port, user="app", password=Secret(word), protocol=protocol)  # type: ignore[arg-type]
        connection = Connection(target, log=log)
        try:
            await connection.open()
            await connection.run(guard.ping())
        except ConnectFailure:
            assert word != WORD
        finally:
            await connection.close()

    asyncio.run(connect(WORD))
    asyncio.run(connect(f"{WORD}-wrong"))
    recorder.close()
    assert WORD not in path.read_text()
    named = [one.command for one in read_recording(path).exchanges if one.command[0] in ("AUTH", "HELLO")]
    assert named
    assert all(len(command) == 1 or command[-1] in ("2", "3") for command in named)
    assert isinstance(recorder.ended, End)


HEADER = Header(rtui="1", began_ms=0, seed=1, server="s", separators=[":"], width=80, height=24)
LINES = [
    HEADER,
    Exchange(1, 1, 0, ["SCAN", "0", "COUNT", "10"], ["0", ["a", "\xff"]]),
    Exchange(2, 1, 0, ["HELLO", "3"], {"map": ["server", "redis", "double", {"double": "1.5"}]}),
    Key(3, "down", None),
    Exchange(4, 1, 0, ["TYPE", "a"], {"error": "NOPERM no"}),
    Key(5, "q", "q"),
    End(6, "left"),
]
GOOD = b"".join(msgspec.json.encode(line) + b"\n" for line in LINES)

REPLIES: st.SearchStrategy[Reply] = st.recursive(
    st.binary(max_size=8) | st.integers(-(1 << 63), (1 << 63) - 1) | st.none() | st.booleans()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.binary(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings") / "one"


@given(REPLIES)
def test_a_reply_is_read_as_it_was_written(reply: Reply) -> None:
    assert reply_of(json.loads(msgspec.json.encode(as_json(reply)))) == reply


def test_an_error_is_read_as_it_was_written() -> None:
    read = reply_of(as_json(ServerError("NOPERM é no")))
    assert isinstance(read, ServerError)
    assert str(read.args[0]) == "NOPERM é no"


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_file_that_was_cut_off_is_read_up_to_there(path: Path, is_compressed: bool) -> None:
    data = gzip.compress(GOOD, mtime=0) if is_compressed else GOOD
    most = 0
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        try:
            read = read_recording(path)
        except RecordingError:
            assert most == 0
            continue
        count = len(read.exchanges) + len(read.inputs)
        assert count >= most
        most = count
    assert most == 5
    assert read.end == End(6, "left")


@given(st.randoms(use_true_random=False), st.booleans())
def test_a_damaged_file_is_read_or_refused(path: Path, random: Random, is_compressed: bool) -> None:
    data = bytearray(gzip.compress(GOOD, mtime=0) if is_compressed else GOOD)
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(data))
        data[at : at + random.randint(0, 3)] = random.randbytes(random.randint(0, 3))
    path.write_bytes(data)
    try:
        recording = read_recording(path)
    except RecordingError:
        return
    player = Player(recording, lambda: 0.0)
    for argv in ((b"SCAN", b"0", b"COUNT", b"10"), (b"SCAN", b"5", b"COUNT", b"10"), (b"TYPE", b"a"), (b"SCAN",)):
        player.reply(0, argv)


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"exchange","at":1,"took":1,"db":0,"command":["A"],"reply":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"kind":"exchange","at":1,"took":1,"db":0,"command":["A"],"reply":{"map":[[],1]}}',
        b'{"kind":"exchange","at":1,"took":1,"db":0,"command":["A"],"reply":{"double":"nothing"}}',
        b'{"kind":"exchange","at":1,"took":1,"db":0,"command":["\xe2\x82\xac"],"reply":1}',
        b'{"kind":"exchange","at":1,"took":1,"db":0,"command":["A"],"reply":99999999999999999999999}',
        b'{"kind":"exchange","at":1e300,"took":1,"db":0,"command":["A"],"reply":1}',
        b'{"kind":"key","at":-1,"key":"a"}',
        b'{"kind":"resize","at":1,"width":100000000,"height":1}',
        b'{"kind":"run","at":1}',
        b"\xff",
        b"",
    ],
)
def test_a_line_that_is_none_ends_the_session(path: Path, line: bytes) -> None:
    path.write_bytes(msgspec.json.encode(HEADER) + b"\n" + line + b"\n" + msgspec.json.encode(Key(9, "down")) + b"\n")
    read = read_recording(path)
    assert (read.exchanges, read.inputs, read.end) == ([], [], None)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{}\n", b"\x1f\x8b", b'{"rtui_recording":2}\n', b"not JSON\n", b"[" * 99999]
)
def test_what_is_no_recording_is_said(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(RecordingError):
        read_recording(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    for name in ("missing", ".", "null\0byte"):
        with pytest.raises(RecordingError):
            read_recording(tmp_path / name)


def test_a_bomb_ends_at_the_limit(path: Path) -> None:
    path.write_bytes(gzip.compress(msgspec.json.encode(HEADER) + b"\n" + b" " * (MAX_FILE_BYTES + (8 << 20)), mtime=0))
    assert read_recording(path).exchanges == []


BUCKETS = 64

RECORDED: st.SearchStrategy[Reply] = st.recursive(
    st.binary(max_size=8) | st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


def exchange(at_ms: float, argv: list[str], reply: Reply, db: int = 0) -> Exchange:
    return Exchange(at_ms, 1.0, db, argv, as_json(reply))


def bucket_cursor(bucket: int) -> int:
    """The cursor before a bucket, in the order of the scan."""
    return 0 if bucket >= BUCKETS else Dialect.STANDALONE.cursor(bucket * ((1 << 64) // BUCKETS))


def page(at_ms: float, start: int, end: int, count: int) -> Exchange:
    keys: list[Reply] = [b"key:%d" % bucket for bucket in range(start, min(end, BUCKETS))]
    argv = ["SCAN", str(bucket_cursor(start)), "COUNT", str(count)]
    return exchange(at_ms, argv, [str(bucket_cursor(end)).encode(), keys])


def scanned(player: Player, count: bytes) -> list[str]:
    """All keys of a scan from the beginning to the end."""
    cursor, keys = b"0", list[str]()
    for _ in range(1000):
        reply, _ = player.reply(0, (b"SCAN", cursor, b"COUNT", count))
        assert isinstance(reply, list)
        assert isinstance(reply[0], bytes)
        assert isinstance(reply[1], list)
        cursor = reply[0]
        keys += [key.decode() for key in reply[1] if isinstance(key, bytes)]
        if cursor == b"0":
            return keys
    raise AssertionError("the scan does not end")


@given(
    st.lists(st.integers(1, BUCKETS - 1), max_size=12, unique=True), st.lists(st.integers(0, BUCKETS - 1), max_size=8)
)
def test_a_scan_in_other_steps_finds_every_key_once(cuts: list[int], samples: list[int]) -> None:
    borders = [0, *sorted(cuts), BUCKETS]
    pages = [page(10.0 * at, start, end, 100) for at, (start, end) in enumerate(pairwise(borders))]
    small = [page(5.0, start, start + 1, 1) for start in samples]
    player = Player(Recording(HEADER, sorted([*pages, *small], key=lambda one: one.at)), lambda: 1000.0)
    every = {f"key:{bucket}" for bucket in range(BUCKETS)}
    assert sorted(scanned(player, b"100")) == sorted(every)
    for count in (b"1", b"7"):
        assert set(scanned(player, count)) == every


def test_what_a_scan_did_not_see_is_not_taken_for_empty() -> None:
    player = Player(Recording(HEADER, [page(0, 0, 16, 10), page(1, 32, 48, 10)]), lambda: 1000.0)
    for bucket, is_known in ((0, True), (7, True), (16, False), (31, False), (40, True), (48, False)):
        reply, _ = player.reply(0, (b"SCAN", str(bucket_cursor(bucket)).encode(), b"COUNT", b"3"))
        assert (reply is not NOT_RECORDED) == is_known


def test_a_reply_is_the_latest_of_its_time() -> None:
    clock = [0.0]
    recording = Recording(HEADER, [exchange(at, ["PTTL", "a"], at) for at in (1000, 5000, 9000)])
    player = Player(recording, lambda: clock[0])
    found = []
    for now_ms in (0.0, 1000.0, 4700.0, 4800.0, 8000.0, 20_000.0):
        clock[0] = now_ms
        found.append(player.reply(0, (b"PTTL", b"a"))[0])
    assert found == [1000, 1000, 1000, 5000, 5000, 9000]


def test_what_was_not_asked_is_said() -> None:
    player = Player(Recording(HEADER, [exchange(0, ["TYPE", "a"], b"string", db=3)]), lambda: 0.0)
    assert player.reply(0, (b"TYPE", b"a"))[0] is NOT_RECORDED
    assert player.reply(3, (b"TYPE", b"a"))[0] == b"string"
    assert player.reply(0, (b"SCAN", b"0", b"COUNT", b"10"))[0] is NOT_RECORDED
    assert player.missing == 2


def test_a_password_is_taken_where_one_was() -> None:
    player = Player(Recording(HEADER, [exchange(0, ["AUTH"], b"OK"), exchange(0, ["HELLO"], b"OK")]), lambda: 0.0)
    assert player.reply(0, (b"AUTH", b"anything"))[0] == b"OK"
    assert player.reply(0, (b"HELLO", b"3", b"AUTH", b"a", b"b"))[0] == b"OK"


@given(RECORDED)
def test_replies_go_over_the_wire_as_they_were(reply: Reply) -> None:
    for protocol in (2, 3):
        reader = hiredis.Reader()
        reader.feed(packed(reply, protocol))
        assert reader.gets() == reply


def test_an_error_is_one_line() -> None:
    reader = hiredis.Reader(replyError=ServerError)
    reader.feed(packed(ServerError("ERR two\r\nlines"), 2))
    assert str(reader.gets()) == "ERR two lines"
