"""Compression in PHP programs, and the marks that Magento puts before compressed values.

LZF and LZ4 blocks have no mark. Both are sequences of literal bytes and of copies of earlier ones, so many bytes can be
read as either: they count only if the output is recognised, or Magento's mark names them. Its cache writes two letters,
a colon and 1f 8b before the compressed bytes (Cm_Cache_Backend_Redis), its sessions two letters between colons
(Cm_RedisSession). Before an LZ4 block stands its length in four bytes; phpredis puts a checksum before that.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Final

from rtui.values.limits import Budget, Invalid, MissingLibrary
from rtui.values.source import CERTAIN, POSSIBLE, Format, Source, limited_step
from rtui.values.tree import Step

_MAGENTO: Final = re.compile(rb"(?::(?:gz|sn|lz|l4|zs):|(?:gz|zc|sn|lz|l4|zs):(?=\x1f\x8b))(?:\x1f\x8b(?!\x08))?")
_MIN_BYTES: Final = 8
_SHORT, _LONG = 32, 7
_MAX_RATIO: Final = 255
"""The largest ratio of output to input of an LZ4 block."""


def _sniff_magento(source: Source, _budget: Budget) -> float | None:
    return CERTAIN if not source.is_text and _MAGENTO.match(source.data) else None


def _read_magento(source: Source, _budget: Budget) -> Step:
    mark = _MAGENTO.match(source.data)
    if mark is None:
        raise Invalid("begins with two letters and colons, as gz:")
    return Step(source.data[mark.end() :], truncated=not source.is_whole)


def _lzf(data: bytes, limit: int, budget: Budget, *, is_whole: bool) -> bytearray:
    """Decompress LZF up to about `limit` bytes; raises Invalid for a copy from before the start, or an early end."""
    out = bytearray()
    at = steps = 0
    while at < len(data) and len(out) <= limit:
        steps += 1
        if not steps % 1024:
            budget.check_time()
        control, at = data[at], at + 1
        if control < _SHORT:
            out += data[at : at + control + 1]
            at += control + 1
            continue
        length = (control >> 5) + 2
        if length == _LONG + 2:
            length, at = length + int.from_bytes(data[at : at + 1]), at + 1
        distance = ((control & 0x1F) << 8 | int.from_bytes(data[at : at + 1])) + 1
        at += 1
        if at > len(data):
            break
        if distance > len(out):
            raise Invalid("repeats bytes that never were")
        pattern = bytes(out[-distance:][:length])
        out += (pattern * -(-length // len(pattern)))[:length]
    if at > len(data) and is_whole:
        raise Invalid("ends within an element")
    return out


def _sniff_lzf(source: Source, _budget: Budget) -> float | None:
    """Accept binary bytes that may begin with a run of literals, of which there are 32 at most."""
    return POSSIBLE if len(source.data) >= _MIN_BYTES and source.data[0] < _SHORT and not source.is_text else None


def _read_lzf(source: Source, budget: Budget) -> Step:
    limit = budget.limits.output_bytes
    return limited_step("LZF", _lzf(source.data, limit, budget, is_whole=source.is_whole), source, budget)


def _declared(data: bytes) -> tuple[int, int] | None:
    """Return the declared length of a block, and the offset of the block; None if no plausible length is found."""
    for at in (0, 1):
        size = int.from_bytes(data[at : at + 4], "little")
        if 0 < size <= _MAX_RATIO * len(data):
            return size, at + 4
    return None


def _sniff_block(source: Source, _budget: Budget) -> float | None:
    may_be = source.is_whole and len(source.data) >= _MIN_BYTES and not source.is_text and find_spec("lz4") is not None
    return POSSIBLE if may_be and _declared(source.data) is not None else None


def _read_block(source: Source, budget: Budget) -> Step:
    """Decompress a complete block with the library; raises Invalid if it does not give the declared length."""
    declared, limit = _declared(source.data), budget.limits.output_bytes
    if declared is None:
        raise Invalid("begins with the length of what is in it")
    size, start = declared
    if size > limit:
        raise Invalid(f"gives at most {limit:,} bytes, as far as rtui reads it, and declares {size:,}")
    try:
        from lz4 import block  # noqa: PLC0415
    except ImportError:
        raise MissingLibrary from None
    try:
        return Step(block.decompress(source.data[start:], uncompressed_size=size))
    except block.LZ4BlockError as error:
        raise Invalid(f"gives the {size:,} bytes that it declares: {error}") from None


FORMATS: Final = (
    Format("Magento", _sniff_magento, _read_magento),
    Format("LZ4 block", _sniff_block, _read_block, needs_proof=True),
    Format("LZF", _sniff_lzf, _read_lzf, needs_proof=True),
)
