"""A window of bytes as rows of a hex dump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROW_BYTES: Final = 16
"""Bytes a row."""

_PRINTABLE: Final = bytes(byte if 0x20 <= byte < 0x7F else ord(".") for byte in range(256))


@dataclass(frozen=True, slots=True)
class HexRow:
    """Up to 16 bytes and where they lie; everything it says is printable ASCII."""

    offset_bytes: int
    data: bytes

    @property
    def hexadecimal(self) -> str:
        """The bytes in hex, two groups of eight, padded to the width of a full row."""
        left, right = self.data[:8].hex(" "), self.data[8:].hex(" ")
        return f"{left:<23}  {right:<23}"

    @property
    def characters(self) -> str:
        """The bytes as ASCII, a dot for what can't be printed."""
        return self.data.translate(_PRINTABLE).decode("ascii")

    def __str__(self) -> str:
        return f"{self.offset_bytes:08x}  {self.hexadecimal}  {self.characters}"


def hex_rows(window: bytes, offset_bytes: int = 0) -> tuple[HexRow, ...]:
    """Cut a window that begins at `offset_bytes` of the value into rows."""
    return tuple(HexRow(offset_bytes + at, window[at : at + ROW_BYTES]) for at in range(0, len(window), ROW_BYTES))
