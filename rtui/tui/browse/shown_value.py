"""The shown value: its page, the documents opened from it, how it is decoded and sorted.

Each document lies on the one it was opened from, as a stack: a field, in its JSON a member that holds base64, in that
again JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from rtui.keyspace.text.display import SafeText
from rtui.keyspace.types import STRING
from rtui.server.facts.preview.page import Preview, StringWindow
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.document import NO_MEANINGS, DecodedDocument, Meanings, likeness_of, with_places
from rtui.tui.browse.value_view import ItemKind, RowItem, RowOrder
from rtui.tui.kit.command_screen import TreePlace
from rtui.tui.kit.styled_text import literal
from rtui.values.server_encodings import Likeness

if TYPE_CHECKING:  # it is imported with all that adds up
    from rtui.analysis.report.document import Step


TOGETHER_S: Final = 5.0
"""Facts and a page that were asked within this time, in seconds, have one age."""


class Tab(IntEnum):
    """The tabs of a key; a namespace has one of its own."""

    VALUE = 0
    SLOT = 1
    REFERENCES = 2
    """Only with a registry."""


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """A document opened from a row, and the line of that row."""

    title: SafeText
    document: DecodedDocument
    line: int
    source: RowItem | None = None
    """The element that it was opened from."""
    asked_at_s: float | None = None
    """When the bytes were read, in seconds since the epoch; None if they were read with the page."""


class ShownValue:
    """The detail that is shown, with the user's choices for its value."""

    def __init__(self) -> None:
        self.detail, self.tab = Detail(), Tab.VALUE
        self.order: RowOrder | None = None
        self.opened: list[OpenedDocument] = []
        self.document: DecodedDocument | None = None
        self._decodes_rows: bool | None = None
        """Whether rows are shown decoded; None if the user has not chosen."""
        self._likeness = Likeness.NO
        """Whether the scores of the page look like places."""
        self._table: Preview | None = None
        """The page with the columns added to its rows."""

    @property
    def preview(self) -> Preview | None:
        """The page that is shown; None on another tab, and before there is one."""
        return self._table if self.tab is Tab.VALUE and self.detail.key is not None else None

    @property
    def meanings(self) -> Meanings:
        """The decoded texts of rows whose stored bytes are not shown."""
        return NO_MEANINGS if self._decodes_rows is False else self.detail.meanings

    @property
    def can_decode_rows(self) -> bool:
        return not self.opened and (bool(self.detail.meanings) or self._likeness is not Likeness.NO)

    @property
    def are_rows_decoded(self) -> bool:
        wanted = self._decodes_rows
        return self.can_decode_rows and (self._likeness is not Likeness.POSSIBLE if wanted is None else wanted)

    def decode_rows(self) -> None:
        self._decodes_rows = not self.are_rows_decoded
        self.order = None
        self._set_table()

    def _set_table(self) -> None:
        preview = self.detail.preview
        self._likeness = Likeness.NO if preview is None else likeness_of(preview)
        self._table = preview
        if preview is not None and self._likeness is not Likeness.NO:
            self._table = with_places(preview, self._likeness, is_shown=self.are_rows_decoded)

    @property
    def decoded(self) -> DecodedDocument | None:
        """The document that is shown: the one opened last, or a string that is more than text or bytes."""
        if self.opened:
            return self.opened[-1].document
        document = self.document
        return (
            None
            if document is None or (document.is_plain and document.choice is None and not document.refused)
            else document
        )

    @property
    def stored(self) -> StringWindow | None:
        """The stored bytes of a string that are shown, or whose decoded form is; None for other types."""
        preview, document = self.preview, self.document
        if preview is None or preview.window is None or preview.type != STRING.name:
            return None
        is_decoded = (
            document is not None
            and not document.is_as_stored
            and (not document.is_plain or document.choice is not None)
        )
        return StringWindow(0, document.data) if document is not None and is_decoded else preview.window

    @property
    def is_all_stored(self) -> bool:
        preview, document, stored = self.preview, self.document, self.stored
        if preview is None or stored is None or stored.offset_bytes:
            return False
        if document is not None and document.data == stored.data:
            return document.is_whole
        return preview.next_page is None

    @property
    def is_paged(self) -> bool:
        """Whether the value is shown in pages; a decoded value is decoded from its beginning."""
        document = self.decoded
        return document is None or bool(self.opened) or document.is_as_stored

    @property
    def read_apart_at_s(self) -> float | None:
        """When the value was read, in seconds since the epoch, if that was after its facts; else None."""
        detail = self.detail
        opened_at_s = self.opened[-1].asked_at_s if self.opened else None
        at_s = detail.value_at_s if opened_at_s is None else opened_at_s
        if self.preview is None or detail.facts is None or at_s is None:
            return None
        return at_s if at_s - detail.facts.asked_at_s > TOGETHER_S else None

    @property
    def innermost(self) -> DecodedDocument | None:
        """The document opened last, else the decoded string."""
        return self.opened[-1].document if self.opened else self.document

    def update(self, detail: Detail, tab: Tab) -> tuple[bool, bool]:
        """Show a detail; documents stay open while the same page is shown.

        Returns whether it is of the same key, and whether its rows are more or newer ones of the same page.
        """
        before = self.detail
        is_same_key = (detail.key, detail.row, _path(detail), tab) == (before.key, before.row, _path(before), self.tab)
        old, new = before.preview, detail.preview
        is_same_page = is_same_key and old is not None and new is not None and old.page == new.page
        if not is_same_key:
            self.order = self._decodes_rows = None
        if not is_same_key or (old is not new and not (is_same_page and old.rows == new.rows)):  # type: ignore[union-attr]
            self.opened.clear()
        if detail.document is not before.document or not is_same_key:
            self.document = detail.document
        self.detail, self.tab = detail, tab
        self._set_table()
        has_just_come = old is None and new is not None
        is_same = is_same_key and (is_same_page or new is old or detail.key is None) and not has_just_come
        return is_same_key, is_same

    def replace_document(self, document: DecodedDocument) -> None:
        if self.opened:
            self.opened[-1] = replace(self.opened[-1], document=document)
        else:
            self.document = document

    def can_open(self, item: RowItem) -> bool:
        """Whether there is more to be seen of a row: of a text, of one line of several."""
        if item.kind is not ItemKind.TEXT:
            return item.can_open
        document = self.decoded or self.document
        window = None if self.preview is None else self.preview.window
        whole = document.found.data if document is not None else b"" if window is None else window.data
        return item.can_open and item.data != whole

    @property
    def sorts(self) -> list[SafeText]:
        """The sort orders, the stored order first; empty for text and bytes."""
        if self.decoded is not None:
            return [literal("as it is stored"), literal("names of members")]
        columns = () if self.preview is None else self.preview.columns
        return [literal("as the server lists them"), *(SafeText(column.title) for column in columns)] if columns else []

    @property
    def sorted_by(self) -> tuple[int, bool]:
        """The number of the sort order in `sorts`, and whether it is reversed."""
        document, order = self.decoded, self.order
        if document is not None:
            return int(document.by_name), document.is_reversed
        return (0, False) if order is None else (order.column + 1, order.is_reversed)

    def sort_by(self, number: int, *, is_reversed: bool = False) -> None:
        """Sort the members of a decoded value's maps, else the rows of the page, by a number of `sorts`."""
        document = self.decoded
        if document is not None:
            self.replace_document(replace(document, by_name=number > 0, is_reversed=is_reversed))
        else:
            self.order = RowOrder(number - 1, is_reversed) if number else None

    @property
    def is_all_shown(self) -> bool:
        """Whether a search needs no server: in a decoded value, or in a string that was read whole."""
        preview = self.preview
        if self.opened or preview is None or not preview.columns:
            is_part = preview is not None and preview.type == STRING.name and not self.opened
            return not (is_part and preview is not None and (preview.next_page or preview.page.find))
        return False


LONGEST: Final = 100
"""Most steps that are kept."""


class Trail:
    """The keys from which references were followed, one to the next, so that Escape goes back the same way.

    It begins anew when the user goes elsewhere.
    """

    def __init__(self) -> None:
        self._steps: list[tuple[TreePlace, bytes]] = []
        """Where each step began, and the key that it led to."""

    def follow(self, origin: TreePlace, key: bytes) -> None:
        if origin.name is None or not self._leads_to(origin.name):
            self._steps.clear()
        self._steps.append((origin, key))
        del self._steps[:-LONGEST]

    def back(self, key: bytes | None) -> TreePlace | None:
        """Undo the step to this key and return its starting place; None if no step led here."""
        return self._steps.pop()[0] if self._leads_to(key) else None

    def before(self, key: bytes | None) -> list[bytes]:
        """Return the keys on the way to this one, the first one first; none where no step led here."""
        if not self._leads_to(key):
            return []
        return [origin.name for origin, _ in self._steps if origin.name is not None]

    def _leads_to(self, key: bytes | None) -> bool:
        return bool(self._steps) and self._steps[-1][1] == key


def _path(detail: Detail) -> tuple[Step, ...] | None:
    return None if detail.level is None else detail.level.level.path
