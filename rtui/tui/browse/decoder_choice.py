"""Choosing a decoder by hand, from a list of those that fit and then all others, and remembering the choice.

What is chosen for a value is used for the values of all keys with the same pattern, such as `user:{id}:profile`, in
this run and the next ones; for what was opened from a field, for that field of such keys. Text and hex are two ways to
look at stored bytes, and not remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rtui.analysis.facts import Unknown
from rtui.keyspace import types
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.identifiers import Identifiers
from rtui.keyspace.text.key_segments import KeySegments
from rtui.keyspace.text.segments import Separators
from rtui.server.user.copying import key_as_text
from rtui.tui.browse.document import Document
from rtui.tui.browse.value_rows import Item
from rtui.tui.kit.choice import ListScreen
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import literal
from rtui.values import SEPARATOR
from rtui.values.plain import HEX, TEXT

MOST_SEGMENTS: Final = 64
"""The rest of a longer name is one segment of its pattern."""

MOST_CHARACTERS: Final = 512
"""For the values of a longer pattern nothing is remembered."""

_NAMED: Final = frozenset({types.HASH.name, types.STREAM.name})


class ChosenDecoders:
    """What was chosen by hand, by the place for which it holds."""

    def __init__(self, settings: SettingsFile, separators: Separators) -> None:
        self._settings = settings
        self._segments = KeySegments(separators)
        self._identifiers = Identifiers(separators.values)

    def _folded(self, name: bytes) -> bytes:
        return self._identifiers.form(name).pattern or name

    def place(self, key: bytes, key_type: bytes | Unknown, item: Item | None = None) -> str:
        """Return the pattern of a key, for an element of its value with the field; nothing where it is too long."""
        segments = self._segments.of(key[: MOST_CHARACTERS + 1], MOST_SEGMENTS)
        pattern = b"".join(self._folded(name) + separator for name, separator in segments)
        found = key_as_text(pattern)
        if item is not None:
            name = item.name if key_type in _NAMED else None
            found += SEPARATOR + ("element" if name is None else key_as_text(self._folded(name)))
        return found if len(found) <= MOST_CHARACTERS and len(key) <= MOST_CHARACTERS else ""

    def of(self, place: str) -> str | None:
        """Return what was chosen for a place, None for nothing."""
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
    """Return what can be chosen for a document: None for what fits by itself, then those that fit, then all others."""
    choices = [None, *document.choices.fitting[1:], *document.choices.others]
    return choices if document.choice in choices else [*choices, document.choice]
