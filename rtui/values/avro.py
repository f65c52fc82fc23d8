"""Avro object container files, which bring their schema (Avro 1.12 specification, Object Container Files).

Values without their schema have no mark and no structure that could be seen, so they are not decoded. fastavro is not
used: it builds as many elements as a block declares, of which nulls take no bytes at all, reads whole blocks only, and
decompresses without a bound.
"""

from __future__ import annotations

import json
import struct
from typing import Final

from rtui.values import compressed, snappy
from rtui.values.formats import CERTAIN, Format
from rtui.values.limits import Budget, Cut, Exceeded, Invalid
from rtui.values.source import Reader, Source, read_tree
from rtui.values.tree import Kind, Node, Step

MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_MAX_SCHEMA_BYTES: Final = 256 * 1024
_CHECKSUM_BYTES: Final = 4
_COMPRESSED: Final = {"zstandard": "zstd", "bzip2": "bzip2", "xz": "xz"}

_Schema = dict[str, object] | list[object] | str


class _AvroReader(Reader):
    """What containers and their values have in common: integers in zigzag order, and maps and lists in blocks."""

    def long(self) -> int:
        """Read an integer of one to ten bytes."""
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > 63:
                raise Invalid("has a number of more than ten bytes")

    def size(self) -> int:
        """Read a length."""
        size = self.long()
        if size < 0:
            raise Invalid("has a negative length")
        return size

    def block_count(self) -> int:
        """Read how many elements come next; a negative count stands before the length of the block."""
        count = self.long()
        if count < 0:
            self.size()
        return abs(count)


class AvroValueReader(_AvroReader):
    """Reads values of one schema."""

    def __init__(self, source: Source, budget: Budget, named: dict[str, _Schema]) -> None:
        super().__init__(source, budget)
        self._named = named

    def read(self) -> None:
        """Do nothing: a schema is needed, see `value`."""

    def value(self, schema: object) -> None:
        """Read one value of a schema."""
        if isinstance(schema, list):
            branch = self.long()
            if not 0 <= branch < len(schema):
                raise Invalid("has a branch that its union lacks")
            self._enter_schema(schema[branch])
        elif isinstance(schema, str):
            self._simple(schema)
        elif isinstance(schema, dict):
            self._complex(schema)
        else:
            raise Invalid("has a schema that is none")

    _depth = 0

    def _enter_schema(self, schema: object) -> None:
        """Read a value of a schema within a schema, which adds nothing to the tree that would bound it."""
        self._depth += 1
        if self._depth > self.budget.limits.depth:
            raise Exceeded("its schema is nested too deeply")
        self.value(schema)
        self._depth -= 1

    def _simple(self, name: str) -> None:
        match name:
            case "null":
                self.add(Kind.CONSTANT, "null")
            case "boolean":
                self.add(Kind.CONSTANT, "true" if self.byte() else "false")
            case "int" | "long":
                self.add_number(self.long())
            case "float":
                self.add_number(struct.unpack("<f", self.take(4))[0])
            case "double":
                self.add_number(struct.unpack("<d", self.take(8))[0])
            case "bytes" | "string":
                self.add_string(self.size(), is_text=name == "string")
            case _:
                if name not in self._named:
                    raise Invalid(f"has no type {name!r} in its schema")
                self._enter_schema(self._named[name])

    def _complex(self, schema: dict[str, object]) -> None:
        kind = schema.get("type")
        match kind:
            case "record" | "error":
                self._record(schema)
            case "array":
                self._blocks(Kind.LIST, schema.get("items"))
            case "map":
                self._blocks(Kind.MAP, schema.get("values"))
            case "enum":
                at, symbols = self.long(), schema.get("symbols")
                if not isinstance(symbols, list) or not 0 <= at < len(symbols):
                    raise Invalid("has a symbol that its enum lacks")
                self.add(Kind.TEXT, str(symbols[at]), "enum")
            case "fixed":
                size = schema.get("size")
                self.add_string(size if isinstance(size, int) and size >= 0 else 0, is_text=False)
            case _:
                self._enter_schema(kind)

    def _record(self, schema: dict[str, object]) -> None:
        fields = schema.get("fields")
        node = self.add(Kind.MAP, "", str(schema.get("name", "")))
        self.enter(node)
        for one in fields if isinstance(fields, list) else ():
            if not isinstance(one, dict):
                raise Invalid("has a field without a schema")
            self.name = Node(Kind.TEXT, str(one.get("name", "")))
            self.value(one.get("type"))
        self.leave()

    def _blocks(self, kind: Kind, schema: object) -> None:
        """Read the blocks of a list or a map; an empty one is the last."""
        self.enter(self.add(kind))
        while count := self.block_count():
            for _ in range(count):
                if kind is Kind.MAP:
                    self.add_string(self.size())
                    self.take_as_name()
                self.value(schema)
        self.leave()


