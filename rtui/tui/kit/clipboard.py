"""Copying: at once, or what is chosen from a list; what reaches no clipboard is shown, to be selected.

What is said follows `clipboard_ways`: a text is called copied only where a program has confirmed that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from textual.dom import DOMNode
from textual.worker import Worker

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.user.copying import copied_commands, key_as_text
from rtui.server.wire.target import Target
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.clipboard_ways import NOTHING_SAID, Delivery, deliver
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.selectable import Selectable, SelectScreen
from rtui.tui.kit.styled_text import cut_middle, literal
from rtui.tui.kit.terminal import write_to

SHOWN_CELLS: Final = 60
"""So much of what was copied is shown."""

NOTICE_S: Final = 3
FAILURE_NOTICE_S: Final = 8
"""How long is shown where a text went, in seconds, and how long if not every way was as it should be."""


class Copy(NamedTuple):
    """An entry of the menu and what it copies."""

    title: SafeText
    text: str
    """Printable, but not safe to show: it may resemble something else. Only for the clipboard."""
    note: SafeText = NOTHING_SAID
    """What is to be known of it when it has been copied, such as that it is a part."""
    start: Callable[[], object] | None = None
    """Begins to read what is copied, which is not there yet; `text` is empty then."""


def copies(target: Target, name: bytes, facts: KeyFacts | None) -> list[Copy]:
    """Return the entries for a key, or for the prefix of a namespace when there are no facts."""
    entries = [
        Copy(literal("name as text"), key_as_text(name)),
        Copy(literal("name as escaped bytes"), quoted(name)),
    ]
    if facts is None:
        return [*entries, Copy(literal("pattern of everything below"), key_as_text(prefix_pattern(name)))]
    for command in copied_commands(target, facts):
        warning = " (changes data)" if command.writes else ""
        entries.append(Copy(SafeText(f"redis-cli: {command.title}{warning}"), command.line))
    return entries


def level_copies(pattern: bytes, query: str) -> list[Copy]:
    """Return the entries for a level of the schema."""
    return [Copy(literal("pattern"), key_as_text(pattern)), Copy(literal("query for its keys"), query)]


def copy_text(node: DOMNode, text: str | bytes, note: SafeText = NOTHING_SAID) -> Worker[None]:
    """Copy a text or bytes as they are by the first way that takes them, and say which it was; `note` is said, too.

    Where there is none, a screen shows the text. The ways are tried in a worker of `node`, which is returned.
    """
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    node.app._clipboard = data.decode("utf-8", "surrogateescape")
    work = partial(_copy, node, data, note)
    return node.run_worker(work, group="copy", exclusive=True, exit_on_error=False, description="copy")


async def _copy(node: DOMNode, data: bytes, note: SafeText) -> None:
    """Hand bytes to a clipboard and say where they went."""
    delivery = await deliver(data, os.environ, partial(write_to, node.app._driver))
    if not delivery.is_taken:
        title = SafeText(f"not copied yet{f': {note}' if note else ''}")
        node.app.push_screen(SelectScreen([Selectable(title, data)], delivery.failures))
        return
    message = notice(data, delivery, note)
    timeout = FAILURE_NOTICE_S if delivery.failures else NOTICE_S
    node.app.notify(message, title=delivery.title, markup=False, timeout=timeout)


def notice(data: bytes, delivery: Delivery, note: SafeText = NOTHING_SAID) -> SafeText:
    """Return what was copied, cut, and what is to be known about it and the way that it took."""
    shown = cut_middle(display_text(data.decode("utf-8", "surrogateescape")), SHOWN_CELLS)
    return SafeText("\n".join(line for line in (shown, note, delivery.hint, *delivery.failures) if line))


def choose_copy(node: DOMNode, entries: Sequence[Copy]) -> None:
    """Have the user choose what to copy, or have all of it shown."""
    titles = [*(entry.title for entry in entries), literal("show all of these, to select with the mouse")]

    def chosen(index: int | None) -> None:
        if index is not None and index < len(entries):
            entry = entries[index]
            if entry.start is None:
                copy_text(node, entry.text, entry.note)
            else:
                entry.start()
        elif index is not None:
            there = [entry for entry in entries if entry.start is None]
            shown = [Selectable(entry.title, entry.text.encode("utf-8", "surrogateescape")) for entry in there]
            node.app.push_screen(SelectScreen(shown))

    node.app.push_screen(ChoiceScreen(literal("Copy"), titles), chosen)
