"""The places of registries: named files, shipped ones, and `rtui.toml` in a folder or above it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILE_NAME: Final = "rtui.toml"
"""The name looked for in the working directory and above."""

SHIPPED: Final = Path(__file__).parent / "registries"


def shipped_names() -> list[str]:
    """Return the names of the registries that ship with rtui."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def find_registry(start: Path) -> Path | None:
    """Return the registry of a folder: `rtui.toml` in it or in the nearest folder above; else None."""
    for folder in (start, *start.parents):
        path = folder / FILE_NAME
        if path.is_file():
            return path
    return None


def named_registry(name: str, folder: Path) -> Path:
    """Return the file of a name: a registry that ships with rtui, else a path relative to `folder`."""
    return SHIPPED / f"{name}.toml" if name in shipped_names() else folder / Path(name).expanduser()
