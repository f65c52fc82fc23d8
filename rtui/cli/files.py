"""Files that commands read: reports, of standard input and kept ones, too, with their list; samples of servers."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from rtui.analysis import humanize
from rtui.analysis.formats.json import LARGEST_FILE_BYTES, ReportFormatError, json_value, read_json
from rtui.analysis.formats.samples import SamplesFile, SamplesFormatError, is_samples, read_samples
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.tables.table import COVERAGE_MARKS
from rtui.cli.output import STANDARD_STREAM
from rtui.embedded.dump_head import is_dump
from rtui.keyspace.text.display import display, display_text
from rtui.registry.rules import Severity
from rtui.server.analysis.kept_reports import KeptReport, KeptReports, NotKeptError, read_kept, split_reference
from rtui.server.files import is_keys_file
from rtui.server.user.ending_signals import EndedBySignal
from rtui.server.wire.errors import ExitCode, RtuiError
from rtui.server.wire.target import DumpFile, Target, parse_target

LATEST: Final = "latest"
NO_REPORT: Final = "none"
"""The values of --report of samples beside the name of a report."""

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


def read_report(name: str, program: Path | None = None) -> Report:
    """Read the report in a file, of a name such as `TARGET@latest`, or on STANDARD_STREAM; make that of a dump
    or a file of keys.

    `program` is the server that loads a dump. Raises UnreadableReportError, TargetError, and what opening a dump does.
    """
    if name != STANDARD_STREAM:
        path = Path(name)
        if is_dump(path):
            return _report_of_dump(path, program)
        if is_keys_file(path):
            return report_of_keys([path])
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


def report_of_keys(paths: Sequence[Path], **asked: Any) -> Report:
    """Return the report of all keys in some files of keys and dumps; raises as opening them does."""
    from rtui.cli.run import analyse_files  # noqa: PLC0415 - imports Polars
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415

    files = [DumpFile(path.absolute()) if is_dump(path) else path.absolute() for path in paths]
    result = analyse_files(files, AnalysisOptions(**asked))
    if result.ended_by is not None:
        raise EndedBySignal(result.ended_by)
    assert result.report is not None  # noqa: S101 - nothing else interrupts it
    return result.report


def _report_of_dump(path: Path, program: Path | None) -> Report:
    from rtui.cli.options import asked_server  # noqa: PLC0415 - only dumps need it
    from rtui.cli.run import analyse  # noqa: PLC0415
    from rtui.server.options import AnalysisOptions  # noqa: PLC0415

    with asked_server(Target(dump=DumpFile(path.absolute(), program)), None) as target:
        result = analyse(target, AnalysisOptions())
    if result.ended_by is not None:
        raise EndedBySignal(result.ended_by)
    if result.report is None or result.failure is not None:
        raise RtuiError("The analysis broke off", result.failure or "")
    return result.report


def samples_file(path: Path) -> SamplesFile | None:
    """Read a file of samples; None for no file, or another kind of file. Raises click.UsageError."""
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
        click.echo(f"rtui: {path}: line {found.unread:,} can't be read; the lines before it were", err=True)
    if found.left_out:
        click.echo(f"rtui: {path}: {found.left_out:,} samples between others are left out", err=True)
    return found


def earlier_samples(path: Path) -> SamplesFile:
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
    latest_ms = max((samples[-1].at_ms for samples in opened.nodes.values()), default=opened.header.began_ms)
    return keys_report(name, opened.header.server, 0, latest_ms / 1000)


def kept_json(found: Sequence[KeptReports], now_s: float) -> str:
    return json.dumps([json_value(_entry(one, now_s)) for kept in found for one in kept.reports()], indent=1)


def _entry(one: KeptReport, now_s: float) -> dict[str, Any]:
    head = one.head
    coverage, scope = head.coverage, head.scope
    return {
        "server": head.server.label,
        "db": head.server.db,
        "number": one.number,
        "path": os.fsencode(one.file.path),
        "made_at_s": head.made_at_s,
        "age_s": max(0.0, now_s - head.made_at_s),
        "run_id": head.server.run_id,
        "coverage": coverage.kind.value,
        "keys": msgspec.to_builtins(one.stats.keys),
        "memory_bytes": msgspec.to_builtins(one.stats.memory_bytes),
        "match": scope.match,
        "type": scope.key_type,
        "findings": None if one.findings is None else {severity.value: n for severity, n in one.findings.items()},
        "notes": [note for note in (coverage.reason, *head.notes) if note],
        "file_bytes": one.file.size_bytes,
    }


def kept_text(found: Sequence[KeptReports], now_s: float) -> str:
    listed = ((kept, list(kept.reports())) for kept in found)
    return "\n\n".join(_server_text(kept, reports, now_s) for kept, reports in listed if reports)


def _server_text(kept: KeptReports, listed: Sequence[KeptReport], now_s: float) -> str:
    server = listed[0].head.server
    taken = humanize.size(sum(one.file.size_bytes for one in listed))
    about = f"{display_text(server.label)} db{server.db} · {humanize.counted(len(listed), 'report')}, {taken} in "
    lines = [f"{about}{display_text(str(kept.folder))}"]
    rows = [_cells(one, now_s) for one in listed]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    is_right = (True, False, True, True, True, False, False, False)
    for row in rows:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_right, strict=True)
        )
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def _cells(one: KeptReport, now_s: float) -> tuple[str, ...]:
    head, stats = one.head, one.stats
    mark = COVERAGE_MARKS[head.coverage.kind]
    memory = "–" if stats.memory_bytes is None else humanize.written(stats.memory_bytes, humanize.size, mark)
    told = [head.coverage.kind.value]
    if head.coverage.kind is CoverageKind.PARTIAL and head.coverage.fraction is not None:
        told[0] += f", {humanize.share(head.coverage.fraction)} seen"
    for word, raw in (("match", head.scope.match), ("type", head.scope.key_type)):
        if raw is not None:
            told.append(f"{word} {display(raw, limit=40)}")
    return (
        str(one.number),
        str(humanize.moment(head.made_at_s)),
        f"{humanize.duration(round(max(0.0, now_s - head.made_at_s) * 1000))} ago",
        f"{humanize.written_keys(stats.keys, mark)} keys",
        str(memory),
        _findings_text(one),
        ", ".join(told),
        str(display_text(one.file.path.name)),
    )


def _findings_text(one: KeptReport) -> str:
    """Return the numbers of a report's findings: `2 errors, 14 warnings`."""
    if one.findings is None:
        return humanize.NOTHING
    words = {Severity.ERROR: "error", Severity.WARN: "warning"}
    return (
        ", ".join(humanize.counted(number, words[of]) for of, number in one.findings.items() if number)
        or "nothing wrong"
    )
