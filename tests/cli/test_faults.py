"""What goes wrong outside of rtui ends every command with the same exit code, one sentence, and no traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from rtui.server.wire.errors import ExitCode
from tests.servers import CHECKOUT, Server

FULL = Path("/dev/full")
RUN = "import sys; from rtui.cli.main import main; main()"

ASKING = {
    "find": ["find", "-p", "PORT", "key"],
    "report": ["report", "-p", "PORT", "--no-keep", "--no-registry"],
    "check": ["check", "-p", "PORT", "--no-registry"],
    "patterns": ["patterns", "-p", "PORT"],
    "health": ["health", "-p", "PORT", "--report", "none"],
    "slot": ["slot", "-p", "PORT", "key"],
}
"""Commands that ask a server."""

PRINTING = {
    **ASKING,
    "jsonl": ["health", "-p", "PORT", "--format", "jsonl"],
    "json": ["find", "-p", "PORT", "key", "--format", "json"],
    "acl": ["acl"],
    "commands": ["commands"],
    "history": ["history", "--format", "json"],
    "settings": ["settings"],
    "help": ["--help"],
    "version": ["--version"],
}
"""Commands that print."""


def ended(words: list[str], port: int = 0, **streams: object) -> tuple[int, str]:
    """Run a command; return its exit code and what it said on standard error."""
    arguments = [sys.executable, "-c", RUN, *(str(port) if one == "PORT" else one for one in words)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **streams}
    done = subprocess.run(arguments, cwd=CHECKOUT, check=False, start_new_session=True, **streams)  # type: ignore[call-overload]
    return done.returncode, (done.stderr or b"").decode()


def check_said(said: str) -> None:
    assert "Traceback" not in said
    assert "fault of rtui" not in said
    assert said.strip()


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """Listen on a port where every client gets the same reply, and no more."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(1024)
                    client.sendall(reply)

        Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKING)
def test_a_server_that_can_not_be_asked(command: str, valkey: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        closed = one.getsockname()[1]
    faults = [(ASKING[command], closed), ([*ASKING[command], "-h", "nobody.invalid"], valkey.port)]
    if command != "slot":
        faults.append(([*ASKING[command], "-n", "9999"], valkey.port))
    for words, port in faults:
        code, said = ended(words, port)
        assert code == ExitCode.SERVER, (words, said)
        check_said(said)
    with answering(b"HTTP/1.0 400 Bad Request\r\n\r\n") as port:
        code, said = ended(ASKING[command], port)
    assert code == ExitCode.SERVER
    check_said(said)
    code, said = ended([*ASKING[command], "--user", "nobody", "-a", "wrong"], valkey.port)
    assert code == ExitCode.SERVER
    check_said(said)


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("command", PRINTING)
def test_output_that_can_not_be_written(command: str, valkey: Server, tmp_path: Path) -> None:
    valkey.admin.set("key", "x")
    with FULL.open("wb") as full:
        code, said = ended(PRINTING[command], valkey.port, stdout=full)
    assert (code, "No space left" in said) == (ExitCode.OUTPUT, True)
    check_said(said)
    closing = ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", RUN]
    words = [str(valkey.port) if one == "PORT" else one for one in PRINTING[command]]
    done = subprocess.run([*closing, *words], cwd=CHECKOUT, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, b"It is closed" in done.stderr) == (ExitCode.OUTPUT, True)
    check_said(done.stderr.decode())


@pytest.mark.slow
@pytest.mark.parametrize("command", PRINTING)
def test_a_reader_that_has_seen_enough(command: str, valkey: Server) -> None:
    valkey.admin.set("key", "x")
    reading, writing = os.pipe()
    os.close(reading)
    code, said = ended(PRINTING[command], valkey.port, stdout=writing)
    os.close(writing)
    assert code == ExitCode.READER_GONE
    assert "rtui: The output" not in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("command", ["find", "report", "health", "acl"])
def test_standard_error_that_can_not_be_written(command: str, valkey: Server) -> None:
    valkey.admin.set("key", "x")
    with FULL.open("wb") as full:
        assert ended(PRINTING[command], valkey.port, stderr=full) == (ExitCode.FINE, "")
    closing = ["sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, "-c", RUN]
    words = [str(valkey.port) if one == "PORT" else one for one in PRINTING[command]]
    done = subprocess.run([*closing, *words], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE)
    assert done.stdout


def test_a_password_that_nobody_can_be_asked_for(valkey: Server) -> None:
    code, said = ended(["check", "-p", "PORT", "--askpass"], valkey.port)
    assert (code, "there is no terminal to ask on; use REDISCLI_AUTH or a profile" in said) == (ExitCode.USAGE, True)
    assert "GetPassWarning" not in said
