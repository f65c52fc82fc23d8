"""Five sample keyspaces in the styles of real teams; the same seed gives the same keys, values and TTLs."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final, Protocol

from rtui.demo.keyspaces import awkward
from rtui.demo.keyspaces.applications import internals, restaurant
from rtui.demo.keyspaces.naming_guides import app_conventions, ecm, project_table_id
from rtui.demo.writes import WriteGroup
from rtui.server.options import DEFAULT_DEMO_KEYS, DemoDay

DEFAULT_SEED: Final = 20_260
"""The seed of the demo, the screenshots and the tests."""


class Keyspace(Protocol):
    """A generator of groups."""

    def __call__(self, random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
        """Yield groups with about `keys` keys in all, without planted defects if the day `is_good`."""


KEYSPACES: Final[dict[str, tuple[Keyspace, float]]] = {
    "app-conventions": (app_conventions, 0.38),
    "project-table-id": (project_table_id, 0.16),
    "restaurant": (restaurant, 0.28),
    "ecm": (ecm, 0.08),
    "internals": (internals, 0.10),
}
"""Each convention with its share of the keys."""


def write_groups(keys: int = DEFAULT_DEMO_KEYS, seed: int = DEFAULT_SEED, day: DemoDay = "bad") -> Iterator[WriteGroup]:
    """Yield all five keyspaces, mixed so that each grows from the start, and the awkward names: about `keys` keys.

    Every planted defect and awkward key is present at any scale, so small numbers are exceeded; a good day has none.
    """
    if day == "bad":
        yield from awkward.write_groups(Random(f"{seed} awkward"))
    wanted = {name: max(1, round(keys * share)) for name, (_, share) in KEYSPACES.items()}
    sources = {
        name: make(Random(f"{seed} {name}"), wanted[name], is_good=day == "good")
        for name, (make, _) in KEYSPACES.items()
    }
    made = dict.fromkeys(sources, 0)
    while sources:
        name = min(sources, key=lambda one: made[one] / wanted[one])
        group = next(sources[name], None)
        if group is None:
            del sources[name]
        else:
            made[name] += group.keys
            yield group
