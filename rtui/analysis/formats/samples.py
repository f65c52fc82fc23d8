"""Samples of servers as a file: a header and lines of JSON.

Recorded sessions are such a file, too: lines are written as things happen, so that a file that is cut off can be read
up to there. The header says what the file is; each line after it is an event: its `kind`, and `at`, when it was, in
milliseconds since the file began.

    {"format":"rtui samples","schema":2,"rtui":"0.2.0","began_ms":1790000000000,"server":"10.0.0.5:6379"}
    {"kind":"sample","at":5012,"node":"10.0.0.5:6379", …}

A line has what was asked for that sample alone (`sources`): what other sources said before stays as it was, and is put
back when the file is read. Bytes (addresses, names of clients, arguments) are written as in reports: readable UTF-8 as
it is, any other byte as `\\xNN`.

A file comes from anywhere: its texts are made safe, its size has a limit, and the first line that can't be read ends
it. Of more samples than a history holds, those in between are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from rtui import __version__
from rtui.analysis.formats.json import json_value
from rtui.analysis.health.possible import with_possible
from rtui.analysis.health.sample import Sample, SampleHistory, only_new, with_earlier
from rtui.analysis.report.members import Name
from rtui.keyspace.text.display import display_text, unescape

EVENT_SCHEMA: Final = 2


class EventHeader(Struct, frozen=True, kw_only=True):
    """The first line of every such file."""

    format: str
    """The kind of file: `rtui samples`, `rtui recording`."""
    schema: int = EVENT_SCHEMA
    rtui: Annotated[str, Meta(max_length=64)]
    began_ms: Annotated[float, Meta(ge=0, le=1e14)]
    """Milliseconds since the epoch."""


def event_line(event: Struct | dict[str, Any]) -> bytes:
    return msgspec.json.encode(event) + b"\n"


FORMAT: Final = "rtui samples"
KIND: Final = "sample"
MAX_LINE_BYTES: Final = 8 << 20
MAX_TEXT: Final = 4096
MAX_NODES: Final = 2_000


class SamplesHeader(EventHeader, frozen=True, kw_only=True):
    """The first line of a file of samples."""

    format: Literal["rtui samples"] = FORMAT
    schema: Literal[2] = EVENT_SCHEMA
    rtui: Annotated[str, msgspec.Meta(max_length=64)] = __version__
    began_ms: Annotated[int, msgspec.Meta(ge=0, le=10**14)]
    server: str
    """The target: `host:port`."""
    masked: bool = False
    """Whether addresses of clients are stand-ins."""


class _Event(msgspec.Struct):
    """The members of each line."""

    kind: str
    at: int


class SamplesFormatError(ValueError):
    """The file is no file of samples; the text says why, a sentence without a full stop."""


@dataclass(frozen=True, slots=True)
class SamplesFile:
    """The samples of a file."""

    header: SamplesHeader
    nodes: dict[str, tuple[Sample, ...]]
    """By node; oldest first, as complete as when they were written."""
    left_out: int = 0
    unread: int = 0
    """The number of the line that could not be read, where the rest is missing; 0 for none."""


def header_line(header: SamplesHeader) -> str:
    return event_line(header).decode()


def sample_line(sample: Sample, header: SamplesHeader) -> str:
    plain = msgspec.to_builtins(only_new(sample), builtin_types=(bytes,), str_keys=True)
    told = {name: json_value(value) for name, value in plain.items() if value and name != "at_ms"}
    return event_line({"kind": KIND, "at": sample.at_ms - header.began_ms, **told}).decode()


def is_samples(beginning: bytes) -> bool:
    return beginning.lstrip().startswith(f'{{"format":"{FORMAT}"'.encode())


def read_samples(lines: Iterable[bytes]) -> SamplesFile:
    """Read the lines of a file; raises SamplesFormatError where the first is no header."""
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (1, b""))
    try:
        header = msgspec.convert(_safe(msgspec.json.decode(first)), SamplesHeader)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SamplesFormatError(f"not a file of samples: {display_text(str(error), limit=100)}") from None
    histories: dict[str, SampleHistory] = {}
    latest: dict[str, Sample] = {}
    unread = 0
    for number, line in numbered:
        try:
            sample = _sample(line, header)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            unread = number
            break
        if sample is None:
            continue
        node = sample.node
        if node in latest:
            sample = with_earlier(sample, latest[node])
        elif len(latest) >= MAX_NODES:
            continue
        latest[node] = sample
        histories.setdefault(node, SampleHistory()).add(sample)
    nodes = {node: one.samples for node, one in histories.items()}
    return SamplesFile(header, nodes, sum(one.left_out for one in histories.values()), unread)


def _sample(line: bytes, header: SamplesHeader) -> Sample | None:
    """Read the sample on a line; None for an event of another kind."""
    if len(line) > MAX_LINE_BYTES:
        raise SamplesFormatError("a line is too long")
    found = _safe(msgspec.json.decode(line))
    event = msgspec.convert(found, _Event)
    if event.kind != KIND:
        return None
    found["at_ms"] = header.began_ms + event.at
    return with_possible(msgspec.convert(found, Sample, str_keys=True, dec_hook=_read))


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return display_text(value, limit=MAX_TEXT)
    if isinstance(value, list):
        return [_safe(one) for one in value]
    if isinstance(value, dict):
        return {display_text(name, limit=MAX_TEXT): _safe(one) for name, one in value.items()}
    return value


def _read(wanted: type, value: Any) -> Any:
    if wanted is Name and isinstance(value, str):
        return unescape(value.encode("utf-8", "surrogateescape"))
    return value


class Masker:
    """Puts stand-ins in the place of addresses of clients, the same for the same address, and leaves ids out."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def masked(self, sample: Sample) -> Sample:
        logs: dict[str, Any] = {
            name: tuple(replace(one, address=self._stand_in(one.address)) for one in getattr(sample, name))
            for name in ("slow", "large_requests", "large_replies")
        }
        clients = tuple(replace(one, id=None, address=self._stand_in(one.address)) for one in sample.clients)
        return replace(sample, clients=clients, **logs)

    def _stand_in(self, address: bytes) -> bytes:
        return self._known.setdefault(address, b"client-%d" % (len(self._known) + 1)) if address else b""
