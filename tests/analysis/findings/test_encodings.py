"""Collections with little more elements than a compact encoding may have."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rtui.analysis.findings.contents import findings
from rtui.analysis.findings.finding import Amount, Finding
from rtui.analysis.report.document import EncodingReport, Report, TypeReport
from rtui.analysis.report.members import LENGTH_EDGES
from tests.analysis.findings.test_findings import of_rule, only, report
from tests.made_report import quantiles, stats

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