class AvroReader(_AvroReader):
    """Reads a container: its metadata, then blocks of values."""

    def __init__(self, source: Source, budget: Budget) -> None:
        super().__init__(source, budget, len(MAGIC))
        self._is_whole = source.is_whole

    def read(self) -> None:
        """Read all values into a list."""
        metadata = self._metadata()
        sync = self.take(_SYNC_BYTES)
        schema, named = parsed_schema(metadata.get(b"avro.schema", b""))
        codec = metadata.get(b"avro.codec", b"null").decode("ascii", "replace")
        self.enter(self.add(Kind.LIST, "", codec if codec != "null" else ""))
        while self.at < self.end:
            count, size = self.long(), self.size()
            block = self.data[self.at : self.at + size]
            is_cut = len(block) < size
            self.at += len(block)
            values = AvroValueReader(self._content(codec, block, is_cut=is_cut), self.budget, named)
            values.share(self)
            for _ in range(count):
                values.value(schema)
            if is_cut:
                raise Cut
            if self.take(_SYNC_BYTES) != sync:
                raise Invalid("has a block that does not end with the mark")
        self.leave()

    def _metadata(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        while count := self.block_count():
            for _ in range(count):
                self.budget.spend()
                name = self.take(self.size())
                found[name] = self.take(self.size())
        return found

    def _content(self, codec: str, block: bytes, *, is_cut: bool) -> Source:
        """Decompress a block."""
        source = Source(block, not is_cut)
        if codec == "null":
            return source
        if codec == "deflate":
            step = compressed.read_deflate(source, self.budget)
        elif codec == "snappy":
            data, is_all = snappy.block_content(
                block[: len(block) - (0 if is_cut else _CHECKSUM_BYTES)], self.budget.limits.output_bytes, self.budget
            )
            return Source(data, is_all)
        elif codec in _COMPRESSED:
            name = _COMPRESSED[codec]
            step = next(one for one in compressed.FORMATS if one.name == name).read(source, self.budget)
        else:
            raise Invalid(f"is compressed with {codec}, which is not supported")
        return Source(step.content if isinstance(step.content, bytes) else b"", not step.truncated)


def parsed_schema(text: bytes) -> tuple[_Schema, dict[str, _Schema]]:
    """Return a schema, and the types in it that have a name, by that; raises Invalid for what is none."""
    if len(text) > _MAX_SCHEMA_BYTES:
        raise Invalid("has too long a schema")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        raise Invalid("has a schema that is not JSON") from None
    named: dict[str, _Schema] = {}
    pending: list[tuple[object, str]] = [(schema, "")]
    while pending:
        one, namespace = pending.pop()
        if isinstance(one, list):
            pending += [(inner, namespace) for inner in one]
        elif isinstance(one, dict):
            name = one.get("name")
            space = str(one.get("namespace", namespace))
            if isinstance(name, str) and one.get("type") in ("record", "error", "enum", "fixed"):
                named[name] = named[f"{space}.{name}"] = one
            pending += [(inner, space) for inner in one.values()]
    if not isinstance(schema, (dict, list, str)):
        raise Invalid("has a schema that is none")
    return schema, named


def _sniff(source: Source, _budget: Budget) -> float | None:
    return CERTAIN if source.data.startswith(MAGIC) else None


def _read(source: Source, budget: Budget) -> Step:
    if not source.data.startswith(MAGIC):
        raise Invalid("begins with Obj and 01")
    return read_tree(AvroReader(source, budget), source)


FORMATS: Final = (Format("Avro", _sniff, _read),)
"""The decoder of this module."""
