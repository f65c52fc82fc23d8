"""Replies to SCAN and DBSIZE, checked for their form and against each other; and the filter of a scan.

A whole pass returns every key that exists from its beginning to its end, and may return keys that come or go meanwhile.
So with `changes` the number of writes, expiries and evictions during the pass, the number of keys found lies between
the smaller DBSIZE of beginning and end less `changes` and the larger one plus `changes`. A server, a proxy or a scan
that is at fault lies outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import GlobMatcher, check_pattern
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.scan.cursor import POSITION_END
from rtui.server.scan.progress import ScanNote
from rtui.server.wire.capability import CommandRunner
from rtui.server.wire.errors import ALONE, NOT_SENT, Reply, ScanRefusedError, ServerBusyError, ServerError
from rtui.server.wire.identity import ServerIdentity, parse_info, parse_number

_TEMPORARY: Final = frozenset({"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "NOAUTH", "CLUSTERDOWN"})

_UNSERVED: Final = "slot not served"

_CURSOR_DIGITS: Final = 20
"""Most digits of an unsigned number of 64 bits."""

_NO_PAGE: Final = "The reply to SCAN is not a page of keys"


class BeginAgainError(ScanRefusedError):
    """A scan that can't go on from where it was, but may from the beginning; `note` says why."""

    def __init__(self, note: ScanNote) -> None:
        super().__init__(note.value)
        self.note = note


def is_temporary(reply: Reply) -> bool:
    """Whether a reply says that the server can't answer just now."""
    return isinstance(reply, ServerError) and reply.code in _TEMPORARY and not is_elsewhere(reply)


def is_elsewhere(error: ServerError) -> bool:
    """Whether an error says that another node of the cluster has the key, or that none serves its slot."""
    return error.code in {"MOVED", "ASK"} or (error.code == "CLUSTERDOWN" and _UNSERVED in error.text.lower())


def _what_to_do(refusal: ServerError) -> str:
    """Return advice on a refusal of SCAN, as the end of a sentence; empty if there is none."""
    if refusal.code == "NOPERM":
        return "; `rtui acl` prints the permissions that rtui needs"
    if "unknown command" in refusal.text.lower():
        return "; if it was renamed, set rename.SCAN in a profile"
    return ""


def scan_page(reply: Reply) -> tuple[int, list[bytes]]:
    """Return cursor and keys of a reply to SCAN; raises as `measured_page` does."""
    return measured_page(reply)[:2]


def measured_page(reply: Reply) -> tuple[int, list[bytes], int]:
    """Return cursor and keys of a reply to SCAN, and how many bytes the names of the keys have together.

    Raises ScanRefusedError or ServerBusyError for anything else.

    It is a BeginAgainError where the server may answer if the scan begins again.
    """
    if isinstance(reply, ServerError):
        if is_temporary(reply):
            raise ServerBusyError(reply.text)
        text = reply.text.lower()
        if ALONE in text:
            raise BeginAgainError(ScanNote.ALONE)
        if "invalid" in text and "cursor" in text:
            raise BeginAgainError(ScanNote.LOST_PLACE)
        if reply.code == NOT_SENT:
            raise ScanRefusedError(f"{reply.text}.")
        raise ScanRefusedError(f"SCAN was refused: {reply.code} {reply.text.strip()}{_what_to_do(reply)}")
    if not isinstance(reply, list) or len(reply) != 2:
        raise ScanRefusedError(f"{_NO_PAGE}.")
    cursor, keys = reply
    is_number = isinstance(cursor, bytes) and cursor.isdigit() and len(cursor) <= _CURSOR_DIGITS
    number = int(cast("bytes", cursor)) if is_number else POSITION_END
    if number >= POSITION_END:
        raise ScanRefusedError(f"{_NO_PAGE}: its cursor is not a 64-bit number.")
    try:
        size_bytes = len(b"".join(cast("list[bytes]", keys)))
    except TypeError:
        size_bytes = -1
    if not isinstance(keys, list) or size_bytes < 0:
        raise ScanRefusedError(f"{_NO_PAGE}: its keys are not strings.")
    return number, cast("list[bytes]", keys), size_bytes


def key_count(reply: Reply) -> int | None:
    """Return the number of keys in a reply to DBSIZE; None for an error or any other reply."""
    return reply if isinstance(reply, int) and reply >= 0 else None


