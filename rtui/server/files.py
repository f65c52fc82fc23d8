"""Writes a file whole or not at all: beside its place first, and there only when all of it is on the disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def part_of(place: Path) -> tuple[int, Path]:
    """A new open file beside a place, for its owner only; raises OSError, and ValueError for what is no name."""
    descriptor, name = tempfile.mkstemp(prefix=f".{place.name[:40]}.", suffix=".part", dir=place.parent)
    return descriptor, Path(name)


@contextmanager
def whole_file(place: Path) -> Iterator[BinaryIO]:
    """A file to write to, put in its place at the end; nothing is left of it when that fails or is interrupted.

    Raises OSError, and ValueError for what is no name.
    """
    descriptor, part = part_of(place)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        part.replace(place)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
