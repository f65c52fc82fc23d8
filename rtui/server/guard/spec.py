"""`Spec`, an entry of the closed list: a command with its cost, the reason why it is safe, and its arguments.

A shape is a tuple of elements. Each element takes the arguments that fit it, from an index on, and the whole line fits
if the elements, one after another, take exactly all of it. So `(KEY, keyword("COUNT"), Integer("count", 1, 100))`
accepts `user:1 COUNT 10`, and neither `user:1 COUNT 101` nor `user:1 COUNT 10 NOVALUES`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rtui.server.guard.evidence import Evidence

NO_MATCH: Final = -1
"""The result of `take` if the arguments at that index do not fit."""

MAX_KEY_BYTES: Final = 1 << 20
"""The longest key name of a look-up: reading and hashing 1 MiB took 0.3–0.4 ms in all versions from 6.2 to 9.1."""

MAX_FIELD_BYTES: Final = 64 * 1024
"""The longest hash field name and stream group name that is sent."""

MAX_INDEX: Final = (1 << 63) - 1
"""The highest index of a string, list or sorted set."""

_DECIMAL: Final = re.compile(rb"(?:0|-?[1-9][0-9]{0,19})\Z")


def parse_decimal(text: bytes) -> int | None:
    """Read a number as Redis writes it: no plus, no leading zeros, no spaces; None for anything else."""
    return int(text) if _DECIMAL.match(text) else None


@dataclass(frozen=True, slots=True)
class Keyword:
    """One of a few fixed words or phrases, in exactly this spelling."""

    choices: tuple[tuple[bytes, ...], ...]
    bounds: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """The choices with bars between them."""
        return "|".join(b" ".join(words).decode() for words in self.choices)

    def take(self, args: tuple[bytes, ...], at: int) -> int:
        """Take the words of one choice."""
        for words in self.choices:
            end = at + len(words)
            if args[at:end] == words:
                return end
        return NO_MATCH


def keyword(*choices: str) -> Keyword:
    """Make a Keyword; the words of a choice are separated by spaces."""
    return Keyword(tuple(tuple(choice.encode().split(b" ")) for choice in choices))


@dataclass(frozen=True, slots=True)
class Integer:
    """One decimal number from `low` to `high`, both included."""

    usage: str
    low: int
    high: int

    @property
    def bounds(self) -> tuple[str, ...]:
        """Both ends of the range; an upper end near a power of two is written as such: `2^64−2`."""
        bits = self.high.bit_length()
        below = (1 << bits) - self.high
        high = f"2^{bits}−{below}" if bits > 30 and below <= 2 else f"{self.high:,}"
        return (f"{self.usage} {self.low:,}–{high}",)

    def take(self, args: tuple[bytes, ...], at: int) -> int:
        """Take one number within the range."""
        number = parse_decimal(args[at]) if at < len(args) else None
        return at + 1 if number is not None and self.low <= number <= self.high else NO_MATCH


@dataclass(frozen=True, slots=True)
class IndexRange:
    """A first and a last index, neither negative, both included, with at most `most` items in between."""

    first: str
    last: str
    unit: str
    most: int

    @property
    def usage(self) -> str:
        """Both names."""
        return f"{self.first} {self.last}"

    @property
    def bounds(self) -> tuple[str, ...]:
        """The order of the two and the widest range."""
        size = format_bytes(self.most) if self.unit == "bytes" else f"{self.most:,} {self.unit}"
        return (f"0 ≤ {self.first} ≤ {self.last}, window ≤ {size}",)

    def take(self, args: tuple[bytes, ...], at: int) -> int:
        """Take two numbers that are in order and near enough to each other."""
        if at + 1 >= len(args):
            return NO_MATCH
        first, last = parse_decimal(args[at]), parse_decimal(args[at + 1])
        if first is None or last is None or not 0 <= first <= last <= MAX_INDEX:
            return NO_MATCH
        return at + 2 if last - first < self.most else NO_MATCH


@dataclass(frozen=True, slots=True)
class Checked:
    """One argument that a function accepts."""

    usage: str
    accepts: Callable[[bytes], bool] = field(repr=False)
    bounds: tuple[str, ...] = ()
    is_secret: bool = False
    """Whether it is a password, or the name of a renamed command: never shown."""

    def take(self, args: tuple[bytes, ...], at: int) -> int:
        """Take one argument that the function accepts."""
        return at + 1 if at < len(args) and self.accepts(args[at]) else NO_MATCH


def any_bytes(usage: str, max_bytes: int, *, is_secret: bool = False) -> Checked:
    """Make an argument of any bytes up to a length: a key, a field, a user, a password."""
    bounds = (f"{usage} ≤ {format_bytes(max_bytes)}",)
    return Checked(usage, lambda text: len(text) <= max_bytes, bounds, is_secret=is_secret)


@dataclass(frozen=True, slots=True)
class Optional:
    """Elements that are optional as a whole."""

    elements: tuple[Element, ...]

    @property
    def usage(self) -> str:
        """The elements in brackets."""
        return f"[{' '.join(element.usage for element in self.elements)}]"

    @property
    def bounds(self) -> tuple[str, ...]:
        """The limits of the elements."""
        return tuple(bound for element in self.elements for bound in element.bounds)

    def take(self, args: tuple[bytes, ...], at: int) -> int:
        """Take the elements if they fit, else nothing."""
        end = take_all(self.elements, args, at)
        return at if end == NO_MATCH else end


@dataclass(frozen=True, slots=True)
class Repeated:
    """One element, 1 to `most` times; with `counted` behind its number of repetitions."""

    element: Element
    most: int
    counted: bool = False

    @property
    def usage(self) -> str:
        """The number if there is one, the element, and dots."""
        return f"{'n ' if self.counted else ''}{self.element.usage} […]"

    @property
    def bounds(self) -> tuple[str, ...]:
        """The largest number, and the limits of the element."""
        return (f"1–{self.most:,} {self.element.usage}s", *self.element.bounds)

    def take(self, args: tuple[bytes, ...], at: int) -> int:
        """Take exactly the given number, or, without one, as many as fit, up to `most`."""
        if self.counted:
            number = parse_decimal(args[at]) if at < len(args) else None
            if number is None or not 1 <= number <= self.most:
                return NO_MATCH
            return take_all((self.element,) * number, args, at + 1)
        end = at
        for _ in range(self.most):
            after = self.element.take(args, end)
            if after == NO_MATCH:
                break
            end = after
        return end if end > at else NO_MATCH


Element: TypeAlias = Keyword | Integer | IndexRange | Checked | Optional | Repeated
"""A part of a shape: `usage` and `bounds` describe it, `take` returns the index behind the taken arguments, or
NO_MATCH."""


def take_all(elements: Sequence[Element], args: tuple[bytes, ...], at: int) -> int:
    """Return the index behind all elements taken one after another from `at`, or NO_MATCH."""
    for element in elements:
        at = element.take(args, at)
        if at == NO_MATCH:
            return NO_MATCH
    return at


def format_bytes(size_bytes: int) -> str:
    """Format a limit in bytes, exactly: 65536 is `64 KiB`."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit and size_bytes % unit == 0:
            return f"{size_bytes // unit:,} {name}"
    return f"{size_bytes:,} bytes"