@dataclass(frozen=True, slots=True)
class ScanFilter:
    """MATCH and TYPE of a scan; raises PatternError or GuardError if they exceed the limits of arguments."""

    match: bytes | None = None
    key_type: bytes | None = None

    def __post_init__(self) -> None:
        if self.match is not None:
            check_pattern(self.match)
        guard.scan(0, count=1, match=self.match, key_type=self.key_type)

    @property
    def is_open(self) -> bool:
        return self.match is None and self.key_type is None

    def sent_to(self, server: ServerIdentity) -> tuple[bytes | None, Callable[[bytes], bool] | None]:
        """Return MATCH as the server may get it, and a test of names in its place where it may not."""
        if server.compatible is None or server.compatible.sends("SCAN MATCH"):
            return self.match, None
        return None, self.names()

    def names(self) -> Callable[[bytes], bool] | None:
        """Return a function that tests names like MATCH does, where MATCH is used otherwise; None if all names pass."""
        return None if self.match is None else GlobMatcher(self.match)


_REMOVED: Final = ("expired_keys", "evicted_keys", "expired_subkeys")
"""Fields of INFO stats that count keys which the server has removed by itself, or fields whose key may go with them."""

UNKNOWN_FACTOR: Final = 1.5
"""Factor up to which counts may differ without a note, if the number of changes is unknown."""


@dataclass(frozen=True, slots=True)
class SizeSnapshot:
    """The size of the database at one moment, with the server's counters of changes."""

    size: int | None
    run_id: str | None
    removed: int
    """Keys that the server has removed by itself since its start."""
    writes: int | None
    """Changes since the last save."""
    saved_at: int | None


def snapshot_commands(connection: CommandRunner) -> tuple[Command, ...]:
    """Return the commands for a snapshot; only DBSIZE where INFO is denied."""
    if connection.server.run_id is None:
        return (guard.dbsize(),)
    return guard.dbsize(), guard.info("stats"), guard.info("persistence")


def read_snapshot(connection: CommandRunner, replies: list[Reply]) -> SizeSnapshot:
    """Read the replies to `snapshot_commands`."""
    stats, persistence = (parse_info(reply) for reply in (*replies[1:], None, None)[:2])
    return SizeSnapshot(
        size=key_count(replies[0]),
        run_id=connection.server.run_id,
        removed=sum(parse_number(stats, name) or 0 for name in _REMOVED),
        writes=parse_number(persistence, "rdb_changes_since_last_save"),
        saved_at=parse_number(persistence, "rdb_last_save_time"),
    )


async def take_snapshot(connection: CommandRunner) -> SizeSnapshot:
    """Ask for a snapshot; raises ConnectionLost."""
    return read_snapshot(connection, await connection.run(*snapshot_commands(connection)))


def disagreement(before: SizeSnapshot, after: SizeSnapshot, keys: int, *, is_replica: bool = False) -> SafeText | None:
    """Return a note where the keys found by a whole pass and the server's own count can't both be right.

    A replica counts expired keys that it does not return. 0 keys beside some that were found is no count.
    """
    if before.run_id != after.run_id or not before.size or not after.size:
        return None
    fewest, most = min(before.size, after.size), max(before.size, after.size)
    changes = _changes(before, after)
    if changes is None:
        fewest, most = round(fewest / UNKNOWN_FACTOR), round(most * UNKNOWN_FACTOR)
        verdict = "are right only if very many keys came and went meanwhile"
    else:
        fewest, most = fewest - changes, most + changes
        verdict = "can't be right, since too few keys came and went meanwhile"
    if keys > most or (keys < fewest and not is_replica):
        return SafeText(f"The pass found {keys:,} keys, but the server counts {after.size:,} (DBSIZE): both {verdict}.")
    return None


def too_many_gone(before: SizeSnapshot, after: SizeSnapshot, gone: int) -> SafeText | None:
    """Return a note where more keys were gone when they were asked about than can have gone since the scan began."""
    changes = None if before.run_id != after.run_id else _changes(before, after)
    if changes is None or gone <= changes:
        return None
    return SafeText(f"{gone:,} keys were said to be gone when they were asked about, but too few went meanwhile.")


def _changes(before: SizeSnapshot, after: SizeSnapshot) -> int | None:
    """Upper bound of keys that came or went, None if unknown."""
    removed = after.removed - before.removed
    if before.writes is None or after.writes is None or before.saved_at != after.saved_at:
        return None
    writes = after.writes - before.writes
    return writes + removed if writes >= 0 and removed >= 0 else None
