"""A decoded string, field or element: its decoders, whether chosen by hand, and the folded nodes of its tree.

A decoder is chosen from a list of the fitting ones and then all others. A decoder chosen for a value is used for the
values of all keys with the same pattern, such as `user:<id>:profile`, in this run and the next ones; a decoder chosen
for a field is used for that field of such keys. Text and hex are two ways to look at stored bytes, and not remembered.

The rows of a collection show the meanings of their values: in a word or two, or as the places of a geo key. Copying,
opening and writing take the stored bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import ClassVar, Final

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.analysis.facts import Unknown
from rtui.analysis.humanize import size
from rtui.keyspace import types
from rtui.keyspace.text.display import DisplayedPiece, SafeText, is_usual
from rtui.keyspace.text.identifiers import Identifiers, KeySegments
from rtui.keyspace.text.segments import Separators
from rtui.server.facts.preview.page import Meaning, Preview, PreviewColumn, PreviewRow
from rtui.server.user.copying import key_as_text
from rtui.tui.browse.value_view import ItemKind, RowItem, ValueRow, element_of, plain_rows
from rtui.tui.kit.choice import ListScreen
from rtui.tui.kit.layout import MARGIN, display_text, prose, value_pieces, value_text_pieces
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_pieces, gap, line_width, literal, styled, wrap_pieces
from rtui.values import (
    SEPARATOR,
    Choices,
    Decoded,
    OutlineRow,
    UnknownDecoderError,
    ValueForm,
    ValueKind,
    ValueNode,
    ValueSummary,
    choices,
    decode,
    drop_unfinished,
    node_json,
    outline,
    summarise,
)
from rtui.values.plain import HEX, TEXT
from rtui.values.server_encodings import Likeness, geo_likeness, longitude_latitude

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
_QUOTE: Final = DisplayedPiece(literal('"'))
_GOES_ON: Final = literal(" … goes on")
_ROLES: Final = {
    ValueKind.NUMBER: Role.LIST,
    ValueKind.CONSTANT: Role.SET,
    ValueKind.BYTES: Role.MUTED,
    ValueKind.NOTE: Role.MUTED,
}


@dataclass(frozen=True, slots=True)
class DecodedDocument:
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
    is_reversed: bool = False

    @property
    def title(self) -> SafeText:
        """The decoders in their order, as `base64 › gzip › JSON`."""
        return display_text(self.found.title, limit=60)

    @property
    def is_plain(self) -> bool:
        """Whether nothing was decoded: the value is plain text or bytes."""
        return (
            len(self.found.chain) == 1 and self.found.form in (ValueForm.TEXT, ValueForm.HEX) and not self.found.notes
        )

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


def open_document(
    data: bytes,
    *,
    is_whole: bool = True,
    total_bytes: int | None = None,
    automatic: str | None = None,
    remembered: tuple[str | None, str] = (None, ""),
) -> DecodedDocument:
    """Return bytes decoded by the remembered decoder, or by the best fit; may take a quarter of a second.

    `automatic` is the decoder unless another one is chosen. `remembered` is a decoder, and the pattern of keys that it
    was chosen for; it is not used if it fails.
    """
    found = decode(data, is_whole=is_whole, choose=automatic)
    document = DecodedDocument(data, found, choices(data, is_whole=is_whole, found=found), is_whole, total_bytes)
    choice, pattern = remembered
    if choice is None:
        return _folded(document)
    try:
        chosen = decode(data, is_whole=is_whole, choose=choice)
    except UnknownDecoderError as error:
        return _folded(replace(document, refused=f"{error}; chosen for {pattern}"))
    if chosen.has_failed:
        why = chosen.notes[-1] if chosen.notes else choice
        return _folded(replace(document, refused=f"{why}; chosen for {pattern}"))
    return _folded(replace(document, found=chosen, choice=choice, chosen_for=pattern))


def decode_otherwise(document: DecodedDocument, choice: str | None, automatic: str | None = None) -> DecodedDocument:
    """Return the same bytes by another decoder, None for the automatic one; may take a quarter of a second."""
    found = decode(document.data, is_whole=document.is_whole, choose=choice or automatic)
    return _folded(replace(document, found=found, choice=choice, chosen_for="", refused=""))


def _folded(document: DecodedDocument) -> DecodedDocument:
    root = document.found.root
    if document.found.truncated:
        drop_unfinished(root)
    deep = frozenset(row.path for row in outline(root) if row.depth >= FOLDED_FROM and row.node.children)
    return replace(document, folded=deep)


def document_rows(document: DecodedDocument, width: int) -> list[ValueRow]:
    found = document.found
    notes = [display_text(note) for note in found.notes]
    failure = plain_rows(*prose(notes.pop(), width, Role.WARN), ()) if found.has_failed and notes else []
    raw, most = found.root.raw, len(found.root.raw)
    match found.form:
        case ValueForm.HEX:
            most = MOST_HEX_BYTES
            rows = list(hex_rows(raw[:most], 0, width))
        case ValueForm.TEXT:
            beginning = _beginning(raw, MOST_TEXT_BYTES)
            most = len(beginning)
            rows = list(text_rows(beginning, width, goes_on=most < len(raw) or document.found.truncated))
        case _:
            rows = _tree_rows(document, width)
    if len(raw) > most:
        notes.insert(0, SafeText(f"the first {size(most)} of {size(len(raw))} are shown: P shows all, w writes it"))
    if not rows:
        rows = plain_rows(*prose(literal("(empty)"), width, Role.FAINT))
    notes += _chosen_notes(document)
    if not document.is_whole:
        total = "" if document.total_bytes is None else f" of {size(document.total_bytes)}"
        read = f"The value goes on: {size(len(document.data))}{total} read."
        notes.append(SafeText(f"{read} P shows all of it, w writes it, d shows its bytes in pages."))
    return [*failure, *rows, *_note_rows(notes, width)]


def notes_of(document: DecodedDocument, width: int) -> list[ValueRow]:
    return _note_rows([*map(display_text, document.found.notes), *_chosen_notes(document)], width)


def _chosen_notes(document: DecodedDocument) -> list[SafeText]:
    """Say that the decoder was chosen by hand and how to go back; or why a remembered one is not used."""
    if document.refused:
        return [display_text(document.refused)]
    if document.choice is None:
        return []
    pattern = f" for {display_text(document.chosen_for, limit=80)}" if document.chosen_for else ""
    return [
        SafeText(f"The decoder was chosen manually{pattern}. Press d and choose the first entry for the automatic one.")
    ]


def _note_rows(notes: list[SafeText], width: int) -> list[ValueRow]:
    return [row for note in notes for row in plain_rows((), *prose(note, width, Role.MUTED))]


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
        item = RowItem(ItemKind.TEXT, raw, is_part=is_part)
        if raw.isascii() and is_usual(raw.decode("ascii")):
            count = max(1, min(TEXT_LINES, -(-len(raw) // room)))
        else:
            count = len(_wrapped(raw, room))
        for number in range(count):
            yield ValueRow(partial(_text_line, raw, room, number), item)


def _text_line(raw: bytes, room: int, number: int) -> Line:
    return gap(MARGIN), *styled(_wrapped(raw, room)[number])


@lru_cache(64)
def _wrapped(raw: bytes, room: int) -> list[list[DisplayedPiece]]:
    return wrap_pieces(value_pieces(raw, limit=room * TEXT_LINES), room, TEXT_LINES)


def hex_rows(data: bytes, offset_bytes: int, width: int) -> Iterator[ValueRow]:
    room = width - 2 * MARGIN
    step = next((n for n in (16, 8) if 10 + 3 * n + 1 + n <= room), 4)
    for at in range(0, len(data), step):
        piece = data[at : at + step]
        yield ValueRow(partial(_hex_line, piece, offset_bytes + at, step), RowItem(ItemKind.HEX, piece))


def _hex_line(piece: bytes, offset_bytes: int, step: int) -> Line:
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
    return (
        gap(MARGIN),
        Span(SafeText(f"{offset_bytes:08x}  "), Role.FAINT),
        Span(SafeText(f"{piece.hex(' '):<{3 * step}} ")),
        Span(SafeText(shown), Role.MUTED),
    )


def _tree_rows(document: DecodedDocument, width: int) -> list[ValueRow]:
    is_folded, by_name = document.folded.__contains__, document.by_name
    shown = outline(document.found.root, folded=is_folded, by_name=by_name, is_reversed=document.is_reversed)
    return [ValueRow(partial(_node_line, row, width), partial(_node_item, row)) for row in shown]


def _node_item(row: OutlineRow) -> RowItem:
    node = row.node
    data = None if node.kind in (ValueKind.MAP, ValueKind.LIST) else node.raw
    return RowItem(ItemKind.NODE, data, node=node, path=row.path)


def _node_line(row: OutlineRow, width: int) -> Line:
    node = row.node
    mark = literal("  ")
    if node.children:
        mark = literal("▸ ") if row.is_folded else literal("▾ ")
    line: list[Span] = [gap(MARGIN), gap(2 * min(row.depth, MAX_INDENT)), Span(mark, Role.FAINT)]
    if node.name is not None:
        is_alone = node.kind is ValueKind.NOTE and not node.value  # an instruction without an operand
        line += [*styled(_plain_pieces(node.name), Role.HASH), Span(literal("" if is_alone else ": "), Role.FAINT)]
    line += _value_spans(node, width - 2 * MARGIN - (line_width(tuple(line)) if node.is_cut else 0))
    return clip(tuple(line), width - MARGIN)


def branch_text(node: ValueNode, form: ValueForm) -> str:
    """Return the copied text of a map or list: JSON, with a mark where it was cut, or the lines of a listing."""
    found = None if form is ValueForm.LISTING else node_json(node, may_be_cut=True)
    return "\n".join(_text_lines(node)) if found is None else found


def _text_lines(node: ValueNode) -> Iterator[str]:
    for row in outline(node):
        if row.depth:
            parts = (_quoted(part) for part in (row.node.name, row.node) if part is not None)
            yield f"{'  ' * (row.depth - 1)}{' '.join(part for part in parts if part)}"


def _quoted(node: ValueNode) -> str:
    text = node.raw.decode("utf-8", "backslashreplace")
    return f'"{text}"' if node.kind is ValueKind.TEXT else text


def _plain_pieces(node: ValueNode) -> list[DisplayedPiece]:
    if isinstance(node.value, bytes):
        return value_pieces(node.value, limit=_TEXT_LIMIT)
    found = value_text_pieces(node.value, limit=_TEXT_LIMIT)
    return [_QUOTE, *found, _QUOTE] if node.kind is ValueKind.TEXT else found


def _value_spans(node: ValueNode, room: int) -> Line:
    type_name = display_text(node.type_name, limit=32)
    spans: list[Span] = []
    if node.kind in (ValueKind.MAP, ValueKind.LIST):
        count = _count(node)
        spans.append(Span(SafeText(f"{{{count}}}" if node.kind is ValueKind.MAP else f"[{count}]"), Role.MUTED))
    else:
        room -= len(_GOES_ON) if node.is_cut else 0
        spans += styled(cut_pieces(_plain_pieces(node), max(room, 8)), _ROLES.get(node.kind, Role.TEXT))
    if type_name:
        spans += [gap(2), Span(type_name, Role.FAINT)]
    if node.is_cut and node.kind not in (ValueKind.MAP, ValueKind.LIST):
        spans.append(Span(_GOES_ON, Role.WARN))
    return tuple(spans)


def _count(node: ValueNode) -> str:
    there = f"{len(node.children):,}"
    if node.missing:
        return f"{there} of {node.total:,}"
    return f"≥ {there}" if node.is_cut else there


MOST_SEGMENTS: Final = 64
"""The rest of a longer name is one segment of its pattern."""

MOST_CHARACTERS: Final = 512
"""For the values of a longer pattern nothing is remembered."""

_NAMED: Final = frozenset({types.HASH.name, types.STREAM.name})


class ChosenDecoders:
    """The decoders that were chosen by hand, by the place that each is for."""

    def __init__(self, settings: SettingsFile, separators: Separators) -> None:
        self._settings = settings
        self._segments = KeySegments(separators)
        self._identifiers = Identifiers(separators.values)

    def _folded(self, name: bytes) -> bytes:
        return self._identifiers.form(name).pattern or name

    def place(self, key: bytes, key_type: bytes | Unknown, item: RowItem | None = None) -> str:
        """Return the pattern of a key, for an element of its value with the field; empty if it is too long."""
        segments = self._segments.of(key[: MOST_CHARACTERS + 1], MOST_SEGMENTS)
        pattern = b"".join(self._folded(name) + separator for name, separator in segments)
        found = key_as_text(pattern)
        if item is not None:
            name = item.name if key_type in _NAMED else None
            found += SEPARATOR + ("element" if name is None else key_as_text(self._folded(name)))
        return found if len(found) <= MOST_CHARACTERS and len(key) <= MOST_CHARACTERS else ""

    def of(self, place: str) -> str | None:
        return self._settings.settings.decoders.get(place)

    def choose(self, place: str, choice: str | None) -> bool:
        """Remember a choice for a place, None to forget it; return whether it is remembered."""
        if not place or (choice is not None and choice.split(SEPARATOR)[-1] in (TEXT.name, HEX.name)):
            return False
        if choice != self.of(place):
            self._settings.choose(f"decoders.{place}", choice)
        return choice is not None


class DecoderScreen(ListScreen[int | None]):
    """Returns the number of the chosen decoder among `decoder_choices`, None when nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "next", show=False)]

    def __init__(self, document: DecodedDocument) -> None:
        fitting, others = document.choices
        now = decoder_choices(document).index(document.choice)
        titles: Sequence[SafeText] = [
            SafeText(f"{display_text(fitting[0], limit=60)} (automatic)"),
            *(display_text(name, limit=60) for name in (*fitting[1:], *others)),
        ]
        entries = [Option(Content(f"{'•' if at == now else ' '} {name}")) for at, name in enumerate(titles)]
        self._first_other = len(fitting)
        if others:
            heading = Content("all decoders:")
            entries.insert(self._first_other, Option(heading, disabled=True))
        super().__init__(literal("Decoder"), "enter decodes · d next · esc closes", *entries)
        self.options.highlighted = now + (now >= self._first_other)

    def action_next(self) -> None:
        self.options.action_cursor_down()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index - (event.option_index > self._first_other))


