"""What a registry adds to findings, and rules about references that were followed."""

from __future__ import annotations

from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.contents import findings, findings_table, with_registry
from rtui.analysis.findings.finding import Found
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.members import CheckedReference, ReferenceChecks, RegistryReport
from rtui.keyspace.text.display import HOSTILE
from rtui.registry.load import read_registry
from rtui.registry.rules import Severity
from tests.analysis.findings.test_findings import pattern, report
from tests.made_report import empty_report, keys_of

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
    note = findings_table(found).note
    assert note.count("because the report was made without a registry") == 1


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
