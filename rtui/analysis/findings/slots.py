"""Rules about hash slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Amount, Basis, Draft, Finding, amount, of_namespace
from rtui.analysis.findings.places import FOLDED, below, label, least, most, scan_line
from rtui.analysis.query.behind import tag_keys
from rtui.analysis.report.document import Node, NodeKind, SlotTag
from rtui.analysis.report.members import Figure
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.glob import escape_glob

SKEW: Final = "tag-skew"
CROSS: Final = "cross-slot"


def skewed_tags(basis: Basis) -> Iterator[Draft]:
    """Find hash tags that put a large share of all keys, or of all bytes, on one slot.

    What is known of all keys is compared, in an estimate what the tag has at least with what there is at most.
    """
    share = basis.number(SKEW, "share")
    whole = basis.report.summary.root.stats
    for tag in basis.report.summary.slots.tags:
        portions = _portion(tag.keys, whole.keys), _portion(tag.memory_bytes, whole.memory_bytes)
        if max(portions) >= share and least(tag.keys) > 1:
            keys = amount(basis.cells.part(tag.keys, not tag.at_least)) or Amount(0)
            memory = amount(basis.cells.part(tag.memory_bytes, not tag.at_least))
            yield Draft(keys, memory, partial(_skewed, basis, tag, portions, keys, memory))


def _skewed(basis: Basis, tag: SlotTag, portions: tuple[float, float], keys: Amount, memory: Amount | None) -> Finding:
    portion, of_what = (portions[0], "keys") if portions[0] >= portions[1] else (portions[1], "bytes")
    shown = display(b"{%s}" % tag.tag, limit=80)
    cluster = basis.report.cluster
    owner = None if cluster is None else cluster.owner_of(tag.slot)
    slot = f"slot {tag.slot}" if owner is None else f"slot {tag.slot} of {owner.label}"
    whole = f"the {of_what} seen" if basis.cells.is_partial else f"all {of_what}"
    title = f"Hash tag {shown} puts {keys.keys()} on {slot}, {humanize.share(portion)} of {whole}"
    return Finding(
        rule=SKEW,
        severity=basis.severity(SKEW),
        title=SafeText(title),
        where=SafeText(f"slot {tag.slot}"),
        keys=keys,
        memory=memory,
        find_behind=lambda: tag_keys(tag),
        find_command=lambda: scan_line(b"*{%s}*" % escape_glob(tag.tag)),
    )


def _portion(part: Figure | None, whole: Figure | None) -> float:
    """Return which share a number is of another at least; 0 where one is not known."""
    at_most = 0 if whole is None else most(whole)
    return min(1.0, least(part) / at_most) if at_most else 0.0


def is_cluster(basis: Basis) -> bool:
    """Whether commands on several keys need them in one slot."""
    return basis.report.head.server.cluster_enabled


def scattered(basis: Basis) -> Iterator[Draft]:
    """Find things, such as `user:{id}:`, of which several keys are kept without a hash tag in a cluster."""
    for path in below(basis.report.summary.root):
        node = path[-1]
        is_thing = node.kind is NodeKind.PATTERN and not node.is_of_names and bool(node.separator)
        parts = [one for one in node.children if one.kind is NodeKind.LITERAL and not one.children]
        if is_thing and len(parts) > 1 and not any(map(_has_brace, (*parts, *path))):
            keys = amount(basis.cells.amount(node.stats.keys)) or Amount(0)
            memory = amount(basis.cells.memory(node.stats))
            yield Draft(keys, memory, partial(_scattered, basis, path, parts, keys, memory))


def _has_brace(node: Node) -> bool:
    """Whether there is a brace in the names of keys here: in `{user:{id}}` there is, in `{id}` there is none."""
    return b"{" in (node.name if node.kind is NodeKind.LITERAL else FOLDED.sub(b"", node.name))


def _scattered(
    basis: Basis, path: Sequence[Node], parts: Sequence[Node], keys: Amount, memory: Amount | None
) -> Finding:
    names = " and ".join(display(one.name, limit=30) for one in parts[:2])
    title = f"{keys.keys()} of {label(path)} have no hash tag: {names} of one thing lie in different slots"
    return of_namespace(basis, CROSS, path, title=title, keys=keys, memory=memory)
