"""What is counted of the rows of a chunk is what is counted of each of them by itself."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtui.registry.expectations import Expectations, read_length, read_size, read_ttl
from rtui.registry.matching import Matcher
from rtui.registry.naming import NamingConfig, NamingRules, Style
from rtui.registry.patterns import Pattern, read_pattern
from rtui.registry.registry import Registry, RegistryEntry
from rtui.registry.rules import RuleLevels
from rtui.table.aggregates import with_moment
from rtui.table.key_count import KeyCount
from rtui.table.registered import RegistryCounts
from rtui.table.registered_rows import RegisteredRows
from rtui.table.schema import NEVER
from rtui.table.schema import keys_of as keys_of_table
from tests.grammar import Grammar
from tests.table.naive import table_of


def registry_of(found: Sequence[Pattern], config: NamingConfig) -> Registry:
    choices = (
        Expectations(ttl=read_ttl("none")),
        Expectations((b"hash",), read_ttl("30m..2h"), read_size("<=1K"), "", read_length("1..10"), ""),
        Expectations((b"string", b"hash"), read_ttl("required"), read_size(">=100")),
    )
    entries = tuple(RegistryEntry(one, choices[at % 3]) for at, one in enumerate(found))
    rules = NamingRules(config, found)
    return Registry(None, "", config.separators, entries, Matcher(found, config.separators), rules, RuleLevels())


ROWS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("hash", "string", None)),
        "expires_ms": st.sampled_from((None, NEVER, 0, 1_000_000, 10_000_000, (1 << 62))),
        "memory_bytes": st.sampled_from((None, 1, 99, 1_024, 1_025, (1 << 62))),
        "length": st.sampled_from((None, 0, 5, 11)),
        "sampled": st.booleans(),
    }
)


@given(st.integers(0, 1 << 32), st.lists(ROWS, min_size=1, max_size=20), st.integers(1, 3), st.booleans())
def test_rows_are_counted_together_as_one_by_one(
    seed: int, facts: list[dict[str, object]], chunks: int, is_sample: bool
) -> None:
    grammar = Grammar(seed, 30)
    rng = grammar.rng
    found = [read_pattern(text, {}, (b":",)) for text in ("<a>:<b>", "<a>:<int>", "<a>:<b>:<c>", "<word>-<int>")]
    registry = registry_of(found, NamingConfig(separators=(b":",), styles=Style.CAMEL))
    names = [rng.choice(grammar.patterns).name(rng) for _ in range(30)]
    keys = [*dict.fromkeys([*names, b"\xff:7", "é:7".encode(), b"x" * 300 + b":1", b""])]
    rows = [{"key": key, **facts[at % len(facts)]} for at, key in enumerate(keys)]
    together, one_by_one = (RegistryCounts(registry, is_sample=is_sample) for _ in range(2))
    of_chunks, of_rows = RegisteredRows(together), RegisteredRows(one_by_one)
    for at in range(chunks):
        add(of_chunks, rows[at::chunks])
        for row in rows[at::chunks]:
            add(of_rows, [row])
    assert _said(together) == _said(one_by_one)


def add(counting: RegisteredRows, rows: list[dict[str, object]]) -> None:
    table = with_moment(table_of(rows), 5_000)
    counting.add(table, np.array([crc32(key) for key in keys_of_table(table)], np.int64))


def _said(counts: RegistryCounts) -> object:
    entries, naming = counts.entries, counts.naming
    return (
        entries.layouts,
        *(entries.memory, entries.expiring, entries.longest_ms),
        *({place: _keys_of(one) for place, one in some.items()} for some in (entries.broken, naming._counts)),
        {index: _keys_of(one) for index, one in entries.shown.items() if one.examples or one.long_names or one.sizes},
        naming._second,
    )


def _keys_of(count: KeyCount) -> tuple[object, ...]:
    sizes = count.sizes and (count.sizes.count, count.sizes.sum, count.sizes.min, count.sizes.max, count.sizes._counts)
    return count.keys, count.memory_keys, count.memory_bytes, [*count.examples], count.long_names, sizes
