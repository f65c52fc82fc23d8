"""Reads reports: files, those that rtui has kept, and standard input."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rtui.analysis.formats.json import LARGEST_FILE_BYTES, ReportFormatError, read_json
from rtui.analysis.report.document import Report
from rtui.cli.output import STANDARD_STREAM
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import parse_target


class UnreadableReportError(RtuiError):
    """A file that is missing, can't be read or is no report."""

    exit_code = ExitCode.USAGE

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("The report can't be read", f"{name}: {reason}.")


def kept_path(name: str, now_s: float) -> str:
    """Return the file that `TARGET@yesterday` and the like stand for; a file of that very name goes first.

    Raises UnreadableReportError, and TargetError.
    """
    from rtui.server.analysis.kept_reports import KeptReports, NotKeptError, split_reference  # noqa: PLC0415 - few names are one

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
