"""Whether keys may be used together in a cluster, the hash tag that would allow it, and what that tag would cost.

A cluster takes a command on several keys only if all hash to one slot. Take `user:42:profile` and `cart:42`, which
do not. Both have the segment `42`, which is an identifier: as a hash tag, in `user:{42}:profile` and `cart:{42}`, it
puts them into one slot (`common_tag`). A segment that is a name, as `user`, is not proposed: all keys of its kind would
share that slot.

With such tags all keys of one identifier share a slot, so fewer identifiers spread the keys less evenly. A report knows
how many different ones there are (`tag_spread`): where 1,000 keys of `cart:{id}` have 10 identifiers, the heaviest tag
holds at least 100 of them, and so does its slot.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Report, Step
from rtui.analysis.report.namespaces import Place, ReportedNamespaces
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.table import label
from rtui.keyspace.slots import SLOTS, find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.identifiers import Identifiers
from rtui.keyspace.text.key_segments import KeySegments
from rtui.keyspace.text.segments import Separators

MOST_SEGMENTS: Final = 64
"""Segments of a name that are looked at."""

MOST_NAMED: Final = 3
"""Patterns that a sentence names; the others are counted."""

NO_COMMON_TAG: Final = SafeText(
    "Keys with the same {tag} share a slot. No identifier is in all of these names that could be one; a word as a tag "
    "would put all keys of a kind into one slot."
)


def verdict(slots: Collection[int], nodes: Collection[str] = ()) -> SafeText:
    """Say whether a cluster takes one command on keys in these slots; `nodes` serve them, as far as that is known."""
    if len(slots) == 1:
        return SafeText(f"Together: yes. All lie in slot {next(iter(slots))}, so one multi-key command may use them.")
    of_nodes = f" of {len(nodes):,} nodes" if len(nodes) > 1 else " of one node" if nodes else ""
    return SafeText(
        f"Together: no. They lie in {len(slots):,} slots{of_nodes}, and a cluster refuses one command across slots "
        "(CROSSSLOT)."
    )


@dataclass(frozen=True, slots=True)
class CommonTag:
    """A hash tag that would put keys into one slot, and their names with it."""

    tag: bytes
    """What stands between the braces."""
    names: tuple[bytes, ...]
    """In the order of the keys; a name that is hashed by the tag already stays."""

    @property
    def slot(self) -> int:
        """The slot that they would share."""
        return key_slot(self.names[0])

    @property
    def sentence(self) -> SafeText:
        """What it would do, before the names."""
        shown = display(b"{%b}" % self.tag, limit=128)
        return SafeText(f"The hash tag {shown} would put them into slot {self.slot}:")


def common_tag(names: Sequence[bytes], separators: Separators) -> CommonTag | None:
    """Return the longest identifier in all of these names as a hash tag; None where they have none in common.

    Of several as long, the one that comes first in the first name.
    """
    if not names:
        return None
    segments, identifiers = KeySegments(separators), Identifiers(separators.values)
    found = [_taggable(name, segments) for name in names]
    in_all = [segment for segment in found[0] if all(segment in one for one in found[1:])]
    tags = {hashed_bytes(name) for name in names if find_tag(name)[1] is not None}
    best = max((one for one in in_all if one in tags or identifiers.form(one).pattern), key=len, default=None)
    return None if best is None else CommonTag(best, tuple(one[best] for one in found))


def _taggable(name: bytes, segments: KeySegments) -> dict[bytes, bytes]:
    """Return what could be a name's hash tag, each with the name that it has then: what is hashed now, its segments."""
    found = {hashed_bytes(name): name}
    start = 0
    for segment, separator in segments.of(name, MOST_SEGMENTS):
        end = start + len(segment)
        tagged = name[:start] + b"{" + segment + b"}" + name[end:]
        if hashed_bytes(tagged) == segment:  # it is empty, or other braces come first
            found.setdefault(segment, tagged)
        start = end + len(separator)
    return found


@dataclass(frozen=True, slots=True)
class TagSpread:
    """How keys would lie over the slots if all of their patterns had such a tag."""

    patterns: tuple[bytes, ...]
    """Of the keys that would share slots."""
    keys: float
    """Of these patterns, by the report."""
    identifiers: float
    """How many different ones the pattern with most keys for each has."""
    fullest: float
    """At least this share of the keys, 0 … 1, would be in the fullest slot."""

    @property
    def ratio(self) -> float:
        """The fullest slot in means of all slots, at least."""
        return self.fullest * SLOTS

    @property
    def sentence(self) -> SafeText:
        """What it means, as a sentence."""
        named = [str(display(one, limit=60)) for one in self.patterns[:MOST_NAMED]]
        more = len(self.patterns) - len(named)
        named += [humanize.counted(more, "more pattern")] if more else []
        patterns = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
        keys, identifiers = round(self.keys), round(self.identifiers)
        share = f"{self.fullest:.2%}" if self.fullest < 0.01 else humanize.share(self.fullest)
        return SafeText(
            f"By the report {humanize.keys(keys)} of {patterns} have {humanize.counted(identifiers, 'identifier')}: "
            f"the fullest slot would hold at least {share} of them, {humanize.ratio(self.ratio)} the mean."
        )


def tag_spread(report: Report, names: Sequence[bytes], tag: bytes) -> TagSpread | None:
    """Return how the keys of these names' patterns would lie if all were tagged as `tag` tags these.

    None where the report does not tell: it does not have their patterns, or merged them with others.
    """
    namespaces = ReportedNamespaces(report)
    segments = KeySegments(namespaces.separators)
    keys_of: dict[tuple[Step, ...], float] = {}
    heaviest, identifiers = 0.0, 1.0
    for name in names:
        found = _counted(namespaces, segments.of(name, MOST_SEGMENTS), tag)
        if found is None:
            return None
        place, distinct = found
        keys = keys_of[place.path] = plain(place.node.stats.keys)
        if keys / distinct >= heaviest:
            heaviest, identifiers = keys / distinct, distinct
    total = sum(keys_of.values())
    if not total:
        return None
    fullest = min(1.0, max(heaviest / total, 1 / SLOTS))
    return TagSpread(tuple(map(label, keys_of)), total, identifiers, fullest)


def _counted(
    namespaces: ReportedNamespaces, segments: Sequence[tuple[bytes, bytes]], tag: bytes
) -> tuple[Place, float] | None:
    """Return where a key is counted, and how many different segments stand where its tag would be, at most."""
    place, distinct = namespaces.root, None
    for name, separator in segments:
        below = namespaces.below(place, name, separator)
        if below is None or below.node.is_of_names:
            return None
        place = below
        if distinct is None and name in (tag, b"{%b}" % tag):
            distinct = 1.0
            if place.node.distinct is not None:
                found = place.node.distinct
                distinct = found.high if isinstance(found, Estimate) else float(found)
            elif place.node.name != name:
                return None
    return None if distinct is None else (place, max(1.0, distinct))
