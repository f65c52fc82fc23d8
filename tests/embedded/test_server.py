"""The embedded server ends with rtui, whatever happens to rtui, and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rtui.embedded import server as embedded
from rtui.embedded.server import INSTALL_LINE, EmbeddedServer, EmbeddedServerError
from tests.conftest import known, require

HOLD = """
import os, sys
from rtui.embedded.server import EmbeddedServer
with EmbeddedServer() as server:
    print(server.pid, server.socket_path, flush=True)
    {then}
"""
"""A process that holds the demo's server and then does something, by default waiting for ever."""

PATIENCE_S = 20.0


def ends(pid_fd: int) -> bool:
    """Whether a process ends, waiting for it if need be; works for processes that are not our children."""
    return bool(select.select([pid_fd], [], [], PATIENCE_S)[0])


@pytest.fixture(autouse=True)
def installed() -> None:
    require("valkey-9.1")
    if not hasattr(os, "pidfd_open"):
        pytest.skip("needs pidfd_open of Linux to watch processes that are not ours")


class Holder:
    """A process that holds a server, its server and what is watched."""

    def __init__(self, then: str = "sys.stdin.read()") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD.format(then=then)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        pid, path = known(self.process.stdout).readline().split()
        self.server = int(pid)
        self.supervisor = _parent_of(self.server)
        self.folder = Path(path).parent
        self.server_fd = os.pidfd_open(self.server)
        self.supervisor_fd = os.pidfd_open(self.supervisor)

    def assert_all_gone(self) -> None:
        self.process.communicate()
        assert ends(self.server_fd), "the server is still there"
        assert ends(self.supervisor_fd), "its supervisor is still there"
        assert not self.folder.exists()


def _parent_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/stat").read_text()
    return int(status.rpartition(")")[2].split()[1])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_to_rtui_ends_the_server(how: signal.Signals) -> None:
    holder = Holder()
    assert holder.folder.exists()
    holder.process.send_signal(how)
    holder.assert_all_gone()


@pytest.mark.parametrize("then", ["raise RuntimeError('a crash')", "sys.exit(3)", "os._exit(4)", "os.abort()", "pass"])
def test_an_end_of_rtui_is_the_end_of_the_server(then: str) -> None:
    holder = Holder(f"sys.stdin.readline(); {then}")
    assert holder.process.stdin is not None
    holder.process.stdin.write("go\n")
    holder.process.stdin.flush()
    holder.assert_all_gone()


def test_the_terminal_signals_do_not_reach_the_server_before_rtui() -> None:
    """Ctrl-C goes to the whole foreground group; rtui may still need the server to close its screen."""
    holder = Holder()
    assert os.getpgid(holder.server) != os.getpgid(holder.process.pid)
    holder.process.kill()
    holder.assert_all_gone()


def test_the_server_does_not_outlive_its_supervisor() -> None:
    holder = Holder()
    os.kill(holder.supervisor, signal.SIGKILL)
    assert ends(holder.server_fd)
    holder.process.communicate()
    shutil.rmtree(holder.folder, ignore_errors=True)


def test_a_child_of_rtui_does_not_keep_the_server_alive() -> None:
    holder = Holder("import subprocess; subprocess.Popen(['cat']); print('born', flush=True); sys.stdin.read()")
    assert known(holder.process.stdout).readline() == "born\n"
    holder.process.kill()
    assert ends(holder.server_fd)
    holder.process.communicate()


def test_two_demos_live_side_by_side() -> None:
    with EmbeddedServer() as one, EmbeddedServer() as other:
        assert one.pid != other.pid
        assert one.socket_path != other.socket_path


def test_stopping_twice_does_no_harm_and_connecting_then_fails() -> None:
    server = EmbeddedServer()
    server.stop()
    server.stop()
    with pytest.raises(OSError, match="No such file"):
        server.connect()


def test_without_the_extra_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbeddedServerError) as told:
        EmbeddedServer()
    assert INSTALL_LINE in told.value.remedy


def test_a_server_that_ends_at_once_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "valkey-server"
    program.write_text("#!/bin/sh\necho out of luck\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(embedded, "find_program", lambda: program)
    with pytest.raises(EmbeddedServerError) as told:
        EmbeddedServer()
    assert "out of luck" in told.value.happened


def test_a_program_that_cannot_run_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "valkey-server"
    program.write_bytes(b"\x7fELF nonsense")
    monkeypatch.setattr(embedded, "find_program", lambda: program)
    with pytest.raises(EmbeddedServerError):
        EmbeddedServer()


def test_a_deep_temporary_folder_still_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with EmbeddedServer() as server:
        server.connect().close()
    assert not any(deep.iterdir())
