"""The value of a key as one works with it: rows with a cursor, what was opened from them, and a line to type in.

What is opened lies on what it was opened from, as a stack: a field, in its JSON a member that holds base64, in that
again JSON. Escape goes back one step at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from rtui.analysis.facts import Unknown
from rtui.keyspace.text.display import EscapeSyntaxError, SafeText, unescape
from rtui.keyspace.text.glob import PatternError
from rtui.keyspace.types import HASH, STRING
from rtui.server.facts.preview.page import GLOB_CHARACTERS, Find, Meaning, Preview, Unread
from rtui.server.facts.preview.places import PLACES
from rtui.tui.browse.detail_fetcher import Detail, DetailFetcher
from rtui.tui.browse.detail_lines import Tab, ValueState, body_rows
from rtui.tui.browse.document import Document, next_choice, open_document
from rtui.tui.browse.preview_lines import cell_text
from rtui.tui.browse.session import Session
from rtui.tui.browse.tree_lines import Totals
from rtui.tui.browse.value_commands import VALUE_COMMANDS
from rtui.tui.browse.value_copies import copied_text, element_command, value_copies
from rtui.tui.browse.value_files import Output, outputs
from rtui.tui.browse.value_prompt import Purpose, ValuePrompt
from rtui.tui.browse.value_rows import Item, ItemKind, RowOrder
from rtui.tui.browse.value_view import ValueView
from rtui.tui.browse.value_writer import Run, ValueWriter
from rtui.tui.kit.clipboard import choose_copy, copy_text
from rtui.tui.kit.command import Condition, Owner, bindings
from rtui.tui.kit.layout import display, display_text
from rtui.tui.kit.styled_text import literal


@dataclass(frozen=True, slots=True)
class Opened:
    """What was opened from a row, and the line of that row."""

    title: SafeText
    document: Document
    line: int
    source: Item | None = None
    """The element that it was opened from."""


class ValuePane(Vertical):
    """Shows the body of a detail and carries out what is asked of a value."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(VALUE_COMMANDS, Owner.VALUE)
    DEFAULT_CSS = """
    ValuePane { height: 1fr; }
    """

    class Changed(Message):
        """What is shown of the value, or what can be done with it, has changed."""

    def __init__(self, session: Session, run: Run, fetcher: DetailFetcher, totals: Callable[[], Totals]) -> None:
        super().__init__(id="value")
        self.body = ValueView(id="detail-body")
        self.prompt = ValuePrompt()
        self.order: RowOrder | None = None
        """How the rows of the page are sorted."""
        self.opened: list[Opened] = []
        """What was opened, the innermost last."""
        self.document: Document | None = None
        """What the bytes of a string mean, as it is shown."""
        self._session, self._run, self._fetcher, self._totals = session, run, fetcher, totals
        self._detail, self._tab = Detail(), Tab.VALUE
        self._needle = ""
        """What was found last among the rows that are shown."""
        ask = partial(self._open_prompt, Purpose.WRITE, "the path of a file")
        self._writer = ValueWriter(self, run, ask)

    def compose(self) -> ComposeResult:
        """Put the line to type in below the rows."""
        yield self.body
        yield self.prompt

    # what is shown

    @property
    def preview(self) -> Preview | None:
        """The page that is shown; None on another tab, and before there is one."""
        return self._detail.preview if self._tab is Tab.VALUE and self._detail.key is not None else None

    @property
    def shown_document(self) -> Document | None:
        """What is shown decoded: what was opened last, or a string that is more than text or bytes."""
        if self.opened:
            return self.opened[-1].document
        document = self.document
        return None if document is None or (document.is_plain and not document.chosen) else document

    @property
    def state(self) -> ValueState:
        """How the value is shown."""
        return ValueState(self.order, self.shown_document, self.trail)

    @property
    def trail(self) -> tuple[SafeText, ...]:
        """What was opened, the outermost first, for the title."""
        return tuple(one.title for one in self.opened)

    def show(self, detail: Detail, tab: Tab) -> None:
        """Show a detail; what was opened stays open while the same page is shown."""
        before = self._detail
        is_same_key = (detail.key, detail.row, tab) == (before.key, before.row, self._tab)
        old, new = before.preview, detail.preview
        is_same_page = is_same_key and old is not None and new is not None and old.page == new.page
        if not is_same_key:
            self.order, self._needle = None, ""
            self.close_prompt()
        if not is_same_key or (old is not new and not (is_same_page and old.rows == new.rows)):  # type: ignore[union-attr]
            self.opened.clear()
        if detail.document is not before.document or not is_same_key:
            self.document = detail.document
        self._detail, self._tab = detail, tab
        has_just_come = old is None and new is not None
        self._show_rows(
            is_same=is_same_key and (is_same_page or new is old or detail.key is None) and not has_just_come
        )

    def _show_rows(self, *, is_same: bool = True) -> None:
        rows = partial(
            body_rows,
            self._detail,
            self._tab,
            self._totals(),
            order=self.order,
            document=self.shown_document,
            opened=self.trail,
        )
        self.body.show(lambda width: rows(width=width), is_same=is_same)
        self.post_message(self.Changed())

    @property
    def conditions(self) -> dict[Condition, bool]:
        """What holds of the value, for the commands that need it, while it has the keyboard."""
        is_reading = self.body.has_focus
        return {
            Condition.IN_VALUE: is_reading and self.preview is not None,
            Condition.ON_ITEM: is_reading and self.body.item is not None,
            Condition.DECODED: is_reading and (self.document is not None or bool(self.opened)),
        }

    @on(ValueView.Moved)
    def _moved(self, event: ValueView.Moved) -> None:
        event.stop()
        self.post_message(self.Changed())

    # opening and folding

    def action_open(self) -> None:
        """Open what is under the cursor: an element decoded, a map or list of a decoded value unfolded."""
        item = self.body.item
        if item is None:
            return
        if item.can_fold:
            self.action_fold_or_unfold()
        elif item.kind is ItemKind.NODE and item.data is not None:
            name = item.node.name.raw if item.node is not None and item.node.name is not None else b"value"
            self._decode(item.data, display(name, limit=40))
        elif item.kind is ItemKind.ELEMENT:
            self._open_element(item)

    @on(ValueView.Opened)
    def _clicked(self, event: ValueView.Opened) -> None:
        event.stop()
        self.action_open()

    def _open_element(self, item: Item) -> None:
        """Open an element; the value of a field that was too large for the page is read now."""
        title = _title(item)
        facts, value = self._detail.facts, item.cell(Meaning.VALUE)
        if item.data is not None:
            self._decode(item.data, title)
        elif isinstance(value, Unread) and facts is not None and facts.type == HASH.name and item.name is not None:
            self._run(partial(self._read_field, item.name, title), "value")

    async def _read_field(self, field: bytes, title: SafeText) -> None:
        facts = self._detail.facts
        if facts is None:
            return
        found = await self._session.read_field(facts, field)
        if isinstance(found, Unknown):
            self._say(display_text(found.detail or found.reason.value), title)
        else:
            await self._open_bytes(found, title)

    def _decode(self, data: bytes, title: SafeText) -> None:
        self._run(partial(self._open_bytes, data, title), "value")

    async def _open_bytes(self, data: bytes, title: SafeText) -> None:
        """Decode bytes in a thread and show them over what they were opened from."""
        before = self._detail
        document = await asyncio.to_thread(open_document, data)
        if before is self._detail:
            self.opened.append(Opened(title, document, self.body.cursor_line, self.body.item))
            self._show_rows(is_same=False)

    def _replace_document(self, document: Document, *, is_same: bool = True) -> None:
        if self.opened:
            self.opened[-1] = replace(self.opened[-1], document=document)
        else:
            self.document = document
        self._show_rows(is_same=is_same)

    def action_fold_or_unfold(self) -> None:
        """Fold or unfold the node under the cursor; elsewhere go down by a screenful, as pagers do."""
        self._fold(None)

    def action_fold(self) -> None:
        """Fold the node under the cursor, or go to the one that holds it."""
        item, document = self.body.item, self.shown_document
        if item is None or document is None or item.kind is not ItemKind.NODE:
            return
        if item.can_fold and item.path not in document.folded:
            self._fold(True)
        elif item.path:
            lines = (at for at, row in enumerate(self.body.rows) if row.item and row.item.path == item.path[:-1])
            self.body.move_to(next(lines, self.body.cursor_line))

    def action_unfold(self) -> None:
        """Unfold the node under the cursor, or go to the first one in it."""
        item, document = self.body.item, self.shown_document
        if item is None or document is None or not item.can_fold:
            return
        if item.path in document.folded:
            self._fold(False)
        else:
            self.body.action_cursor_down()

    def _fold(self, fold: bool | None) -> None:
        item, document = self.body.item, self.shown_document
        if item is not None and document is not None and item.can_fold:
            self._replace_document(document.toggled(item.path, fold=fold))
        elif fold is None:
            self.body.action_page_down()

    def action_decode(self) -> None:
        """Show the same bytes by the next choice of decoders."""
        document = self.opened[-1].document if self.opened else self.document
        if document is not None:
            self._run(partial(self._decode_otherwise, document), "value")

    async def _decode_otherwise(self, document: Document) -> None:
        following = await asyncio.to_thread(next_choice, document)
        if document is (self.opened[-1].document if self.opened else self.document):
            self._replace_document(following, is_same=False)

    def action_sort(self) -> None:
        """Sort the rows of the page by the next column; of a decoded value the members of maps by name."""
        document = self.shown_document
        preview = self.preview
        if document is not None:
            self._replace_document(replace(document, by_name=not document.by_name))
        elif preview is not None and preview.columns:
            number = 0 if self.order is None else self.order.column + 1
            self.order = RowOrder(number) if number < len(preview.columns) else None
            self._show_rows()

    def action_sort_reverse(self) -> None:
        """Sort the rows of the page the other way."""
        if self.shown_document is None and self.preview is not None and self.preview.columns:
            order = RowOrder(0) if self.order is None else self.order
            self.order = replace(order, is_reversed=not order.is_reversed)
            self._show_rows()

    # going back

    def go_back(self) -> bool:
        """Go back one step: close the line, what was opened last, or what was found; return whether there was one."""
        if self.close_prompt():
            return True
        if self.opened:
            line = self.opened.pop().line
            self._show_rows(is_same=False)
            self.body.move_to(line)
            return True
        return self.body.has_focus and self._fetcher.leave_found()

    def close_prompt(self) -> bool:
        """Close the line that is typed in, and give the keyboard back; return whether it was open."""
        if not self.prompt.is_open:
            return False
        self.prompt.close()
        self.body.focus()
        self.post_message(self.Changed())
        return True

    # finding and going

    def action_find(self) -> None:
        """Type what to find."""
        is_shown = self._is_all_shown
        hint = "text in what is shown" if is_shown else "a part of a name, or a glob such as user:*:cart"
        self._open_prompt(Purpose.FIND, hint)

    @property
    def _is_all_shown(self) -> bool:
        """Whether what is looked for is on the screen's side: in a decoded value, or a string that was read whole."""
        preview = self.preview
        if self.opened or preview is None or not preview.columns:
            is_part = preview is not None and preview.type == STRING.name and not self.opened
            return not (is_part and preview is not None and (preview.next_page or preview.page.find))
        return False

    def action_go_to(self) -> None:
        """Type where to go."""
        preview = self.preview
        syntax = PLACES.get(preview.type) if preview is not None and isinstance(preview.type, bytes) else None
        if syntax is None:
            self._say(literal("a value of this type has no places to go to"), literal("Go to"))
        else:
            self._open_prompt(Purpose.GO_TO, syntax.hint)

    def _open_prompt(self, purpose: Purpose, hint: str, value: str = "") -> None:
        self.prompt.open(purpose, hint, value)
        self.post_message(self.Changed())

    @on(ValuePrompt.Submitted)
    def _typed(self, event: ValuePrompt.Submitted) -> None:
        event.stop()
        text, purpose = event.value, self.prompt.purpose
        self.close_prompt()
        if not text:
            return
        if purpose is Purpose.WRITE:
            self._writer.write(text)
        elif purpose is Purpose.GO_TO:
            self.opened.clear()
            self._fetcher.go_to(text)
        elif self._is_all_shown:
            self._needle = text
            self.find_next()
        else:
            self._find(text)

    def _find(self, text: str) -> None:
        """Have what matches read from the server."""
        needle = text.encode("utf-8", "surrogateescape")
        if GLOB_CHARACTERS.isdisjoint(needle):
            with contextlib.suppress(EscapeSyntaxError):  # a backslash may be meant as one
                needle = unescape(needle)
        find = Find(needle)
        try:
            _ = find.pattern
        except PatternError as error:
            self._say(display_text(str(error)), literal("Find"))
            return
        self._fetcher.find(find)

    def find_next(self) -> bool:
        """Go to the next row with the text that was looked for last; return whether there was such a text."""
        if not self._needle or not self._is_all_shown:
            return False
        if not self.body.find_text(self._needle):
            self._say(SafeText(f"{display_text(self._needle, limit=40)} is not in what is shown"), literal("Find"))
        return True

    # copying, writing and paging

    def action_copy(self) -> None:
        """Copy what is under the cursor."""
        item = self.body.item
        if item is not None and item.data is not None:
            copy_text(self, copied_text(item.data))
        elif item is not None:
            self._say(literal("it was not read: Enter reads it"), literal("Nothing to copy"))

    def action_copy_command(self) -> None:
        """Copy the redis-cli command that reads what is under the cursor, or what it was opened from."""
        if self.preview is None:
            return
        item = self.opened[0].source if self.opened else self.body.item
        line = element_command(self._session.target, self.preview, item)
        if line is None:
            self._say(literal("no command reads just this"), literal("Nothing to copy"))
        else:
            copy_text(self, line)

    def action_copy_menu(self) -> None:
        """Choose what to copy."""
        if self.preview is not None:
            item, source = self.body.item, self.opened[0].source if self.opened else None
            choose_copy(self, value_copies(self._session.target, self.preview, item, self.shown_document, source))

    def _outputs(self) -> list[Output]:
        """Return what can be written of what is shown."""
        preview, facts = self.preview, self._detail.facts
        if preview is None:
            return []
        document = self.opened[-1].document if self.opened else self.document
        whole = None
        if facts is not None and facts.type == STRING.name and not self.opened:
            whole = partial(self._session.string_windows, facts)
        return outputs(preview, self.body.item, document, whole)

    def action_write(self) -> None:
        """Choose what to write, then type where to."""
        if self.preview is not None:
            self._writer.choose_write(self._outputs(), self.preview.key)

    def action_pager(self) -> None:
        """Choose what to show in the pager, and whether as safe text."""
        self._writer.choose_page(self._outputs())

    def _say(self, text: SafeText, title: SafeText) -> None:
        self.app.notify(text, title=title, severity="warning", markup=False)


def _title(item: Item) -> SafeText:
    """Return what an element is called: `field email`, `index 3`."""
    for column, cell in zip(item.columns, item.cells, strict=False):
        is_name = column.meaning is Meaning.NAME and any(one.meaning is Meaning.VALUE for one in item.columns)
        if is_name or column.meaning is Meaning.INDEX:
            return SafeText(f"{column.title} {cell_text(cell, column.meaning)[:60]}")
    return literal("member")
