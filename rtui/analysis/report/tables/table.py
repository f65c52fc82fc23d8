"""Tables: typed columns, raw cells and the order of their rows, from which the terminal and every file make texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Unknown
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.members import Figure


class Step(NamedTuple):
    """One level: what tells a node from its siblings."""

    name: bytes
    separator: bytes
    kind: NodeKind


Path: TypeAlias = tuple[Step, ...]
"""The levels from the first one on; empty for the whole keyspace."""


def step_of(node: Node) -> Step:
    """Return what tells a node from its siblings."""
    return Step(node.name, node.separator, node.kind)


def path_of(nodes: Sequence[Node]) -> Path:
    """Return the path of nodes as `Node.walk` gives them, the root first."""
    return tuple(map(step_of, nodes[1:]))


def find(root: Node, path: Sequence[Step | bytes]) -> tuple[Node, ...] | None:
    """Return the nodes along a path, the root first; None if one is not there.

    A name alone stands for the child of that name that has most below it.
    """
    nodes = [root]
    for wanted in path:
        found = [child for child in nodes[-1].children if wanted in (child.name, step_of(child))]
        if not found:
            return None
        nodes.append(max(found, key=lambda child: (len(child.children), child.separator != b"")))
    return tuple(nodes)


def label(nodes: Iterable[Node | Step]) -> bytes:
    """Return how keys of a namespace begin: `shop:session:`; a key of its own has no separator at the end."""
    return b"".join(node.name + node.separator for node in nodes)


class Unit(Enum):
    """What the cells of a column are."""

    NAME = "name"
    """Bytes: a key, a namespace, a hash tag, a type as the server names it."""
    TEXT = "text"
    """Safe text."""
    KEYS = "keys"
    """A number of keys."""
    COUNT = "count"
    """Any other number."""
    NUMBER = "number"
    """A number that counts nothing: a slot, a place in a list."""
    BYTES = "bytes"
    SHARE = "share"
    """0 … 1."""
    RATIO = "ratio"
    """How many times something is."""
    DURATION = "s"
    """Seconds, or that there is no end."""
    TIME = "epoch_s"
    """Seconds since the epoch."""
    MIX = "mix"
    """Names with a figure each, largest first."""

    @property
    def is_numeric(self) -> bool:
        """Whether texts stand at the right of the column."""
        return self not in {Unit.NAME, Unit.TEXT, Unit.MIX}


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number that may be more: not everything was seen or known."""

    value: int | float


Mix: TypeAlias = tuple[tuple[bytes, Figure], ...]
"""Names with a figure each, largest first."""

Cell: TypeAlias = bytes | str | int | float | Estimate | AtLeast | NoTtl | Unknown | Mix | None
"""One value: bytes are a name, `str` is safe text, a number is exact, None is a value that does not exist."""

Subject: TypeAlias = bytes | int | Path | None
"""What a row is about: a key, a slot, a namespace, or nothing that one could go to."""


SortKey: TypeAlias = tuple[float, str, bytes]
"""Compares cells of one column: numbers by value, texts without regard to case, names by their bytes."""


def sort_key(cell: Cell) -> SortKey | None:
    """Return what a cell is sorted by; None for what is not known. What has no end is beyond all numbers."""
    if cell is None or isinstance(cell, Unknown):
        return None
    if isinstance(cell, bytes):
        return 0.0, "", cell
    if isinstance(cell, str):
        return 0.0, cell.casefold(), b""
    if isinstance(cell, tuple):
        return (0.0, "", cell[0][0]) if cell else None
    if isinstance(cell, NoTtl):
        return inf, "", b""
    return (cell.value if isinstance(cell, Estimate | AtLeast) else cell), "", b""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds and how it is headed."""

    id: str
    """Its name in files, without the unit."""
    title: str
    unit: Unit
    width: int = 0
    """Characters that nearly all of its texts fit in; 0 for a column that takes what is left."""
    about: str = ""
    """A sentence for those who ask what it means, without a full stop."""

    @property
    def numeric(self) -> bool:
        """Whether texts stand at the right of the column."""
        return self.unit.is_numeric


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells in the order in which they are shown first."""

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    subjects: tuple[Subject, ...] = ()
    """What each row is about, parallel to the rows; empty where they are about nothing."""
    note: str = ""
    """What one has to know to read it; safe text."""

    def column(self, column_id: str) -> int:
        """Return the position of a column; KeyError if there is none of that name."""
        for index, column in enumerate(self.columns):
            if column.id == column_id:
                return index
        raise KeyError(column_id)

    def sorted_rows(self, rows: Iterable[int], column: int, *, descending: bool) -> list[int]:
        """Return positions of rows ordered by one column: equal ones keep their order, unknown values come last."""
        keyed = [(sort_key(self.rows[row][column]), row) for row in rows]
        known = sorted(((key, row) for key, row in keyed if key is not None), key=itemgetter(0), reverse=descending)
        return [row for _, row in known] + [row for key, row in keyed if key is None]

    def picked(self, rows: Sequence[int]) -> Table:
        """Return the table with only the rows at these positions, in this order."""
        subjects = tuple(self.subjects[row] for row in rows) if self.subjects else ()
        return replace(self, rows=tuple(self.rows[row] for row in rows), subjects=subjects)

    def subject(self, row: int) -> Subject:
        """Return what a row is about."""
        return self.subjects[row] if self.subjects else None
