"""References from and to one key, by a registry, with whether each of these keys exists.

The values that point are taken from the shown page of the value: its members, fields, or the string. So nothing more is
read, except a field of a hash outside the page, and the rest of a JSON document. Keys that should point here follow
from the name alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rtui.analysis.facts import Unknown
from rtui.keyspace.text.display import display_text
from rtui.registry.expectations import Reference, ReferenceSource, json_values
from rtui.registry.registry import Registry
from rtui.server.facts.preview.hashes import read_field
from rtui.server.facts.preview.page import Meaning, Preview, PreviewKind
from rtui.server.facts.preview.strings import string_windows
from rtui.server.facts.preview.value_reader import STRING_WINDOW_BYTES, ValueReader
from rtui.server.wire.command_log import Purpose, for_purpose

MOST_OUTGOING: Final = 300
"""The most keys that one key points to."""

MOST_INCOMING: Final = 100
"""The most keys that should point to one."""

PAGE_NOTE: Final = "of the page of the value that is shown"

MOST_JSON_BYTES: Final = 1 << 20
"""The largest document that is read."""


@dataclass(frozen=True, slots=True)
class Link:
    """A key that another one points to, or that points to another one."""

    key: bytes
    source: str
    """The source as registries write it: `member`, `field:userId`; `twin` for a second copy."""
    value: bytes | None
    """The value that was found there, or is expected; None if the name is enough."""
    is_there: bool | Unknown


@dataclass(frozen=True, slots=True)
class KeyReferences:
    """The references of a key."""

    outgoing: tuple[Link, ...] = ()
    twins: tuple[Link, ...] = ()
    """The keys that must hold the same value."""
    incoming: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()
    """Omissions with their reasons: safe sentences without a full stop."""
    is_declared: bool = False

    @property
    def dangling(self) -> int:
        return sum(row.is_there is False for row in self.outgoing)


@for_purpose(Purpose.REFERENCES)
async def key_references(
    reader: ValueReader,
    registry: Registry,
    preview: Preview,
    presence: Callable[[Iterable[bytes]], Awaitable[Mapping[bytes, bool | Unknown]]],
) -> KeyReferences:
    """Return the references of a key from the shown page of its value. Raises ConnectionLost.

    `presence` tells which names are keys, or why that is unknown.
    """
    key = reader.key
    index = None if reader.facts.is_gone else registry.matcher.match(key)
    wanted = _Wanted()
    page = PageValues(reader, preview, wanted.notes)
    references: Sequence[Reference] = ()
    if index is not None:
        fields = registry.matcher.fields(key, index)
        references = registry.entries[index].references
        for reference in references:
            values = await page.of(reference)
            wanted.add(wanted.outgoing, reference, values, [reference.names(fields, [value]) for value in values])
            if reference.source is ReferenceSource.KEY:
                wanted.outgoing += [(name, reference.source.value, None) for name in reference.names(fields, ())]
            if (twin := reference.twin_name(fields)) is not None:
                wanted.twins.append((twin, "twin", None))
    for found in registry.incoming(key):
        wanted.incoming.append((found.key, source_text(found.reference), found.value))
    wanted.cut()
    names = [name for name, *_ in (*wanted.outgoing, *wanted.twins, *wanted.incoming)]
    found_there = await presence(names)

    def links(rows: Iterable[_Row]) -> tuple[Link, ...]:
        return tuple(Link(name, source, value, found_there[name]) for name, source, value in dict.fromkeys(rows))

    return KeyReferences(
        links(wanted.outgoing), links(wanted.twins), links(wanted.incoming), tuple(wanted.notes), bool(references)
    )


def source_text(reference: Reference) -> str:
    """Return a source as registries write it: `member`, `field:userId`."""
    name = {
        ReferenceSource.MEMBER: "member",
        ReferenceSource.VALUE: "value",
        ReferenceSource.FIELD: "field:",
        ReferenceSource.FIELDS: "fields",
        ReferenceSource.JSON: "json:",
        ReferenceSource.KEY: "key",
    }[reference.source]
    return f"{name}{reference.path}"


_Row = tuple[bytes, str, bytes | None]
"""Name, source and value of a link."""


@dataclass
class _Wanted:
    """The keys to ask for."""

    outgoing: list[_Row] = field(default_factory=list)
    twins: list[_Row] = field(default_factory=list)
    incoming: list[_Row] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def add(self, rows: list[_Row], of: Reference, values: Sequence[bytes], names: Sequence[Sequence[bytes]]) -> None:
        source = source_text(of)
        rows += [(name, source, value) for value, some in zip(values, names, strict=True) for name in some]

    def cut(self) -> None:
        """Drop names beyond the limits, and note their number."""
        for rows, most, what in (
            (self.outgoing, MOST_OUTGOING, "keys it points to"),
            (self.incoming, MOST_INCOMING, "keys that should point here"),
        ):
            if len(rows) > most:
                self.notes[f"{len(rows) - most:,} more {what} are not shown"] = None
                del rows[most:]


@dataclass(frozen=True)
class PageValues:
    """Finds the values that point in one key, on a page of its value; `notes` get the reasons for missing ones."""

    reader: ValueReader
    preview: Preview
    notes: dict[str, None]

    async def of(self, reference: Reference) -> Sequence[bytes]:
        """Return the values that point by one reference."""
        source, preview = reference.source, self.preview
        if source is ReferenceSource.KEY or (source.types and self.reader.facts.type not in source.types):
            return ()
        if preview.refusal is not None:
            return self._none(f"the value was not read: {display_text(preview.refusal.detail)}")
        if source in (ReferenceSource.MEMBER, ReferenceSource.FIELDS):
            if preview.next_page is not None or preview.page.number > 1:
                self._none(PAGE_NOTE)
            meaning = Meaning.VALUE if preview.kind is PreviewKind.LIST else Meaning.NAME
            at = [column.meaning for column in preview.columns].index(meaning) if preview.columns else 0
            return [cell for row in preview.rows if isinstance(cell := row[at], bytes)]
        return await (self._field(reference.path) if source is ReferenceSource.FIELD else self._string(reference))

    def _none(self, why: str) -> Sequence[bytes]:
        self.notes[why] = None
        return ()

    async def _field(self, name: str) -> Sequence[bytes]:
        raw, page = name.encode(), self.preview.page
        row = next((row for row in self.preview.rows if row[0] == raw), None)
        value = None if row is None else row[1]
        if row is None and self.preview.next_page is None and page.number == 1 and page.find is None:
            return ()
        if isinstance(value, bytes):
            return [value]
        found = await read_field(self.reader, raw)
        if isinstance(found, bytes):
            return [found]
        why = display_text(found.detail)
        return self._none(f"field {display_text(name)} was not read: {why}") if why else ()

    async def _string(self, reference: Reference) -> Sequence[bytes]:
        window, facts = self.preview.window, self.reader.facts
        if window is None:
            return self._none("values of this type are not read")
        length = facts.length if isinstance(facts.length, int) else None
        is_whole = len(window.data) < STRING_WINDOW_BYTES or length == len(window.data)
        data = window.data if not window.offset_bytes and is_whole else None
        if (
            data is None
            and reference.source is ReferenceSource.JSON
            and length is not None
            and length <= MOST_JSON_BYTES
        ):
            data = b"".join([part async for part in string_windows(self.reader) if isinstance(part, bytes)])
        if data is None:
            return self._none("the value is too long")
        if reference.source is ReferenceSource.VALUE:
            return [data]
        found = json_values(data, reference.path)
        return self._none("the value is not JSON") if found is None else found
