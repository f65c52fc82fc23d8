"""Where commands write to: files, which are replaced as a whole or left as they were, and the standard streams."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from select import select
from shutil import get_terminal_size
from signal import SIGINT, Signals
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

import click

from rtui.server.user.ending_signals import EndedBySignal, exit_status
from rtui.server.wire.errors import ExitCode, InternalError, RtuiError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

FORMATS_BY_SUFFIX: Final = {
    ".txt": "text", ".json": "json", ".jsonl": "jsonl", ".md": "md", ".markdown": "md", ".csv": "csv", ".html": "html",
    ".htm": "html", ".toml": "toml", ".prom": "prom", ".om": "openmetrics", ".sarif": "sarif", ".xml": "junit",
    ".parquet": "parquet",
}  # fmt: skip
"""The formats that the names of files say; each command knows some of them."""

METRICS: Final = ("openmetrics", "prom")
STANDARD_STREAM: Final = "-"
NEW_FILE_MODE: Final = 0o600
"""A new file is readable by its owner only: names of keys may be personal data."""


class OutputError(RtuiError):
    """Output that could not be written; the remedy says what the file holds now."""

    exit_code = ExitCode.OUTPUT

    def __init__(self, name: str, error: OSError, remedy: str = "") -> None:
        super().__init__("The output can't be written", f"{name}: {error.strerror or error}.", remedy)


class ReaderGone(Exception):  # noqa: N818 - it is no error: who reads has seen enough
    """Nobody reads standard output any more, as after `| head`; it ends the command quietly."""


class _StandardOutput(FileIO):
    """Standard output without a buffer, which writes all of its data.

    Python's own stream loses a part of a large write that a signal interrupts (CPython 3.11).
    """

    def __init__(self, failure: OSError | None) -> None:
        """`failure` is why nothing can be written to it, None where that is to be seen."""
        super().__init__(1, "wb", closefd=False)
        self._failure = failure
        self._is_given_up = False

    def write(self, data: ReadableBuffer) -> int:
        """Write; raises ReaderGone and OutputError, after which rests of buffers are dropped."""
        whole = rest = memoryview(data).cast("B")
        try:
            if self._failure is not None:
                raise self._failure
            while rest and not self._is_given_up:
                written = super().write(rest)
                if written is None:  # it does not block, and has no room
                    select([], [self], [])
                rest = rest[written or 0 :]
        except BrokenPipeError:
            self._is_given_up = True
            raise ReaderGone from None
        except OSError as error:
            self._is_given_up, self._failure = True, None
            raise OutputError("standard output", error) from None
        return len(whole)


class _StandardError(FileIO):
    """Standard error; what can't be written to it is lost, since nobody can be told."""

    def write(self, data: ReadableBuffer) -> int:
        with suppress(OSError):
            super().write(data)
        return len(memoryview(data).cast("B"))


def open_standard_streams() -> None:
    """Have failures of standard output and error end in an exit code, and give those that are closed a stream.

    No socket or file must get the number of one that is closed: what is meant for it would be written there.
    """
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number, which is this one
    if 0 in closed:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as long as the process lives
    failure = OSError(errno.EBADF, "It is closed") if 1 in closed else None
    sys.stdout = _text(_StandardOutput(failure), sys.stdout)
    sys.stderr = _text(_StandardError(2, "wb", closefd=False), sys.stderr)


def _text(raw: FileIO, before: TextIO | None) -> TextIOWrapper:
    """Return a stream for text as Python's own one writes it, but for what can't be encoded."""
    encoding = None if before is None else before.encoding
    return TextIOWrapper(BufferedWriter(raw), encoding or "utf-8", "backslashreplace", line_buffering=raw.isatty())


def writes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


