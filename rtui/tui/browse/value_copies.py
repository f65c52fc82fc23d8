"""The copies offered of a shown value, each under a label that says exactly whether it is whole, or which part.

A row is copied as it is stored, or as JSON where it holds others. Of a string that was read in part, that part is
offered, and, up to a limit, all of it, for which the rest is read first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.humanize import size
from rtui.keyspace import types
from rtui.keyspace.text.display import SafeText, quoted
from rtui.server.facts.answers import VECTOR
from rtui.server.facts.preview.page import Meaning, Preview, StringWindow
from rtui.server.user.copying import command_line, key_as_text
from rtui.server.wire.target import Target
from rtui.tui.browse.document import DecodedDocument, branch_text
from rtui.tui.browse.preview_lines import cell_text, of_total
from rtui.tui.browse.shown_value import ShownValue
from rtui.tui.browse.value_view import ItemKind, RowItem
from rtui.tui.kit.clipboard import NOTHING_SAID, Copy
from rtui.tui.kit.styled_text import literal
from rtui.values import CUT, DecodingLimits, ValueForm, decode, is_cut

_BY_NAME: Final = {types.HASH.name: "HGET", types.SET.name: "SISMEMBER", types.ZSET.name: "ZSCORE"}
_BY_INDEX: Final = {types.LIST.name: "LINDEX", types.ARRAY.name: "ARGET"}
_VALUES: Final = {
    types.HASH.name: "value",
    types.LIST.name: "item",
    types.SET.name: "member",
    types.ZSET.name: "member",
    types.STREAM.name: "value",
}
_NAMES: Final = {types.HASH.name: "field", types.STREAM.name: "field"}


MAX_COPY_BYTES: Final = 4 << 20
"""A string that is longer is not read to be copied: it is written to a file."""

ReadWhole = Callable[[Callable[[bytes], bytes | Unknown]], object]
"""Reads a whole string of up to MAX_COPY_BYTES and copies the result of the function, or shows why not."""

_AS_READ: Final = literal("as far as it was read")
_STORED: Final = literal("as it is stored")


def read_commands(target: Target, value: ShownValue, item: RowItem | None) -> Iterator[Copy]:
    """Yield the redis-cli commands: first the one for just the shown part, then the one that reads all."""
    preview = value.preview
    item = value.opened[0].source if value.opened else item
    if preview is None:
        return
    if item is not None and item.kind is ItemKind.SIDE:
        line = _side_command(target, preview.key, item)
        if line is not None:
            yield Copy(literal("redis-cli"), line)
    elif preview.type == types.STRING.name:
        stored = value.stored
        if stored is not None and not value.is_all_stored:
            first, last = stored.offset_bytes, stored.offset_bytes + max(0, len(stored.data) - 1)
            line = command_line(target, "GETRANGE", preview.key, str(first), str(last))
            yield Copy(SafeText(f"redis-cli: GETRANGE, {_part(preview, stored)}"), line)
        if stored is not None:
            rest = "" if value.is_all_stored else ", all of it"
            yield Copy(SafeText(f"redis-cli: GET{rest}"), command_line(target, "GET", preview.key))
    elif item is not None and (words := _element_words(preview.type, item)) is not None:
        yield Copy(SafeText(f"redis-cli: {words[0]}"), command_line(target, words[0], preview.key, *words[1]))


def _part(preview: Preview, stored: StringWindow) -> SafeText:
    if stored.offset_bytes:
        last = stored.offset_bytes + len(stored.data)
        return SafeText(f"bytes {stored.offset_bytes:,}–{last:,}{of_total(preview.total)}")
    of_size = f" of {size(preview.total)}" if isinstance(preview.total, int) else ""
    return SafeText(f"the first {size(len(stored.data))}{of_size}")


def _element_words(key_type: bytes | Unknown, item: RowItem) -> tuple[str, tuple[bytes, ...]] | None:
    """Return the command for an element of a collection, and its arguments after the key."""
    if not isinstance(key_type, bytes):
        return None
    name, index, entry_id = item.name, item.cell(Meaning.INDEX), item.cell(Meaning.STREAM_ID)
    if key_type in _BY_NAME and name is not None:
        return _BY_NAME[key_type], (name,)
    if key_type in _BY_INDEX and isinstance(index, int):
        return _BY_INDEX[key_type], (b"%d" % index,)
    if key_type == types.VECTOR_SET.name and name is not None:
        return ("VEMB" if VECTOR in item.cells[1:2] else "VGETATTR"), (name,)
    if key_type == types.STREAM.name and isinstance(entry_id, bytes):
        return "XRANGE", (entry_id, entry_id)
    return None


def _side_command(target: Target, key: bytes, item: RowItem) -> SafeText | None:
    """Return the command for a consumer group, or for the pending entries of a consumer."""
    if item.name is None:
        return None
    if item.subject is not None:
        return command_line(target, "XPENDING", key, item.subject, "-", "+", "10", item.name)
    return command_line(target, "XINFO CONSUMERS", key, item.name)


def row_copy(item: RowItem, key_type: bytes | Unknown, form: ValueForm) -> Copy | None:
    """Return the copy of a row itself, labelled as just that; None if nothing of it was read.

    `form` is the form of the document that the row is in.
    """
    if item.data is None and item.node is not None:
        if form is ValueForm.LISTING:
            return Copy(literal("all that is in it, as lines"), copied_text(branch_text(item.node, form).encode()))
        text = branch_text(item.node, form)
        if is_cut(item.node):
            return Copy(SafeText(f"what was read of it, as JSON with {CUT} where it was cut"), text, _AS_READ)
        return Copy(literal("all that is in it, as JSON"), text)
    if item.data is None:
        return None
    what = _VALUES.get(key_type, "value") if isinstance(key_type, bytes) else "value"
    match item.kind:
        case ItemKind.SIDE:
            what = "name"
        case ItemKind.NODE:
            what = "value"
        case ItemKind.TEXT:
            what = "line"
        case ItemKind.HEX:
            what = f"these {len(item.data)} bytes"
    if item.is_part or (item.node is not None and item.node.is_cut):
        return bytes_copy(f"{what}, {_AS_READ}", item.data, _AS_READ)
    return bytes_copy(what, item.data)


def bytes_copy(title: str, data: bytes, note: SafeText = NOTHING_SAID) -> Copy:
    """Return the copy of bytes: as text if printable, else escaped, and labelled so."""
    text = copied_text(data)
    if text != quoted(data):
        return Copy(SafeText(title), text, note)
    said = literal("as escaped bytes")
    return Copy(SafeText(f"{title}, {said}"), text, SafeText(f"{note}, {said}") if note else said)


def value_copies(target: Target, value: ShownValue, item: RowItem | None, read_whole: ReadWhole) -> list[Copy]:
    """Return the copies of the shown value and of the row under the cursor, the command that reads it first."""
    preview, document = value.preview, value.decoded
    if preview is None:
        return []
    entries = list(read_commands(target, value, item))
    key_type = preview.type if isinstance(preview.type, bytes) else b""
    form = ValueForm.TREE if document is None else document.found.form
    if item is not None and (row := row_copy(item, key_type, form)) is not None:
        entries.append(row)
        if item.data is not None and row.text != quoted(item.data):
            entries.append(Copy(SafeText(f"{row.title}, as escaped bytes"), quoted(item.data), row.note))
    for one in (item, value.opened[0].source if value.opened else None):
        entries += [] if one is None else _positions(key_type, one)
    if document is not None and document.found.data != document.data:
        entries += _decoded_copies(document, None if value.opened else read_whole)
    if value.opened and document is not None:
        entries.append(bytes_copy(f"all of it, {_STORED}", document.data))
    elif value.stored is not None:
        entries += _stored_copies(preview, value.stored, read_whole, is_all=value.is_all_stored)
    return [*entries, Copy(literal("name of the key"), key_as_text(preview.key))]


def _stored_copies(preview: Preview, stored: StringWindow, read_whole: ReadWhole, *, is_all: bool) -> Iterator[Copy]:
    """Yield copies of a string: all bytes, or the shown ones, then a copy that reads the rest first."""
    if is_all:
        yield bytes_copy(f"all of it, {_STORED}", stored.data)
        return
    if stored.data:
        part = _part(preview, stored)
        yield bytes_copy(f"{part}, {_STORED}", stored.data, part)
    yield from _read_first(f"all of it, {_STORED}", preview.total, partial(read_whole, lambda data: data))


def _read_first(title: str, total: int | Unknown | None, start: Callable[[], object]) -> Iterator[Copy]:
    """Yield an entry that reads all of a value before it is copied, unless that is too much."""
    if not isinstance(total, int):
        yield Copy(SafeText(f"{title}: up to {size(MAX_COPY_BYTES)} is read first"), "", start=start)
    elif total <= MAX_COPY_BYTES:
        yield Copy(SafeText(f"{title}: {size(total)} is read first"), "", start=start)


def _decoded_copies(document: DecodedDocument, read_whole: ReadWhole | None) -> Iterator[Copy]:
    found, title = document.found, f"as {document.title}"
    if document.is_whole and found.is_data_whole:
        yield bytes_copy(f"all of it, {title}", found.data)
        return
    part = SafeText(f"the first {size(len(found.data))}")
    yield bytes_copy(f"{part}, {title}", found.data, part)
    if read_whole is not None:
        whole = partial(_decode_whole, found.title)
        yield from _read_first(
            f"all of it, {title}", document.total_bytes or len(document.data), partial(read_whole, whole)
        )


def _decode_whole(title: str, data: bytes) -> bytes | Unknown:
    """Return all bytes of a value decoded, which may take a second; or the reason why they are incomplete."""
    found = decode(data, choose=title, limits=DecodingLimits(output_bytes=MAX_COPY_BYTES, seconds=2.0))
    if found.title == title and found.is_data_whole:
        return found.data
    return Unknown(Reason.TOO_LARGE, f"it can't be decoded within {size(MAX_COPY_BYTES)}: w writes what is stored")


def _positions(key_type: bytes, item: RowItem) -> list[Copy]:
    """Return copies of the position of a row: its field, index, rank, score and id."""
    entries = []
    if item.node is not None and item.node.name is not None:
        entries.append(Copy(literal("name"), copied_text(item.node.name.raw)))
    if key_type in _NAMES and item.kind is ItemKind.ELEMENT and item.name is not None:
        entries.append(Copy(SafeText(_NAMES[key_type]), copied_text(item.name)))
    for column, cell in zip(item.columns, item.cells, strict=False):
        is_position = column.meaning in (Meaning.INDEX, Meaning.SCORE, Meaning.STREAM_ID)
        if column.meaning is Meaning.DEGREES and isinstance(cell, float):
            entries.append(Copy(SafeText(column.title), repr(cell)))
        if is_position and cell is not None and column.title.isprintable():
            entries.append(Copy(SafeText(column.title), cell_text(cell, column.meaning)))
    return entries


_TEXT_CONTROLS: Final = frozenset("\t\n\r")
_JOINERS: Final = frozenset("\u200c\u200d\u00ad")
"""Characters that are not seen, and that text needs: emoji are joined, letters kept apart by them."""


def copied_text(data: bytes) -> str:
    """Return bytes as text if it is all printable but for spaces and line breaks, else as escaped bytes.

    So a pasted value is the stored one, and never an escape sequence for the terminal.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return quoted(data)
    others = (one for one in text if not one.isprintable())
    is_text = all(one in _TEXT_CONTROLS or one in _JOINERS or unicodedata.category(one) == "Zs" for one in others)
    return text if is_text else quoted(data)
