"""The compiled engine: what scans and asks about keys without a Python object for each.

To import it, or a module of it, raises ImportError where it has not been built, or not since a source of it changed.
"""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

EXTENSIONS: Final = ("_name_table", "_ranges", "_scan", "_slot_filter")

NOT_BUILT: Final = "The engine that scans has not been built for this Python: install rtui again with pip."
OUTDATED: Final = "The engine that scans is older than its sources: `make engine` builds it."


def why_not(folder: Path) -> str | None:
    """Return why the extensions of a folder can't be used, in a sentence; None where they can.

    In a checkout that was updated and not installed again they are older than a source.
    """
    paths = [
        next((path for suffix in EXTENSION_SUFFIXES if (path := folder / f"{name}{suffix}").exists()), None)
        for name in EXTENSIONS
    ]
    built = [path.stat().st_mtime_ns for path in paths if path is not None]
    if len(built) < len(EXTENSIONS):
        return NOT_BUILT
    sources = (path for ending in ("*.pyx", "*.pxd") for path in folder.glob(ending))
    return OUTDATED if any(path.stat().st_mtime_ns > max(built) for path in sources) else None


if (_reason := why_not(Path(__file__).parent)) is not None:
    raise ImportError(_reason, name=__name__)
