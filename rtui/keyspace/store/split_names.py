"""Names split at their first separator, grouped and packed: the compiled engine's form of SCAN pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rtui.keyspace.store.packed_names import Chunk, unpack_inline
from rtui.keyspace.text.java_names import HEADER


@dataclass(slots=True)
class SplitNames:
    """A batch of keys for a store whose separators have one byte each.

    With the separator `:`, the keys `lock`, `user:1` and `cart:7` are the name `lock` in `flat`, and below the labels
    `user:` and `cart:` the suffixes `1` and `7`. A label may occur several times.
    """

    count: int
    """The number of keys."""
    flat: list[Chunk]
    """The keys without a separator."""
    labels: list[bytes]
    """First segments, with their separators, that have few, short suffixes."""
    inlines: list[bytes]
    """The suffixes of `labels`, packed inline; parallel to `labels`."""
    chunks: list[tuple[bytes, Chunk]]
    """First segments with many or long suffixes, and these."""

    def without_headers(self) -> tuple[SplitNames, list[bytes]]:
        """Return the batch without names that begin like Java-serialised ones, and these names."""
        labels = (*self.labels, *(label for label, _ in self.chunks))
        if not any(label.startswith(HEADER) for label in labels) and not any(HEADER in one.blob for one in self.flat):
            return self, []
        left, java = SplitNames(self.count, [], [], [], []), list[bytes]()
        for chunk in self.flat:
            java += [chunk[index] for index in chunk.starting(HEADER)]
            left.flat.append(chunk.without(chunk.starting(HEADER)) if HEADER in chunk.blob else chunk)
        for label, inline in zip(self.labels, self.inlines, strict=True):
            if label.startswith(HEADER):
                java += [label + name for name in unpack_inline(inline)]
            else:
                left.labels.append(label)
                left.inlines.append(inline)
        for label, chunk in self.chunks:
            if label.startswith(HEADER):
                java += [label + name for name in chunk.names()]
            else:
                left.chunks.append((label, chunk))
        left.count -= len(java)
        return left, java

    def batches(self) -> Iterator[tuple[bytes, list[bytes]]]:
        """Yield (prefix, suffixes) of all keys."""
        for chunk in self.flat:
            yield b"", chunk.names()
        for label, inline in zip(self.labels, self.inlines, strict=True):
            yield label, unpack_inline(inline)
        for label, chunk in self.chunks:
            yield label, chunk.names()
