"""What the tree of names and the schema do alike: run keys at once, ask to be sorted, take a name to jump to."""

from __future__ import annotations

from textual import events
from textual.message import Message

from rtui.tui.kit.line_view import RowsView


class TreeRows(RowsView):
    """Rows that take their keys before these bubble, and the characters of a name while one is typed."""

    class SortRequested(Message):
        """The rows are to be sorted: so many steps further in the list of orders, or the other way round for none."""

        def __init__(self, step: int = 0) -> None:
            super().__init__()
            self.step = step

    class Jumping(Message):
        """The beginning of a name that the user is typing, None when that has ended."""

        def __init__(self, typed: str | None) -> None:
            super().__init__()
            self.typed = typed

    _typed: str | None = None

    def action_sort_step(self, step: int) -> None:
        """Sort by what is so many places further in the list of orders."""
        self.post_message(self.SortRequested(step))

    def action_sort_reverse(self) -> None:
        """Sort the other way round."""
        self.post_message(self.SortRequested())

    def action_jump(self) -> None:
        """Take the next characters as the beginning of a name."""
        self._type("")

    def _type(self, typed: str | None) -> None:
        """Take what was typed so far as the beginning of a name; None ends that."""
        self._typed = typed
        self.post_message(self.Jumping(typed))

    async def on_key(self, event: events.Key) -> None:
        """Run the action of a key; while a name is being typed, take its characters until another key ends that.

        The action is run at once. Otherwise the key would bubble to the application first, one iteration of the event
        loop for each ancestor, and while a scan runs each iteration takes a while.
        """
        if self._typed is None:
            for binding in self._bindings.key_to_bindings.get(event.key, ()):
                await self.run_action(binding.action)
                event.stop()
                event.prevent_default()
            return
        if event.key == "backspace":
            self._type(self._typed[:-1])
        elif event.is_printable and event.character is not None:
            self._type(self._typed + event.character)
        else:
            self._type(None)
            if event.key not in {"escape", "enter"}:
                return
        event.stop()
        event.prevent_default()

    def on_blur(self) -> None:
        """Without the keyboard nothing is typed here."""
        if self._typed is not None:
            self._type(None)
