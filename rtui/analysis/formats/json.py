"""A report as JSON: writing it, reading it back, and its JSON Schema.

The file is one object, in ASCII: `"format": "rtui report"`, `"schema"`, the version of what follows, and the members
`head`, `summary`, `hot`, `keysizes`, `cluster` (its nodes, null for a server alone) and `findings`.
`report.schema.json`, beside this module, describes it for programs; it is generated from the Structs of
`report/document.py`, which also validate what is read.

* Units are in the names: `memory_bytes`, `ttl_ms`, `idle_s`, `made_at_s` (seconds since the epoch), `share_of_keys`
  (0 … 1). A member called `keys` is a number of keys, and a list of them in the lists of keys.
* A number is exact; or in a partial report (`head.coverage.kind`) at least so much, if it is a count or a sum. An
  estimate is an object with its 95 % interval: `"keys": {"low": 1100, "value": 1200, "high": 1300}`; a `high` that is
  not known is left out.
* What is not known is null. Why is in `head.columns`, by fact: `{"memory": {"state": "denied", "reason": …}}`.
* Names are bytes, written as `redis-cli --quoted-input` takes them between double quotes: readable UTF-8 as it is, then
  `\\"`, `\\\\`, `\\n`, `\\r`, `\\t`, and `\\xNN` for any other byte.
* `summary.namespaces` is a flat list, each namespace before those below it, with its `depth`; the first is the whole
  keyspace, depth 0. `kind` tells a pattern such as `<id>` from a segment of that name.
* `ttl_keys`, `idle_keys` and `frequency_keys` are histograms between the borders that `histograms` names: one item more
  than borders, each for what is below its border and not below the one before.
* `ttl_ms` of a key is -1 where it does not expire.

A reader ignores members that it does not know; `schema` grows with every change that an older reader would misread.
A file may be compressed with gzip, as those are that rtui keeps itself.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from rtui.analysis.estimates import as_estimate
from rtui.analysis.findings.contents import findings
from rtui.analysis.findings.finding import Amount, Finding
from rtui.analysis.report.document import (
    ClusterReport,
    Head,
    HotReport,
    KeySizes,
    Node,
    NodeKind,
    Report,
    Stats,
    Summary,
    SummaryLists,
)
from rtui.analysis.report.members import (
    FREQUENCY_EDGES,
    IDLE_EDGES_S,
    LENGTH_EDGES,
    TTL_EDGES_S,
    Count,
    Figure,
    Name,
    Number,
    SlotCounts,
    Text,
)
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import EscapeSyntaxError, display, display_text, is_hidden, quoted, unescape
from rtui.keyspace.text.identifiers import from_braces
from rtui.registry.patterns import in_angles
from rtui.registry.rules import Severity

REPORT_FORMAT: Final = "rtui report"
SCHEMA: Final = 3

OLDEST_SCHEMA: Final = 2
"""The oldest version that is read. Before 3, the placeholders of patterns were in braces: `{id}`."""

LARGEST_FILE_BYTES: Final = 256 * 1024 * 1024
"""No file above this is read: a report of the largest budget of nodes is far below."""

DEEPEST: Final = 400
"""Levels of namespaces that are read: more than any name has, few enough for every way through the tree."""

TEXT_LIMIT: Final = 4096
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_GZIP: Final = b"\x1f\x8b"
_LABEL_BYTES: Final = 512
_OPEN_LEVELS: Final = 3


class ReportFormatError(ValueError):
    """A file that is no report this version can read; the message is a safe sentence without a full stop."""


class NamespaceEntry(Struct, frozen=True, kw_only=True):
    """A namespace or key pattern, without those below it."""

    depth: Annotated[int, Meta(ge=0, le=DEEPEST)]
    namespace: Text = ""
    """How its keys begin, for people: cut where it is very long, and not read back."""
    segment: Name
    separator: Name
    kind: NodeKind
    distinct_names: Count | None = None
    """At least so many different segments."""
    distinct: Figure | None = None
    """How many different segments a pattern stands for."""
    holds_names: bool = False
    """Whether `<id>` stands for names, too, since their number grows with the keys."""
    examples: tuple[Name, ...] = ()
    stats: Stats


class FileSummary(SummaryLists, frozen=True):
    """What the inspected keys add up to, the tree of namespaces as a flat list."""

    namespaces: tuple[NamespaceEntry, ...]


class FindingEntry(Struct, frozen=True, kw_only=True):
    """What a rule, by its default parameters, finds in one place. It follows from the report and is not read back."""

    rule: Text
    severity: Text
    title: Text
    """A sentence without a full stop."""
    where: Text
    keys: Figure
    keys_at_least: bool = False
    memory_bytes: Figure | None = None
    memory_at_least: bool = False
    query: Text
    """The query that finds these keys; empty where it is longer than a text may be."""
    command: Text
    """A line for a shell to look further with redis-cli; empty likewise."""


class FileContents(Struct, frozen=True):
    """An analysis of a keyspace by rtui."""

    format: Literal["rtui report"]
    schema: Annotated[int, Meta(ge=SCHEMA, le=SCHEMA)]
    head: Head
    summary: FileSummary
    histograms: dict[str, tuple[int, ...]] = {}
    hot: HotReport = HotReport()
    keysizes: tuple[KeySizes, ...] = ()
    cluster: ClusterReport | None = None
    findings: tuple[FindingEntry, ...] = ()
    """What is wrong, errors first, then the most costly."""


class KeysHead(Struct, frozen=True):
    """What a file of keys says of them: the report of their pass, without its figures."""

    format: Literal["rtui keys"]
    schema: Annotated[int, Meta(ge=1, le=1)]
    rows: Count
    began_at_s: Number
    """When the pass began, in seconds since the epoch."""
    head: Head
    hot: HotReport = HotReport()
    keysizes: tuple[KeySizes, ...] = ()
    cluster: ClusterReport | None = None


class _Preamble(Struct):
    """What a file of any version begins with."""

    format: Any = None
    schema: Any = None
    error: Any = None


class _NamespacesUnread(Struct):
    """The list of namespaces, none of them read."""

    namespaces: tuple[msgspec.Raw, ...]


class _FindingSeverity(Struct):
    """A finding of which only that is read."""

    severity: str


class _HeadlineUnread(Struct):
    """The members of a file that a list of reports needs."""

    head: Head
    summary: _NamespacesUnread
    findings: tuple[_FindingSeverity, ...] | None = None


class Headline(Struct, frozen=True):
    """An entry of a list of reports."""

    head: Head
    stats: Stats
    """Of the whole keyspace."""
    findings: dict[Severity, int] | None
    """How many are listed of each severity, by the rules' defaults; None where the file was written without any."""


