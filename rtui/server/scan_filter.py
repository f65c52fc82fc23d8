"""What a scan is narrowed to on the server: a pattern of names, a type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rtui.keyspace.glob import check_pattern
from rtui.keyspace.matcher import Matcher
from rtui.server import guard


@dataclass(frozen=True, slots=True)
class ScanFilter:
    """MATCH and TYPE, both within the bounds of what is sent: PatternError and GuardError say otherwise."""

    match: bytes | None = None
    kind: bytes | None = None

    def __post_init__(self) -> None:
        if self.match is not None:
            check_pattern(self.match)
        guard.scan(0, count=1, match=self.match, kind=self.kind)

    @property
    def is_open(self) -> bool:
        """Whether everything passes."""
        return self.match is None and self.kind is None

    def names(self) -> Callable[[bytes], bool] | None:
        """The same test of names here, where the server tests them for something else; None if all names pass."""
        return None if self.match is None else Matcher(self.match)
