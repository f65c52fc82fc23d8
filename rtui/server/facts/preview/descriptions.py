"""Previews of types that the server describes: module types, JSON documents and vector sets.

They show the server's own description of the value (TS.INFO, BF.INFO …), or only name, size and memory if there is
none. For a JSON document they show the type of its root and its size.

For a vector set they show VINFO, and a page of elements with their attributes and vectors. VRANGE lists elements by
name from Redis 8.4 on; before, a random sample is shown. The number of elements in a page is limited so that their
vectors have at most `PAGE_NUMBERS` numbers; vectors of very many dimensions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.facts.preview.page import Meaning, Preview, PreviewCell, PreviewColumn, PreviewKind, PreviewRow, Unread
from rtui.server.facts.preview.value_reader import NO_ANSWER, ValueReader, byte_items, cell, integer, items, mapping
from rtui.server.guard.command import KeyCommand
from rtui.server.guard.evidence import VectorEvidence
from rtui.server.guard.spec import MAX_FIELD_BYTES
from rtui.server.wire.capability import unknown_from
from rtui.server.wire.errors import Reply, ServerError

_JSON_SIZES: Final[dict[bytes, tuple[str, KeyCommand]]] = {
    b"object": ("members", guard.json_objlen),
    b"array": ("elements", guard.json_arrlen),
    b"string": ("characters", guard.json_strlen),
}
"""The unit of the size and its command, by the type of the root."""


async def read_nothing(reader: ValueReader) -> Preview:
    """Check that the key still exists; nothing else is read of an undeclared type."""
    await reader.begin()
    why = "rtui does not read values of this type"
    return replace(reader.preview(PreviewKind.DESCRIPTION), refusal=Unknown(Reason.UNSUPPORTED, why))


def description_from(command: KeyCommand) -> Callable[[ValueReader], Awaitable[Preview]]:
    """Return a reader that shows the reply to this command, a map of names and values."""

    async def read_description(reader: ValueReader) -> Preview:
        shown = reader.preview(PreviewKind.DESCRIPTION)
        (reply,) = await reader.begin(command(reader.key))
        if isinstance(reply, ServerError):
            return replace(shown, refusal=unknown_from(reply))
        return replace(shown, summary=summary_of(reply))

    return read_description


def summary_of(reply: Reply) -> tuple[tuple[str, PreviewCell], ...]:
    """Return the single values of a description, in the server's order; lists within it are left out."""
    return tuple(
        (name.decode("utf-8", "backslashreplace"), cell(value))
        for name, value in mapping(reply).items()
        if isinstance(value, (bytes, int, float))
    )


async def describe_json(reader: ValueReader) -> Preview:
    """Read the type of a JSON document's root, and its size if it has one."""
    shown = reader.preview(PreviewKind.DESCRIPTION)
    (reply,) = await reader.begin(guard.json_type(reader.key))
    if isinstance(reply, ServerError):
        return replace(shown, refusal=unknown_from(reply))
    root = _single(reply)
    summary = [("JSON type", cell(root))]
    sized = _JSON_SIZES.get(root) if isinstance(root, bytes) else None
    if sized is not None:
        title, command = sized
        (size,) = await reader.querier.run(command(reader.key))
        summary.append((title, cell(_single(size))))
    why = "JSON.GET has no size limit"
    return replace(shown, summary=tuple(summary), refusal=Unknown(Reason.NOT_ASKED, why))


def _single(reply: Reply) -> Reply:
    """Return the only item of the list in which newer servers wrap their reply."""
    found = items(reply)
    return found[0] if found else reply


PAGE_ELEMENTS: Final = 50
PAGE_NUMBERS: Final = 16_384
"""The most numbers in the vectors of one page: a number takes the server 0.1 µs and 20 bytes of the reply."""

NEVER: Final = (1 << 30,)
"""A version that no Valkey has: it has no vector sets."""

