"""The kit of all tables: typed columns, raw cells, the order of rows and their texts, on the screen and in every file.

A cell as text is exact, at least (where not all was seen), estimated with its 95 % interval, or unknown: `1,204`,
`≥ 1,204`, `≈ 1.20k (1.10–1.30k)`, `–` or `denied`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from operator import itemgetter
from typing import Final, TypeAlias, TypeVar, overload

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Reason, Unknown
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import CoverageKind, Node, Step
from rtui.analysis.report.members import Figure
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.display import Display, SafeText
from rtui.keyspace.text.matching import natural

Path: TypeAlias = tuple[Step, ...]
"""The levels from the first one on; empty for the whole keyspace."""


def path_of(nodes: Sequence[Node]) -> Path:
    return tuple(node.step for node in nodes[1:])


def find(root: Node, path: Sequence[Step | bytes]) -> tuple[Node, ...] | None:
    """Return the nodes along a path, the root first; None if one is not there.

    A name alone stands for the child of that name that has most below it.
    """
    nodes = [root]
    for wanted in path:
        name = wanted.name if isinstance(wanted, Step) else wanted
        found = [child for child in nodes[-1].children if child.name == name]
        if isinstance(wanted, Step):
            found = [child for child in found if child.step == wanted]
        if not found:
            return None
        nodes.append(max(found, key=lambda child: (len(child.children), child.separator != b"")))
    return tuple(nodes)


def label(nodes: Iterable[Node | Step]) -> bytes:
    """Return how keys of a namespace begin: `shop:session:`; a key of its own has no separator at the end."""
    return b"".join(node.name + node.separator for node in nodes)


class Unit(Enum):
    """The unit of a column's cells."""

    NAME = "name"
    """Bytes: a key, a namespace, a hash tag, a type as the server names it."""
    TEXT = "text"
    KEYS = "keys"
    COUNT = "count"
    NUMBER = "number"
    """A number that counts nothing: a slot, a place in a list."""
    BYTES = "bytes"
    SHARE = "share"
    """0 … 1."""
    RATIO = "ratio"
    DURATION = "s"
    """Seconds, or no TTL."""
    TIME = "epoch_s"
    """Seconds since the epoch."""
    MIX = "mix"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number that may be more: not everything was seen or known."""

    value: int | float


Mix: TypeAlias = tuple[tuple[bytes, Figure], ...]
"""Names with a figure each, largest first."""

Cell: TypeAlias = bytes | str | int | float | Estimate | AtLeast | NoTtl | Unknown | Mix | None
"""One value: bytes are a name, `str` is safe text, a number is exact, None is a value that does not exist."""

Subject: TypeAlias = bytes | int | Path | str | None


def sort_key(cell: Cell) -> tuple[float, str, bytes] | None:
    """Return the sort key of a cell; None if it is unknown. No TTL sorts beyond all numbers.

    Numbers are compared by value, names and texts in their natural order, texts without regard to case.
    """
    if cell is None or isinstance(cell, Unknown):
        return None
    if isinstance(cell, bytes):
        return 0.0, "", natural(cell)
    if isinstance(cell, str):
        return 0.0, "", natural(cell.casefold().encode("utf-8", "surrogatepass"))
    if isinstance(cell, tuple):
        return (0.0, "", cell[0][0]) if cell else None
    if isinstance(cell, NoTtl):
        return inf, "", b""
    return (cell.value if isinstance(cell, Estimate | AtLeast) else cell), "", b""


@dataclass(frozen=True, slots=True)
class Column:
    """The content and heading of a column."""

    id: str
    """Its name in files, without the unit."""
    title: str
    unit: Unit
    width: int = 0
    """Characters that fit nearly all of its texts; 0 for a column that takes the remaining width."""
    about: str = ""
    """An explanation of the column, as a sentence without a full stop."""
    is_change: bool = False
    """Whether its cells are differences to an earlier report, below 0 for a decrease."""
    yields: bool = False
    """Whether other columns come first where room is short."""

    @property
    def numeric(self) -> bool:
        return self.unit not in {Unit.NAME, Unit.TEXT, Unit.MIX}


Row: TypeAlias = tuple[Cell, ...]
T = TypeVar("T")


class OnDemand(Sequence[T]):
    """A sequence whose items are made when they are asked for, and kept: a screen shows few of thousands of rows."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count = count
        self._make = make
        self._made: dict[int, T] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(self._count)))
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(index)
        item = self._made.get(at)
        if item is None:
            item = self._made[at] = self._make(at)
        return item

    def __iter__(self) -> Iterator[T]:
        return map(self.__getitem__, range(self._count))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, OnDemand | tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class Paths(OnDemand[Subject]):
    """The paths of namespaces of one report, the subjects of rows; finds the row of one without making the others."""

    def __init__(self, nodes: Sequence[tuple[Node, ...]]) -> None:
        super().__init__(len(nodes), lambda at: path_of(nodes[at]))
        self._nodes = nodes
        self._lines: dict[int, int] | None = None
        self._children: dict[int, dict[Step, Node]] = {}

    def line(self, path: Path) -> int | None:
        if not self._nodes:
            return None
        if self._lines is None:
            self._lines = {id(nodes[-1]): at for at, nodes in enumerate(self._nodes)}
        node: Node | None = self._nodes[0][0]
        for step in path:
            if node is None:
                return None
            children = self._children.get(id(node))
            if children is None:
                children = self._children[id(node)] = {child.step: child for child in node.children}
            node = children.get(step)
        return None if node is None else self._lines.get(id(node))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells in the order in which they are shown first."""

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    subjects: Sequence[Subject] = ()
    note: str = ""
    tells_by_subject: bool = False

    def column(self, column_id: str) -> int:
        return [column.id for column in self.columns].index(column_id)

    def filtered_rows(
        self, wanted: str, texts_of: Callable[[int], Sequence[str]], among: Iterable[int], slicer: Slicer
    ) -> Slices[list[int]]:
        names = [at for at, column in enumerate(self.columns) if not column.numeric]
        text = wanted.casefold()
        found = []
        for row in among:
            texts = texts_of(row)
            if any(text in texts[at].casefold() for at in names):
                found.append(row)
            yield from slicer.pause()
        return found

    def sorted_rows(self, rows: Iterable[int], column: int, slicer: Slicer, *, descending: bool) -> Slices[list[int]]:
        """Return positions of rows ordered by one column: equal ones keep their order, unknown values come last."""
        keyed = []
        for row in rows:
            keyed.append((sort_key(self.rows[row][column]), row))
            yield from slicer.pause()
        known = sorted(((key, row) for key, row in keyed if key is not None), key=itemgetter(0), reverse=descending)
        yield from slicer.pause()
        return [row for _, row in known] + [row for key, row in keyed if key is None]

    def picked(self, rows: Sequence[int]) -> Table:
        subjects = tuple(self.subjects[row] for row in rows) if self.subjects else ()
        return replace(self, rows=tuple(self.rows[row] for row in rows), subjects=subjects)

    def subject(self, row: int) -> Subject:
        return self.subjects[row] if self.subjects else None


LEAST_POINTS: Final = 0.1
WHOLE_POINTS: Final = 9.95
"""Differences of shares have a figure after the point below this."""

UNCLEAR: Final = SafeText("≈")
"""The cell of a change that can't be told from none: the intervals of both figures overlap."""

