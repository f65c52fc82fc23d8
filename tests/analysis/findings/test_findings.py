"""Each rule on a report that breaks it and on one that does not, and the list of all that is found."""

from __future__ import annotations

import shlex
from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.contents import FINDERS, MOST_PLACES, findings, findings_table, with_registry
from rtui.analysis.findings.finding import Amount, Finding, Found, Unlisted, glob_of, key_line, scan_line
from rtui.analysis.query.parsing import parse
from rtui.analysis.report.document import (
    BigReport,
    ColumnReport,
    ColumnState,
    CoverageKind,
    HotKey,
    HotList,
    HotReport,
    HotSource,
    KeyRecord,
    Node,
    NodeKind,
    Report,
    SlotsReport,
    SlotTag,
    Summary,
)
from rtui.analysis.report.members import CheckedReference, Cliff, ExpiryReport, ReferenceChecks, RegistryReport
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import HOSTILE
from rtui.registry.load import read_registry
from rtui.registry.rules import RULES, ParameterValue, RuleLevels, Severity
from tests.made_report import (
    MADE_AT_S,
    denied_report,
    empty_report,
    estimate_report,
    keys_of,
    made_report,
    node,
    partial_report,
)

MIB = 1 << 20


def report(
    *nodes: Node,
    cliffs: Sequence[Cliff] = (),
    big: BigReport | None = None,
    tags: Sequence[SlotTag] = (),
    kind: CoverageKind = CoverageKind.EXACT,
) -> Report:
    keys = sum(one.stats.keys for one in nodes if isinstance(one.stats.keys, int))
    memory = sum(one.stats.memory_bytes for one in nodes if isinstance(one.stats.memory_bytes, int))
    summary = Summary(
        root=node(b"", (keys, memory, 0), *nodes),
        big=big or BigReport(),
        expiry=ExpiryReport(cliffs=tuple(cliffs)),
        slots=SlotsReport(keys=array("Q", bytes(8 * 16_384)), tags=tuple(tags)),
    )
    made = made_report()
    head = replace(made.head, coverage=replace(made.head.coverage, kind=kind))
    return Report(head=head, summary=summary)


def only(rule: str, **parameters: ParameterValue) -> RuleLevels:
    severities = {finder.rule: Severity.OFF for finder in FINDERS} | {rule: Severity.WARN}
    return RuleLevels(severities, {rule: parameters})


def of_rule(rule: str, of: Report, **parameters: ParameterValue) -> tuple[Finding, ...]:
    found = findings(of, only(rule, **parameters))
    assert found.checked == (rule,)
    return found.findings


def cliff(
    path: tuple[bytes, ...] = (b"session",), keys: int = 3_140, share: float = 0.38, lasts_s: float = 120
) -> Cliff:
    shown = b":".join(path).decode() or "all keys"
    start = MADE_AT_S + 3600
    return Cliff(path, shown, start, start + lasts_s, keys, share, keys * 100, 12)


SESSION = node(b"session", (8_263, 826_300, 0))


def test_a_cliff() -> None:
    (found,) = of_rule("expiry-cliff", report(SESSION, cliffs=[cliff()]))
    assert found.title == "3,140 keys of session expire 15:13:20 – 15:15:20 UTC, 38% of them"
    assert (found.keys, found.memory) == (Amount(3_140), Amount(314_000))
    assert found.query == "in:session: expires:2026-09-21T15:13:20..15:15:20"
    assert found.command == "redis-cli --scan --pattern 'session:*'"


@pytest.mark.parametrize(
    ("after_s", "lasts_s", "times"),
    [
        (400, 120, "14:20–14:22"),
        (401, 120, "14:20:01 – 14:22:01"),
        (400 + 86_400, 60, "2026-09-22 14:20–14:21"),
        (400 + 86_400, 30, "2026-09-22 14:20:00 – 14:20:30"),
        (34_000, 1_200, "23:40 – 2026-09-22 00:00"),
    ],
)
def test_the_times_of_a_cliff(after_s: float, lasts_s: float, times: str) -> None:
    one = replace(cliff(lasts_s=lasts_s), start_s=MADE_AT_S + after_s, end_s=MADE_AT_S + after_s + lasts_s)
    (found,) = of_rule("expiry-cliff", report(SESSION, cliffs=[one]), within=10**9)
    assert f" expire {times} UTC, " in found.title