def decoder_choices(document: DecodedDocument) -> list[str | None]:
    """Return the decoders to choose from: None for the automatic one, then the fitting ones, then all others."""
    choices = [None, *document.choices.fitting[1:], *document.choices.others]
    return choices if document.choice in choices else [*choices, document.choice]


SECONDS: Final = 0.25
"""Processor time in seconds for decoding the rows of a page; the rows left over are shown as stored."""

MOST_SHOWN: Final = 160

ChosenFor = Callable[[RowItem], str | None]
"""Returns the decoder that was chosen by hand for elements such as this one."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """Decoded texts for the elements and names of a page whose bytes need decoding."""

    elements: dict[PreviewRow, list[DisplayedPiece]] = field(default_factory=dict)
    names: dict[bytes, list[DisplayedPiece]] = field(default_factory=dict)

    def of(self, row: PreviewRow, column: PreviewColumn, number: int) -> list[DisplayedPiece] | None:
        """Return the decoded text of a cell; None if it is shown as it is stored."""
        if column.meaning is Meaning.VALUE:
            return self.elements.get(row)
        cell = row[number]
        if column.meaning is not Meaning.NAME or not isinstance(cell, bytes):
            return None
        return self.names.get(cell)

    def __bool__(self) -> bool:
        return bool(self.elements or self.names)


NO_MEANINGS: Final = Meanings()


def meanings_of(preview: Preview, chosen: ChosenFor) -> Meanings:
    """Return decoded texts for the elements of a page; takes up to `SECONDS`, so call it in a thread."""
    found = Meanings()
    has_values = any(column.meaning is Meaning.VALUE for column in preview.columns)
    until_s = time.thread_time() + SECONDS
    entry = None
    for row in preview.rows:
        if time.thread_time() > until_s:
            break
        entry = row[0] if row and row[0] is not None else entry
        item = element_of(preview.columns, row, entry if preview.type == types.STREAM.name else None)
        if item.name is not None and has_values and item.name not in found.names:
            name = summarise(item.name)
            if name is not None and name.decoders:
                found.names[item.name] = _shown(name)
        if item.data:
            text = _meaning(item.data, chosen(item))
            if text is not None and has_values:
                found.elements[row] = text
            elif text is not None:
                found.names[item.data] = text
    return found


def _meaning(data: bytes, choice: str | None) -> list[DisplayedPiece] | None:
    try:
        found = summarise(data, choose=choice)
    except UnknownDecoderError:
        found = None
    if found is None and choice is not None:
        found = summarise(data)
    return None if found is None else _shown(found)


def _shown(found: ValueSummary) -> list[DisplayedPiece]:
    """Return a number or a text alone, with the date that it may be; of others the decoders, too."""
    is_single = not found.value.startswith(("{", "[")) and not found.value.endswith(" bytes")
    text = found.text
    if is_single and found.value:
        text = f"{found.value}{SEPARATOR}{found.date}" if found.date else found.value
    return value_text_pieces(text, limit=MOST_SHOWN)


_PLACES: Final = (PreviewColumn("longitude", Meaning.DEGREES), PreviewColumn("latitude", Meaning.DEGREES))
_LIKELY: Final = "these scores look like geo positions: "
_POSSIBLE: Final = "these scores may be geo positions, or times in microseconds: "


def likeness_of(preview: Preview) -> Likeness:
    at = next((at for at, column in enumerate(preview.columns) if column.meaning is Meaning.SCORE), None)
    if at is None or preview.type != types.ZSET.name:
        return Likeness.NO
    scores = [row[at] for row in preview.rows]
    return geo_likeness([one for one in scores if isinstance(one, int | float)])


def with_places(preview: Preview, likeness: Likeness, *, is_shown: bool) -> Preview:
    """Return a page of a geo key with longitude and latitude, or only with a hint on how to see them."""
    said = _LIKELY if likeness is Likeness.LIKELY else _POSSIBLE
    if not is_shown:
        return replace(preview, notes=(*preview.notes, f"{said}d shows longitude and latitude"))
    at = next(at for at, column in enumerate(preview.columns) if column.meaning is Meaning.SCORE)
    places = (longitude_latitude(score) if isinstance(score := row[at], int | float) else None for row in preview.rows)
    rows = tuple((*row, *(place or (None, None))) for row, place in zip(preview.rows, places, strict=True))
    notes = (*preview.notes, f"{said}d shows the scores")
    return replace(preview, columns=(*preview.columns, *_PLACES), rows=rows, notes=notes)
