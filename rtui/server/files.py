"""Writing a file whole or not at all: to a temporary file in the same folder first, renamed when it is complete.

A module of its own, since a report is written so by the command line, and the position of a scan by the server's side.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def create_part_file(path: Path) -> tuple[int, Path]:
    """Create and open a temporary file beside a path, readable by its owner only.

    Return its descriptor and path; raises OSError, and ValueError for what is no file name.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent)
    return descriptor, Path(name)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to, which replaces the file at the path at the end, or is removed after an exception.

    Raises OSError, and ValueError for what is no file name.
    """
    descriptor, part = create_part_file(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
