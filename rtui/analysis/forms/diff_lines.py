"""A comparison as sections and rows of text, before any form arranges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis import words
from rtui.analysis.change import Change
from rtui.analysis.diff import Diff, Fate, NamespaceChange
from rtui.analysis.forms.diff_words import both_text, count, growth_text, head_text, points_text
from rtui.analysis.judgement import Judgement, Outcome
from rtui.analysis.report import ColumnState, Head
from rtui.keyspace.display import display_text

DEFAULT_TOP: Final = 20
"""Rows of a section unless somebody asks for more."""

HEADINGS: Final = ("namespace", "keys", "change", "memory", "change", "no TTL", "change")
"""Of the rows; all but the first are numbers."""

NAME_LIMIT: Final = 80
"""Characters of a namespace; of a longer one the middle is left out."""

SECTIONS: Final = (Fate.CAME, Fate.WENT, Fate.GREW, Fate.SHRANK, Fate.SHIFTED)
"""The fates that are listed, in this order; the others are counted."""

_OUTCOMES: Final = {
    Outcome.REACHED: "REACHED",
    Outcome.NOT_REACHED: "not reached",
    Outcome.UNKNOWN: "CAN'T BE JUDGED",
}


@dataclass(frozen=True, slots=True)
class Section:
    """Namespaces of one fate, the largest change first."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    left_off: int = 0
    """Rows that are not shown."""


@dataclass(frozen=True, slots=True)
class DiffLines:
    """A comparison in words, all of them safe to show."""

    before: str
    """What the first report is of."""
    after: str
    total: tuple[str, ...]
    """The row of the whole keyspace."""
    sections: tuple[Section, ...]
    rest: str
    """How many namespaces are in no section; may be empty."""
    notes: tuple[str, ...]
    judgements: tuple[str, ...]
    """A line a threshold."""


def diff_lines(
    diff: Diff, judgements: Sequence[Judgement] = (), *, depth: int | None = None, top: int = DEFAULT_TOP
) -> DiffLines:
    """Put a comparison into words: namespaces down to the level `depth`, the `top` largest changes of each fate."""
    listed = [change for change in diff.root.outlined(depth) if change.path]
    sections = []
    for fate in SECTIONS:
        members = sorted((one for one in listed if one.fate is fate), key=weight, reverse=True)
        if members:
            title = f"{fate[0].upper()}{fate[1:]} ({len(members):,})"
            rows = tuple(_row(one, diff) for one in members[:top])
            sections.append(Section(title, rows, max(0, len(members) - top)))
    return DiffLines(
        before=head_text(diff.before),
        after=head_text(diff.after),
        total=_row(diff.root, diff),
        sections=tuple(sections),
        rest=_rest(listed),
        notes=diff.notes,
        judgements=tuple(f"{_OUTCOMES[one.outcome]}  {one.expression}  {one.why}" for one in judgements),
    )


def weight(change: NamespaceChange) -> tuple[float, float, float]:
    """How much has changed at least: bytes, keys, points of the no-TTL share."""
    return _distance(change.memory), _distance(change.keys), _distance(change.no_ttl)


def _distance(change: Change) -> float:
    found = change.difference()
    return 0.0 if found is None else float(max(found.low, -found.high, 0))


def _rest(listed: Sequence[NamespaceChange]) -> str:
    counts = {fate: sum(one.fate is fate for one in listed) for fate in (Fate.LITTLE, Fate.SAME, Fate.UNCLEAR)}
    return ", ".join(f"{fate}: {number:,}" for fate, number in counts.items() if number)


def _row(change: NamespaceChange, diff: Diff) -> tuple[str, ...]:
    def states(column: str) -> tuple[ColumnState | None, ColumnState | None]:
        return _state(diff.before, column), _state(diff.after, column)

    return (
        display_text(change.label, limit=NAME_LIMIT),
        both_text(change.keys, count, states("type")),
        growth_text(change.keys),
        both_text(change.memory, words.size, states("memory")),
        growth_text(change.memory),
        both_text(change.no_ttl, words.share, states("ttl")),
        points_text(change.no_ttl),
    )


def _state(head: Head, column: str) -> ColumnState | None:
    found = head.columns.get(column)
    return None if found is None else found.state
