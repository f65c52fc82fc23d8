"""Files that commands read: reports, also those that rtui has kept or standard input has, and samples of servers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import click

from rtui.analysis.formats.json import LARGEST_FILE_BYTES, ReportFormatError, read_json
from rtui.analysis.formats.samples import SamplesFile, SamplesFormatError, is_samples, read_samples
from rtui.analysis.report.document import Report
from rtui.cli.output import STANDARD_STREAM
from rtui.server.analysis.kept_reports import KeptReports, NotKeptError, read_kept, split_reference
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import parse_target

LATEST: Final = "latest"
NO_REPORT: Final = "none"
"""What --report of samples may be beside the name of a report."""

MOST_REPORT_AGE_S: Final = 86_400.0
"""A kept report that was made so long before the samples, or after them, is taken only where it is asked for."""


class UnreadableReportError(RtuiError):
    """A file that is missing, can't be read or is no report."""

    exit_code = ExitCode.USAGE

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("The report can't be read", f"{name}: {reason}.")


def kept_path(name: str, now_s: float) -> str:
    """Return the file that `TARGET@yesterday` and the like stand for; a file of that very name goes first.

    Raises UnreadableReportError, and TargetError.
    """
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


def samples_file(path: Path) -> SamplesFile | None:
    """Read a file of samples; None for what is no file, or one of another kind. Raises click.UsageError."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            if not is_samples(file.read(64)):
                return None
            file.seek(0)
            found = read_samples(file)
    except (OSError, SamplesFormatError) as error:
        raise click.UsageError(f"{path}: {error}.") from None
    if found.unread:
        click.echo(f"rtui: {path}: line {found.unread:,} can't be read; what comes before is there", err=True)
    if found.left_out:
        click.echo(f"rtui: {path}: {found.left_out:,} samples between others are left out", err=True)
    return found


def earlier_samples(path: Path) -> SamplesFile:
    """Read the file that now is compared with. Raises click.UsageError where it holds no sample."""
    found = samples_file(path)
    if found is None or not found.nodes:
        raise click.UsageError(f"--since {path}: it has no samples; rtui health -o FILE writes some.")
    return found


def keys_report(name: str | None, label: str, db: int, at_s: float | None = None) -> Report | None:
    """Return the report of the keys that --report names: a file, a kept report, `latest`, or `none`.

    Without a name it is the latest one that is kept of this server and database, if it was made within a day of the
    samples (`at_s`, now if None). Raises UnreadableReportError, TargetError, and click.UsageError where none is kept.
    """
    if name == NO_REPORT:
        return None
    if name not in (None, LATEST):
        return read_report(name)
    wanted_s = time.time() if at_s is None else at_s
    for file in KeptReports(label, db).files():
        if name == LATEST or abs(file.made_at_s - wanted_s) <= MOST_REPORT_AGE_S:
            try:
                return read_kept(file)
            except (OSError, ReportFormatError):
                continue
    if name == LATEST:
        raise click.UsageError(f"No report of {label} db{db} is kept; rtui report makes one.")
    return None


def report_of_samples(name: str | None, opened: SamplesFile) -> Report | None:
    """Return the report of the keys of the server that samples in a file are of; raises as `keys_report`."""
    latest_ms = max((samples[-1].at_ms for samples in opened.nodes.values()), default=opened.header.began_ms)
    return keys_report(name, opened.header.server, 0, latest_ms / 1000)
