"""The lengths of the keys of each type: of all of them, or of those that were asked, and what these say of all.

Where one key in eight is asked, its length stands for those of seven others. Other keys are asked because they may be
among the longest: these say nothing of the rest, unless together all keys of a type were asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from msgspec import structs

from rtui.analysis.aggregate.figures import Figures
from rtui.analysis.aggregate.sketch import Sketch
from rtui.analysis.aggregate.tally import Tally
from rtui.analysis.aggregate.top_keys import OverCounts
from rtui.analysis.columns import Asked, Columns
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.report.document import KeyRecord, Quantiles
from rtui.analysis.report.members import LENGTH_EDGES, Figure


class Spread(NamedTuple):
    """The lengths of the keys of a type."""

    quantiles: Quantiles
    bins: tuple[Figure, ...]
    """Keys by LENGTH_EDGES."""


class Lengths:
    """The lengths of the keys of a pass by type."""

    def __init__(self, columns: Columns, standing: Mapping[bytes, Sketch], others: Mapping[bytes, Sketch]) -> None:
        """`standing` are of the keys that stand for others."""
        self._is_sampled = columns.length is Asked.SAMPLED
        self._standing, self._others = standing, others

    def spreads(
        self, types: Mapping[bytes, Tally], longest: Mapping[bytes, tuple[KeyRecord, ...]], figures: Figures
    ) -> dict[bytes, Spread]:
        """Return the spread in each type of which any are known: estimates where most keys were not asked.

        `longest` are the lists of the longest keys, which may be longer than those that stand for others.
        """
        found = {}
        for key_type, tally in types.items():
            parts = [sketches[key_type] for sketches in (self._standing, self._others) if key_type in sketches]
            is_whole = self._is_sampled and sum(part.count for part in parts) >= tally.keys
            if not is_whole and key_type not in self._standing:
                continue
            joined = Sketch()
            for part in parts if is_whole else parts[:1]:
                joined.merge(part)
            quantiles = figures.quantiles(joined, of=tally.keys if self._is_sampled else None)
            most = max((one.length or 0 for one in longest.get(key_type, ())), default=0)
            above = [joined.above(edge) for edge in LENGTH_EDGES]
            bins = [count - longer for count, longer in pairwise((*above, 0))]
            found[key_type] = Spread(
                structs.replace(quantiles, max=max(quantiles.max, most)),
                tuple(figures.among(count, joined.count, tally.keys) for count in bins),
            )
        return found

    def over(self, counts: OverCounts, types: Mapping[bytes, Tally], figures: Figures) -> dict[bytes, Figure]:
        """Return by type how many keys are above the thresholds.

        An estimate, and at least those that are known to be, where keys were not asked for a length that may be.
        """
        found: dict[bytes, Figure] = {}
        for key_type, known in counts.known.items():
            found[key_type] = figures.keys(known)
            if key_type in counts.uncertain and key_type in types:
                asked = self._standing[key_type].count if key_type in self._standing else 0
                above = counts.sampled.get(key_type, 0)  # some by their memory, though their length is not known
                guess = as_estimate(figures.among(above, max(asked, above), types[key_type].keys))
                found[key_type] = Estimate(max(guess.low, known), max(guess.value, known), max(guess.high, known))
        return found
