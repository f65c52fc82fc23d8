"""Adds the patterns of a report up from the leaves to the root, as `counted` describes.

The tally of a node is that of its own keys and those of its children merged, whatever their types, which are only
counted. What keys of one type add up to is merged once, from all nodes. A node without keys of its own that has a
single child, such as `user` in `user:{id}`, has the child's tally.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from rtui.analysis.aggregate.expiry_bins import ExpiryBins, ExpiryScale
from rtui.analysis.aggregate.folding import FoldedNode
from rtui.analysis.aggregate.tally import Tally
from rtui.keyspace.slices import Slicer, Slices


class SummedPatterns:
    """The patterns of a folded tree; see `CountedPatterns`."""

    def __init__(self, root: FoldedNode, scale: ExpiryScale) -> None:
        self.root = root
        self.by_type: dict[bytes | None, Tally] = {}
        self._scale = scale

    def add_up(self, slicer: Slicer) -> Slices[None]:
        """Add up all nodes, once."""
        of_type: defaultdict[bytes | None, list[Tally]] = defaultdict(list)
        yield from self._add_up(self.root, of_type, slicer)
        for key_type, tallies in of_type.items():
            self.by_type[key_type] = yield from self._merged(tallies, slicer)

    def _add_up(
        self, node: FoldedNode, of_type: defaultdict[bytes | None, list[Tally]], slicer: Slicer
    ) -> Slices[None]:
        for child in node.children.values():
            yield from self._add_up(child, of_type, slicer)
        below = node.below
        node.expiring = sum(child.expiring for child in below)
        if len(below) == 1 and not node.tallies and node is not self.root:
            node.is_alike, node.tally, node.types = True, below[0].tally, below[0].types
            return
        node.types = Counter()
        tallies = [child.tally for child in below]
        for key_type, own in node.tallies.items():
            keys = sum(tally.keys for tally in own)
            node.own_keys += keys
            node.types[key_type] += keys
            node.expiring += sum(tally.expiring for tally in own)
            of_type[key_type] += own
            tallies += own
        for child in below:
            node.types.update(child.types)
        node.tally = yield from self._merged(tallies, slicer)

    def _merged(self, tallies: list[Tally], slicer: Slicer) -> Slices[Tally]:
        """Return the sum of tallies, without the times of expiry; of one alone, itself."""
        if len(tallies) == 1:
            return tallies[0]
        total = Tally(self._scale)
        for tally in tallies:
            total.merge(tally, expiries=False)
            yield from slicer.pause()
        return total

    def release(self, slicer: Slicer) -> Slices[None]:
        """Free all nodes but the root, which takes tens of milliseconds where they are thousands."""
        nodes = [self.root]
        for node in nodes:  # grows while it is walked
            nodes += node.children.values()
            node.children.clear()
        while nodes:
            nodes.pop()
            yield from slicer.pause()

    def expiries(self, nodes: Sequence[FoldedNode], slicer: Slicer) -> Slices[list[tuple[ExpiryBins, int]]]:
        """Return for each node, none of which adds up to the same as one below it, when its keys expire."""
        found: dict[FoldedNode, tuple[ExpiryBins, int]] = {}
        for node in sorted(nodes, key=lambda one: one.expiring):  # those below others first
            bins, largest = ExpiryBins(self._scale), 0
            waiting = [node]
            while waiting:
                one = waiting.pop()
                if one in found:
                    bins.merge(found[one][0])
                    largest = max(largest, found[one][1])
                    continue
                waiting += one.children.values()
                for tally in one.own_tallies():
                    if tally.ttl is not None and tally.ttl.expiries is not None:
                        bins.merge(tally.ttl.expiries)
                        largest = max(largest, tally.ttl.expiring_largest)
                yield from slicer.pause()
            found[node] = bins, largest
        return [found[node] for node in nodes]
