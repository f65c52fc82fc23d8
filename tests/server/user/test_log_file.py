"""The file of the command log: what is in it, who may read it, and that a failing file costs nothing but itself."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.user.log_file import CommandLogFile
from rtui.server.wire.command_log import CommandLog, LaneLog, Purpose

HOSTILE = b'\x1b]0;x\x07 "quoted" \xff\n'


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def exchange(lane: LaneLog, key: bytes) -> None:
    lane.sent([guard.pttl(key)], Purpose.FACTS)
    lane.received(b":1\r\n", 4)
    lane.answered([1], 0)


def test_each_entry_is_a_line(tmp_path: Path) -> None:
    log = CommandLog()
    path = tmp_path / "log.jsonl"
    file = CommandLogFile(log, path)
    lane = log.open_lane("interactive")
    exchange(lane, HOSTILE)
    lane.sent([guard.auth("somebody", Secret("something"))], Purpose.HANDSHAKE)
    lane.sent([guard.pttl(b"k" * 5000)], Purpose.FACTS)
    file.close()
    first, second, third = lines_of(path)
    assert first.pop("time")[10:11] == "T"
    assert first.pop("ms") >= 0
    assert first == {
        "number": 1, "connection": "interactive 1", "purpose": "key facts", "commands": {"PTTL": 1},
        "requests": ['PTTL "\\x1b]0;x\\x07 \\"quoted\\" \\xff\\n"'],
        "bytes_out": len(guard.pttl(HOSTILE).packed), "bytes_in": 4, "outcome": "answered",
    }  # fmt: skip
    assert second["commands"] == {"AUTH": 1}
    assert second["redacted"]
    assert "requests" not in second
    assert (second["outcome"], second["owed"]) == ("lost", 1)
    assert third["cut"]
    assert "something" not in path.read_text()


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text('{"number":0}\n')
    old.chmod(0o644)
    mask = os.umask(0)
    try:
        for path in (old, tmp_path / "new.jsonl"):
            log = CommandLog()
            file = CommandLogFile(log, path)
            exchange(log.open_lane("interactive"), b"k")
            file.close()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(mask)
    assert [line["number"] for line in lines_of(old)] == [0, 1]


@pytest.mark.parametrize("name", ["missing/log", ".", "pipe", "null\0byte"])
def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    log = CommandLog()
    file = CommandLogFile(log, tmp_path / name)
    assert log.failure is not None
    assert log.failure.startswith("The command log is not written to ")
    exchange(log.open_lane("interactive"), b"k")
    assert log.entries[0].outcome == "answered"
    file.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_said_and_the_log_goes_on() -> None:
    log = CommandLog()
    file = CommandLogFile(log, Path("/dev/full"))
    lane = log.open_lane("interactive")
    for _ in range(1000):
        exchange(lane, b"k")
    file.close()
    assert log.failure == "The command log is not written to /dev/full: No space left on device."
    assert len(log.entries) == 1000


def test_what_a_file_does_not_take_is_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.user.log_file.MOST_WAITING_BYTES", 100_000)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = CommandLog()
    file = CommandLogFile(log, path)
    lane = log.open_lane("interactive")
    for _ in range(3000):
        exchange(lane, b"k")
    assert len(file._lines) < 2000
    os.set_blocking(reader, True)
    with os.fdopen(reader) as pipe:
        found: list[dict[str, Any]] = []
        while sum(line.get("left_out", 1) for line in found) < 3000:
            found.append(json.loads(pipe.readline()))
            if len(found) == 100:
                exchange(lane, b"last")
    assert any("left_out" in line for line in found)
    assert log.failure is None
    file.close()


CRASH = """
import sys
from pathlib import Path
from tests.server.user.test_log_file import CommandLog, CommandLogFile, Purpose, exchange, guard
log = CommandLog()
file = CommandLogFile(log, Path(sys.argv[1]))
lane = log.open_lane("interactive")
exchange(lane, b"k")
lane.sent([guard.pttl(b"last")], Purpose.FACTS)
raise RuntimeError
"""


def test_a_crash_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    done = subprocess.run([sys.executable, "-c", CRASH, path], check=False, capture_output=True)
    assert b"RuntimeError" in done.stderr
    assert [(line["requests"], line["outcome"]) for line in lines_of(path)] == [
        (["PTTL k"], "answered"),
        (["PTTL last"], "lost"),
    ]
