"""Where a report goes: a file that is whole or as it was before, or standard output."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import click

from rtui.analysis.formats.json import LARGEST_FILE_BYTES, ReportFormatError, read_json
from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import display_text
from rtui.server.files import atomic_file, create_part_file
from rtui.server.wire.errors import RtuiError

STANDARD_OUTPUT: Final = "-"
"""The name that means standard output."""

NEW_FILE_MODE: Final = 0o600
"""Names of keys may be personal data: what was not there before is for its owner only."""


class OutputError(RtuiError):
    """A report that could not be written; the remedy says what is there now."""

    def __init__(self, place: str, reason: str, remedy: str = "") -> None:
        super().__init__("The report can't be written", f"{place}: {reason}.", remedy)


class ReportFile:
    """A place to write one text to, in UTF-8."""

    def __init__(self, name: str) -> None:
        """`name` is a path, or STANDARD_OUTPUT."""
        self._path = None if name == STANDARD_OUTPUT else Path(name)

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on, in small letters; empty for standard output."""
        return "" if self._path is None else self._path.suffix.lower()

    @property
    def is_terminal(self) -> bool:
        """Whether somebody reads it as it is written."""
        return self._path is None and sys.stdout.isatty()

    def check(self) -> None:
        """Find out, before hours of work, whether a file could be written there. Raises OutputError."""
        if self._path is None:
            return
        try:
            place = self._place(self._path)
            if not _is_special(place):
                descriptor, part = create_part_file(place)
                os.close(descriptor)
                part.unlink()
        except OSError as error:
            raise self._failed(error, "") from None

    def write(self, text: str) -> None:
        """Write it. A file is replaced at once or not at all and keeps its permissions; a device or pipe is written to.

        Raises OutputError, and BrokenPipeError where the reader of standard output went away.
        """
        data = text.encode("utf-8", "backslashreplace")
        if self._path is None:
            self._print(data)
            return
        try:
            place = self._place(self._path)
            if _is_special(place):
                place.write_bytes(data)
            else:
                _replace(place, data)
        except OSError as error:
            kept = "The file that was there is as it was." if self._path.is_file() else "Nothing was left there."
            raise self._failed(error, kept) from None

    def _place(self, path: Path) -> Path:
        """Where the file itself lies, behind links. Raises OSError for what can be no file."""
        place = Path(os.path.realpath(path))
        if place.is_dir():
            raise IsADirectoryError(0, "It is a folder")
        return place

    def _print(self, data: bytes) -> None:
        stream = sys.stdout.buffer
        try:
            stream.write(data)
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is still buffered would fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise OutputError("standard output", error.strerror or str(error)) from None

    def _failed(self, error: OSError, remedy: str) -> OutputError:
        return OutputError(str(self._path), error.strerror or str(error), remedy)


def _is_special(place: Path) -> bool:
    """Whether it is a device, a pipe or a socket, which must not be replaced by a file."""
    return place.exists() and not place.is_file()


def _replace(place: Path, data: bytes) -> None:
    """Put a file there that has the permissions of the old one."""
    with atomic_file(place) as file:
        file.write(data)
        _take_after(file.fileno(), place)
    _settle(place.parent)


def _take_after(descriptor: int, place: Path) -> None:
    """Give the new file owner and permissions of the old one."""
    try:
        old = place.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, NEW_FILE_MODE)
        return
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _settle(folder: Path) -> None:
    """Have the new name survive a power cut, where the file system can say so."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


STANDARD_INPUT: Final = "-"
"""The name that means standard input."""


class UnreadableReport(click.ClickException):
    """A file that is missing, can't be read or is no report; exit code 2."""

    exit_code = 2

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{display_text(name)}: {display_text(reason)}.")

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it as all failures are."""
        click.echo(f"rtui: The report can't be read\n  {self.message}", err=True)


def read_report(name: str) -> Report:
    """Read the report in a file, or on STANDARD_INPUT. Raises UnreadableReport."""
    try:
        if name == STANDARD_INPUT:
            data = sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(LARGEST_FILE_BYTES + 1)
        return read_json(data)
    except OSError as error:
        raise UnreadableReport(name, error.strerror or type(error).__name__) from None
    except ReportFormatError as error:
        raise UnreadableReport(name, str(error)) from None