def test_places_beyond_the_most_costly_are_counted() -> None:
    nodes = [pattern(1_000 + at, 20 + at, top=b"cache%d" % at) for at in range(30)]
    found = findings(report(*nodes), only("ttl-mixed"))
    assert [keys_of(one).value for one in found.findings] == [49 - at for at in range(MOST_PLACES)]
    assert found.unlisted == (Unlisted("ttl-mixed", Severity.WARN, 10),)


def test_a_cliff_by_other_parameters() -> None:
    assert of_rule("expiry-cliff", report(SESSION, cliffs=[cliff(share=0.1, lasts_s=600)]), share=0.1, within=600_000)


def test_a_cliff_is_told_once() -> None:
    nested = [cliff(()), cliff((b"shop", b"session")), cliff((b"shop",))]
    (found,) = of_rule("expiry-cliff", report(SESSION, cliffs=nested))
    assert found.where == "shop:session"


def test_a_cliff_within_a_larger_one_is_another() -> None:
    both = [cliff((b"shop",), keys=9_000), cliff((b"shop", b"session"))]
    assert len(of_rule("expiry-cliff", report(SESSION, cliffs=both))) == 2


def pattern(keys: int, lasting: int, *, name: bytes = b"<id>", top: bytes = b"cache") -> Node:
    leaf = node(name, (keys, keys * 100, lasting), kind="PATTERN", last=True)
    stats = replace(leaf.stats, ttl=(keys - lasting, 0, 0, 0, 0, 0, 0, 0))
    return Node(top, b":", NodeKind.LITERAL, stats, (replace(leaf, stats=stats),))


def test_a_forgotten_ttl() -> None:
    (found,) = of_rule("ttl-mixed", report(pattern(1_000, 20)))
    assert found.title == "20 keys of cache:<id> have no TTL, only 2%"
    assert (found.keys, found.memory) == (Amount(20), Amount(2_000))
    assert found.query == "pattern:cache:<id> ttl:none"


def test_locks_are_not_told_twice() -> None:
    found = findings(report(pattern(1_000, 20, top=b"lock"))).findings
    assert [one.rule for one in found if one.rule in ("ttl-mixed", "lock-without-ttl")] == ["lock-without-ttl"]


@pytest.mark.parametrize("name", [b"lock", b"order-lock", b"userLock", b"LOCK", b"job_mutex"])
def test_a_lock_without_ttl(name: bytes) -> None:
    (found,) = of_rule("lock-without-ttl", report(pattern(100, 1, top=name)))
    assert found.title == f"1 lock of {name.decode()}: has no TTL"
    assert found.query == f"in:{name.decode()}: ttl:none"


def test_a_lock_in_a_flat_name() -> None:
    flat = node(b"order-lock-<n>", (100, 9_000, 1), kind="PATTERN", last=True)
    (found,) = of_rule("lock-without-ttl", report(flat))
    assert found.command == "redis-cli --scan --pattern 'order-lock-*'"
    assert found.keys == Amount(1, at_least=True)


def living(long: int) -> Node:
    """Locks of which so many have an hour to a day left, the others less than ten minutes."""
    made = pattern(100, 0, top=b"lock")
    return replace(made, stats=replace(made.stats, ttl=(50, 50 - long, 0, long, 0, 0, 0, 0)))


def test_a_long_lock() -> None:
    (found,) = of_rule("lock-long", report(living(3)))
    assert found.title == "3 locks of lock: have more than 10m left"
    assert found.query == "in:lock: expires>=2026-09-21T14:23:20"
    (rough,) = of_rule("lock-long", report(living(3)), longest=20 * 60_000)
    assert rough.keys == Amount(3, at_least=True)
    assert not of_rule("lock-long", report(living(3)), longest=86_400_000)


def big(kind: bytes, *sizes: tuple[int | None, int | None]) -> BigReport:
    records = tuple(
        KeyRecord(b"big:%d" % at, kind, memory_bytes=memory, length=length) for at, (memory, length) in enumerate(sizes)
    )
    return BigReport(by_type_memory={kind: records}, by_type_length={kind: records})


def test_big_keys() -> None:
    (found,) = of_rule("key-big", report(big=big(b"hash", (11 * MIB, 5), (2 * MIB, 10_001), (10 * MIB, 10_000))))
    assert found.title == "2 hash keys over 10,000 elements or 10.0 MiB"
    assert (found.keys, found.memory) == (Amount(2), Amount(13 * MIB))
    assert found.evidence == ("big:0: 11.0 MiB, 5 elements", "big:1: 2.00 MiB, 10,001 elements")
    (string,) = of_rule("key-big", report(big=big(b"string", (2 * MIB, MIB + 1), (MIB, MIB))))
    assert string.title == "big:0: 2.00 MiB, a string over 1.00 MiB"
    assert string.query == "type:string len>1048576"


