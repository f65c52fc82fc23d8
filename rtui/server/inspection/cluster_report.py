"""The nodes of a cluster in a report: the keys of each, its progress, and the slots that were not covered.

Keys and bytes of a node are those of its slots, which are counted as one for all nodes: so keys of a slot that moved
count for the node that serves it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import structs

from rtui.analysis import humanize
from rtui.analysis.report.document import (
    ClusterNode,
    ClusterReport,
    Coverage,
    CoverageKind,
    MovingSlot,
    SlotRanges,
    SlotsReport,
    UncoveredSlots,
)
from rtui.keyspace.slots import SLOTS, joined_ranges
from rtui.server.inspection.inspected_nodes import NodeInspection
from rtui.server.inspection.report_head import cost_report, server_report
from rtui.server.scan.parted_scan import PartedScan
from rtui.server.scan.progress import NodeProgress
from rtui.server.scan.scan import Scan

NAMED: Final = 3
"""So many of the nodes whose slots were not covered are named in the head of a report; the rest is counted."""

TtlCounts: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""By slot: the keys whose time to live is known, and how many of these never expire."""

UNSERVED: Final = "no node serves them"


def cluster_report(
    nodes: Sequence[NodeInspection],
    scan: Scan | PartedScan | None,
    slots: SlotsReport,
    ttl_counts: TtlCounts,
    label_of: Callable[[str], str],
) -> ClusterReport:
    """Return the cluster section of a report.

    `scan` is None for an estimate; `label_of` returns `host:port` of a node by its id: of the primary, even if a
    replica was asked.
    """
    progress = {one.id: one for one in (() if scan is None else scan.nodes)}
    labels = [label_of(node.node.id or "") for node in nodes]
    found = [
        _node(node, label, progress.get(node.node.id), slots, ttl_counts, is_estimate=scan is None)
        for node, label in zip(nodes, labels, strict=True)
    ]
    if scan is not None and scan.state.is_over and not scan.control.is_stopped:
        uncovered = _uncovered(found, scan)
    else:  # not covered are all other slots
        uncovered = [UncoveredSlots(one.slots, one.label, one.failure) for one in found if one.failure]
        joined = [(-1, -1), *joined_ranges([one for node in found for one in node.slots]), (SLOTS, SLOTS)]
        gaps = ((before[1] + 1, after[0] - 1) for before, after in pairwise(joined))
        unserved = tuple((first, last) for first, last in gaps if first <= last)
        if unserved:
            uncovered.append(UncoveredSlots(unserved, "", UNSERVED))
    moving = () if scan is None else _moving(found, scan, label_of)
    return ClusterReport(tuple(sorted(found, key=lambda node: node.slots)), tuple(uncovered), moving)


def _moving(
    nodes: Sequence[ClusterNode], scan: Scan | PartedScan, label_of: Callable[[str], str]
) -> tuple[MovingSlot, ...]:
    """Return the slots that nodes are handing over, as they said last."""
    labels, owners = {one.id: one.label for one in nodes}, scan.owners
    found = ((slot, labels.get(owners[slot] or ""), target) for slot, target in sorted(scan.moves.items()))
    return tuple(MovingSlot(slot, label, label_of(target)) for slot, label, target in found if label is not None)


def _uncovered(nodes: Sequence[ClusterNode], scan: Scan | PartedScan) -> list[UncoveredSlots]:
    """Return the uncovered slots, each with the node that serves it, or served it when the analysis began."""
    reasons = {slot: one.why for one in scan.uncovered for first, last in one.slots for slot in range(first, last + 1)}
    uncovered: list[UncoveredSlots] = []
    for node in nodes:
        by_reason: dict[str, list[int]] = {}
        for slot in node.served:
            if slot in reasons:
                why = reasons.pop(slot).removesuffix(".")
                by_reason.setdefault(node.failure or why, []).append(slot)
        uncovered += [UncoveredSlots(_ranges(found), node.label, why) for why, found in by_reason.items()]
    return uncovered + ([UncoveredSlots(_ranges(reasons), "", UNSERVED)] if reasons else [])


def _ranges(slots: Iterable[int]) -> SlotRanges:
    return joined_ranges((slot, slot) for slot in slots)


def _node(
    inspection: NodeInspection,
    label: str,
    progress: NodeProgress | None,
    slots: SlotsReport,
    ttl_counts: TtlCounts,
    *,
    is_estimate: bool,
) -> ClusterNode:
    server = server_report(inspection.connection, inspection.plan)
    failure = inspection.failure or (None if progress is None else progress.failure)
    ranges = inspection.slots or ()
    found = ClusterNode(
        id=inspection.node.id,
        label=label,
        role=server.role,
        product=server.product,
        version=server.version,
        slots=ranges,
        keys=inspection.size,
        failure="" if failure is None else failure.removesuffix("."),
    )
    if is_estimate:
        return found
    parts = [slots.bytes_in(first, last) for first, last in ranges]
    known = [size for size, _ in parts if size is not None]
    keys, unmeasured = _sum(slots.keys, ranges), slots.unmeasured
    lacking = 0 if unmeasured is None else _sum(unmeasured, ranges)
    ttl_known, no_ttl = (_sum(counts, ranges) for counts in ttl_counts)
    fraction = None if progress is None else progress.fraction
    if not keys and (not fraction if failure else fraction == 0):  # nothing of it was read
        return structs.replace(found, keys=None, fraction=fraction)
    is_known = slots.memory_bytes is not None and (known or not keys)
    return structs.replace(
        found,
        keys=keys,
        memory_bytes=sum(known) if is_known else None,
        memory_known_keys=keys - lacking if is_known else 0,
        no_ttl_share=no_ttl / ttl_known if ttl_known else None,
        fraction=fraction,
        cost=found.cost if progress is None else cost_report(progress.cost),
    )


def _sum(counts: Sequence[int], ranges: Sequence[tuple[int, int]]) -> int:
    return sum(sum(counts[first : last + 1]) for first, last in ranges)


def covered(coverage: Coverage, cluster: ClusterReport | None, why_ended: str | None) -> Coverage:
    """Return the coverage of a report: partial, with a reason that names them, if slots were not covered.

    `why_ended`: why the whole run was ended early, if it was. The fraction of the whole scan accounts for nodes that
    were begun but not finished; slots that no scan began or left over are subtracted here.
    """
    if cluster is None or not cluster.uncovered or coverage.kind is CoverageKind.ESTIMATE:
        return coverage
    reasons = [why_ended] if why_ended else []
    reasons += [_uncovered_text(one) for one in cluster.uncovered[:NAMED]]
    more = len(cluster.uncovered) - NAMED
    if more > 0:
        reasons.append(f"and those of {humanize.counted(more, 'more node')}")
    unfinished = {node.label for node in cluster.nodes if node.fraction is not None and node.fraction < 1}
    lost = joined_ranges([one for part in cluster.uncovered if part.node not in unfinished for one in part.slots])
    of_all = 1 - sum(last - first + 1 for first, last in lost) / SLOTS
    fraction = None if coverage.fraction is None else coverage.fraction * of_all
    return structs.replace(
        coverage, kind=CoverageKind.PARTIAL, fraction=fraction, total_keys=None, reason="; ".join(reasons)
    )


def _uncovered_text(uncovered: UncoveredSlots) -> str:
    where = f" of {uncovered.node}" if uncovered.node else ""
    return f"{humanize.slots(uncovered.slots)}{where} were not covered ({uncovered.reason})"
