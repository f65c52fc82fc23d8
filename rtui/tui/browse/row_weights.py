"""What the rows of the tree are sorted by beside names and counts: figures of namespaces, facts of keys."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from rtui.keyspace.rows.ordering import Sort, WeightsAt
from rtui.keyspace.store.namespace import Namespace

if TYPE_CHECKING:  # it is imported with all that adds up
    from rtui.tui.browse.tree_figures import TreeFigures


MOST_WEIGHED: Final = 200_000
"""So many keys are asked for what they are sorted by, and remembered with their names, about 30 MB."""


class RowWeights:
    """Weighs rows by the figures of an analysis, if there is one, and by what was asked of keys."""

    def __init__(self) -> None:
        self.figures: TreeFigures | None = None
        """What is known of namespaces."""
        self._keys: dict[tuple[Namespace, Sort], dict[bytes, float]] = {}

    def namespaces(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return what gives the weights of the namespaces directly below one; None where they have none."""
        return None if self.figures is None else self.figures.weights(node, sort)

    def keys(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return what gives the weights of the keys directly below a namespace; None where they have none."""
        weights, keys = self._keys.get((node, sort)), node.keys
        if weights is None or keys is None:
            return None
        return lambda ordinals: [weights.get(name, inf) for name in keys.names_at(ordinals)]

    def idle_s(self, node: Namespace, name: bytes) -> float | None:
        """Return for how long a key was not used when it was asked, None where that is not known."""
        weight = self._keys.get((node, Sort.IDLE), {}).get(name, inf)
        return None if weight == inf else -weight

    def knows(self, node: Namespace, sort: Sort) -> bool:
        """Whether something was asked of the keys of a namespace."""
        return (node, sort) in self._keys

    def put(self, node: Namespace, sort: Sort, weights: dict[bytes, float]) -> None:
        """Remember the weights of the keys of a namespace, and forget the oldest where they are too many."""
        self._keys[node, sort] = weights
        while len(self._keys) > 1 and sum(map(len, self._keys.values())) > MOST_WEIGHED:
            del self._keys[next(iter(self._keys))]

    def forget(self) -> None:
        """Forget what was asked of keys: it is to be asked again."""
        self._keys.clear()
