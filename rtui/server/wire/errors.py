"""Replies of a server, and the exceptions that users may see, each with a title, a description and a remedy.

Error replies are values; replies of protocol 3 get the shape of protocol 2.
`failures` words the failures of connecting.
"""

from __future__ import annotations

import traceback
from enum import Enum, IntEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from rtui.keyspace.text.display import SafeText, display_text

if TYPE_CHECKING:
    import asyncio

NOT_SENT: Final = "NOTSENT"
"""The code of an error in place of the reply to a command that is not sent to this server."""


ALONE: Final = "pipeline"
"""A word in the errors of proxies that answer a command only if nothing is sent with it."""


@final
class ServerError(Exception):
    """An error reply, kept as a value inside lists of replies; `code` is its first word (`NOPERM`) or `ERR`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        first, _, rest = message.partition(" ")
        has_code = first.isascii() and first.isupper() and first.isalnum()
        self.code: str = first if has_code else "ERR"
        self._rest = rest if has_code else message

    @property
    def denies_command(self) -> bool:
        """Whether the user may not run this command at all, whatever the key: the server logs every such attempt."""
        return self.code == "NOPERM" and "to run the" in self._rest.lower()

    @property
    def text(self) -> SafeText:
        """The message without its code, safe to show."""
        return display_text(self._rest)

    def __str__(self) -> str:
        return f"{self.code} {self.text}"


Reply: TypeAlias = "bytes | int | float | bool | list[Reply] | dict[Reply, Reply] | ServerError | None"
"""The reply to one command; an error reply is a value, and lanes give every reply the shape of protocol 2."""

_PAIRED: Final = frozenset({"ZRANGE", "ZRANDMEMBER", "HRANDFIELD"})
"""Commands that reply with a list of pairs in protocol 3, and with one flat list in protocol 2."""


def as_resp2(name: str, reply: Reply) -> Reply:
    """Turn maps and pairs into flat lists, booleans into 0 or 1, floats into text; `name` is the command."""
    flat = _flattened(reply)
    if name in _PAIRED and isinstance(flat, list) and flat and all(isinstance(element, list) for element in flat):
        return [item for pair in flat if isinstance(pair, list) for item in pair]
    return flat


def _flattened(reply: Reply) -> Reply:
    """Convert nested replies recursively; they are a few levels deep for the commands of the closed list."""
    if reply is None or isinstance(reply, bytes | ServerError):
        return reply
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):  # as the server writes it: whole numbers without a point
        return b"%d" % int(reply) if reply.is_integer() and abs(reply) < 1e17 else repr(reply).encode()
    if isinstance(reply, dict):
        return [_flattened(element) for pair in reply.items() for element in pair]
    if isinstance(reply, list):
        return [_flattened(element) for element in reply]
    return reply


class ExitCode(IntEnum):
    """The exit codes, each with one meaning in all subcommands. After a signal it is 128 plus its number."""

    FINE = 0
    FOUND = 1
    """A condition was met: a finding, a reached threshold, keys in several slots."""
    USAGE = 2
    """The command line is wrong, a file in it can't be read, or nobody can be asked for a password."""
    UNKNOWN = 3
    """Nothing was found, but not everything could be judged."""
    SERVER = 4
    """The server can't be reached, refuses something required, or its connection is lost for good."""
    OUTPUT = 5
    FAULT = 70
    READER_GONE = 141
    """The output's reader is gone: the code that shells give a program ended by SIGPIPE."""


class RtuiError(Exception):
    """An exception that is shown to the user: a short `title`, `happened`, a `remedy`; all safe to show."""

    exit_code = ExitCode.SERVER

    def __init__(self, title: str, happened: str, remedy: str = "") -> None:
        super().__init__(title, happened, remedy)
        self.title: SafeText = display_text(title)
        self.happened: SafeText = display_text(happened)
        self.remedy: SafeText = display_text(remedy)

    def __str__(self) -> str:
        return f"{self.title}: {self.happened}"


class TargetError(RtuiError):
    """A target, option or profile that can't be understood; repeats nothing of it, since it may contain a password."""

    exit_code = ExitCode.USAGE


