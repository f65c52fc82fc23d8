"""How evenly keys lie over the 16,384 hash slots: the fullest slots, the heaviest hash tags, the nodes of a cluster.

The keys of a node stand beside its share by the number of its slots.

A hash tag that keys could share: a cluster takes a command on several keys only if all hash to one slot. Take
`user:42:profile` and `cart:42`, which do not. Both have the segment `42`, which is an identifier: as a hash tag, in
`user:{42}:profile` and `cart:{42}`, it puts them into one slot (`common_tag`). A segment that is a name, as `user`, is
not proposed: all keys of its kind would share that slot.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, binomial_tail, wilson
from rtui.analysis.report.document import ClusterNode, ClusterReport, MovingSlot, NodeLoad, Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells, Owners, plain
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.keyspace.slots import SLOTS, each_slot, find_tag, hashed_bytes, joined_ranges, key_slot
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.identifiers import Identifiers, KeySegments
from rtui.keyspace.text.segments import Separators

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
    """Upper bound of the probability that any slot is that full if the same keys are spread evenly."""

    @property
    def ratio(self) -> float:
        return self.keys / self.mean if self.mean else 0.0

    @property
    def is_chance(self) -> bool:
        return self.chance >= UNLIKELY


def skew(keys: Sequence[int], of: Sequence[tuple[int, int]] | None = None) -> Skew:
    """Compare the fullest of all 16,384 slots, or of these ones (inclusive pairs), with an even spread.

    In an even spread each key falls into one of n slots by chance, so a slot holds a binomial number of them. The
    probability that the fullest holds that many is at most n times that of one slot (Bonferroni), and hardly less.
    """
    slots = _slots_of(of)
    if not slots:
        return Skew(0, 0, 0.0, 1.0)
    total = sum(map(keys.__getitem__, slots))
    fullest = max(slots, key=keys.__getitem__)  # the first one of several
    tail = binomial_tail(keys[fullest], total, 1 / len(slots))
    return Skew(fullest, keys[fullest], total / len(slots), min(1.0, len(slots) * tail))


class SlotRangeLoad(NamedTuple):
    """The keys and bytes in the slot range of one node."""

    first: int
    last: int
    """Its last slot, inclusive."""
    load: int
    """Sum over its slots of whatever was given: keys or bytes."""


def node_loads(loads: Sequence[int], nodes: int) -> tuple[SlotRangeLoad, ...]:
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
        found.append(SlotRangeLoad(first, last, sum(loads[first : last + 1])))
        first = last + 1
        cursor = _single(cursor + width)
    return tuple(found)


def _slots_of(ranges: Sequence[tuple[int, int]] | None) -> Sequence[int]:
    if ranges is None:
        return range(SLOTS)
    return list(each_slot(ranges))


def _single(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


_SLOT = Column("slot", "slot", Unit.NUMBER, 6)
_SAMPLED = Column("sampled_keys", "in sample", Unit.KEYS, 11, "Keys of the sample")
_MEMORY = Column("memory", "memory", Unit.BYTES, 8)
_SAMPLED_MEMORY = Column("sampled_memory", "in sample", Unit.BYTES, 8, "Memory of the keys of the sample")
_SHARE_OF_MEMORY = Column("share_of_memory", "of memory", Unit.SHARE, 9, "Share of all memory")
_SHARE_OF_SAMPLED_MEMORY = Column(
    "share_of_sampled_memory",
    "of sample",
    Unit.SHARE,
    9,
    "Share of the memory of the sample, which one key can dominate",
)
_EVEN = Column("times_even", "× mean", Unit.RATIO, 7, "Multiple of the mean of all slots")
_TAGS = Column("tags", "hash tags", Unit.MIX, 0, "Hash tag of most of its keys")
_TAG = Column("tag", "hash tag", Unit.NAME, 0)
_NODE = Column("node", "node", Unit.NUMBER, 5)
_RANGE = Column("slots", "slots", Unit.TEXT, 14)


def slots(report: Report, top: int = 100) -> Table:
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
        reason = "explained by random spread" if worst.is_chance else "not explained by random spread"
        sampled = " of the sample" if cells.is_estimate else ""
        note = f"The fullest slot{sampled}, {worst.slot}, holds {humanize.ratio(worst.ratio)} the mean: {reason}."
    columns = (_SLOT, *_loads(cells), SHARE_OF_KEYS, _EVEN, *owners.columns, _TAGS)
    return Table("slots", "Fullest slots", columns, rows, tuple(fullest), note)


def slot_tags(report: Report) -> Table:
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
    """Slots are shared as by `redis-cli --cluster create`; ValueError for no nodes, or more than there are slots."""
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
    return Table("cluster", f"As a cluster of {nodes:,} nodes", columns, rows)


def _amount(cells: Cells, value: int) -> Cell:
    """Return a number of keys or bytes, of a sample as it was counted."""
    return value if cells.is_estimate else cells.amount(value)


def _loads(cells: Cells) -> tuple[Column, Column]:
    return (_SAMPLED, _SAMPLED_MEMORY) if cells.is_estimate else (KEYS, _MEMORY)


def _part(cells: Cells, keys: int, total: int, times: float = 1.0) -> float | Estimate:
    return wilson(keys, total).scaled(times) if cells.is_estimate else keys / total * times


OfNode: TypeAlias = Callable[[ClusterNode], Figure | None]
MANY: Final = 1.25
"""Multiple of its share from which a node holds many keys, unless by chance."""

FEW: Final = 0.5
"""Multiple of its share up to which a node holds few keys, unless by chance."""

_LABEL: Final = Column("node", "node", Unit.TEXT, 21, "Host and port")
_SERVER: Final = Column("server", "server", Unit.TEXT, 15, "Product, version and role")
_SLOTS: Final = Column("slots", "slots", Unit.TEXT, 14, "Slots of the node")
_EVEN_KEYS: Final = Column("times_even_keys", "× even", Unit.RATIO, 7, "Keys relative to an even spread by slots")
_EVEN_MEMORY: Final = Column("times_even_memory", "× even", Unit.RATIO, 7, "Memory relative to an even spread by slots")
_NO_TTL: Final = Column("no_ttl_share", "no TTL", Unit.SHARE, 6, "Share of keys without TTL")
_CPU: Final = Column("cpu", "CPU", Unit.DURATION, 8, "CPU time of commands on its slots, since counting started")
_SCANNED: Final = Column("scanned", "scanned", Unit.SHARE, 7, "Scanned share")
_STANDING: Final = Column("standing", "for slots", Unit.TEXT, 9, "Many or few keys for its slots")


_MAY_LACK: Final = (_NO_TTL, _STANDING, _CPU, _SCANNED)
"""Columns that are left out if nothing is known: a share without TTL, deviation, load, progress."""


def nodes(report: Report) -> Table:
    columns = (
        *(_LABEL, _SLOTS, KEYS, SHARE_OF_KEYS, _EVEN_KEYS),
        *(_MEMORY, _SHARE_OF_MEMORY, _EVEN_MEMORY, *_MAY_LACK, _SERVER),
    )
    cluster = report.cluster
    if cluster is None:
        return Table("nodes", "Nodes", columns, ())
    cells = Cells(report)
    balance = Balance(cluster)
    loads = {one.node: one for one in report.hot.nodes}
    rows = tuple(_row(cells, balance, node, loads.get(node.label)) for node in cluster.nodes)
    shown = [
        at
        for at, column in enumerate(columns)
        if column not in _MAY_LACK or any(row[at] not in (None, "") for row in rows)
    ]
    return Table(
        "nodes",
        "Nodes",
        tuple(columns[at] for at in shown),
        tuple(tuple(row[at] for at in shown) for row in rows),
        tuple(node.label for node in cluster.nodes),
        _note(cluster),
    )


def _row(cells: Cells, balance: Balance, node: ClusterNode, load: NodeLoad | None) -> tuple[Cell, ...]:
    version = f"{node.product} {node.version}".strip()
    is_read, is_whole = balance.is_read(node), balance.is_whole(node)
    is_known = is_whole and node.memory_known_keys >= plain(node.keys or 0)
    keys, memory = (node.keys, node.memory_bytes) if is_read else (None, None)
    return (
        node.label,
        humanize.slots(node.slots).removeprefix("slots ") if node.slots else "none",
        _counted(keys, is_exact=is_whole or cells.is_estimate),
        _share(keys, balance.keys),
        balance.times_even(node, lambda one: one.keys),
        _counted(memory, is_exact=is_known) if memory is not None else cells.unknown("memory") if is_read else None,
        _share(memory, balance.memory_bytes),
        balance.times_even(node, lambda one: one.memory_bytes),
        cells.known(node.no_ttl_share, "ttl") if is_read else None,
        balance.standing(node),
        None if load is None else (AtLeast(load.cpu_us / 1e6) if load.at_least else load.cpu_us / 1e6),
        node.fraction,
        " · ".join(one for one in (version, node.role if node.role == "replica" else "") if one),
    )


def is_outlier(table: Table, row: int) -> bool:
    """Whether the node of a row holds many or few keys for its slots, or was not scanned as a whole."""
    names = [column.id for column in table.columns]
    cells = dict(zip(names, table.rows[row], strict=True))
    return bool(cells.get(_STANDING.id)) or cells[KEYS.id] is None or isinstance(cells[KEYS.id], AtLeast)


class Balance:
    """The nodes of a cluster, each to be compared with its share by the number of its slots.

    The keys seen of a partly scanned node are a lower bound, so it may hold many keys, never few; others are compared
    with its extrapolated keys. A node that was not read is not judged, nor does it count as one without keys for the
    others.
    """

    def __init__(self, cluster: ClusterReport) -> None:
        self._uncovered = {one.node for one in cluster.uncovered}
        self._is_read = all(map(self.is_read, cluster.nodes))
        self.keys = _total(one.keys for one in cluster.nodes) if self._is_read else None
        self.memory_bytes = _total(one.memory_bytes for one in cluster.nodes) if self._is_read else None
        self._nodes = [one for one in cluster.nodes if self.is_read(one)]

    def is_whole(self, node: ClusterNode) -> bool:
        is_covered = not node.failure and node.label not in self._uncovered
        return is_covered and (node.fraction is None or node.fraction >= 1)

    def is_read(self, node: ClusterNode) -> bool:
        return node.keys is not None and (self.is_whole(node) or bool(plain(node.keys)) or bool(node.fraction))

    def _beside(self, node: ClusterNode, figure: OfNode, *, as_seen: bool = False) -> tuple[float, float, float] | None:
        """Return a node's figure, the total of the nodes it is compared with, and its share of their slots.

        None if the others were not read, or one of the figures is unknown. With `as_seen` the others count with the
        keys seen only.
        """
        own = figure(node)
        others = [one for one in self._nodes if one is not node and (self.is_whole(one) or one.fraction)]
        if own is None or node.slot_count <= 0 or not self.is_read(node) or not (others or self._is_read):
            return None
        total = _total([own, *(figure(one) if as_seen else self._extrapolated(one, figure(one)) for one in others)])
        slots = node.slot_count + sum(max(0, one.slot_count) for one in others)
        return None if total is None else (plain(own), total, node.slot_count / slots)

    def _extrapolated(self, node: ClusterNode, figure: Figure | None) -> float | None:
        if figure is None or self.is_whole(node):
            return None if figure is None else plain(figure)
        return plain(figure) / (node.fraction or 1.0)

    def times_even(self, node: ClusterNode, figure: OfNode) -> float | None:
        """Return how many times as much a node holds as its share of the slots would be of all."""
        found = self._beside(node, figure)
        return None if found is None else found[0] / (found[1] * found[2])

    def standing(self, node: ClusterNode) -> str:
        """Return whether a node holds many or few keys for its slots, by more than chance; empty if neither.

        By chance each key falls into any of the served slots; the number in those of a node is binomial.
        """
        for is_more in (True, False) if self.is_whole(node) else (True,):
            beside = self._beside(node, lambda one: one.keys, as_seen=not is_more)
            if beside is None or beside[2] >= 1:
                return ""
            keys, total, part = round(beside[0]), round(beside[1]), beside[2]
            if not total:
                return ""
            times = keys / (total * part)
            found, chance = (keys, part) if is_more else (total - keys, 1 - part)
            is_far = times >= MANY if is_more else times <= FEW
            if is_far and len(self._nodes) * binomial_tail(found, total, chance) < UNLIKELY:
                return "many keys" if is_more else "few keys"
        return ""


def _note(cluster: ClusterReport) -> str:
    texts = []
    for one in cluster.uncovered:
        where = f" of {one.node}" if one.node else ""
        texts.append(f"Not covered: {humanize.slots(one.slots)}{where}, {one.reason}.")
    if cluster.moving:
        texts.append(f"Being moved: {_moving(cluster.moving)}.")
    served = sum(node.slot_count for node in cluster.nodes)
    if served < SLOTS and not texts:
        texts.append(f"These nodes serve {served:,} of {SLOTS:,} slots.")
    return " ".join(texts)


def _moving(moving: Sequence[MovingSlot]) -> str:
    by_target: dict[str, list[tuple[int, int]]] = {}
    for one in moving:
        by_target.setdefault(one.to, []).append((one.slot, one.slot))
    return ", ".join(f"{humanize.slots(joined_ranges(slots))} to {target}" for target, slots in by_target.items())


def _total(figures: Iterable[Figure | None]) -> float | None:
    found = [None if one is None else plain(one) for one in figures]
    return None if None in found else sum(one for one in found if one is not None) or None


def _counted(figure: Figure | None, *, is_exact: bool) -> Cell:
    return figure if is_exact or figure is None else AtLeast(plain(figure))


def _share(figure: Figure | None, total: float | None) -> float | None:
    return None if figure is None or total is None else plain(figure) / total


MOST_SEGMENTS: Final = 64

NO_COMMON_TAG: Final = SafeText(
    "Keys with the same {tag} share a slot. No identifier is in all of these names that could be one; a word as a tag "
    "would put all keys of a kind into one slot."
)


def verdict(slots: Collection[int], nodes: Collection[str] = ()) -> SafeText:
    if len(slots) == 1:
        return SafeText(f"Together: yes. All lie in slot {next(iter(slots))}, so one multi-key command may use them.")
    of_nodes = f" of {len(nodes):,} nodes" if len(nodes) > 1 else " of one node" if nodes else ""
    return SafeText(
        f"Together: no. They lie in {len(slots):,} slots{of_nodes}, and a cluster refuses one command across slots "
        "(CROSSSLOT)."
    )


@dataclass(frozen=True, slots=True)
class CommonTag:
    """A hash tag that would put keys into one slot, and their names with it."""

    tag: bytes
    names: tuple[bytes, ...]
    """In the order of the keys; a name that is hashed by the tag already stays."""

    @property
    def slot(self) -> int:
        return key_slot(self.names[0])

    @property
    def sentence(self) -> SafeText:
        shown = display(b"{%b}" % self.tag, limit=128)
        return SafeText(f"The hash tag {shown} would put them into slot {self.slot}:")


def common_tag(names: Sequence[bytes], separators: Separators) -> CommonTag | None:
    """Return the longest identifier that all of these names could have as a tag, of several as long the first."""
    if not names:
        return None
    segments, identifiers = KeySegments(separators), Identifiers(separators.values)
    found = [_taggable(name, segments) for name in names]
    in_all = [segment for segment in found[0] if all(segment in one for one in found[1:])]
    tags = {hashed_bytes(name) for name in names if find_tag(name)[1] is not None}
    best = max((one for one in in_all if one in tags or identifiers.form(one).pattern), key=len, default=None)
    return None if best is None else CommonTag(best, tuple(one[best] for one in found))


def _taggable(name: bytes, segments: KeySegments) -> dict[bytes, bytes]:
    """Return the possible hash tags of a name, its hashed text and its segments, each with the name it would make."""
    found = {hashed_bytes(name): name}
    start = 0
    for segment, separator in segments.of(name, MOST_SEGMENTS):
        end = start + len(segment)
        tagged = name[:start] + b"{" + segment + b"}" + name[end:]
        if hashed_bytes(tagged) == segment:  # it is empty, or other braces come first
            found.setdefault(segment, tagged)
        start = end + len(separator)
    return found
