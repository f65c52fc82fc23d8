"""The tree with its actions and mouse: it moves its cursor itself, and posts messages for everything else."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.store.namespace import Namespace
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.browse.tree_view import TreeView
from rtui.tui.kit.command import Owner, bindings


class KeyTree(TreeView):
    """A tree with actions for the keyboard and the mouse."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BROWSE_COMMANDS, Owner.TREE)

    class Chosen(Message):
        """The user wants to go into the details of a row."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class OpenRequested(Message):
        """A namespace is to be opened, or with `below` everything under it."""

        def __init__(self, node: Namespace, *, below: bool = False) -> None:
            super().__init__()
            self.node = node
            self.below = below

    class SortRequested(Message):
        """The rows are to be sorted: the other way, or as they were meant to be with `again`."""

        def __init__(self, *, again: bool = False) -> None:
            super().__init__()
            self.again = again

    class Jumping(Message):
        """The beginning of a name that the user is typing, None when that has ended."""

        def __init__(self, typed: str | None) -> None:
            super().__init__()
            self.typed = typed

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._typed: str | None = None

    def action_cursor_up(self) -> None:
        """Move to the row above."""
        self.move_to(self.cursor_line - 1)

    def action_cursor_down(self) -> None:
        """Move to the row below."""
        self.move_to(self.cursor_line + 1)

    def action_page_up(self) -> None:
        """Move up by a screenful."""
        self.move_to(self.cursor_line - max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """Move down by a screenful."""
        self.move_to(self.cursor_line + max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Move to the first row."""
        self.move_to(0)

    def action_last(self) -> None:
        """Move to the last row."""
        self.move_to(self.virtual_size.height - 1)

    def action_parent(self) -> None:
        """Move to the namespace that holds this row."""
        if self.rows is not None and self.cursor is not None:
            parent = self.rows.parent_row(self.cursor)
            if parent is not None:
                self.move_to_row(parent)

    def action_first_sibling(self) -> None:
        """Move to the first row of this namespace."""
        if self.rows is not None and self.cursor is not None:
            self.move_to_row(self.rows.first_sibling(self.cursor))

    def action_last_sibling(self) -> None:
        """Move to the last row of this namespace."""
        if self.rows is not None and self.cursor is not None:
            self.move_to_row(self.rows.last_sibling(self.cursor))

    def action_enter(self) -> None:
        """Open or close a namespace, or go into the details of a key."""
        if self.cursor is not None:
            if self.cursor.kind is RowKind.KEY:
                self.post_message(self.Chosen(self.cursor))
            else:
                self.action_open_close()

    def action_open_close(self) -> None:
        """Open or close the namespace under the cursor."""
        node = self._node_at_cursor()
        if node is not None and self._is_open(node):
            self.close(node)
        elif node is not None:
            self.post_message(self.OpenRequested(node))

    def action_expand(self) -> None:
        """Open the namespace under the cursor; go to its first row when it is open."""
        node = self._node_at_cursor()
        if node is not None and self._is_open(node):
            self.action_cursor_down()
        elif node is not None:
            self.post_message(self.OpenRequested(node))

    def action_collapse(self) -> None:
        """Close the namespace under the cursor; go to its parent when it is closed."""
        node = self._node_at_cursor()
        if node is not None and self._is_open(node):
            self.close(node)
        else:
            self.action_parent()

    def close(self, node: Namespace) -> None:
        """Hide the children of a namespace."""
        if self.rows is not None:
            with self.keeping_position():
                self.rows.collapse(node)

    def action_expand_all(self) -> None:
        """Open everything below the namespace under the cursor."""
        node = self._node_at_cursor()
        if node is not None:
            self.post_message(self.OpenRequested(node, below=True))

    def action_sort(self) -> None:
        """Sort the other way."""
        self.post_message(self.SortRequested())

    def action_sort_again(self) -> None:
        """Sort the same way again."""
        self.post_message(self.SortRequested(again=True))

    def action_jump(self) -> None:
        """Take the next characters as the beginning of a name."""
        self._type("")

    async def on_key(self, event: events.Key) -> None:
        """While a name is being typed, take its characters; any other key ends that and does what it always does."""
        if self._typed is None:
            await self._act_at_once(event)
            return
        if event.key == "backspace":
            self._type(self._typed[:-1])
        elif event.is_printable and event.character is not None:
            self._type(self._typed + event.character)
        else:
            self.end_jump()
            if event.key not in {"escape", "enter"}:
                return
        event.stop()
        event.prevent_default()

    async def _act_at_once(self, event: events.Key) -> None:
        """Run the action of a key of the tree at once.

        Otherwise the key would bubble to the application first, one iteration of the event loop for each ancestor, and
        while a scan runs each iteration takes a while.
        """
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            await self.run_action(binding.action)
            event.stop()
            event.prevent_default()

    def end_jump(self) -> None:
        """Stop taking characters as the beginning of a name."""
        if self._typed is not None:
            self._typed = None
            self.post_message(self.Jumping(None))

    def on_blur(self) -> None:
        """Without the keyboard nothing is typed here."""
        self.end_jump()

    def on_click(self, event: events.Click) -> None:
        """Go to the row under the mouse; its sign or a second click opens it."""
        line = event.y + self.scroll_offset.y
        if not 0 <= line < self.virtual_size.height:
            return
        self.move_to(line)
        if event.chain == 2 or self.is_sign(line, event.x):
            self.action_enter()

    def _type(self, typed: str) -> None:
        """Take up what was typed so far."""
        self._typed = typed
        self.post_message(self.Jumping(typed))

    def _node_at_cursor(self) -> Namespace | None:
        """Return the namespace under the cursor, None when a key is."""
        row = self.cursor
        return row.namespace if row is not None and row.kind is RowKind.NAMESPACE else None

    def _is_open(self, node: Namespace) -> bool:
        """Say whether the children of a namespace are listed."""
        return self.rows is not None and self.rows.is_expanded(node)
