"""The nodes of a cluster side by side: who stands out, and that nothing unknown is taken for 0."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.health.panel import LEAST_NODES, OUTLIER, nodes_table
from rtui.analysis.health.sample import Sample
from rtui.keyspace.text.display import SafeText


def sample(node: str, **info: int | float | str) -> Sample:
    return Sample(at_ms=0, node=node, info={"role": "master", **info})


def table_of(memory: list[int | None]) -> dict[str, str]:
    """What is said to differ, by node."""
    latest = {
        SafeText(f"n{at}"): sample(f"n{at}") if value is None else sample(f"n{at}", used_memory=value)
        for at, value in enumerate(memory)
    }
    table = nodes_table(latest, {})
    at = table.column("differs")
    return {str(subject): str(row[at]) for subject, row in zip(table.subjects, table.rows, strict=True)}


def test_the_node_that_stands_out_comes_first() -> None:
    found = table_of([100, 100, 410])
    assert next(iter(found.items())) == ("n2", "memory 4.1×")
    assert [found["n0"], found["n1"]] == ["", ""]


def test_what_is_wrong_comes_before_what_differs() -> None:
    latest = {SafeText(f"n{at}"): sample(f"n{at}", used_memory=memory) for at, memory in enumerate([100, 100, 400, 90])}
    table = nodes_table(latest, {SafeText("n3"): SafeText("not saved")})
    assert table.subjects[:2] == ("n3", "n2")


def test_replicas_are_compared_with_replicas() -> None:
    latest = {SafeText(f"n{at}"): sample(f"n{at}", connected_clients=500) for at in range(3)}
    latest |= {
        SafeText(f"r{at}"): Sample(at_ms=0, node=f"r{at}", info={"role": "slave", "connected_clients": 3})
        for at in range(3)
    }
    table = nodes_table(latest, {})
    assert {row[table.column("differs")] for row in table.rows} == {""}


@given(st.lists(st.none() | st.integers(0, 1 << 50), min_size=1, max_size=20))
def test_few_or_unknown_figures_make_no_outlier(memory: list[int | None]) -> None:
    found = table_of(memory)
    known = sorted(value for value in memory if value is not None)
    assert len(found) == len(memory)
    for at, value in enumerate(memory):
        is_far = value is not None and known[-1] > 0 and value * 2 > known[len(known) // 2]
        if len(known) < LEAST_NODES or value is None or not is_far or value <= OUTLIER * known[(len(known) - 1) // 2]:
            assert found[f"n{at}"] == ""