_HISTOGRAMS: Final = {
    "ttl_edges_s": TTL_EDGES_S,
    "idle_edges_s": IDLE_EDGES_S,
    "frequency_edges": FREQUENCY_EDGES,
    "length_edges": LENGTH_EDGES,
}


def document(report: Report) -> dict[str, Any]:
    lists = {name: getattr(report.summary, name) for name in SummaryLists.__struct_fields__}
    summary = FileSummary(tuple(_namespaces(report.summary.root)), **lists)
    found = tuple(_finding(one, one.keys) for one in findings(report).findings if one.keys is not None)
    file = FileContents(
        REPORT_FORMAT, SCHEMA, report.head, summary, _HISTOGRAMS, report.hot, report.keysizes, report.cluster, found
    )
    contents: dict[str, Any] = json_value(msgspec.to_builtins(file, builtin_types=(bytes,), enc_hook=list))
    return contents


def _finding(one: Finding, keys: Amount) -> FindingEntry:
    return FindingEntry(
        rule=one.rule,
        severity=one.severity.value,
        title=one.title[:TEXT_LIMIT],
        where=one.where[:TEXT_LIMIT],
        keys=keys.figure,
        keys_at_least=keys.at_least,
        memory_bytes=None if one.memory is None else one.memory.figure,
        memory_at_least=one.memory is not None and one.memory.at_least,
        query=_whole_or_nothing(one.query),
        command=_whole_or_nothing(one.command),
    )


