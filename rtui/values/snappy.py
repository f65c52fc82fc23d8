"""Snappy: blocks, which begin with their uncompressed length, and frames of such blocks; frames of S2.

The library decompresses complete blocks only. A block is a sequence of elements, each a run of literals or a copy of
earlier bytes, so a cut or too large block is cut after its last complete element and gets the length of that part. See
format_description.txt and framing_format.txt of Snappy. S2 adds a copy at the last offset, which the library does not
support, so S2 blocks are decompressed here.
"""

from __future__ import annotations

from typing import Final

from rtui.values.limits import Budget, Cut, Invalid, MissingLibrary, Stopped
from rtui.values.source import CERTAIN, POSSIBLE, Format, Source
from rtui.values.tree import Step

FRAME_MAGIC: Final = b"\xff\x06\x00\x00sNaPpY"
S2_MAGIC: Final = b"\xff\x06\x00\x00S2sTwO"
_COMPRESSED, _UNCOMPRESSED, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80
_CHECKSUM_BYTES: Final = 4
_SHORT_REPEAT: Final = 8
"""The longest S2 copy at the last offset whose length needs no further bytes."""

_MIN_BLOCK: Final = 8
_MAX_CONTENT: Final = 1 << 32
_SNIFFED_BYTES: Final = 16 * 1024


def _declared(block: bytes) -> tuple[int, int]:
    """Return the declared uncompressed length of a block, and the offset of its elements."""
    length = 0
    for at, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return length, at + 1
    raise Cut if len(block) < 5 else Invalid("has no length")


def _elements(block: bytes, at: int, limit: int, budget: Budget) -> tuple[int, int, int]:
    """Return the output size of the complete elements from `at` on, the end of the last, and the start of cut literals.

    Stops before the element that is cut or would exceed `limit`. The third figure is the offset of its bytes if that
    element is a run of literals, else the end of the block. Raises Invalid for a copy from before the start.
    """
    given = elements = 0
    while at < len(block):
        elements += 1
        if not elements % 1024:
            budget.check_time()
        tag = block[at]
        kind, size = tag & 3, tag >> 2
        if kind == 0:
            first = at + 1 + max(0, size - 59)
            length = size + 1 if first == at + 1 else int.from_bytes(block[at + 1 : first], "little") + 1
            after, distance = first + length, 0
        else:
            first = len(block)
            after = at + (2, 3, 5)[kind - 1]
            length = 4 + (size & 7) if kind == 1 else size + 1
            rest = int.from_bytes(block[at + 1 : after], "little")
            distance = ((tag >> 5) << 8 | rest) if kind == 1 else rest
        if after > len(block) or given + length > limit:
            return given, at, first
        if kind and not 0 < distance <= given:
            raise Invalid("repeats bytes that never were")
        given += length
        at = after
    return given, at, len(block)


def block_content(block: bytes, limit: int, budget: Budget) -> tuple[bytes, bool]:
    """Decompress a block up to about `limit` bytes; return the output and whether it is complete.

    Raises Invalid for bytes that are not a block, Cut if not even the length is complete.
    """
    try:
        import cramjam  # noqa: PLC0415 - only where such a value is met
    except ImportError:
        raise MissingLibrary from None
    declared, start = _declared(block)
    most = min(limit, declared)
    given, end, literals = _elements(block, start, most, budget)
    header = bytearray()
    length = given
    while length > 0x7F:
        header.append(length & 0x7F | 0x80)
        length >>= 7
    header.append(length)
    try:
        found = bytes(cramjam.snappy.decompress_raw(bytes(header) + block[start:end], output_len=given))
    except cramjam.DecompressionError as error:
        raise Invalid(f"can't be decompressed: {error}") from None
    found += block[literals : literals + most - given]
    return found, given == declared and end == len(block)


