from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.formats import FORMS
from rtui.analysis.formats.html import MOST_CELLS, Markup, element, safe
from rtui.analysis.report.document import ColumnReport, ColumnState, Node, NodeKind, Report
from tests.analysis.formats.made import MADE, reports
from tests.conftest import examples
from tests.made_report import stats

VOID = {"meta", "rect", "path", "line", "input"}
ELEMENTS = frozenset(
    {"html", "head", "meta", "title", "style", "body", "header", "main", "section", "div", "span", "p", "h1", "h2", "b"}
    | {"i", "ul", "li", "dl", "dt", "dd", "code", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"}
    | {"svg", "rect", "text", "tspan", "path", "script"}
)


class Page(HTMLParser):
    """Reads a page as a browser would and keeps what matters."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inline: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        here = self.open[-1] if self.open else ""
        self.inline.get(here, self.texts).append(data)


def hostile(report: Report, name: bytes) -> Report:
    """The report with a name that attacks, wherever a server or a key is named."""
    text = name.decode("utf-8", "replace")
    node = replace(report.summary.root.children[0], name=name)
    record = replace(report.summary.big.by_memory[0], key=name, key_type=name, encoding=name, note=text)
    expiry = replace(
        report.summary.expiry, cliffs=tuple(replace(one, label=text) for one in report.summary.expiry.cliffs)
    )
    summary = replace(
        report.summary,
        root=replace(report.summary.root, children=(node,)),
        big=replace(report.summary.big, by_memory=(record,)),
        expiry=expiry,
    )
    server = replace(report.head.server, label=text, product=text, version=text, role=text)
    columns = {text: ColumnReport(ColumnState.DENIED, text)}
    return replace(report, head=replace(report.head, server=server, columns=columns, notes=(text,)), summary=summary)


ATTACKS = (
    b"<script>alert(1)</script>",
    b"</title></style></script><script>alert(1)</script>",
    b'"><img src=x onerror=alert(1)>',
    b"' onmouseover='alert(1)",
    b"<!--",
    b"]]>",
    b"&lt;script&gt;",
    b"javascript:alert(1)",
    "\u202e\u2066<b>".encode(),
    b"\xff\x00\x1b]0;x\x07",
)


def check(text: str) -> Page:
    """Check what holds for every page, and return what is in it."""
    page = Page(text)
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= ELEMENTS
    assert [tag for tag, _ in page.tags].count("script") == 1
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in {"src", "href", "style"}]
    policy = next(one["content"] or "" for _, one in page.tags if one.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, parts in page.inline.items():
        digest = b64encode(sha256("".join(parts).encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not re.search(
        r"https?:|//\w|url\(|@import", "".join(part for parts in page.inline.values() for part in parts)
    )
    return page


@pytest.mark.parametrize("name", MADE)
def test_every_page_is_whole_and_loads_nothing(name: str) -> None:
    page = check(FORMS["html"](MADE[name]))
    assert "10.0.0.5:6379" in page.texts
    assert MADE[name].head.coverage.kind.value in page.texts


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_name_is_text_and_nothing_else(attack: bytes) -> None:
    calm = check(FORMS["html"](hostile(MADE["exact"], b"calm")))
    attacked = check(FORMS["html"](hostile(MADE["exact"], attack)))
    assert [tag for tag, _ in attacked.tags] == [tag for tag, _ in calm.tags]


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(reports)
def test_any_report_makes_a_whole_page(report: Report) -> None:
    check(FORMS["html"](report))


@given(st.text(max_size=60))
def test_text_in_an_element_and_its_attribute_comes_back(text: str) -> None:
    page = Page(element("p", text, title=text))
    assert len(page.tags) == 1
    assert page.tags[0][1]["title"] == "".join(page.texts)
    assert not set(safe(text)) & set("<>\"'")


def test_only_markup_goes_in_as_it_is() -> None:
    assert element("p", Markup("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
    assert element("td", "1", class_="n", data_v=1.5, title=None) == '<td class="n" data-v="1.5">1</td>'


def test_what_was_denied_stands_at_the_top() -> None:
    page = Page(FORMS["html"](MADE["denied"]))
    said = next(text for text in page.texts if text.startswith("Denied, memory"))
    assert page.texts.index(said) < page.texts.index("Namespaces by keys")


def test_a_cliff_is_marked_and_named() -> None:
    text = FORMS["html"](MADE["exact"])
    assert 'class="bars steep" d' in text or re.search(r'd="M[^"]+" class="bars steep"', text)
    assert "2026-09-21 14:31 – 14:33" in text


def test_estimates_tell_their_interval_on_hover() -> None:
    page = Page(FORMS["html"](MADE["estimate"]))
    assert [one for _, one in page.tags if (one.get("title") or "").startswith("95 % interval: ")]


def test_a_report_of_the_whole_budget_of_nodes_stays_small() -> None:
    exact = MADE["exact"]
    leaves = tuple(
        Node(b"a-namespace-of-usual-length-%04d" % at, b":", NodeKind.LITERAL, stats(244, 424_804, 100))
        for at in range(4_096)
    )
    report = replace(exact, summary=replace(exact.summary, root=replace(exact.summary.root, children=leaves)))
    text = FORMS["html"](report)
    assert len(text.encode()) < 1_000_000
    assert text.count('data-d="1"') == MOST_CELLS - 1


@pytest.mark.parametrize(("name", "says"), [("partial", "≥ 114,000 keys of"), ("estimate", "≈ 114,000 keys of")])
def test_expiries_are_marked_as_far_as_they_can_be_trusted(name: str, says: str) -> None:
    assert says in FORMS["html"](MADE[name])


def test_the_drawing_is_as_high_as_what_can_be_seen_of_it() -> None:
    exact = MADE["exact"]
    root = exact.summary.root
    small = replace(root.children[0].stats, memory_bytes=1, keys=1)
    deep = Node(b"x", b"", NodeKind.LITERAL, small)
    for _ in range(12):
        deep = Node(b"x", b":", NodeKind.LITERAL, small, (deep,))
    flat = tuple(replace(child, children=()) for child in root.children)
    report = replace(exact, summary=replace(exact.summary, root=replace(root, children=(*flat, deep))))
    assert 'height="52" data-rows="2"' in FORMS["html"](report)


def test_namespaces_that_are_not_drawn_are_counted() -> None:
    exact = MADE["exact"]
    root = exact.summary.root
    many = tuple(replace(root.children[0], name=b"%d" % number, children=()) for number in range(MOST_CELLS + 9))
    report = replace(exact, summary=replace(exact.summary, root=replace(root, children=many)))
    assert "10 smaller or deeper namespaces not drawn." in FORMS["html"](report)
    assert "not drawn" not in FORMS["html"](exact)


def test_a_namespace_whose_memory_is_not_known_takes_no_bytes() -> None:
    """Its keys are no measure of it where the others are as wide as their bytes."""
    exact = MADE["exact"]
    root = exact.summary.root
    unknown = Node(b"unknown", b":", NodeKind.LITERAL, replace(root.children[0].stats, keys=10**9, memory_bytes=None))
    report = replace(exact, summary=replace(exact.summary, root=replace(root, children=(*root.children, unknown))))
    (box,) = re.findall(r"<svg [^>]*><title>unknown::[^<]*</title>", FORMS["html"](report))
    assert 'width="0.0000%"' in box
