"""Compares the number of keys that a whole pass has found with the server's own count.

A pass returns every key that is there from its beginning to its end, and may return those that come or go meanwhile.
So with `changes` the number of writes, expiries and evictions during the pass, the keys it found lie between the
smaller DBSIZE of beginning and end less `changes` and the larger one plus `changes`. A server, a proxy or a scan that
is at fault lies outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.scan.page import key_count
from rtui.server.wire.capability import CommandRunner
from rtui.server.wire.identity import parse_info, parse_number
from rtui.server.wire.replies import Reply

_REMOVED: Final = ("expired_keys", "evicted_keys", "expired_subkeys")
"""Fields of INFO stats that count keys which the server has removed by itself, or fields whose key may go with them."""

UNKNOWN_FACTOR: Final = 1.5
"""Where it is not known how many keys came and went, counts that differ by less are not reported."""


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
    """When that was."""


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


def disagreement(before: SizeSnapshot, after: SizeSnapshot, keys: int, *, is_replica: bool = False) -> SafeText | None:
    """Return a note where the keys found by a whole pass and the server's own count can't both be right.

    A replica counts expired keys that it does not return. 0 keys beside some that were found is no count.
    """
    if before.run_id != after.run_id or not before.size or not after.size:
        return None
    fewest, most = min(before.size, after.size), max(before.size, after.size)
    changes = _changes(before, after)
    if changes is None:
        fewest, most, verdict = round(fewest / UNKNOWN_FACTOR), round(most * UNKNOWN_FACTOR), _UNLIKELY
    else:
        fewest, most, verdict = fewest - changes, most + changes, _IMPOSSIBLE
    if keys > most or (keys < fewest and not is_replica):
        return SafeText(f"The pass found {keys:,} keys, but the server counts {after.size:,} (DBSIZE): {verdict}.")
    return None


def too_many_gone(before: SizeSnapshot, after: SizeSnapshot, gone: int) -> SafeText | None:
    """Return a note where more keys were gone when they were asked about than can have gone since the scan began."""
    changes = None if before.run_id != after.run_id else _changes(before, after)
    if changes is None or gone <= changes:
        return None
    return SafeText(f"{gone:,} keys were said to be gone when they were asked about, but too few went meanwhile.")


_IMPOSSIBLE: Final = "both can't be right, since too few keys came and went meanwhile"
_UNLIKELY: Final = "both are right only if very many keys came and went meanwhile"


def _changes(before: SizeSnapshot, after: SizeSnapshot) -> int | None:
    """How many keys came or went at most, None where that is not known."""
    removed = after.removed - before.removed
    if before.writes is None or after.writes is None or before.saved_at != after.saved_at:
        return None
    writes = after.writes - before.writes
    return writes + removed if writes >= 0 and removed >= 0 else None
