"""Type and size of pictures, from their headers: PNG, JPEG, GIF, WebP and BMP. The picture itself is not decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.values.limits import Budget, Invalid
from rtui.values.source import CERTAIN, Format, Source
from rtui.values.tree import Kind, Node, Step

_BMP_HEADERS: Final = frozenset({12, 40, 52, 56, 64, 108, 124})
_PNG_COLOURS: Final = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGB with alpha"}
_JPEG_WITHOUT_SIZE: Final = frozenset({0xC4, 0xC8, 0xCC})
MAX_JPEG_SEGMENTS: Final = 1_000
MAX_HEADER_BYTES: Final = 256 * 1024
"""The first bytes of a picture that are searched for its size, which JPEG has behind previews and colour profiles."""

_Facts = dict[str, int | str]


def _little(data: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _big(data: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _png(data: bytes) -> _Facts | None:
    if len(data) < 26 or data[12:16] != b"IHDR":
        return None
    colour = _PNG_COLOURS.get(data[25], "unknown")
    return {"width": _big(data, 16, 4), "height": _big(data, 20, 4), "bits": data[24], "colours": colour}


def _gif(data: bytes) -> _Facts | None:
    return {"width": _little(data, 6), "height": _little(data, 8)} if len(data) >= 10 else None


def _bmp(data: bytes) -> _Facts | None:
    if len(data) < 30:
        return None
    header = _little(data, 14, 4)
    if header == 12:
        return {"width": _little(data, 18), "height": _little(data, 20), "bits": _little(data, 24)}
    height = int.from_bytes(data[22:26], "little", signed=True)
    return {"width": _little(data, 18, 4), "height": abs(height), "bits": _little(data, 28)}


def _webp(data: bytes) -> _Facts | None:
    kind = data[12:16]
    if kind == b"VP8 " and len(data) >= 30:
        return {"width": _little(data, 26) & 0x3FFF, "height": _little(data, 28) & 0x3FFF, "kind": "lossy"}
    if kind == b"VP8L" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return {"width": (bits & 0x3FFF) + 1, "height": (bits >> 14 & 0x3FFF) + 1, "kind": "lossless"}
    if kind == b"VP8X" and len(data) >= 30:
        return {"width": _little(data, 24, 3) + 1, "height": _little(data, 27, 3) + 1, "kind": "extended"}
    return None


def _jpeg(data: bytes) -> _Facts | None:
    """Walk the segments up to the frame header, which has the size."""
    at = 2
    for _ in range(MAX_JPEG_SEGMENTS):
        while data[at : at + 2] == b"\xff\xff":
            at += 1
        if at + 9 > len(data) or data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in _JPEG_WITHOUT_SIZE:
            return {"width": _big(data, at + 7), "height": _big(data, at + 5), "bits": data[at + 4]}
        at += 2 + max(2, _big(data, at + 2))
    return None


def _is_bmp(data: bytes) -> bool:
    return data.startswith(b"BM") and data[6:10] == bytes(4) and _little(data, 14, 4) in _BMP_HEADERS


def _picture(name: str, is_own: Callable[[bytes], bool], facts: Callable[[bytes], _Facts | None]) -> Format:
    """Return the decoder of one picture format."""

    def read(source: Source, _budget: Budget) -> Step:
        if not is_own(source.data):
            raise Invalid("begins in another way")
        found = facts(source.data[:MAX_HEADER_BYTES])
        root = Node(Kind.MAP, type_name=f"{name} picture")
        for title, value in (found or {}).items():
            kind = Kind.NUMBER if isinstance(value, int) else Kind.TEXT
            root.children.append(Node(kind, str(value), name=Node(Kind.TEXT, title)))
        notes = () if found else ("its size is not in these bytes",)
        return Step(root, notes, not source.is_whole)

    return Format(name, lambda source, _: CERTAIN if is_own(source.data) and not source.is_text else None, read)


FORMATS: Final = (
    _picture("PNG", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"), _png),
    _picture("JPEG", lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg),
    _picture("GIF", lambda data: data.startswith((b"GIF87a", b"GIF89a")), _gif),
    _picture("WebP", lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP", _webp),
    _picture("BMP", _is_bmp, _bmp),
)
