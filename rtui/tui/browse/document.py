"""A decoded string, field or element: its decoders, whether chosen by hand, and the folded nodes of its tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

from rtui.analysis.humanize import size
from rtui.keyspace.text.display import Piece, SafeText, is_usual
from rtui.tui.browse.value_rows import Item, ItemKind, ValueRow, plain_rows
from rtui.tui.kit.layout import MARGIN, display_text, prose, value_pieces, value_text_pieces
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_pieces, gap, line_width, literal, styled, wrap_pieces
from rtui.values import (
    Choices,
    Decoded,
    Form,
    Kind,
    Node,
    OutlineRow,
    UnknownDecoderError,
    choices,
    decode,
    drop_unfinished,
    node_json,
    outline,
)
from rtui.values.plain import HEX, TEXT

MAX_INDENT: Final = 20
"""Deeper nodes are not indented further."""

FOLDED_FROM: Final = 4
"""Maps and lists at this depth are folded at first, so that a deep value shows its upper levels."""

TEXT_LINES: Final = 12
"""Lines that one line of a text is wrapped into at most."""

MOST_HEX_BYTES: Final = 16_384
MOST_TEXT_BYTES: Final = 65_536
"""Bytes that are shown of a value without pages at most;"""

MOST_TEXT_LINES: Final = 5_000
"""lines that are shown of a text at most."""

_TEXT_LIMIT: Final = 512
_QUOTE: Final = Piece(literal('"'))
_GOES_ON: Final = literal(" … goes on")
_ROLES: Final = {Kind.NUMBER: Role.LIST, Kind.CONSTANT: Role.SET, Kind.BYTES: Role.MUTED, Kind.NOTE: Role.MUTED}


@dataclass(frozen=True, slots=True)
class Document:
    """Decoded bytes, and how they are shown."""

    data: bytes
    found: Decoded
    choices: Choices
    """The decoders that may be chosen instead, the best first."""
    is_whole: bool = True
    total_bytes: int | None = None
    """Length of the value in bytes, None if it is not known."""
    choice: str | None = None
    """The decoder that was chosen by hand; None for the automatic one."""
    chosen_for: str = ""
    """The pattern of keys for which the choice is remembered."""
    refused: str = ""
    """Why a choice that is remembered is not followed."""
    folded: frozenset[tuple[int, ...]] = frozenset()
    by_name: bool = False
    """Whether the members of maps are sorted by their names."""
    is_reversed: bool = False
    """Whether their order is reversed."""

    @property
    def title(self) -> SafeText:
        """The decoders in their order, as `base64 › gzip › JSON`."""
        return display_text(self.found.title, limit=60)

    @property
    def is_plain(self) -> bool:
        """Whether nothing was decoded: the value is plain text or bytes."""
        return len(self.found.chain) == 1 and self.found.form in (Form.TEXT, Form.HEX) and not self.found.notes

    @property
    def is_as_stored(self) -> bool:
        """Whether it is the stored bytes as text or hex, as a page of the value shows them, too."""
        return self.found.chain in ((TEXT.name,), (HEX.name,))

    @property
    def position(self) -> SafeText:
        """The range of the value that was read for it; empty for the whole value."""
        if self.is_whole:
            return SafeText("")
        total = "" if self.total_bytes is None else f" of {size(self.total_bytes)}"
        return SafeText(f"first {size(len(self.data))}{total}")

    def toggled(self, path: tuple[int, ...], *, fold: bool | None = None) -> Document:
        """Return the document with a node folded, or unfolded, or toggled for None."""
        wanted = path not in self.folded if fold is None else fold
        return replace(self, folded=self.folded | {path} if wanted else self.folded - {path})


def open_document(
    data: bytes,
    *,
    is_whole: bool = True,
    total_bytes: int | None = None,
    automatic: str | None = None,
    remembered: tuple[str | None, str] = (None, ""),
) -> Document:
    """Return bytes decoded by the remembered decoder, or by the best fit; may take a quarter of a second.

    `automatic` is the decoder unless another one is chosen. `remembered` is a decoder, and the pattern of keys that it
    was chosen for; it is not used if it fails.
    """
    found = decode(data, is_whole=is_whole, choose=automatic)
    document = Document(data, found, choices(data, is_whole=is_whole, found=found), is_whole, total_bytes)
    choice, pattern = remembered
    if choice is None:
        return _folded(document)
    try:
        chosen = decode(data, is_whole=is_whole, choose=choice)
    except UnknownDecoderError as error:
        return _folded(replace(document, refused=f"{error}; it was chosen for {pattern}"))
    if chosen.has_failed:
        why = chosen.notes[-1] if chosen.notes else choice
        return _folded(replace(document, refused=f"{why}; it was chosen for {pattern}"))
    return _folded(replace(document, found=chosen, choice=choice, chosen_for=pattern))


def decode_otherwise(document: Document, choice: str | None, automatic: str | None = None) -> Document:
    """Return the same bytes by another decoder, None for the automatic one; may take a quarter of a second."""
    found = decode(document.data, is_whole=document.is_whole, choose=choice or automatic)
    return _folded(replace(document, found=found, choice=choice, chosen_for="", refused=""))


def _folded(document: Document) -> Document:
    """Return a newly decoded document with its deep nodes folded."""
    root = document.found.root
    if document.found.truncated:
        drop_unfinished(root)
    deep = frozenset(row.path for row in outline(root) if row.depth >= FOLDED_FROM and row.node.children)
    return replace(document, folded=deep)


def document_rows(document: Document, width: int) -> list[ValueRow]:
    """Return the rows of a document for a panel of this width."""
    found = document.found
    notes = [display_text(note) for note in found.notes]
    failure = plain_rows(*prose(notes.pop(), width, Role.WARN), ()) if found.has_failed and notes else []
    raw, most = found.root.raw, len(found.root.raw)
    match found.form:
        case Form.HEX:
            most = MOST_HEX_BYTES
            rows = list(hex_rows(raw[:most], 0, width))
        case Form.TEXT:
            beginning = _beginning(raw, MOST_TEXT_BYTES)
            most = len(beginning)
            rows = list(text_rows(beginning, width, goes_on=most < len(raw) or document.found.truncated))
        case _:
            rows = list(_tree_rows(document, width))
    if len(raw) > most:
        notes.insert(0, SafeText(f"the first {size(most)} of {size(len(raw))} are shown: P shows all, w writes it"))
    if not rows:
        rows = plain_rows(*prose(literal("(empty)"), width, Role.FAINT))
    notes += [*_chosen_notes(document), *_going_on(document)]
    return [*failure, *rows, *_note_rows(notes, width)]


def notes_of(document: Document, width: int) -> list[ValueRow]:
    """Return the notes of a document."""
    return _note_rows([*map(display_text, document.found.notes), *_chosen_notes(document)], width)


def _chosen_notes(document: Document) -> list[SafeText]:
    """Say that the decoder was chosen by hand and how to go back; or why a remembered one is not used."""
    if document.refused:
        return [display_text(document.refused)]
    if document.choice is None:
        return []
    pattern = f" for {display_text(document.chosen_for, limit=80)}" if document.chosen_for else ""
    return [
        SafeText(f"The decoder was chosen by hand{pattern}. d, then the first entry, goes back to the automatic one.")
    ]


def _note_rows(notes: list[SafeText], width: int) -> list[ValueRow]:
    return [row for note in notes for row in plain_rows((), *prose(note, width, Role.MUTED))]


def _going_on(document: Document) -> list[SafeText]:
    """Tell how much of a longer value was read, and how to see the rest."""
    if document.is_whole:
        return []
    total = "" if document.total_bytes is None else f" of {size(document.total_bytes)}"
    read = f"The value goes on: {size(len(document.data))}{total} read."
    return [SafeText(f"{read} P shows all of it, w writes it, d shows its bytes in pages.")]


def _beginning(text: bytes, most: int) -> bytes:
    """Return the beginning of a text: `most` bytes, less where a character would be cut or lines are too many."""
    end = min(most, len(text))
    while 0 < most - 3 <= end < len(text) and text[end] & 0xC0 == 0x80:
        end -= 1
    lines = text[:end].split(b"\n", MOST_TEXT_LINES)
    return text[: end - len(lines[-1])] if len(lines) > MOST_TEXT_LINES else text[:end]


def text_rows(data: bytes, width: int, *, began_before: bool = False, goes_on: bool = False) -> Iterator[ValueRow]:
    """Yield the lines of a text, each wrapped; a wrapped line is one item.

    Of a text that `began_before` or `goes_on` the first or the last line is a part of one. Of plain ASCII it is known
    in how many lines it is broken, without breaking it.
    """
    room = max(1, width - 2 * MARGIN)
    lines = data.split(b"\n")
    for at, raw in enumerate(lines):
        is_part = (began_before and not at) or (goes_on and at == len(lines) - 1)
        item = Item(ItemKind.TEXT, raw, is_part=is_part)
        if raw.isascii() and is_usual(raw.decode("ascii")):
            count = max(1, min(TEXT_LINES, -(-len(raw) // room)))
        else:
            count = len(_wrapped(raw, room))
        for number in range(count):
            yield ValueRow(partial(_text_line, raw, room, number), item)


def _text_line(raw: bytes, room: int, number: int) -> Line:
    return gap(MARGIN), *styled(_wrapped(raw, room)[number])


@lru_cache(64)
def _wrapped(raw: bytes, room: int) -> list[list[Piece]]:
    return wrap_pieces(value_pieces(raw, limit=room * TEXT_LINES), room, TEXT_LINES)


def hex_rows(data: bytes, offset_bytes: int, width: int) -> Iterator[ValueRow]:
    """Yield the lines of a hex dump that begins at this offset of the value."""
    room = width - 2 * MARGIN
    step = next((n for n in (16, 8) if 10 + 3 * n + 1 + n <= room), 4)
    for at in range(0, len(data), step):
        piece = data[at : at + step]
        yield ValueRow(partial(_hex_line, piece, offset_bytes + at, step), Item(ItemKind.HEX, piece))


def _hex_line(piece: bytes, offset_bytes: int, step: int) -> Line:
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
    return (
        gap(MARGIN),
        Span(SafeText(f"{offset_bytes:08x}  "), Role.FAINT),
        Span(SafeText(f"{piece.hex(' '):<{3 * step}} ")),
        Span(SafeText(shown), Role.MUTED),
    )


def _tree_rows(document: Document, width: int) -> Iterator[ValueRow]:
    """Yield a row for each node that is not inside a folded one."""
    is_folded, by_name = document.folded.__contains__, document.by_name
    for row in outline(document.found.root, folded=is_folded, by_name=by_name, is_reversed=document.is_reversed):
        yield ValueRow(partial(_node_line, row, width), partial(_node_item, row))


def _node_item(row: OutlineRow) -> Item:
    node = row.node
    data = None if node.kind in (Kind.MAP, Kind.LIST) else node.raw
    return Item(ItemKind.NODE, data, node=node, path=row.path)


def _node_line(row: OutlineRow, width: int) -> Line:
    node = row.node
    mark = literal("  ")
    if node.children:
        mark = literal("▸ ") if row.is_folded else literal("▾ ")
    line: list[Span] = [gap(MARGIN), gap(2 * min(row.depth, MAX_INDENT)), Span(mark, Role.FAINT)]
    if node.name is not None:
        is_alone = node.kind is Kind.NOTE and not node.value  # an instruction without an operand
        line += [*styled(_plain_pieces(node.name), Role.HASH), Span(literal("" if is_alone else ": "), Role.FAINT)]
    line += _value_spans(node, width - 2 * MARGIN - (line_width(tuple(line)) if node.is_cut else 0))
    return clip(tuple(line), width - MARGIN)


def branch_text(node: Node, form: Form) -> str:
    """Return the copied text of a map or list: JSON, with a mark where it was cut, or the lines of a listing."""
    found = None if form is Form.LISTING else node_json(node, may_be_cut=True)
    return "\n".join(_text_lines(node)) if found is None else found


def _text_lines(node: Node) -> Iterator[str]:
    """Yield instructions as indented text, one a line."""
    for row in outline(node):
        if row.depth:
            parts = (_quoted(part) for part in (row.node.name, row.node) if part is not None)
            yield f"{'  ' * (row.depth - 1)}{' '.join(part for part in parts if part)}"


def _quoted(node: Node) -> str:
    text = node.raw.decode("utf-8", "backslashreplace")
    return f'"{text}"' if node.kind is Kind.TEXT else text


def _plain_pieces(node: Node) -> list[Piece]:
    """Return a name or a single value: text between quotes."""
    if isinstance(node.value, bytes):
        return value_pieces(node.value, limit=_TEXT_LIMIT)
    found = value_text_pieces(node.value, limit=_TEXT_LIMIT)
    return [_QUOTE, *found, _QUOTE] if node.kind is Kind.TEXT else found


def _value_spans(node: Node, room: int) -> Line:
    """Return the text of a node behind its name."""
    type_name = display_text(node.type_name, limit=32)
    spans: list[Span] = []
    if node.kind in (Kind.MAP, Kind.LIST):
        count = _count(node)
        spans.append(Span(SafeText(f"{{{count}}}" if node.kind is Kind.MAP else f"[{count}]"), Role.MUTED))
    else:
        room -= len(_GOES_ON) if node.is_cut else 0
        spans += styled(cut_pieces(_plain_pieces(node), max(room, 8)), _ROLES.get(node.kind, Role.TEXT))
    if type_name:
        spans += [gap(2), Span(type_name, Role.FAINT)]
    if node.is_cut and node.kind not in (Kind.MAP, Kind.LIST):
        spans.append(Span(_GOES_ON, Role.WARN))
    return tuple(spans)


def _count(node: Node) -> str:
    """Return the number of members of a map or list, and the number of loaded ones if not all are."""
    there = f"{len(node.children):,}"
    if node.missing:
        return f"{there} of {node.total:,}"
    return f"≥ {there}" if node.is_cut else there
