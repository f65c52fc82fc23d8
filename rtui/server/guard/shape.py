"""The grammar of argument shapes: what may follow a command's words, with every bound as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Protocol

NO_MATCH = -1
"""What `take` answers when the arguments at that place do not fit."""

MAX_KEY_BYTES = 1 << 20
"""Longest key name of a single look-up: reading and hashing 1 MiB took 0.3–0.4 ms in every version from 6.2 to 9.1."""

MAX_FIELD_BYTES = 64 * 1024
"""Longest hash field name and stream group name that is sent."""

MAX_CURSOR = (1 << 64) - 1
"""Cursors are unsigned 64 bit numbers in every version."""

_DECIMAL = re.compile(rb"(?:0|-?[1-9][0-9]{0,19})\Z")


Samples = tuple[tuple[bytes, ...], ...]
"""Ways to fill a shape: each is a run of arguments."""


class Element(Protocol):
    """One place of a shape: takes a fixed or bounded number of arguments."""

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Return the index behind the arguments that fit at `at`, or NO_MATCH."""

    def words(self) -> str:
        """Say the element as a manual would write it."""

    def bounds(self) -> tuple[str, ...]:
        """Name the limits, each in a few words."""

    def samples(self, key: bytes) -> Samples:
        """Give arguments that fit, every way there is, the upper limits where numbers are meant."""


def decimal(text: bytes) -> int | None:
    """Read a number as Redis writes it: no plus, no leading zeros, no spaces; None when it is anything else."""
    return int(text) if _DECIMAL.match(text) else None


@dataclass(frozen=True, slots=True)
class Key:
    """A key name: any bytes up to a length."""

    max_bytes: int = MAX_KEY_BYTES

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take one argument that is short enough."""
        return at + 1 if at < len(args) and len(args[at]) <= self.max_bytes else NO_MATCH

    def words(self) -> str:
        """Say `key`."""
        return "key"

    def bounds(self) -> tuple[str, ...]:
        """Name the longest key."""
        return (f"key ≤ {size_words(self.max_bytes)}",)

    def samples(self, key: bytes) -> Samples:
        """Give the key itself."""
        return ((key,),)


@dataclass(frozen=True, slots=True)
class Blob:
    """Any bytes up to a length, named for the reader: a field, a group, a user."""

    name: str
    max_bytes: int = MAX_FIELD_BYTES
    example: bytes = b"field"

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take one argument that is short enough."""
        return at + 1 if at < len(args) and len(args[at]) <= self.max_bytes else NO_MATCH

    def words(self) -> str:
        """Say the name."""
        return self.name

    def bounds(self) -> tuple[str, ...]:
        """Name the longest value."""
        return (f"{self.name} ≤ {size_words(self.max_bytes)}",)

    def samples(self, key: bytes) -> Samples:
        """Give the example."""
        return ((self.example,),)


@dataclass(frozen=True, slots=True)
class Token:
    """One of a few fixed words, spelt exactly so."""

    values: tuple[bytes, ...]

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take one argument that is one of the words."""
        return at + 1 if at < len(args) and args[at] in self.values else NO_MATCH

    def words(self) -> str:
        """Say the words with bars between."""
        return "|".join(value.decode() for value in self.values)

    def bounds(self) -> tuple[str, ...]:
        """Nothing to bound: the words say it."""
        return ()

    def samples(self, key: bytes) -> Samples:
        """Give each word."""
        return tuple((value,) for value in self.values)


def token(*values: str) -> Token:
    """Make a Token of plain words."""
    return Token(tuple(value.encode() for value in values))


@dataclass(frozen=True, slots=True)
class Integer:
    """A decimal number between two ends, both included."""

    name: str
    low: int
    high: int

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take one number within the ends."""
        if at >= len(args):
            return NO_MATCH
        number = decimal(args[at])
        return at + 1 if number is not None and self.low <= number <= self.high else NO_MATCH

    def words(self) -> str:
        """Say the name."""
        return self.name

    def bounds(self) -> tuple[str, ...]:
        """Name both ends."""
        return (f"{self.name} {self.low:,}–{number_words(self.high)}",)

    def samples(self, key: bytes) -> Samples:
        """Give the upper end."""
        return ((b"%d" % self.high,),)


@dataclass(frozen=True, slots=True)
class Cursor:
    """A scan cursor."""

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take one unsigned 64 bit number."""
        if at >= len(args):
            return NO_MATCH
        number = decimal(args[at])
        return at + 1 if number is not None and 0 <= number <= MAX_CURSOR else NO_MATCH

    def words(self) -> str:
        """Say `cursor`."""
        return "cursor"

    def bounds(self) -> tuple[str, ...]:
        """Nothing worth saying: any cursor costs the same."""
        return ()

    def samples(self, key: bytes) -> Samples:
        """Give the start and the highest."""
        return ((b"0",), (b"%d" % MAX_CURSOR,))


@dataclass(frozen=True, slots=True)
class Window:
    """A first and a last index, neither negative, that span a bounded number of items, both ends included."""

    first: str
    last: str
    unit: str
    most: int
    highest: int = (1 << 63) - 1

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take two numbers that are in order and near enough to each other."""
        if at + 1 >= len(args):
            return NO_MATCH
        first, last = decimal(args[at]), decimal(args[at + 1])
        if first is None or last is None or not 0 <= first <= last <= self.highest:
            return NO_MATCH
        return at + 2 if last - first < self.most else NO_MATCH

    def words(self) -> str:
        """Say both names."""
        return f"{self.first} {self.last}"

    def bounds(self) -> tuple[str, ...]:
        """Name the widest window."""
        size = size_words(self.most) if self.unit == "bytes" else f"{self.most:,} {self.unit}"
        return (f"0 ≤ {self.first} ≤ {self.last}, window ≤ {size}",)

    def samples(self, key: bytes) -> Samples:
        """Give the widest window at the beginning and at the end."""
        return ((b"0", b"%d" % (self.most - 1)), (b"%d" % (self.highest - self.most + 1), b"%d" % self.highest))