KEY: Final = any_bytes("key", MAX_KEY_BYTES)
PASSWORD: Final = any_bytes("password", 4096, is_secret=True)

Version = tuple[int, ...]
"""A server version as numbers: (7, 2)."""

FIRST_REDIS: Final[Version] = (1, 0)
FIRST_VALKEY: Final[Version] = (7, 2)

MAX_REQUEST_BYTES: Final = 2 << 20
"""The most bytes in one command line: a key of the longest kind and as much again."""


class CommandGroup(enum.Enum):
    """The purpose of a command."""

    CONNECTION = "connection"
    SERVER = "server"
    SETTINGS = "settings"
    HOTKEYS = "hotkeys"
    HEALTH = "health"
    KEYSPACE = "keyspace"
    STRING = "string"
    HASH = "hash"
    LIST = "list"
    SET = "set"
    ZSET = "zset"
    STREAM = "stream"
    ARRAY = "array"
    VECTORS = "vectors"
    JSON = "json"
    TIMESERIES = "timeseries"
    BLOOM = "bloom"
    CLUSTER = "cluster"
    RENAMED = "renamed"
    SENTINEL = "sentinel"


MODULE_GROUPS: Final = frozenset({CommandGroup.JSON, CommandGroup.TIMESERIES, CommandGroup.BLOOM})
"""Groups whose commands come from a module: a server without it has none of them."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One command, or one way to use a command, that may be sent."""

    group: CommandGroup
    name: str
    """The command and its subcommand, in capitals: `MEMORY USAGE`."""
    shape: tuple[Element, ...]
    """The arguments behind the words."""
    cost: str
    """The worst case within the bounds, in words and measured figures."""
    why: str
    """The reason why it is safe, in a sentence."""
    since: Version | None = FIRST_REDIS
    """The first Redis version that has it; None: never."""
    since_valkey: Version | None = FIRST_VALKEY
    """The first Valkey version that has it; None: never."""
    touches: bool = False
    """Whether it changes the idle time or frequency of the key unless NO-TOUCH is on."""
    counts: bool = False
    """Whether it counts in keyspace_hits or keyspace_misses."""
    is_required: bool = False
    """Whether nothing works without it; otherwise only one feature is lost if the server refuses it."""
    in_bulk: bool = False
    """Whether it may be sent for many keys in one write: constant time and one key only."""
    has_write_key_spec: bool = False
    """Whether the server counts it as a writer of its key, as it does with module commands: `%R~` denies it."""
    needs_consent: bool = False
    """Whether it changes something in the server besides this connection, so that the user has to agree."""
    evidence: type[Evidence] | None = None
    """The kind of evidence it requires, if its cost depends on the value; else None."""

    words: tuple[bytes, ...] = field(init=False)
    has_secret: bool = field(init=False)
    """Whether an argument is never shown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.name.encode().split(b" ")))
        single = (element.element if isinstance(element, Repeated) else element for element in self.shape)
        is_secret = any(isinstance(element, Checked) and element.is_secret for element in single)
        object.__setattr__(self, "has_secret", is_secret)

    @property
    def server_name(self) -> str:
        """The command as COMMAND INFO and the ACL rules of 7.0 and later write it: `memory|usage`."""
        return self.name.replace(" ", "|").lower()

    @property
    def acl_rule(self) -> str:
        """The ACL rule that allows just this command."""
        return f"+{self.server_name}"

    @property
    def usage(self) -> str:
        """The whole command with its arguments, as a manual would write it."""
        return " ".join([self.name, *(element.usage for element in self.shape)])

    @property
    def bounds(self) -> tuple[str, ...]:
        """The limits of the arguments, each in a few words."""
        return tuple(dict.fromkeys(bound for element in self.shape for bound in element.bounds))

    def admits(self, argv: tuple[bytes, ...]) -> bool:
        """Whether a whole command line fits: the words in capitals and then exactly the shape."""
        count = len(self.words)
        if argv[:count] != self.words or take_all(self.shape, argv, count) != len(argv):
            return False
        return sum(map(len, argv)) <= MAX_REQUEST_BYTES
