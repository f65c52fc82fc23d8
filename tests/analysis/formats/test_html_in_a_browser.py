"""Pages in a browser: what they say, ask for and look like, on paper too, and what a keyboard does with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

import rtui
from rtui.analysis.formats import FORMS, written
from rtui.analysis.formats.fleet import fleet_page
from rtui.analysis.formats.json import read_json
from rtui.analysis.report.document import Node, NodeKind, Report
from tests.analysis.formats.made import MADE
from tests.analysis.formats.test_health import BROKEN, FAILING, STRANGE, UNLIMITED, down, health_html, server
from tests.analysis.formats.test_html import ATTACKS, hostile
from tests.browser import Tab
from tests.made_report import stats

pytestmark = pytest.mark.slow

DEMO: Final = Path(rtui.__file__).parent / "demo" / "earlier.json.gz"
LONGEST: Final = b"".join(ATTACKS) + b"n" * 65_536


def attacked() -> Report:
    """A report of 5,000 namespaces that attack, of names of 64 KB, wherever there is a name."""
    report = hostile(MADE["exact"], LONGEST)
    many = (Node(b"%d" % at + ATTACKS[at % 10], b":", NodeKind.LITERAL, stats(9, 9_000, 1)) for at in range(5_000))
    root = report.summary.root
    return replace(report, summary=replace(report.summary, root=replace(root, children=(*root.children, *many))))


PAGES: Final[dict[str, Callable[[], str]]] = {
    "demo": lambda: FORMS["html"](read_json(DEMO.read_bytes())),
    "attacked": lambda: FORMS["html"](attacked()),
    "health": lambda: health_html([STRANGE, BROKEN]),
    "fleet": lambda: written(fleet_page([server("a:1", **UNLIMITED), server("b:1", **FAILING), down("c:1")]), "html"),
    **{name: lambda report=report: FORMS["html"](report) for name, report in MADE.items()},  # type: ignore[misc]
}

A4: Final = round((210 - 2 * 12) / 25.4 * 96)
"""Pixels between the margins of a sheet."""

FAINT: Final = """(() => {
    const parts = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = (rgb) => {
        const bent = (one) => one > 0.03928 ? ((one + 0.055) / 1.055) ** 2.4 : one / 12.92;
        const [r, g, b] = rgb.map((one) => bent(one / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !element.checkVisibility() || !element.getClientRects().length) continue;
        const style = getComputedStyle(element);
        const box = element.closest("svg");
        let back = box?.querySelector("rect") && getComputedStyle(box.querySelector("rect")).fill;
        for (let on = element; !back; on = on.parentElement) {
            const colour = on ? getComputedStyle(on).backgroundColor : "rgb(255, 255, 255)";
            if (parts(colour)[3] !== 0) back = colour;
        }
        const alpha = Number(style.opacity);
        const behind = parts(back).slice(0, 3);
        const pure = parts(box ? style.fill : style.color).slice(0, 3);
        const ink = pure.map((one, at) => one * alpha + behind[at] * (1 - alpha));
        const [low, high] = [light(ink), light(behind)].sort((a, b) => a - b);
        const contrast = (high + 0.05) / (low + 0.05);
        if (contrast < 4.5) found.push(`${walker.currentNode.data.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
    }
    return found;
})()"""
"""The texts with a contrast below 4.5."""

CUT: Final = """[...document.querySelectorAll("table, .icicle, .spark, figure, p, li, dd, h1, h2, .finding")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.outerHTML.slice(0, 80))"""
"""What a page on paper has beyond its right edge."""


@pytest.fixture
def shown(tab: Tab, tmp_path: Path) -> Callable[..., Path]:
    """Open a page by its name."""

    def show(name: str, width: int = 1600, *, is_dark: bool = False) -> Path:
        path = tmp_path / f"{name}.html"
        if not path.exists():
            path.write_text(PAGES[name](), "utf-8")
        tab.open(path, width, is_dark=is_dark)
        return path

    return show


def unnamed(tab: Tab) -> list[str]:
    """The roles of parts that are reached or said by their names but have none."""
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    named = {
        "button",
        "image",
        "img",
        "region",
        "searchbox",
        "textbox",
        "link",
        "navigation",
        "columnheader",
        "heading",
    }
    roles = [(one["role"]["value"], one.get("name", {}).get("value")) for one in nodes if not one["ignored"]]
    assert "heading" in {role for role, _ in roles}
    return [role for role, name in roles if role in named and not name]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_readable_at_any_width_and_whole_on_paper(
    tab: Tab, shown: Callable[..., Path], name: str
) -> None:
    tab.messages.clear()
    tab.requests.clear()
    looks = [(width, is_dark) for width in (400, 1600) for is_dark in (False, True)]
    for width, is_dark in looks:
        path = shown(name, width, is_dark=is_dark)
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert (
            tab.run("getComputedStyle(document.body).backgroundColor")
            == f"rgb({'20, 23, 26' if is_dark else '251, 250, 247'})"
        )
        assert tab.run(FAINT) == []
    assert unnamed(tab) == []
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.call("Emulation.setDeviceMetricsOverride", width=A4, height=1000, deviceScaleFactor=1, mobile=False)
    assert tab.run(CUT) == []
    assert tab.run(FAINT) == []
    pages = re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", tab.printed())
    assert {(round(float(width)), round(float(height))) for width, height in pages} == {(595, 842)}
    assert tab.messages == []
    assert tab.requests == [path.as_uri()] * len(looks)


FOCUSED: Final = "(document.activeElement.closest('[aria-label]') ?? document.activeElement).getAttribute('aria-label')"


def column(tab: Tab, table: str, at: int) -> list[str]:
    """The visible cells of a column."""
    rows = f"[...document.querySelectorAll('#{table} tbody tr')].filter((row) => !row.hidden)"
    found: list[str] = tab.run(f"{rows}.map((row) => row.cells[{at}].textContent)")
    return found


def test_the_keyboard_filters_and_sorts_a_table(tab: Tab, shown: Callable[..., Path]) -> None:
    shown("demo")
    before = column(tab, "namespaces", 0)
    for _ in range(80):
        tab.press("Tab")
        if tab.run(FOCUSED) == "Filter Namespaces":
            break
    tab.press(*"APP:", " ", *"hash")
    left = column(tab, "namespaces", 0)
    assert 0 < len(left) < len(before)
    assert all("app:" in one for one in left)
    assert tab.run("document.querySelector('#namespaces output').textContent") == f"{len(left)} of {len(before)} rows"
    tab.press("Escape")
    assert column(tab, "namespaces", 0) == before
    tab.press("Tab", "Tab", "Enter")
    assert column(tab, "namespaces", 0) == sorted(before, key=str.lower)
    assert tab.run("document.activeElement.parentNode.ariaSort") == "ascending"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.press("Enter")
    assert column(tab, "namespaces", 0) == sorted(before, key=str.lower, reverse=True)
    tab.press("Tab", " ")
    keys = [int(re.sub(r"\D", "", one)) for one in column(tab, "namespaces", 1)]
    assert keys == sorted(keys, reverse=True)
    assert tab.run("document.querySelectorAll('#namespaces [aria-sort]').length") == 1


def test_the_keyboard_zooms_into_the_drawing(tab: Tab, shown: Callable[..., Path]) -> None:
    shown("demo")
    tab.run("document.querySelector('.icicle .c').focus()")
    name = "document.activeElement.querySelector('title').textContent.split(':')[0]"
    assert tab.run(name) == "all keys"
    tab.press("ArrowDown")
    below = tab.run(name)
    tab.press("ArrowRight", "ArrowLeft", "ArrowUp")
    assert tab.run(name) == "all keys"
    tab.press("ArrowDown")
    assert tab.run(name) == below != "all keys"
    tab.press("Enter")
    assert tab.run("document.activeElement.getAttribute('width')") == "100%"
    assert tab.run("document.querySelector('#where b').textContent").startswith(below)
    assert tab.run("document.querySelectorAll('.icicle [tabindex=\"0\"]').length") == 1
    tab.press("⇧Tab")
    assert tab.run("document.activeElement.className") == "crumb"
    tab.press("Escape")
    assert tab.run("document.querySelector('.icicle .c').getAttribute('width')") == "100%"
    assert tab.run("document.querySelector('#where b')") is None


@pytest.mark.parametrize("name", ["attacked", "health"])
def test_nothing_of_a_name_is_run(tab: Tab, shown: Callable[..., Path], name: str) -> None:
    """Neither as the page stands nor by what its script makes of it: titles of the zoom, links, filters."""
    shown(name)
    tab.run("window.alert = () => { window.hit = true }")
    tab.run(
        "const all = [...document.querySelectorAll('.c, button')].slice(0, 20);"
        "all.forEach((one) => one.dispatchEvent(new MouseEvent('click')))"
    )
    assert tab.run("window.hit === undefined")
    assert tab.run("document.scripts.length") == 1
    assert tab.run("[...document.querySelectorAll('img, iframe, object, embed, link, base')].length") == 0


def test_without_its_script_everything_is_there(tab: Tab, shown: Callable[..., Path]) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        shown("demo")
        tree: list[dict[str, Any]] = tab.call("Accessibility.getFullAXTree")["nodes"]
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert not [one for one in tree if one.get("role", {}).get("value") == "button"]
    assert unnamed(tab) == []
