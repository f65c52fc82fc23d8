"""What can go wrong between rtui, its user and a server: each with a title, what happened and what to try."""

from __future__ import annotations

import traceback
from enum import StrEnum
from pathlib import PurePath
from typing import final

from rtui.keyspace.text.display import SafeText, display_text


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


class ScanRefusedError(RtuiError):
    """A SCAN that the server answered with an error that stays, or with something that is no page of keys."""

    def __init__(self, happened: str) -> None:
        super().__init__("The scan can't go on", happened)


class ServerBusyError(RtuiError):
    """The server can't answer just now, such as while a script runs or its data is loaded; waiting may cure it."""

    def __init__(self, happened: str) -> None:
        super().__init__("The server is busy", happened)


class InternalError(RtuiError):
    """A fault of rtui itself; says where it was, nothing of the data, and holds the exception as its cause."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("rtui has failed", f"{fault_text(error)}.", "Please report it.")
        self.__cause__ = error


def fault_text(error: BaseException) -> SafeText:
    """Say which exception nobody foresaw, and where: `a fault of rtui itself (KeyError at store.py:171)`."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return display_text(f"a fault of rtui itself ({type(error).__name__}{place})")


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

    @property
    def refuses_user(self) -> bool:
        """Whether the server is there and turns this user away, so that waiting alone cures nothing."""
        return self in {
            FailureKind.NOAUTH,
            FailureKind.WRONGPASS,
            FailureKind.NOPERM,
            FailureKind.PROTECTED,
            FailureKind.DATABASE,
        }


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
    def denies_command(self) -> bool:
        """Whether the user may not run this command at all, whatever the key: the server logs every such try."""
        return self.code == "NOPERM" and "to run the" in self._rest.lower()

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
