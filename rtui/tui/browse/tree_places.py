"""Where the user is in the tree and beside it, and how one goes elsewhere and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from rtui.keyspace.rows.rows import RowKind
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.browse.tree_search import TreeFilter, TreeSearch
from rtui.tui.browse.value_pane import ValuePane
from rtui.tui.browse.value_rows import ItemKind
from rtui.tui.kit.command_screen import CommandScreen, KeysWanted
from rtui.tui.kit.history import TreePlace

if TYPE_CHECKING:
    from rtui.tui.browse.schema import LevelDetail


class TreePlaces(CommandScreen[None]):
    """The part of the screen that goes from one place to another."""

    tree_pane: TreePane
    detail_pane: DetailPane
    filter_input: TreeFilter
    search: TreeSearch

    def offer_commands(self) -> None:
        """Show what can be done at the moment with what has the keyboard."""
        raise NotImplementedError

    def action_leave_filter(self) -> None:
        """Close the line of the filter and go into what was found so far."""
        self.filter_input.close()
        self.set_focus(self.tree_pane.view)
        self.offer_commands()

    def action_schema(self) -> None:
        """Show the schema in the place of the names, or the names again."""
        raise NotImplementedError

    @property
    def focus_home(self) -> Widget:
        """The tree, or the details where they may be all that is shown."""
        return self.detail_pane.body if self.has_class("-reading") else self.tree_pane.view

    def enter_detail(self) -> None:
        """Give the keyboard to the details, which may then be all that is shown."""
        self.add_class("-reading")
        self.set_focus(self.detail_pane.body)

    @property
    def level(self) -> LevelDetail | None:
        """The level of the schema under the cursor; None without one, and where the names are shown."""
        from rtui.analysis.query.query import query_of  # noqa: PLC0415 - with all that adds up
        from rtui.tui.browse.schema import LevelDetail  # noqa: PLC0415

        view, pane = self.tree_pane.schema.view, self.tree_pane
        schema = None if view.model is None or not pane.is_schema else view.model.schema
        if schema is None or view.cursor is None:
            return None
        return LevelDetail(schema, view.cursor, query_of(*self.search.needle_terms()))

    @on(ValuePane.Left)
    def leave_detail(self) -> None:
        """Give the keyboard back to the tree."""
        self.remove_class("-reading")
        self.set_focus(self.tree_pane.view)

    @property
    def cursor_place(self) -> tuple[bool, bytes] | None:
        """Whether the row under the cursor is a key, and its name or the prefix of its keys; None without rows."""
        return self.tree_pane.key_tree.cursor_place

    def move_to_place(self, place: tuple[bool, bytes]) -> None:
        """Move to the row of that place, if it is listed."""
        self.tree_pane.key_tree.move_to_place(place)

    def return_from_analysis(self, key: bytes | None) -> None:
        """Go to the key that was chosen in the analysis, opening what it lies in; None: stay."""
        if key is not None:
            self.go_to_key(key, "app.analyse")

    def go_to_key(self, key: bytes, returns_to: str | TreePlace = "") -> None:
        """Go to a key, opening what it lies in; Escape runs the action `returns_to` then, or goes to that place."""
        self.search.go_to(key)
        self.search.returns_to = returns_to

    @property
    def place(self) -> TreePlace:
        """The row under the cursor, and whether its details have the keyboard."""
        row, needle = self.tree_pane.key_tree.cursor, self.search.needle
        is_reading = self.detail_pane.value.has_keyboard or self.has_class("-reading")
        if self.tree_pane.is_schema:
            level = self.tree_pane.schema.view.cursor
            return TreePlace(is_reading=is_reading, needle=needle, level=() if level is None else level.path)
        if row is None:
            return TreePlace(is_reading=is_reading, needle=needle)
        return TreePlace(row.key(), row.kind is RowKind.NAMESPACE, is_reading, needle)

    def show_place(self, place: TreePlace) -> None:
        """Go to a row, opening what it lies in; nothing is asked of the server to find it."""
        self.filter_input.close()
        self.search.returns_to = ""
        pane = self.tree_pane
        if place.level is None:
            pane.hide_schema()
        if place.name is not None:
            self.search.show_names_at(place.needle or b"", place.name, is_namespace=place.is_namespace)
        elif place.needle != self.search.needle:
            self.search.show_names(place.needle or b"")
        if place.level is not None:
            pane.show_schema(place.level)
        if place.is_reading:
            self.enter_detail()
        else:
            self.remove_class("-reading")
            self.set_focus(pane.view)
        self.offer_commands()

    def action_focus_next_pane(self) -> None:
        """Focus the other pane."""
        if self.detail_pane.value.has_keyboard:
            self.leave_detail()
        else:
            self.detail_pane.value.close_prompt()
            self.enter_detail()

    async def action_back(self) -> None:
        """Go back one step."""
        if self.filter_input.is_open:
            self.action_leave_filter()
            self.search.show_names(b"")
        elif self.tree_pane.ranking.stop():
            self.notify("Keys stay in the order of their names.", title="Not sorted", markup=False, timeout=4)
        elif self.detail_pane.value.go_back():
            self.offer_commands()
        elif self.detail_pane.is_among_references and (
            origin := self.detail_pane.trail.back(self.detail_pane.detail.key)
        ):
            self.show_place(origin)
        elif self.detail_pane.value.has_keyboard or self.has_class("-reading"):
            self.leave_detail()
        elif self.tree_pane.is_schema:
            self.action_schema()
        elif self.search.returns_to:
            before, self.search.returns_to = self.search.returns_to, ""
            if isinstance(before, TreePlace):
                self.show_place(before)
            else:
                await self.run_action(before)
        elif self.search.needle is not None:
            self.search.show_names(b"")
        elif self.search.can_clear:
            self.search.clear()
        elif self.tree_pane.key_tree.marked:
            self.tree_pane.key_tree.unmark_all()

    @on(ValuePane.Followed)
    def _follow_row(self, event: ValuePane.Followed) -> None:
        """Go to what a row beside the tree leads to; Escape comes back to it."""
        item = event.item
        if item.kind is ItemKind.BY_SIZE:
            self.action_keys(sort="size")
        elif item.behind is not None:
            self.post_message(KeysWanted(item.behind.query, item.behind.note))
        elif item.data is not None:
            here = self.place
            self.leave_place()
            if self.detail_pane.is_among_references:
                self.detail_pane.trail.follow(here, item.data)
                self.search.go_to(item.data)
                return
            self.leave_detail()
            if item.kind is ItemKind.KEY:
                self.go_to_key(item.data, here)
            else:
                self.tree_pane.reveal_namespace(item.data)
                self.search.returns_to = here
            self.offer_commands()

    def action_keys(self, sort: str | None = None) -> None:
        """List the keys of the namespace or level under the cursor, of those that the tree shows.

        With a column to sort by, it is those that come first by that.
        """
        if self.tree_pane.is_schema:
            if (level := self.level) is not None:
                self.post_message(KeysWanted(level.behind.query, level.behind.note, sort=sort))
            return
        row = self.tree_pane.key_tree.cursor
        if row is None or row.kind is not RowKind.NAMESPACE:
            return
        self.post_message(KeysWanted(self.search.query_of(row), sort=sort))
