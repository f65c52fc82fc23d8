"""The instructions of a pickle with their operands; `pickletools` knows their names and stack effects.

Operands are read here, since `pickletools.genops` gives nothing of an operand that is cut, and rejects non-ASCII text
of protocol 0, as Python 2 wrote it.
"""

from __future__ import annotations

import codecs
import pickletools
import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from rtui.values.limits import Cut, Invalid

_OPCODES: Final = {ord(one.code): one for one in pickletools.opcodes}
_FIXED: Final = {"uint1": "<B", "uint2": "<H", "int4": "<i", "uint4": "<I", "uint8": "<Q", "float8": ">d"}
_COUNTED: Final = {
    "string1": 1, "bytes1": 1, "unicodestring1": 1, "long1": 1,
    "string4": 4, "bytes4": 4, "unicodestring4": 4, "long4": 4,
    "bytes8": 8, "bytearray8": 8, "unicodestring8": 8,
}  # fmt: skip
"""Operands behind their length, and the size of that length in bytes."""

_DIGITS: Final = re.compile(rb"[+-]?[0-9]+L?")
_FLOAT: Final = re.compile(rb"[+-]?(?:[0-9.]+(?:[eE][+-]?[0-9]+)?|inf|nan)")
_QUOTED: Final = re.compile(rb"(['\"])(.*)\1", re.DOTALL)
_MAX_INDEX_DIGITS: Final = 19
_BOOLEANS: Final = {b"00": False, b"01": True}


class Instruction(NamedTuple):
    """An instruction."""

    opcode: pickletools.OpcodeInfo
    operand: bool | int | float | str | bytes | None
    """Numbers of protocol 0 are the text of their digits; a class is `module name`."""
    end: int
    """The offset of the next instruction."""
    is_cut: bool = False
    """Whether the bytes end within the operand, which is the beginning of its text or bytes then."""


def instructions(data: bytes) -> Iterator[Instruction]:
    """Yield the instructions up to STOP; raises Cut if the bytes end before it, Invalid for an unknown instruction."""
    at = 0
    while at < len(data):
        opcode = _OPCODES.get(data[at])
        if opcode is None:
            raise Invalid(f"has no instruction {data[at]:02x} at byte {at:,}")
        found = _read(opcode, data, at + 1)
        yield found
        if found.is_cut:
            break
        if opcode.name == "STOP":
            return
        at = found.end
    raise Cut


def _read(opcode: pickletools.OpcodeInfo, data: bytes, at: int) -> Instruction:
    if opcode.arg is None:
        return Instruction(opcode, None, at)
    kind = opcode.arg.name
    if kind in _FIXED:
        end = at + struct.calcsize(_FIXED[kind])
        if end > len(data):
            raise Cut
        return Instruction(opcode, struct.unpack_from(_FIXED[kind], data, at)[0], end)
    if kind in _COUNTED:
        return _counted(opcode, kind, data, at)
    lines, end = [], at
    for _ in range(2 if kind.endswith("pair") else 1):
        stop = data.find(b"\n", end)
        if stop < 0:
            raise Cut
        lines.append(data[end:stop])
        end = stop + 1
    return Instruction(opcode, _from_text(opcode.name, kind, b" ".join(lines)), end)


def _counted(opcode: pickletools.OpcodeInfo, kind: str, data: bytes, at: int) -> Instruction:
    start = at + _COUNTED[kind]
    if start > len(data):
        raise Cut
    end = start + int.from_bytes(data[at:start], "little")
    piece, is_cut = data[start:end], end > len(data)
    end = min(end, len(data))
    if kind.startswith("long"):
        if is_cut:
            raise Cut
        return Instruction(opcode, int.from_bytes(piece, "little", signed=True), end)
    if not kind.startswith("unicode"):
        return Instruction(opcode, piece, end, is_cut)
    try:
        text = codecs.utf_8_decode(piece, "surrogatepass", not is_cut)[0]
    except UnicodeDecodeError:
        raise Invalid(f"has text that is not UTF-8 at byte {start:,}") from None
    return Instruction(opcode, text, end, is_cut)


def _from_text(name: str, kind: str, line: bytes) -> bool | int | str | bytes:
    """Return the operand of one line, or of two lines joined by a space."""
    try:
        match kind:
            case "decimalnl_short" | "decimalnl_long" | "floatnl":
                return _number(name, line)
            case "unicodestringnl":
                return line.decode("raw-unicode-escape")
            case "stringnl":
                quoted = _QUOTED.fullmatch(line)
                if quoted is None:
                    raise Invalid("has text without its quotes")
                return codecs.escape_decode(quoted[2])[0]
    except ValueError as error:
        raise Invalid(f"has text that is none: {error}") from None
    return line.decode("utf-8", "surrogateescape")


def _number(name: str, line: bytes) -> bool | int | str:
    """Return a number as it is written, or as an integer if it is an index of the memo."""
    if name == "INT" and line in _BOOLEANS:
        return _BOOLEANS[line]
    if not (_FLOAT if name == "FLOAT" else _DIGITS).fullmatch(line):
        raise Invalid(f"has {line[:20]!r} where a number should be")
    if name in ("INT", "LONG", "FLOAT"):
        return line.removesuffix(b"L").decode()
    if len(line) > _MAX_INDEX_DIGITS:
        raise Invalid("has too large an index")
    return int(line)
