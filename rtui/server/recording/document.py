"""The file of a recorded session: a header and events as lines of JSON (`rtui/analysis/formats/samples.py`).

It is gzipped if its name ends in `.gz`. An event is an `Exchange` (a command and its reply), an input (`Key`, `Mouse`,
`Paste`, `Resize`), the `Cursor` position in the tree, or the `End`. Bytes are written as strings of one character per
byte (Latin-1), so that names can be read with any pager:

    {"kind":"exchange","at":12.5,"took":0.3,"db":0,"command":["PTTL","user:1"],"reply":-1}

A reply is a string, a whole number, null, a boolean, a list, or an object with one field: `error`, `double`, or `map`
(a flat list). Files may come from anywhere, so sizes, times and nesting are limited. The session ends before the first
line that can't be read or is cut off.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from rtui.analysis.formats.samples import EVENT_SCHEMA, EventHeader
from rtui.keyspace.text.display import display_text
from rtui.server.files import reason_of
from rtui.server.wire.errors import ExitCode, Reply, RtuiError, ServerError

MAX_FILE_BYTES: Final = 64 << 20
"""Uncompressed size at which a recording ends; longer files are read up to here."""

MAX_LINES: Final = 1_000_000
"""The most lines read."""

MAX_DEPTH: Final = 16
"""The deepest nesting of replies; those of permitted commands have a few levels."""

MAX_TIME_MS: Final = 7 * 86_400_000.0
"""The longest session: a week."""

Milliseconds: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_TIME_MS)]
Cells: TypeAlias = Annotated[int, Meta(ge=1, le=1000)]
Place: TypeAlias = Annotated[int, Meta(ge=-1000, le=1000)]
EndReason: TypeAlias = Literal["left", "size", "server", "cluster", "slow"]
Name: TypeAlias = Annotated[str, Meta(max_length=64)]


class Header(EventHeader, frozen=True, kw_only=True):
    """The state at the beginning of the session."""

    format: Literal["rtui recording"] = "rtui recording"
    schema: Literal[2] = EVENT_SCHEMA
    seed: Annotated[int, Meta(ge=0, lt=1 << 62)]
    """The seed of the session's random choices."""
    server: Annotated[str, Meta(max_length=300)]
    """The server's name in the title bar."""
    db: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0
    protocol: Literal[2, 3] | None = None
    separators: Annotated[list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(min_length=1, max_length=64)]
    match: Annotated[str, Meta(max_length=1024)] | None = None
    key_type: Annotated[str, Meta(max_length=64)] | None = None
    pace: Literal["gentle", "normal", "full"] = "gentle"
    columns: Annotated[str, Meta(max_length=200)] | None = None
    ascii: bool = False
    no_color: bool = False
    width: Cells
    height: Cells
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    """The user's settings, as in settings.toml."""
    registry: Annotated[str, Meta(max_length=4 << 20)] | None = None
    """The text of the registry if it is a single file."""


class Exchange(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="exchange"):
    """A command and its reply."""

    at: Milliseconds
    took: Milliseconds
    db: Annotated[int, Meta(ge=0, lt=1 << 31)]
    command: Annotated[list[str], Meta(min_length=1, max_length=1000)]
    reply: Any


class Key(msgspec.Struct, frozen=True, tag_field="kind", tag="key"):
    """A keypress."""

    at: Milliseconds
    key: Name
    character: Annotated[str, Meta(max_length=16)] | None = None


class Mouse(msgspec.Struct, frozen=True, tag_field="kind", tag="mouse"):
    """A mouse event."""

    at: Milliseconds
    what: Literal["down", "up", "scroll_down", "scroll_up", "scroll_left", "scroll_right"]
    x: Place
    y: Place
    button: Annotated[int, Meta(ge=0, le=32)] = 0
    shift: bool = False
    meta: bool = False
    ctrl: bool = False


class Paste(msgspec.Struct, frozen=True, tag_field="kind", tag="paste"):
    """Pasted text."""

    at: Milliseconds
    text: Annotated[str, Meta(max_length=1 << 20)]


class Cursor(msgspec.Struct, frozen=True, tag_field="kind", tag="cursor"):
    """The row of the tree with the cursor from now on; in a replay stand-ins may be sorted in another order."""

    at: Milliseconds
    is_key: bool
    """Whether the row is a key, not a namespace."""
    name: Annotated[str, Meta(max_length=1 << 16)]


class Resize(msgspec.Struct, frozen=True, tag_field="kind", tag="resize"):
    """A new size of the terminal, in cells."""

    at: Milliseconds
    width: Cells
    height: Cells


