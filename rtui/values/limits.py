"""What decoding a value may take, and how a decoder learns that it has to stop."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one value may become; each bound holds whatever the bytes are."""

    output_bytes: int = 1 << 20
    """What one layer may decompress to; the rest is left undone."""
    layers: int = 8
    """How many decoders may follow one another, as in base64 › gzip › JSON."""
    depth: int = 64
    """How deeply maps and lists may be nested. At most 100, since some readers recurse."""
    elements: int = 5_000
    """How many nodes a tree may have."""
    seconds: float = 0.25
    """The processor time of the thread after which every decoder stops at its next step."""


DEFAULT: Final = Limits()

PROBE_ELEMENTS: Final = 256
"""How many elements of a value without a mark of its own are read to recognise it."""

_CLOCK_EVERY: Final = 64


class Stopped(Exception):  # noqa: N818 - the base of three ways to end early, of which two are no errors
    """A decoder ended early; what it has read so far is kept."""


class Cut(Stopped):
    """The bytes end before the value does."""


class Invalid(Stopped):
    """The bytes are not what the decoder reads; the message is the end of a sentence that begins with its name."""


class Exceeded(Stopped):
    """A limit was reached; the message is a sentence."""


class MissingLibrary(Stopped):
    """The library that a decoder needs is not installed."""


@dataclass(slots=True)
class Budget:
    """What is left of the limits while one value is decoded."""

    limits: Limits
    deadline: float
    elements: int = field(default=0)

    @classmethod
    def starting(cls, limits: Limits) -> Budget:
        """Return a full budget whose time begins now; it is used in this thread."""
        return cls(limits, time.thread_time() + limits.seconds)

    def probe(self) -> Budget:
        """Return a small budget with the same deadline, to recognise what the bytes are."""
        few = min(PROBE_ELEMENTS, self.limits.elements)
        limits = Limits(min(4096, self.limits.output_bytes), self.limits.layers, self.limits.depth, few)
        return Budget(limits, self.deadline)

    def spend(self) -> None:
        """Count one element; raises Exceeded when there are too many, or when time is up."""
        self.elements += 1
        if self.elements > self.limits.elements:
            raise Exceeded(f"only the first {self.limits.elements:,} elements are shown")
        if not self.elements % _CLOCK_EVERY:
            self.check_time()

    def check_time(self) -> None:
        """Raise Exceeded when time is up."""
        if time.thread_time() > self.deadline:
            raise Exceeded(f"decoding was stopped after {self.limits.seconds:g} s")
