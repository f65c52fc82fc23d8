"""The rows of a collection as what their values mean: in a word or two, or as the places of a geo key.

What is copied, opened and written stays what is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from rtui.keyspace import types
from rtui.keyspace.text.display import Piece
from rtui.server.facts.preview.page import Meaning, Preview, PreviewColumn, PreviewRow
from rtui.tui.browse.value_rows import Item, element_of
from rtui.tui.kit.layout import value_text_pieces
from rtui.values import SEPARATOR, Summary, UnknownDecoderError, summarise
from rtui.values.geo import Likeness, geo_likeness, longitude_latitude

SECONDS: Final = 0.25
"""Processor time that the rows of one page may take; those after it stay as they are stored."""

MOST_CHARACTERS: Final = 160

ChosenFor = Callable[[Item], str | None]
"""Returns the decoder that was chosen by hand for elements such as this one."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """What the elements and the names of a page mean, where their bytes do not say it."""

    elements: dict[PreviewRow, list[Piece]] = field(default_factory=dict)
    names: dict[bytes, list[Piece]] = field(default_factory=dict)

    def of(self, row: PreviewRow, column: PreviewColumn, number: int) -> list[Piece] | None:
        """Return what stands for a cell; None where it is shown as it is stored."""
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
    """Return what the elements of a page mean; takes up to `SECONDS`, and belongs into a thread."""
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
    return value_text_pieces(text, limit=MOST_CHARACTERS)


_PLACES: Final = (PreviewColumn("longitude", Meaning.DEGREES), PreviewColumn("latitude", Meaning.DEGREES))
_LIKELY: Final = "these scores look like geo positions: "
_POSSIBLE: Final = "these scores may be geo positions, or times in microseconds: "


def likeness_of(preview: Preview) -> Likeness:
    """Tell whether the scores of a page look like those of a geo key."""
    at = next((at for at, column in enumerate(preview.columns) if column.meaning is Meaning.SCORE), None)
    if at is None or preview.type != types.ZSET.name:
        return Likeness.NO
    scores = [row[at] for row in preview.rows]
    return geo_likeness([one for one in scores if isinstance(one, int | float)])


def with_places(preview: Preview, likeness: Likeness, *, is_shown: bool) -> Preview:
    """Return a page of a geo key with longitude and latitude, or only with a note that says how to see them."""
    said = _LIKELY if likeness is Likeness.LIKELY else _POSSIBLE
    if not is_shown:
        return replace(preview, notes=(*preview.notes, f"{said}d shows longitude and latitude"))
    at = next(at for at, column in enumerate(preview.columns) if column.meaning is Meaning.SCORE)
    places = (longitude_latitude(score) if isinstance(score := row[at], int | float) else None for row in preview.rows)
    rows = tuple((*row, *(place or (None, None))) for row, place in zip(preview.rows, places, strict=True))
    notes = (*preview.notes, f"{said}d shows the scores")
    return replace(preview, columns=(*preview.columns, *_PLACES), rows=rows, notes=notes)
