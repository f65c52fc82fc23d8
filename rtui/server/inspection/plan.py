"""The commands that an inspection sends about a key: known to the server, allowed to the user, not touching the key."""

from __future__ import annotations

from typing import Final

from rtui.analysis.columns import ALL_COLUMNS, ENCODING_EVERY, SAMPLE_EVERY, Asked, Columns
from rtui.analysis.report.document import ColumnReport, ColumnState
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.facts.answers import length_commands, queries_of
from rtui.server.guard.command import CommandNames, KeyCommand
from rtui.server.guard.evidence import MemoryCost, MemoryUsagePolicy, TypeEvidence
from rtui.server.wire.capability import Capabilities, Verdict
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.lane import Lane

_STATES: Final = {
    Verdict.DENIED: ColumnState.DENIED,
    Verdict.UNKNOWN_COMMAND: ColumnState.UNSUPPORTED,
    Verdict.UNSUPPORTED: ColumnState.UNSUPPORTED,
}

TOUCHING: Final = "reading lengths counts as an access here; they were read of the largest keys only"
"""Why most keys have no length where the server does not know NO-TOUCH."""

UNTYPED: Final = "the type is not known, and each type has its own length command"
"""Why lengths are missing if TYPE is denied."""

LEFT_OUT: Final = "excluded by the options of the analysis"
"""Why a fact that could be read is left out."""

ONE_IN_EIGHT: Final = f"read of one key in {SAMPLE_EVERY}, so figures for all keys are estimates"
"""Which keys have a fact that is read of a sample."""

LENGTHS_OF_SOME: Final = (
    f"one key in {SAMPLE_EVERY} was asked, and those that could be among the longest by their memory, so figures for "
    "all keys are estimates"
)
"""The same for the length."""

COMMAND_NAMES: Final = (
    "type",
    "pttl",
    "memory|usage",
    *(f"object|{what}" for what in ("idletime", "freq", "encoding")),
    *(command.spec.name.lower() for command in length_commands().values()),
)
"""The commands that are sent for each key, as the server's statistics name them."""

KEY_US: Final = 3.0
"""Server time of five commands a key on a million keys, reading and answering included: Redis 7.0 3.2, Valkey 9 2.7."""