class KeyPassphraseError(TargetError):
    """A client key that is encrypted, and whose passphrase is wrong or was not given."""


class ScanRefusedError(RtuiError):
    """A SCAN with a permanent error reply, or a reply that is not a page of keys."""

    def __init__(self, happened: str) -> None:
        super().__init__("The scan can't go on", happened)


class ServerBusyError(RtuiError):
    """The server can't answer for now, such as while a script runs or it loads its data; waiting may help."""

    def __init__(self, happened: str) -> None:
        super().__init__("The server is busy", happened)


class InternalError(RtuiError):
    """A fault of rtui itself; names its place, nothing of the data, and has the exception as its cause."""

    exit_code = ExitCode.FAULT

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        happened = f"a fault of rtui itself ({type(error).__name__}{place})."
        super().__init__("rtui has failed", happened, "Please report it.")
        self.__cause__ = error


class FailureKind(Enum):
    """The kinds of failures to make or keep a connection; the value is a title for the user."""

    NAME = "Unknown host"
    REFUSED = "Connection refused"
    TIMEOUT = "No answer in time"
    UNREACHABLE = "The server can't be reached"
    SOCKET = "The socket can't be used"
    TLS = "TLS failed"
    NOAUTH = "The server requires a password"
    WRONGPASS = "Wrong user or password"
    NOPERM = "The user lacks permissions"
    LOADING = "The server is loading its dataset"
    MASTERDOWN = "The replica has lost its primary"
    PROTECTED = "The server is in protected mode"
    MAX_CLIENTS = "The server has reached maxclients"
    PROTOCOL = "Not a Redis server"
    DATABASE = "The database does not exist"
    SENTINEL = "This is a Sentinel"
    NAMES = "The names of renamed commands can't be used"
    CREDENTIALS = "The password can't be obtained"
    SSH = "The SSH tunnel failed"
    PROXY = "The proxy failed"
    CLUSTER = "The cluster can't be read"
    NO_PRIMARY = "The service has no primary"
    NO_REPLICA = "No replica is available"
    FAILOVER = "The primary has changed"
    LIMIT = "Out of sockets or memory on this machine"
    CLOSED = "The server closed the connection"

    @property
    def is_temporary(self) -> bool:
        """Whether waiting may help, so that even the first connection is tried again."""
        return self in {FailureKind.LOADING, FailureKind.FAILOVER}

    @property
    def is_of_one_server(self) -> bool:
        """Whether another node of the same cluster may answer all the same."""
        return self in {
            FailureKind.NAME,
            FailureKind.REFUSED,
            FailureKind.TIMEOUT,
            FailureKind.UNREACHABLE,
            FailureKind.MASTERDOWN,
            FailureKind.MAX_CLIENTS,
            FailureKind.CLOSED,
            FailureKind.LOADING,
        }


class ConnectFailure(RtuiError):  # noqa: N818 - what happened, not what went wrong in the program
    """A connection that could not be made; `kind` is the general reason, and its title."""

    def __init__(self, kind: FailureKind, happened: str, remedy: str = "") -> None:
        super().__init__(kind.value, happened, remedy)
        self.kind = kind


class ConnectionLost(RtuiError):  # noqa: N818 - what happened, not what went wrong in the program
    """An open connection that is gone; every reply still awaited on it fails with this."""

    def __init__(
        self,
        happened: str,
        remedy: str = "",
        *,
        kind: FailureKind = FailureKind.CLOSED,
        last_error: ServerError | None = None,
    ) -> None:
        super().__init__("Connection lost", happened, remedy)
        self.kind = kind
        self.last_error = last_error
        """The last error that the server sent before it closed the connection, perhaps the reason."""


def fail_quietly(done: asyncio.Future[Any], reason: ConnectionLost) -> None:
    """Fail a future that is not done; its exception counts as retrieved, since the caller may be gone."""
    if not done.done():
        done.set_exception(
            ConnectionLost(reason.happened, reason.remedy, kind=reason.kind, last_error=reason.last_error)
        )
        done.exception()
