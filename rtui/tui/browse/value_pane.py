"""The value of a key as one works with it: opening, finding, going to places, copying and writing.

Each opened, decoded or folded document lies on the one it was opened from, as a stack: a field, in its JSON a member
that holds base64, in that again JSON. Escape goes back one step at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from rtui.analysis.facts import Unknown
from rtui.analysis.humanize import size
from rtui.keyspace.slices import only_while
from rtui.keyspace.text.display import EscapeSyntaxError, SafeText, unescape
from rtui.keyspace.text.glob import PatternError
from rtui.keyspace.types import HASH, STRING
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.preview.hashes import MAX_VALUE_BYTES
from rtui.server.facts.preview.page import GLOB_CHARACTERS, Find, Meaning, Unread
from rtui.server.facts.preview.places import PLACES
from rtui.server.facts.preview.value_reader import COPIED_MIB_PER_S, MAX_PURPOSE_BYTES
from rtui.tui.browse.commands import VALUE_COMMANDS
from rtui.tui.browse.detail_fetcher import Detail, DetailFetcher, automatic_decoder
from rtui.tui.browse.document import (
    ChosenDecoders,
    DecodedDocument,
    DecoderScreen,
    decode_otherwise,
    decoder_choices,
    open_document,
)
from rtui.tui.browse.preview_lines import body_rows, cell_text
from rtui.tui.browse.shown_value import OpenedDocument, ShownValue, Tab, Trail
from rtui.tui.browse.tree_lines import TreeTotals
from rtui.tui.browse.value_copies import MAX_COPY_BYTES, copied_text, read_commands, row_copy, value_copies
from rtui.tui.browse.value_view import ELSEWHERE, ItemKind, PromptPurpose, RowItem, ValuePrompt, ValueView
from rtui.tui.browse.value_writer import Run, ValueOutput, ValueWriter, outputs
from rtui.tui.kit.choice import ChoiceScreen, SortScreen
from rtui.tui.kit.clipboard import choose_copy, copies, copy_text
from rtui.tui.kit.command import Condition, Owner, bindings
from rtui.tui.kit.command_screen import drive
from rtui.tui.kit.layout import display, display_text
from rtui.tui.kit.styled_text import literal
from rtui.values import ValueForm

if TYPE_CHECKING:
    from rtui.tui.browse.registry_lines import RegistryLines


class ValuePane(Vertical):
    """Shows the body of a detail and carries out the commands of a value."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(VALUE_COMMANDS, Owner.VALUE)
    DEFAULT_CSS = """
    ValuePane { height: 1fr; }
    """

    @dataclass
    class Followed(Message):
        """A row was opened that leads elsewhere: to a key, a namespace or a list of keys."""

        item: RowItem

    class Left(Message):
        """The user goes back to the tree."""

    def __init__(
        self,
        session: BrowsingSession,
        run: Run,
        fetcher: DetailFetcher,
        totals: Callable[[], TreeTotals],
        decoders: ChosenDecoders,
        *,
        registry: RegistryLines | None,
        on_change: Callable[[], object],
    ) -> None:
        """`on_change` is called when the shown part of the value, or the commands available for it, have changed."""
        super().__init__(id="value")
        self._on_change = on_change
        self._registry = registry
        self.trail = Trail()
        self._decoders = decoders
        self.body = ValueView(on_change, self.action_open, self._title_clicked)
        self.value = ShownValue()
        self._session, self._run, self._totals = session, run, totals
        self.prompt = ValuePrompt()
        self._fetcher = fetcher
        self._needle = ""
        """The text that was looked for last in the rows that are shown."""
        ask = partial(self._open_prompt, PromptPurpose.WRITE, "the path of a file")
        self._writer = ValueWriter(self, run, ask)

    def compose(self) -> ComposeResult:
        yield self.body
        yield self.prompt

    # what is shown

    def show(self, detail: Detail, tab: Tab) -> None:
        """Show a detail; documents stay open while the same page is shown."""
        is_same_key, is_same = self.value.update(detail, tab)
        if not is_same_key:
            self._needle = ""
            self.close_prompt()
        self.show_rows(is_same=is_same)

    @property
    def conditions(self) -> dict[Condition, bool]:
        is_reading, item, preview = self.has_keyboard, self.body.item, self.value.preview
        is_read = preview is not None and (preview.refusal is None or bool(preview.rows) or preview.window is not None)
        paged = {} if self.value.is_paged else {Condition.NEXT_PAGE: False}
        return paged | {
            Condition.IN_VALUE: is_reading and is_read,
            Condition.ON_ITEM: is_reading and item is not None,
            Condition.CAN_OPEN: is_reading and item is not None and self.value.can_open(item),
            Condition.DECODED: is_reading and (self.value.innermost is not None or self.value.can_decode_rows),
        }

    # going back

    def go_back(self) -> bool:
        """Go back one step: close the line, end writing, leave a document or matches; False if there is no step."""
        if self.close_prompt() or self._writer.stop():
            return True
        if self.value.opened:
            line = self.value.opened.pop().line
            self.show_rows(is_same=False)
            self.body.move_to(line)
            return True
        return self.has_keyboard and self._fetcher.go_back()

    def close_prompt(self) -> bool:
        """Close the line that is typed in, and give the keyboard back; return whether it was open."""
        if not self.prompt.is_open:
            return False
        self.prompt.close()
        self.screen.set_focus(self.body)
        self._on_change()
        return True

    # finding and going

    def action_find(self) -> None:
        is_shown = self.value.is_all_shown
        hint = "text to find" if is_shown else "part of a name, or a glob such as user:*:cart"
        self._open_prompt(PromptPurpose.FIND, hint)

    def action_go_to(self) -> None:
        preview = self.value.preview
        syntax = PLACES.get(preview.type) if preview is not None and isinstance(preview.type, bytes) else None
        if syntax is None:
            self.say(literal("a value of this type has no index to go to"), literal("Go to"))
        else:
            self._open_prompt(PromptPurpose.GO_TO, syntax.hint)

    def _open_prompt(self, purpose: PromptPurpose, hint: str, value: str = "") -> None:
        self.prompt.ask(purpose, hint, value)
        self._on_change()

    @on(ValuePrompt.Submitted)
    def _typed(self, event: ValuePrompt.Submitted) -> None:
        event.stop()
        text, purpose = event.value, self.prompt.purpose
        self.close_prompt()
        if not text:
            return
        if purpose is PromptPurpose.WRITE:
            self._writer.write(text)
        elif purpose is PromptPurpose.GO_TO:
            self.value.opened.clear()
            self._fetcher.go_to(text)
        elif self.value.is_all_shown:
            self._needle = text
            self.find_next()
        else:
            self._find(text)

    def _find(self, text: str) -> None:
        needle = text.encode("utf-8", "surrogateescape")
        if GLOB_CHARACTERS.isdisjoint(needle):
            with contextlib.suppress(EscapeSyntaxError):  # a backslash may be meant as one
                needle = unescape(needle)
        find = Find(needle)
        try:
            _ = find.pattern
        except PatternError as error:
            self.say(display_text(str(error)), literal("Find"))
            return
        self._fetcher.find(find)

    def find_next(self) -> bool:
        """Go to the next row with the text that was looked for last; return whether there was such a text."""
        if not self._needle or not self.value.is_all_shown:
            return False
        needle, rows = self._needle, self.body.rows

        async def find() -> None:
            is_found = await drive(only_while(lambda: self.body.rows is rows, self.body.find_text(needle)))
            if is_found is False:
                self.say(SafeText(f"{display_text(needle, limit=40)} is not in the shown text"), literal("Find"))

        self._run(find, "find in the value")
        return True

    # copying, writing and paging

    def action_copy(self) -> None:
        item = self.body.item
        if item is not None and item.behind is not None:
            copy_text(self, str(item.behind.query))
        elif item is not None and item.kind in ELSEWHERE and item.data is not None:
            copy_text(self, copied_text(item.data))
        elif item is not None:
            preview, document = self.value.preview, self.value.decoded
            key_type = b"" if preview is None else preview.type
            copy = row_copy(item, key_type, ValueForm.TREE if document is None else document.found.form)
            if copy is not None:
                copy_text(self, copy.text, copy.note)
            else:
                is_unread = item.kind is ItemKind.ELEMENT and item.can_open
                why = "not read yet: press Enter to read it" if is_unread else "this row has no value"
                self.say(SafeText(why), literal("Nothing to copy"))

    def action_copy_command(self) -> None:
        """Copy the redis-cli command that reads the row under the cursor, or the row that it was opened from."""
        if self.value.preview is None:
            return
        command = next(read_commands(self._session.target, self.value, self.body.item), None)
        if command is None:
            self.say(literal("no command reads only this"), literal("Nothing to copy"))
        else:
            copy_text(self, command.text)

    def action_copy_menu(self) -> None:
        named = self.body.item
        if named is not None and named.data is not None and named.kind in ELSEWHERE:
            entries = copies(self._session.target, named.data, None)
            choose_copy(self, entries[: 2 if named.kind is ItemKind.KEY else None])
        elif self.value.preview is not None:
            choose_copy(self, value_copies(self._session.target, self.value, self.body.item, self._read_whole))

    def _read_whole(self, make: Callable[[bytes], bytes | Unknown]) -> None:
        facts = self.value.detail.facts
        if facts is not None:
            self._writer.copy(partial(self._session.keys.string_windows, facts), MAX_COPY_BYTES, make)

    def _outputs(self) -> list[ValueOutput]:
        preview, facts = self.value.preview, self.value.detail.facts
        if preview is None:
            return []
        document = self.value.innermost
        whole = None
        if facts is not None and facts.type == STRING.name and not self.value.opened:
            whole = partial(self._session.keys.string_windows, facts)
        return outputs(preview, self.body.item, document, whole)

    def action_write(self) -> None:
        if self.value.preview is not None:
            self._writer.choose_write(self._outputs(), self.value.preview.key)

    def action_pager(self) -> None:
        self._writer.choose_page(self._outputs())

    # what is opened, folded, decoded, sorted

    def show_rows(self, *, is_same: bool = True) -> None:
        """Show the rows of the value, or of the document opened last; `is_same` keeps the cursor where it is."""
        way = self.trail.before(self.value.detail.key)
        self.body.show(partial(body_rows, self.value, self._totals(), self._registry, way), is_same=is_same)
        self._on_change()

    @property
    def has_keyboard(self) -> bool:
        """Whether the rows have the keyboard: the next key is for them, though they may not know it yet."""
        return self.screen.focused is self.body

    def action_open(self) -> None:
        """Open the row under the cursor: an element decoded, a map or list of a decoded value unfolded."""
        item = self.body.item
        if item is None:
            return
        if item.kind in ELSEWHERE:
            self.post_message(self.Followed(item))
        elif item.offer is not None:
            self._fetcher.turn(item.offer.page)
        elif item.can_fold:
            self.action_fold_or_unfold()
        elif item.kind is ItemKind.NODE and item.data is not None:
            name = item.node.name.raw if item.node is not None and item.node.name is not None else b"value"
            self._decode(item.data, display(name, limit=40))
        elif item.kind is ItemKind.ELEMENT:
            self._open_element(item)
        elif item.kind is ItemKind.TEXT and item.data is not None and self.value.can_open(item):
            self._decode(item.data, literal("line"))

    def _open_element(self, item: RowItem) -> None:
        """Open an element; the value of a field that was too large for the page is read now."""
        title = _title(item)
        facts, value = self.value.detail.facts, item.cell(Meaning.VALUE)
        if item.data is not None:
            self._decode(item.data, title)
        elif isinstance(value, Unread) and facts is not None and facts.type == HASH.name and item.name is not None:
            self._ask_field(item.name, title, value.size_bytes or 0)

    def _ask_field(self, field: bytes, title: SafeText, size_bytes: int) -> None:
        """Read a field; one that is large only once the user has said so."""
        read = partial(self._run, partial(self._read_field, field, title, max(size_bytes, MAX_VALUE_BYTES)), "value")
        if not MAX_VALUE_BYTES < size_bytes <= MAX_PURPOSE_BYTES:
            read()
            return
        busy_ms = round(1000 * size_bytes / (1 << 20) / COPIED_MIB_PER_S)
        answers = [
            literal("Cancel"),
            SafeText(f"Read {size(size_bytes)}, which blocks the server for up to {busy_ms} ms"),
        ]

        def answered(index: int | None) -> None:
            if index == 1:
                read()

        self.app.push_screen(ChoiceScreen(title, answers), answered)

    async def _read_field(self, field: bytes, title: SafeText, most_bytes: int) -> None:
        facts = self.value.detail.facts
        if facts is None:
            return
        found = await self._session.keys.read_field(facts, field, most_bytes)
        if isinstance(found, Unknown):
            self.say(display_text(found.detail or found.reason.value), title)
        else:
            await self._open_bytes(found, title, self._session.clock())

    def _decode(self, data: bytes, title: SafeText) -> None:
        self._run(partial(self._open_bytes, data, title), "value")

    async def _open_bytes(self, data: bytes, title: SafeText, asked_at_s: float | None = None) -> None:
        """Decode bytes in a thread and show them over their source; `asked_at_s` is when they were read, if anew."""
        at_s = self.value.opened[-1].asked_at_s if asked_at_s is None and self.value.opened else asked_at_s
        before, item = self.value.detail, self.body.item
        place = self._place(item) if not self.value.opened else ""
        remembered = self._decoders.of(place), place
        document = await asyncio.to_thread(open_document, data, remembered=remembered)
        if before is self.value.detail:
            self.value.opened.append(OpenedDocument(title, document, self.body.cursor_line, item, at_s))
            self.show_rows(is_same=False)

    def _replace_document(self, document: DecodedDocument, *, is_same: bool = True) -> None:
        self.value.replace_document(document)
        self.show_rows(is_same=is_same)

    def action_fold_or_unfold(self) -> None:
        """Fold or unfold the node under the cursor; elsewhere go down by a screenful, as pagers do."""
        self._fold(None)

    def action_fold(self) -> None:
        """Fold the node under the cursor, or go to its parent; elsewhere go back, to the tree at last."""
        item, document = self.body.item, self.value.decoded
        path = () if item is None or item.kind is not ItemKind.NODE else item.path
        if item is not None and document is not None and item.can_fold and item.path not in document.folded:
            self._fold(True)
        elif path:
            lines = (at for at, row in enumerate(self.body.rows) if row.item and row.item.path == path[:-1])
            self.body.move_to(next(lines, self.body.cursor_line))
        elif not self.go_back():
            self.post_message(self.Left())

    def action_unfold(self) -> None:
        """Unfold the node under the cursor, or go to its first child; open a row that leads elsewhere."""
        item, document = self.body.item, self.value.decoded
        if item is not None and item.kind in ELSEWHERE:
            self.action_open()
        elif item is None or document is None or not item.can_fold:
            return
        elif item.path in document.folded:
            self._fold(False)
        else:
            self.body.action_cursor_down()

    def _fold(self, fold: bool | None) -> None:
        item, document = self.body.item, self.value.decoded
        if item is not None and document is not None and item.can_fold:
            is_folded = item.path not in document.folded if fold is None else fold
            folded = document.folded | {item.path} if is_folded else document.folded - {item.path}
            self._replace_document(replace(document, folded=folded))
        elif fold is None:
            self.body.action_page_down()

    def action_decode(self) -> None:
        """Choose another decoder for the same bytes; switch rows between stored and decoded."""
        document = self.value.innermost
        if document is None:
            if self.value.can_decode_rows:
                self.value.decode_rows()
                self.show_rows()
            return

        def chosen(number: int | None) -> None:
            if number is not None and document is self.value.innermost:
                self._run(partial(self._decode_otherwise, document, decoder_choices(document)[number]), "value")

        self.app.push_screen(DecoderScreen(document), chosen)

    async def _decode_otherwise(self, document: DecodedDocument, choice: str | None) -> None:
        preview = self.value.preview
        automatic = automatic_decoder(preview) if preview is not None and not self.value.opened else None
        found = await asyncio.to_thread(decode_otherwise, document, choice, automatic)
        if document is not self.value.innermost:
            return
        place = self._place(self.value.opened[0].source if len(self.value.opened) == 1 else None)
        place = "" if len(self.value.opened) > 1 else place
        if not found.found.has_failed and self._decoders.choose(place, choice):
            found = replace(found, chosen_for=place)
        found = replace(found, by_name=document.by_name, is_reversed=document.is_reversed)
        self._replace_document(found, is_same=False)

    def _place(self, item: RowItem | None) -> str:
        """Return the place that a decoder is remembered for: of the value, or of elements such as this one."""
        facts = self.value.detail.facts
        is_remembered = item is None or item.kind is ItemKind.ELEMENT
        return "" if facts is None or not is_remembered else self._decoders.place(facts.key, facts.type, item)

    def _sort_by(self, number: int, *, is_reversed: bool = False) -> None:
        self.value.sort_by(number, is_reversed=is_reversed)
        self.show_rows()

    def action_sort(self) -> None:
        value, (now, is_reversed) = self.value, self.value.sorted_by
        sorts, shown = value.sorts, (value.preview, value.decoded)

        def chosen(choice: int | None) -> None:
            if choice is not None and shown == (value.preview, value.decoded):
                self._sort_by(choice, is_reversed=choice == now and is_reversed)

        if sorts:
            self.app.push_screen(SortScreen(sorts, now), chosen)

    def action_sort_step(self, step: int) -> None:
        if sorts := self.value.sorts:
            self._sort_by((self.value.sorted_by[0] + step) % len(sorts))

    def action_sort_reverse(self) -> None:
        """Reverse the sort order; the stored order becomes that of the first column, reversed."""
        if self.value.sorts:
            now, is_reversed = self.value.sorted_by
            self._sort_by(now or 1, is_reversed=not is_reversed)

    def _title_clicked(self, column: int) -> None:
        now, is_reversed = self.value.sorted_by
        self._sort_by(column + 1, is_reversed=now == column + 1 and not is_reversed)

    def say(self, text: SafeText, title: SafeText) -> None:
        self.app.notify(text, title=title, severity="warning", markup=False)


def _title(item: RowItem) -> SafeText:
    """Return the name of an element: `field email`, `index 3`."""
    for column, cell in zip(item.columns, item.cells, strict=False):
        is_name = column.meaning is Meaning.NAME and any(one.meaning is Meaning.VALUE for one in item.columns)
        if is_name or column.meaning is Meaning.INDEX:
            return SafeText(f"{column.title} {cell_text(cell, column.meaning)}")
    return literal("member")