class InspectionPlan:
    """The commands of an inspection; they change as the user's rights are learned on the way.

    The commands for a key depend on its type and on whether it is *sampled*: one key in `sample_every` is, in the order
    in which the scan lists them. If no fact is asked of a sample only, all keys count as sampled.
    """

    def __init__(
        self, capabilities: Capabilities, server: ServerIdentity, no_touch: NoTouch, columns: Columns = ALL_COLUMNS
    ) -> None:
        self.capabilities = capabilities
        self.columns = columns
        """Which keys each fact is read of, if allowed; to be changed only before the first key is queried."""
        self.server = server
        self.no_touch = no_touch
        self.changes: dict[SafeText, None] = {}
        """Notes for the reader on servers that changed during the inspection, one sentence each."""
        self.has_asked_replica = server.role == "replica"
        """Whether a server was a replica when asked: its idle times and access counters differ from its primary's."""
        self._lane: Lane | None = None
        self._lanes = 0
        self._revision = -1
        self._first_commands: dict[bool, tuple[KeyCommand, ...]] = {}
        self._second_commands: dict[tuple[bytes | None, bool], tuple[KeyCommand, ...]] = {}
        self._types: dict[bytes | None, TypeEvidence] = {}

    def __getstate__(self) -> dict[str, object]:
        """Leave out the lane and cached commands, which can't be pickled."""
        made_anew: dict[str, object] = {
            "_lane": None,
            "_revision": -1,
            "_first_commands": {},
            "_second_commands": {},
            "_types": {},
        }
        return vars(self) | made_anew

    async def follow(self, lane: Lane) -> bool:
        """Find out which commands the server of this lane allows; raises ConnectionLost, and nothing has changed then.

        Returns whether they were found out anew: after each reconnect, and on the first lane if it reaches another
        server than the plan was made for.
        """
        if lane is self._lane:
            return False
        is_known = self._lane is None and self.server.is_like(lane.server) and self.no_touch is lane.no_touch
        if not is_known:
            await self.capabilities.renew(lane)
            before, now = self.server.full_name, lane.server.full_name
            if before != now:
                change = (
                    f"The server changed during the pass: {before} answered first, then {now}; "
                    "from then on only what that server allows was asked."
                )
                self.changes[display_text(change)] = None
        self.server, self.no_touch, self._lane = lane.server, lane.no_touch, lane
        self.has_asked_replica |= lane.server.role == "replica"
        self._lanes += 1
        self._types.clear()
        self._revision = -1
        return not is_known

    @property
    def names(self) -> CommandNames:
        """The server's names of renamed commands."""
        return CommandNames() if self._lane is None else self._lane.names

    @property
    def revision(self) -> tuple[int, int]:
        return self._lanes, self.capabilities.revision

    @property
    def asks_lengths(self) -> bool:
        """Whether the length of every key may be read, since reading it does not count as a use."""
        return self.no_touch is NoTouch.ON

    @property
    def resets_idle_times(self) -> bool:
        """Whether rtui's own reading of a key has set its idle time to 0."""
        return not self.asks_lengths and "lrm" not in (self.server.maxmemory_policy or "")

    @property
    def sample_every(self) -> int:
        """Every n-th key is sampled; 1 for all."""
        return SAMPLE_EVERY if self.columns.is_sampling else 1

    def first_commands(self, is_sampled: bool) -> tuple[KeyCommand, ...]:
        """The commands of the first stage, in this order: type, TTL, idle time or frequency; none touches a key."""
        self._keep_up()
        return self._first_commands[is_sampled]

    def _keep_up(self) -> None:
        if self._revision != self.capabilities.revision:
            self._revision = self.capabilities.revision
            self._first_commands = {of_sample: self._find_first(of_sample) for of_sample in (False, True)}
            self._second_commands.clear()

    def _find_first(self, is_sampled: bool) -> tuple[KeyCommand, ...]:
        ttl = guard.pttl if _is_asked(self.columns.ttl, is_sampled) else None
        recency = self.recency if _is_asked(self.columns.idle, is_sampled) else None
        commands = (guard.key_type, ttl, recency)
        return tuple(command for command in commands if command is not None and self._may(command))

    @property
    def recency(self) -> KeyCommand | None:
        """The command for idle time or frequency, whichever the server keeps; None if neither is allowed."""
        is_lfu = self.server.is_lfu
        if is_lfu is None:
            is_lfu = not self._may(guard.object_idletime)
        wanted = guard.object_freq if is_lfu else guard.object_idletime
        return wanted if self._may(wanted) else None

    def evidence(self, key_type: bytes | None) -> TypeEvidence:
        """Return the server, its version and the type as evidence for the guard."""
        found = self._types.get(key_type)
        if found is None:
            found = self._types[key_type] = TypeEvidence(key_type, self.server.product, self.server.version)
        return found

    def memory(self, key_type: bytes | None) -> MemoryCost:
        """Return how MEMORY USAGE may be sent about keys of a type."""
        if self.columns.memory is Asked.NONE:
            return MemoryCost(MemoryUsagePolicy.NEVER, LEFT_OUT)
        if not self._may(guard.memory_usage):
            return MemoryCost(MemoryUsagePolicy.NEVER, "MEMORY USAGE is refused")
        return self.evidence(key_type).memory_cost

    def second_commands(self, key_type: bytes | None, is_sampled: bool) -> tuple[KeyCommand, ...]:
        """Return the commands of the second stage for keys of a type: MEMORY USAGE where it is free, and the length."""
        self._keep_up()
        found = self._second_commands.get((key_type, is_sampled))
        if found is None:
            memory = (guard.memory_usage,) if self.memory(key_type).policy is MemoryUsagePolicy.FREE else ()
            length = self._length(key_type) if _is_asked(self.columns.length, is_sampled) else None
            found = self._second_commands[key_type, is_sampled] = memory if length is None else (*memory, length)
        return found

    def third_command(self, key_type: bytes | None) -> KeyCommand | None:
        """Return the command for the length of keys that are not sampled but may be among the longest by their memory.

        None where there is no such stage: lengths are asked of all keys or of none, or memory can't be asked.
        """
        is_bounded = self.memory(key_type).policy is not MemoryUsagePolicy.NEVER
        return self._length(key_type) if is_bounded and self.samples_lengths(key_type) else None

    def samples_lengths(self, key_type: bytes | None) -> bool:
        """Whether only sampled keys of this type are asked for their length."""
        return self.columns.length is Asked.SAMPLED and self._length(key_type) is not None

    def least_element_bytes(self, key_type: bytes | None) -> int:
        """Return how much MEMORY USAGE counts for each unit of a length over SHORT_LENGTH: length <= memory // that.

        0 where nothing is known, such as of servers that are neither Redis nor Valkey.
        """
        return type_of(key_type).least_element_bytes if self.server.product in ("redis", "valkey") else 0

    def _length(self, key_type: bytes | None) -> KeyCommand | None:
        """Return the command for the length of keys of a type, None if none may be sent in bulk."""
        length = queries_of(key_type).length if self.asks_lengths else None
        return None if length is None or not (length.spec.in_bulk and self._may(length)) else length

    @property
    def encoding_every(self) -> int:
        return 1 if self.columns.encoding is Asked.ALL else ENCODING_EVERY

    @property
    def asks_encodings(self) -> bool:
        return self.columns.encoding is not Asked.NONE and self._may(guard.object_encoding)

    def column_reports(self) -> dict[str, ColumnReport]:
        """Return for each fact whether it is read, as far as rights, server and options decide it."""
        columns = self.columns
        some = ColumnReport(ColumnState.SOME, ONE_IN_EIGHT)
        some_lengths = ColumnReport(ColumnState.SOME, LENGTHS_OF_SOME)
        every_nth = ColumnReport(ColumnState.SOME, f"every {self.encoding_every}th key of a type was read")
        memory = self._unless_untyped(self._column(guard.memory_usage), self.memory(None).why)
        return {
            "type": self._column(guard.key_type),
            "ttl": _as_asked(self._column(guard.pttl), columns.ttl),
            "memory": _as_asked(memory, columns.memory),
            "idle": _as_asked(self._column(guard.object_idletime), columns.idle, some),
            "frequency": _as_asked(self._column(guard.object_freq), columns.idle, some),
            "length": _as_asked(self._unless_untyped(self._lengths(), UNTYPED), columns.length, some_lengths),
            "encoding": _as_asked(self._column(guard.object_encoding), columns.encoding, every_nth),
        }

    def _lengths(self) -> ColumnReport:
        """Return whether lengths are read; they count as denied if the command of one type is."""
        found = {key_type: self._column(command) for key_type, command in length_commands().items()}
        denied = {key_type: column.reason for key_type, column in found.items() if column.state is ColumnState.DENIED}
        if not self.asks_lengths and len(denied) < len(found):
            return ColumnReport(ColumnState.NOT_ASKED, TOUCHING)
        reasons = "; ".join(f"of type {key_type.decode()}: {reason}" for key_type, reason in denied.items())
        return ColumnReport(ColumnState.DENIED if denied else ColumnState.COMPLETE, reasons)

    def _unless_untyped(self, column: ColumnReport, why: str) -> ColumnReport:
        """Return a column as left out if it depends on the type, and types are unknown."""
        is_lost = column.state is ColumnState.COMPLETE and not self._may(guard.key_type)
        return ColumnReport(ColumnState.NOT_ASKED, why) if is_lost else column

    def _column(self, command: KeyCommand) -> ColumnReport:
        if self.capabilities.allows(command.spec.name):
            return ColumnReport(ColumnState.COMPLETE)
        found = self.capabilities[command.spec.name]
        return ColumnReport(_STATES[found.verdict], found.reason)

    def _may(self, command: KeyCommand) -> bool:
        return self.capabilities.allows(command.spec.name)


def _is_asked(asked: Asked, is_sampled: bool) -> bool:
    return asked is Asked.ALL or (asked is Asked.SAMPLED and is_sampled)


def _as_asked(column: ColumnReport, asked: Asked, of_some: ColumnReport | None = None) -> ColumnReport:
    """Return the report of a column as asked of these keys; missing rights and server limits come first."""
    if column.state is not ColumnState.COMPLETE or asked is Asked.ALL:
        return column
    return ColumnReport(ColumnState.NOT_ASKED, LEFT_OUT) if asked is Asked.NONE or of_some is None else of_some
