"""Files of recordings: what is written is read, and what is no recording harms nobody."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.recording.document import (
    MAX_FILE_BYTES,
    End,
    Exchange,
    Header,
    Key,
    RecordingError,
    as_json,
    read_recording,
    reply_of,
)
from rtui.server.recording.player import Player
from rtui.server.wire.errors import Reply, ServerError

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