def _whole_or_nothing(text: str) -> str:
    """Return a text that can be typed, or nothing if it is too long: cut, it would mean something else."""
    return text if len(text) <= TEXT_LIMIT else ""


def write_json(report: Report) -> str:
    """Return the file, in ASCII, an item of a long list a line; it ends with a line feed."""
    return "".join(_lines(document(report), 0)) + "\n"


def read_json(text: str | bytes) -> Report:
    """Raises ReportFormatError with fault and place. Nothing in the file is trusted: types, sizes, numbers, texts."""
    text = _unpacked(text)
    try:
        if _version(text) < SCHEMA:
            text = json.dumps(_with_angles(msgspec.json.decode(text)))
        file = msgspec.json.decode(text, type=FileContents, dec_hook=_read)
        return Report(file.head, _summary(file.summary), file.hot, file.keysizes, file.cluster)
    except RecursionError as error:
        raise ReportFormatError("The file is nested too deep for a report") from error
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise ReportFormatError(f"The file is not UTF-8 (byte {error.start:,})") from error
    except msgspec.ValidationError as error:
        raise ReportFormatError(_sentence(str(error))) from error
    except msgspec.DecodeError as error:
        _check_utf8(text)
        raise ReportFormatError(f"The file is not JSON: {display_text(str(error), limit=100)}") from error


def write_keys_head(head: KeysHead) -> str:
    return json.dumps(json_value(msgspec.to_builtins(head, builtin_types=(bytes,), enc_hook=list)))


