"""What a keyspace's patterns are: which names stay, which fold, and that the order of the keys has no say in it."""

from __future__ import annotations

import base64
import gc
import hashlib
import tracemalloc
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.query.behind import keys_of
from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.parsing import parse
from rtui.analysis.report.comparison import Fate, compare
from rtui.analysis.report.document import (
    Coverage,
    CoverageKind,
    Head,
    Node,
    NodeKind,
    Report,
    Scope,
    ServerReport,
    Summary,
)
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.conftest import examples, known
from tests.grammar import WORDS, Grammar
from tests.table.naive import add_batch

Weighed = tuple[bytes, int]
"""A key and its bytes."""


def report_of(keys: Iterable[Weighed], *, separators: Sequence[bytes] = (b":",), batch: int = 500) -> Report:
    keys = list(keys)
    scope = Scope(separators=tuple(separators))
    found = Aggregates(Separators(separators), scope=scope, started_at_s=0.0)
    for first in range(0, len(keys), batch):
        some = keys[first : first + batch]
        names = [key for key, _ in some]
        add_batch(found, InspectedBatch(b"string", names, [-1] * len(some), [size for _, size in some]), 1.0)
    head = Head(1.0, ServerReport("test"), scope, Coverage(CoverageKind.EXACT, len(keys), fraction=1.0))
    return Report(head, finish(found.summary()))


def light(*names: bytes) -> list[Weighed]:
    return [(name, 60) for name in names]


def shuffled(keys: Sequence[Weighed], seed: int = 1) -> list[Weighed]:
    return Random(seed).sample(keys, len(keys))


def patterns(report: Report) -> dict[bytes, Node]:
    """The nodes where keys end, by their whole pattern."""
    found = {}
    for path in report.summary.root.walk():
        below = sum(as_estimate(child.stats.keys).value for child in path[-1].children)
        if as_estimate(path[-1].stats.keys).value > below:
            found[b"".join(node.name + node.separator for node in path)] = path[-1]
    return found


def counts(report: Report) -> dict[bytes, object]:
    return {pattern: node.stats.keys for pattern, node in patterns(report).items()}


ISSUE = [
    *light(*(b"rank_daily_%d" % number for number in range(10_000))),
    *light(*(b"user:%d:profile" % number for number in range(300))),
    *light(*(b"session:%s" % hashlib.sha256(b"%d" % number).hexdigest().encode() for number in range(200))),
    *light(b"config:timeout", b"config:retries", b"config:theme"),
    (b"big:blob", 90_000),
]


def test_a_flood_of_numbered_keys_takes_no_name_away() -> None:
    expected = {
        b"rank_daily_<n>": 10_000,
        b"user:<id>:profile": 300,
        b"session:<hash>": 200,
        **{b"config:%s" % name: 1 for name in (b"timeout", b"retries", b"theme")},
        b"big:blob": 1,
    }
    for keys in (ISSUE, ISSUE[::-1], shuffled(ISSUE)):
        assert counts(report_of(keys)) == expected


def test_a_new_namespace_beside_a_flood_is_new() -> None:
    more = light(*(b"promo:%d" % number for number in range(20_000)))
    change = known(compare(report_of(ISSUE), report_of(shuffled(ISSUE + more))).find("promo:"))
    assert change.fate is Fate.CAME


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        (b"rank_daily_%d", b"rank_daily_<n>"), (b"user-%d", b"user-<n>"), (b"v1.user.%d", b"v1.user.<n>"),
        (b"img/%d.png", b"img/<n>.png"), (b"user%d", b"user<n>"), (b"userProfile%d", b"userProfile<n>"),
        (b"order_%d_v2", b"order_<n>_v2"), (b"shard3_user_%d", b"shard3_user_<n>"), (b"a:b%d", b"a:b<n>"),
    ],
)  # fmt: skip
def test_names_that_differ_in_a_number_fold_where_they_are_many(form: bytes, pattern: bytes) -> None:
    """Few of them are names."""
    many = light(*(form % number for number in range(1, 2_000)), b"other", b"another:one")
    found = patterns(report_of(shuffled(many)))
    assert found.keys() == {pattern, b"other", b"another:one"}
    assert 1_999 in as_estimate(found[pattern].distinct or 0)
    few = light(*(form % number for number in range(1, 9)))
    assert patterns(report_of(few)).keys() == {name for name, _ in few}


