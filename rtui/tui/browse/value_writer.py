"""Asks what of a value to write and where to, or what to show in the pager, and does it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from textual.app import SuspendNotSupported
from textual.dom import DOMNode
from textual.worker import Worker

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.humanize import size
from rtui.keyspace.text.display import SafeText
from rtui.server.files import reason_of
from rtui.tui.browse.value_copies import bytes_copy
from rtui.tui.browse.value_files import (
    FileExists,
    Output,
    Pieces,
    run_pager,
    suggested_name,
    write_file,
    write_for_pager,
)
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.clipboard import copy_text
from rtui.tui.kit.command_screen import Work
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import literal

SLOW_S: Final = 1.0
"""Reading a value that takes longer is said."""


class Run(Protocol):
    """Starts a worker with a description; a newer one with the same description ends it."""

    def __call__(self, work: Work, what: str) -> Worker[Any]:
        """Start it."""


class ValueWriter:
    """Writes and pages for a widget, whose application it asks and tells."""

    def __init__(self, node: DOMNode, run: Run, ask_path: Callable[[str], None]) -> None:
        """`ask_path` has the user type a path, from a suggested one on."""
        self._node, self._run, self._ask_path = node, run, ask_path
        self._output: Output | None = None
        self._reading: Worker[Any] | None = None
        """Reads what is written, or shown in the pager."""

    def stop(self) -> bool:
        """End what is being written or read for the pager; return whether there was anything."""
        reading, self._reading = self._reading, None
        if reading is None or reading.is_finished:
            return False
        reading.cancel()
        self._warn(literal("nothing was written"), literal("Stopped"))
        return True

    def _read(self, work: Work, what: str) -> None:
        """Start reading, and say so where that takes a while."""
        reading = self._reading = self._run(work, what)

        def say() -> None:
            if reading is self._reading and not reading.is_finished:
                message = literal("it is large: Escape ends that")
                self._node.app.notify(message, title="Reading the value", markup=False, timeout=5)

        self._node.set_timer(SLOW_S, say)

    def copy(self, pieces: Pieces, most_bytes: int, make: Callable[[bytes], bytes | Unknown]) -> None:
        """Read a value of up to `most_bytes`, and copy what `make` makes of it in a thread."""
        self._read(partial(self._copy, pieces, most_bytes, make), "copy a value")

    async def _copy(self, pieces: Pieces, most_bytes: int, make: Callable[[bytes], bytes | Unknown]) -> None:
        found = bytearray()
        why: Unknown | None = None
        async for piece in pieces():
            if isinstance(piece, Unknown):
                why = piece
                break
            found += piece
            if len(found) > most_bytes:
                why = Unknown(Reason.TOO_LARGE, f"it is longer than {size(most_bytes)}: w writes it to a file")
                break
        made = why if why is not None else await asyncio.to_thread(make, bytes(found))
        if isinstance(made, Unknown):
            self._warn(display_text(made.detail or made.reason.value), literal("Not copied"))
        else:
            copy = bytes_copy("all of it", made)
            copy_text(self._node, copy.text, SafeText(f"{size(len(made))}, {copy.title}"))

    def choose_write(self, found: Sequence[Output], key: bytes) -> None:
        """Have the user choose what to write, then type where to."""

        def chosen(index: int | None) -> None:
            if index is not None:
                self._output = found[index]
                self._ask_path(suggested_name(key, found[index].suffix))

        self._choose(literal("Write"), [one.title for one in found], chosen)

    def choose_page(self, found: Sequence[Output]) -> None:
        """Have the user choose what to show in the pager, and whether as safe text."""
        each = [(one, is_safe) for one in found for is_safe in (True, False)]
        titles = [SafeText(f"{one.title}{', made safe' if is_safe else ', raw bytes'}") for one, is_safe in each]

        def chosen(index: int | None) -> None:
            if index is not None:
                self._read(partial(self._page, *each[index]), "pager")

        self._choose(literal("Show in the pager"), titles, chosen)

    def write(self, text: str, *, may_replace: bool = False) -> None:
        """Write what was chosen to the path that was typed."""
        if self._output is not None:
            try:
                path = Path(text).expanduser()
            except RuntimeError:  # there is no such user
                path = Path(text)
            self._read(partial(self._write, path, self._output, may_replace=may_replace), "write")

    def _choose(self, title: SafeText, entries: list[SafeText], chosen: Callable[[int | None], None]) -> None:
        """Have one of several chosen; a single one is taken at once."""
        if len(entries) > 1:
            self._node.app.push_screen(ChoiceScreen(title, entries), chosen)
        elif entries:
            chosen(0)
        else:
            self._warn(literal("nothing of it was read"), title)

    async def _write(self, path: Path, output: Output, *, may_replace: bool) -> None:
        shown = display_text(str(path), limit=60)
        try:
            written = await write_file(path, output, may_replace=may_replace)
        except FileExists:

            def answered(index: int | None) -> None:
                if index == 1:
                    self.write(str(path), may_replace=True)

            title = SafeText(f"{shown} exists")
            self._node.app.push_screen(ChoiceScreen(title, [literal("Keep it"), literal("Replace it")]), answered)
        except (OSError, ValueError) as error:
            self._warn(SafeText(f"{shown}: {display_text(reason_of(error))}"), literal("Not written"))
        else:
            cut = f"; {display_text(written.why_cut)}" if written.why_cut else ""
            message = SafeText(f"{size(written.size_bytes)} to {shown}{cut}")
            self._node.app.notify(message, title="Written", markup=False)

    async def _page(self, output: Output, is_safe: bool) -> None:
        """Write it to a temporary file, give the terminal to the pager, and remove the file."""
        try:
            path = await write_for_pager(output, is_safe=is_safe)
        except OSError as error:
            self._warn(display_text(error.strerror or "it can't be written"), literal("No pager"))
            return
        try:
            with self._node.app.suspend():
                run_pager(path, os.environ)
        except SuspendNotSupported:
            self._warn(literal("this terminal can't be given to another program"), literal("No pager"))
        except OSError as error:
            self._warn(display_text(error.strerror or "it can't be started"), literal("No pager"))
        finally:
            path.unlink(missing_ok=True)

    def _warn(self, text: SafeText, title: SafeText) -> None:
        self._node.app.notify(text, title=title, severity="warning", markup=False)
