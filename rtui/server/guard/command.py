"""The only thing a lane sends: a command that the closed list admits, already packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, final

from rtui.server.guard.evidence import AbsentKey, Evidence
from rtui.server.guard.spec import Consent, Spec
from rtui.server.guard.table import admits, usage_of

_TOKEN: Final = object()
"""Whoever holds it may make a Command; it never leaves this package."""


class GuardError(ValueError):
    """Something was asked for that is not on the list or beyond its bounds."""


class HiddenBytes(bytes):
    """Bytes that hold a password: sent as they are, shown as dots."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "•••"

    __str__ = __repr__


@final
class Command:
    """One or more requests in the server's own format, checked against the closed list when they were made."""

    __slots__ = ("name", "packed", "redacted", "replies")

    name: str
    """The command in capitals: `MEMORY USAGE`; for several in one write, all of them."""
    packed: bytes
    """What goes over the wire."""
    redacted: bool
    """Whether a password is in it."""
    replies: int
    """How many replies it brings: 1, or the number of requests of a batch."""

    def __init__(self, token: object, name: str, packed: bytes, *, redacted: bool = False, replies: int = 1) -> None:
        if token is not _TOKEN:
            raise GuardError("a Command is made by the builders of the guard only")
        for slot, value in (
            ("name", name),
            ("packed", HiddenBytes(packed) if redacted else packed),
            ("redacted", redacted),
            ("replies", replies),
        ):
            object.__setattr__(self, slot, value)

    def __init_subclass__(cls) -> NoReturn:
        raise GuardError("a Command has no variants")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise GuardError("a Command does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise GuardError("a Command does not change")

    def __reduce__(self) -> NoReturn:
        raise GuardError("a Command does not travel")

    def __repr__(self) -> str:
        return f"<Command {self.name}: replies {self.replies}, bytes {len(self.packed)}>"


def pack(argv: Sequence[bytes]) -> bytes:
    """Write one request as the array of bulk strings that every version reads."""
    parts = [b"*%d\r\n" % len(argv)]
    parts += [b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in argv]
    return b"".join(parts)


def checked(*argv: bytes, consent: Consent | None = None, evidence: Evidence | None = None) -> Command:
    """Make a Command of a command line that the list admits.

    Where it changes something the user has to have agreed; where its cost depends on the value enough has to be known
    of that. GuardError for any other.
    """
    spec = admits(argv)
    if spec is None:
        raise GuardError(refusal(argv))
    if spec.needs_consent and not isinstance(consent, Consent):
        raise GuardError(f"{spec.name} changes something in the server: it takes the user's consent")
    require(spec, evidence, argv[len(spec.words) :])
    return Command(_TOKEN, spec.name, pack(argv), redacted=spec.has_secret)


def require(spec: Spec, evidence: Evidence | None, arguments: Sequence[bytes] = (), keys: int = 1) -> None:
    """Raise GuardError unless enough is known of the value for a command to so many `keys` at once.

    `arguments` is what follows the command's words, the key first; empty where there are several keys.
    """
    if spec.evidence is None:
        return
    if evidence is None or type(evidence) not in (spec.evidence, AbsentKey):
        raise GuardError(f"{spec.name} is not sent unless this is known: {spec.evidence.words}")
    why = evidence.refusal(spec.name, arguments, keys)
    if why:
        raise GuardError(f"{spec.name} is not sent: {why}")


def refusal(argv: Sequence[bytes]) -> str:
    """Say why a command line is refused, without repeating its arguments."""
    usages = usage_of(argv)
    if not usages:
        return "this command is not on the list of what may be sent"
    return "outside the bounds of " + " or ".join(usages)
