"""Where a scan was broken off, saved so that a later run of rtui goes on there: positions only, no names or secrets."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rtui.keyspace.text.display import SafeText
from rtui.server import wall_clock
from rtui.server.files import atomic_file, server_digest, state_folder
from rtui.server.scan.cursor import POSITION_END, dialect_of
from rtui.server.scan.node import Primary, ScanNode
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import ScanState
from rtui.server.scan.ranges import CursorSpan
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Connection

FORMAT: Final = 1
"""The version of the file's layout; another one is not read."""

KEPT_SPANS: Final = 64
"""Ranges that are saved at most; where more remain, the smallest gaps between them are counted as remaining, too."""

MAX_SPANS: Final = 4096
"""A file with more ranges than this was not written by rtui."""

MAX_FILE_BYTES: Final = 1 << 20
"""A file larger than this was not written by rtui: no more of it is read."""

GOES_ON: Final = SafeText(
    "The scan continues from where it stopped; it then starts at the beginning and ends where it had continued."
)
NOT_SAVED: Final = SafeText("The position of the scan could not be saved.")

_BY_START: Final = attrgetter("start")

_Position: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{1,17}\Z")]


class _SavedScan(Struct, frozen=True, tag_field="format", tag=FORMAT):
    """The layout of the file; positions are hexadecimal."""

    run_id: str
    db: int
    filter: str
    remaining: Annotated[tuple[tuple[_Position, _Position], ...], Meta(min_length=1, max_length=MAX_SPANS)]
    saved_at: float


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The positions that a scan had still to visit; they are valid during one run of a server only."""

    run_id: str
    db: int
    filter_digest: str
    remaining: tuple[CursorSpan, ...]
    saved_at_s: float

    def spans(self) -> tuple[CursorSpan, ...]:
        """The whole keyspace: first the remaining ranges, then from 0 the scanned ones, whose keys are not saved."""
        seen = []
        position = 0
        for span in sorted(self.remaining, key=_BY_START):
            if span.start > position:
                seen.append(CursorSpan(position, span.start))
            position = max(position, span.end)
        if position < POSITION_END:
            seen.append(CursorSpan(position, POSITION_END))
        return (*self.remaining, *seen)

    def why_not(self, run_id: str | None, db: int, digest: str) -> SafeText | None:
        """Return why a scan can't go on from here; None when it can."""
        if run_id is None:
            return SafeText("The server does not report its run id, so the saved scan can't continue.")
        if run_id != self.run_id:
            return SafeText("The server was restarted since the scan was saved, so it starts again.")
        if db != self.db:
            return SafeText("The saved scan is of another database.")
        if digest != self.filter_digest:
            return SafeText("The saved scan had another filter.")
        return None


def filter_digest(match: bytes | None, key_type: bytes | None) -> str:
    return hashlib.sha256(repr((match, key_type)).encode()).hexdigest()[:16]


class SaveFile:
    """The file that holds the savepoint of one target and database; its name is a hash of both."""

    def __init__(self, label: str, db: int, folder: Path | None = None) -> None:
        """`folder` defaults to the user's state folder."""
        base = folder if folder is not None else state_folder() / "scans"
        self.path = base / f"{server_digest(label, db)}.json"

    def save(self, savepoint: Savepoint) -> None:
        """Replace the file as a whole; raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        remaining = tuple((f"{span.start:x}", f"{span.end:x}") for span in savepoint.remaining)
        content = _SavedScan(savepoint.run_id, savepoint.db, savepoint.filter_digest, remaining, savepoint.saved_at_s)
        with atomic_file(self.path) as file:
            file.write(msgspec.json.encode(content))

    def load(self) -> Savepoint | None:
        """Return the saved position; None if there is none, or the file is unreadable or not ours."""
        try:
            with self.path.open("rb") as file:
                text = file.read(MAX_FILE_BYTES + 1)
            saved = None if len(text) > MAX_FILE_BYTES else msgspec.json.decode(text, type=_SavedScan)
        except (OSError, msgspec.MsgspecError, RecursionError):
            return None
        if saved is None:
            return None
        spans = [CursorSpan(int(start, 16), int(end, 16)) for start, end in saved.remaining]
        are_apart = all(one.end <= other.start for one, other in pairwise(sorted(spans, key=_BY_START)))
        if not are_apart or not all(span.start < span.end <= POSITION_END for span in spans):
            return None
        return Savepoint(saved.run_id, saved.db, saved.filter, joined(spans), saved.saved_at)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def savepoint_of(
    run_id: str, db: int, match: bytes | None, key_type: bytes | None, remaining: Sequence[CursorSpan]
) -> Savepoint:
    return Savepoint(run_id, db, filter_digest(match, key_type), joined(remaining), wall_clock.now_s())


def joined(spans: Sequence[CursorSpan]) -> tuple[CursorSpan, ...]:
    """Return these positions in at most `KEPT_SPANS` disjoint ranges, in their original order of priority.

    With too many left, the smallest gaps are filled: keys scanned there are among the first seen again.
    """
    found: list[CursorSpan] = []
    for span in sorted(spans, key=_BY_START):
        if found and span.start <= found[-1].end:
            found[-1] = CursorSpan(found[-1].start, max(found[-1].end, span.end))
        elif span.start < span.end:
            found.append(span)
    if len(found) > KEPT_SPANS:
        gaps = sorted(range(1, len(found)), key=lambda index: found[index].start - found[index - 1].end)
        cuts = [0, *sorted(gaps[1 - KEPT_SPANS :]), len(found)]
        found = [CursorSpan(found[first].start, found[end - 1].end) for first, end in pairwise(cuts)]
    order: dict[CursorSpan, int] = {}
    for span in spans:
        if span.start < span.end:
            order.setdefault(next(one for one in found if one.end >= span.end), len(order))
    return tuple(sorted(found, key=order.__getitem__))


class SavedPosition:
    """Where one scan stands, for a later run: taken from the file as it begins, kept there while it is under way.

    It is of one run of the server and one filter, and so goes on with these only.
    """

    def __init__(self, file: SaveFile, only: ScanFilter) -> None:
        self.begun_on: str | None = None
        """The run of the server that the scan began on; None where it does not tell."""
        self.notes: dict[SafeText, None] = {}
        """Notes for the reader, each once."""
        self._file, self._only = file, only

    def node(self, connection: Connection, primary: Primary | None) -> ScanNode | None:
        """Return the server with the ranges of a saved scan; None, with a note, where none can go on."""
        server, dialect = connection.server, dialect_of(connection.server)
        saved = self._file.load() if dialect.is_ordered else None
        if saved is None:
            return None
        digest = filter_digest(self._only.match, self._only.key_type)
        why_not = saved.why_not(server.run_id, connection.target.db, digest)
        self.notes[why_not or GOES_ON] = None
        if why_not is not None:
            return None
        return ScanNode(connection, dialect, spans=saved.spans(), run_id=server.run_id, primary=primary)

    def save(self, scan: Scan, connection: Connection) -> None:
        """Save the remaining ranges, if any are left and the server can be recognised later; a note says why not."""
        run_id, only = scan.run_id or self.begun_on, self._only
        if run_id is None or scan.state is ScanState.FAILED:
            return
        remaining = [span for spans in scan.remaining() for span in spans]
        if not remaining:
            return
        try:
            self._file.save(savepoint_of(run_id, connection.target.db, only.match, only.key_type, remaining))
        except OSError:
            self.notes[NOT_SAVED] = None

    def forget(self) -> None:
        self._file.remove()
