"""Lets the user choose an output of a value, to write to a file or to show in the pager, and does it.

Values come in pieces, so that a string of many megabytes never is in memory at once. A file is complete, or not there:
it is written beside its place, readable by its owner only, and put there at the end; an existing file is replaced only
on demand.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from textual.app import SuspendNotSupported
from textual.dom import DOMNode
from textual.worker import Worker

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.humanize import size
from rtui.keyspace.text.display import SafeText, is_usual
from rtui.server.facts.preview.page import Preview, PreviewCell, Unread
from rtui.server.files import create_part_file, reason_of
from rtui.server.user.ending_signals import keys_for_others
from rtui.tui.browse.document import DecodedDocument
from rtui.tui.browse.value_copies import bytes_copy
from rtui.tui.browse.value_view import RowItem
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.clipboard import copy_text
from rtui.tui.kit.command_screen import Work
from rtui.tui.kit.layout import TERMINAL, display_text, value_pieces
from rtui.tui.kit.styled_text import literal

Pieces = Callable[[], AsyncIterator[bytes | Unknown]]
"""Starts an iterator of pieces of bytes; an Unknown at the end says why the output is incomplete."""

NAME_CHARACTERS: Final = 60
LONGEST_LINE_BYTES: Final = 1 << 20
"""Bytes after which a text without line breaks is broken."""

FIRST_OF_SEVERAL: Final = 0xC0
"""The bytes with which characters of several bytes begin, in UTF-8, are no less."""

DEFAULT_PAGER: Final = "less"
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ValueOutput:
    """Something that can be written or paged."""

    title: SafeText
    suffix: str
    """Of the suggested file name."""
    pieces: Pieces


def _at_once(data: bytes) -> Pieces:
    async def pieces() -> AsyncIterator[bytes | Unknown]:
        yield data

    return pieces


def outputs(
    preview: Preview, item: RowItem | None, document: DecodedDocument | None, whole: Pieces | None
) -> list[ValueOutput]:
    """Return the outputs: the row under the cursor, the shown part, and the `whole` string if it is one."""
    found: list[ValueOutput] = []
    stored = suffix_of(document) if document is not None and document.found.data == document.data else ".bin"
    if whole is not None:
        found.append(ValueOutput(literal("the whole value as it is stored"), stored, whole))
    elif document is not None:
        found.append(ValueOutput(literal("this value as it is stored"), stored, _at_once(document.data)))
    if document is not None and document.found.data != document.data:
        is_whole = document.is_whole and document.found.is_data_whole
        rest = "" if is_whole else f", the first {size(len(document.found.data))}"
        title = SafeText(f"decoded: {document.title}{rest}")
        found.append(ValueOutput(title, suffix_of(document), _at_once(document.found.data)))
    if document is None and item is not None and item.data is not None:
        found.append(ValueOutput(literal("the value under the cursor"), ".bin", _at_once(item.data)))
    if document is None and preview.rows:
        title = SafeText(f"the {len(preview.rows):,} rows that are loaded, as JSON lines")
        cells = (zip(preview.columns, row, strict=False) for row in preview.rows)
        rows = ({column.title: _json_cell(cell) for column, cell in row} for row in cells)
        lines = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
        found.append(ValueOutput(title, ".jsonl", _at_once(lines)))
    return found


def suffix_of(document: DecodedDocument) -> str:
    last = document.found.chain[-1].casefold()
    return {"json": ".json", "text": ".txt"}.get(last, ".bin")


def _json_cell(cell: PreviewCell) -> object:
    if isinstance(cell, bytes):
        try:
            return cell.decode("utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(cell).decode()}
    if isinstance(cell, Unread):
        return {"not read": True, "bytes": cell.size_bytes}
    return None if isinstance(cell, Unknown) else cell


def suggested_name(key: bytes, suffix: str) -> str:
    """Return a harmless file name for a key: letters, digits, dots and dashes."""
    text = _UNUSUAL.sub("_", key.decode("ascii", "replace")).strip("._-")[:NAME_CHARACTERS]
    return f"{text or 'value'}{suffix}"


class FileExists(Exception):  # noqa: N818 - a question to the user, not an error
    """A file of this name exists, and may be replaced only if the user confirms."""


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing: the number of bytes, and the reason if the output is incomplete."""

    size_bytes: int
    why_cut: str = ""


