"""Shows a short number that keys begin with as it is: the version in the `:1:product:7` of Django is no identifier.

Segments that are numbers fold, so the tree of namespaces has `:{id}:product:{id}`. Where the first one stands for a
single number in many keys, that is shown in its place: `:1:product:{id}`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import structs

from rtui.analysis.estimates import as_estimate
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.members import Cliff, ExpiryReport, Timeline
from rtui.keyspace.text.display import display

FEWEST_KEYS: Final = 20
"""Fewer keys may have a number in common by chance."""

MOST_DIGITS: Final = 3
"""A longer number is an identifier, though there be one only."""


class Renamed(NamedTuple):
    """A namespace that has got another name."""

    text: bytes
    """How its keys were said to begin."""
    path: tuple[bytes, ...]
    """Its names from the first level on, the last of which is another now."""
    number: bytes
    separator: bytes


def only_number(node: Node, before: bytes) -> bytes | None:
    """Return the number that all keys begin with which a pattern stands for, behind separators at most; else None."""
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
        timelines = [_timeline_with(timeline, one) for timeline in timelines]
        cliffs = [_cliff_with(cliff, one) for cliff in cliffs]
    return structs.replace(report, timelines=tuple(timelines), cliffs=tuple(cliffs))


def _timeline_with(timeline: Timeline, one: Renamed) -> Timeline:
    if not _is_below(timeline.path, timeline.label, one):
        return timeline
    return structs.replace(timeline, path=_path_with(timeline.path, one), label=_label_with(timeline.label, one))


def _cliff_with(cliff: Cliff, one: Renamed) -> Cliff:
    if not _is_below(cliff.path, cliff.label, one):
        return cliff
    return structs.replace(cliff, path=_path_with(cliff.path, one), label=_label_with(cliff.label, one))


def _is_below(path: tuple[bytes, ...], label: str, one: Renamed) -> bool:
    return path[: len(one.path)] == one.path and label.startswith(display(one.text))


def _path_with(path: tuple[bytes, ...], one: Renamed) -> tuple[bytes, ...]:
    return (*one.path[:-1], one.number, *path[len(one.path) :])


def _label_with(label: str, one: Renamed) -> str:
    before = one.text[: -len(one.path[-1] + one.separator)]
    return display(before + one.number + one.separator) + label[len(display(one.text)) :]
