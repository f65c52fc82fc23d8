"""Whatever goes wrong outside of rtui, and signals: each command ends with its exit code and one sentence."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import StringIO
from itertools import cycle, islice
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import pytest

from rtui.cli.main import run
from rtui.server.user.ending_signals import ENDING
from rtui.server.wire.errors import ExitCode
from tests.proxy import DelayProxy
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

MACHINE = {
    "find": ["find", "-p", "PORT", "type:string", "--format", "csv"],
    "json": ["find", "-p", "PORT", "ttl:none", "--format", "json"],
    "report": ["report", "-p", "PORT", "--no-keep", "--no-registry", "--format", "json"],
    "csv": ["report", "-p", "PORT", "--no-keep", "--no-registry", "--format", "csv"],
    "check": ["check", "-p", "PORT", "--no-registry", "--format", "sarif"],
    "junit": ["check", "-p", "PORT", "--no-registry", "--format", "junit"],
    "patterns": ["patterns", "-p", "PORT", "--format", "json"],
    "toml": ["patterns", "-p", "PORT", "--format", "toml"],
    "health": ["health", "-p", "PORT", "--report", "none", "--no-registry", "--format", "json"],
    "prom": ["health", "-p", "PORT", "--report", "none", "--no-registry", "--format", "prom"],
}
"""Commands that write for machines."""

LIMIT_S = "2.5"

UNTIL = {"health": 6_000, "prom": 6_000}
"""Bytes of replies after which a server is gone, where commands do not ask about all keys."""


def check_failed(command: str, written: bytes) -> None:
    """Check that who reads an output finds in it that the command has failed, or was not done."""
    text = written.decode()
    match command:
        case "find" | "csv":
            last = list(csv.DictReader(StringIO(text, newline="")))[-1]
            assert last["coverage"] in ("partial", "failed")
        case "json":
            found = json.loads(text)
            assert "error" in found or (found["complete"] is False and found["keys"])
        case "report":
            found = json.loads(text)
            assert "error" in found or found["head"]["coverage"]["kind"] == "partial"
        case "check":
            (one_run,) = json.loads(text)["runs"]
            assert not one_run["invocations"][0]["executionSuccessful"]
        case "junit":
            found = ElementTree.fromstring(text)  # noqa: S314 - it is rtui's own
            assert int(found.attrib["errors"]) == len(found.findall(".//error")) > 0
        case "toml":
            assert tomllib.loads(text)["error"]["exit_code"] == ExitCode.SERVER
        case "prom":
            assert text.startswith("# rtui health has failed. ")
        case _:
            assert json.loads(text)["error"]["exit_code"] == ExitCode.SERVER


def at_port(words: list[str], port: int) -> list[str]:
    return [str(port) if one == "PORT" else one for one in words]


async def started(words: list[str], port: int) -> asyncio.subprocess.Process:
    """Start a command on a server that is on a port, and that it gives up after `LIMIT_S` without an answer."""
    arguments = ["-c", RUN, *at_port(words, port), "--timeout", LIMIT_S]
    pipe = subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=CHECKOUT, stdout=pipe, stderr=pipe)


def ended(words: list[str], port: int = 0, **streams: object) -> tuple[int, str]:
    """Run a command; return its exit code and what it said on standard error."""
    arguments = [sys.executable, "-c", RUN, *at_port(words, port)]
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


@pytest.mark.parametrize("command", ASKING)
def test_a_server_that_can_not_be_asked(command: str, valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        closed = one.getsockname()[1]
    with answering(b"HTTP/1.0 400 Bad Request\r\n\r\n") as speaks_http:
        faults = [(closed, ()), (valkey.port, ("-h", "nobody.invalid")), (speaks_http, ())]
        faults += [(valkey.port, ("--user", "nobody", "-a", "wrong"))]
        if command != "slot":
            faults.append((valkey.port, ("-n", "9999")))
        for port, more in faults:
            assert run([*at_port(ASKING[command], port), *more]) == ExitCode.SERVER, more
            out, said = capfd.readouterr()
            assert (out, said[:6]) == ("", "rtui: "), more
            check_said(said)
            assert port != closed or "refused" in said or "Nothing listens" in said


MOMENTS = {"never": 0, "in the first reply": 1, "in the handshake": 500, "later": None}
"""How many bytes a server answers before it falls silent; None is as many as before it is gone in the middle."""


async def check_gone(command: str, proxy: DelayProxy, after_bytes: int | None = None) -> str:
    """Run a command whose server is gone after some bytes; check how it ends and return what it said."""
    if after_bytes == 0:
        proxy.hold_replies()
    proxy.cut_after(after_bytes or UNTIL.get(command, 120_000))
    process = await started(MACHINE[command], proxy.port)
    out, said = await process.communicate()
    assert process.returncode == ExitCode.SERVER, said
    check_said(said.decode())
    check_failed(command, out)
    return said.decode()


def plant(server: Server) -> None:
    server.admin.mset({f"key:{number}": "x" for number in range(20_000)})


@pytest.mark.slow
async def test_a_server_that_falls_silent_is_given_up_after_timeout(
    valkey: Server, pytestconfig: pytest.Config
) -> None:
    """Its connections stay open, and new ones are taken; without `--thorough` each command meets one moment."""
    plant(valkey)

    async def check(command: str, moment: str) -> None:
        async with DelayProxy(valkey.port) as proxy:
            proxy.act, proxy.goes_on = proxy.hold_replies, True
            assert f" {LIMIT_S} s" in await check_gone(command, proxy, MOMENTS[moment])

    for first in range(len(MOMENTS) if pytestconfig.getoption("--thorough") else 1):
        moments = islice(cycle(MOMENTS), first, None)
        await asyncio.gather(*(check(command, moment) for command, moment in zip(MACHINE, moments, strict=False)))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["cut", "stopped"])
async def test_a_server_that_is_gone_in_the_middle(way: str, valkey: Server, pytestconfig: pytest.Config) -> None:
    """Its connections are cut for good, or it hangs; without `--thorough` each command meets one of them."""
    plant(valkey)
    commands = [*MACHINE][slice(None) if pytestconfig.getoption("--thorough") else slice(way == "cut", None, 2)]
    left = len(commands)

    def stopped(proxy: DelayProxy) -> None:
        """Keep the replies of this command back, and stop the server when all commands are in the middle."""
        nonlocal left
        proxy.hold_replies()
        left -= 1
        if not left:
            valkey.freeze()

    async def check(command: str) -> None:
        async with DelayProxy(valkey.port) as proxy:
            proxy.act = proxy.cut_for_good if way == "cut" else partial(stopped, proxy)
            await check_gone(command, proxy)

    await asyncio.gather(*map(check, commands))
    assert way == "cut" or not left


CONTENTS = (None, b"", b"junk", b"\x1f\x8b\x08\0\0\0", b"[" * 100_000, b"{}", "folder")


def unreadable(content: bytes | str | None, folder: Path) -> str:
    """The path of a file with a content, of a folder, or of nothing."""
    path = folder / "file.json"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("words", [["open"], ["diff", "FILE"], ["health"]])
def test_files_that_can_not_be_read(
    words: list[str], content: bytes | str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = unreadable(content, tmp_path)
    is_taken_for_a_server = words == ["health"] and not isinstance(content, bytes)
    code = run([*(path if word == "FILE" else word for word in words), path])
    assert code == (ExitCode.SERVER if is_taken_for_a_server else ExitCode.USAGE)
    check_said(capfd.readouterr().err)


@pytest.mark.slow
@pytest.mark.sampled("content")
@pytest.mark.parametrize("content", CONTENTS)
def test_recordings_that_can_not_be_played(content: bytes | str | None, tmp_path: Path) -> None:
    """In a process of their own, which is confined."""
    code, said = ended(["replay", "--to", "-", unreadable(content, tmp_path)])
    assert code == ExitCode.USAGE, said
    check_said(said)


@pytest.mark.slow
@pytest.mark.sampled("command")
@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("command", PRINTING)
def test_output_that_can_not_be_written(command: str, valkey: Server, tmp_path: Path) -> None:
    valkey.admin.set("key", "x")
    with FULL.open("wb") as full:
        code, said = ended(PRINTING[command], valkey.port, stdout=full)
    assert (code, "No space left" in said) == (ExitCode.OUTPUT, True)
    check_said(said)
    closing = ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", RUN]
    words = at_port(PRINTING[command], valkey.port)
    done = subprocess.run([*closing, *words], cwd=CHECKOUT, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, b"It is closed" in done.stderr) == (ExitCode.OUTPUT, True)
    check_said(done.stderr.decode())


@pytest.mark.slow
@pytest.mark.sampled("command")
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
    words = at_port(PRINTING[command], valkey.port)
    assert subprocess.run([*closing, *words], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE).stdout


def test_a_password_that_nobody_can_be_asked_for(valkey: Server) -> None:
    code, said = ended(["check", "-p", "PORT", "--askpass"], valkey.port)
    assert (code, "there is no terminal to ask on; use REDISCLI_AUTH or a profile" in said) == (ExitCode.USAGE, True)
    assert "GetPassWarning" not in said


RTUI = "from rtui.cli.main import main; main()"
AS_NOHUP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); " + RTUI

COMMANDS = ("report", "find", "check", "patterns", "health", "slot")


def started_command(command: str, port: int, *more: str) -> subprocess.Popen[bytes]:
    words = {"slot": ["slot", "-p", str(port), "k"], "find": ["find", f"127.0.0.1:{port}", "k"]}
    arguments = [*words.get(command, [command, f"127.0.0.1:{port}"]), *more]
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", RTUI, *arguments], cwd=CHECKOUT, stdout=pipe, stderr=pipe)


@pytest.mark.slow
@pytest.mark.sampled("sent")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("sent", ENDING)
def test_the_exit_status_says_which_signal_it_was(sent: signal.Signals, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute, started_command(command, mute.getsockname()[1]) as process:
        connection, _ = mute.accept()
        with connection:
            process.send_signal(sent)
            out, said = process.communicate(timeout=30)
    assert process.returncode == 128 + sent
    assert out == b""
    assert b"Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "find", "patterns", "health"])
def test_json_says_that_a_signal_has_ended_it(command: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        started_command(command, mute.getsockname()[1], "--format", "json") as process,
    ):
        connection, _ = mute.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            out, _said = process.communicate(timeout=30)
    error = json.loads(out)["error"]
    assert (error["title"], error["exit_code"]) == ("Interrupted", process.returncode)
    assert process.returncode == 128 + signal.SIGTERM


def test_what_nohup_ignores_stays_ignored() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        command = [sys.executable, "-c", AS_NOHUP, *["health", f"127.0.0.1:{mute.getsockname()[1]}"]]
        with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE) as process:
            connection, _ = mute.accept()
            with connection:
                process.send_signal(signal.SIGHUP)
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 128 + signal.SIGTERM


USER, PASSWORD = "the-user-0451", "the-password-0451"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def report(server: Server, *options: str) -> int:
    return run(["report", server.url, "--pace", "full", *options])


def test_a_report_with_its_log(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    valkey.admin.mset({f"user:{number}": "x" for number in range(500)})
    out, log = tmp_path / "report.txt", tmp_path / "log.jsonl"
    assert report(valkey, "-o", str(out), "--log", str(log)) == 0
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    lines = lines_of(log)
    assert {line["connection"] for line in lines} == {"interactive 1", "bulk 1"}
    assert sum(line["commands"].get("TYPE", 0) for line in lines) >= 500
    assert {line["outcome"] for line in lines} <= {"answered", "error"}
    assert sorted(line["number"] for line in lines) == list(range(1, len(lines) + 1))
    assert capsys.readouterr() == ("", "")


def test_a_search_with_its_log(valkey: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    valkey.admin.mset({f"user:{number}": "x" for number in range(50)})
    log = tmp_path / "log.jsonl"
    assert run(["find", valkey.url, "type:string", "--count", "--log", str(log)]) == 0
    lines = lines_of(log)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert sum(line["commands"].get("SCAN", 0) for line in lines) > 0
    assert {line["purpose"] for line in lines} >= {"find"}
    assert capfd.readouterr().out.strip() == "50"


@pytest.mark.parametrize("name", ["/dev/full", "missing/log"])
def test_a_log_that_fails_costs_nothing_else(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    valkey.admin.set("user:1", "x")
    out = tmp_path / "report.txt"
    assert report(valkey, "-o", str(out), "--log", str(tmp_path / name)) == 0
    assert out.read_text()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("rtui: The command log is not written to ") == said.err.count("\n") == 1


def test_a_login_that_is_refused_is_in_it_without_its_arguments(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "config" / "rtui"
    folder.mkdir(parents=True)
    profile = f'[p]\nhost = "127.0.0.1"\nport = {valkey.port}\nuser = "{USER}"\npassword = "{PASSWORD}"\n'
    (folder / "profiles.toml").write_text(profile)
    (folder / "profiles.toml").chmod(0o600)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    log = tmp_path / "log.jsonl"
    url = f"redis://{USER}:{PASSWORD}@127.0.0.1:{valkey.port}"
    for target in (["--profile", "p"], [url]):
        assert run(["report", *target, "--log", str(log)]) == ExitCode.SERVER
    logins = [line for line in lines_of(log) if line.get("redacted")]
    assert [(line["commands"], line["outcome"]) for line in logins] == [({"AUTH": 1}, "error")] * 2
    text = log.read_text() + capsys.readouterr().out
    assert USER not in text
    assert PASSWORD not in text
