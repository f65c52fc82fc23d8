"""An analysis that is to go on in a later run of rtui, in a file: what it has added up, and where it was.

The file holds names of keys: those of the patterns, the biggest keys and the borders of ranges. It is written when
the user asks for it and, where reports are kept, when a signal ends rtui; it is readable by its owner only, and is
removed once the analysis is done or is begun anew. A checksum in front tells a whole file from a damaged one.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, msgpack

from rtui import __version__
from rtui.analysis.aggregate.saved import SavedAggregates
from rtui.analysis.columns import Columns
from rtui.analysis.humanize import share
from rtui.keyspace.text.display import SafeText
from rtui.server.files import atomic_file, server_digest, state_folder
from rtui.server.inspection.pipeline import SavedInspection
from rtui.server.options import AnalysisOptions
from rtui.server.scan.page import SizeSnapshot
from rtui.server.scan.progress import Cost
from rtui.server.scan.saved_ranges import SavedRanges

FORMAT: Final = 1
"""The version of the file's layout; another one is not read."""

MOST_BYTES: Final = 128 << 20
"""A larger file is neither written nor read: two thirds of it would be names at the borders of ranges."""

MOST_AGE_S: Final = 7 * 86_400
"""After a week an analysis begins anew: half of its figures would be of another keyspace."""

UNREADABLE: Final = SafeText("What was saved of an analysis is damaged, or of another version of rtui: it can't go on.")
"""Said of a file that is none that this version has written."""

_DIGEST_BYTES: Final = 32


class NotResumableError(Exception):
    """The analysis can't be saved; the message is a safe sentence."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What tells analyses apart that can't go on as one another, each as a short text."""

    version: str
    """Of rtui."""
    run_id: str
    db: int
    filter: str
    columns: str
    registry: str
    options: str


_WHY_NOT: Final = {
    "version": "It was saved by another version of rtui.",
    "run_id": "The server was restarted since, or another replica is asked, so positions mean nothing any more.",
    "db": "It is of another database.",
    "filter": "It had another filter.",
    "columns": "Other facts are asked now.",
    "registry": "The registry has changed since.",
    "options": "It had other options, such as separators.",
}
"""Why one can't go on as another, by what differs."""


class SavedAnalysis(Struct, frozen=True, tag_field="format", tag=FORMAT):
    """The layout of the file."""

    asked: Asked
    columns: Columns
    """Of which keys which facts were asked; `asked` has what was chosen."""
    began_at_s: float
    saved_at_s: float
    fraction: float | None
    dialect: str
    cost: Cost
    before: SizeSnapshot | None
    """The size of the database when it began."""
    notes: Annotated[tuple[str, ...], Meta(max_length=100)]
    """Sentences for a reader of the report, in the order in which they came."""
    inspection: SavedInspection
    ranges: SavedRanges
    aggregates: SavedAggregates

    @property
    def title(self) -> SafeText:
        """Say when it stopped, and how far it was: `An analysis of 22 Nov 14:02 UTC stopped at 63%`."""
        at = datetime.fromtimestamp(self.saved_at_s, UTC)
        much = "" if self.fraction is None else f" at {share(self.fraction)}"
        return SafeText(f"An analysis of {at:%-d %b %H:%M} UTC stopped{much}")

    def why_not(self, asked: Asked, now_s: float) -> SafeText | None:
        """Return why it can't go on as what is asked now; None when it can."""
        for name in Asked.__dataclass_fields__:
            if getattr(self.asked, name) != getattr(asked, name):
                return SafeText(_WHY_NOT[name])
        if not 0 <= now_s - self.saved_at_s <= MOST_AGE_S:
            return SafeText("It is more than a week old.")
        return None


@lru_cache(maxsize=16)
def digest(*what: object) -> str:
    """Return a short text that stands for some values."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


def asked_by(options: AnalysisOptions, run_id: str | None, db: int) -> Asked | SafeText:
    """Return what tells an analysis with these options from others, or why that can't be told."""
    registry = options.registry
    if options.estimate_keys is not None:
        return SafeText("An estimate takes seconds, so it is not saved.")
    if run_id is None:
        return SafeText(
            "The server does not tell which run of it this is, so positions in its keyspace can't be saved."
        )
    if registry is not None and not registry.source:
        return SafeText("The registry includes other files, so it could not be told later whether it is the same.")
    return Asked(
        __version__,
        run_id,
        db,
        digest(options.match, options.key_type),
        "" if options.columns is None else str(options.columns),
        "" if registry is None else digest(registry.source),
        digest(options.separators, options.depth, options.top, options.preset),
    )


class AnalysisFile:
    """The file of one server and database; everything reads or writes it, so it is called in a thread."""

    def __init__(self, label: str, db: int, folder: Path | None = None) -> None:
        """`folder` defaults to one in the user's state folder."""
        self._db = db
        base = state_folder() / "analyses" if folder is None else folder
        self.path = base / f"{server_digest(label, db)}.analysis"

    def save(self, saved: SavedAnalysis) -> None:
        """Replace the file as a whole; raises OSError, and NotResumableError for an analysis that is too large."""
        content = msgpack.encode(saved)
        if len(content) > MOST_BYTES:
            raise NotResumableError("What it has found is too large to be saved.")
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with atomic_file(self.path) as file:
            file.write(hashlib.sha256(content).digest())
            file.write(content)

    def load(self) -> SavedAnalysis | None:
        """Return what was saved, None if nothing was or it is nothing that this version of rtui has saved."""
        try:
            with self.path.open("rb") as file:
                wanted, content = file.read(_DIGEST_BYTES), file.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES or hashlib.sha256(content).digest() != wanted:
                return None
            saved = msgpack.decode(content, type=SavedAnalysis)
            return saved if saved.ranges.is_sound else None
        except (OSError, msgspec.MsgspecError, RecursionError):
            return None

    def left_before(
        self, options: AnalysisOptions, run_id: str | None, now_s: float
    ) -> SavedAnalysis | SafeText | None:
        """Return what was saved, or why it can't go on with these options on this run of the server; None without."""
        saved = self.load()
        if saved is None:
            return UNREADABLE if self.path.exists() else None
        asked = asked_by(options, run_id, self._db)
        why_not = saved.why_not(asked, now_s) if isinstance(asked, Asked) else asked
        return saved if why_not is None else SafeText(f"{saved.title}. It can't go on: {why_not}")

    def remove(self) -> None:
        """Forget what was saved."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
