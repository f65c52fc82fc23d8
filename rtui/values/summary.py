"""A decoded value in one line: for the rows of hashes, lists, sets and streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rtui.values import nearly_json, php
from rtui.values.chain import decode
from rtui.values.limits import Limits
from rtui.values.plain import HEX, NUMBER, TEXT, UUID_FORMAT, date_hints
from rtui.values.tree import SEPARATOR, Decoded, Kind, Node

ROW: Final = Limits(output_bytes=1 << 16, layers=4, depth=32, elements=500, seconds=0.01)
"""What summing up one row may take, so that a page of a hundred takes a second at most."""

MAX_CHARACTERS: Final = 400
"""How much of a text is kept."""

_AS_IT_IS: Final = frozenset({TEXT.name, HEX.name, NUMBER.name, UUID_FORMAT.name})
_READABLE: Final = frozenset(one.name for one in (*nearly_json.FORMATS, *php.FORMATS))
"""Notations that people read as they are stored."""

_JSON: Final = frozenset(one.name for one in nearly_json.FORMATS)


@dataclass(frozen=True, slots=True)
class Summary:
    """A value in a few words; all of them raw, for `display_text`."""

    decoders: str
    """The decoders without text, number and hex at the end: `gzip › JSON`; empty for a number that may be a date."""
    value: str
    """A number as it is, a text in double quotes, `{12}` for a map of 12 members, `[3]` for a list, `≥` where cut."""
    type_name: str = ""
    """The type or class that the format names: `java.lang.Long`."""
    date: str = ""
    """The date that a number may be."""

    @property
    def text(self) -> str:
        """All of it: `gzip › JSON {12}`, `1536236969740 › 2018-09-06 12:29:29.740 UTC`."""
        words = " ".join(part for part in (self.decoders, self.type_name, self.value) if part)
        return f"{words}{SEPARATOR}{self.date}" if self.date else words


def summarise(data: bytes, *, choose: str | None = None) -> Summary | None:
    """Return what a value means in one line, None where its bytes say that themselves; within the limits of a row.

    `choose` is as in `decode`, and raises UnknownDecoderError as there.
    """
    return summary(decode(data, limits=ROW, choose=choose))


def summary(found: Decoded) -> Summary | None:
    """Return a decoded value in one line; None where its bytes say as much, or nothing is known of them."""
    root, last = found.root, found.chain[-1]
    decoders = found.chain[:-1] if last in _AS_IT_IS else found.chain
    date = _date(root)
    is_stored = len(found.chain) == 1 and last in _READABLE and (root.children or last in _JSON)
    if found.has_failed or is_stored or not (decoders or date):
        return None
    return Summary(SEPARATOR.join(decoders), _value(root), root.type_name, date)


def _date(root: Node) -> str:
    if root.kind is not Kind.NUMBER:
        return ""
    return next((hint.partition(": ")[2] for hint in date_hints(str(root.value))), "")


def _value(root: Node) -> str:
    """Return a value without what is in it."""
    if root.kind in (Kind.MAP, Kind.LIST):
        count = f"{root.total if root.total is not None else len(root.children):,}"
        count = f"≥ {count}" if root.is_cut and root.total is None else count
        return f"{{{count}}}" if root.kind is Kind.MAP else f"[{count}]"
    if isinstance(root.value, bytes):
        return f"{len(root.value):,} bytes"
    cut = root.value[:MAX_CHARACTERS]
    shown = f"{cut}…" if root.is_cut or len(cut) < len(root.value) else cut
    return f'"{shown}"' if root.kind is Kind.TEXT else shown
