"""What can go wrong between rtui, its user and a server: each with a title, what happened and what to try."""

from __future__ import annotations

from enum import StrEnum
from typing import final

from rtui.keyspace.display import SafeText, display_text


class RtuiError(Exception):
    """A failure that the user can read: a short `title`, what `happened`, a `remedy`; all safe to show."""

    def __init__(self, title: str, happened: str, remedy: str = "") -> None:
        super().__init__(title, happened, remedy)
        self.title: SafeText = display_text(title)
        self.happened: SafeText = display_text(happened)
        self.remedy: SafeText = display_text(remedy)

    def __str__(self) -> str:
        return f"{self.title}: {self.happened}"


class TargetError(RtuiError):
    """A target, option or profile that can't be understood; repeats nothing of it, since it may hold a password."""


class FailureKind(StrEnum):
    """Why a connection could not be made or kept."""

    NAME = "name"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    SOCKET = "socket"
    TLS = "tls"
    NOAUTH = "noauth"
    WRONGPASS = "wrongpass"
    NOPERM = "noperm"
    LOADING = "loading"
    MASTERDOWN = "masterdown"
    PROTECTED = "protected"
    MAX_CLIENTS = "max-clients"
    PROTOCOL = "protocol"
    DATABASE = "database"
    SENTINEL = "sentinel"
    LIMIT = "limit"
    CLOSED = "closed"

    @property
    def passes(self) -> bool:
        """Whether waiting may cure it, so that the first connection too is tried again."""
        return self is FailureKind.LOADING


class ConnectFailure(RtuiError):  # noqa: N818 - what happened, not what went wrong in the program
    """A connection that could not be made; `kind` says which step failed."""

    def __init__(self, kind: FailureKind, title: str, happened: str, remedy: str = "") -> None:
        super().__init__(title, happened, remedy)
        self.kind = kind


@final
class ServerError(Exception):
    """An error reply, kept as a value inside lists of replies; `code` is its first word (`NOPERM`) or `ERR`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        head, _, rest = message.partition(" ")
        known = head.isascii() and head.isupper() and head.isalnum()
        self.code: str = head if known else "ERR"
        self._rest = rest if known else message

    @property
    def text(self) -> SafeText:
        """The message without its code, safe to show."""
        return display_text(self._rest)

    def __str__(self) -> str:
        return f"{self.code} {self.text}"


class ConnectionLost(RtuiError):  # noqa: N818 - what happened, not what went wrong in the program
    """A connection that was there and is gone; every reply still awaited on it fails with this."""

    def __init__(
        self,
        happened: str,
        remedy: str = "",
        *,
        kind: FailureKind = FailureKind.CLOSED,
        said: ServerError | None = None,
    ) -> None:
        super().__init__("Connection lost", happened, remedy)
        self.kind = kind
        self.said = said
        """The last error the server sent before it hung up, which may be why."""
