"""Writes a report to a file, which is replaced as a whole or left as it was, or to standard output; and reads one."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from rtui.analysis.formats.json import LARGEST_FILE_BYTES, ReportFormatError, read_json
from rtui.analysis.report.document import Report
from rtui.server.files import atomic_file, create_part_file
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import parse_target

STANDARD_STREAM: Final = "-"
"""The name that means standard input, or standard output."""

NEW_FILE_MODE: Final = 0o600
"""A new file is readable by its owner only: names of keys may be personal data."""


class OutputError(RtuiError):
    """A report that could not be written; the remedy says what is there now."""

    def __init__(self, name: str, error: OSError, remedy: str = "") -> None:
        super().__init__("The report can't be written", f"{name}: {error.strerror or error}.", remedy)


class ReportOutput:
    """A file or standard output, to write one text to in UTF-8."""

    def __init__(self, name: str) -> None:
        """`name` is a path, or STANDARD_STREAM."""
        self._path = None if name == STANDARD_STREAM else Path(name)

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
            path, is_special = _resolved(self._path)
            if not is_special:
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
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                # What is still buffered would fail again at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise OutputError("standard output", error) from None
            return
        try:
            path, is_special = _resolved(self._path)
            if is_special:
                path.write_bytes(data)
            else:
                _replace(path, data)
        except OSError as error:
            kept = "The file that was there is as it was." if self._path.is_file() else "Nothing was left there."
            raise OutputError(str(self._path), error, kept) from None


def _resolved(path: Path) -> tuple[Path, bool]:
    """Return the path with links resolved, and whether it is a device, pipe or socket, which no file may replace.

    Raises OSError for a folder.
    """
    resolved = Path(os.path.realpath(path))
    if resolved.is_dir():
        raise IsADirectoryError(0, "It is a folder")
    return resolved, resolved.exists() and not resolved.is_file()


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


class UnreadableReportError(RtuiError):
    """A file that is missing, can't be read or is no report."""

    exit_code = 2

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("The report can't be read", f"{name}: {reason}.")


def kept_path(name: str, now_s: float) -> str:
    """Return the file that `TARGET@yesterday` and the like stand for; a file of that very name goes first.

    Raises UnreadableReportError, and TargetError.
    """
    from rtui.server.kept_reports import KeptReports, NotKeptError, split_reference  # noqa: PLC0415 - few names are one

    reference = None if Path(name).exists() else split_reference(name)
    if reference is None:
        return name
    target = parse_target(reference[0])
    try:
        return str(KeptReports(target.label, target.db).find(reference[1], now_s))
    except NotKeptError as error:
        raise UnreadableReportError(name, str(error).removesuffix(".")) from None


def read_report(name: str) -> Report:
    """Read the report in a file, of a name such as `TARGET@latest`, or on STANDARD_STREAM.

    Raises UnreadableReportError, and TargetError.
    """
    try:
        if name == STANDARD_STREAM:
            data = sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1)
        else:
            path = Path(kept_path(name, time.time()) if "@" in name else name)
            with path.open("rb") as file:
                data = file.read(LARGEST_FILE_BYTES + 1)
        return read_json(data)
    except OSError as error:
        raise UnreadableReportError(name, error.strerror or type(error).__name__) from None
    except ReportFormatError as error:
        raise UnreadableReportError(name, str(error)) from None