async def write_file(path: Path, output: ValueOutput, *, may_replace: bool = False) -> Written:
    """Write it to a file that only its owner can read; raises OSError, ValueError and FileExists."""
    if not may_replace and await asyncio.to_thread(path.exists):
        raise FileExists
    descriptor, part = await asyncio.to_thread(create_part_file, path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            size_bytes, why_cut = 0, ""
            async for piece in output.pieces():
                if isinstance(piece, Unknown):
                    why_cut = piece.detail or piece.reason.value
                    break
                await asyncio.to_thread(file.write, piece)
                size_bytes += len(piece)
        await asyncio.to_thread(_put, part, path, may_replace=may_replace)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return Written(size_bytes, why_cut)


def _put(part: Path, path: Path, *, may_replace: bool) -> None:
    """Move a finished file to its place; raises FileExists if another file has taken it by now."""
    if may_replace:
        part.replace(path)
        return
    try:
        os.link(part, path)
    except FileExistsError:
        raise FileExists from None


class SafeLines:
    """Makes a text safe that comes in pieces, as lines that the interface would show."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, piece: bytes) -> bytes:
        """Return the lines that are complete by now; one that is very long is broken."""
        lines, separator, self._rest = (self._rest + piece).rpartition(b"\n")
        if not separator and len(self._rest) > LONGEST_LINE_BYTES:
            split = next((at for at in (-1, -2, -3) if self._rest[at] >= FIRST_OF_SEVERAL), len(self._rest))
            lines, separator, self._rest = self._rest[:split], b"\n", self._rest[split:]
        return self._safe(lines) if separator else b""

    def end(self) -> bytes:
        return self._safe(self._rest) if self._rest else b""

    @staticmethod
    def _safe(lines: bytes) -> bytes:
        text = lines.decode("utf-8", "surrogateescape")
        if TERMINAL.ascii_only or " \n" in text or not is_usual(text.replace("\n", "")):
            shown = (value_pieces(line, limit=len(line) * 10 + 10) for line in lines.split(b"\n"))
            text = "\n".join("".join(piece.text for piece in line) for line in shown)
        return text.encode() + b"\n"


async def write_for_pager(output: ValueOutput, *, is_safe: bool) -> Path:
    """Write it to a temporary file that only its owner can read; who calls removes it. Raises OSError."""
    descriptor, name = await asyncio.to_thread(tempfile.mkstemp, prefix="rtui-", suffix=".txt")
    try:
        with os.fdopen(descriptor, "wb") as file:
            safe = SafeLines()
            async for piece in output.pieces():
                if isinstance(piece, Unknown):
                    end = safe.end() + f"\n[{piece.detail or piece.reason.value}]\n".encode()
                    break
                shown = await asyncio.to_thread(safe.add, piece) if is_safe else piece
                await asyncio.to_thread(file.write, shown)
            else:
                end = safe.end()
            await asyncio.to_thread(file.write, end)
    except BaseException:
        Path(name).unlink()  # noqa: ASYNC240 - one entry of a folder, and also when this is cancelled
        raise
    return Path(name)


def pager_command(environ: Mapping[str, str]) -> list[str]:
    try:
        words = shlex.split(environ.get("PAGER", ""))
    except ValueError:
        words = []
    return words or [DEFAULT_PAGER]


def run_pager(path: Path, environ: Mapping[str, str]) -> int:
    """Show a file in the pager until the user leaves it; return its exit code. Raises OSError without a pager."""
    safe = dict(environ) | {"LESSSECURE": "1"}
    with keys_for_others():
        return subprocess.run([*pager_command(environ), str(path)], env=safe, check=False).returncode


SLOW_S: Final = 1.0
"""Seconds after which a notice says that a value is being read."""


Run = Callable[[Work, str], Worker[Any]]
"""Starts a worker with a description; a newer one with the same description ends it."""


class ValueWriter:
    """Writes and pages for a widget, through whose application it asks and notifies."""

    def __init__(self, node: DOMNode, run: Run, ask_path: Callable[[str], None]) -> None:
        """`ask_path` has the user type a path, from a suggested one on."""
        self._node, self._run, self._ask_path = node, run, ask_path
        self._output: ValueOutput | None = None
        self._reading: Worker[Any] | None = None

    def stop(self) -> bool:
        """Cancel writing, or reading for the pager; return whether anything was under way."""
        reading, self._reading = self._reading, None
        if reading is None or reading.is_finished:
            return False
        reading.cancel()
        self._warn(literal("nothing was written"), literal("Stopped"))
        return True

    def _read(self, work: Work, what: str) -> None:
        """Start reading, with a notice if it takes a while."""
        reading = self._reading = self._run(work, what)

        def say() -> None:
            if reading is self._reading and not reading.is_finished:
                message = literal("it is large; press Escape to cancel")
                self._node.app.notify(message, title="Reading the value", markup=False, timeout=5)

        self._node.set_timer(SLOW_S, say)

    def copy(self, pieces: Pieces, most_bytes: int, make: Callable[[bytes], bytes | Unknown]) -> None:
        """Read a value of up to `most_bytes`, and copy the result of `make`, which runs in a thread."""
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
                why = Unknown(Reason.TOO_LARGE, f"it is longer than {size(most_bytes)}: w exports it to a file")
                break
        made = why if why is not None else await asyncio.to_thread(make, bytes(found))
        if isinstance(made, Unknown):
            self._warn(display_text(made.detail or made.reason.value), literal("Not copied"))
        else:
            copy = bytes_copy("all of it", made)
            copy_text(self._node, copy.text, SafeText(f"{size(len(made))}, {copy.title}"))

    def choose_write(self, found: Sequence[ValueOutput], key: bytes) -> None:
        def chosen(index: int | None) -> None:
            if index is not None:
                self._output = found[index]
                self._ask_path(suggested_name(key, found[index].suffix))

        self._choose(literal("Write"), [one.title for one in found], chosen)

    def choose_page(self, found: Sequence[ValueOutput]) -> None:
        each = [(one, is_safe) for one in found for is_safe in (True, False)]
        titles = [SafeText(f"{one.title}{', made safe' if is_safe else ', raw bytes'}") for one, is_safe in each]

        def chosen(index: int | None) -> None:
            if index is not None:
                self._read(partial(self._page, *each[index]), "pager")

        self._choose(literal("Show in the pager"), titles, chosen)

    def write(self, text: str, *, may_replace: bool = False) -> None:
        if self._output is not None:
            try:
                path = Path(text).expanduser()
            except RuntimeError:  # there is no such user
                path = Path(text)
            self._read(partial(self._write, path, self._output, may_replace=may_replace), "write")

    def _choose(self, title: SafeText, entries: list[SafeText], chosen: Callable[[int | None], None]) -> None:
        """Ask for one of several entries; a single one is chosen at once."""
        if len(entries) > 1:
            self._node.app.push_screen(ChoiceScreen(title, entries), chosen)
        elif entries:
            chosen(0)
        else:
            self._warn(literal("nothing of it was read"), title)

    async def _write(self, path: Path, output: ValueOutput, *, may_replace: bool) -> None:
        shown = display_text(str(path), limit=60)
        try:
            written = await write_file(path, output, may_replace=may_replace)
        except FileExists:

            def answered(index: int | None) -> None:
                if index == 1:
                    self.write(str(path), may_replace=True)

            title = SafeText(f"{shown} exists")
            answers = [literal("Keep the file"), literal("Replace the file")]
            self._node.app.push_screen(ChoiceScreen(title, answers), answered)
        except (OSError, ValueError) as error:
            self._warn(SafeText(f"{shown}: {display_text(reason_of(error))}"), literal("Not written"))
            self._ask_path(str(path))
        else:
            cut = f"; {display_text(written.why_cut)}" if written.why_cut else ""
            message = SafeText(f"{size(written.size_bytes)} to {shown}{cut}")
            self._node.app.notify(message, title="Written", markup=False)

    async def _page(self, output: ValueOutput, is_safe: bool) -> None:
        try:
            path = await write_for_pager(output, is_safe=is_safe)
        except OSError as error:
            self._warn(display_text(error.strerror or "it can't be written"), literal("No pager"))
            return
        try:
            with self._node.app.suspend():
                run_pager(path, os.environ)
        except SuspendNotSupported:
            self._warn(literal("this terminal can't run another program"), literal("No pager"))
        except OSError as error:
            self._warn(display_text(error.strerror or "it can't be started"), literal("No pager"))
        finally:
            path.unlink(missing_ok=True)

    def _warn(self, text: SafeText, title: SafeText) -> None:
        self._node.app.notify(text, title=title, severity="warning", markup=False)
