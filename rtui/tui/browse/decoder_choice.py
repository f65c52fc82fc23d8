"""Choosing a decoder by hand, from a list of the fitting ones and then all others, and remembering the choice.

A decoder chosen for a value is used for the values of all keys with the same pattern, such as `user:{id}:profile`, in
this run and the next ones; a decoder chosen for a field is used for that field of such keys. Text and hex are two ways
to look at stored bytes, and not remembered.

The rows of a collection show the meanings of their values: in a word or two, or as the places of a geo key. Copying,
opening and writing take the stored bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.analysis.facts import Unknown
from rtui.keyspace import types
from rtui.keyspace.text.display import Piece, SafeText, display_text
from rtui.keyspace.text.identifiers import Identifiers, KeySegments
from rtui.keyspace.text.segments import Separators
from rtui.server.facts.preview.page import Meaning, Preview, PreviewColumn, PreviewRow
from rtui.server.user.copying import key_as_text
from rtui.tui.browse.document import Document
from rtui.tui.browse.value_rows import Item, element_of
from rtui.tui.kit.choice import ListScreen
from rtui.tui.kit.layout import value_text_pieces
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import literal
from rtui.values import SEPARATOR, Summary, UnknownDecoderError, summarise
from rtui.values.plain import HEX, TEXT
from rtui.values.server_encodings import Likeness, geo_likeness, longitude_latitude

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

    def place(self, key: bytes, key_type: bytes | Unknown, item: Item | None = None) -> str:
        """Return the pattern of a key, for an element of its value with the field; empty if it is too long."""
        segments = self._segments.of(key[: MOST_CHARACTERS + 1], MOST_SEGMENTS)
        pattern = b"".join(self._folded(name) + separator for name, separator in segments)
        found = key_as_text(pattern)
        if item is not None:
            name = item.name if key_type in _NAMED else None
            found += SEPARATOR + ("element" if name is None else key_as_text(self._folded(name)))
        return found if len(found) <= MOST_CHARACTERS and len(key) <= MOST_CHARACTERS else ""

    def of(self, place: str) -> str | None:
        """Return the decoder that was chosen for a place, or None."""
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

    def __init__(self, document: Document) -> None:
        fitting, others = document.choices
        now = decoder_choices(document).index(document.choice)
        titles: Sequence[SafeText] = [
            SafeText(f"{display_text(fitting[0], limit=60)} (automatic)"),
            *(display_text(name, limit=60) for name in (*fitting[1:], *others)),
        ]
        entries = [Option(Content(f"{'•' if at == now else ' '} {name}")) for at, name in enumerate(titles)]
        self._first_other = len(fitting)
        if others:
            heading = Content("whether they fit or not:")
            entries.insert(self._first_other, Option(heading, disabled=True))
        super().__init__(literal("Decoder"), "enter decodes · d next · esc closes", *entries)
        self.options.highlighted = now + (now >= self._first_other)

    def action_next(self) -> None:
        """Go to the next decoder."""
        self.options.action_cursor_down()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index - (event.option_index > self._first_other))


def decoder_choices(document: Document) -> list[str | None]:
    """Return the decoders to choose from: None for the automatic one, then the fitting ones, then all others."""
    choices = [None, *document.choices.fitting[1:], *document.choices.others]
    return choices if document.choice in choices else [*choices, document.choice]


SECONDS: Final = 0.25
"""Processor time in seconds for decoding the rows of a page; the rows left over are shown as stored."""

MOST_SHOWN: Final = 160

ChosenFor = Callable[[Item], str | None]
"""Returns the decoder that was chosen by hand for elements such as this one."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """Decoded texts for the elements and names of a page whose bytes need decoding."""

    elements: dict[PreviewRow, list[Piece]] = field(default_factory=dict)
    names: dict[bytes, list[Piece]] = field(default_factory=dict)

    def of(self, row: PreviewRow, column: PreviewColumn, number: int) -> list[Piece] | None:
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


def _meaning(data: bytes, choice: str | None) -> list[Piece] | None:
    try:
        found = summarise(data, choose=choice)
    except UnknownDecoderError:
        found = None
    if found is None and choice is not None:
        found = summarise(data)
    return None if found is None else _shown(found)


def _shown(found: Summary) -> list[Piece]:
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
    """Return how much the scores of a page look like positions of a geo key."""
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