def test_more_big_keys_than_are_listed() -> None:
    (found,) = of_rule("key-big", report(big=big(b"hash", (11 * MIB, 5), (None, 20_000))))
    assert found.keys == Amount(2, at_least=True)
    assert found.memory == Amount(11 * MIB, at_least=True)


@pytest.mark.parametrize(("longest", "may_lack"), [(10_000, False), (10_001, True), (None, True)])
def test_lengths_that_were_not_asked(longest: int | None, may_lack: bool) -> None:
    lists = replace(big(b"hash", (MIB, 20_000), (MIB, 5)), length_not_asked={b"hash": longest})
    (found,) = of_rule("key-big", report(big=lists))
    assert found.keys == Amount(1, at_least=may_lack)


def tag(keys: int, memory: int, *, at_least: bool = False) -> SlotTag:
    return SlotTag(key_slot(b"{eu}"), b"eu", keys, memory, at_least)


def test_a_tag_that_skews() -> None:
    shop = node(b"shop", (10_000, 1_000_000, 0))
    (found,) = of_rule("tag-skew", report(shop, tags=[tag(100, 10)]))
    assert found.title == f"Hash tag {{eu}} puts 100 keys on slot {key_slot(b'{eu}')}, 1% of all keys"
    assert found.query == "tag:eu"
    (heavy,) = of_rule("tag-skew", report(shop, tags=[tag(2, 500_000, at_least=True)]))
    assert heavy.title.startswith("Hash tag {eu} puts ≥ 2 keys on slot ")
    assert heavy.title.endswith(", 50% of all bytes")


def idle(*bins: int, top: bytes = b"old") -> Node:
    made = node(top, (sum(bins), 100 * sum(bins), 0))
    return replace(made, stats=replace(made.stats, idle=bins))


def test_idle_keys() -> None:
    (found,) = of_rule("key-idle", report(idle(0, 0, 0, 0, 0, 0, 40)))
    assert found.title == "40 keys of old: idle for 90d or longer"
    assert found.memory == Amount(4_000, at_least=True)
    assert found.query == "in:old: idle>=90d"
    (some,) = of_rule("key-idle", report(idle(1, 0, 0, 0, 0, 2, 40)), days=20)
    assert (some.keys, some.memory) == (Amount(42, at_least=True), None)


def test_more_days_than_a_report_tells() -> None:
    found = findings(report(idle(0, 0, 0, 0, 0, 0, 40)), only("key-idle", days=91))
    assert not found.findings
    assert found.unjudged[0].why == "reports have idle times only up to 90d apart; set days to less"


def test_idle_times_of_a_replica_are_not_judged() -> None:
    """Clients use the primary."""
    made = report(idle(0, 0, 0, 0, 0, 0, 40))
    server = replace(made.head.server, role="replica")
    found = findings(replace(made, head=replace(made.head, server=server)), only("key-idle"))
    assert not found.findings
    assert "do not track reads on the primary" in found.unjudged[0].why


def listed(length: int | None, key: bytes = b"queue:email") -> Report:
    record = KeyRecord(key, b"list", memory_bytes=5_000, length=length)
    return report(big=BigReport(by_type_length={b"list": (record,)}))


def grown(before: Report | None, after: Report, **parameters: ParameterValue) -> tuple[Finding, ...]:
    return findings(after, only("queue-growing", **parameters), before).findings


def test_a_growing_queue() -> None:
    earlier = listed(1_200)
    earlier = replace(earlier, head=replace(earlier.head, made_at_s=MADE_AT_S - 3_600))
    (found,) = grown(earlier, listed(4_500))
    assert found.title == "List queue:email grew from 1,200 to 4,500 elements in 1h"
    assert (found.memory, found.query) == (Amount(5_000), "glob:queue:email")
    assert found.command == "redis-cli --quoted-input LLEN '\"queue:email\"'"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (listed(1_200), listed(1_200)),
        (listed(4_500), listed(1_200)),
        (listed(1), listed(999)),
        (listed(None), listed(4_500)),
        (listed(1_200), listed(4_500, b"other")),
    ],
    ids=["same", "shrinks", "short", "not known", "another"],
)
def test_no_growing_queue(before: Report, after: Report) -> None:
    assert not grown(before, after)


