"""Writes the pages of the site to build/site: those of the help, every command, and what is declared in the code."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Final

import click
from click.testing import CliRunner

from rtui.cli.main import COMMANDS, group
from rtui.keyspace.text.help_pages import PAGES
from rtui.tui.help import HelpPage, keys_page
from rtui.tui.navigation import all_commands, help_topics

CHECKOUT: Final = Path(__file__).parents[2]
TO: Final = CHECKOUT / "build" / "site"
PRINTED: Final = {"safety": "commands", "permissions": "acl", "findings": "check --rules", "settings": "settings"}
"""The pages that end with the output of a command."""

PICTURES: Final = {
    "browsing": ("browse-120x36", "Browsing a keyspace as a tree of namespaces"),
    "analysing": ("analyse-memory", "The namespaces that hold the memory"),
    "findings": ("analyse-findings", "Findings of an analysis"),
    "health": ("server", "The state of a server"),
    "clusters": ("slot", "The hash slot of a key"),
    "terms": ("search", "Keys found by a query"),
}
"""The pages that begin with a picture, and its text alternative."""

PARTS: Final = {
    "Begin": ["start", "connection", "browsing", "terms", "questions"],
    "Analyse": ["analysing", "columns", "findings", "registry", "health", "clusters", "sql"],
    "Automate": ["ci", "formats", "files", "thresholds", "exit-codes"],
    "Trust": ["safety", "permissions", "servers", "how-it-works"],
    "Use": ["keys", "screens", "settings", "troubleshooting"],
    "Commands": [f"reference/{name}" for name in COMMANDS],
}
"""The order of the pages; a page of the help that is not named here comes last in the first part."""


def page(name: str) -> str:
    """Return a page of the help with its picture, links to other pages, and what a command prints."""
    text = (CHECKOUT / f"rtui/help/{name}.md").read_text("utf-8")
    text = re.sub(rf"`rtui help ({'|'.join(PAGES)})`", r"[`rtui help \1`](\1.md)", text)
    if name in PICTURES:
        text = text.replace("\n", "\n\n![{1}](screenshots/{0}.svg)\n".format(*PICTURES[name]), 1)
    if name in PRINTED:
        runner = CliRunner(env={"COLUMNS": "100", "XDG_CONFIG_HOME": str(TO)})
        done = runner.invoke(group, PRINTED[name].split(), prog_name="rtui", catch_exceptions=False)
        text += f"\n## In full\n\n`rtui {PRINTED[name]}` prints:\n\n```text\n{done.stdout.rstrip()}\n```\n"
    return text


def on_screen(title: str, pages: Iterable[HelpPage]) -> str:
    """Return pages of the help on screen as one."""
    lines = [f"# {title}"]
    for one in pages:
        lines += [f"## {escape(one.title)}"] if one.title != title else []
        for entry in one.entries:
            term = f"<code>{escape(entry.term)}</code>"
            text = re.sub(
                r"([\\`*_\[\]|])", r"\\\1", escape(f"{entry.title}. {entry.text}".removeprefix(". "), quote=False)
            )
            lines.append(
                f"### {escape(entry.term)}" if entry.is_heading else f"- {term} {text}" if entry.term else text
            )
    return "\n\n".join(lines) + "\n"


def main() -> None:
    shutil.rmtree(TO, ignore_errors=True)
    shutil.copytree(CHECKOUT / "screenshots", TO / "pages/screenshots", ignore=shutil.ignore_patterns("*.py"))
    pages = {name: page(name) for name in PAGES}
    titles = {text.partition("\n")[0].removeprefix("# ") for text in pages.values()}
    pages["keys"] = on_screen("Keys", [keys_page(all_commands())])
    pages["screens"] = on_screen("On screen", [one for one in help_topics() if one.title not in titles])
    for name, (_, told) in COMMANDS.items():
        command = group.get_command(click.Context(group), name)
        text = (
            command.get_help(click.Context(command, info_name=f"rtui {name}", max_content_width=100)) if command else ""
        )
        pages[f"reference/{name}"] = f"# rtui {name}\n\n{told.capitalize()}.\n\n```text\n{text}\n```\n"
    others = [name for name in pages if name not in {one for part in PARTS.values() for one in part}]
    parts = PARTS | {"Begin": [*PARTS["Begin"], *others]}
    (TO / "pages/reference").mkdir()
    for name, text in pages.items():
        file = "index" if name == "start" else name
        (TO / f"pages/{file}.md").write_text(text.replace("](start.md)", "](index.md)"), "utf-8")
    nav = [{part: ["index.md" if name == "start" else f"{name}.md" for name in names]} for part, names in parts.items()]
    (TO / "mkdocs.yml").write_text(json.dumps({"INHERIT": "../../.github/site/mkdocs.yml", "nav": nav}), "utf-8")


main()
