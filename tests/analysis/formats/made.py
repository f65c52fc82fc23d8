"""The hand-made reports by what is special in each."""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.document import (
    ColumnReport,
    ColumnState,
    KeyRecord,
    Node,
    NodeKind,
    Report,
    Scope,
    SlotLoad,
    SlotTag,
    Stats,
    TypeReport,
)
from rtui.analysis.report.members import (
    Cliff,
    EntryReport,
    ExpectationReport,
    NamePlace,
    NameRuleReport,
    NamingReport,
    RegistryReport,
    UnregisteredReport,
)
from tests.made_report import (
    clustered_report,
    denied_report,
    empty_report,
    estimate_report,
    made_report,
    partial_report,
    sampled_report,
)

_EVERY_BYTE: Final = bytes(range(256))
_HOSTILE_NAMES: Final = (
    _EVERY_BYTE,
    b'"quoted\\"',
    b"\\x41",
    b"",
    b" ",
    "ключ:é".encode(),
    "a\u202eb\u200b\u0301".encode(),
    b"\x1b]0;owned\x07",
    b"\xed\xa0\x80",
)


def hostile_report() -> Report:
    """A report of names of any bytes, with every member that may be missing, and bounds that are not known."""
    exact = made_report()
    unbounded = Estimate(3.0, 3.0, inf)
    stats = Stats(
        keys=unbounded, share_keys=0.5, types=((b"\xff\x00", unbounded), (b"string", 1)), ttl=(unbounded,) * 8
    )
    children = tuple(
        Node(name, b"\x00\xff" if at % 2 else b"", NodeKind.LITERAL, stats) for at, name in enumerate(_HOSTILE_NAMES)
    )
    root = Node(b"", b"", NodeKind.LITERAL, stats, (Node(b"<id>", b"::", NodeKind.PATTERN, stats, children, 7),))
    records = tuple(KeyRecord(name, b"\xfe", 2**53, 0, -1, 1, 255, b"\x80", 1.5, "a note") for name in _HOSTILE_NAMES)
    head = replace(
        exact.head,
        scope=Scope((b":", b"\x00\xff", b'"'), b"\xff*\\", b"\xfe", 3, 5, "full", "custom"),
        columns={**exact.head.columns, "an odd column": ColumnReport(ColumnState.NOT_ASKED, "it is odd")},
        notes=("ключ ␛[31m", "two"),
    )
    summary = replace(
        exact.summary,
        root=root,
        types=(TypeReport(b"\xfe\x00", stats, None, "fields"),),
        big=replace(exact.summary.big, by_memory=records, by_type_memory={b"\xfe": records}, over={b"\xfe": unbounded}),
        hottest=records,
        expiry=replace(
            exact.summary.expiry,
            cliffs=(Cliff((b"\xff", b""), "\\xff:", 1.0, 2.0, unbounded, Estimate(0.0, 0.5, 1.0), None, 0.25),),
        ),
        slots=replace(
            exact.summary.slots,
            tags=(SlotTag(16_383, b"\xff}", unbounded, None, at_least=True),),
            owned=((0, 5_460), (16_383, 16_383)),
            unmeasured=exact.summary.slots.keys,
        ),
        folded=12,
    )
    hot = replace(
        exact.hot,
        age_s=None,
        slots=(SlotLoad(12_182, {"key-count": 3, "cpu-usec": 2**40}),),
        lfu=LfuSettings(),
        idle_basis=list(IdleBasis)[-1],
    )
    return replace(exact, head=head, summary=summary, hot=hot)


def registered_report() -> Report:
    """A partial report with what a registry says: broken expectations, one that is not known, unused patterns."""
    partial = partial_report()
    sampled = Estimate(40.0, 51.5, 63.0)
    expectations = (
        ExpectationReport("ttl-missing", "30m..2h", 120, 9_600, 1_000, (b"shop:session:1", b"\xff")),
        ExpectationReport("length-out-of-range", "<=1000", sampled, None, 125, (b"shop:session:2",)),
        ExpectationReport("size-out-of-range", "<=10K", None, None),
    )
    entries = (
        EntryReport(
            "shop:session:<id>", 1_000, 0.5, 1_000, 80_000, 0.6, 900, ((b"hash", 1_000),), expectations,
            (b"shop:session:1",), "Sessions", "accounts", "login", "", "shared.toml",
        ),
        EntryReport("old:<id>", 3, 0.0015, 3, None, None, types=((b"set", 2), (b"zset", 1)), deprecated="use new:<id>"),
        EntryReport("cart:<id>", 0, 0.0, 0, 0, 0.0, purpose="Carts | [link](x)", owner="shop"),
    )  # fmt: skip
    unregistered = (
        UnregisteredReport(b"shop:", 1, 700, 5_000, (b"shop:\x1b[31m",)),
        UnregisteredReport(b"tmp", 3, sampled, None),
    )
    registry = RegistryReport("Shop", "shop.toml", 1_003, 0.55, 80_000, 0.6, 997, 40_000, entries, unregistered)
    places = (
        NamePlace(b"shop:", "", 12, 800, (b"shop:A b",)),
        NamePlace(b"", "cart:<id>", 3, None),
        NamePlace(b"", "", 2, None, (b"\x00",)),
    )
    rules = (
        NameRuleReport("name-case", 17, 0.01, 800, places, 0, (b"shop:A b",)),
        NameRuleReport("name-control", sampled, 0.02, None, places[2:], 9),
        NameRuleReport("name-long", 0, 0.0, 0),
    )
    summary = replace(partial.summary, registry=registry, naming=NamingReport(rules))
    return replace(partial, summary=summary)


MADE: Final[dict[str, Report]] = {
    "exact": made_report(),
    "estimate": estimate_report(),
    "sampled": sampled_report(),
    "partial": partial_report(),
    "denied": denied_report(),
    "empty": empty_report(),
    "hostile": hostile_report(),
    "clustered": clustered_report(),
    "registered": registered_report(),
}
