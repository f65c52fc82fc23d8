"""What the rows of the tree are sorted by beside names and counts: figures of namespaces, facts of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtui.keyspace.rows.ordering import Sort, WeightsAt
from rtui.keyspace.store.namespace import Namespace

if TYPE_CHECKING:  # it is imported with all that adds up
    from rtui.tui.browse.tree_figures import TreeFigures


class RowWeights:
    """Weighs rows by the figures of an analysis, if there is one."""

    def __init__(self) -> None:
        self.figures: TreeFigures | None = None
        """What is known of namespaces."""

    def namespaces(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return what gives the weights of the namespaces directly below one; None where they have none."""
        return None if self.figures is None else self.figures.weights(node, sort)

    def keys(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return what gives the weights of the keys directly below a namespace; None where they have none."""
        return None
