"""Previews of types whose content is not read: what modules bring.

They show the server's own description of the value (TS.INFO, BF.INFO …), or only name, size and memory where
there is none. Of a JSON document they show the type of its root and how large that is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.facts.preview.page import Preview, PreviewCell, PreviewKind
from rtui.server.facts.preview.value_reader import ValueReader, cell, items, mapping
from rtui.server.guard.command import KeyCommand
from rtui.server.wire.capability import unknown_from
from rtui.server.wire.replies import Reply, ServerError

_JSON_SIZES: Final[dict[bytes, tuple[str, KeyCommand]]] = {
    b"object": ("members", guard.json_objlen),
    b"array": ("elements", guard.json_arrlen),
    b"string": ("characters", guard.json_strlen),
}
"""By the type of the root, what its size counts, and the command that answers it."""


async def read_nothing(reader: ValueReader) -> Preview:
    """Check that the key is still there; of a type that is not declared nothing else is asked."""
    await reader.begin()
    why = "rtui does not look into values of this type"
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
    """Read the type of a JSON document's root, and its size where it has one."""
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
    why = "JSON.GET has no bound on what it answers"
    return replace(shown, summary=tuple(summary), refusal=Unknown(Reason.NOT_ASKED, why))


def _single(reply: Reply) -> Reply:
    """Return the one answer of the list that newer servers put it into."""
    found = items(reply)
    return found[0] if found else reply
