"""The columns of the key table hold any key."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.table.schema import SCHEMA, keys_of, names_of

KEYS = st.lists(
    st.one_of(st.binary(max_size=20), st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace")))
)


@given(KEYS)
def test_any_key_comes_back(keys: list[bytes]) -> None:
    name, raw = names_of(keys)
    assert (name.dtype, raw.dtype) == (SCHEMA["name"], SCHEMA["raw"])
    assert keys_of(pl.DataFrame([name, raw])) == keys


@pytest.mark.parametrize("key", [b"\xff", b"\xed\xa0\x80", b"a\xc3"])
def test_only_keys_that_are_not_text_have_their_bytes_beside_them(key: bytes) -> None:
    name, raw = names_of([b"caf\xc3\xa9", key, b"\\xff"])
    assert name.to_list() == ["café", key.decode("utf-8", "backslashreplace"), r"\xff"]
    assert raw.to_list() == [None, key, None]


def test_batches_with_other_types_and_nodes_are_joined() -> None:
    tables = [pl.DataFrame({"type": ["string"]}), pl.DataFrame({"type": ["ReJSON-RL"]})]
    joined = pl.concat([table.cast({"type": SCHEMA["type"]}) for table in tables])
    assert joined["type"].to_list() == ["string", "ReJSON-RL"]
