"""The site of the documentation is built of the pages of the help and of every command, without a broken link."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

from rtui.cli.main import COMMANDS
from rtui.keyspace.text.help_pages import PAGES
from tests.servers import CHECKOUT

SITE = CHECKOUT / "build" / "site"
HAS_BUILDER = importlib.util.find_spec("properdocs") is not None


@pytest.mark.slow
def test_links_between_pages_lead_somewhere_and_every_page_is_there(request: pytest.FixtureRequest) -> None:
    subprocess.run([sys.executable, ".github/site/make.py"], cwd=CHECKOUT, check=True)
    pages = {path.relative_to(SITE / "pages").with_suffix("").as_posix(): path for path in SITE.rglob("*.md")}
    assert set(pages) == {*PAGES, *(f"reference/{name}" for name in COMMANDS), "keys", "screens", "index"} - {"start"}
    links = [
        (path, link) for path in pages.values() for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", path.read_text())
    ]
    assert len(links) > 10
    assert not [(path.name, link) for path, link in links if not (path.parent / link).exists()]
    for name in ("safety", "permissions", "findings", "settings"):
        assert len(pages[name].read_text("utf-8").rpartition("```text\n")[2]) > 300
    if request.config.getoption("--thorough") and HAS_BUILDER:
        subprocess.run([sys.executable, "-m", "properdocs", "build", "--strict", "-f", SITE / "mkdocs.yml"], check=True)
        built = "".join(path.read_text("utf-8") for path in (SITE / "html").rglob("*.html"))
        loaded = re.findall(r"<(?:script|img|link|iframe)[^>]* (?:src|href)=\"?(?:https?:)?//[^>]*>", built)
        assert loaded == []
