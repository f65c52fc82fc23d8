"""Where a scan was broken off, kept so that a later run goes on there: positions only, no names and no secrets."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from rtui.keyspace.display import SafeText
from rtui.server.cursor import POSITION_END
from rtui.server.ranges import Span

FORMAT: Final = 1
"""The version of the file's layout; another one is not read."""

MAX_SPANS: Final = 64
"""A file with more ranges than this is not ours."""

_NO_DATABASE: Final = "The saved scan is of another database."


@dataclass(frozen=True, slots=True)
class Savepoint:
    """What a scan had still to go through, and of what: cursors mean something during one run of a server only."""

    run_id: str
    db: int
    filter_digest: str
    """Stands for MATCH and TYPE without repeating them."""
    remaining: tuple[Span, ...]
    saved_at_s: float
    """Unix time."""

    def spans(self) -> tuple[Span, ...]:
        """The whole keyspace: what remained first, then round from 0 what had been seen, since nobody has kept that."""
        ordered = sorted(self.remaining, key=lambda span: span.start)
        seen = []
        position = 0
        for span in ordered:
            if span.start > position:
                seen.append(Span(position, span.start))
            position = max(position, span.end)
        if position < POSITION_END:
            seen.append(Span(position, POSITION_END))
        return (*self.remaining, *seen)

    def why_not(self, run_id: str | None, db: int, digest: str) -> SafeText | None:
        """Why a scan can't go on from here; None when it can."""
        if run_id is None:
            return SafeText("The server does not tell which run of it this is, so the saved scan can't go on.")
        if run_id != self.run_id:
            return SafeText("The server was restarted since the scan was saved, so it begins again.")
        if db != self.db:
            return SafeText(_NO_DATABASE)
        if digest != self.filter_digest:
            return SafeText("The saved scan had another filter.")
        return None


def filter_digest(match: bytes | None, kind: bytes | None) -> str:
    """A short hash of what a scan filters by."""
    return hashlib.sha256(repr((match, kind)).encode()).hexdigest()[:16]


class SaveFile:
    """The file that holds the savepoint of one target and database; its name is a hash of both."""

    def __init__(self, label: str, db: int, folder: Path | None = None) -> None:
        """`folder` defaults to the user's state folder."""
        base = folder if folder is not None else Path(platformdirs.user_state_dir("rtui", appauthor=False)) / "scans"
        digest = hashlib.sha256(f"{label} {db}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self.path = base / f"{digest}.json"

    def save(self, savepoint: Savepoint) -> None:
        """Replace the file as a whole; raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        content = {
            "format": FORMAT,
            "run_id": savepoint.run_id,
            "db": savepoint.db,
            "filter": savepoint.filter_digest,
            "remaining": [[f"{span.start:x}", f"{span.end:x}"] for span in savepoint.remaining],
            "saved_at": savepoint.saved_at_s,
        }
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.stem, suffix=".part")
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(content, file)
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def load(self) -> Savepoint | None:
        """What was saved, None if nothing was or it can't be read."""
        try:
            content = json.loads(self.path.read_text())
            if content["format"] != FORMAT:
                return None
            return Savepoint(
                run_id=str(content["run_id"]),
                db=int(content["db"]),
                filter_digest=str(content["filter"]),
                remaining=_spans(content["remaining"]),
                saved_at_s=float(content["saved_at"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remove(self) -> None:
        """Forget what was saved."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def savepoint_of(run_id: str, db: int, match: bytes | None, kind: bytes | None, remaining: Sequence[Span]) -> Savepoint:
    """The savepoint of a scan, now."""
    return Savepoint(run_id, db, filter_digest(match, kind), tuple(remaining), time.time())


def _spans(pairs: list[list[str]]) -> tuple[Span, ...]:
    """Read ranges of positions; ValueError unless they lie within the keyspace, apart from each other."""
    spans = tuple(Span(int(start, 16), int(end, 16)) for start, end in pairs)
    ordered = sorted(spans, key=lambda span: span.start)
    bounds = [position for span in ordered for position in (span.start, span.end)]
    if not 0 < len(spans) <= MAX_SPANS or bounds != sorted(bounds):
        raise ValueError("not the ranges of a scan")
    if bounds[0] < 0 or bounds[-1] > POSITION_END or any(span.start == span.end for span in spans):
        raise ValueError("not the ranges of a keyspace")
    return spans
