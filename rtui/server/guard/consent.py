"""What a user has to agree to before a command is sent that changes something in the server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_TRACKED_KEYS: Final = 64
"""Most keys that a server keeps in one hot-key session."""


class Metric(StrEnum):
    """What a hot-key session measures of each key."""

    CPU = "CPU"
    """Time that its commands take."""
    NET = "NET"
    """Bytes that its commands bring in and send out."""


@dataclass(frozen=True, slots=True)
class Consent:
    """The user's word that a hot-key session may be started, and how far it goes; the guard bounds each number."""

    duration_s: int
    """When the server ends it by itself."""
    sample_ratio: int
    """One command in so many is measured."""
    metrics: tuple[Metric, ...] = (Metric.CPU, Metric.NET)
    count: int = MAX_TRACKED_KEYS
    """Keys kept for each metric."""
    discards_result: bool = False
    """Whether the result of an earlier session, perhaps another operator's, may be lost: the server keeps one only."""