def _s2_content(block: bytes, limit: int, budget: Budget) -> tuple[bytes, bool]:
    """Decompress an S2 block up to `limit` bytes; return the output and whether it is complete; raises as
    `block_content`."""
    declared, at = _declared(block)
    most = min(limit, declared)
    out = bytearray()
    steps = distance = 0
    while at < len(block) and len(out) < most:
        steps += 1
        if not steps % 1024:
            budget.check_time()
        tag = block[at]
        kind, size = tag & 3, tag >> 2
        at += 1
        if kind == 0:
            width = max(0, size - 59)
            length = (int.from_bytes(block[at : at + width], "little") if width else size) + 1
            out += block[at + width : at + width + length]
            at += width + length
            continue
        width = (1, 2, 4)[kind - 1]
        number = int.from_bytes(block[at : at + width], "little")
        at += width
        length = 4 + (size & 7) if kind == 1 else size + 1
        if kind > 1 or (number := (tag >> 5) << 8 | number):
            distance = number
        elif length > _SHORT_REPEAT:
            width = length - _SHORT_REPEAT
            length = int.from_bytes(block[at : at + width], "little") + (8, 260, 65_540)[width - 1]
            at += width
        if at > len(block):
            break
        if not 0 < distance <= len(out):
            raise Invalid("repeats bytes that never were")
        length = min(length, most - len(out))
        pattern = bytes(out[-distance:][:length])
        out += (pattern * -(-length // len(pattern)))[:length]
    return bytes(out[:most]), len(out) == declared


def _sniff_block(source: Source, budget: Budget) -> float | None:
    """Recognise a block by its elements, whose output has to be of the declared length."""
    if len(source.data) < _MIN_BLOCK or source.is_text:
        return None
    block = source.data[:_SNIFFED_BYTES]
    is_whole = source.is_whole and len(block) == len(source.data)
    try:
        declared, start = _declared(block)
        given, end, _ = _elements(block, start, _MAX_CONTENT, budget)
    except Stopped:
        return None
    is_all = given == declared and end == len(block)
    return POSSIBLE if is_all or (given < declared and not is_whole) else None


def _read_block(source: Source, budget: Budget) -> Step:
    limit = budget.limits.output_bytes
    try:
        data, is_all = block_content(source.data, limit, budget)
    except Cut:
        raise Invalid("has a length, which is cut") from None
    note = "" if is_all or not source.is_whole else f"only the first {len(data):,} bytes come out of this snappy block"
    return Step(data, (note,) if note else (), truncated=not is_all, limited=bool(note))


def _read_frame(source: Source, budget: Budget) -> Step:
    """Decompress the chunks of a frame, of Snappy or S2."""
    block = _s2_content if source.data.startswith(S2_MAGIC) else block_content
    name = "S2" if block is _s2_content else "snappy"
    data, at, out = source.data, 0, bytearray()
    limit = budget.limits.output_bytes
    note = ""
    truncated = not source.is_whole
    try:
        while at < len(data) and not note:
            budget.check_time()
            kind, size = data[at], int.from_bytes(data[at + 1 : at + 4], "little")
            chunk = data[at + 4 + _CHECKSUM_BYTES : at + 4 + size]
            at += 4 + size
            is_all = kind != _COMPRESSED
            if kind == _UNCOMPRESSED:
                out += chunk
            elif kind == _COMPRESSED:
                content, is_all = block(chunk, limit - len(out), budget)
                out += content
            elif kind < _FIRST_SKIPPABLE:
                raise Invalid(f"has no chunk {kind:02x}")
            if len(out) > limit or not (is_all or at > len(data)):
                note = f"only the first {min(limit, len(out)):,} bytes that come out of {name} are shown"
    except Cut:
        truncated = True
    except Invalid as error:
        if not out:
            raise
        note = f"{name} is damaged after {len(out):,} bytes: it {error}"
    if at > len(data) and source.is_whole:
        note = note or f"the {name} stream ends early"
    return Step(bytes(out[:limit]), (note,) if note else (), truncated or bool(note))


FORMATS: Final = (
    Format("snappy", lambda source, _: CERTAIN if source.data.startswith(FRAME_MAGIC) else None, _read_frame),
    Format("S2", lambda source, _: CERTAIN if source.data.startswith(S2_MAGIC) else None, _read_frame),
    Format("snappy block", _sniff_block, _read_block, needs_proof=True),
)
