"""The value of a key as one works with it: finding in it and going to places, copying and writing what it holds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from rtui.analysis.facts import Unknown
from rtui.keyspace.slices import only_while
from rtui.keyspace.text.display import EscapeSyntaxError, SafeText, unescape
from rtui.keyspace.text.glob import PatternError
from rtui.keyspace.types import STRING
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.preview.page import GLOB_CHARACTERS, Find, Page
from rtui.server.facts.preview.places import PLACES
from rtui.tui.browse.commands import VALUE_COMMANDS
from rtui.tui.browse.decoder_choice import ChosenDecoders
from rtui.tui.browse.detail_fetcher import Detail, DetailFetcher
from rtui.tui.browse.detail_lines import Tab
from rtui.tui.browse.opened_value import OpenedValue
from rtui.tui.browse.tree_lines import Totals
from rtui.tui.browse.value_copies import MAX_COPY_BYTES, copied_text, element_command, row_copy, value_copies
from rtui.tui.browse.value_rows import ELSEWHERE, ItemKind
from rtui.tui.browse.value_view import Purpose, ValuePrompt, ValueView
from rtui.tui.browse.value_writer import Output, Run, ValueWriter, outputs
from rtui.tui.kit.clipboard import choose_copy, copies, copy_text
from rtui.tui.kit.command import Condition, Owner, bindings
from rtui.tui.kit.command_screen import drive
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import literal
from rtui.values import Form


class ValuePane(OpenedValue):
    """Shows the body of a detail and carries out what is asked of a value."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(VALUE_COMMANDS, Owner.VALUE)
    DEFAULT_CSS = """
    ValuePane { height: 1fr; }
    """

    def __init__(
        self,
        session: BrowsingSession,
        run: Run,
        fetcher: DetailFetcher,
        totals: Callable[[], Totals],
        decoders: ChosenDecoders,
    ) -> None:
        super().__init__(session, run, totals, decoders)
        self.prompt = ValuePrompt()
        self._fetcher = fetcher
        self._needle = ""
        """What was found last among the rows that are shown."""
        ask = partial(self._open_prompt, Purpose.WRITE, "the path of a file")
        self._writer = ValueWriter(self, run, ask)

    def compose(self) -> ComposeResult:
        """Put the line to type in below the rows."""
        yield self.body
        yield self.prompt

    # what is shown

    def show(self, detail: Detail, tab: Tab) -> None:
        """Show a detail; what was opened stays open while the same page is shown."""
        is_same_key, is_same = self.value.update(detail, tab)
        if not is_same_key:
            self._needle = ""
            self.close_prompt()
        self.show_rows(is_same=is_same)

    @property
    def conditions(self) -> dict[Condition, bool]:
        """What holds of the value, for the commands that need it, while it has the keyboard."""
        is_reading, item, preview = self.has_keyboard, self.body.item, self.value.preview
        is_read = preview is not None and (preview.refusal is None or bool(preview.rows) or preview.window is not None)
        paged = {} if self.value.is_paged else {Condition.NEXT_PAGE: False}
        return paged | {
            Condition.IN_VALUE: is_reading and is_read,
            Condition.ON_ITEM: is_reading and item is not None,
            Condition.CAN_OPEN: is_reading and item is not None and self.value.can_open(item),
            Condition.DECODED: is_reading and (self.value.innermost is not None or self.value.can_decode_rows),
        }

    @on(ValueView.Moved)
    def _moved(self, event: ValueView.Moved) -> None:
        event.stop()
        self.post_message(self.Changed())

    # going back

    def go_back(self) -> bool:
        """Go back one step: close the line, end writing, leave what was opened last or found; False for nothing."""
        if self.close_prompt() or self._writer.stop():
            return True
        if self.value.opened:
            line = self.value.opened.pop().line
            self.show_rows(is_same=False)
            self.body.move_to(line)
            return True
        return self.has_keyboard and self._fetcher.go_back()

    def read_on_purpose(self, page: Page) -> None:
        """Read elements that may be large, in place of the page that is shown."""
        self._fetcher.turn(page)

    def close_prompt(self) -> bool:
        """Close the line that is typed in, and give the keyboard back; return whether it was open."""
        if not self.prompt.is_open:
            return False
        self.prompt.close()
        self.screen.set_focus(self.body)
        self.post_message(self.Changed())
        return True

    # finding and going

    def action_find(self) -> None:
        """Type what to find."""
        is_shown = self.value.is_all_shown
        hint = "text in what is shown" if is_shown else "a part of a name, or a glob such as user:*:cart"
        self._open_prompt(Purpose.FIND, hint)

    def action_go_to(self) -> None:
        """Type where to go."""
        preview = self.value.preview
        syntax = PLACES.get(preview.type) if preview is not None and isinstance(preview.type, bytes) else None
        if syntax is None:
            self.say(literal("a value of this type has no places to go to"), literal("Go to"))
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
            self.value.opened.clear()
            self._fetcher.go_to(text)
        elif self.value.is_all_shown:
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
            self.say(display_text(str(error)), literal("Find"))
            return
        self._fetcher.find(find)

    def find_next(self) -> bool:
        """Go to the next row with the text that was looked for last; return whether there was such a text."""
        if not self._needle or not self.value.is_all_shown:
            return False
        self._run(partial(self._find_in_rows, self._needle), "find in the value")
        return True

    async def _find_in_rows(self, needle: str) -> None:
        """Look for a text in slices; that ends where other rows are shown meanwhile."""
        rows = self.body.rows
        is_found = await drive(only_while(lambda: self.body.rows is rows, self.body.find_text(needle)))
        if is_found is False:
            self.say(SafeText(f"{display_text(needle, limit=40)} is not in what is shown"), literal("Find"))

    # copying, writing and paging

    def action_copy(self) -> None:
        """Copy what is under the cursor."""
        item = self.body.item
        if item is not None and item.behind is not None:
            copy_text(self, str(item.behind.query))
        elif item is not None and item.kind in ELSEWHERE and item.data is not None:
            copy_text(self, copied_text(item.data))
        elif item is not None:
            preview, document = self.value.preview, self.value.decoded
            key_type = b"" if preview is None else preview.type
            copy = row_copy(item, key_type, Form.TREE if document is None else document.found.form)
            if copy is not None:
                copy_text(self, copy.text, copy.note)
            else:
                is_unread = item.kind is ItemKind.ELEMENT and item.can_open
                why = "it was not read: Enter reads it" if is_unread else "this row holds no bytes of the value"
                self.say(SafeText(why), literal("Nothing to copy"))

    def action_copy_command(self) -> None:
        """Copy the redis-cli command that reads what is under the cursor, or what it was opened from."""
        if self.value.preview is None:
            return
        line = element_command(self._session.target, self.value, self.body.item)
        if line is None:
            self.say(literal("no command reads just this"), literal("Nothing to copy"))
        else:
            copy_text(self, line)

    def action_copy_menu(self) -> None:
        """Choose what to copy."""
        named = self.body.item
        if named is not None and named.data is not None and named.kind in ELSEWHERE:
            entries = copies(self._session.target, named.data, None)
            choose_copy(self, entries[: 2 if named.kind is ItemKind.KEY else None])
        elif self.value.preview is not None:
            choose_copy(self, value_copies(self._session.target, self.value, self.body.item, self._read_whole))

    def _read_whole(self, make: Callable[[bytes], bytes | Unknown]) -> None:
        """Read all of the string, and copy what is made of it."""
        facts = self.value.detail.facts
        if facts is not None:
            self._writer.copy(partial(self._session.keys.string_windows, facts), MAX_COPY_BYTES, make)

    def _outputs(self) -> list[Output]:
        """Return what can be written of what is shown."""
        preview, facts = self.value.preview, self.value.detail.facts
        if preview is None:
            return []
        document = self.value.innermost
        whole = None
        if facts is not None and facts.type == STRING.name and not self.value.opened:
            whole = partial(self._session.keys.string_windows, facts)
        return outputs(preview, self.body.item, document, whole)

    def action_write(self) -> None:
        """Choose what to write, then type where to."""
        if self.value.preview is not None:
            self._writer.choose_write(self._outputs(), self.value.preview.key)

    def action_pager(self) -> None:
        """Choose what to show in the pager, and whether as safe text."""
        self._writer.choose_page(self._outputs())
