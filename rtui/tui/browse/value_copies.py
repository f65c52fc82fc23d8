"""What can be copied of a row of a value: the redis-cli command that reads it, its value, its name or position."""

from __future__ import annotations

from typing import Final

from rtui.analysis.facts import Unknown
from rtui.keyspace import types
from rtui.keyspace.text.display import SafeText, quoted
from rtui.server.facts.preview.page import Meaning, Preview
from rtui.server.redis_cli_commands import command_line, key_as_text
from rtui.server.wire.target import Target
from rtui.tui.browse.document import Document, node_bytes
from rtui.tui.browse.preview_lines import cell_text
from rtui.tui.browse.value_rows import Item, ItemKind
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.styled_text import literal

_BY_NAME: Final = {
    types.HASH.name: "HGET",
    types.SET.name: "SISMEMBER",
    types.ZSET.name: "ZSCORE",
}
_BY_INDEX: Final = {types.LIST.name: "LINDEX", types.ARRAY.name: "ARGET"}
_VALUES: Final = {
    types.HASH.name: "value",
    types.LIST.name: "item",
    types.SET.name: "member",
    types.ZSET.name: "member",
    types.STREAM.name: "value",
}
_NAMES: Final = {types.HASH.name: "field", types.STREAM.name: "field"}


def element_command(target: Target, preview: Preview, item: Item | None) -> SafeText | None:
    """Return the redis-cli command that reads what a row stands for; None where there is none."""
    if item is not None and item.kind is ItemKind.SIDE:
        return _side_command(target, preview.key, item)
    if preview.type == types.STRING.name:
        window = preview.window
        if window is None or (preview.next_page is None and not window.offset_bytes):
            return command_line(target, "GET", preview.key)
        first, last = window.offset_bytes, window.offset_bytes + max(0, len(window.data) - 1)
        return command_line(target, "GETRANGE", preview.key, str(first), str(last))
    words = None if item is None else _element_words(preview.type, item)
    return None if words is None else command_line(target, words[0], preview.key, *words[1])


def _element_words(key_type: bytes | Unknown, item: Item) -> tuple[str, tuple[bytes, ...]] | None:
    """Return the command for an element of a collection, and what follows the key."""
    if not isinstance(key_type, bytes):
        return None
    name, index, entry_id = item.name, item.cell(Meaning.INDEX), item.cell(Meaning.STREAM_ID)
    if key_type in _BY_NAME and name is not None:
        return _BY_NAME[key_type], (name,)
    if key_type in _BY_INDEX and isinstance(index, int):
        return _BY_INDEX[key_type], (b"%d" % index,)
    if key_type == types.STREAM.name and isinstance(entry_id, bytes):
        return "XRANGE", (entry_id, entry_id)
    return None


def _side_command(target: Target, key: bytes, item: Item) -> SafeText | None:
    """Return the command for a consumer group, or for what a consumer has pending."""
    if item.name is None:
        return None
    if item.subject is not None:
        return command_line(target, "XPENDING", key, item.subject, "-", "+", "10", item.name)
    return command_line(target, "XINFO CONSUMERS", key, item.name)


def value_copies(
    target: Target, preview: Preview, item: Item | None, document: Document | None, source: Item | None = None
) -> list[Copy]:
    """Return what can be copied of the row under the cursor, the command that reads it first.

    `source` is the element that the document was opened from, which the command then reads.
    """
    entries: list[Copy] = []
    command = element_command(target, preview, item if source is None else source)
    if command is not None:
        entries.append(Copy(SafeText(f"redis-cli: {command.split('--quoted-input ')[-1].split(' ')[0]}"), command))
    key_type = preview.type if isinstance(preview.type, bytes) else b""
    if item is not None and item.data is None and (whole := copied_bytes(item)) is not None:
        entries.append(Copy(literal("all that is in it"), copied_text(whole)))
    elif item is not None and item.data is not None:
        what = _VALUES.get(key_type, "value") if item.kind is ItemKind.ELEMENT else "line"
        what = {ItemKind.NODE: "value", ItemKind.SIDE: "name"}.get(item.kind, what)
        entries.append(Copy(SafeText(what), copied_text(item.data)))
        entries.append(Copy(SafeText(f"{what} as escaped bytes"), quoted(item.data)))
    if item is not None:
        entries += _positions(key_type, item)
    if source is not None:
        entries += _positions(key_type, source)
    if document is not None:
        entries.append(Copy(SafeText(f"all of it, as {document.title}"), copied_text(document.found.data)))
        if document.found.data != document.data:
            entries.append(Copy(literal("all of it, as it is stored"), copied_text(document.data)))
    return [*entries, Copy(literal("name of the key"), key_as_text(preview.key))]


def _positions(key_type: bytes, item: Item) -> list[Copy]:
    """Return what tells where a row is: its field, index, rank, score and id."""
    entries = []
    if item.node is not None and item.node.name is not None:
        entries.append(Copy(literal("name"), copied_text(item.node.name.raw)))
    if key_type in _NAMES and item.kind is ItemKind.ELEMENT and item.name is not None:
        entries.append(Copy(SafeText(_NAMES[key_type]), copied_text(item.name)))
    for column, cell in zip(item.columns, item.cells, strict=False):
        is_position = column.meaning in (Meaning.INDEX, Meaning.SCORE, Meaning.STREAM_ID)
        if is_position and cell is not None and column.title.isprintable():
            entries.append(Copy(SafeText(column.title), cell_text(cell, column.meaning)))
    return entries


def copied_bytes(item: Item) -> bytes | None:
    """Return what copying a row gives; None where that was not read."""
    return node_bytes(item.node) if item.data is None and item.node is not None else item.data


_TEXT_CONTROLS: Final = frozenset("\t\n\r")


def copied_text(data: bytes) -> str:
    """Return bytes as text where all of it is printable but for line breaks and tabs, else as escaped bytes.

    So a pasted value is what was stored, and never an escape sequence for the terminal.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return quoted(data)
    return text if all(one.isprintable() or one in _TEXT_CONTROLS for one in text) else quoted(data)