VECTOR: Final = b"vector"
ATTRIBUTES: Final = b"attributes"
COLUMNS: Final = (
    PreviewColumn("element", Meaning.NAME),
    PreviewColumn("of it", Meaning.NAME),
    PreviewColumn("value", Meaning.VALUE),
)
_NUMBER: Final = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


async def read_vectors(reader: ValueReader) -> Preview:
    """Read the description of a vector set, and the elements behind the page's first."""
    shown = reader.preview(PreviewKind.DESCRIPTION)
    (reply,) = await reader.begin(guard.vinfo(reader.key))
    if isinstance(reply, ServerError):
        return replace(shown, refusal=unknown_from(reply))
    shown = replace(shown, summary=summary_of(reply))
    evidence = VectorEvidence(integer(mapping(reply).get(b"vector-dim")))
    per_page = PAGE_NUMBERS // max(1, evidence.dimensions or 1) if evidence.is_small else PAGE_ELEMENTS
    count = min(PAGE_ELEMENTS, per_page, reader.require_items("element"))
    lists = reader.supports(redis=(8, 4), valkey=NEVER)
    start = b"(" + reader.page.position if isinstance(reader.page.position, bytes) else b"-"
    command = guard.vrange(reader.key, start, count=count) if lists else guard.vrandmember(reader.key, count)
    (listed,) = await reader.querier.run(command)
    if not isinstance(listed, list):
        why = unknown_from(listed) if isinstance(listed, ServerError) else NO_ANSWER
        return replace(shown, refusal=replace(why, detail=f"its elements are not shown: {why.detail or why.reason}"))
    names = byte_items(listed)
    rows, notes = await _rows(reader, names, evidence)
    if not lists:
        notes.append(f"a random sample of {len(names)} elements: this server has no VRANGE, which came with Redis 8.4")
    is_more = lists and len(names) == count and len(names[-1]) <= MAX_FIELD_BYTES
    return replace(
        shown,
        columns=COLUMNS,
        rows=tuple(rows),
        elements=len(names),
        first=reader.page.seen if lists else None,
        next_page=reader.page.following(names[-1], shown=len(names)) if is_more else None,
        notes=(*reader.size_notes, *notes),
    )


async def _rows(
    reader: ValueReader, names: Sequence[bytes], evidence: VectorEvidence
) -> tuple[list[PreviewRow], list[str]]:
    """Return two rows for an element, its vector and its attributes if it has any, and notes."""
    asked = [name for name in names if len(name) <= MAX_FIELD_BYTES]
    vectors = [guard.vemb(reader.key, name, evidence) for name in asked] if evidence.is_small else []
    replies = await reader.querier.run(*(guard.vgetattr(reader.key, name) for name in asked), *vectors)
    attributes = dict(zip(asked, replies, strict=False))
    numbers = dict(zip(asked, replies[len(asked) :], strict=False))
    rows: list[PreviewRow] = []
    for name in names:
        rows.append((name, VECTOR, _vector(numbers.get(name))))
        found = attributes.get(name)
        if isinstance(found, ServerError):
            rows.append((None, ATTRIBUTES, unknown_from(found)))
        elif found is not None:
            rows.append((None, ATTRIBUTES, cell(found)))
    if evidence.is_small:
        return rows, []
    dimensions = "of unknown length" if evidence.dimensions is None else f"of {evidence.dimensions:,} numbers"
    return rows, [f"vectors {dimensions} are not read"]


def _vector(reply: Reply) -> PreviewCell | Unknown:
    """Return a vector as a JSON list, with the numbers exactly as the server writes them."""
    if isinstance(reply, ServerError):
        return unknown_from(reply)
    if reply is None:
        return Unread(None)
    parts = [part if isinstance(part, bytes) else repr(part).encode() for part in items(reply)]
    return b"[" + b", ".join(part if _NUMBER.fullmatch(part) else b'"' + part + b'"' for part in parts) + b"]"