@dataclass(frozen=True, slots=True)
class Checked:
    """One argument that a function of this project accepts."""

    name: str
    accepts: Callable[[bytes], bool] = field(repr=False)
    bound: str
    example: bytes

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take one argument that the function accepts."""
        return at + 1 if at < len(args) and self.accepts(args[at]) else NO_MATCH

    def words(self) -> str:
        """Say the name."""
        return self.name

    def bounds(self) -> tuple[str, ...]:
        """Name the limit."""
        return (self.bound,)

    def samples(self, key: bytes) -> Samples:
        """Give the example."""
        return ((self.example,),)


@dataclass(frozen=True, slots=True)
class Optional:
    """Elements that may be there, all of them or none."""

    elements: tuple[Element, ...]

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take the elements when they fit, else nothing."""
        end = take_all(self.elements, args, at)
        return at if end == NO_MATCH else end

    def words(self) -> str:
        """Say the elements in brackets."""
        return f"[{' '.join(element.words() for element in self.elements)}]"

    def bounds(self) -> tuple[str, ...]:
        """Name the limits within."""
        return bounds_of(self.elements)

    def samples(self, key: bytes) -> Samples:
        """Give nothing, and the elements."""
        return ((), *samples_of(self.elements, key))


def optional(*elements: Element) -> Optional:
    """Make an Optional."""
    return Optional(elements)


@dataclass(frozen=True, slots=True)
class Several:
    """One element, once or more."""

    element: Element
    most: int

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take as many as fit, at least one and at most `most`."""
        end = at
        for _ in range(self.most):
            after = self.element.take(args, end)
            if after == NO_MATCH:
                break
            end = after
        return end if end > at else NO_MATCH

    def words(self) -> str:
        """Say the element and dots."""
        return f"{self.element.words()} […]"

    def bounds(self) -> tuple[str, ...]:
        """Name the most and the element's own limits."""
        return (f"1–{self.most:,} {self.element.words()}s", *self.element.bounds())

    def samples(self, key: bytes) -> Samples:
        """Give one, and the most."""
        ones = self.element.samples(key)
        return (*ones, ones[0] * self.most)


@dataclass(frozen=True, slots=True)
class Counted:
    """A number and then exactly that many of an element."""

    element: Element
    most: int

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take the number and what it announces."""
        number = decimal(args[at]) if at < len(args) else None
        if number is None or not 1 <= number <= self.most:
            return NO_MATCH
        return take_all((self.element,) * number, args, at + 1)

    def words(self) -> str:
        """Say the number, the element and dots."""
        return f"n {self.element.words()} […]"

    def bounds(self) -> tuple[str, ...]:
        """Name the most and the element's own limits."""
        return (f"1–{self.most:,} {self.element.words()}s", *self.element.bounds())

    def samples(self, key: bytes) -> Samples:
        """Give one, and the most."""
        one = self.element.samples(key)[0]
        return ((b"1", *one), (b"%d" % self.most, *one * self.most))


@dataclass(frozen=True, slots=True)
class Secret:
    """A password: any bytes up to a length, never shown."""

    max_bytes: int = 4096

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take one argument that is short enough."""
        return at + 1 if at < len(args) and len(args[at]) <= self.max_bytes else NO_MATCH

    def words(self) -> str:
        """Say `password`."""
        return "password"

    def bounds(self) -> tuple[str, ...]:
        """Name the longest password."""
        return (f"password ≤ {size_words(self.max_bytes)}",)

    def samples(self, key: bytes) -> Samples:
        """Give a word that is no secret."""
        return ((b"password",),)


def take_all(elements: Sequence[Element], args: Sequence[bytes], at: int) -> int:
    """Return the index behind all elements taken one after another from `at`, or NO_MATCH."""
    for element in elements:
        at = element.take(args, at)
        if at == NO_MATCH:
            return NO_MATCH
    return at


def samples_of(elements: Sequence[Element], key: bytes) -> Samples:
    """Combine the ways of elements that follow each other."""
    ways = product(*(element.samples(key) for element in elements))
    return tuple(tuple(chain.from_iterable(way)) for way in ways)


def bounds_of(elements: Sequence[Element]) -> tuple[str, ...]:
    """Collect the limits of elements in order."""
    return tuple(bound for element in elements for bound in element.bounds())


def number_words(number: int) -> str:
    """Say a number, large ones beside a power of two as that: `2^64−2`."""
    bits = number.bit_length()
    below = (1 << bits) - number
    return f"2^{bits}−{below}" if bits > 30 and below <= 2 else f"{number:,}"


def size_words(size_bytes: int) -> str:
    """Say a limit in bytes: 65536 is `64 KiB`."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit and size_bytes % unit == 0:
            return f"{size_bytes // unit:,} {name}"
    return f"{size_bytes:,} bytes"
