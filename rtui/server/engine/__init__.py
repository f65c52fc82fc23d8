"""The compiled scan, optional, with the same results as that in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = "RTUI_ENGINE"
"""The variable of the environment that has Python ask in place of the compiled engine, with the value `python`."""

EXTENSIONS: Final = ("_name_table", "_ranges", "_scan", "_slot_filter")
"""The modules that are compiled."""


@cache
def is_built() -> bool:
    """Tell whether the extensions were built for this interpreter, from the sources beside them if there are any."""
    built = [find_spec(f"rtui.server.engine.{name}") for name in EXTENSIONS]
    paths = [Path(spec.origin) for spec in built if spec is not None and spec.origin is not None]
    return len(paths) == len(EXTENSIONS) and not is_outdated(paths, Path(__file__).parent)


def is_outdated(extensions: Iterable[Path], folder: Path) -> bool:
    """Tell whether a Cython source in the folder is newer than all of the extensions.

    So it is in a checkout that was updated and not installed again: what Python calls may have changed since.
    """
    built_ns = max(path.stat().st_mtime_ns for path in extensions)
    sources = (path for ending in ("*.pyx", "*.pxd") for path in folder.glob(ending))
    return any(path.stat().st_mtime_ns > built_ns for path in sources)


def engine_name() -> str:
    """Return what asks about keys: `compiled` or `python`."""
    return "compiled" if os.environ.get(ENVIRONMENT) != "python" and is_built() else "python"


def is_compiled(separators: Sequence[bytes]) -> bool:
    """Tell whether the compiled engine groups names with these separators: those of one byte each."""
    return engine_name() == "compiled" and all(len(one) == 1 for one in separators)
