"""How rows are sorted, the same way wherever there are rows: what by is chosen from a list, or stepped through.

`s` shows the list, `>` and `<` take its next entry and the one before, `S` turns the order round. What is chosen again
sorts again, the same way round: what has come or moved since gets into its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.choice import AnswerScreen
from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.styled_text import literal


def sort_commands(
    group: Group, owner: Owner, *, footer: int = 0, when: tuple[Condition, ...] = (), chooser: Owner | None = None
) -> tuple[ScreenCommand, ...]:
    """Return the commands that sort rows; `chooser` has the one that shows the list, where it isn't the owner."""
    return (
        ScreenCommand("sort", ("s",), "Sort",
            "Choose what rows are sorted by; the same again puts what has come or moved since into its place.",
            group, chooser or owner, when, footer),
        ScreenCommand("sort_next", ("greater_than_sign",), "Sort by next", "Sort by the next entry of that list.",
            group, owner, when, label=">", call="sort_step(1)"),
        ScreenCommand("sort_before", ("less_than_sign",), "Sort by previous", "Sort by the entry before in that list.",
            group, owner, when, label="<", call="sort_step(-1)"),
        ScreenCommand("sort_reverse", ("S",), "Sort reverse", "Sort the other way round.", group, owner, when),
    )  # fmt: skip


class SortScreen(AnswerScreen[int | None]):
    """Returns the number of what rows are to be sorted by, None when nothing was chosen."""

    def __init__(self, names: Sequence[SafeText], now: int) -> None:
        """`now` is the number of what they are sorted by."""
        answers = [(at, SafeText(f"{'•' if at == now else ' '} {name}")) for at, name in enumerate(names)]
        super().__init__(literal("Sort by"), "enter sorts · esc closes", answers, at=now)
