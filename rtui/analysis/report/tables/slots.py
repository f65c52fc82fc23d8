"""How evenly keys lie over the 16,384 hash slots: the fullest slots, the heaviest hash tags, the nodes of a cluster."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, binomial_tail, wilson
from rtui.analysis.report.document import Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells, Owners
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.keyspace.slots import SLOTS, each_slot

UNLIKELY: Final = 0.01
"""A fullest slot that an even spread would show less often than this is not chance."""


@dataclass(frozen=True, slots=True)
class Skew:
    """How far the fullest slot is above an even spread."""

    slot: int
    """The slot with most keys, the lowest of several."""
    keys: int
    mean: float
    """Keys a slot, over all slots looked at."""
    chance: float
    """At most how probable it is that any slot of an even spread of so many keys is that full."""

    @property
    def ratio(self) -> float:
        """The fullest slot in means; 0 where there are no keys."""
        return self.keys / self.mean if self.mean else 0.0

    @property
    def is_chance(self) -> bool:
        """Whether an even spread explains it."""
        return self.chance >= UNLIKELY


def skew(keys: Sequence[int], of: Sequence[tuple[int, int]] | None = None) -> Skew:
    """Hold the fullest of all 16,384 slots, or of these ones (inclusive pairs), against an even spread.

    Each key of an even spread falls into one of n slots by chance, so a slot holds a binomial number of them. The
    probability that the fullest holds so many is at most n times that of one slot (Bonferroni), and hardly less.
    """
    slots = _slots_of(of)
    if not slots:
        return Skew(0, 0, 0.0, 1.0)
    total = sum(map(keys.__getitem__, slots))
    fullest = max(slots, key=keys.__getitem__)  # the first one of several
    tail = binomial_tail(keys[fullest], total, 1 / len(slots))
    return Skew(fullest, keys[fullest], total / len(slots), min(1.0, len(slots) * tail))


class NodeLoad(NamedTuple):
    """What one node of a cluster would hold."""

    first: int
    """Its first slot."""
    last: int
    """Its last slot, inclusive."""
    load: int
    """Sum over its slots of whatever was given: keys or bytes."""


def node_loads(loads: Sequence[int], nodes: int) -> tuple[NodeLoad, ...]:
    """Cut the 16,384 slots among n primaries just as `redis-cli --cluster create` does, and sum up each part.

    redis-cli counts in single precision (clusterManagerCommandCreate in redis-cli.c), and so does this.
    """
    if not 1 <= nodes <= SLOTS:
        raise ValueError(f"{nodes} nodes cannot share {SLOTS} slots")
    width = _single(SLOTS / nodes)
    cursor = 0.0
    first = 0
    found = []
    for node in range(nodes):
        last = math.floor(_single(_single(cursor + width) - 1) + 0.5)
        last = SLOTS - 1 if last >= SLOTS or node == nodes - 1 else max(last, first)
        found.append(NodeLoad(first, last, sum(loads[first : last + 1])))
        first = last + 1
        cursor = _single(cursor + width)
    return tuple(found)


def _slots_of(ranges: Sequence[tuple[int, int]] | None) -> Sequence[int]:
    """Return these slots one by one, all for None."""
    if ranges is None:
        return range(SLOTS)
    return list(each_slot(ranges))


def _single(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


_SLOT = Column("slot", "slot", Unit.NUMBER, 6)
_SAMPLED = Column("sampled_keys", "in sample", Unit.KEYS, 11, "Keys of the sample")
_MEMORY = Column("memory", "bytes", Unit.BYTES, 8)
_SAMPLED_MEMORY = Column("sampled_memory", "in sample", Unit.BYTES, 8, "Bytes of the keys of the sample")
_SHARE_OF_MEMORY = Column("share_of_memory", "of bytes", Unit.SHARE, 8, "Of all bytes")
_SHARE_OF_SAMPLED_MEMORY = Column(
    "share_of_sampled_memory", "of sample", Unit.SHARE, 9, "Of the bytes of the sample, which a single key can decide"
)
_EVEN = Column("times_even", "× mean", Unit.RATIO, 7, "How many times the mean of all slots")
_TAGS = Column("tags", "hash tags", Unit.MIX, 0, "What stands between the braces of most of its keys")
_TAG = Column("tag", "hash tag", Unit.NAME, 0)
_NODE = Column("node", "node", Unit.NUMBER, 5)
_RANGE = Column("slots", "slots", Unit.TEXT, 14)


def slots(report: Report, top: int = 100) -> Table:
    """Return the slots with most keys, the hash tags that load them, and whether chance explains the fullest."""
    found = report.summary.slots
    cells, owners = Cells(report), Owners(report)
    total = sum(found.keys)
    compared = _slots_of(found.compared)
    even = (total if found.listed is None else sum(map(found.keys.__getitem__, compared))) / max(1, len(compared))
    tags: defaultdict[int, list[tuple[bytes, Figure]]] = defaultdict(list)
    for tag in found.tags:
        tags[tag.slot].append((tag.tag, tag.keys))
    least = max(1, min(sorted(found.keys, reverse=True)[:top], default=1))
    fullest = [slot for slot, keys in enumerate(found.keys) if keys >= least]
    fullest = sorted(fullest, key=found.keys.__getitem__, reverse=True)[:top]  # equal ones stay in order
    rows = tuple(
        (
            slot,
            _amount(cells, found.keys[slot]),
            cells.part(*found.bytes_in(slot, slot)),
            _part(cells, found.keys[slot], total),
            _part(cells, found.keys[slot], total, total / even) if even else None,
            *owners.cells(slot),
            tuple(tags[slot]) or None,
        )
        for slot in fullest
    )
    note = ""
    if total:
        worst = skew(found.keys, found.compared)
        reason = "as chance would have it" if worst.is_chance else "more than chance explains"
        sampled = " of the sample" if cells.is_estimate else ""
        note = f"The fullest slot{sampled}, {worst.slot}, holds {humanize.ratio(worst.ratio)} the mean: {reason}."
    columns = (_SLOT, *_loads(cells), SHARE_OF_KEYS, _EVEN, *owners.columns, _TAGS)
    return Table("slots", "Fullest slots", columns, rows, tuple(fullest), note)


def slot_tags(report: Report) -> Table:
    """Return the hash tags with most keys."""
    cells, owners = Cells(report), Owners(report)
    found = report.summary.slots
    rows: list[tuple[Cell, ...]] = []
    for tag in found.tags:
        keys = AtLeast(tag.keys) if tag.at_least and isinstance(tag.keys, int) else cells.amount(tag.keys)
        _, is_whole = found.bytes_in(tag.slot, tag.slot)
        rows.append((tag.tag, tag.slot, keys, cells.part(tag.memory_bytes, is_whole), *owners.cells(tag.slot)))
    columns = (_TAG, _SLOT, *_loads(cells), *owners.columns)
    return Table("slot_tags", "Heaviest hash tags", columns, tuple(rows), tuple(tag.slot for tag in found.tags))


def cluster_of(report: Report, nodes: int) -> Table:
    """Return what each of n primaries would hold if they shared the slots as `redis-cli --cluster create` does.

    ValueError for no nodes, or more than there are slots.
    """
    found = report.summary.slots
    cells = Cells(report)
    keys = node_loads(found.keys, nodes)
    memory = None if found.memory_bytes is None else node_loads(found.memory_bytes, nodes)
    total, total_memory = sum(found.keys), sum(found.memory_bytes or ())
    rows = tuple(
        (
            at + 1,
            f"{load.first} – {load.last}",
            _amount(cells, load.load),
            cells.part(*found.bytes_in(load.first, load.last)),
            _part(cells, load.load, total) if total else None,
            memory[at].load / total_memory if memory is not None and total_memory else None,
            _part(cells, load.load, total, nodes) if total else None,
        )
        for at, load in enumerate(keys)
    )
    share_of_memory = _SHARE_OF_SAMPLED_MEMORY if cells.is_estimate else _SHARE_OF_MEMORY
    columns = (_NODE, _RANGE, *_loads(cells), SHARE_OF_KEYS, share_of_memory, _EVEN)
    return Table("cluster", f"If this were a cluster of {nodes:,}", columns, rows)


def _amount(cells: Cells, value: int) -> Cell:
    """Return a number of keys or bytes, of a sample as it was counted."""
    return value if cells.is_estimate else cells.amount(value)


def _loads(cells: Cells) -> tuple[Column, Column]:
    """Return the columns of keys and of bytes, which in an estimate are those of the sample."""
    return (_SAMPLED, _SAMPLED_MEMORY) if cells.is_estimate else (KEYS, _MEMORY)


def _part(cells: Cells, keys: int, total: int, times: float = 1.0) -> float | Estimate:
    """Return a number of keys as a share of all, so many times; in an estimate with its interval."""
    return wilson(keys, total).scaled(times) if cells.is_estimate else keys / total * times
