"""Commands that a signal ends before they have a server: they clean up, and say by their exit status which it was."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys

import pytest

from rtui.server.user.ending_signals import ENDING
from tests.servers import CHECKOUT

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
