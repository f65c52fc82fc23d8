"""Writes a report to a file, which is replaced as a whole or left as it was, or to standard output; and reads one."""

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
"""A new file is readable by its owner only: names of keys may be personal data."""


class OutputError(RtuiError):
    """A report that could not be written; the remedy says what is there now."""

    def __init__(self, name: str, error: OSError, remedy: str = "") -> None:
        super().__init__("The report can't be written", f"{name}: {error.strerror or error}.", remedy)


class ReportOutput:
    """A file or standard output, to write one text to in UTF-8."""

    def __init__(self, name: str) -> None:
        """`name` is a path, or STANDARD_OUTPUT."""
        self._path = None if name == STANDARD_OUTPUT else Path(name)

    @property
    def suffix(self) -> str:
        """The suffix of the name in lower case; empty for standard output."""
        return "" if self._path is None else self._path.suffix.lower()

    @property
    def is_terminal(self) -> bool:
        """Whether this is standard output on a terminal."""
        return self._path is None and sys.stdout.isatty()

    def check(self) -> None:
        """Check that the file can be written, before hours of work. Raises OutputError."""
        if self._path is None:
            return
        try:
            path = _resolved(self._path)
            if not _is_special(path):
                descriptor, part = create_part_file(path)
                os.close(descriptor)
                part.unlink()
        except OSError as error:
            raise OutputError(str(self._path), error) from None

    def write(self, text: str) -> None:
        """Write it. A file is replaced as a whole or not at all and keeps its permissions; devices and pipes are not.

        Raises OutputError, and BrokenPipeError where the reader of standard output went away.
        """
        data = text.encode("utf-8", "backslashreplace")
        if self._path is None:
            _print(data)
            return
        try:
            path = _resolved(self._path)
            if _is_special(path):
                path.write_bytes(data)
            else:
                _replace(path, data)
        except OSError as error:
            kept = "The file that was there is as it was." if self._path.is_file() else "Nothing was left there."
            raise OutputError(str(self._path), error, kept) from None


def _resolved(path: Path) -> Path:
    """Return the path with links resolved. Raises OSError for a folder."""
    resolved = Path(os.path.realpath(path))
    if resolved.is_dir():
        raise IsADirectoryError(0, "It is a folder")
    return resolved


def _is_special(path: Path) -> bool:
    """Whether this is a device, a pipe or a socket, which must not be replaced by a file."""
    return path.exists() and not path.is_file()


def _print(data: bytes) -> None:
    stream = sys.stdout.buffer
    try:
        stream.write(data)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is still buffered would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError("standard output", error) from None


def _replace(path: Path, data: bytes) -> None:
    """Write a file with the owner and permissions of the old one, and make sure that its name survives a power cut."""
    with atomic_file(path) as file:
        file.write(data)
        try:
            old = path.stat()
        except FileNotFoundError:
            os.fchmod(file.fileno(), NEW_FILE_MODE)
        else:
            with suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
    with suppress(OSError):  # not every file system can do this
        descriptor = os.open(path.parent, os.O_RDONLY)
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
        """Print it like other failures."""
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
