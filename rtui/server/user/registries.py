"""Which registry is used: the one that was named, else the profile's, else `rtui.toml` in the folder or above."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.registry.problems import Problem
    from rtui.registry.registry import Registry

MOST_SHOWN: Final = 20
"""Mistakes of one file that are shown."""


class RegistryFileError(RtuiError):
    """A registry that can't be used; says on which lines and why."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first, *others = [str(one) for one in problems[:MOST_SHOWN]]
        if len(problems) > MOST_SHOWN:
            others.append(f"and {len(problems) - MOST_SHOWN:,} more")
        super().__init__("The registry can't be used", first)
        self.others = tuple(others)
        """What else is wrong with it, a line each."""


@dataclass(frozen=True, slots=True)
class RegistryChoice:
    """How a registry is chosen for a server."""

    named: str | None = None
    """A file, or the name of a registry that ships with rtui."""
    is_off: bool = False
    """None is used."""
    folder: Path = field(default_factory=Path.cwd)
    """Where relative paths begin and `rtui.toml` is looked for."""

    def load(self, target: Target) -> Registry | None:
        """Read the registry for a server; None where there is none. Raises RegistryFileError."""
        if self.is_off:
            return None
        from rtui.registry.find import find_registry, named_registry  # noqa: PLC0415 - most runs have none

        name = self.named or target.registry
        path = find_registry(self.folder) if name is None else named_registry(name, self.folder)
        if path is None:
            return None
        from rtui.registry.load import load_registry  # noqa: PLC0415
        from rtui.registry.problems import RegistryError  # noqa: PLC0415

        try:
            return load_registry(path)
        except RegistryError as error:
            raise RegistryFileError(error.problems) from None
