"""An SSH host on loopback: a server of OpenSSH's with keys made for the test, and a configuration that leads to it."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import START_TIMEOUT_S, ServerDiedError, ending_with_parent, free_port

SSHD = Path("/usr/sbin/sshd")

IS_THERE = SSHD.exists() and shutil.which("ssh") is not None
"""Whether OpenSSH's server and client are installed."""

BANNER = 100 * "For authorised use only. What you do here may be recorded.\n"
"""What the host says before anything else."""


@dataclass(slots=True)
class SshHost:
    """A running host."""

    folder: Path
    port: int

    @property
    def path(self) -> Path:
        """A folder to put first on PATH: its `ssh` reads the configuration of the test, in which it is `bastion`."""
        return self.folder / "bin"

    @contextmanager
    def socks_proxy(self, port: int) -> Iterator[None]:
        """A SOCKS proxy on a port of this machine, by the host."""
        with subprocess.Popen([self.path / "ssh", "-N", "-D", f"127.0.0.1:{port}", "bastion"]) as process:
            try:
                _wait_listens(port, process, self.folder / "log")
                yield
            finally:
                process.kill()


def ssh_children() -> dict[int, str]:
    """The command lines of the ssh processes of this one, by their ids."""
    found: dict[int, str] = {}
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has ended
            found[int(pid)] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return {pid: line for pid, line in found.items() if " -W " in line}


def _key(file: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)


@contextmanager
def ssh_host() -> Iterator[SshHost]:
    """Start a host.

    `bastion` and `inner` are reached with the right key, `locked` is with a wrong one; the key of `stranger` is not
    known, and the name of `nowhere` does not resolve. The host has a banner.
    """
    folder = Path(tempfile.mkdtemp(prefix="rtui-ssh-"))
    port = free_port()
    for name in ("host", "user", "other"):
        _key(folder / name)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "authorized",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PidFile": "none",
        "Banner": folder / "banner",
    }
    (folder / "banner").write_text(BANNER)
    (folder / "sshd.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    here = f"HostName 127.0.0.1\nPort {port}\nUser {getpass.getuser()}\n"
    key, known = f"IdentityFile {folder / 'user'}\n", f"UserKnownHostsFile {folder / 'known'}\n"
    (folder / "config").write_text(
        f"Host bastion inner\n{here}{key}{known}"
        f"Host locked\n{here}IdentityFile {folder / 'other'}\nIdentitiesOnly yes\nIdentityAgent none\n{known}"
        f"Host stranger\n{here}{key}UserKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n"
        f"Host nowhere\nHostName nowhere.invalid\n"
    )
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder / "config"} "$@"\n')
    wrapper.chmod(0o700)
    if getpass.getuser() == "root":
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*ending_with_parent(), SSHD, "-D", "-e", "-f", folder / "sshd.conf"], stderr=log)
    try:
        _wait_listens(port, process, folder / "log")
        yield SshHost(folder, port)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_listens(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise ServerDiedError(log.read_text()) from None
            time.sleep(0.01)
