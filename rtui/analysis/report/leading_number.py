"""Shows a short number that keys begin with as it is: the version in the `:1:product:7` of Django is no identifier.

Segments that are numbers fold, so the tree of namespaces has `:{id}:product:{id}`. Where the first one stands for a
single number in many keys, that is shown in its place: `:1:product:{id}`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from msgspec import structs

from rtui.analysis.estimates import as_estimate
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.members import Cliff, ExpiryReport, Timeline
from rtui.keyspace.text.display import display

FEWEST_KEYS: Final = 20
"""Fewer keys may have a number in common by chance."""

MOST_DIGITS: Final = 3
"""A longer number is an identifier, though there be one only."""


_Expiring = TypeVar("_Expiring", Cliff, Timeline)


class Renamed(NamedTuple):
    """A namespace that has got another name."""

    text: bytes
    """How its keys were said to begin."""
    path: tuple[bytes, ...]
    """Its names from the first level on, the last of which is another now."""
    number: bytes
    separator: bytes


def only_number(node: Node, before: bytes) -> bytes | None:
    """Return the number that all keys of a pattern begin with, after separators at most; None if there is none."""
    if node.name != b"{id}" or not node.separator or before.strip(node.separator) or node.distinct != 1:
        return None
    if as_estimate(node.stats.keys).value < FEWEST_KEYS:
        return None
    examples = (example for path in node.walk() for example in path[-1].examples)
    number = next(examples, b"")[len(before) :].partition(node.separator)[0]
    return number if number.isdigit() and len(number) <= MOST_DIGITS else None


def with_leading_numbers(root: Node) -> tuple[Node, list[Renamed]]:
    """Return the tree of namespaces with these numbers as names, and the namespaces that they are the names of."""
    renamed: list[Renamed] = []
    return _with_numbers(root, b"", (), renamed), renamed


def _with_numbers(parent: Node, before: bytes, path: tuple[bytes, ...], renamed: list[Renamed]) -> Node:
    children, had = list(parent.children), len(renamed)
    for at, child in enumerate(children):
        own = (*path, child.name)
        if not child.name and child.separator:
            children[at] = _with_numbers(child, before + child.separator, own, renamed)
        elif (number := only_number(child, before)) is not None:
            renamed.append(Renamed(before + child.name + child.separator, own, number, child.separator))
            children[at] = structs.replace(child, name=number, kind=NodeKind.LITERAL, distinct=None, holds_names=False)
    return structs.replace(parent, children=tuple(children)) if len(renamed) > had else parent


def expiry_with(report: ExpiryReport, renamed: list[Renamed]) -> ExpiryReport:
    """Return when keys expire, by the names that namespaces have now."""
    if not renamed:
        return report
    timelines, cliffs = list(report.timelines), list(report.cliffs)
    for one in renamed:
        timelines = [_renamed(timeline, one) for timeline in timelines]
        cliffs = [_renamed(cliff, one) for cliff in cliffs]
    return structs.replace(report, timelines=tuple(timelines), cliffs=tuple(cliffs))


def _renamed(found: _Expiring, one: Renamed) -> _Expiring:
    """Return an expiry timeline or cliff with the new name of its namespace."""
    was = display(one.text)
    if found.path[: len(one.path)] != one.path or not found.label.startswith(was):
        return found
    before = one.text[: -len(one.path[-1] + one.separator)]
    label = display(before + one.number + one.separator) + found.label[len(was) :]
    return structs.replace(found, path=(*one.path[:-1], one.number, *found.path[len(one.path) :]), label=label)
