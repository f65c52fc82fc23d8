"""Which keys count as big: thresholds by type, named after the vendors and tools that publish them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rtui.keyspace.types import HASH, LIST, SET, STRING

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """The sizes above which a key of one type is big; None where a measure does not count."""

    length: int | None = None
    """Bytes of a string, else the number of elements."""
    memory_bytes: int | None = None

    def exceeded(self, memory_bytes: int | None, length: int | None) -> bool:
        """Whether a key is above one of both limits; a size that is not known is not."""
        return (self.length is not None and length is not None and length > self.length) or (
            self.memory_bytes is not None and memory_bytes is not None and memory_bytes > self.memory_bytes
        )


@dataclass(frozen=True, slots=True)
class Preset:
    """Thresholds of one origin."""

    name: str
    """The value of `--big`."""
    title: str
    """The thresholds in words."""
    source: str
    """Who published them, and where."""
    string_bytes: int
    elements: int | None = None
    """Of every type but strings and those in `by_type`."""
    memory_bytes: int | None = None
    """Of every type but strings."""
    by_type: dict[bytes, int | None] = field(default_factory=dict)
    """Elements of the types that have a number of their own; None where it does not count."""

    def limits(self, key_type: bytes | None) -> SizeLimits:
        """Return the limits of one type; of an unknown type, those on memory alone."""
        if key_type == STRING.name:
            return SizeLimits(length=self.string_bytes)
        if key_type is None:
            return SizeLimits(memory_bytes=self.memory_bytes or self.string_bytes)
        return SizeLimits(length=self.by_type.get(key_type, self.elements), memory_bytes=self.memory_bytes)

    def is_big(self, key_type: bytes | None, memory_bytes: int | None, length: int | None) -> bool:
        """Whether a key is above a threshold of its type.

        A string of unknown length is judged by its memory, which exceeds its length by some tens of bytes.
        """
        if key_type == STRING.name and length is None:
            length = memory_bytes
        return self.limits(key_type).exceeded(memory_bytes, length)


DEFAULT_PRESET: Final = "rtui"

_PRESETS: Final = (
    Preset(
        name=DEFAULT_PRESET,
        title="strings over 128 KiB, others over 10,000 elements or 1 MiB",
        source="rtui: reading or deleting more than this at once takes about a millisecond, of the server or of a "
        "gigabit link",
        string_bytes=128 * KIB,
        elements=10_000,
        memory_bytes=MIB,
    ),
    Preset(
        name="alibaba",
        title="strings over 5 MB, others over 10,000 elements or 100 MB",
        source="Alibaba Cloud Tair and Redis: Identify and handle large keys and hotkeys",
        string_bytes=5 * MIB,
        elements=10_000,
        memory_bytes=100 * MIB,
    ),
    Preset(
        name="alibaba-realtime",
        title="strings over 5 MB, others over 2,000 elements",
        source="Alibaba Cloud Tair and Redis: Real-time key statistics (bigkey-threshold); strings as in its guide to "
        "large keys",
        string_bytes=5 * MIB,
        elements=2_000,
    ),
    Preset(
        name="tencent",
        title="strings over 10 MB, others over 10,000 elements or 1,000 MB",
        source="Tencent Cloud Distributed Cache (TencentDB for Redis): Hot Key and Big Key",
        string_bytes=10 * MIB,
        elements=10_000,
        memory_bytes=1_000 * MIB,
    ),
    Preset(
        name="huawei",
        title="strings over 10 KB, others over 5,000 elements or 50 MB",
        source="Huawei Cloud Distributed Cache Service: What Are Big Keys and Hot Keys?",
        string_bytes=10 * KIB,
        elements=5_000,
        memory_bytes=50 * MIB,
    ),
    Preset(
        name="redisinsight",
        title="strings over 100,000 bytes, hashes over 5,000 fields, lists and sets over 1,000 elements",
        source="Redis Insight: thresholds of its recommendations",
        string_bytes=100_000,
        by_type={HASH.name: 5_000, LIST.name: 1_000, SET.name: 1_000},
    ),
)


def names() -> tuple[str, ...]:
    """Return the names of all presets, the default first."""
    return tuple(one.name for one in _PRESETS)


def preset(name: str) -> Preset:
    """Return the preset of this name; raises KeyError, which lists the names, for any other."""
    for one in _PRESETS:
        if one.name == name:
            return one
    raise KeyError(f"there is no preset {name!r}; there are {', '.join(names())}")
