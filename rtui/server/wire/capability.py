"""The user's rights on a server: `Capabilities` has a verdict on each command, `Querier` obeys and updates them.

Verdicts come from a probe, which sends each optional command once in a form that reads no key, and from the error
replies to later commands. A command that is known to be refused is not sent again, since the server logs each attempt.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from rtui.analysis.facts import Reason, Unknown
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import PROBE_KEY, AbsentKey
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ALONE, NOT_SENT, Reply, ServerError
from rtui.server.wire.identity import NoTouch
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads


class Feature(StrEnum):
    """A command whose support is probed, by its name; `SCAN TYPE` is SCAN with that option."""

    INFO = "INFO"
    DBSIZE = "DBSIZE"
    SCAN = "SCAN"
    SCAN_TYPE = "SCAN TYPE"
    TYPE = "TYPE"
    PTTL = "PTTL"
    EXISTS = "EXISTS"
    MEMORY_USAGE = "MEMORY USAGE"
    OBJECT_ENCODING = "OBJECT ENCODING"
    OBJECT_IDLETIME = "OBJECT IDLETIME"
    OBJECT_FREQ = "OBJECT FREQ"
    STRLEN = "STRLEN"
    HLEN = "HLEN"
    LLEN = "LLEN"
    SCARD = "SCARD"
    ZCARD = "ZCARD"
    XLEN = "XLEN"
    HPTTL = "HPTTL"


class Verdict(StrEnum):
    """Whether a feature can be used; if not, the value is that of the `Reason` for an unknown fact."""

    YES = "yes"
    DENIED = "denied"
    UNKNOWN_COMMAND = "unknown command"
    UNSUPPORTED = "unsupported"
    UNTRIED = "untried"


@dataclass(frozen=True, slots=True)
class Capability:
    """A verdict and, unless it is a plain yes, the reason."""

    verdict: Verdict
    reason: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change


_UNTRIED: Final = Capability(Verdict.UNTRIED)
_YES: Final = Capability(Verdict.YES)

_PASSING: Final = frozenset({"LOADING", "MASTERDOWN", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "NOAUTH", "OOM"})
"""Error codes of a temporary state, which say nothing about the command."""

_ALLOWED: Final = frozenset({"WRONGTYPE", "MOVED", "ASK", "NOGROUP"})
"""Error codes of a command that the server has run."""

_ELSEWHERE: Final = {
    "MOVED": "another node of the cluster serves its slot",
    "ASK": "its slot is being moved to another node of the cluster",
    "TRYAGAIN": "its slot is being moved to another node of the cluster",
    "CLUSTERDOWN": "the cluster is down",
}
"""The meaning of errors with which a node of a cluster refuses a command on a key."""

_REFUSING: Final = ("not allowed", "disabled", "restricted", "not permitted", "no permission", "forbidden")
"""Words with which proxies and managed services refuse a command."""

_PROBES: Final[Mapping[Feature, Command]] = {
    Feature.INFO: guard.info("server"),
    Feature.DBSIZE: guard.dbsize(),
    Feature.SCAN: guard.scan(0, count=1),
    Feature.SCAN_TYPE: guard.scan(0, count=1, key_type=b"string"),
    Feature.MEMORY_USAGE: guard.memory_usage(PROBE_KEY, AbsentKey()),
    Feature.HPTTL: guard.hpttl(PROBE_KEY, b"field", evidence=AbsentKey()),
    **{
        Feature(command.spec.name): command(PROBE_KEY)
        for command in (
            *(guard.key_type, guard.pttl, guard.exists),
            *(guard.object_encoding, guard.object_idletime, guard.object_freq),
            *(guard.strlen, guard.hlen, guard.llen, guard.scard, guard.zcard, guard.xlen),
        )
    },
}
"""The command that probes each feature; none reads or changes a key."""


class Capabilities:
    """The verdicts on one server; a feature without a probe is untried, and may be tried."""

    def __init__(self) -> None:
        self._found: dict[str, Capability] = {}
        self.revision = 0
        """Raised whenever a verdict changes."""

    def __getitem__(self, feature: str) -> Capability:
        return self._found.get(feature, _UNTRIED)

    @property
    def refused(self) -> dict[str, Capability]:
        """The features that were tried in vain."""
        return {name: self[name] for name in self._found if not self.allows(name)}

    def allows(self, feature: str) -> bool:
        """Whether the command may be sent: it works, or was not tried yet."""
        return self[feature].verdict in {Verdict.YES, Verdict.UNTRIED}

    def record(self, feature: str, reply: Reply) -> Verdict:
        """Update the verdict from a reply to its command; refused keys and temporary errors change nothing."""
        found = capability_from(reply)
        if found.verdict is not Verdict.UNTRIED and found != self._found.get(feature):
            self._found[feature] = found
            self.revision += 1
        return self[feature].verdict

    def forget(self) -> None:
        """Forget everything, as after a reconnect to a possibly different server."""
        self._found.clear()
        self.revision += 1

    async def renew(self, connection: CommandRunner) -> None:
        """Probe everything again, as after a reconnect; the old verdicts hold until then. Raises `ConnectionLost`."""
        fresh = Capabilities()
        await fresh.probe(connection)
        self._found = fresh._found
        self.revision += 1

    @for_purpose(Purpose.RIGHTS)
    async def probe(self, connection: CommandRunner, *, without: Collection[Feature] = ()) -> None:
        """Try all untried features except `without`, in one round trip; raises `ConnectionLost`."""
        wanted = [feature for feature in _PROBES if feature not in without]
        untried = [feature for feature in wanted if self[feature].verdict is Verdict.UNTRIED]
        if untried:
            replies = await connection.run(*[_PROBES[feature] for feature in untried])
            for feature, reply in zip(untried, replies, strict=True):
                self.record(feature, reply)
        server = connection.server
        if server.is_lfu is None:
            return
        # A missing key answers nil to both OBJECT commands; which of them works follows from the eviction policy.
        absent = Feature.OBJECT_IDLETIME if server.is_lfu else Feature.OBJECT_FREQ
        if self[absent].verdict is Verdict.YES:
            kept = "frequencies, not idle times" if server.is_lfu else "idle times, not frequencies"
            reason = display_text(f"with maxmemory-policy {server.maxmemory_policy} the server keeps {kept}")
            self._found[absent] = Capability(Verdict.UNSUPPORTED, reason)
            self.revision += 1


def capability_from(reply: Reply) -> Capability:
    """Return the verdict on a command from a reply to it; `UNTRIED` if the reply is no evidence."""
    if not isinstance(reply, ServerError) or reply.code in _ALLOWED or is_key_refusal(reply):
        return _YES
    text = reply.text.lower()
    if reply.code in _PASSING or ALONE in text:
        return _UNTRIED
    if "no such key" in text:
        return _YES
    reason = reply.text if reply.code == NOT_SENT else display_text(str(reply))
    if reply.code == "NOPERM" or any(word in text for word in _REFUSING):
        return Capability(Verdict.DENIED, reason)
    if "unknown command" in text or "unknown subcommand" in text or "unknown sub-command" in text:
        return Capability(Verdict.UNKNOWN_COMMAND, reason)
    return Capability(Verdict.UNSUPPORTED, reason)


def is_key_refusal(error: ServerError) -> bool:
    """Whether the user may use the command, but not on this key."""
    text = error.text.lower()
    return error.code == "NOPERM" and "access" in text and "key" in text and "to run the" not in text


def refuses_command(error: ServerError) -> bool:
    """Whether the server refuses the command for every key, so that it is not worth sending again."""
    return error.code == NOT_SENT or capability_from(error).verdict in (Verdict.DENIED, Verdict.UNKNOWN_COMMAND)


def refuses_fact(error: ServerError) -> bool:
    """Whether the server refuses a command for any key, for good or under its present maxmemory policy."""
    return refuses_command(error) or "maxmemory" in error.text.lower()


def means_gone(error: ServerError) -> bool:
    """Whether a command failed because its key is gone, or was replaced by one of another type."""
    return error.code == "WRONGTYPE" or "no such key" in error.text.lower()


CommandRunner: TypeAlias = Connection | Lane


class SentAhead(Protocol):
    """Commands that were sent in advance, in case they are wanted."""

    async def replies(self, commands: Sequence[Command]) -> list[Reply] | None:
        """Return the replies if exactly these commands were sent ahead, once; else None. Raises ConnectionLost."""


@dataclass(frozen=True, slots=True)
class Querier:
    """Sends commands on a connection unless they are known to be refused, and updates the verdicts."""

    connection: CommandRunner
    capabilities: Capabilities
    own_reads: OwnReads = field(default_factory=OwnReads)
    """The keys that rtui has read without NO-TOUCH, which counts as a use."""
    ahead: SentAhead | None = None
    """Commands that were sent already, whose replies `run` takes."""

    @property
    def touches(self) -> bool:
        """Whether reading a length or a value counts as an access."""
        return self.connection.no_touch is not NoTouch.ON

    async def run(self, *commands: Command) -> list[Reply]:
        """Send single commands in one write; return the replies, with the known error for each refused command."""
        found = None if self.ahead is None else await self.ahead.replies(commands)
        return await self.send(*commands) if found is None else found

    def send(self, *commands: Command) -> Coroutine[None, None, list[Reply]]:
        """Send commands at once; the returned coroutine waits for the replies, as `run` returns them."""
        refused = {
            command.name: ServerError(self.capabilities[command.name].reason)
            for command in commands
            if not self.capabilities.allows(command.name)
        }
        sent = [command for command in commands if command.name not in refused]
        return self._replies(commands, refused, self.connection.run(*sent) if sent else None)

    async def _replies(
        self, commands: Sequence[Command], refused: Mapping[str, ServerError], answered: Awaitable[list[Reply]] | None
    ) -> list[Reply]:
        answers = iter([] if answered is None else await answered)
        replies = [refused[command.name] if command.name in refused else next(answers) for command in commands]
        self.record([command.name for command in commands], replies)
        return replies

    def record(self, names: list[str], replies: list[Reply]) -> None:
        """Update the capabilities from replies; `names` are the commands."""
        for name, reply in zip(names, replies, strict=True):
            if isinstance(reply, ServerError):
                if refuses_command(reply) or is_key_refusal(reply):
                    self.capabilities.record(name, reply)
            elif self.capabilities[name].verdict is Verdict.UNTRIED:
                self.capabilities.record(name, reply)


def unknown_from(error: ServerError) -> Unknown:
    """Return the reason why a value is unknown from an error reply, with the server's text as detail."""
    if is_key_refusal(error):
        return Unknown(Reason.DENIED, f"this key: {error.text}")
    if error.code == "WRONGTYPE":
        return Unknown(Reason.GONE, "the name now belongs to a key of another type (WRONGTYPE)")
    if error.code in _ELSEWHERE:
        return Unknown(Reason.FAILED, f"{_ELSEWHERE[error.code]} ({error})")
    return _unknown_by_text(error)


def _unknown_by_text(error: ServerError) -> Unknown:
    """Return the reason why a value is unknown for an error whose code does not tell."""
    text = error.text.lower()
    if "no such key" in text:
        return Unknown(Reason.GONE, error.text)
    if "maxmemory policy" in text or "maxmemory-policy" in text:
        return Unknown(Reason.UNSUPPORTED, error.text)
    if refuses_command(error):
        return Unknown(Reason(capability_from(error).verdict.value), error.text)
    return Unknown(Reason.FAILED, error.text if error.code == "ERR" else str(error))
