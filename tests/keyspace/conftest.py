from __future__ import annotations

from collections.abc import Iterator

import pytest

from rtui.keyspace.rows import listing
from rtui.keyspace.store import namespace, packed_names, store


@pytest.fixture
def tiny() -> Iterator[None]:
    """Chunks, batches and buckets of two or three, so that a few keys reach every path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_names, "CHUNK_NAMES", 3)
        patch.setattr(packed_names, "CHUNK_BYTES", 40)
        patch.setattr(packed_names, "MAX_INLINE_NAMES", 2)
        patch.setattr(listing, "BATCH", 2)
        patch.setattr(listing, "PER_BUCKET", 2)
        patch.setattr(listing, "PER_BORDER", 2)
        patch.setattr(store, "PASS_NAMES", 4)
        patch.setattr(store, "SET_SIZE", 2)
        patch.setattr(namespace, "CHILD_BATCH", 2)
        patch.setattr(namespace, "SHARD_ABOVE", 3)
        patch.setattr(listing, "SEARCH_BATCH", 2)
        yield