def test_without_an_earlier_report_queues_are_not_looked_at() -> None:
    assert findings(listed(4_500), only("queue-growing")).checked == ()


def hot(
    ttl_ms: int | None, source: HotSource = HotSource.FREQUENCY, *, counter: int = 20, key: bytes = b"p:42"
) -> Report:
    record = KeyRecord(key, b"string", ttl_ms=ttl_ms, frequency=counter, asked_at_s=MADE_AT_S)
    lists = (HotList("By access", "accesses/min", (HotKey(record, 900.0),)),)
    return replace(report(), hot=HotReport(source=source, lists=lists))


def test_a_hot_key_that_expires() -> None:
    (found,) = of_rule("hot-key-expiring", hot(30_000))
    assert found.title == "Hot key p:42 has 30s left"
    assert of_rule("hot-key-expiring", hot(20 * 60_000), left=30 * 60_000)
    assert of_rule("hot-key-expiring", hot(30_000, counter=10), counter=10)


def test_keys_that_were_used_last_are_not_hot() -> None:
    assert findings(hot(30_000, HotSource.IDLE), only("hot-key-expiring")).checked == ()


def in_cluster(*nodes: Node) -> Report:
    made = report(*nodes)
    return replace(made, head=replace(made.head, server=replace(made.head.server, cluster_enabled=True)))


def users(name: bytes = b"<id>", *parts: bytes, top: bytes = b"user") -> Node:
    leaves = [node(part, (100, 9_000, 100), last=True) for part in parts or (b"name", b"email")]
    return node(top, (200, 18_000, 200), node(name, (200, 18_000, 200), *leaves, kind="PATTERN"))


def test_keys_of_one_thing_in_several_slots() -> None:
    (found,) = of_rule("cross-slot", in_cluster(users()))
    assert found.title == "200 keys of user:<id>: have no hash tag: name and email of one thing lie in different slots"
    assert (found.keys, found.memory) == (Amount(200), Amount(18_000))
    assert findings(report(users()), only("cross-slot")).checked == ()


NAMED = node(b"shop", (1_000, 9_000, 20), pattern(980, 0), node(b"settings", (20, 900, 20), last=True))
SHOP = node(b"shop", (10_000, 1_000_000, 0))
FINE: dict[str, dict[str, Report]] = {
    "expiry-cliff": {
        "few keys": report(SESSION, cliffs=[cliff(keys=999)]),
        "a small share": report(SESSION, cliffs=[cliff(share=0.19)]),
        "a long time": report(SESSION, cliffs=[cliff(lasts_s=301)]),
    },
    "ttl-mixed": {
        "all expire": report(pattern(1_000, 0)),
        "few": report(pattern(1_000, 9)),
        "many": report(pattern(1_000, 201)),
        "none expires": report(pattern(1_000, 1_000)),
        "different names": report(pattern(1_000, 20, name=b"<*>")),
        "different patterns": report(NAMED),
        "levels cut off": report(node(b"shop", (1_000, 9_000, 20))),
    },
    "lock-without-ttl": {
        "all expire": report(pattern(100, 0, top=b"lock")),
        "a clock": report(pattern(100, 50, top=b"clock")),
        "a cache": report(pattern(100, 9)),
    },
    "lock-long": {"short": report(living(0))},
    "key-big": {"at the limits": report(big=big(b"hash", (10 * MIB, 10_000), (None, None)))},
    "tag-skew": {"small": report(SHOP, tags=[tag(99, 9_999)]), "one key": report(SHOP, tags=[tag(1, 900_000)])},
    "key-idle": {"used": report(idle(5, 5, 5, 5, 5, 5, 0))},
    "hot-key-expiring": {
        "stays": hot(-1),
        "not known": hot(None),
        "later": hot(300_000),
        "hardly used": hot(30_000, counter=19),
        "lock": hot(30_000, key=b"lock:p:42"),
    },
    "cross-slot": {
        "one key": in_cluster(users(b"<id>", b"name")),
        "names": in_cluster(users(b"<*>")),
        "tagged above": in_cluster(users(top=b"{users}")),
        "tagged below": in_cluster(users(b"<id>", b"{a}", b"{b}")),
        "tagged": in_cluster(users(b"{user:<id>}")),
    },
}


@pytest.mark.parametrize(("rule", "why"), [(rule, why) for rule, reports in FINE.items() for why in reports])
def test_nothing_is_found(rule: str, why: str) -> None:
    assert not of_rule(rule, FINE[rule][why])


