"""The head of a dump: its version and the fields that say which server wrote it, when, and from how much memory.

    REDIS 0011 | FA redis-ver 7.2.5 | FA ctime 1751792310 | FA used-mem 1,500,000 | … | FE first database
    VALKEY 080 | FA valkey-ver 9.1.0 | …

The format: https://github.com/valkey-io/valkey/blob/unstable/src/rdb.h. Dumps before version 7 have no such fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from rtui.server.files import reason_of
from rtui.server.wire.errors import ExitCode, RtuiError

HEAD_BYTES: Final = 4_096
"""The fields lie within these; their usual size is 100 bytes."""

_AUX: Final = 0xFA
_INTEGERS: Final = {0xC0: 1, 0xC1: 2, 0xC2: 4}
"""Strings that are stored as little-endian integers of these sizes."""

_OTHER_FILES: Final = (
    (b"\x1f\x8b", "It is compressed by gzip.", "Decompress it first: gunzip --keep FILE."),
    (b"\x28\xb5\x2f\xfd", "It is compressed by zstd.", "Decompress it first: zstd -dk FILE."),
    (b"PK\x03\x04", "It is a zip archive.", "Unpack it first."),
    (b"*", "It is an append-only file (AOF), which lists commands.", "Use a dump: BGSAVE writes one."),
    (
        b"file ",
        "It is the manifest of an append-only file (AOF).",
        "Open the base file that it names, if it is a dump.",
    ),
)
"""Beginnings of files that people take for dumps."""


class DumpError(RtuiError):
    """A dump that can't be read."""

    exit_code = ExitCode.USAGE

    def __init__(self, path: Path, happened: str, remedy: str = "") -> None:
        super().__init__(f"{path.name} can't be opened", happened, remedy)


@dataclass(frozen=True, slots=True)
class DumpHead:
    """What a dump says of itself; None for what it does not say."""

    version: int
    """The version of the format; that of Valkey's own dumps is 80 or more."""
    server: str | None = None
    """`redis 7.2.5` or `valkey 9.1.0`."""
    made_at_s: int | None = None
    """When the dump was begun, in seconds since the epoch."""
    used_memory_bytes: int | None = None
    """What the server took then."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the head of a file; raises DumpError if it is no dump."""
        try:
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
        except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
            raise DumpError(path, f"The file can't be read: {reason_of(error)}.") from None
        return cls.of(path, head)

    @classmethod
    def of(cls, path: Path, head: bytes) -> Self:
        """Read the first bytes of a dump; raises DumpError if they are no dump's."""
        if not head:
            raise DumpError(path, "The file is empty.", "The server may have been stopped while it wrote the dump.")
        magic = next((magic for magic in (b"REDIS", b"VALKEY") if head.startswith(magic)), None)
        digits = b"" if magic is None else head[len(magic) : 9]
        if magic is None or len(head) < 9 or not digits.isdigit():
            for mark, happened, remedy in _OTHER_FILES:
                if head.startswith(mark):
                    raise DumpError(path, happened, remedy)
            raise DumpError(path, "It is not a dump: it does not begin with REDIS or VALKEY.")
        fields = _fields(head)
        server = next((f"{name} {said}" for name in ("valkey", "redis") if (said := fields.get(f"{name}-ver"))), None)
        return cls(int(digits), server, _number(fields.get("ctime")), _number(fields.get("used-mem")))


def is_dump(path: Path) -> bool:
    """Whether a file is named like a dump or begins like one."""
    if not path.is_file():
        return False
    if path.suffix == ".rdb":
        return True
    try:
        with path.open("rb") as file:
            return file.read(6).startswith((b"REDIS", b"VALKEY"))
    except OSError:
        return False


def _fields(head: bytes) -> dict[str, str]:
    """Return the fields before the first database, as far as they lie in `head`."""
    found, at = dict[str, str](), 9
    while at < len(head) and head[at] == _AUX:
        name, at = _string(head, at + 1)
        value, at = _string(head, at)
        if name is None or value is None:
            break
        found[name] = value
    return found


def _string(head: bytes, at: int) -> tuple[str | None, int]:
    """Return a string and the place behind it; None for one that is compressed or not whole."""
    if at >= len(head):
        return None, at
    first = head[at]
    if first in _INTEGERS:
        end = at + 1 + _INTEGERS[first]
        return (str(int.from_bytes(head[at + 1 : end], "little", signed=True)) if end <= len(head) else None), end
    if first >> 6 == 0:
        start, length = at + 1, first
    elif first >> 6 == 1:
        start, length = at + 2, (first & 0x3F) << 8 | int.from_bytes(head[at + 1 : at + 2], "big")
    elif first == 0x80:
        start, length = at + 5, int.from_bytes(head[at + 1 : at + 5], "big")
    else:
        return None, len(head)
    end = start + length
    return (head[start:end].decode("ascii", "replace") if end <= len(head) else None), end


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