def read_keys_head(text: str) -> KeysHead:
    """Read it; raises ReportFormatError. Nothing in it is trusted."""
    try:
        return msgspec.json.decode(text, type=KeysHead, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise ReportFormatError(_sentence(str(error))) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ReportFormatError(f"They are not JSON: {display_text(str(error), limit=100)}") from error


def read_headline(text: bytes) -> Headline:
    """Return the entry of a report in a list, a fraction of the work of `read_json`; raises ReportFormatError."""
    data = _unpacked(text)
    try:
        _version(data)
        found = msgspec.json.decode(data, type=_HeadlineUnread, dec_hook=_read)
        if not found.summary.namespaces:
            raise ReportFormatError("summary.namespaces has no item for the whole keyspace")
        whole = msgspec.json.decode(found.summary.namespaces[0], type=NamespaceEntry, dec_hook=_read)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ReportFormatError(f"The file can't be read: {display_text(str(error), limit=100)}") from error
    counts = None
    if found.findings is not None:
        severities = Counter(one.severity for one in found.findings)
        counts = {severity: severities[severity] for severity in (Severity.ERROR, Severity.WARN)}
    return Headline(found.head, whole.stats, counts)


def _unpacked(text: str | bytes) -> str | bytes:
    """Return a file without its compression and its byte order mark, which PowerShell writes, UTF-16 as UTF-8.

    Raises ReportFormatError where it is larger than any report.
    """
    if isinstance(text, bytes) and text.startswith(_GZIP):
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            text = unpacking.decompress(text, LARGEST_FILE_BYTES + 1)
        except zlib.error as error:
            raise ReportFormatError("The file is compressed, but damaged") from error
        if not unpacking.eof and len(text) <= LARGEST_FILE_BYTES:
            raise ReportFormatError("The file is compressed, but its end is missing")
    if len(text) > LARGEST_FILE_BYTES:
        raise ReportFormatError(f"The file is larger than {LARGEST_FILE_BYTES // 1024**2} MiB, no report is")
    if isinstance(text, bytes) and text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with suppress(UnicodeError):
            return text.decode("utf-16").encode()
    return text.removeprefix(codecs.BOM_UTF8) if isinstance(text, bytes) else text.removeprefix("\ufeff")


def name_text(name: bytes) -> str:
    r"""Return bytes as text without loss: readable UTF-8 as it is, all else as `\xNN` and the like (see above)."""
    if name.isascii():
        return quoted(name)[1:-1]
    pieces = []
    for character in name.decode("utf-8", "surrogateescape"):
        raw = character.encode("utf-8", "surrogateescape")
        pieces.append(quoted(raw)[1:-1] if character.isascii() or is_hidden(character) else character)
    return "".join(pieces)


def json_value(value: Any) -> Any:
    """Return a value of `to_builtins` as JSON has it: bytes as the text of a name, without bounds that are infinite."""
    if isinstance(value, dict):
        if value.get("high") == inf:
            del value["high"]
        return {
            name_text(name) if isinstance(name, bytes) else name: one if type(one) in _PLAIN else json_value(one)
            for name, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [one if type(one) in _PLAIN else json_value(one) for one in value]
    return name_text(value) if isinstance(value, bytes) else value


def _lines(value: Any, level: int) -> Iterator[str]:
    """Yield the text of a value: the outer levels a member a line, lists of objects an item a line."""
    pad = " " * (level + 1)
    if isinstance(value, dict) and value and level < _OPEN_LEVELS:
        before = "{\n"
        for name, one in value.items():
            yield f"{before}{pad}{json.dumps(name)}: "
            yield from _lines(one, level + 1)
            before = ",\n"
        yield f"\n{pad[1:]}}}"
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield "[\n" + pad
        yield f",\n{pad}".join(json.dumps(one, allow_nan=False) for one in value)
        yield f"\n{pad[1:]}]"
    else:
        yield json.dumps(value, allow_nan=False)


def _namespaces(root: Node) -> Iterator[NamespaceEntry]:
    waiting = [(root, 0, b"")]
    while waiting:
        node, depth, before = waiting.pop()
        label = (before + node.shown + node.separator)[:_LABEL_BYTES]
        yield NamespaceEntry(
            depth=depth,
            namespace=display(label),
            segment=node.name,
            separator=node.separator,
            kind=node.kind,
            distinct_names=None if node.distinct is None else int(as_estimate(node.distinct).low),
            distinct=node.distinct,
            holds_names=node.holds_names,
            examples=node.examples,
            stats=node.stats,
        )
        waiting.extend((child, depth + 1, label) for child in reversed(node.children))


def _summary(found: FileSummary) -> Summary:
    """Build the tree of the flat list, the last node first, so that each finds its children made."""
    depth = -1
    for at, one in enumerate(found.namespaces):
        if one.depth > depth + 1 or (one.depth == 0) != (at == 0):
            raise ReportFormatError(f"summary.namespaces[{at}].depth does not follow from the one before")
        depth = one.depth
    if not found.namespaces:
        raise ReportFormatError("summary.namespaces has no item for the whole keyspace")
    waiting: dict[int, list[Node]] = {}
    for one in reversed(found.namespaces):
        children = tuple(reversed(waiting.pop(one.depth + 1, [])))
        distinct = one.distinct_names if one.distinct is None else one.distinct
        step = one.segment, one.separator, one.kind
        node = Node(*step, one.stats, children, distinct, holds_names=one.holds_names, examples=one.examples)
        waiting.setdefault(one.depth, []).append(node)
    return Summary(waiting[0][0], **{name: getattr(found, name) for name in SummaryLists.__struct_fields__})


def _with_angles(file: Any) -> Any:
    """Return a file of an earlier version with its placeholders as they are today; what has another form stays."""

    def each(*path: str, of: Any = file) -> Iterator[dict[str, Any]]:
        for name in path:
            of = of.get(name) if isinstance(of, dict) else None
        yield from (one for one in (of if isinstance(of, list) else ()) if isinstance(one, dict))

    def change(one: Any, name: Any, by: Callable[[str], str]) -> None:
        if isinstance(one[name], str):
            one[name] = by(one[name])

    for one in each("summary", "namespaces"):
        if one.get("kind") == NodeKind.PATTERN and "segment" in one:
            change(one, "segment", _segment_with_angles)
    for one in (*each("summary", "expiry", "timelines"), *each("summary", "expiry", "cliffs")):
        if "label" in one:
            change(one, "label", in_angles)
        path = one.get("path")
        for at in range(len(path) if isinstance(path, list) else 0):
            change(path, at, _segment_with_angles)
    for entry in each("summary", "registry", "entries"):
        if "pattern" in entry:
            change(entry, "pattern", in_angles)
    for rule in each("summary", "naming", "rules"):
        for place in each("places", of=rule):
            if "pattern" in place:
                change(place, "pattern", in_angles)
    if isinstance(file, dict):
        file["schema"] = SCHEMA
    return file


def _segment_with_angles(text: str) -> str:
    try:
        return name_text(from_braces(unescape(f'"{text}"'.encode())))
    except EscapeSyntaxError:
        return text


def _version(text: str | bytes) -> int:
    """Return the version of a file; raises ReportFormatError for one of another format, or that is not read."""
    try:
        found = msgspec.json.decode(text, type=_Preamble)
    except msgspec.ValidationError as error:
        if "out of range" in str(error):
            raise ReportFormatError("The file holds a number of far too many digits") from error
        found = _Preamble()
    if found.format != REPORT_FORMAT:
        raise ReportFormatError(f'This is not a report of rtui: it has no "format": "{REPORT_FORMAT}"')
    if isinstance(found.error, dict):
        raise ReportFormatError(f"No report was made: {display_text(str(found.error.get('happened')), limit=400)}")
    if not isinstance(found.schema, int) or isinstance(found.schema, bool) or found.schema < 1:
        raise ReportFormatError('The report does not say which version it is: "schema" should be a whole number')
    if found.schema > SCHEMA:
        raise ReportFormatError(
            f"The report was written by a newer rtui: its schema is {min(found.schema, 10**6):,}, "
            f"and this version reads up to {SCHEMA}. Update rtui to open it"
        )
    if found.schema < OLDEST_SCHEMA:
        raise ReportFormatError("The report is of an older version")
    return found.schema


def _read(kind: type, value: Any) -> Any:
    """Return a name, text or slot counts from JSON; msgspec adds the place to the ValueError."""
    if kind is SlotCounts:
        if not isinstance(value, list) or len(value) != SLOTS or set(map(type, value)) != {int}:
            raise ValueError(f"Expected a list of {SLOTS:,} numbers")
        try:
            return array("Q", value)
        except OverflowError:
            raise ValueError("Expected numbers of 64 bits that are not below 0") from None
    if not isinstance(value, str):
        raise ValueError(f"Expected text, got {type(value).__name__}")
    if kind is Text:
        return display_text(value, limit=TEXT_LIMIT)
    return unescape(f'"{value}"'.encode())


_PLACE: Final = re.compile(r" - at `\$?\.?(key in )?(.*)`$", re.DOTALL)


def _sentence(message: str) -> str:
    """Return "Expected int, got str - at $.head.db", as msgspec says it, as `head.db should be int, not str`."""
    found = _PLACE.search(message)
    place = found[2] if found else ""
    what = message[: found.start()] if found else message
    what = what.replace("`", "").replace(", got ", ", not ").replace("Expected ", "should be ")
    if what.startswith("Object missing required field "):
        return display_text(f"{place}.{what.rpartition(' ')[2]}".lstrip(".") + " is missing", limit=200)
    what = what.replace("Invalid enum value ", "should be one of the words of the schema, not ")
    return display_text(f"{place or 'the document'} {what}", limit=200)


def _check_utf8(text: str | bytes) -> None:
    """Raise ReportFormatError for bytes that are no UTF-8, which msgspec reports as malformed JSON only."""
    try:
        if isinstance(text, bytes):
            text.decode()
    except UnicodeDecodeError as error:
        raise ReportFormatError(f"The file is not UTF-8 (byte {error.start:,})") from error
