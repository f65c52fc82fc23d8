"""The figures of one namespace, each with how far it can be trusted. The tree needs them before any report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rtui.analysis.humanize import Mark


@dataclass(frozen=True, slots=True)
class Known:
    """A figure and how far it can be trusted."""

    value: float
    mark: Mark = Mark.EXACT


@dataclass(frozen=True, slots=True)
class NamespaceFigures:
    """What is known of a namespace; None for what is not."""

    memory_bytes: Known | None = None
    share: Known | None = None
    """Of the bytes of all keys, 0 … 1."""
    mean_bytes: Known | None = None
    no_ttl: Known | None = None
    """Share of the keys that never expire."""
    idle: Known | None = None
    """Share of the keys that nobody used for 30 days."""
    pattern: bytes | None = None
    """The pattern whose mean the figures rest on, where they are not its own."""
    has_changed: bool = False
    """Whether the namespace has another number of keys now than the report counted in it."""


NOTHING_KNOWN: Final = NamespaceFigures()
