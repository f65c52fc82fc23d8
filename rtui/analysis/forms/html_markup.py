"""Elements of a page: whatever is put into one is escaped, unless it is an element itself."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from rtui.keyspace.display import display_text

_VOID: Final = frozenset({"meta", "rect", "path", "line", "input"})
"""Elements without an end."""

_TEXT_LIMIT: Final = 4096


class Markup(str):
    """Text of a page with its tags; only `element` and `joined` make it."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element. In the names of attributes `_` stands for `-`, but for one at the end; None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Return parts one behind the other, text escaped."""
    return Markup("".join(part if isinstance(part, Markup) else safe(part) for part in parts))


def safe(text: str) -> Markup:
    """Return text without anything that hides or means something."""
    return Markup(escape(display_text(text, limit=_TEXT_LIMIT)))


def _attribute(value: str | float) -> str:
    """Return the value of an attribute; numbers in a few figures."""
    return safe(value) if isinstance(value, str) else f"{value:.6g}"