class End(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """The end of the recording."""

    at: Milliseconds
    why: EndReason
    """The session ended, the file reached its limit, another server was chosen, or writing was too slow."""


Input: TypeAlias = Key | Mouse | Paste | Cursor | Resize
Line: TypeAlias = Exchange | Key | Mouse | Paste | Cursor | Resize | End


class RecordingError(RtuiError):
    """A file that holds no recorded session."""

    exit_code = ExitCode.USAGE

    def __init__(self, happened: str) -> None:
        super().__init__("The recording can't be played", happened, "rtui --record FILE creates one.")


@dataclass(slots=True)
class Recording:
    """A recorded session."""

    header: Header
    exchanges: list[Exchange] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    end: End | None = None
    """None for a file that is cut off."""

    @property
    def size(self) -> tuple[int, int]:
        first = self.inputs[0] if self.inputs else None
        return (first.width, first.height) if isinstance(first, Resize) else (self.header.width, self.header.height)

    @property
    def length_ms(self) -> float:
        """The time of the last event, in milliseconds."""
        last = [lines[-1].at for lines in (self.inputs, self.exchanges) if lines]
        return max([*last, *([] if self.end is None else [self.end.at])], default=0.0)


_HEADER: Final = msgspec.json.Decoder(Header)
_LINE: Final = msgspec.json.Decoder(Line)


def read_recording(path: Path) -> Recording:
    """Read the readable part of a file; raises RecordingError for an unreadable header or a recording of a cluster."""
    lines = _lines(path)
    try:
        header = _HEADER.decode(next(lines))
    except StopIteration:
        raise RecordingError("The file is empty.") from None
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise RecordingError("Its first line is not that of a recorded session of this version.") from None
    recording = Recording(header)
    latest_ms = 0.0
    for count, text in enumerate(lines):
        if count >= MAX_LINES or recording.end is not None:
            break
        try:
            line = _LINE.decode(text)
            if isinstance(line, Exchange):
                reply_of(line.reply)
                for word in line.command:
                    word.encode("latin-1")
        except (msgspec.DecodeError, ValueError, RecursionError):
            break
        if not isinstance(line, Exchange) and line.at < latest_ms:
            break
        if isinstance(line, Exchange):
            recording.exchanges.append(line)
        elif isinstance(line, End):
            if line.why == "cluster":
                raise RecordingError("It was begun on a cluster, of which nothing is recorded.")
            recording.end = line
        else:
            recording.inputs.append(line)
            latest_ms = line.at
    recording.exchanges.sort(key=lambda one: one.at)
    return recording


def _lines(path: Path) -> Iterator[bytes]:
    """Yield complete lines, at most MAX_FILE_BYTES of them; raises RecordingError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)[:MAX_FILE_BYTES]
    except (OSError, ValueError) as error:
        raise RecordingError(f"The file can't be read: {display_text(reason_of(error))}.") from None
    if data[:2] == b"\x1f\x8b":
        data = _decompress(data)
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        yield data[at:end]
        at = end + 1


def _decompress(data: bytes) -> bytes:
    """Decompress a file that may be cut off or damaged as far as possible, up to MAX_FILE_BYTES."""
    out, decompressor = bytearray(), zlib.decompressobj(31)
    for start in range(0, len(data), 4096):
        piece = data[start : start + 4096]
        while piece and len(out) < MAX_FILE_BYTES:
            try:
                out += decompressor.decompress(piece, MAX_FILE_BYTES - len(out))
            except zlib.error:
                return bytes(out)
            piece = decompressor.unconsumed_tail
    return bytes(out)


def as_json(reply: object) -> object:
    """Return a reply as JSON values."""
    if isinstance(reply, bytes):
        return reply.decode("latin-1")
    if isinstance(reply, list | tuple | set):
        return [as_json(element) for element in reply]
    if isinstance(reply, ServerError):
        return {"error": str(reply.args[0]).encode("utf-8", "replace").decode("latin-1")}
    if isinstance(reply, float):
        return {"double": repr(reply)}
    if isinstance(reply, dict):
        return {"map": [as_json(element) for pair in reply.items() for element in pair]}
    return reply


def reply_of(written: object, depth: int = 0) -> Reply:
    """Return the reply of JSON values; raises ValueError for any that don't represent one."""
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(written, list):
        return [reply_of(element, depth + 1) for element in written]
    if isinstance(written, dict) and len(written) == 1:
        ((kind, content),) = written.items()
        return _object_reply(str(kind), content, depth)
    if isinstance(written, str):
        return written.encode("latin-1")
    if isinstance(written, int | None) and (written is None or -(1 << 63) <= written < 1 << 63):
        return written
    raise ValueError("no reply")


def _object_reply(kind: str, content: object, depth: int) -> Reply:
    """Return a reply that is written as an object; raises ValueError."""
    if kind == "error" and isinstance(content, str):
        return ServerError(content.encode("latin-1").decode("utf-8", "replace"))
    if kind == "double" and isinstance(content, str) and len(content) <= 32:
        number = float(content)
        return 0.0 if math.isnan(number) else number
    if kind == "map" and isinstance(content, list) and len(content) % 2 == 0:
        flat = [reply_of(element, depth + 1) for element in content]
        return dict(zip(map(_hashable, flat[::2]), flat[1::2], strict=True))
    raise ValueError("no reply")


def _hashable(name: Reply) -> Reply:
    if isinstance(name, list | dict):
        raise ValueError("no name")
    return name
