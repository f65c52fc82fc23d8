"""The reports of earlier passes over a server and database, kept so that later ones can be compared with them.

Each is a compressed JSON report in a folder of the user's state folder, named by the time it was made, so there is no
index to keep in step with the files. The folder's name is a hash of the server's address and database, as for the
positions of scans. Files hold names of keys and are readable by their owner only.

The number and size of reports are bounded, see `thinned`: at first all reports stay; beyond the bounds the oldest go,
but the first of each day goes last, so that a month of nights outlasts a day on which someone looked every minute.
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from rtui.analysis.formats.json import LARGEST_FILE_BYTES, ReportFormatError, read_headline, read_json, write_json
from rtui.analysis.report.document import Head, Report, Stats
from rtui.registry.rules import Severity
from rtui.server.files import REPORT_SUFFIX, atomic_file, report_name, server_digest, state_folder

MOST_REPORTS: Final = 30

MOST_BYTES: Final = 64 << 20
"""Most bytes of their files together."""

MOST_SERVERS: Final = 50
"""Servers and databases that reports are kept of; beyond, those without a new report for longest are dropped."""

_DAY_S: Final = 86_400
_REFERENCE: Final = re.compile(r"(?P<place>.+)@(?P<which>latest|yesterday|[0-9]{1,3}|[0-9]{4}-[0-9]{2}-[0-9]{2})")


class NotKeptError(Exception):
    """There is no such report, or it can't be kept; the message is a safe sentence."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One file of the folder."""

    path: Path
    made_at_s: float
    """Seconds since the epoch, by the file's name."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KeptReport:
    """The list entry of a report, without its namespaces."""

    number: int
    """In the list, from 1 for the newest; unreadable reports are numbered, too."""
    file: KeptFile
    head: Head
    stats: Stats
    """Of the whole keyspace."""
    findings: dict[Severity, int] | None
    """How many are listed of each severity, by the rules' defaults; None where that was not written."""


def thinned(
    files: Sequence[tuple[float, int]], most: int = MOST_REPORTS, most_bytes: int = MOST_BYTES
) -> frozenset[int]:
    """Return which of some files have to go, given when each was made (seconds since the epoch) and its bytes.

    The newest stays. While there are too many the oldest goes that is not the first of its day (UTC), and where only
    such are left the oldest of them.
    """
    oldest_first = sorted(range(len(files)), key=lambda at: (files[at][0], at))
    firsts: dict[int, int] = {}
    for at in oldest_first:
        firsts.setdefault(int(files[at][0] // _DAY_S), at)
    is_first = set(firsts.values())
    order = [at for at in oldest_first if at not in is_first] + [at for at in oldest_first if at in is_first]
    count, total = len(files), sum(size for _, size in files)
    gone = set()
    for at in order:
        if count <= most and total <= most_bytes:
            break
        if at == oldest_first[-1]:
            continue
        gone.add(at)
        count, total = count - 1, total - files[at][1]
    return frozenset(gone)


class KeptReports:
    """The folder of one server and database. Everything reads or writes files, so screens call it in a thread."""

    def __init__(self, label: str, db: int, base: Path | None = None) -> None:
        """`label` is the target's; `base` defaults to the user's state folder."""
        self.folder = (default_base() if base is None else base) / server_digest(label, db)
        self.unreadable: list[Path] = []
        """Files that `reports` left out last, since they can't be read."""

    def keep(self, report: Report) -> Path:
        """Write a report and drop the oldest beyond the bounds; raises OSError, and NotKeptError for a report that is
        too large.

        A report of the same millisecond is replaced.
        """
        data = gzip.compress(write_json(report).encode(), mtime=0)
        if len(data) > MOST_BYTES:
            raise NotKeptError("The report is too large to be kept.")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / report_name(report.head.made_at_s)
        with atomic_file(path) as file:
            file.write(data)
        kept = self.files()
        for at in thinned([(one.made_at_s, one.size_bytes) for one in kept]):
            if kept[at].path != path:
                kept[at].path.unlink(missing_ok=True)
        for server in all_kept(self.folder.parent)[MOST_SERVERS:]:
            shutil.rmtree(server.folder, ignore_errors=True)
        return path

    def files(self) -> list[KeptFile]:
        """Return the report files, the newest first; files of other names are ignored."""
        found = []
        with suppress(OSError):
            for path in self.folder.iterdir():
                made_at_s = _made_at_s(path.name)
                if made_at_s is not None:
                    with suppress(OSError):
                        found.append(KeptFile(path, made_at_s, path.stat().st_size))
        return sorted(found, key=lambda one: one.made_at_s, reverse=True)

    def reports(self) -> Iterator[KeptReport]:
        """Yield the list entry of each report, the newest first; unreadable files go to `unreadable` instead."""
        self.unreadable = []
        for number, file in enumerate(self.files(), 1):
            try:
                found = read_headline(_read(file.path))
            except (OSError, ReportFormatError):
                self.unreadable.append(file.path)
            else:
                yield KeptReport(number, file, found.head, found.stats, found.findings)

    def find(self, which: str, now_s: float) -> Path:
        """Return the file of `latest`, `yesterday`, a day such as `2026-11-22` (UTC), or a number in the list, from 1.

        Of a day it is the last one. Raises NotKeptError.
        """
        files = self.files()
        if not files:
            raise NotKeptError("No report of this server and database is kept.")
        if which == "latest":
            return files[0].path
        if which.isdecimal():
            if not 1 <= int(which) <= len(files):
                raise NotKeptError(f"There is no report {which}: {len(files)} are kept.")
            return files[int(which) - 1].path
        day = which
        if which == "yesterday":
            day = f"{datetime.fromtimestamp(now_s, UTC) - timedelta(days=1):%Y-%m-%d}"
        for file in files:
            if f"{datetime.fromtimestamp(file.made_at_s, UTC):%Y-%m-%d}" == day:
                return file.path
        raise NotKeptError(f"No report of {day} (UTC) is kept.")


def default_base() -> Path:
    return state_folder() / "reports"


def all_kept(base: Path | None = None) -> list[KeptReports]:
    """Return the folders of all servers, that with the newest report first."""
    found = []
    with suppress(OSError):
        for folder in (default_base() if base is None else base).iterdir():
            one = KeptReports("", 0, folder.parent)
            one.folder = folder
            if files := one.files():
                found.append((files[0].made_at_s, one))
    return [one for _, one in sorted(found, key=lambda pair: pair[0], reverse=True)]


def split_reference(text: str) -> tuple[str, str] | None:
    """Split `TARGET@yesterday` into a target and the argument of `KeptReports.find`; None for any other text."""
    found = _REFERENCE.fullmatch(text)
    return None if found is None else (found["place"], found["which"])


def read_kept(file: KeptFile) -> Report:
    """Read a whole report; raises OSError and ReportFormatError."""
    return read_json(_read(file.path))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST_FILE_BYTES + 1)


def _made_at_s(name: str) -> float | None:
    if not name.endswith(REPORT_SUFFIX):
        return None
    try:
        return datetime.strptime(name.removesuffix(REPORT_SUFFIX), "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
