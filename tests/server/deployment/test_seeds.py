"""Where the home connection of a cluster goes: to the address that answered last, after a failure to the next."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rtui.server.deployment.connections import SeedFinder
from rtui.server.deployment.topology import Node
from rtui.server.wire.target import Target

SEEDED = Target(host="a", port=1, seeds=(("b", 2), ("c", 3)), user="app", socket_path="/run/a")


async def attempts(finder: SeedFinder, count: int) -> list[tuple[str, int]]:
    """Where so many attempts go that all fail but the last."""
    targets = [await finder.locate() for _ in range(count)]
    return [(one.host, one.port) for one in targets]


async def test_failed_attempts_go_round_and_the_one_that_succeeded_is_tried_first() -> None:
    finder = SeedFinder(SEEDED)
    assert finder.count == 3
    assert await attempts(finder, 5) == [("a", 1), ("b", 2), ("c", 3), ("a", 1), ("b", 2)]
    finder.succeeded()
    assert await attempts(finder, 2) == [("b", 2), ("c", 3)]


async def test_nodes_that_were_told_of_are_reached_as_the_user_reached_the_first() -> None:
    finder = SeedFinder(SEEDED)
    finder.learn([Node("1", "b", 2), Node("2", "d", 4)])
    targets = [await finder.locate() for _ in range(finder.count)]
    assert [(one.host, one.port) for one in targets] == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    assert {one.user for one in targets} == {"app"}
    assert targets[-1].socket_path is None
    assert not targets[-1].seeds


@given(st.lists(st.lists(st.integers(0, 9), unique=True)))
def test_an_address_is_known_once(learned: Sequence[Sequence[int]]) -> None:
    finder = SeedFinder(Target(host="n", port=0))
    for ports in learned:
        finder.learn([Node(str(port), "n", port) for port in ports])
    assert finder.count == len({0, *(port for ports in learned for port in ports)})
