"""Types whose content is not read: vector sets and what modules bring. Name, size and the server's own description."""

from __future__ import annotations

from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.facts.preview.page import Cell, Kind, Page, Preview
from rtui.server.facts.preview.source import Source, byte_items, cell, items, mapping, optional
from rtui.server.guard import PerKey
from rtui.server.wire.capability import unknown_from
from rtui.server.wire.errors import ServerError
from rtui.server.wire.replies import Reply

_DESCRIBES: Final[dict[bytes, PerKey]] = {
    b"vectorset": guard.vinfo,
    b"TSDB-TYPE": guard.ts_info,
    b"MBbloom--": guard.bf_info,
    b"bloomfltr": guard.bf_info,
    b"MBbloomCF": guard.cf_info,
    b"CMSk-TYPE": guard.cms_info,
    b"TopK-TYPE": guard.topk_info,
    b"TDIS-TYPE": guard.tdigest_info,
}
"""By the name that TYPE answers, the command that describes the value."""

JSON_TYPE_NAME: Final = b"ReJSON-RL"
"""What TYPE answers for a JSON document, in Redis and in Valkey."""

_JSON_SIZES: Final[dict[bytes, tuple[str, PerKey]]] = {
    b"object": ("members", guard.json_objlen),
    b"array": ("elements", guard.json_arrlen),
    b"string": ("characters", guard.json_strlen),
}


async def read_description(source: Source, page: Page) -> Preview:
    """Read what the server says of the value as a whole; a type that nobody has heard of has its name and memory."""
    kind = source.facts.type
    if kind == JSON_TYPE_NAME:
        return await _json(source, page)
    describe = _DESCRIBES.get(kind) if isinstance(kind, bytes) else None
    if describe is None:
        await source.begin()
        return _shown(source, page, (), Unknown(Reason.UNSUPPORTED, "rtui does not look into values of this type"))
    (reply,) = await source.begin(describe(source.key))
    if isinstance(reply, ServerError):
        return _shown(source, page, (), unknown_from(reply))
    return _shown(source, page, summary_of(reply))


def summary_of(reply: Reply) -> tuple[tuple[str, Cell | Unknown], ...]:
    """Take the single values of a description, in the server's order; lists within it are left out."""
    return tuple(
        (name.decode("utf-8", "backslashreplace"), cell(value))
        for name, value in mapping(reply).items()
        if isinstance(value, (bytes, int, float))
    )


async def _json(source: Source, page: Page) -> Preview:
    (reply,) = await source.begin(guard.json_type(source.key))
    if isinstance(reply, ServerError):
        return _shown(source, page, (), unknown_from(reply))
    root = _single(reply)
    summary: tuple[tuple[str, Cell | Unknown], ...] = (("JSON type", cell(root)),)
    sized = _JSON_SIZES.get(root) if isinstance(root, bytes) else None
    if sized is not None:
        title, ask = sized
        (size,) = await source.more(ask(source.key))
        summary += ((title, cell(_single(optional(size)))),)
    why = "JSON.GET has no bound on what it answers"
    return _shown(source, page, summary, Unknown(Reason.NOT_ASKED, why))


def _single(reply: Reply) -> Reply:
    """Take the one answer out of the list that newer servers put it into."""
    found = byte_items(reply) or items(reply)
    return found[0] if found else reply


def _shown(
    source: Source, page: Page, summary: tuple[tuple[str, Cell | Unknown], ...], refusal: Unknown | None = None
) -> Preview:
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=Kind.DESCRIPTION,
        page=page,
        total=source.facts.length,
        summary=summary,
        refusal=refusal,
        touched=source.touches,
    )
