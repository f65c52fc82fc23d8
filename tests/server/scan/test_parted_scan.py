"""Parts of a scan add up to a scan."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.cluster_scan import UncoveredByNode
from rtui.server.scan.parted_scan import PartedScan, ScanPart
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanNote, ScanState
from rtui.server.scan.run_control import RunControl

ENDED = (ScanState.DONE, ScanState.STOPPED, ScanState.FAILED)


def node_of(number: int, keys: int, state: ScanState) -> NodeProgress:
    """A node of a part of this number."""
    return NodeProgress(f"node{number}", SafeText(f"h:{number}"), state, 0.5, keys, 0.0, Cost(commands=keys))


@st.composite
def parts(draw: st.DrawFn) -> list[ScanPart]:
    """Parts that have ended, each of one node and of the slots of one remainder."""
    count = draw(st.integers(1, 4))
    found = []
    for number in range(count):
        state, keys = draw(st.sampled_from(ENDED)), draw(st.integers(0, 1 << 40))
        why = UncoveredByNode(((number, number),), f"node{number}", SafeText(f"h:{number}"), SafeText("gone"))
        found.append(
            ScanPart(
                Progress(state, draw(st.floats(0, 1)), keys, notes=draw(st.sampled_from(((), (ScanNote.UNSURE,))))),
                Cost(commands=keys, elapsed_s=float(number)),
                (node_of(number, keys, state),),
                owners=dict.fromkeys(range(number, SLOTS, count), f"node{number}"),
                uncovered=() if state is ScanState.DONE else (why,),
                most_repeated=draw(st.integers(0, 5)),
            )
        )
    return found


async def ended(found: list[ScanPart]) -> PartedScan:
    scan = PartedScan(RunControl(), [1] * len(found))
    scan.begin()
    scan.parts[:] = found
    scan.end()
    return scan


@given(parts())
def test_what_parts_say_adds_up(found: list[ScanPart]) -> None:
    scan = asyncio.run(ended(found))
    states = [part.progress.state for part in found]
    assert (scan.state is ScanState.DONE) == (set(states) == {ScanState.DONE})
    assert (scan.state is ScanState.FAILED) == (set(states) == {ScanState.FAILED})
    assert scan.progress.keys == sum(part.progress.keys for part in found) == scan.cost.commands
    assert [one.slots for one in scan.uncovered] == [one.slots for part in found for one in part.uncovered]
    assert scan.owners == [f"node{slot % len(found)}" for slot in range(SLOTS)]
    assert scan.most_repeated == sum(part.most_repeated for part in found)
    assert {node.id: node.keys for node in scan.nodes} == {
        f"node{at}": one.progress.keys for at, one in enumerate(found)
    }
    assert len(scan.progress.notes) == any(part.progress.notes for part in found)
    fractions = [part.progress.fraction or 0.0 for part in found]
    if scan.state is not ScanState.DONE:
        assert scan.progress.fraction is not None
        assert min(fractions) - 1e-9 <= scan.progress.fraction <= max(fractions) + 1e-9
        assert "were not covered: gone." in (scan.progress.reason or "")


def test_a_node_that_two_parts_have_asked_counts_once() -> None:
    part = ScanPart(Progress(ScanState.DONE, 1.0, 9), nodes=(node_of(0, 7, ScanState.DONE),))
    other = replace(part, nodes=(node_of(0, 2, ScanState.DONE), node_of(1, 5, ScanState.DONE)))
    scan = asyncio.run(ended([part, other]))
    assert [(node.id, node.keys, node.cost.commands) for node in scan.nodes] == [("node0", 9, 9), ("node1", 5, 5)]


def test_a_lost_part_has_none_of_its_slots() -> None:
    before = ScanPart(Progress(ScanState.RUNNING, 0.7, 9), Cost(commands=4), (node_of(0, 9, ScanState.RUNNING),))
    lost = ScanPart.lost(
        before, {"node0": (SafeText("h:0"), {5, 6}), "": (SafeText(""), {9})}, SafeText("It was killed.")
    )
    assert (lost.progress.keys, lost.progress.fraction, lost.cost.commands) == (0, 0.0, 4)
    assert [(one.id, one.keys, one.failure) for one in lost.nodes] == [("node0", 0, "It was killed.")]
    assert [(one.node_id, one.slots) for one in lost.uncovered] == [("node0", ((5, 6),)), (None, ((9, 9),))]
