"""Imports the counting modules (Polars), which takes a third of a second: in a thread, and only for a pass."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import Final

from rtui.server.wire.errors import RtuiError

MOST_THREADS: Final = 2
"""Threads of Polars: the server may be on the same host."""

MODULES: Final = (
    "rtui.table.aggregates",
    "rtui.server.inspection.engine_inspection",
    "rtui.server.inspection.pipeline",
    "rtui.table.rows",
)

SWITCH_S: Final = 0.0005
"""So long a thread may hold the interpreter while another one waits for it, such as to have the engine go on."""

_M_ARENA_MAX: Final = -8
"""Of `mallopt` in the GNU C library."""

NOT_THIS_PROCESSOR: Final = "This processor has no AVX2: to count keys here, install polars[rtcompat]."


def use_one_heap() -> None:
    """Make all threads allocate from one heap (GNU C library), so that they reuse each other's freed memory.

    Must be called before another thread allocates.
    """
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_ARENA_MAX, 1)


def import_counting() -> None:
    """Import the counting modules; raises RtuiError if they are missing, or would crash on this processor."""
    sys.setswitchinterval(SWITCH_S)
    os.environ.setdefault("POLARS_MAX_THREADS", str(MOST_THREADS))
    warnings.filterwarnings("error", "Missing required CPU features", RuntimeWarning)
    try:
        for name in MODULES:
            import_module(name)
    except RuntimeWarning:
        raise RtuiError("No analysis", NOT_THIS_PROCESSOR) from None
    except ImportError as error:
        raise RtuiError("No analysis", f"Polars and NumPy, which count keys, can't be imported: {error}.") from error


def import_ahead() -> None:
    """Import it, if it can be: whoever needs it says why not."""
    with suppress(RtuiError):
        import_counting()
