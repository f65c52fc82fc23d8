"""What a registry says of a keyspace: a part of the report.

Texts of the registry are kept with the figures, so that a report tells what it was compared with wherever it is read.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rtui.analysis.report.members import Count, Figure, Name, Text

TEXT_LIMIT: Final = 1_000
"""Characters of a text of the registry that are kept."""


class RuleSetting(Struct, frozen=True, gc=False):
    """What a registry sets of a rule."""

    severity: Text
    """off, warn or error."""
    parameters: dict[Text, bool | int | float | tuple[Text, ...]] = {}
    """Those that are set: durations in milliseconds, sizes in bytes."""


class LongName(Struct, frozen=True, gc=False):
    """A name that is too long to be kept as an example."""

    beginning: Name
    """Its first bytes."""
    length: Count
    """Bytes of the whole name."""


class ExpectationReport(Struct, frozen=True, gc=False):
    """One thing that a pattern expects of its keys, and how many of them break it."""

    rule: Text
    """The id of the rule: type-wrong, ttl-missing, ttl-too-long, ttl-too-short, ttl-unexpected, size-out-of-range or
    length-out-of-range."""
    expected: Text
    """As the registry has it: `hash or string`, `30m..2h`."""
    keys: Figure | None
    """Keys that break it; None where the fact is known of no key."""
    memory_bytes: Figure | None
    """Bytes of those among them whose memory is known."""
    known_keys: Count = 0
    """Inspected keys of the pattern whose fact is known: if those are not all, there may be more that break it."""
    examples: tuple[Name, ...] = ()
    """Some of the keys that break it."""
    long_names: tuple[LongName, ...] = ()
    """Some of those whose names are too long for that."""


class EntryReport(Struct, frozen=True, gc=False):
    """A registered pattern and its keys. Texts are those of the registry."""

    pattern: Text
    keys: Figure
    share_keys: Figure
    """Of all keys, 0 … 1."""
    inspected_keys: Count
    """Keys that were looked at: in an estimate those of the sample."""
    memory_bytes: Figure | None
    """None where it is known of none of its keys."""
    share_memory: Figure | None
    memory_known_keys: Count = 0
    """Inspected keys whose memory is known: if those are not all, the bytes are at least so many."""
    types: tuple[tuple[Name, Figure], ...] = ()
    """Keys by type as the server names it, most first."""
    expectations: tuple[ExpectationReport, ...] = ()
    examples: tuple[Name, ...] = ()
    """Some of its keys."""
    purpose: Text = ""
    owner: Text = ""
    scene: Text = ""
    deprecated: Text = ""
    """What to use instead; empty where it is not to be retired."""
    origin: Text = ""
    """The included registry that it is from; empty for one of the file itself."""


class UnregisteredReport(Struct, frozen=True, gc=False):
    """A namespace or pattern of the report whose keys no entry of the registry describes, or the rest of such keys."""

    namespace: Name
    """How its keys begin, or a whole key."""
    place: Count
    """Its index in the list of namespaces, each followed by those below it; 0 for the rest, which is in no other."""
    keys: Figure
    """An estimate where it was seen from examples that some of its keys are registered."""
    memory_bytes: Figure | None
    examples: tuple[Name, ...] = ()
    """Some of its keys without pattern."""
    long_names: tuple[LongName, ...] = ()
    """Some of the keys without pattern whose names are too long for that; with the rest only."""


class RegistryReport(Struct, frozen=True, gc=False):
    """What the keys of a keyspace are by the registry."""

    title: Text
    file: Text
    """The name of the file, without its folder."""
    registered_keys: Figure
    """Keys that have a registered pattern."""
    registered_share: Figure
    """Of all keys, 0 … 1."""
    registered_memory_bytes: Figure | None
    registered_memory_share: Figure | None
    unregistered_keys: Figure
    unregistered_memory_bytes: Figure | None
    entries: tuple[EntryReport, ...]
    """In the order of the registry."""
    unregistered: tuple[UnregisteredReport, ...] = ()
    """Largest first, together as many as `unregistered_keys`. The last may be the rest: keys whose names are too long
    to be examples, or of namespaces that are not told apart."""


class NamePlace(Struct, frozen=True, gc=False):
    """Keys of one namespace or pattern whose names break one rule."""

    namespace: Name
    """How the keys begin; empty for keys without namespace, and for those of a pattern."""
    pattern: Text
    """The registered pattern; empty for keys that have none."""
    keys: Figure
    memory_bytes: Figure | None
    examples: tuple[Name, ...] = ()
    long_names: tuple[LongName, ...] = ()
    """Some of the keys whose names are too long to be examples."""


class NameRuleReport(Struct, frozen=True, gc=False):
    """One rule about names, and the keys that break it."""

    rule: Text
    keys: Figure
    share_keys: Figure
    """Of all keys, 0 … 1."""
    memory_bytes: Figure | None
    places: tuple[NamePlace, ...] = ()
    """Most keys first."""
    other_keys: Figure = 0
    """Keys in places that are not listed."""
    examples: tuple[Name, ...] = ()
    """Some of all these keys."""


class NamingReport(Struct, frozen=True, gc=False):
    """Which of the naming rules are broken."""

    rules: tuple[NameRuleReport, ...]
    """Every rule that is not off, also those that no key breaks, in their order."""
