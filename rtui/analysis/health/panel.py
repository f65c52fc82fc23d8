"""What is shown of a server, the same on the screen and in files: panels of figures, tables and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rtui.analysis.report.tables.table import Cell, Table, Unit
from rtui.keyspace.text.display import SafeText


class State(StrEnum):
    """How a figure is, by its threshold."""

    PLAIN = "plain"
    """There is nothing to judge."""
    NORMAL = "normal"
    WATCH = "watch"
    """It may become a trouble, or is one where the reason given holds."""
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure with all that explains it. All texts are safe."""

    id: str
    """Its name in JSON, in Prometheus metrics and in histories: `memory_fragmentation_ratio`."""
    title: str
    value: Cell
    """A number, a text, or why it is not known."""
    unit: Unit
    is_rate: bool = False
    """Whether it is so much a second."""
    state: State = State.PLAIN
    said: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change
    """What the value means for this server and these keys, in a sentence; may be empty."""
    normal: str = ""
    """What is normal: `1.0 to 1.5`."""
    remedy: str = ""
    """What to do where it is not; a sentence."""
    source: str = ""
    """Where the threshold comes from."""
    rule: str = ""
    """The rule that finds it where it is not normal."""
    history: tuple[float | None, ...] = ()
    """The same figure in the samples of the session, oldest first; None where it was not known."""


LEAST_SPAN: Final = 0.05
"""The height of a chart is such a share of its highest value at least: what hardly changes looks level."""


def top_of_chart(low: float, high: float) -> float:
    """Return the value at the top of a chart that begins at `low` and has values up to `high`."""
    return max(high, low + LEAST_SPAN * abs(high))


def chart_bounds(known: Sequence[float]) -> tuple[float, float]:
    """Return the values at foot and top of a chart of these, one at least.

    It begins at 0, but for values that stay above half of the highest one.
    """
    low, high = min(known), max(known)
    low = low if low > high / 2 else min(0.0, low)
    return low, top_of_chart(low, high)


@dataclass(frozen=True, slots=True)
class Panel:
    """What belongs together: memory, load, clients …"""

    id: str
    title: str
    lines: tuple[Line, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[SafeText, ...] = ()
    """What could not be read and which right or version it takes, and what else is to know; without full stops."""
