"""The choice of the registry: the one named, else the profile's, else `rtui.toml` in the folder or its parents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.registry.registry import Problem, Registry

MOST_SHOWN: Final = 20
"""The most mistakes shown of one file."""


class RegistryFileError(RtuiError):
    """A registry that can't be used; says on which lines and why."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first, *others = [str(problem) for problem in problems[:MOST_SHOWN]]
        if len(problems) > MOST_SHOWN:
            others.append(f"and {len(problems) - MOST_SHOWN:,} more")
        super().__init__("The registry can't be used", first)
        self.others = tuple(others)
        """The other mistakes, one per line."""


@dataclass(frozen=True, slots=True)
class RegistryChoice:
    """How to choose the registry for a server."""

    named: str | None = None
    """A file, or the name of a registry that ships with rtui."""
    is_off: bool = False
    """Whether no registry is used."""
    folder: Path = field(default_factory=Path.cwd)
    """The base of relative paths, and the start of the search for `rtui.toml`."""

    def load(self, target: Target) -> Registry | None:
        """Read the registry for a server; None if there is none. Raises RegistryFileError."""
        if self.is_off:
            return None
        from rtui.registry.registry import find_registry, named_registry  # noqa: PLC0415 - most runs have none

        name = self.named or target.registry
        path = find_registry(self.folder) if name is None else named_registry(name, self.folder)
        if path is None:
            return None
        from rtui.registry.load import load_registry  # noqa: PLC0415
        from rtui.registry.registry import RegistryError  # noqa: PLC0415

        try:
            return load_registry(path)
        except RegistryError as error:
            raise RegistryFileError(error.problems) from None
