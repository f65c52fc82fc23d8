"""Command, the only thing that a lane sends: one or more requests that the closed list admits, already packed.

A Command comes out of `build_command` here or `build_batch` in `batch`, and nothing else can make one. Both check the
whole command line against the list, with its bounds, and demand the user's consent or the evidence that the entry asks
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, final

from rtui.server.guard.evidence import AbsentKey, Consent, Evidence
from rtui.server.guard.spec import Spec
from rtui.server.guard.table import find_spec, refusal

_TOKEN: Final = object()
"""What the constructor of Command demands; it never leaves this package."""


class GuardError(ValueError):
    """A command that is not on the list, or is beyond its bounds."""


class SecretBytes(bytes):
    """Bytes that hold a password: sent as they are, shown as dots."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "•••"

    __str__ = __repr__


@final
class Command:
    """One or more requests in the Redis protocol, checked against the closed list when they were made; immutable."""

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
            ("packed", SecretBytes(packed) if redacted else packed),
            ("redacted", redacted),
            ("replies", replies),
        ):
            object.__setattr__(self, slot, value)

    def __init_subclass__(cls) -> NoReturn:
        raise GuardError("a Command can't be subclassed")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise GuardError("a Command is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise GuardError("a Command is immutable")

    def __reduce__(self) -> NoReturn:
        raise GuardError("a Command can't be copied or pickled")

    def __repr__(self) -> str:
        return f"<Command {self.name}: replies {self.replies}, bytes {len(self.packed)}>"


def pack(argv: Sequence[bytes]) -> bytes:
    """Write one request as the array of bulk strings that every server version reads."""
    parts = [b"*%d\r\n" % len(argv)]
    parts += [b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in argv]
    return b"".join(parts)


def build_command(*argv: bytes, consent: Consent | None = None, evidence: Evidence | None = None) -> Command:
    """Make a Command of one command line; raises GuardError unless the list admits it.

    A command that changes something in the server takes the user's consent; one whose cost depends on the value takes
    the evidence that it is cheap.
    """
    spec = find_spec(argv)
    if spec is None:
        raise GuardError(refusal(argv))
    if spec.needs_consent and not isinstance(consent, Consent):
        raise GuardError(f"{spec.name} changes something in the server: it takes the user's consent")
    require_evidence(spec, evidence, argv[len(spec.words) :])
    return Command(_TOKEN, spec.name, pack(argv), redacted=spec.has_secret)


def require_evidence(spec: Spec, evidence: Evidence | None, arguments: Sequence[bytes] = (), keys: int = 1) -> None:
    """Raise GuardError unless enough is known of the value to send a command for so many `keys` at once.

    `arguments` is what follows the command's words, the key first; empty where there are several keys.
    """
    if spec.evidence is None:
        return
    if evidence is None or type(evidence) not in (spec.evidence, AbsentKey):
        raise GuardError(f"{spec.name} is not sent unless this is known: {spec.evidence.words}")
    why = evidence.refusal(spec.name, arguments, keys)
    if why:
        raise GuardError(f"{spec.name} is not sent: {why}")
