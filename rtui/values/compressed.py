"""Decompression in bounded steps: gzip, zlib, deflate, bzip2, lzma, xz, zstd, LZ4, brotli, Snappy.

Each library here hands out at most as many bytes as it is asked for and keeps its state, so a bomb costs no more than
`DecodingLimits.output_bytes`, and the beginning of a stream gives the beginning of what is in it.

Snappy has blocks, which begin with their uncompressed length, and frames of such blocks. Its library decompresses
complete blocks only. A block is a sequence of elements, each a run of literals or a copy of earlier bytes, so a cut or
too large block is cut after its last complete element and gets the length of that part. See format_description.txt and
framing_format.txt of Snappy. S2 adds a copy at the last offset, which the library does not support, so S2 blocks are
decompressed here.
"""

from __future__ import annotations

import bz2
import lzma
import re
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from rtui.values.source import CERTAIN, LIKELY, POSSIBLE, Format, ValueSource
from rtui.values.tree import (
    Budget,
    Cut,
    DecodingStep,
    Exceeded,
    Invalid,
    MissingLibrary,
    Stopped,
    ValueForm,
    ValueKind,
    ValueNode,
)

_BZIP2: Final = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
"""The header of a stream with that of its first block or of its end; `BZh` alone may be a word."""

_LZMA: Final = re.compile(rb"\x5d\0[\0-\xff]{3}(?:\xff{8}|[\0-\xff]{5}\0{3})")
"""The usual properties byte, the dictionary size, and the uncompressed size if it is known."""

INPUT_STEP: Final = 8 * 1024
"""Bytes handed to a library at once: damage loses the output of one step at most."""

MIN_CUT_BYTES: Final = 64
"""The output that is needed to recognise the beginning of a deflate stream."""

LZMA_MEMORY_BYTES: Final = 128 << 20


class Decompressor(Protocol):
    """The common interface of the decompressors of bz2, lzma, zstd and LZ4."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""

    @property
    def needs_input(self) -> bool:
        """Whether all buffered output was returned."""

    @property
    def unused_data(self) -> bytes | None:
        """The bytes behind the end of the stream."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Feed more input; return at most `max_length` bytes of output."""


class _Zlib:
    """zlib's decompressor behind the common interface."""

    def __init__(self, window_bits: int) -> None:
        self._inner = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and not self._is_full

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    _is_full = False

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._is_full = len(found) == max_length
        return found


class _Brotli:
    """brotli's decompressor behind the common interface; a brotli value is a single stream."""

    unused_data = b""

    def __init__(self) -> None:
        try:
            import brotli  # noqa: PLC0415 - only where such a value is met
        except ImportError:
            raise MissingLibrary from None
        self._inner = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._inner.is_finished())

    @property
    def needs_input(self) -> bool:
        return bool(self._inner.can_accept_more_data())

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found: bytes = self._inner.process(data, output_buffer_limit=max_length)
        return found


def _zstd() -> Decompressor:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415
        else:
            from backports import zstd  # noqa: PLC0415
    except ImportError:
        raise MissingLibrary from None
    return zstd.ZstdDecompressor()


def _lz4() -> Decompressor:
    try:
        from lz4 import frame  # noqa: PLC0415
    except ImportError:
        raise MissingLibrary from None
    made: Decompressor = frame.LZ4FrameDecompressor()
    return made


def _xz() -> Decompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LZMA_MEMORY_BYTES)


class _Damaged(Exception):  # noqa: N818 - it ends a loop
    """The library found an error in the stream."""


@dataclass(slots=True)
class _Unpacking:
    """A decompression in progress, with its output so far."""

    name: str
    magic: bytes
    """The first bytes of a further stream behind the first; empty if only one stream is read."""
    make: Callable[[], Decompressor]
    budget: Budget
    out: bytearray = field(default_factory=bytearray)

    def run(self, data: bytes) -> int:
        """Decompress all streams; return the number of bytes behind the last.

        Raises Cut if the stream has no end, Exceeded at a limit, _Damaged at an error.
        """
        limit = self.budget.limits.output_bytes
        stream, pending, at = self.make(), b"", 0
        while True:
            self.budget.check_time()
            if len(self.out) >= limit:
                raise Exceeded(f"only the first {limit:,} bytes that come out of {self.name} are shown")
            if not pending and stream.needs_input:
                pending = data[at : at + INPUT_STEP]
                at += len(pending)
                if not pending:
                    raise Cut
            try:
                self.out += stream.decompress(pending, limit - len(self.out))
            except Exception as error:  # noqa: BLE001 - each library has errors of its own
                raise _Damaged(str(error)) from None
            pending = b""
            if len(self.out) > limit:  # brotli hands out whole buffers of 32 KiB
                del self.out[limit:]
                continue
            if stream.eof:
                pending = (stream.unused_data or b"") + data[at : at + len(self.magic)]
                at += len(self.magic)
                if not self.magic or not pending.startswith(self.magic):
                    return len(pending) + max(0, len(data) - at)
                stream = self.make()


def unpacked(
    name: str, magic: bytes, make: Callable[[], Decompressor], source: ValueSource, budget: Budget
) -> DecodingStep:
    """Decompress up to the budget's output; streams with this magic that follow one another are joined.

    Raises Invalid if a damaged stream gives no output at all, MissingLibrary without the library.
    """
    unpacking = _Unpacking(name, magic, make, budget)
    truncated, limited = True, False
    try:
        rest = unpacking.run(source.data)
    except Cut:
        if not unpacking.out:
            note = f"nothing comes out of {name} before its first block is complete"
            return DecodingStep(ValueNode(ValueKind.BYTES, source.data), (note,), truncated=True, form=ValueForm.HEX)
        note = f"the {name} stream ends early" if source.is_whole else ""
    except Exceeded as reached:
        note, limited = str(reached), True
    except _Damaged as error:
        if not unpacking.out:
            raise Invalid(f"can't be decompressed: {error}") from None
        note = f"{name} is damaged after {len(unpacking.out):,} bytes: {error}"
    else:
        note = f"{rest:,} bytes follow the {name} stream" if rest else ""
        truncated = not source.is_whole
    return DecodingStep(bytes(unpacking.out), (note,) if note else (), truncated, limited=limited)


