"""How commands end by signals, and the file of `--log` whatever becomes of it or of the connection."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtui.cli.main import run
from rtui.server.user.ending_signals import ENDING
from rtui.server.wire.errors import ExitCode
from tests.servers import CHECKOUT, Server

RUN = "from rtui.cli.main import main; main()"
AS_NOHUP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); " + RUN

COMMANDS = ("report", "find", "check", "patterns", "health", "slot")


def started(command: str, port: int, *more: str) -> subprocess.Popen[bytes]:
    """Start a command on a server that is on a port."""
    words = {"slot": ["slot", "-p", str(port), "k"], "find": ["find", f"127.0.0.1:{port}", "k"]}
    arguments = [*words.get(command, [command, f"127.0.0.1:{port}"]), *more]
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", RUN, *arguments], cwd=CHECKOUT, stdout=pipe, stderr=pipe)


@pytest.mark.slow
@pytest.mark.sampled("sent")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("sent", ENDING)
def test_the_exit_status_says_which_signal_it_was(sent: signal.Signals, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute, started(command, mute.getsockname()[1]) as process:
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
        started(command, mute.getsockname()[1], "--format", "json") as process,
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
        arguments = ["health", f"127.0.0.1:{mute.getsockname()[1]}"]
        command = [sys.executable, "-c", AS_NOHUP, *arguments]
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