COVERAGE_MARKS: Final = {
    CoverageKind.EXACT: Mark.EXACT,
    CoverageKind.PARTIAL: Mark.AT_LEAST,
    CoverageKind.ESTIMATE: Mark.ABOUT,
}

EMPTY_NAME: Final = SafeText("(empty)")
_UNKNOWN: Final = {Reason.DENIED: SafeText("denied"), Reason.IMPOSSIBLE: SafeText("unknown")}
_NAMES_IN_A_MIX: Final = 3
_DISPLAY: Final = Display()
_FORMATS: Final[dict[Unit, humanize.NumberFormat]] = {
    Unit.BYTES: humanize.size,
    Unit.SHARE: humanize.share,
    Unit.RATIO: humanize.ratio,
    Unit.NUMBER: lambda value, mark: SafeText(f"{mark}{value:.0f}"),
    Unit.DURATION: humanize.seconds,
    Unit.TIME: lambda value, mark: SafeText(mark + humanize.moment(value)),
}
_ASCII_MARKS: Final = str.maketrans(
    {"≥": ">=", "≈": "~", "–": "-", "×": "x", "…": "...", "∞": "any", "▲": "^", "▼": "v", "µ": "u"}
)


def cell_text(cell: Cell, column: Column, display: Display = _DISPLAY) -> SafeText:
    if isinstance(cell, bytes):
        return display.name(cell) if cell else EMPTY_NAME
    if isinstance(cell, str):
        return display.text(cell.translate(_ASCII_MARKS) if column.is_change and display.ascii_only else cell)
    if isinstance(cell, tuple):
        text = _mix(cell, display)
    elif column.is_change:
        text = change_text(cell, column.unit)
    else:
        text = _figure(cell, column.unit)
    return SafeText(text.translate(_ASCII_MARKS)) if display.ascii_only else text


