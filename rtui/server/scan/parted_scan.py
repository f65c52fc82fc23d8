"""The scan of a cluster that is split into parts run elsewhere, each with the slots of some nodes, as one scan.

Each slot is in one part, which scans it to its end wherever it moves. So a slot is delivered once if its part delivers
it once, and coverage of the whole follows from that of the parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rtui.keyspace.slots import SLOTS, joined_ranges
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.cluster_scan import UncoveredByNode, reason_of, repeats_note
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import NAMED, Scan


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Progress of one part's scan and, once it has ended, the outcome for its slots. Can be pickled."""

    progress: Progress = field(default_factory=Progress)
    cost: Cost = field(default_factory=Cost)
    nodes: tuple[NodeProgress, ...] = ()
    owners: Mapping[int, str | None] = field(default_factory=dict)
    """By slot of the part the id of the node that serves it."""
    moves: Mapping[int, str] = field(default_factory=dict)
    """Slots that are being moved, each with the id of the node that is to have it."""
    uncovered: tuple[UncoveredByNode, ...] = ()
    unlisted: frozenset[int] = frozenset()
    most_repeated: int = 0
    repeats_possible: bool = False

    @classmethod
    def of(cls, scan: Scan, keys: int) -> ScanPart:
        """Return the state of a scan that has not ended, with `keys` keys counted."""
        return cls(replace(scan.progress, keys=keys), scan.cost, tuple(scan.nodes))

    @classmethod
    def ended(cls, scan: Scan, keys: int, slots: Collection[int]) -> ScanPart:
        """Return the final state of a scan of these slots that has ended."""
        wanted, owners = frozenset(slots), scan.owners
        return replace(
            cls.of(scan, keys),
            owners={slot: owners[slot] for slot in slots},
            moves={slot: target for slot, target in scan.moves.items() if slot in wanted},
            uncovered=tuple(scan.uncovered),
            unlisted=frozenset(scan.unlisted & wanted),
            most_repeated=scan.most_repeated,
            repeats_possible=scan.repeats_possible,
        )

    @classmethod
    def lost(cls, before: ScanPart, nodes: Mapping[str, tuple[SafeText, Collection[int]]], why: SafeText) -> ScanPart:
        """Return a lost part, from which nothing was delivered in the end; `nodes`: labels and slots by id.

        Slots that no node serves have an empty id.
        """
        spent = {one.id: one.cost for one in before.nodes}
        return cls(
            Progress(ScanState.FAILED, 0.0, reason=why),
            before.cost,
            tuple(
                NodeProgress(node_id, label, ScanState.FAILED, 0.0, 0, 0.0, spent.get(node_id, Cost()), failure=why)
                for node_id, (label, _) in nodes.items()
                if node_id
            ),
            uncovered=tuple(
                UncoveredByNode(joined_ranges((slot, slot) for slot in slots), node_id or None, label, why)
                for node_id, (label, slots) in nodes.items()
                if slots
            ),
        )


class PartedScan:
    """A scan that is made up of parts and fed with their progress; `begin` and `end` it once. It has the properties of
    `Scan`."""

    def __init__(self, control: RunControl, nodes: Sequence[int]) -> None:
        """`nodes`: the number of nodes of each part."""
        self.control = control
        self.parts = [ScanPart() for _ in nodes]
        self._weights = [*nodes]
        self._loop = asyncio.get_running_loop()
        self._began_at: float | None = None
        self._took_s: float | None = None

    def begin(self) -> None:
        self._began_at = self._loop.time()

    def end(self) -> None:
        self._took_s = self._elapsed_s

    @property
    def _elapsed_s(self) -> float:
        if self._took_s is not None:
            return self._took_s
        return 0.0 if self._began_at is None else self._loop.time() - self._began_at

    @property
    def state(self) -> ScanState:
        states = {part.progress.state for part in self.parts}
        if self._took_s is not None:
            if states == {ScanState.FAILED} and not self.control.is_stopped:
                return ScanState.FAILED
            return ScanState.DONE if states == {ScanState.DONE} else ScanState.STOPPED
        if self._began_at is None:
            return ScanState.READY
        if self.control.is_held:
            return ScanState.PAUSED
        return ScanState.WAITING if ScanState.WAITING in states else ScanState.RUNNING

    @property
    def progress(self) -> Progress:
        """Progress of all parts together, now; `keys` are keys counted."""
        state, found = self.state, [part.progress for part in self.parts]
        known = [
            one.fraction * weight for one, weight in zip(found, self._weights, strict=True) if one.fraction is not None
        ]
        fraction = sum(known) / sum(self._weights) if len(known) == len(found) else None
        keys = sum(one.keys for one in found)
        going = [one for one in found if one.state is ScanState.RUNNING]
        left = [one.eta_s for one in going if one.eta_s is not None]
        speed = sum(one.keys_per_s for one in going)
        if state.is_over:
            speed = keys / self._elapsed_s if self._elapsed_s > 0 else 0.0
        return Progress(
            state=state,
            fraction=1.0 if state is ScanState.DONE else fraction,
            keys=keys,
            keys_per_s=speed if state is ScanState.RUNNING or state.is_over else 0.0,
            eta_s=max(left) if left and state is ScanState.RUNNING else None,
            reason=self._reason(state),
            notes=tuple(dict.fromkeys(note for one in found for note in one.notes)),
        )

    def _reason(self, state: ScanState) -> SafeText | None:
        if state is ScanState.WAITING:
            return next((one.progress.reason for one in self.parts if one.progress.state is state), None)
        if state not in {ScanState.STOPPED, ScanState.FAILED} or self.control.is_stopped:
            return None
        return reason_of(self.uncovered, NAMED)

    @property
    def cost(self) -> Cost:
        found = sum((part.cost for part in self.parts), Cost())
        return replace(found, elapsed_s=self._elapsed_s)

    @property
    def nodes(self) -> list[NodeProgress]:
        """How far each node is; of one that two parts have asked, that of the part that it is of, with both costs."""
        found: dict[str | None, NodeProgress] = {}
        for one in sorted((one for part in self.parts for one in part.nodes), key=lambda one: -one.keys):
            known = found.setdefault(one.id, one)
            if known is not one:
                found[one.id] = replace(known, keys=known.keys + one.keys, cost=known.cost + one.cost)
        return [*found.values()]

    @property
    def unlisted(self) -> set[int]:
        return set[int]().union(*(part.unlisted for part in self.parts))

    @property
    def uncovered(self) -> list[UncoveredByNode]:
        return [one for part in self.parts for one in part.uncovered]

    @property
    def owners(self) -> Sequence[str | None]:
        found: dict[int, str | None] = {}
        for part in self.parts:
            found |= part.owners
        return [found.get(slot) for slot in range(SLOTS)] if found else ()

    @property
    def moves(self) -> Mapping[int, str]:
        return {slot: target for part in self.parts for slot, target in part.moves.items()}

    @property
    def most_repeated(self) -> int:
        return sum(part.most_repeated for part in self.parts)

    @property
    def repeats_possible(self) -> bool:
        return any(part.repeats_possible for part in self.parts)

    @property
    def notes(self) -> tuple[SafeText, ...]:
        notes = [SafeText(note.value) for note in self.progress.notes]
        return (*notes, repeats_note(self.most_repeated)) if self.most_repeated else tuple(notes)