def _magic_format(name: str, magic: bytes, make: Callable[[], Decompressor]) -> Format:
    """Return the decoder of a format that is recognised by its magic bytes."""

    def sniff(source: ValueSource, _budget: Budget) -> float | None:
        return CERTAIN if source.data.startswith(magic) else None

    def read(source: ValueSource, budget: Budget) -> DecodingStep:
        return unpacked(name, magic, make, source, budget)

    return Format(name, sniff, read)


def _sniff_zlib(source: ValueSource, budget: Budget) -> float | None:
    """Recognise a zlib header, whose 16 bits are a multiple of 31, before a stream that can be decompressed."""
    head = source.data[:2]
    if len(source.data) < 8 or head[0] != 0x78 or int.from_bytes(head, "big") % 31:
        return None
    return _likely(read_zlib, source, budget)


def _likely(read: Callable[[ValueSource, Budget], DecodingStep], source: ValueSource, budget: Budget) -> float | None:
    """Recognise a stream, by its header already, if its beginning can be decompressed without damage."""
    try:
        step = read(source, budget.probe())
    except Invalid:
        return None
    return LIKELY if step.content and not any("damaged" in note for note in step.notes) else None


def read_zlib(source: ValueSource, budget: Budget) -> DecodingStep:
    return unpacked("zlib", b"", lambda: _Zlib(zlib.MAX_WBITS), source, budget)


def read_deflate(source: ValueSource, budget: Budget) -> DecodingStep:
    return unpacked("deflate", b"", lambda: _Zlib(-zlib.MAX_WBITS), source, budget)


def _sniff_deflate(source: ValueSource, budget: Budget) -> float | None:
    """Accept a stream that decompresses without damage and ends with the value; its output has to prove it."""
    if len(source.data) < 8 or source.is_text or source.data[0] & 6 == 6:
        return None
    try:
        step = read_deflate(source, budget.probe())
    except Invalid:
        return None
    is_odd = any("damaged" in note or "follow" in note for note in step.notes)
    is_long = source.is_whole or (isinstance(step.content, bytes) and len(step.content) >= MIN_CUT_BYTES)
    return POSSIBLE if is_long and not is_odd else None


def _sniff_lzma(source: ValueSource, budget: Budget) -> float | None:
    return _likely(_read_lzma, source, budget) if _LZMA.match(source.data) else None


def _read_lzma(source: ValueSource, budget: Budget) -> DecodingStep:
    """Decompress the LZMA format before xz: lzma.FORMAT_ALONE, `xz --format=lzma`."""
    return unpacked(
        "lzma", b"", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=LZMA_MEMORY_BYTES), source, budget
    )


def _read_bzip2(source: ValueSource, budget: Budget) -> DecodingStep:
    return unpacked("bzip2", b"BZh", bz2.BZ2Decompressor, source, budget)


def _sniff_brotli(source: ValueSource, _budget: Budget) -> float | None:
    """Accept any binary bytes, since brotli has no magic; the output has to prove it."""
    return POSSIBLE if len(source.data) >= 8 and not source.is_text else None


def _read_brotli(source: ValueSource, budget: Budget) -> DecodingStep:
    return unpacked("brotli", b"", _Brotli, source, budget)


FORMATS: Final = (
    _magic_format("gzip", b"\x1f\x8b\x08", lambda: _Zlib(zlib.MAX_WBITS + 16)),
    _magic_format("zstd", b"\x28\xb5\x2f\xfd", _zstd),
    _magic_format("LZ4", b"\x04\x22\x4d\x18", _lz4),
    Format("bzip2", lambda source, _: CERTAIN if _BZIP2.match(source.data) else None, _read_bzip2),
    _magic_format("xz", b"\xfd7zXZ\x00", _xz),
    Format("lzma", _sniff_lzma, _read_lzma),
    Format("zlib", _sniff_zlib, read_zlib),
    Format("deflate", _sniff_deflate, read_deflate, needs_proof=True),
    Format("brotli", _sniff_brotli, _read_brotli, needs_proof=True),
)


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


def _sniff_block(source: ValueSource, budget: Budget) -> float | None:
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


def _read_block(source: ValueSource, budget: Budget) -> DecodingStep:
    limit = budget.limits.output_bytes
    try:
        data, is_all = block_content(source.data, limit, budget)
    except Cut:
        raise Invalid("has a length, which is cut") from None
    note = "" if is_all or not source.is_whole else f"only the first {len(data):,} bytes come out of this snappy block"
    return DecodingStep(data, (note,) if note else (), truncated=not is_all, limited=bool(note))


def _read_frame(source: ValueSource, budget: Budget) -> DecodingStep:
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
    return DecodingStep(bytes(out[:limit]), (note,) if note else (), truncated or bool(note))


SNAPPY: Final = (
    Format("snappy", lambda source, _: CERTAIN if source.data.startswith(FRAME_MAGIC) else None, _read_frame),
    Format("S2", lambda source, _: CERTAIN if source.data.startswith(S2_MAGIC) else None, _read_frame),
    Format("snappy block", _sniff_block, _read_block, needs_proof=True),
)
