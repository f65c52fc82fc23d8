"""Decompression in bounded steps: gzip, zlib, deflate, bzip2, lzma, xz of the standard library, zstd, LZ4, brotli.

Each library here hands out at most as many bytes as it is asked for and keeps its state, so a bomb costs no more than
`Limits.output_bytes`, and the beginning of a stream gives the beginning of what is in it.
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

from rtui.values.limits import Budget, Cut, Exceeded, Invalid, MissingLibrary
from rtui.values.source import CERTAIN, LIKELY, POSSIBLE, Format, Source
from rtui.values.tree import Form, Kind, Node, Step

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


def unpacked(name: str, magic: bytes, make: Callable[[], Decompressor], source: Source, budget: Budget) -> Step:
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
            return Step(Node(Kind.BYTES, source.data), (note,), truncated=True, form=Form.HEX)
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
    return Step(bytes(unpacking.out), (note,) if note else (), truncated, limited=limited)


def _magic_format(name: str, magic: bytes, make: Callable[[], Decompressor]) -> Format:
    """Return the decoder of a format that is recognised by its magic bytes."""

    def sniff(source: Source, _budget: Budget) -> float | None:
        return CERTAIN if source.data.startswith(magic) else None

    def read(source: Source, budget: Budget) -> Step:
        return unpacked(name, magic, make, source, budget)

    return Format(name, sniff, read)


def _sniff_zlib(source: Source, budget: Budget) -> float | None:
    """Recognise a zlib header, whose 16 bits are a multiple of 31, before a stream that can be decompressed."""
    head = source.data[:2]
    if len(source.data) < 8 or head[0] != 0x78 or int.from_bytes(head, "big") % 31:
        return None
    return _likely(read_zlib, source, budget)


def _likely(read: Callable[[Source, Budget], Step], source: Source, budget: Budget) -> float | None:
    """Recognise a stream, by its header already, if its beginning can be decompressed without damage."""
    try:
        step = read(source, budget.probe())
    except Invalid:
        return None
    return LIKELY if step.content and not any("damaged" in note for note in step.notes) else None


def read_zlib(source: Source, budget: Budget) -> Step:
    """Decompress a zlib stream."""
    return unpacked("zlib", b"", lambda: _Zlib(zlib.MAX_WBITS), source, budget)


def read_deflate(source: Source, budget: Budget) -> Step:
    """Decompress a deflate stream without a header."""
    return unpacked("deflate", b"", lambda: _Zlib(-zlib.MAX_WBITS), source, budget)


def _sniff_deflate(source: Source, budget: Budget) -> float | None:
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


def _sniff_lzma(source: Source, budget: Budget) -> float | None:
    return _likely(_read_lzma, source, budget) if _LZMA.match(source.data) else None


def _read_lzma(source: Source, budget: Budget) -> Step:
    """Decompress the LZMA format before xz: lzma.FORMAT_ALONE, `xz --format=lzma`."""
    return unpacked(
        "lzma", b"", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=LZMA_MEMORY_BYTES), source, budget
    )


def _read_bzip2(source: Source, budget: Budget) -> Step:
    """Decompress a bzip2 stream."""
    return unpacked("bzip2", b"BZh", bz2.BZ2Decompressor, source, budget)


def _sniff_brotli(source: Source, _budget: Budget) -> float | None:
    """Accept any binary bytes, since brotli has no magic; the output has to prove it."""
    return POSSIBLE if len(source.data) >= 8 and not source.is_text else None


def _read_brotli(source: Source, budget: Budget) -> Step:
    """Decompress a brotli stream."""
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