def change_text(cell: Cell, unit: Unit) -> SafeText:
    """Return a difference: `▲ 1,204`, `▼ ≥ 3.1 MiB`, `▲ 2.5 pt` of a share, `=` for none, `–` where it is not known."""
    if isinstance(cell, str):
        return SafeText(cell)
    figure = cell.value if isinstance(cell, Estimate | AtLeast) else cell
    if not isinstance(figure, int | float):
        return humanize.NOTHING
    if figure == 0 and not isinstance(cell, Estimate):
        return SafeText("=")
    mark = Mark.AT_LEAST if isinstance(cell, AtLeast) else Mark.ABOUT if isinstance(cell, Estimate) else Mark.EXACT
    text = _points(abs(figure) * 100, mark) if unit is Unit.SHARE else _number(abs(figure), unit, mark)
    return SafeText(f"{'▲' if figure > 0 else '▼'} {text}")


def _points(points: float, mark: Mark) -> str:
    """Return percentage points: `12 pt`, `0.4 pt`, `<0.1 pt`."""
    if points < LEAST_POINTS:
        return f"<{LEAST_POINTS} pt"
    return f"{mark}{points:.{0 if points >= WHOLE_POINTS else 1}f} pt"


def cell_interval(cell: Cell, column: Column) -> SafeText | None:
    return humanize.interval(cell, _bound_format(column.unit)) if isinstance(cell, Estimate) else None


def cell_reason(cell: Cell) -> SafeText:
    if not isinstance(cell, Unknown):
        return SafeText("")
    if cell.reason is Reason.IMPOSSIBLE:
        return SafeText(cell.detail)
    return SafeText(f"{cell.reason}: {cell.detail}" if cell.detail else cell.reason)


def _number(value: float, unit: Unit, mark: Mark) -> SafeText:
    return _FORMATS.get(unit, humanize.decimal)(value, mark)


def _bound_format(unit: Unit) -> humanize.NumberFormat:
    """Return the format for the ends of an estimate: keys are whole, other large counts have three figures."""
    if unit in _FORMATS:
        return _FORMATS[unit]
    if unit is Unit.KEYS:
        return humanize.short_count

    def bound_text(value: float, mark: Mark) -> SafeText:
        return (humanize.short_count if value >= humanize.SHORT_FROM else humanize.decimal)(value, mark)

    return bound_text


def _figure(cell: float | Estimate | AtLeast | NoTtl | Unknown | None, unit: Unit) -> SafeText:
    if cell is None:
        return humanize.NOTHING
    if isinstance(cell, Unknown):
        return _UNKNOWN.get(cell.reason, humanize.NOTHING)
    if isinstance(cell, NoTtl):
        return SafeText(cell.value)
    if isinstance(cell, Estimate):
        return humanize.estimated(cell, _bound_format(unit))
    if isinstance(cell, AtLeast):
        return _number(cell.value, unit, Mark.AT_LEAST)
    return _number(cell, unit, Mark.EXACT)


def _mix(cell: Mix, display: Display) -> SafeText:
    """Return names with their figures: `hash 150k, set 100k`; a single name needs none."""
    if len(cell) == 1:
        return display.name(cell[0][0], limit=64) or EMPTY_NAME
    parts = []
    for name, figure in cell[:_NAMES_IN_A_MIX]:
        text = (
            humanize.estimated(figure, humanize.short_count)
            if isinstance(figure, Estimate)
            else humanize.short_count(figure)
        )
        parts.append(f"{display.name(name, limit=64) or EMPTY_NAME} {text}")
    if len(cell) > _NAMES_IN_A_MIX:
        parts.append(f"{len(cell) - _NAMES_IN_A_MIX} more")
    return SafeText(", ".join(parts)) if parts else humanize.NOTHING
