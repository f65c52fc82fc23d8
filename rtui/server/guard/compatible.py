"""Servers that speak the Redis protocol and are not Redis or Valkey: the commands that each must not be sent.

The closed list was measured on Redis and Valkey. A compatible server may answer the same command at another cost
(DBSIZE of Garnet walks over all keys) or with another meaning (MEMORY USAGE of Kvrocks is bytes on disk). Each row of
the table was read in the server's source or in its vendor's documents. It only has facts that can't be found out by
trying: refused and missing commands are learned from replies (`server/wire/capability.py`), and whether cursors are
positions by a probe (`server/scan/node_scan.py`). So there is no row for proxies and serverless services that call
themselves Redis: their replies tell.

A forbidden command never leaves: the lane puts an error in place of the reply, as if the server had refused it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rtui.server.guard.closed_list import MAX_SCAN_COUNT
from rtui.server.guard.command import Command, unpack_requests


@dataclass(frozen=True, slots=True)
class Unsent:
    """Commands that a server is not sent: all that begin with `words`, or only with an `option`."""

    words: str
    why: str
    """The server's behaviour; continues "DBSIZE is not sent to Garnet, which"."""
    option: str = ""

    @property
    def name(self) -> str:
        """The name of the commands: `SCAN MATCH`."""
        return f"{self.words} {self.option}".rstrip()

    def concerns(self, argv: tuple[bytes, ...]) -> bool:
        """Whether this covers a command line, written as on the closed list."""
        words = tuple(word.encode() for word in self.words.split())
        options = argv[2::2] if argv[0] == b"SCAN" else argv[len(words) :]
        return argv[: len(words)] == words and (not self.option or self.option.encode() in options)


@dataclass(frozen=True, slots=True)
class CompatibleServer:
    """One compatible server or service."""

    name: str
    fields: tuple[str, ...]
    """Fields of INFO that only this server has."""
    executable: str = ""
    """A part of its program's name, for a server without a field of its own in the section `server`."""
    is_redis: bool = False
    """Whether the program behind it is Redis, so that the facts of its Redis version hold."""
    unsent: tuple[Unsent, ...] = ()
    most_count: int = MAX_SCAN_COUNT
    """The largest COUNT of SCAN."""
    sizes_on_disk: bool = False
    """Whether MEMORY USAGE returns the bytes that a key takes on disk."""
    usd_per_100_000: float | None = None
    """The price of 100,000 commands in USD, if commands are billed."""

    def is_recognised(self, info: Mapping[str, str]) -> bool:
        """Whether INFO is from this server."""
        program = info.get("executable", "").rpartition("/")[2].lower()
        return any(field in info for field in self.fields) or bool(self.executable and self.executable in program)

    def refusal(self, command: Command) -> str | None:
        """Return the reason why a command must not be sent to this server, or None."""
        if not any(words in command.name for words in ("SCAN", *(unsent.words for unsent in self.unsent))):
            return None
        for argv in unpack_requests(command.request):
            for unsent in self.unsent:
                if unsent.concerns(argv):
                    return f"{unsent.name} is not sent to {self.name}, which {unsent.why}"
            if argv[0] == b"SCAN" and int(dict(zip(argv[2::2], argv[3::2], strict=True))[b"COUNT"]) > self.most_count:
                return f"SCAN is sent to {self.name} with a COUNT of {self.most_count} at most"
        return None

    def bill(self, commands: int | None) -> str | None:
        """Return the cost of at most `commands` commands, as a sentence without a full stop; None if they are free."""
        if self.usd_per_100_000 is None:
            return None
        if commands is None:
            return f"{self.name} bills each command, and the number needed is unknown"
        cost = f"{commands * self.usd_per_100_000 / 100_000:,.2f} USD"
        return f"{self.name} bills each command: this takes up to {commands:,}, about {cost}"

    def sends(self, name: str) -> bool:
        """Whether a command, or one with an option such as `SCAN MATCH`, may be sent at all."""
        return all(unsent.name != name for unsent in self.unsent)


_LATEST_COUNT: Final = "only tells what the last DBSIZE SCAN has counted, 0 before the first"

COMPATIBLE: Final[tuple[CompatibleServer, ...]] = (
    CompatibleServer("Dragonfly", ("dragonfly_version",)),
    CompatibleServer(
        "Garnet",
        ("garnet_version",),
        unsent=(
            Unsent("DBSIZE", "walks over all keys for it"),
            Unsent("INFO", "walks over all keys for it", "keyspace"),
            Unsent("SCAN", "counts matches alone, so a rare one takes a walk over all keys", "MATCH"),
            Unsent("SCAN", "then lists all keys in one page", "TYPE"),
            Unsent("OBJECT IDLETIME", "always answers 0"),
        ),
    ),
    CompatibleServer(
        "Kvrocks",
        ("kvrocks_version",),
        unsent=(
            Unsent("DBSIZE", _LATEST_COUNT),
            Unsent("INFO", _LATEST_COUNT, "keyspace"),
            Unsent("SCAN", "knows no pattern but a prefix", "MATCH"),
        ),
        sizes_on_disk=True,
    ),
    CompatibleServer(
        "Pika",
        ("pika_version",),
        unsent=(
            Unsent("DBSIZE", "tells a count of some time ago, 0 before the first"),
            Unsent("INFO", "may count all keys for it", "keyspace"),
            # It keeps the places of scans by the number of keys so far, whatever they filter by: without filters all
            # scans have the same places, so that none disturbs another.
            Unsent("SCAN", "confuses the places of scans with different filters", "MATCH"),
            Unsent("SCAN", "confuses the places of scans with different filters", "TYPE"),
        ),
    ),
    # From COUNT 100 on KeyDB goes through a snapshot, whose cursor was seen to be always 0.
    CompatibleServer("KeyDB", ("mvcc_depth",), executable="keydb", most_count=99),
    CompatibleServer("Upstash", ("upstash_version",), usd_per_100_000=0.20),
    CompatibleServer("Redis Enterprise", ("rlec_version",), is_redis=True),
)
"""Known compatible servers; any other one may be sent the whole closed list."""


def compatible_server(info: Mapping[str, str]) -> CompatibleServer | None:
    """Return the compatible server that INFO is from; None for Redis, Valkey and unknown servers."""
    return next((server for server in COMPATIBLE if server.is_recognised(info)), None)
