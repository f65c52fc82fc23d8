"""When keys expire, in the bins of a table of keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rtui.analysis.report.expiries import ExpiryBins
from rtui.table.lives import MINUTE_MS, Lives
from rtui.table.sums import Chunk, whole


def binned(
    minutes: Sequence[int], sizes: Sequence[int | None] | None = None, *, origin_min: int, coarser: int = 0
) -> ExpiryBins:
    """Expiries by the minute since the epoch, with the sizes that are known, in bins that are joined so many times."""
    lives = Lives(origin_min)
    known = [None] * len(minutes) if sizes is None else [*sizes]
    memory = np.array([size or 0 for size in known], np.int64), np.array([size is not None for size in known], bool)
    if minutes:
        moments = np.array(minutes, np.int64) * MINUTE_MS
        left = np.maximum(moments - origin_min * MINUTE_MS, 0)
        lives.add(Chunk(np.zeros(len(minutes), np.int64)), np.ones(len(minutes), bool), left, moments, memory)
    lives._join(coarser)
    _, starts, keys, low, high, squares = lives.expiries()
    counted = (
        (start, count, whole(lower, upper), int(square))
        for start, count, lower, upper, square in zip(
            *(column.tolist() for column in (starts, keys, low, high, squares)), strict=True
        )
    )
    return ExpiryBins(origin_min, lives.coarseness, counted)
