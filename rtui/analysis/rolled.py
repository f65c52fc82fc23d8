"""What all keys at and below a pattern add up to, and how a report says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from rtui.analysis.expiry_bins import ExpiryScale
from rtui.analysis.figures import Figures, sums_of
from rtui.analysis.report import Figure, Stats
from rtui.analysis.sample_bytes import Sums
from rtui.analysis.sketch import Sketch
from rtui.analysis.tally import Life, Tally


class Rolled:
    """The tallies of keys by type, and of all together; not to be changed, since parts share them."""

    __slots__ = ("by_kind", "tally")

    def __init__(self, parts: Iterable[Mapping[bytes | None, Tally]], scale: ExpiryScale) -> None:
        tallies: dict[bytes | None, list[Tally]] = {}
        for part in parts:
            for kind, tally in part.items():
                tallies.setdefault(kind, []).append(tally)
        self.by_kind = {kind: _sum(found, scale) for kind, found in tallies.items()}
        """By type, None for keys whose type is not known."""
        self.tally = _sum(list(self.by_kind.values()), scale)

    def stats(self, figures: Figures) -> Stats:
        """Say it."""
        kinds = [(kind, tally.keys) for kind, tally in self.by_kind.items() if kind is not None]
        return stats_of(self.tally, sorted(kinds, key=lambda pair: (-pair[1], pair[0])), figures)


def _sum(tallies: Sequence[Tally], scale: ExpiryScale) -> Tally:
    """The sum of tallies; of one alone, itself."""
    if len(tallies) == 1:
        return tallies[0]
    total = Tally(scale)
    for tally in tallies:
        total.merge(tally, expiries=False)
    return total


def stats_of(tally: Tally, kinds: Iterable[tuple[bytes, int]], figures: Figures) -> Stats:
    """Say what keys of these types add up to."""
    memory, life = tally.memory, tally.life
    return Stats(
        keys=figures.keys(tally.keys),
        share_keys=figures.share_keys(tally.keys),
        memory_bytes=None if memory is None else figures.memory(memory.sum, partial(sums_of, memory)),
        share_memory=None if memory is None else figures.share_memory(memory.sum, partial(sums_of, memory)),
        memory_known_keys=0 if memory is None else memory.count,
        memory=None if memory is None else figures.memory_quantiles(memory),
        no_ttl_keys=None if life is None else figures.keys(life.no_ttl_keys),
        no_ttl_share=None if life is None else figures.share(life.no_ttl_keys, life.known),
        no_ttl_memory_bytes=None if life is None or memory is None else _lasting(life, memory, figures),
        ttl=None if life is None else _bins(life.bins, figures),
        soonest_expiry_s=None if life is None or life.soonest_ms is None else life.soonest_ms / 1000,
        idle=None if tally.idle is None else _bins(tally.idle, figures),
        frequency=None if tally.frequency is None else _bins(tally.frequency, figures),
        types=tuple((kind, figures.keys(keys)) for kind, keys in kinds),
    )


def _lasting(life: Life, memory: Sketch, figures: Figures) -> Figure | None:
    """Say how many bytes never expire; None where they are known of none of the keys that do not."""
    if life.no_ttl_keys and not life.no_ttl_memory_bytes:
        return None
    lasting = Sums(float(life.no_ttl_memory_bytes), float(life.no_ttl_squares), life.no_ttl_largest)
    return figures.memory(life.no_ttl_memory_bytes, lambda: lasting)


def _bins(bins: list[int], figures: Figures) -> tuple[Figure, ...]:
    return tuple(map(figures.keys, bins))
