"""The index of nodes finds each node under its hash, whatever the hashes are and in whatever order they come."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtui.table.node_index import NodeIndex

HIGHEST = (1 << 64) - 1

HASHES = st.lists(
    st.lists(st.one_of(st.integers(HIGHEST - 600, HIGHEST), st.integers(1, HIGHEST)), max_size=300), max_size=4
)


@given(HASHES)
def test_each_node_is_found_and_no_other(added: list[list[int]]) -> None:
    index, known = NodeIndex(), dict[int, int]()
    index.rebuild(np.empty(0, np.uint64), np.empty(0, np.int32))
    for some in added:
        new = {one: len(known) + at for at, one in enumerate(one for one in dict.fromkeys(some) if one not in known)}
        index.add(np.array([*new], np.uint64), np.array([*new.values()], np.int32))
        known |= new
        asked = [*known, *(one ^ 1 << 60 for one in known), HIGHEST - 700]
        found = index.find(np.array(asked, np.uint64)).tolist()
        assert found == [known.get(one, -1) for one in asked]
