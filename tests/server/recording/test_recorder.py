"""Recording: on the disk soon, for its owner only, within its limit, and never a password."""

from __future__ import annotations

import asyncio
import gzip
import stat
from pathlib import Path

import pytest

from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.options import BrowseOptions
from rtui.server.recording.document import End, Key, read_recording
from rtui.server.recording.recorder import Recorder, RecordError, session_header
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, ServerError
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
