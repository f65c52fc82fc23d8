"""The head of a dump: its version and the fields that say which server wrote it, when, and from how much memory.

    REDIS 0011 | FA redis-ver 7.2.5 | FA ctime 1751792310 | FA used-mem 1,500,000 | … | FE first database
    VALKEY 080 | FA valkey-ver 9.1.0 | …

The format: https://github.com/valkey-io/valkey/blob/unstable/src/rdb.h. Dumps before version 7 have no such fields.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from rtui.server.files import reason_of
from rtui.server.wire.errors import ExitCode, RtuiError

HEAD_BYTES: Final = 4_096
"""The fields lie within these; their usual size is 100 bytes."""

CHECKSUM_BYTES: Final = 8
CHECKSUMS_SINCE: Final = 5
"""The first version with a checksum."""

_AUX: Final = 0xFA
_INTEGERS: Final = {0xC0: 1, 0xC1: 2, 0xC2: 4}
"""Strings that are stored as little-endian integers of these sizes."""

_EOF: Final = 0xFF
"""The byte after the last key; from version 5 on, eight bytes of checksum follow."""

_PACKED: Final = {
    b"\x1f\x8b": ("gzip", "gunzip --keep FILE"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -dk FILE"),
    b"\xfd7zXZ": ("xz", "xz -dk FILE"),
    b"BZh": ("bzip2", "bunzip2 -k FILE"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -dk FILE"),
    b"PK\x03\x04": ("zip", "unzip FILE"),
}
"""Beginnings of compressed files: the format, and how it is decompressed."""

_APPEND_ONLY: Final = (
    (re.compile(rb"\*[0-9]+\r\n\$|#TS:"), "It is an append-only file (AOF), which lists commands."),
    (re.compile(rb"file [^\n]+ seq [0-9]+ type "), "It is the manifest of an append-only file (AOF)."),
)
_BASE: Final = "Open its base file (*.base.rdb) if there is one, or a dump: BGSAVE writes one."

MANIFESTS: Final = "*.aof.manifest"
"""The manifest in the folder of an append-only file, appendonlydir."""


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
    is_at_end: bool = False
    """Whether the file ends as dumps do: it is not truncated, and nothing follows."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the head of a file; raises DumpError if it is no dump."""
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                raise DumpError(path, "It is a folder.", _BASE if _holds_aof(path) else "Open a dump in it.")
            if not stat.S_ISREG(mode):
                raise DumpError(path, "It is not a regular file.", "Write the dump into a file, and open that.")
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
                file.seek(max(0, file.seek(0, os.SEEK_END) - CHECKSUM_BYTES - 1))
                tail = file.read()
        except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
            raise DumpError(path, f"The file can't be read: {reason_of(error)}.") from None
        return cls.of(path, head, tail)

    @classmethod
    def of(cls, path: Path, head: bytes, tail: bytes = b"") -> Self:
        """Read the first and the last bytes of a dump; raises DumpError if they are no dump's."""
        if not head:
            raise DumpError(path, "The file is empty.", "The server may have been stopped while it wrote the dump.")
        magic = next((magic for magic in (b"REDIS", b"VALKEY") if head.startswith(magic)), None)
        digits = b"" if magic is None else head[len(magic) : 9]
        if magic is None or len(head) < 9 or not digits.isdigit():
            for mark, (name, how) in _PACKED.items():
                if head.startswith(mark):
                    raise DumpError(path, f"It is compressed by {name}.", f"Decompress it first: {how}.")
            for beginning, happened in _APPEND_ONLY:
                if beginning.match(head):
                    raise DumpError(path, happened, _BASE)
            happened = "It is not a dump: it does not begin with REDIS or VALKEY."
            raise DumpError(path, happened, "Servers write dumps by BGSAVE, as dump.rdb.")
        fields = _fields(head)
        server = next((f"{name} {said}" for name in ("valkey", "redis") if (said := fields.get(f"{name}-ver"))), None)
        version, made_at_s = int(digits), _number(fields.get("ctime"))
        end = tail[: -CHECKSUM_BYTES if version >= CHECKSUMS_SINCE else None][-1:]
        return cls(version, server, made_at_s, _number(fields.get("used-mem")), end == bytes([_EOF]))


def is_dump(path: Path) -> bool:
    """Whether a path is named like a dump, or leads to one or to what people take for one: opening it says what it is.

    A server is never meant by such a path.
    """
    try:
        mode = path.stat().st_mode
        if path.suffix == ".rdb":
            return not stat.S_ISSOCK(mode)
        if stat.S_ISDIR(mode):
            return _holds_aof(path)
        if not stat.S_ISREG(mode):
            return False
        with path.open("rb") as file:
            head = file.read(256)
    except (OSError, ValueError):  # a NUL in a path is a ValueError
        return path.suffix == ".rdb" and len(path.parts) > 1
    if head.startswith((b"REDIS", b"VALKEY")) or any(beginning.match(head) for beginning, _ in _APPEND_ONLY):
        return True
    return ".rdb" in path.suffixes and head.startswith(tuple(_PACKED))


def _holds_aof(folder: Path) -> bool:
    return next(folder.glob(MANIFESTS), None) is not None


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
