"""The block that the end of a cut LZ4 frame leaves incomplete.

The library hands out whole blocks of 64 KiB to 4 MiB, so of the first kilobytes of a frame it gives nothing. A block is
a row of sequences: a byte with two lengths, literal bytes, and a distance back from which bytes are repeated. So all of
them but the last can be resolved. See lz4_Frame_format.md and lz4_Block_format.md of LZ4.
"""

from __future__ import annotations

from typing import Final

LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"

_HAS_DICTIONARY, _HAS_SIZE, _HAS_BLOCK_CHECKSUMS = 0x01, 0x08, 0x10
_UNCOMPRESSED: Final = 1 << 31
_WINDOW: Final = 64 * 1024


def with_cut_block(frame: bytes, before: bytes, limit: int) -> bytes:
    """Return what was decompressed `before` followed by what the last, cut block of a frame gives, up to `limit` bytes.

    Only the first of several frames is looked at; anything odd gives nothing more.
    """
    if len(frame) < 7 or frame[4] & _HAS_DICTIONARY:
        return before
    at = 7 + (8 if frame[4] & _HAS_SIZE else 0)
    checksum = 4 if frame[4] & _HAS_BLOCK_CHECKSUMS else 0
    while at + 4 <= len(frame):
        size = int.from_bytes(frame[at : at + 4], "little")
        at += 4
        length = size & ~_UNCOMPRESSED
        if not size:
            break
        if at + length > len(frame):
            out = bytearray(before[-_WINDOW:])
            kept = len(out)
            room = limit - len(before)
            if size & _UNCOMPRESSED:
                out += frame[at : at + room]
            else:
                add_sequences(frame[at:], out, kept + room)
            return before + out[kept : kept + room]
        at += length + checksum
    return before


def add_sequences(block: bytes, out: bytearray, limit: int) -> None:
    """Append what the complete sequences at the beginning of a block give, until `out` has `limit` bytes."""
    at = 0
    while at < len(block) and len(out) < limit:
        token = block[at]
        literals, at = _length(block, at + 1, token >> 4)
        out += block[at : min(at + literals, at + limit - len(out))]
        at += literals
        if at + 2 > len(block):
            return
        distance = int.from_bytes(block[at : at + 2], "little")
        repeated, at = _length(block, at + 2, token & 0x0F)
        repeated = min(repeated + 4, limit - len(out))
        if not 0 < distance <= len(out):
            return
        pattern = bytes(out[-distance:][:repeated])
        out += (pattern * -(-repeated // len(pattern)))[:repeated] if repeated else b""


def _length(block: bytes, at: int, nibble: int) -> tuple[int, int]:
    """Return a length, which goes on in further bytes after a nibble of 15, and where it ends."""
    length = nibble
    if nibble == 15:
        while at < len(block):
            length += block[at]
            at += 1
            if block[at - 1] != 255:
                break
    return length, at
