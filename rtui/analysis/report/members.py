"""Types of the members of a report: to the type checker plain bytes, texts and numbers, to msgspec with bounds.

`Name`, `Text` and `SlotCounts` have a form of their own in JSON. At run time they are abstract classes of which bytes,
`str` and arrays count as instances: so msgspec calls the hooks of the JSON format for them, and whoever makes a report
passes plain values.
"""

from __future__ import annotations

from abc import ABCMeta
from array import array
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from msgspec import Meta

from rtui.analysis.estimates import Estimate
from rtui.keyspace.slots import SLOTS
from rtui.table import buckets

MINUTE_S: Final = buckets.MINUTE_S
HOUR_S: Final = buckets.HOUR_S
DAY_S: Final = buckets.DAY_S

TTL_EDGES_S: Final = buckets.TTL_EDGES_S
IDLE_EDGES_S: Final = buckets.IDLE_EDGES_S
FREQUENCY_EDGES: Final = buckets.FREQUENCY_EDGES

LENGTH_EDGES: Final = tuple(quarters << power for power in range(2, 13) for quarters in (4, 5, 6, 7))
"""Borders of the histogram of lengths of a type, from 16 on: bin i holds what is certainly above edge i, and not
certainly above the next one. Lengths that differ by less than 2 % may count as equal."""

if TYPE_CHECKING:
    Name: TypeAlias = bytes
    Text: TypeAlias = str
    SlotCounts: TypeAlias = array[int]
else:
    Name = ABCMeta("Name", (), {"__doc__": "Bytes: a key, a segment, a type or an encoding as the server names it."})
    Text = ABCMeta("Text", (), {"__doc__": "Text for people, safe to show."})
    SlotCounts = ABCMeta("SlotCounts", (), {"__doc__": "An array of 64-bit numbers, one for each of the hash slots."})
    Name.register(bytes)
    Text.register(str)
    SlotCounts.register(array)

LARGEST_NUMBER: Final = 2.0**64
"""No number with a point is beyond this, on either side of zero."""

LARGEST_COUNT: Final = 2**63 - 1

Count: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
"""A whole number."""

Number: TypeAlias = Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
"""A time in seconds, a share, or another number that is not whole."""

SlotNumber: TypeAlias = Annotated[int, Meta(ge=0, le=SLOTS - 1)]

Figure: TypeAlias = Count | Number | Estimate
"""A number that is exact (or, in a partial report, at least so much), or an estimate with its 95 % interval."""


TtlBins: TypeAlias = Annotated[
    tuple[Figure, ...], Meta(min_length=len(TTL_EDGES_S) + 1, max_length=len(TTL_EDGES_S) + 1)
]
IdleBins: TypeAlias = Annotated[
    tuple[Figure, ...], Meta(min_length=len(IDLE_EDGES_S) + 1, max_length=len(IDLE_EDGES_S) + 1)
]
LengthBins: TypeAlias = Annotated[tuple[Figure, ...], Meta(min_length=len(LENGTH_EDGES), max_length=len(LENGTH_EDGES))]
FrequencyBins: TypeAlias = Annotated[
    tuple[Figure, ...], Meta(min_length=len(FREQUENCY_EDGES) + 1, max_length=len(FREQUENCY_EDGES) + 1)
]