class Output:
    """A file or standard output, to write one text to in UTF-8, and the format that this has."""

    def __init__(
        self, name: str, given: str | None = None, formats: Sequence[str] = (), otherwise: str = "text"
    ) -> None:
        """`name` is a path, or STANDARD_STREAM, which gets text.

        The format is the `given` one, else of those in `formats` the one that the suffix of the name says, else
        `otherwise`. Raises a usage error for the suffix of a format that is not among them.
        """
        self.path = None if name == STANDARD_STREAM else Path(name)
        self.is_written = False
        by_name = "text" if self.path is None else FORMATS_BY_SUFFIX.get(self.path.suffix.lower(), otherwise)
        if given is None and formats and by_name not in formats:
            raise click.UsageError(f"{by_name} is not a format of this command: name one of {', '.join(formats)}.")
        self.form = given or by_name
        self.is_chosen = given is not None

    @property
    def is_standard(self) -> bool:
        return self.path is None

    @property
    def is_terminal(self) -> bool:
        return self.path is None and sys.stdout.isatty()

    @property
    def text_options(self) -> dict[str, Any]:
        """The width of text and whether it is in ASCII, as its writers take them: on a terminal as that draws them."""
        if not self.is_terminal:
            return {}
        return {"width": get_terminal_size().columns, "ascii_only": not writes_unicode()}

    def check(self) -> None:
        """Check that the file can be written, before hours of work. Raises OutputError and usage errors."""
        if self.form in METRICS and find_spec("prometheus_client") is None:
            raise click.UsageError("Metrics need prometheus_client: pip install 'redis-rtui[metrics]'.")
        if self.path is None:
            return
        from rtui.server.files import create_part_file  # noqa: PLC0415 - the help must not wait for it

        try:
            path, is_special = _resolved(self.path)
            if not is_special:
                descriptor, part = create_part_file(path)
                os.close(descriptor)
                part.unlink()
        except OSError as error:
            raise OutputError(str(self.path), error) from None

    def write(self, text: str | bytes) -> None:
        """A file is replaced as a whole or not at all and keeps its permissions. Raises OutputError, and ReaderGone."""
        with self.opened() as write:
            write(text)

    @contextmanager
    def opened(self) -> Iterator[Callable[[str | bytes], None]]:
        """Give the function that writes a part of the text: to standard output at once, to a file after the block.

        After an exception the file is as it was. Raises OutputError, and ReaderGone.
        """
        if self.path is None:
            yield self._write_standard
            return
        with self.replaced() as file:

            def write(text: str | bytes) -> None:
                self.is_written = True
                file.write(_encoded(text))

            yield write

    @contextmanager
    def replaced(self) -> Iterator[BinaryIO]:
        """Give the new file, which takes the place of the old one after the block; not for standard output.

        After an exception the file is as it was. Raises OutputError.
        """
        assert self.path is not None  # noqa: S101 - not for standard output
        try:
            path, is_special = _resolved(self.path)
            with path.open("wb") if is_special else _replacing(path) as file:
                yield file
        except OSError as error:
            kept = "The file that was there is as it was." if self.path.is_file() else "Nothing was left there."
            raise OutputError(str(self.path), error, kept) from None

    def _write_standard(self, text: str | bytes) -> None:
        self.is_written = True
        sys.stdout.flush()
        sys.stdout.buffer.write(_encoded(text))
        sys.stdout.buffer.flush()


def nothing_written(ended_by: Signals | None) -> EndedBySignal:
    """Say that a signal came before any key was inspected; return the exception that ends the command."""
    click.echo("rtui: interrupted before anything was inspected: nothing is written", err=True)
    return EndedBySignal(ended_by or SIGINT)


@contextmanager
def failures_in(output: Output, command: str, *, keeps_files: bool = False) -> Iterator[None]:
    """Write an error that ends a command to its output, too, where that is for machines and nothing is written yet.

    With `keeps_files` only to standard output.
    """
    form = "" if keeps_files and not output.is_standard else output.form
    try:
        yield
    except (OutputError, ReaderGone):
        raise
    except RtuiError as error:
        write_failure(output, form, command, error)
        raise
    except click.ClickException as error:
        wrong = RtuiError("Usage error", error.format_message())
        wrong.exit_code = ExitCode.USAGE
        write_failure(output, form, command, wrong)
        raise
    except KeyboardInterrupt as ended:
        code = ended.exit_status if isinstance(ended, EndedBySignal) else exit_status(SIGINT)
        write_failure(output, form, command, interrupted(), code)
        raise
    except Exception as error:
        write_failure(output, form, command, InternalError(error))
        raise


def interrupted() -> RtuiError:
    return RtuiError("Interrupted", "A signal has ended it before there was a result.")


def write_failure(output: Output, form: str, command: str, error: RtuiError, code: int | None = None) -> None:
    if output.is_written:
        return
    from rtui.analysis.formats.findings import failure_text  # noqa: PLC0415 - few commands fail

    happened = " ".join(part for part in (error.happened, error.remedy) if part)
    if text := failure_text(form, command, error.title, happened, error.exit_code if code is None else code):
        output.write(text)


def _resolved(path: Path) -> tuple[Path, bool]:
    """Return the path with links resolved, and whether it is a device, pipe or socket; raises OSError for a folder."""
    resolved = Path(os.path.realpath(path))
    if resolved.is_dir():
        raise IsADirectoryError(0, "It is a folder")
    return resolved, resolved.exists() and not resolved.is_file()


def _encoded(text: str | bytes) -> bytes:
    return text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file with the owner and permissions of the old one, and make sure that its name survives a power cut."""
    from rtui.server.files import atomic_file  # noqa: PLC0415 - the help must not wait for it

    with atomic_file(path) as file:
        yield file
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
