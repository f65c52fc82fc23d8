"""Elements of HTML with escaped texts, and the whole document, which loads nothing.

Its policy forbids it to: it lets in the one style sheet and the one script that are written into the page, by their
hashes. Without the script everything is there, but nothing zooms or sorts.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

from rtui.keyspace.text.display import display_text

_VOID: Final = frozenset({"meta", "rect", "path", "line", "input"})
"""Elements without an end."""


class Markup(str):
    """Text of a page with its tags, which is not escaped again."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element. In the names of attributes `_` stands for `-`, but for one at the end; None leaves one out.

    Numbers have a few figures.
    """
    written = ""
    for key, value in attributes.items():
        if value is not None:
            text = safe(value) if isinstance(value, str) else f"{value:.6g}"
            written += f' {key.rstrip("_").replace("_", "-")}="{text}"'
    if name in _VOID:
        return Markup(f"<{name}{written}/>")
    content = "".join(child if isinstance(child, Markup) else safe(child) for child in children)
    return Markup(f"<{name}{written}>{content}</{name}>")


def safe(text: str) -> Markup:
    """Return text escaped, without control or invisible characters."""
    return Markup(escape(display_text(text, limit=4096)))


SHARE_STEPS: Final = 20
"""A share is drawn under its number in so many steps."""


def document(title: str, header: Markup, main: Markup) -> str:
    """Return a whole page; it ends with a line feed."""
    shares = (f".s{step}{{--share:{step / SHARE_STEPS:g}}}" for step in range(1, SHARE_STEPS + 1))
    style, script = Markup(_inline("page.css") + "".join(shares)), _inline("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", style),
    )
    body = element("body", header, main, element("script", script))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _inline(name: str) -> Markup:
    """Return a file that lies beside this module."""
    return Markup((files(__package__) / name).read_text("utf-8"))
