"""Previews of types whose content is not read: vector sets, and what modules bring.

They show the server's own description of the value (VINFO, TS.INFO, BF.INFO …), or only name, size and memory where
there is none. Of a JSON document they show the type of its root and how large that is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.facts.preview.page import Page, Preview, PreviewCell, PreviewKind
from rtui.server.facts.preview.source import ValueReader, byte_items, cell, items, mapping, optional
from rtui.server.guard.batch import KeyCommand
from rtui.server.wire.capability import unknown_from
from rtui.server.wire.replies import Reply, ServerError

_JSON_SIZES: Final[dict[bytes, tuple[str, KeyCommand]]] = {
    b"object": ("members", guard.json_objlen),
    b"array": ("elements", guard.json_arrlen),
    b"string": ("characters", guard.json_strlen),
}
"""By the type of the root, what its size counts, and the command that answers it."""


async def read_nothing(source: ValueReader, page: Page) -> Preview:
    """Check that the key is still there; of a type that is not declared nothing else is asked."""
    await source.begin()
    return _described(source, page, (), Unknown(Reason.UNSUPPORTED, "rtui does not look into values of this type"))


def description_from(command: KeyCommand) -> Callable[[ValueReader, Page], Awaitable[Preview]]:
    """Return a reader that shows the reply of this command, a map of names and values."""

    async def read_description(source: ValueReader, page: Page) -> Preview:
        (reply,) = await source.begin(command(source.key))
        if isinstance(reply, ServerError):
            return _described(source, page, (), unknown_from(reply))
        return _described(source, page, summary_of(reply))

    return read_description


def summary_of(reply: Reply) -> tuple[tuple[str, PreviewCell | Unknown], ...]:
    """Return the single values of a description, in the server's order; lists within it are left out."""
    return tuple(
        (name.decode("utf-8", "backslashreplace"), cell(value))
        for name, value in mapping(reply).items()
        if isinstance(value, (bytes, int, float))
    )


async def read_json(source: ValueReader, page: Page) -> Preview:
    """Read the type of a JSON document's root, and its size where it has one."""
    (reply,) = await source.begin(guard.json_type(source.key))
    if isinstance(reply, ServerError):
        return _described(source, page, (), unknown_from(reply))
    root = _single(reply)
    summary: tuple[tuple[str, PreviewCell | Unknown], ...] = (("JSON type", cell(root)),)
    sized = _JSON_SIZES.get(root) if isinstance(root, bytes) else None
    if sized is not None:
        title, command = sized
        (size,) = await source.more(command(source.key))
        summary += ((title, cell(_single(optional(size)))),)
    why = "JSON.GET has no bound on what it answers"
    return _described(source, page, summary, Unknown(Reason.NOT_ASKED, why))


def _single(reply: Reply) -> Reply:
    """Return the one answer of the list that newer servers put it into."""
    found = byte_items(reply) or items(reply)
    return found[0] if found else reply


def _described(
    source: ValueReader,
    page: Page,
    summary: tuple[tuple[str, PreviewCell | Unknown], ...],
    refusal: Unknown | None = None,
) -> Preview:
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=PreviewKind.DESCRIPTION,
        page=page,
        total=source.facts.length,
        summary=summary,
        refusal=refusal,
        touched=source.touches,
    )
