"""A password as a value that can't be shown by accident."""

from __future__ import annotations

from typing import Final, NoReturn, final

MASK: Final = "•••"
"""What stands wherever a secret would be shown."""


@final
class Secret:
    """A string that only `reveal()` gives away: repr, str and format show a mask, pickling is refused."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself; bytes that are not UTF-8 are surrogate escapes (`os.fsencode` style)."""
        return self._value

    def scrub(self, text: str) -> str:
        """`text` with every occurrence of the secret masked."""
        return text.replace(self._value, MASK) if self._value else text

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is never written anywhere")
