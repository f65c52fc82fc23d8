"""Names split at their first separators and grouped by it, packed: what the compiled engine makes of SCAN pages."""

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
    """First segments, with their separators, whose suffixes are few and short."""
    inlines: list[bytes]
    """Those suffixes, packed inline; parallel to `labels`."""
    chunks: list[tuple[bytes, Chunk]]
    """Other first segments, with many or long suffixes."""

    def without_headers(self) -> tuple[SplitNames, list[bytes]]:
        """Return the same without names that begin as those that Java has serialised, and these."""
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
