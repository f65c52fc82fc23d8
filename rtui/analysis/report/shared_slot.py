"""Whether keys may be used together in a cluster, and the hash tag that would allow it.

A cluster takes a command on several keys only if all hash to one slot. Take `user:42:profile` and `cart:42`, which
do not. Both have the segment `42`, which is an identifier: as a hash tag, in `user:{42}:profile` and `cart:{42}`, it
puts them into one slot (`common_tag`). A segment that is a name, as `user`, is not proposed: all keys of its kind would
share that slot.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.keyspace.slots import find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.identifiers import Identifiers
from rtui.keyspace.text.key_segments import KeySegments
from rtui.keyspace.text.segments import Separators

MOST_SEGMENTS: Final = 64
"""Segments of a name that are looked at."""

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
    """The text between the braces."""
    names: tuple[bytes, ...]
    """In the order of the keys; a name that is hashed by the tag already stays."""

    @property
    def slot(self) -> int:
        """The slot that they would share."""
        return key_slot(self.names[0])

    @property
    def sentence(self) -> SafeText:
        """The effect of the tag, as a sentence before the names."""
        shown = display(b"{%b}" % self.tag, limit=128)
        return SafeText(f"The hash tag {shown} would put them into slot {self.slot}:")


def common_tag(names: Sequence[bytes], separators: Separators) -> CommonTag | None:
    """Return the longest identifier that all of these names could have as a hash tag; None if there is none.

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
    """Return the possible hash tags of a name, each with the name it would make: the currently hashed text, its
    segments."""
    found = {hashed_bytes(name): name}
    start = 0
    for segment, separator in segments.of(name, MOST_SEGMENTS):
        end = start + len(segment)
        tagged = name[:start] + b"{" + segment + b"}" + name[end:]
        if hashed_bytes(tagged) == segment:  # it is empty, or other braces come first
            found.setdefault(segment, tagged)
        start = end + len(separator)
    return found
