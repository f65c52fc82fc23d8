from collections.abc import Iterable, Sequence
from typing import TypeAlias

from rtui.registry.matching import MatcherTables
from rtui.registry.naming import NamingTables

Layouts: TypeAlias = list[tuple[bytes | None, tuple[bool, bool, bool, bool], dict[int, int]]]
Names: TypeAlias = list[tuple[int, bytes, int, int, int, int, list[bytes]]]
Taken: TypeAlias = tuple[
    Layouts, list[tuple[int, int]], list[tuple[int, int, int]], list[tuple[int, list[bytes]]], Names
]

class RegistryTable:
    def __init__(
        self,
        matching: MatcherTables,
        naming: NamingTables,
        ranges: list[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]],
        has_least: Sequence[bool],
        enabled: int,
        kept: int,
    ) -> None: ...
    def set_type(self, number: int, wrong: Iterable[int]) -> None: ...
    def judge(self, keys: list[bytes]) -> list[tuple[int, int] | None]: ...
    @property
    def is_filling(self) -> bool: ...
    def take(self, types: list[bytes | None]) -> Taken: ...