def test_errors_first_then_the_most_costly_and_off_by_default() -> None:
    found = findings(made_report())
    order = [(one.severity is not Severity.ERROR, one.memory is None, -(one.memory.value if one.memory else 0))
             for one in found.findings]  # fmt: skip
    assert order == sorted(order)
    assert {is_warning for is_warning, _, _ in order} == {True, False}
    assert sum(not is_unknown for _, is_unknown, _ in order) > 5
    assert {one.rule for one in found.unjudged} == {"encoding-over"}
    quiet = {"tag-skew", "null-cached", "strings-as-hash", "encoding-over"}
    assert {one.rule for one in found.findings} == set(found.checked) - quiet
    assert "key-idle" not in found.checked


def test_severities() -> None:
    found = findings(made_report(), RuleLevels({"key-big": Severity.ERROR, "lock-without-ttl": Severity.OFF}))
    assert {one.rule for one in found.at_least(Severity.ERROR)} == {"key-big"}
    assert found.at_least(Severity.WARN) == found.findings
    assert "lock-without-ttl" not in found.checked


def test_what_is_denied_is_not_fine() -> None:
    found = findings(denied_report())
    assert [one.rule for one in found.unjudged] == ["key-big", "null-cached", "strings-as-hash", "encoding-over"]
    assert "denied" in found.unjudged[0].why
    ttl = {"ttl": ColumnReport(ColumnState.NOT_ASKED)}
    made = made_report()
    blind = findings(replace(made, head=replace(made.head, columns={**made.head.columns, **ttl})))
    assert {one.rule for one in blind.unjudged} == {
        *("expiry-cliff", "ttl-mixed", "lock-without-ttl", "lock-long", "hot-key-expiring"),
        *("null-cached", "strings-as-hash", "encoding-over"),
    }


def test_nothing_in_an_empty_database() -> None:
    assert not findings(empty_report()).findings


def test_bounds() -> None:
    partial = {one.rule: one for one in findings(partial_report()).findings}
    assert all(keys_of(one).at_least for rule, one in partial.items() if rule != "hot-key-expiring")
    sampled = {one.rule: one for one in findings(estimate_report()).findings}
    assert isinstance(keys_of(sampled["ttl-mixed"]).figure, Estimate)
    assert sampled["ttl-mixed"].title.startswith("≈ 4.00k (3.80–4.20k) keys of ")
    assert keys_of(sampled["key-big"]).at_least


def test_every_rule_is_declared() -> None:
    assert {finder.rule for finder in FINDERS} <= set(RULES)


def test_queries_can_be_typed() -> None:
    for one in findings(made_report(), RuleLevels({"key-idle": Severity.WARN})).findings:
        assert one.behind is not None
        assert parse(one.query) == one.behind.query


def test_a_glob_for_any_name() -> None:
    rest = Node(b"page_<*>", b"", NodeKind.PATTERN, SESSION.stats)
    assert glob_of([report().summary.root, node(b"a*", (1, 1, 1)), rest]) == rb"a\*:page_*"


NAMES = st.binary(max_size=12)


@given(NAMES, NAMES)
def test_hostile_names(name: bytes, separator: bytes) -> None:
    leaf = Node(b"<id>", b"", NodeKind.PATTERN, node(b"", (1_000, 9_000, 20)).stats)
    lock = Node(b"lock " + name, separator, NodeKind.LITERAL, leaf.stats, (leaf,))
    plain = Node(name, separator, NodeKind.LITERAL, leaf.stats, (leaf,))
    for one in findings(report(lock, plain)).findings:
        for text in (one.title, one.where, one.command, one.query, *one.evidence):
            assert not HOSTILE.search(text)


@given(NAMES)
def test_commands_are_one_argument(name: bytes) -> None:
    path = [Node(name, b":", NodeKind.LITERAL, SESSION.stats)]
    for line in (scan_line(glob_of(path)), key_line("MEMORY USAGE", name)):
        assert line.isascii()
        assert line.isprintable()
        assert len(shlex.split(line)) in (4, 5)


REGISTRY = read_registry("""
[rules]
type-wrong = "off"
[[pattern]]
pattern = "order:lock:<id>"
purpose = "one worker at a time"
owner = "payments \\u001b[31m"
[[pattern]]
pattern = "order:mutex:<id>"
owner = "stock"
[[pattern]]
pattern = "order:<what>"
""")