def test_namespaces_that_differ_in_a_number_fold_later_than_keys_and_heavy_ones_never() -> None:
    hundred = light(*(b"shard_%d:%s" % (number, part) for number in range(100) for part in (b"a", b"b")))
    assert len(report_of(hundred).summary.root.children) == 100
    many = light(*(b"shard_%d:%s" % (number, part) for number in range(500) for part in (b"a", b"b")))
    many += light(*(b"shard_7:%d" % number for number in range(100)))
    for keys in (many, many[::-1], shuffled(many)):
        assert counts(report_of(keys)) == {
            b"shard_<n>:a": 499,
            b"shard_<n>:b": 499,
            b"shard_7:a": 1,
            b"shard_7:b": 1,
            b"shard_7:<id>": 100,
        }


FORMED: dict[bytes, Callable[[int], bytes]] = {
    b"<id>": lambda number: b"%d" % (number * 7919),
    b"<uuid>": lambda number: str(uuid.UUID(int=number * 2**99 // 3)).encode(),
    b"<hash>": lambda number: hashlib.sha256(b"%d" % number).hexdigest().encode(),
    b"<date>": lambda number: b"20%02d-%02d-%02d" % (number // 360, number // 30 % 12 + 1, number % 30 + 1),
    b"<email>": lambda number: b"user.%d@mail.example.org" % number,
    b"<ip>": lambda number: b"10.%d.%d.1" % (number // 250, number % 250),
    b"task-meta-<uuid>": lambda number: b"task-meta-" + str(uuid.UUID(int=number * 2**99 // 3)).encode(),
    b"day-<date>": lambda number: b"day-20%02d-%02d-%02d" % (number // 360, number // 30 % 12 + 1, number % 30 + 1),
    b"view/product/<n>": lambda number: b"view/product/%d" % number,
    b"{<ip>:login}": lambda number: b"{2001:db8::%x:login}" % number,
    b"from_<ip>": lambda number: b"from_10.%d.%d.1" % (number // 250, number % 250),
    b"page..GET.<hash>.en": lambda number: b"page..GET.%s.en" % hashlib.sha256(b"%d" % number).hexdigest().encode(),
}


@pytest.mark.parametrize("pattern", list(FORMED))
@pytest.mark.parametrize("number", [1, 700])
def test_identifiers_fold_by_their_form_however_few(pattern: bytes, number: int) -> None:
    keys = light(*(b"app:%s:x" % FORMED[pattern](one) for one in range(1, number + 1)))
    assert counts(report_of(keys)) == {b"app:%s:x" % pattern: number}


def ip6(number: int) -> bytes:
    """An address in one of several ways of writing it."""
    rng = Random(number)
    groups = [b"%x" % rng.getrandbits(16) for _ in range(8)]
    left = rng.randint(1, 5)
    return rng.choice(
        (
            b":".join(groups),
            b"2001:db8::%x" % number,
            b"fe80::" + b":".join(groups[:4]),
            b":".join((b"2a02", *groups[: left - 1])) + b"::" + b":".join(groups[: rng.randint(1, 7 - left)]),
        )
    )


@pytest.mark.parametrize("separators", [(b":",), (b":", b"/"), (b"/",), (b"::", b":")])
def test_ip6_addresses_are_one_segment(separators: tuple[bytes, ...]) -> None:
    separator = separators[-1]
    numbers = [number for number in range(400) if any(letter in b"abcdef" for letter in ip6(number))]
    keys = light(*(separator.join((b"rate", ip6(number), b"login")) for number in numbers))
    found = counts(report_of(keys, separators=separators))
    assert found == {separator.join((b"rate", b"<ip>", b"login")): len(numbers)}
    names = light(b"a:b:c:d:1", b"feed::42", b"cafe:babe:face", b"rate:2001:db8:x")
    assert b"<ip>" not in b" ".join(patterns(report_of(names)))


@pytest.mark.parametrize("separators", [(b"-",), (b".", b"-")])
def test_uuids_and_ip4_addresses_are_one_segment_whatever_separates(separators: tuple[bytes, ...]) -> None:
    joined = separators[0].join
    keys = light(*(joined((b"job", FORMED[b"<uuid>"](number), b"log")) for number in range(1, 200)))
    keys += light(*(joined((b"{%s}" % FORMED[b"<uuid>"](number), b"x")) for number in range(1, 30)))
    keys += light(*(joined((b"rate", FORMED[b"<ip>"](number))) for number in range(70)))
    names = light(joined((b"job", b"550e8400-e29b-41d4-a716-44665544000", b"log")))
    found = counts(report_of(keys + names, separators=separators))
    assert [found[joined((b"job", b"<uuid>", b"log"))], found[joined((b"{<uuid>}", b"x"))]] == [199, 29]
    assert found[joined((b"rate", b"<ip>"))] == 70
    assert len(found) == 4


def test_tags_that_differ_in_a_number_fold_where_they_are_many() -> None:
    keys = light(*(b"{user%d}:cart" % number for number in range(300)), b"{shop}:cart")
    assert counts(report_of(keys)) == {b"{user<n>}:cart": 300, b"{shop}:cart": 1}


def test_the_version_that_all_keys_begin_with_is_shown_as_it_is() -> None:
    names = [b":1:product:%d" % number for number in range(200)]
    found = Aggregates(Separators(), scope=Scope(), started_at_s=0.0)
    add_batch(found, InspectedBatch(b"string", names, [3_600_000] * 200, [60] * 200), 1.0)
    add_batch(
        found,
        InspectedBatch(b"string", [b":1:cart:%d" % number for number in range(50)], [60_000] * 50, [60] * 50),
        1.0,
    )
    summary = finish(found.summary())
    empty = summary.root.children[0]
    assert [(node.name, node.kind, node.distinct) for node in empty.children if node.separator] == [
        (b"1", NodeKind.LITERAL, None)
    ]
    told = {(one.path, one.label) for one in summary.expiry.timelines}
    assert told >= {((b"", b"1", b"product"), ":1:product:"), ((b"", b"1", b"cart"), ":1:cart:")}
    assert counts(report_of(light(*names, b":2:product:1"))) == {b":<id>:product:<id>": 201}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        lambda rng: "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=9)).encode(),
        lambda rng: base64.urlsafe_b64encode(rng.randbytes(6)),
        lambda rng: b"%x" % rng.getrandbits(20),
        lambda rng: "-".join(rng.choices(WORDS, k=3)).encode(),
    ],
)
@pytest.mark.parametrize("below", [b"", b":cart"])
def test_names_whose_number_grows_with_the_keys_are_identifiers(name: Callable[[Random], bytes], below: bytes) -> None:
    rng = Random(3)
    names = sorted({name(rng) for _ in range(4_000)})
    keys = light(*(b"shop:%s%s" % (one, below) for one in names), b"shop:index:all", b"shop:index:new")
    keys += light(*(b"shop:index:%d" % number for number in range(200)))
    for order in (keys, keys[::-1], shuffled(keys)):
        report = report_of(order)
        found = {path: node for path, node in patterns(report).items() if not path.startswith(b"shop:index:")}
        assert sum(as_estimate(node.stats.keys).value for node in found.values()) == len(names)
        largest = max(found.values(), key=lambda node: as_estimate(node.stats.keys).value)
        (open_node,) = (node for (*_, node) in report.summary.root.walk() if node.holds_names)
        assert open_node.name == b"<id>"
        assert as_estimate(open_node.distinct or 0).low <= len(names)
        assert largest.examples
        assert patterns(report)[b"shop:index:<id>"].stats.keys == 200


def test_words_stay_and_light_ones_are_no_identifiers() -> None:
    words = [first + second for first in (b"", b"old", b"new") for second in (one.encode() for one in WORDS[:100])]
    some = light(*(b"cache:%s:%d" % (word, number) for word in words[:120] for number in range(9)))
    assert len(report_of(some).summary.root.children[0].children) == 120
    many = light(*(b"cache:%s:%d" % (word, number) for word in words for number in range(100)))
    assert counts(report_of(shuffled(many))) == {b"cache:<*>:<id>": 30_000}
    flat = light(*(b"config:%s" % word for word in words))
    assert counts(report_of(shuffled(flat))) == {b"config:<*>": 300}


def test_a_flood_of_keys_leaves_the_namespaces_beside_it() -> None:
    rng = Random(4)
    flood = light(*{"".join(rng.choices("abcdefghijklmnop", k=8)).encode() for _ in range(6_000)})
    spaces = light(*(b"%s:a" % word.encode() for word in WORDS[:100]))
    heavy = [(b"giant", 10**6)]
    expected = {**{b"%s:a" % word.encode(): 1 for word in WORDS[:100]}, b"giant": 1, b"<id>": len(flood)}
    for keys in (flood + spaces + heavy, heavy + spaces + flood, shuffled(flood + spaces + heavy)):
        assert counts(report_of(keys)) == expected


def test_how_many_names_a_pattern_stands_for() -> None:
    for many in (5, 255, 3_000):
        keys = light(*(b"user:%d:%s" % (number, part) for number in range(many) for part in (b"a", b"b", b"c")))
        ((_, user, identifier), *_) = (path for path in report_of(keys).summary.root.walk() if len(path) == 3)
        assert (user.distinct, identifier.name) == (None, b"<id>")
        if many < 256:
            assert identifier.distinct == many
        else:
            assert isinstance(identifier.distinct, Estimate)
            assert many in identifier.distinct
    keys = light(*(b"session:%s" % str(uuid.UUID(int=number << 40)).encode() for number in range(1, 3_000)))
    assert [node.distinct for node in patterns(report_of(keys)).values()] == [2_999]


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(0, 2**32), st.integers(1, 20_000))
def test_the_number_of_names_is_within_its_interval_nearly_always(first: int, many: int) -> None:
    keys = light(*(b"u:%d:%s" % (first + 7 * number, part) for number in range(many) for part in (b"a", b"b")))
    ((*_, node), *_) = (path for path in report_of(keys).summary.root.walk() if len(path) == 3)
    found = as_estimate(node.distinct or 0)
    assert found.low * 0.85 <= many <= found.high * 1.15


def test_examples_are_keys_of_the_pattern_and_the_same_in_any_order() -> None:
    keys = light(*(b"user:%d:orders" % number for number in range(1_000)), b"user:list")
    first, second = (patterns(report_of(order)) for order in (keys, shuffled(keys)))
    node = first[b"user:<id>:orders"]
    assert len(set(node.examples)) == 3
    assert set(node.examples) <= {key for key, _ in keys}
    assert node.examples == second[b"user:<id>:orders"].examples
    assert first[b"user:list"].examples == ()


def names_of(seed: int, count: int, some: int | None) -> Iterator[Weighed]:
    rng = Random(seed)
    for write in Grammar(seed, some).writes(count):
        if write[0] != "PEXPIRE" and isinstance(write[1], bytes):
            yield write[1], int(2 ** (12 * rng.random()))


@pytest.mark.slow
@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_real_names_has_no_say(seed: int) -> None:
    keys = list(names_of(seed, 5_000, 60))
    separators = ((b":",), (b":", b"/"))[seed % 2]
    one, other = (
        report_of(order, separators=separators, batch=batch) for order, batch in ((keys, 500), (shuffled(keys), 77))
    )
    assert one.summary.root == other.summary.root


@pytest.mark.slow
@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(2))
def test_each_pattern_as_a_query_finds_its_keys(seed: int) -> None:
    keys = list(names_of(seed + 20, 1_500, 40)) + ISSUE[:500]
    for number in range(100):
        keys.append((b"rate:" + ip6(number), 50))
    splits = Separators((b":",))
    report = report_of(shuffled(keys))
    exact = 0
    for path in report.summary.root.walk():
        of = keys_of(path)
        query = parse(str(of.query))
        assert query == of.query
        if of.is_exact and (path[-1].kind is NodeKind.PATTERN or exact % 7 == 0):
            found = len(NameFilter(query, splits).keep([key for key, _ in keys]))
            assert found == path[-1].stats.keys, (str(of.query), [node.step for node in path])
        exact += of.is_exact
    assert exact > 20


@pytest.mark.slow
@pytest.mark.parametrize("form", [b"flat_%d", b"%x", b"n%d:a", b"a:%d-%d", b"x:%x:y", b"%d_k%d:%x"])
def test_memory_does_not_grow_with_names(form: bytes) -> None:
    found = Aggregates(Separators((b":",)), scope=Scope(), started_at_s=0.0)
    for first in range(0, 30_000, 2_500):
        if first == 20_000:
            gc.collect()
            tracemalloc.start()
        numbers = [number * 2_654_435_761 % 2**32 for number in range(first, first + 2_500)]
        keys = [form % ((number,) * form.count(b"%")) for number in numbers]
        add_batch(found, InspectedBatch(b"string", keys, [-1] * 2_500, [60] * 2_500), 1.0)
        finish(found.add_held())
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 3 << 20
    assert finish(found.summary()).root.stats.keys == 30_000


@pytest.mark.slow
def test_memory_of_thousands_of_patterns_is_bounded() -> None:
    found = Aggregates(Separators((b":",)), scope=Scope(), started_at_s=0.0)
    keys = [key for key, _ in names_of(7, 20_000, 5_000)]
    gc.collect()
    tracemalloc.start()
    for first in range(0, len(keys), 2_500):
        some = keys[first : first + 2_500]
        add_batch(found, InspectedBatch(b"string", some, [-1] * len(some), [60] * len(some)), 1.0)
        finish(found.add_held())
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 24 << 20


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


def shuffled_keys(keys: Keys, seed: int) -> Keys:
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
    for keys in (FLAT + real, real + FLAT, shuffled_keys(FLAT + real, 1)):
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
    for keys in (ids + real, real + ids, shuffled_keys(ids + real, 2)):
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
    others = shuffled_keys(keys, seed)
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
    found = names(summary_of(shuffled_keys(keys, 5), live=True).root)
    assert found.pop(b"user<n>") + found.pop(b"<id>") == 60_000
    assert found == {b"blob": 1, **{b"name%d" % name: 800 for name in range(12)}}
