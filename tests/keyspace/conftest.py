from __future__ import annotations

from collections.abc import Iterator

import pytest

from rtui.keyspace import handful, jumping, ordering, packed, repeats, routing


@pytest.fixture
def tiny() -> Iterator[None]:
    """Everything that is done chunk by chunk is done in chunks of two or three."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "CHUNK_NAMES", 3)
        patch.setattr(packed, "CHUNK_BYTES", 40)
        patch.setattr(handful, "MOST_NAMES", 2)
        patch.setattr(ordering, "BATCH", 2)
        patch.setattr(ordering, "PER_BUCKET", 2)
        patch.setattr(ordering, "PER_PIVOT", 2)
        patch.setattr(repeats, "PASS_NAMES", 4)
        patch.setattr(repeats, "SET_NAMES", 2)
        patch.setattr(repeats, "CHILDREN", 2)
        patch.setattr(routing, "WIDE", 3)
        patch.setattr(jumping, "SEARCH_BATCH", 2)
        yield
