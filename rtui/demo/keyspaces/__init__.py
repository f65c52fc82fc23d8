"""Five keyspaces as real teams write them, generated: the same seed gives the same keys, values and life times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from rtui.demo import awkward
from rtui.demo.keyspaces import app_conventions, ecm, internals, project_table_id, restaurant
from rtui.demo.writes import Unit
from rtui.server.browse_options import DEFAULT_DEMO_KEYS

DEFAULT_KEYS: Final = DEFAULT_DEMO_KEYS
"""How many keys the demo has unless told otherwise, about."""

DEFAULT_SEED: Final = 20_260
"""The seed of the demo, the screenshots and the tests."""

Keyspace = Callable[[Random, int], Iterator[Unit]]
"""A generator of units that together make about the given number of keys."""

KEYSPACES: Final[dict[str, tuple[Keyspace, float]]] = {
    "app-conventions": (app_conventions.units, 0.38),
    "project-table-id": (project_table_id.units, 0.16),
    "restaurant": (restaurant.units, 0.28),
    "ecm": (ecm.units, 0.08),
    "internals": (internals.units, 0.10),
}
"""Each convention with its share of the keys."""


def units(keys: int = DEFAULT_KEYS, seed: int = DEFAULT_SEED) -> Iterator[Unit]:
    """All five keyspaces, mixed so that each grows from the start, and the awkward corner; about `keys` keys in all.

    Whatever the scale, every planted defect and every awkward key is there, so small numbers are exceeded.
    """
    yield from awkward.units(Random(f"{seed} awkward"))
    sources = []
    for name, (keyspace, share) in KEYSPACES.items():
        wanted = max(1, round(keys * share))
        sources.append(_Source(keyspace(Random(f"{seed} {name}"), wanted), wanted))
    while sources:
        source = min(sources, key=_Source.progress)
        unit = source.take()
        if unit is None:
            sources.remove(source)
        else:
            yield unit


class _Source:
    """One keyspace and how far it has been taken."""

    def __init__(self, generator: Iterator[Unit], wanted: int) -> None:
        self._units = generator
        self._wanted = wanted
        self._made = 0

    def progress(self) -> float:
        return self._made / self._wanted

    def take(self) -> Unit | None:
        unit = next(self._units, None)
        if unit is not None:
            self._made += unit.keys
        return unit
