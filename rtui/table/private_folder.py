"""Files private to this process, removed when it ends, or at the next start if it could not remove them.

A private folder is locked (`flock`) as long as its process lives, and no longer when that is killed. So an unlocked
folder was left behind, and `remove_left` removes it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import weakref
from pathlib import Path
from typing import BinaryIO, Final

PREFIX: Final = "rows-"
"""The beginning of the names of private folders."""


class PrivateFolder:
    """A new folder inside another one, accessible to this user only; raises OSError if it can't be made."""

    def __init__(self, parent: Path) -> None:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path, held = _made(parent)
        self._remove = weakref.finalize(self, _remove, self.path, held)

    def create(self, name: str) -> BinaryIO:
        return os.fdopen(os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def close(self) -> None:
        """Remove it with all that is in it; done at the end of the process at the latest."""
        self._remove()


def remove_left(parent: Path) -> None:
    """Remove the private folders in a folder that no process holds."""
    for path in parent.glob(f"{PREFIX}*"):
        held = _held(path)
        if held is not None:
            _remove(path, held)


def _made(parent: Path) -> tuple[Path, int]:
    """Make a folder and hold it; another process may have taken it for one left behind before it was held."""
    while True:
        path = parent / f"{PREFIX}{secrets.token_hex(8)}"
        path.mkdir(mode=0o700)
        held = _held(path)
        if held is not None:
            return path, held


def _held(path: Path) -> int | None:
    """Return a descriptor that locks a folder; None if another process holds it, or it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _remove(path: Path, held: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(held)
