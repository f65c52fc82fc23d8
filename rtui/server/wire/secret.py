"""Passwords, in a type that shows dots."""

from __future__ import annotations

from typing import Final, NoReturn, final

MASK: Final = "•••"
"""Shown in place of a password."""


@final
class Secret:
    """A password. Only `reveal()` returns it: repr, str and format show a mask, and it can't be pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the password; bytes that are not UTF-8 are surrogate escapes, as in `os.fsencode`."""
        return self._value

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
        raise TypeError("a secret can't be pickled")
