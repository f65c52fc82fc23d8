"""The compiled counters of keys, optional, with the same results as the pure ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

ENVIRONMENT: Final = "RTUI_ENGINE"
"""The variable of the environment that chooses the engine: `pure` turns the compiled one off."""

EXTENSIONS: Final = ("_core", "_folded", "_name_table", "_ranges", "_scan")
"""The modules that are compiled."""


def is_built() -> bool:
    """Tell whether the extensions were built for this interpreter."""
    return all(find_spec(f"rtui.server.engine.{name}") is not None for name in EXTENSIONS)


def engine_name() -> str:
    """Return which engine counts keys: `compiled` or `pure`."""
    return "compiled" if os.environ.get(ENVIRONMENT) != "pure" and is_built() else "pure"


def is_compiled(separators: Sequence[bytes]) -> bool:
    """Tell whether the compiled engine handles names with these separators: those of one byte each."""
    return engine_name() == "compiled" and all(len(one) == 1 for one in separators)
