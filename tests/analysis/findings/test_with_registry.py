"""What a registry adds to the findings of a report that was made without it."""

from __future__ import annotations

from msgspec.structs import replace

from rtui.analysis.findings.comparison import findings_table
from rtui.analysis.findings.contents import findings, with_registry
from rtui.analysis.findings.finding import Found
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.members import RegistryReport
from rtui.keyspace.text.display import HOSTILE
from rtui.registry.load import read_registry
from rtui.registry.rules import Severity
from tests.analysis.findings.test_findings import pattern, report

REGISTRY = read_registry("""
[rules]
type-wrong = "off"
[[pattern]]
pattern = "order:lock:{id}"
purpose = "one worker at a time"
owner = "payments \\u001b[31m"
[[pattern]]
pattern = "order:mutex:{id}"
owner = "stock"
[[pattern]]
pattern = "order:{what}"
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
        "order:lock:{id}: one worker at a time · owner payments ␛[31m",
        "order:mutex:{id}: no purpose is written down · owner stock",
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
    assert note.count("since the report was made without a registry") == 1


def test_nothing_is_added_without_patterns() -> None:
    of = of_examples(b"order:lock:1")
    found = findings(of)
    assert with_registry(found, of, None) is found
    assert with_registry(found, of, read_registry('[rules]\nkey-big = "off"')) is found


def test_a_report_that_was_made_with_another_registry() -> None:
    other = RegistryReport("", "other.toml", 0, 0.0, None, None, 0, None, ())
    of = of_examples(b"order:lock:1")
    found = judged(replace(of, summary=replace(of.summary, registry=other)))
    assert found.notes == ("3 patterns of the registry are not judged: the report was made with another registry",)
    assert "key-unregistered" not in {one.rule for one in found.unjudged}
