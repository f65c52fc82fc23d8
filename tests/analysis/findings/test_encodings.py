"""Encodings: strings that would be smaller as hashes, tiny ones, and keys beyond the limits of compact encodings."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.contents import findings
from rtui.analysis.findings.encodings import HashPart, has_small_entries, hashes_bytes
from rtui.analysis.findings.finding import Amount, Finding
from rtui.analysis.report.document import EncodingReport, Node, Report, ServerReport, TypeReport
from rtui.analysis.report.members import LENGTH_EDGES, StringReport
from tests.analysis.findings.test_findings import of_rule, only, report
from tests.conftest import known
from tests.made_report import keys_of, node, quantiles, stats
from tests.servers import Server

HASH, SET = (b"listpack", b"hashtable"), (b"intset", b"hashtable")


def typed(kind: bytes, *lengths: tuple[int, int], encodings: tuple[bytes, ...] = HASH, knows: bool = True) -> Report:
    """A report with keys of one type: (above which border, how many)."""
    bins = tuple(dict(lengths).get(edge, 0) for edge in LENGTH_EDGES)
    found = tuple(EncodingReport(kind, encoding, 500, 0.5) for encoding in encodings)
    made = report()
    one = TypeReport(kind, stats(1_000, 90_000, 0), quantiles(9), "fields", bins if knows else None)
    return replace(made, summary=replace(made.summary, types=(one,), encodings=found))


def over(of: Report, **parameters: float) -> tuple[Finding, ...]:
    return of_rule("encoding-over", of, **parameters)


def test_hashes_just_over_the_limit() -> None:
    (found,) = over(typed(b"hash", (448, 900), (512, 300), (640, 90)))
    assert found.title == (
        "≥ 300 hash keys have 513 to 640 fields, just over the limit of 512 for listpacks: hashtable"
    )
    assert (found.keys, found.memory) == (Amount(300, at_least=True), None)
    assert found.query == "type:hash len:513..640"
    assert found.command == "redis-cli --scan --type hash"
    assert found.evidence[0] == "50% of all of this type are hashtable"
    (wide,) = over(typed(b"hash", (512, 300), (640, 90)), within=1.5)
    assert wide.keys == Amount(390, at_least=True)
    (own,) = over(typed(b"hash", (64, 300)), hash=64)
    assert own.query == "type:hash len:65..80"


@pytest.mark.parametrize(
    "fine",
    [
        typed(b"hash", (448, 900), (640, 900)),
        typed(b"hash", (512, 99)),
        typed(b"hash", (512, 300), encodings=(b"listpack",)),
        typed(b"hash", (512, 300), encodings=()),
        typed(b"set", (128, 300), encodings=SET),
    ],
    ids=["beside", "few", "another limit", "not asked", "numbers"],
)
def test_nothing_just_over_a_limit(fine: Report) -> None:
    assert not over(fine)


def test_a_type_without_known_lengths_is_not_judged() -> None:
    found = findings(typed(b"hash", (512, 300), knows=False), only("encoding-over"))
    assert (found.findings, found.checked) == ((), ("encoding-over",))
    assert [one.why for one in found.unjudged] == ["the report does not have lengths of type hash"]
    for made, levels in (
        (typed(b"hash", (512, 300)), only("encoding-over")),
        (typed(b"hash", knows=False), only("encoding-over", keys=1_001)),
    ):
        assert findings(made, levels).unjudged == ()


def test_types_without_a_limit_are_not_looked_at() -> None:
    assert findings(typed(b"list", (512, 300)), only("encoding-over")).checked == ()


def test_a_limit_between_borders() -> None:
    assert not over(typed(b"hash", (80, 300)), hash=90)
    (found,) = over(typed(b"hash", (80, 300), (96, 200), (112, 100)), hash=90)
    assert found.keys == Amount(200, at_least=True)


NO_TINY = (0,) * 9


def strings(leaf: Node, mean: int, *, long: int = 0, asked: int | None = None) -> Node:
    """A node whose strings are so long on average."""
    keys = leaf.stats.keys if asked is None else asked
    assert isinstance(keys, int)
    found = StringReport(keys, mean * keys, long, 0, NO_TINY)
    return replace(leaf, stats=replace(leaf.stats, strings=found))


def field(name: bytes, keys: int, key_bytes: int, mean: int, *, lasting: int | None = None, long: int = 0) -> Node:
    leaf = node(name, (keys, keys * key_bytes, keys if lasting is None else lasting), last=True)
    return strings(leaf, mean, long=long)


def users(*fields: Node, thing: bytes = b"<id>", distinct: int = 50_000) -> Report:
    keys = sum(one.stats.keys for one in fields if isinstance(one.stats.keys, int))
    memory = sum(one.stats.memory_bytes or 0 for one in fields if isinstance(one.stats.memory_bytes, int))
    things = replace(node(thing, (keys, memory, keys), *fields, kind="PATTERN"), distinct=distinct)
    made = report(node(b"user", (keys, memory, keys), things))
    server = replace(made.head.server, product="redis", version="7.0.15")
    return replace(made, head=replace(made.head, server=server))


NAME, EMAIL = field(b"name", 50_000, 90, 9), field(b"email", 50_000, 104, 22)


def as_hash(of: Report, **parameters: int) -> tuple[Finding, ...]:
    return of_rule("strings-as-hash", of, **parameters)


def test_strings_that_could_be_hashes() -> None:
    (found,) = as_hash(users(NAME, EMAIL, field(b"cart", 100, 90, 9, long=1)))
    assert found.title == "100,000 small strings of user:<id>: would take at least 2.62 MiB less of 9.25 MiB as hashes"
    assert (found.keys, found.memory) == (Amount(100_000), Amount(9_700_000))
    assert found.evidence == (
        "name: 90 B a key, values of 9 B; email: 104 B a key, values of 22 B",
        "computed: 50,000 hashes of 139 B at most, as MEMORY USAGE of redis 7.0.15 counts",
    )
    assert found.query == "pattern:user:<id>: type:string"
    assert not as_hash(users(NAME, EMAIL), saves=3 << 20)


OF_ONE_SESSION = replace(EMAIL, stats=replace(EMAIL.stats, types=((b"string", 49_999), (b"hash", 1))))


@pytest.mark.parametrize(
    "fine",
    [
        users(NAME),
        users(NAME, field(b"email", 50_000, 104, 22, lasting=0)),
        users(NAME, field(b"email", 50_000, 204, 122, long=9_000)),
        users(NAME, OF_ONE_SESSION),
        users(NAME, replace(EMAIL, stats=replace(EMAIL.stats, strings=None))),
        users(NAME, replace(EMAIL, stats=replace(EMAIL.stats, memory_known_keys=3))),
        users(NAME, replace(EMAIL, stats=replace(EMAIL.stats, no_ttl_share=None))),
        users(NAME, strings(EMAIL, 22, asked=29)),
        users(NAME, EMAIL, distinct=100_000),
    ],
    ids=["one", "other life", "long", "types", "no lengths", "no bytes", "no ttl", "few lengths", "of others"],
)
def test_no_strings_that_could_be_hashes(fine: Report) -> None:
    assert not as_hash(fine)


@pytest.mark.parametrize("product", ["", "keydb", "redis"])
@pytest.mark.parametrize("version", ["?", "¹.²", "7", "9" * 5_000 + ".0"])
def test_nothing_is_computed_for_servers_that_were_not_measured(product: str, version: str) -> None:
    made = users(NAME, EMAIL)
    server = replace(made.head.server, product=product, version=version if product == "redis" else "7.0")
    assert not as_hash(replace(made, head=replace(made.head, server=server)))


FIELDS = {
    "name": lambda rng: "".join(rng.choices("abcdefgh", k=rng.randrange(4, 14))),
    "email": lambda rng: "".join(rng.choices("abcdefgh", k=rng.randrange(6, 14))) + "@example.com",
    "seen": lambda rng: str(1_700_000_000 + rng.randrange(10**7)),
    "token": lambda rng: f"{rng.getrandbits(160):040x}",
}


@pytest.mark.parametrize("names", [("name", "email"), ("token", "email"), tuple(FIELDS)], ids="+".join)
def test_hashes_save_what_was_computed_at_least(server: Server, names: tuple[str, ...]) -> None:
    server.restart()  # malloc of the C library hands out larger pieces of a heap that was used before
    rng, ids = Random(7), range(100_000, 100_300)
    values: list[dict[str, str]] = [{name: FIELDS[name](rng) for name in names} for _ in ids]
    pipeline = server.admin.pipeline(transaction=False)
    for number, of_one in zip(ids, values, strict=True):
        for name, value in of_one.items():
            pipeline.set(f"user:{number}:{name}", value)
        pipeline.hset(f"user:{number}", items=[text for pair in of_one.items() for text in pair])
    pipeline.execute()
    for key in key_names(names):
        for number in ids:
            pipeline.memory_usage(f"user:{number}{key}")
    sizes = pipeline.execute()
    means = [sum(sizes[start : start + len(ids)]) / len(ids) for start in range(0, len(sizes), len(ids))]
    parts = [
        HashPart(name.encode(), len(ids), mean, sum(len(one[name]) for one in values) / len(ids))
        for name, mean in zip(names, means[1:], strict=True)
    ]
    said = ServerReport("", product=server.product, version=".".join(map(str, server.version)))
    has_small = known(has_small_entries(said))
    computed = hashes_bytes(parts, len(ids), has_small_entries=has_small) / len(ids)
    strings_take = sum(means[1:])
    assert -0.03 * strings_take <= computed - means[0] <= 0.3 * strings_take


def key_names(names: tuple[str, ...]) -> Iterator[str]:
    yield ""
    yield from (f":{name}" for name in names)


def cache(
    *tiny: int, keys: int = 1_000, mean: int = 300, asked: int | None = None, lasting: int = 0, last: bool = True
) -> Report:
    """A cache of products, and how many of its strings are tiny by what is left of their lives: first without end."""
    bins = (*tiny, *NO_TINY)[:9]
    of = keys if asked is None else asked
    leaf = node(b"<id>", (keys, keys * 400, lasting), kind="PATTERN", last=last)
    found = StringReport(of, mean * (of - sum(bins)) + 4 * sum(bins), of - sum(bins), sum(bins), bins)
    leaf = replace(leaf, stats=replace(leaf.stats, strings=found))
    return report(node(b"product", (keys, keys * 400, lasting), leaf))


def test_cached_nulls() -> None:
    (found,) = of_rule("null-cached", cache(0, 500 - 100, 60, 40))
    assert found.title == (
        "100 strings of product:<id> hold 4 bytes at most, with more than 1m left; the others have 300 bytes on average"
    )
    assert (found.keys, found.memory) == (Amount(100), None)
    assert found.query == "pattern:product:<id> type:string len<5"
    assert "less than 1m left" in found.query_note
    (rough,) = of_rule("null-cached", cache(0, 0, 0, 40, 60), left=20 * 60_000)
    assert rough.keys == Amount(60, at_least=True)
    (sampled,) = of_rule("null-cached", cache(5, 0, 20, keys=8_000, asked=1_000))
    assert isinstance(keys_of(sampled).figure, Estimate)
    assert keys_of(sampled).value == 200


@pytest.mark.parametrize(
    "fine",
    [
        cache(), cache(0, 400), cache(0, 0, 9), cache(0, 0, 40, mean=63), cache(0, 0, 600), cache(40, lasting=900),
        cache(0, 0, 40, last=False), cache(0, 0, 5, asked=20),
    ],
    ids=["none", "short lives", "few", "small values", "most", "no cache", "no pattern", "few lengths"],
)  # fmt: skip
def test_no_cached_nulls(fine: Report) -> None:
    assert not of_rule("null-cached", fine)


def test_a_report_without_lengths_by_pattern() -> None:
    made = cache(0, 0, 40)
    old = replace(made.summary.root, stats=replace(made.summary.root.stats, strings=None))
    found = findings(replace(made, summary=replace(made.summary, root=old)), only("null-cached"))
    assert found.unjudged[0].why == "reports of older versions have no lengths by pattern"


def test_a_left_that_no_report_tells() -> None:
    found = findings(cache(0, 0, 40), only("null-cached", left=10**12))
    assert found.unjudged[0].why == "reports have TTLs only up to 1y apart; set left to less"
