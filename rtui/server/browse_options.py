"""What the user asked for when starting to browse, as one value that the command line fills and the interface reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from rtui.server.wire.target import Target

DEFAULT_DEMO_KEYS: Final = 50_000
"""How many keys `--demo` loads."""

DEFAULT_MEMORY_BUDGET_BYTES: Final = 512 << 20
"""How much the names of keys may take before only counts are kept."""

PaceName = Literal["gentle", "normal", "full"]
"""How hard the server is asked."""


@dataclass(frozen=True, slots=True)
class BrowseOptions:
    """Where to connect and how to show it; names are bytes as the server has them."""

    target: Target = field(default_factory=Target)
    separators: tuple[bytes, ...] = (b":",)
    match: bytes | None = None
    """A glob that the server filters by, if any."""
    kind: bytes | None = None
    """The only type to list, if any."""
    pace: PaceName = "gentle"
    memory_budget_bytes: int = DEFAULT_MEMORY_BUDGET_BYTES
    ascii_only: bool = False
    theme: str | None = None
    no_color: bool = False
    demo: bool = False
    """Browse an embedded server with sample keyspaces instead of `target`."""
    demo_keys: int = DEFAULT_DEMO_KEYS
    is_filling: Callable[[], bool] | None = None
    """Says whether the demo is still loading keys; what was scanned before it says no is not everything."""
    resume: bool = True
    """Go on with a scan that an earlier run left unfinished."""