def of_examples(*keys: bytes) -> Report:
    made = pattern(100, 1, top=b"lock")
    leaf = made.children[0]
    leaves = [replace(leaf, name=b"{id%d}" % at, examples=(key,)) for at, key in enumerate(keys)]
    locks = replace(made, children=tuple(leaves) or (leaf,))
    return report(Node(b"order", b":", NodeKind.LITERAL, made.stats, (locks,)))


def judged(of: Report) -> Found:
    return with_registry(findings(of, REGISTRY.rules), of, REGISTRY)


def test_what_keys_are_for_by_examples_of_them() -> None:
    (one,) = judged(of_examples(b"order:lock:1", b"order:lock:2", b"order:mutex:7", b"order:paid")).findings
    assert one.evidence[-2:] == (
        "order:lock:<id>: one worker at a time · owner payments ␛[31m",
        "order:mutex:<id>: no purpose given · owner stock",
    )
    assert not HOSTILE.search("".join(one.evidence))
    (unknown,) = judged(of_examples()).findings
    assert unknown.evidence == findings(of_examples()).findings[0].evidence


def test_what_was_not_counted_by_a_registry_is_not_judged() -> None:
    found = judged(of_examples())
    doubts = {one.rule: one for one in found.unjudged}
    assert doubts["ttl-missing"].why == "the report was made without a registry"
    assert doubts["ttl-missing"].severity is Severity.ERROR
    assert doubts.keys() >= {"name-case", "key-unregistered"}
    assert "type-wrong" not in doubts, "it is off"
    assert set(doubts) <= set(found.checked)
    assert findings_table(found).note.count("because the report was made without a registry") == 1


def test_nothing_is_added_without_patterns() -> None:
    of = of_examples(b"order:lock:1")
    found = findings(of)
    assert with_registry(found, of, None) is found
    assert with_registry(found, of, read_registry('[rules]\nkey-big = "off"')) is found


def test_a_report_that_was_made_with_another_registry() -> None:
    other = RegistryReport("", "other.toml", 0, 0.0, None, None, 0, None, ())
    of = of_examples(b"order:lock:1")
    found = judged(replace(of, summary=replace(of.summary, registry=other)))
    assert found.notes == ("3 patterns of the registry are not checked: the report is of another registry",)
    assert "key-unregistered" not in {one.rule for one in found.unjudged}


def checked(*, looked_at: int, is_twin: bool = False, broken: tuple[int, int] = (0, 0)) -> CheckedReference:
    """Of 1,000 keys; `broken` are keys and values."""
    one = CheckedReference("user:<id>:orders", b"user:*:orders", "member", "order:<member>", is_twin, 1_000, looked_at)
    one.broken_keys, one.broken_values = broken
    return one


def found(*references: CheckedReference, is_complete: bool = True) -> list[tuple[str, str]]:
    checks = ReferenceChecks(list(references), is_complete=is_complete)
    return [(one.rule, str(one.title)) for one in findings(empty_report(), references=checks).findings]


def test_what_dangles_and_what_disagrees() -> None:
    broken, unlike = checked(looked_at=1_000), checked(looked_at=1_000, is_twin=True)
    assert found(broken, unlike) == []
    broken.add(b"user:1:orders", 3, [b"order:\x1b[31m7"])
    unlike.add(b"user:1:orders", 3, [b"7"])
    unlike.add(b"user:2:orders", 3, [b"8"])
    assert found(broken, unlike) == [
        ("reference-twin", "2 keys of user:<id>:orders don't hold the same as order:<member>"),
        ("reference-dangling", "1 key of user:<id>:orders points to a missing key: member → order:<member>"),
    ]
    (one, *_) = findings(empty_report(), references=ReferenceChecks([broken])).findings
    assert one.query == "user:*:orders"
    assert one.evidence[0] == "1 value leads to no key, of 1,000 keys checked"
    assert not HOSTILE.search(one.evidence[1])
    assert keys_of(one).at_least, "not all keys were listed"


def test_a_sample_has_an_interval() -> None:
    broken = checked(looked_at=100, broken=(10, 12))
    (one,) = findings(empty_report(), references=ReferenceChecks([broken], is_complete=True)).findings
    figure = keys_of(one).figure
    assert isinstance(figure, Estimate)
    assert figure.low < 100 < figure.high
    assert one.evidence[0] == ("12 values lead to no key, of 100 keys checked, chosen at random among 1,000")


def test_rules_that_were_not_followed_are_not_checked() -> None:
    assert not {one for one in findings(empty_report()).checked if one.startswith("reference")}
