"""What can be gone to: entries of several kinds, the words that narrow to one of them, and which match best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.matching import Match, Matcher, MatchKind
from rtui.tui.kit.styled_text import literal


class Kind(Enum):
    """What an entry is; of entries that match equally well, those of the first kinds come first."""

    LIST = literal("list")
    PANEL = literal("panel")
    SCREEN = literal("screen")
    QUERY = literal("query")
    DATABASE = literal("database")
    PROFILE = literal("profile")
    SERVER = literal("server")
    NAMESPACE = literal("namespace")
    KEY = literal("key")
    COMMAND = literal("command")
    THEME = literal("theme")


KIND_CELLS: Final = max(len(kind.value) for kind in Kind)

RANKS: Final = {kind: rank for rank, kind in enumerate(Kind)}

NARROWING: Final = {
    "panel": (frozenset({Kind.PANEL, Kind.SCREEN}), literal("panels of the analysis and other screens")),
    "ns": (frozenset({Kind.NAMESPACE}), literal("namespaces that are loaded")),
    "key": (frozenset({Kind.KEY}), literal("loaded keys, or any by its exact name")),
    "db": (frozenset({Kind.DATABASE}), literal("databases of this server with key counts")),
    "profile": (frozenset({Kind.PROFILE, Kind.SERVER}), literal("profiles and recent servers")),
    "theme": (frozenset({Kind.THEME}), literal("themes: the colours of everything")),
    "cmd": (frozenset({Kind.COMMAND}), literal("commands of this screen")),
}
"""Words that narrow the list when a blank follows them: to which kinds, and what those are."""


class Wanted(NamedTuple):
    """What was typed: the text to match, and the kinds to look among."""

    text: str
    kinds: frozenset[Kind]


def wanted(typed: str) -> Wanted:
    """Return what was typed as a text and kinds: `db 3` is the text `3` among databases."""
    typed = typed.removeprefix(":")
    word, blank, rest = typed.partition(" ")
    if blank and word in NARROWING:
        return Wanted(rest.strip(), NARROWING[word][0])
    return Wanted(typed.strip(), frozenset(Kind))


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to go to."""

    kind: Kind
    text: SafeText
    name: bytes
    """What is matched with what was typed."""
    note: SafeText = field(default=literal(""), compare=False)
    """What stands at the right: keys of a command, numbers of a database."""
    go: Callable[[], object] | None = field(default=None, compare=False)
    """Goes there, once the list is closed; may return an awaitable. None for an entry that fills the line instead."""
    fill: str = ""
    """What the line is filled with."""


def list_entries(kinds: Iterable[Kind]) -> list[Entry]:
    """Return the entries that narrow the list to kinds of which there is any."""
    there = frozenset(kinds)
    return [
        Entry(Kind.LIST, SafeText(f"{word} …"), word.encode(), note, fill=f"{word} ")
        for word, (narrowed, note) in NARROWING.items()
        if narrowed & there
    ]


Ranked = tuple[Match, int, Entry]
"""An entry with how well it matches and the rank of its kind."""


def matching(entries: Sequence[Entry], query: Wanted) -> list[Ranked]:
    """Return the entries that match, the best ones first; without a text all of the kinds, in the order given."""
    among = [entry for entry in entries if entry.kind in query.kinds]
    if not query.text:
        return [(Match(MatchKind.EXACT, 0, at), 0, entry) for at, entry in enumerate(among)]
    matcher = Matcher(query.text.encode("utf-8", "surrogateescape"))
    found = [(matcher.match(entry.name), entry) for entry in among]
    return ranked((match, entry) for match, entry in found if match is not None)


def ranked(found: Iterable[tuple[Match, Entry]]) -> list[Ranked]:
    """Return entries in their order: by kind of match, kind of entry, how close the letters are, and length."""
    made = [(match, RANKS[entry.kind], entry) for match, entry in found]
    return sorted(made, key=lambda one: (one[0].kind, one[1], one[0].spread, one[0].length, one[2].name))
