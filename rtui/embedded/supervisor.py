"""The process between rtui and the embedded server: it stops the server when rtui has ended in any way.

Runs as a file of its own, `supervisor.py PROGRAM FOLDER`, and imports nothing of rtui. Its standard input is a pipe
that rtui holds open and never writes to; the kernel closes it when rtui ends by an exit, a crash, a signal or a kill.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

SOCKET_NAME = "valkey.sock"
"""The unix socket in the folder; the server listens nowhere else."""

CONFIGURATION_NAME = "server.conf"
"""The configuration in the folder, which rtui has written."""

LOG_NAME = "log"

LOG_BYTES = 16_384
"""The number of bytes of the log that are printed, from the beginning, if the server ends by itself."""


def _die_with_parent() -> None:
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def main(program: str, folder: Path) -> int:
    """Print the server's process id, wait until rtui or the server ends, stop the server and remove the folder.

    The exit code is 1, with the log on standard error, if the server ended first.
    """
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ended, alive = os.pipe()
    server = None
    try:
        with (folder / LOG_NAME).open("wb") as log:
            server = subprocess.Popen(
                [program, str(folder / CONFIGURATION_NAME)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                pass_fds=(alive,),
                preexec_fn=_die_with_parent,  # noqa: PLW1509 -- this process has one thread
            )
        os.close(alive)
        os.write(1, b"%d\n" % server.pid)
        ready, _, _ = select.select([0, ended], [], [])
        if 0 not in ready:
            sys.stderr.write((folder / LOG_NAME).read_text(errors="replace")[:LOG_BYTES])
            return 1
        return 0
    except OSError as error:
        sys.stderr.write(str(error))
        return 1
    finally:
        if server is not None:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
