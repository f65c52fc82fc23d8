"""Which names a summary keeps, and that the order of the keys has no say in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.report.document import Node, NodeKind, Scope, Summary
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.table.naive import add_batch

Keys = Sequence[tuple[bytes, int]]
"""Keys and their bytes."""


def summary_of(keys: Keys, *, budget: int = 4096, batch: int = 100, live: bool = False) -> Summary:
    """The last summary of these keys, seen in this order; `live` makes others on the way."""
    found = Aggregates(Separators((b":",)), scope=Scope(), started_at_s=0.0, node_budget=budget)
    for first in range(0, len(keys), batch):
        some = keys[first : first + batch]
        add_batch(
            found,
            InspectedBatch(b"string", [key for key, _ in some], [-1] * len(some), [size for _, size in some]),
            1.0,
        )
        if live and first // batch % 20 == 0:
            now = finish(found.summary())
            assert (now.root.stats.keys, now.root.stats.memory_bytes) == (
                first + len(some),
                sum(size for _, size in keys[: first + len(some)]),
            )
    return finish(found.summary())


def shuffled(keys: Keys, seed: int) -> Keys:
    another = list(keys)
    Random(seed).shuffle(another)
    return another


def names(node: Node) -> dict[bytes, int]:
    """The keys of each child by its name, all separators together."""
    found: Counter[bytes] = Counter()
    for child in node.children:
        assert isinstance(child.stats.keys, int)
        found[child.name] += child.stats.keys
    return dict(found)


FLAT = [(b"flatkey%x" % (number * 7919), 50) for number in range(10_000)]


@pytest.mark.slow
def test_namespaces_beside_thousands_of_flat_keys_keep_their_names() -> None:
    """They come last, when the namespace has had too many names for long."""
    real = [(b"session:1a:data", 60)] * 300 + [(b"cart:%d" % number, 60) for number in range(400)] + [(b"giant", 10**6)]
    for keys in (FLAT + real, real + FLAT, shuffled(FLAT + real, 1)):
        root = summary_of(keys).root
        found = names(root)
        assert found.pop(b"flatkey<n>") + found.pop(b"<id>") == 10_000
        assert found == {b"session": 300, b"cart": 400, b"giant": 1}
        (session,) = (child for child in root.children if child.name == b"session")
        assert [path[-1].name for path in session.walk()] == [b"session", b"1a", b"data"]


def test_short_hexadecimal_ids_do_not_take_the_names_beside_them() -> None:
    ids = [(b"session:%x:data" % number, 60) for number in range(0xA00, 0xFFF)]
    real = [(b"session:index:data", 60)] * 40 + [(b"session:a", 60)] * 50 + [(b"session:stats:day", 60)] * 60
    expected = None
    for keys in (ids + real, real + ids, shuffled(ids + real, 2)):
        (session,) = summary_of(keys).root.children
        found = names(session)
        assert {name: found[name] for name in (b"index", b"a", b"stats")} == {b"index": 40, b"a": 50, b"stats": 60}
        assert found.keys() == {b"index", b"a", b"stats", b"<id>"}
        expected = expected or session
        assert session == expected


def word(chance: Random) -> bytes:
    """A name as people make them up, or a short id that looks like one."""
    return bytes(chance.choices(b"abcdef0123456789", k=chance.choice((1, 2, 4)))) + chance.choice((b"", b"x"))


def keyspace(chance: Random) -> list[tuple[bytes, int]]:
    """Up to some thousand keys, on some levels with far more names than are shown."""
    firsts = [word(chance) for _ in range(chance.choice((3, 100, 600)))]
    seconds = [word(chance) for _ in range(chance.choice((3, 150, 500)))]
    weights = [1 / (rank + 1) ** chance.choice((0, 1)) for rank in range(len(firsts))]
    keys = []
    for _ in range(chance.choice((50, 1000, 4000))):
        parts = [chance.choices(firsts, weights)[0], chance.choice(seconds), b"%d" % chance.randrange(10**5), b"z"]
        size = 50 if chance.random() < 0.999 else 50_000
        keys.append((b":".join(parts[: chance.randint(1, 4)]), size))
    return keys


@pytest.mark.slow
@settings(deadline=None, max_examples=4)
@given(st.integers(0, 1 << 32), st.sampled_from((4096, 600, 60)))
@example(11774, 4096)
@example(56, 60)
def test_the_order_of_the_keys_says_nothing(seed: int, budget: int) -> None:
    """Nor do summaries made meanwhile matter: the tree promises both while there are few enough nodes."""
    keys = keyspace(Random(seed))
    others = shuffled(keys, seed)
    assert summary_of(keys, budget=budget).root == summary_of(others, budget=budget, live=True).root


def test_siblings_that_weigh_the_same_have_one_order() -> None:
    """A name with braces may read like the pattern beside it."""
    keys = [(b"<id>", 50), (b"42", 50)]
    kinds = [[child.kind for child in summary_of(order).root.children] for order in (keys, keys[::-1])]
    assert kinds == [[NodeKind.LITERAL, NodeKind.PATTERN]] * 2


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1 << 32), st.booleans())
def test_what_holds_a_hundredth_has_its_name(seed: int, live: bool) -> None:
    keys = keyspace(Random(seed))
    weights: dict[tuple[bytes, ...], list[int]] = {}
    for key, size in keys:
        parts = key.split(b":")
        for level in range(len(parts)):
            weight = weights.setdefault((*parts[:level], parts[level] + b":" * (level + 1 < len(parts))), [0, 0])
            weight[0] += 1
            weight[1] += size
    whole = sum(size for _, size in keys)
    shown: dict[tuple[bytes, ...], int] = {}
    for *above, last in summary_of(keys, live=live).root.walk():
        assert isinstance(last.stats.keys, int)
        shown[(*(one.name for one in above[1:]), last.name + last.separator)] = last.stats.keys
    for path, (count, size) in weights.items():
        is_name = not any(part.strip(b":").isdigit() for part in path)
        if is_name and (100 * count >= len(keys) or 100 * size >= whole):
            assert shown.get(tuple(part.strip(b":") for part in path[:-1]) + path[-1:]) == count


@pytest.mark.slow
def test_a_large_keyspace_in_the_order_of_a_scan_loses_nothing_of_what_is_heavy() -> None:
    """Far more names than a namespace keeps: those of one hundredth come out exactly nevertheless."""
    keys = [(b"user%x:%s" % (number, part), 60) for number in range(30_000) for part in (b"a", b"b")]
    keys += [(b"name%d:%d" % (name, number), 60) for name in range(12) for number in range(800)]
    keys += [(b"blob", 2_000_000)]
    found = names(summary_of(shuffled(keys, 5), live=True).root)
    assert found.pop(b"user<n>") + found.pop(b"<id>") == 60_000
    assert found == {b"blob": 1, **{b"name%d" % name: 800 for name in range(12)}}
