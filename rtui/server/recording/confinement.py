"""What a replay may not do, whatever keys its file presses: write files, run programs, connect to anything.

Recordings come from others, and their keys reach every command of the interface: one that writes a value to a file, one
that shows it in a pager, one that connects to a server of a profile. Python reports each such step to audit hooks
before it happens, from all modules and threads; the hook refuses it with the error that the system itself would give,
so each place words it as it words any such failure.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, Final

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_REFUSED: Final = frozenset(
    {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate"}
    | {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"}
    | {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "os.utime"}
    | {"shutil.move", "shutil.rmtree", "shutil.copyfile", "os.putenv", "os.unsetenv", "os.kill", "os.killpg"}
)

_TERMINAL: Final = ("/dev/tty", "/dev/null")


def confine() -> None:
    """Refuse from now on, until this process ends, whatever a replay may not do."""
    sys.dont_write_bytecode = True
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED:
        raise PermissionError(errno.EACCES, "a replay does nothing but show")
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITING and path not in _TERMINAL and not isinstance(path, int):
            raise PermissionError(errno.EACCES, "a replay writes no files")
