"""What a report says of the nodes of a cluster: what each holds, how far its scan got, which slots were not covered.

Keys and bytes of a node are those of its slots, which are counted as one for all nodes: so keys of a slot that moved
count where it was when the analysis began.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import structs

from rtui.analysis import humanize
from rtui.analysis.report.document import (
    ClusterNode,
    ClusterReport,
    Coverage,
    CoverageKind,
    SlotRanges,
    SlotsReport,
    UncoveredSlots,
)
from rtui.keyspace.slots import SLOTS, joined_ranges
from rtui.server.inspection.node_inspection import NodeInspection
from rtui.server.inspection.report_head import cost_report, server_report
from rtui.server.scan.progress import NodeProgress

NAMED: Final = 3
"""So many of the nodes whose slots were not covered are named in the head of a report; the rest is counted."""

UNSERVED: Final = "no node serves them"


def cluster_report(
    nodes: Sequence[NodeInspection], scanned: Sequence[NodeProgress], slots: SlotsReport, *, is_estimate: bool
) -> ClusterReport | None:
    """Return what is said of all nodes, None of a server alone; `scanned` is how far the scan of each is, if any is."""
    if not nodes[0].node.id:
        return None
    progress = {one.id: one for one in scanned}
    found = [_node(node, progress.get(node.node.id), slots, is_estimate=is_estimate) for node in nodes]
    uncovered = [UncoveredSlots(one.slots, one.label, one.failure) for one in found if one.failure]
    unserved = _others([one for node in found for one in node.slots])
    if unserved:
        uncovered.append(UncoveredSlots(unserved, "", UNSERVED))
    return ClusterReport(tuple(sorted(found, key=lambda node: node.slots)), tuple(uncovered))


def _node(
    inspection: NodeInspection, progress: NodeProgress | None, slots: SlotsReport, *, is_estimate: bool
) -> ClusterNode:
    server = server_report(inspection.connection, inspection.plan)
    failure = inspection.failure or (None if progress is None else progress.failure)
    ranges = inspection.slots or ()
    found = ClusterNode(
        id=inspection.node.id,
        label=inspection.label,
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
    keys = sum(sum(slots.keys[first : last + 1]) for first, last in ranges)
    unmeasured = slots.unmeasured
    lacking = 0 if unmeasured is None else sum(sum(unmeasured[first : last + 1]) for first, last in ranges)
    is_known = slots.memory_bytes is not None and (known or not keys)
    return structs.replace(
        found,
        keys=keys,
        memory_bytes=sum(known) if is_known else None,
        memory_known_keys=keys - lacking if is_known else 0,
        fraction=None if progress is None else progress.fraction,
        cost=found.cost if progress is None else cost_report(progress.cost),
    )


def _others(ranges: Sequence[tuple[int, int]]) -> SlotRanges:
    """Return the slots that are in none of these ranges."""
    joined = [(-1, -1), *joined_ranges(ranges), (SLOTS, SLOTS)]
    gaps = ((before[1] + 1, after[0] - 1) for before, after in pairwise(joined))
    return tuple((first, last) for first, last in gaps if first <= last)


def covered(coverage: Coverage, cluster: ClusterReport | None, why_ended: str | None) -> Coverage:
    """Return the coverage of a report, partial where slots were not covered; the reason names them.

    `why_ended` is why the whole run was ended before it was done, if it was.
    """
    if cluster is None or not cluster.uncovered or coverage.kind is CoverageKind.ESTIMATE:
        return coverage
    reasons = [why_ended] if why_ended else []
    reasons += [_uncovered_text(one) for one in cluster.uncovered[:NAMED]]
    more = len(cluster.uncovered) - NAMED
    if more > 0:
        reasons.append(f"and those of {humanize.counted(more, 'more node')}")
    fraction = coverage.fraction
    if coverage.kind is CoverageKind.EXACT:
        lost = joined_ranges([one for part in cluster.uncovered for one in part.slots])
        fraction = 1 - sum(last - first + 1 for first, last in lost) / SLOTS
    return structs.replace(
        coverage, kind=CoverageKind.PARTIAL, fraction=fraction, total_keys=None, reason="; ".join(reasons)
    )


def _uncovered_text(uncovered: UncoveredSlots) -> str:
    where = f" of {uncovered.node}" if uncovered.node else ""
    return f"{humanize.slots(uncovered.slots)}{where} were not covered ({uncovered.reason})"
