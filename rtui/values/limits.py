"""Limits of decoding, and the exceptions that end a decoder."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of decoding one value, which hold whatever the bytes are."""

    output_bytes: int = 1 << 20
    """The most bytes that one layer may decompress to; the rest is dropped."""
    layers: int = 8
    """The most decoders in a row, as in base64 › gzip › JSON."""
    depth: int = 64
    """The deepest nesting of maps and lists. At most 100, since some readers recurse."""
    elements: int = 5_000
    """The most nodes in a tree."""
    seconds: float = 0.25
    """The processor time of the thread, in seconds, after which every decoder stops at its next step."""


DEFAULT: Final = Limits()

PROBE_ELEMENTS: Final = 256
"""The elements read to recognise a value without a mark of its own."""

_CLOCK_EVERY: Final = 64


class Stopped(Exception):  # noqa: N818 - the base of three ways to end early, of which two are no errors
    """A decoder ended early; what it has read so far is kept."""


class Cut(Stopped):
    """The bytes end before the value does."""


class Invalid(Stopped):
    """The bytes are not of the decoder's format; the message is a predicate: "has no type 07"."""


class Exceeded(Stopped):
    """A limit was reached; the message is a sentence."""


class MissingLibrary(Stopped):
    """The library that a decoder needs is not installed."""


@dataclass(slots=True)
class Budget:
    """The remainder of the limits while one value is decoded."""

    limits: Limits
    deadline: float
    elements: int = field(default=0)

    @classmethod
    def starting(cls, limits: Limits) -> Budget:
        """Return a full budget for the current thread; its time begins now."""
        return cls(limits, time.thread_time() + limits.seconds)

    def probe(self) -> Budget:
        """Return a small budget with the same deadline, for recognising a format."""
        few = min(PROBE_ELEMENTS, self.limits.elements)
        limits = Limits(min(4096, self.limits.output_bytes), self.limits.layers, self.limits.depth, few)
        return Budget(limits, self.deadline)

    def spend(self) -> None:
        """Count one element; raises Exceeded if there are too many, or time is up."""
        self.elements += 1
        if self.elements > self.limits.elements:
            raise Exceeded(f"only the first {self.limits.elements:,} elements are shown")
        if not self.elements % _CLOCK_EVERY:
            self.check_time()

    def check_time(self) -> None:
        """Raise Exceeded if time is up."""
        if time.thread_time() > self.deadline:
            raise Exceeded(f"decoding was stopped after {self.limits.seconds:g} s")
