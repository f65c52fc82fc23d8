"""What a library has written to a server: its keys, the patterns that are learnt of them, what a registry says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rtui.analysis.estimates import as_estimate
from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.expectations import FoundKey, breaches_of
from rtui.registry.load import load_registry
from rtui.registry.registry import SHIPPED
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.servers import Server
from tests.table.drawn_rows import add_batch

Keyspace = dict[bytes, FoundKey]
"""Keys with their type and TTL."""


def keyspace(server: Server) -> Keyspace:
    admin = server.admin
    return {key: FoundKey(admin.execute_command("TYPE", key), admin.pttl(key)) for key in admin.scan_iter(count=1_000)}


def patterns_of(keys: Iterable[bytes], separators: Sequence[bytes] = (b":",)) -> dict[str, int]:
    """The patterns that an analysis learns of keys, with how many keys each has."""
    names = sorted(keys)
    scope = Scope(separators=tuple(separators))
    found = Aggregates(Separators(separators), scope=scope, started_at_s=0.0)
    add_batch(found, InspectedBatch(b"string", names, [-1] * len(names), [60] * len(names)), 1.0)
    patterns: dict[str, int] = {}
    for path in finish(found.summary()).root.walk():
        node = path[-1]
        own = as_estimate(node.stats.keys).value - sum(as_estimate(one.stats.keys).value for one in node.children)
        if own > 0:
            patterns[b"".join(one.name + one.separator for one in path).decode()] = int(own)
    return patterns


def registered(name: str, keys: Keyspace) -> Counter[str]:
    """How many keys each pattern of a registry that ships has; every key has one, and breaks nothing of it."""
    registry = load_registry(SHIPPED / f"{name}.toml")
    counts: Counter[str] = Counter()
    for key, found in keys.items():
        entry = registry.entry_of(key)
        assert entry is not None, key
        assert breaches_of(entry.expectations.broken(found)) == (), (key, found)
        counts[entry.pattern.text] += 1
    return counts
