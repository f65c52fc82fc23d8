"""Rules about references, on what following them has found."""

from __future__ import annotations

from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.contents import findings
from rtui.analysis.report.members import CheckedReference, ReferenceChecks
from rtui.keyspace.text.display import HOSTILE
from tests.made_report import empty_report, keys_of


def checked(*, looked_at: int, is_twin: bool = False, broken: tuple[int, int] = (0, 0)) -> CheckedReference:
    """Of 1,000 keys; `broken` are keys and values."""
    one = CheckedReference("user:{id}:orders", b"user:*:orders", "member", "order:{member}", is_twin, 1_000, looked_at)
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
        ("reference-twin", "2 keys of user:{id}:orders don't hold the same as order:{member}"),
        ("reference-dangling", "1 key of user:{id}:orders points to a key that is gone: member → order:{member}"),
    ]
    (one, *_) = findings(empty_report(), references=ReferenceChecks([broken])).findings
    assert one.query == "user:*:orders"
    assert one.evidence[0] == "1 value leads to no key, of 1,000 keys looked at"
    assert not HOSTILE.search(one.evidence[1])
    assert keys_of(one).at_least, "not all keys were listed"


def test_a_sample_has_an_interval() -> None:
    broken = checked(looked_at=100, broken=(10, 12))
    (one,) = findings(empty_report(), references=ReferenceChecks([broken], is_complete=True)).findings
    figure = keys_of(one).figure
    assert isinstance(figure, Estimate)
    assert figure.low < 100 < figure.high
    assert one.evidence[0] == ("12 values lead to no key, of 100 keys looked at, chosen at random among 1,000")


def test_rules_that_were_not_followed_are_not_checked() -> None:
    assert not {one for one in findings(empty_report()).checked if one.startswith("reference")}
