"""The user's folders for rtui, why a file can't be used, how many may be open, and writing one whole or not at all.

A file is written to a temporary one in the same folder first, which is renamed when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final


def config_folder() -> Path:
    """Return the folder of what the user writes or chooses: settings, profiles, themes. It may not exist."""
    import platformdirs  # noqa: PLC0415 - few need it

    return platformdirs.user_config_path("rtui", appauthor=False)


def state_folder() -> Path:
    """Return the folder of what rtui remembers: positions of scans, reports, recent servers. It may not exist."""
    import platformdirs  # noqa: PLC0415 - few need it

    return platformdirs.user_state_path("rtui", appauthor=False)


def remove_saved_analyses() -> None:
    """Remove what earlier versions saved of analyses to go on with later: names of keys that nothing reads any more."""
    shutil.rmtree(state_folder() / "analyses", ignore_errors=True)


def rows_folder() -> Path:
    """Return the folder of the private files in which rows of analyses are kept until rtui ends. It may not exist."""
    import platformdirs  # noqa: PLC0415 - few need it

    return platformdirs.user_cache_path("rtui", appauthor=False) / "rows"


def server_digest(label: str, db: int) -> str:
    """Return the name of what is kept of one server and database: 32 hexadecimal digits, by a target's label."""
    return hashlib.sha256(f"{label} {db}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


REPORT_SUFFIX: Final = ".json.gz"


def report_name(made_at_s: float) -> str:
    """Return the name of the file of a kept report: the time it was made, given in seconds since the epoch."""
    return f"{datetime.fromtimestamp(round(made_at_s, 3), UTC):%Y%m%dT%H%M%S.%f}"[:-3] + f"Z{REPORT_SUFFIX}"


def is_first_start() -> bool:
    """Whether this user starts rtui for the first time, which is remembered; False where it can't be."""
    try:
        state_folder().mkdir(parents=True, exist_ok=True)
        (state_folder() / "started").touch(exist_ok=False)
    except OSError:
        return False
    return True


def reason_of(error: Exception) -> str:
    """Return why a file can't be used, in the system's words and without its name; they may quote hostile bytes."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def allow_open_files(more: int) -> int | None:
    """Let this process have so many more files and connections open than now, as far as the system's hard limit allows.

    Return None if it may, else how many it may have open in all.
    """
    needed = len([*Path("/dev/fd").iterdir()]) + more
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != soft < needed:
        with suppress(OSError, ValueError):  # macOS takes no limit above its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else hard, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY or soft >= needed else soft


def is_keys_file(path: Path) -> bool:
    """Whether a file is named like Parquet or begins like it, or a folder has such files in it."""
    try:
        if path.is_dir():
            return any(one.suffix == ".parquet" or one.name.startswith("node=") for one in path.iterdir())
        if not path.is_file():
            return False
        if path.suffix == ".parquet":
            return True
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except (OSError, ValueError):  # a NUL in a path is a ValueError
        return False


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
