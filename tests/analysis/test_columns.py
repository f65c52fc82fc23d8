"""What is asked of which keys, as text and as a value."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import (
    ALL_COLUMNS,
    EVERYTHING,
    SAMPLED_COLUMNS,
    SMALL_KEYSPACE,
    Asked,
    Columns,
    ColumnsError,
    columns_for,
    parse_columns,
)

HALVES = st.sampled_from([Asked.ALL, Asked.NONE])
COLUMNS = st.builds(
    Columns, ttl=HALVES, memory=HALVES, idle=st.sampled_from(Asked), length=st.sampled_from(Asked),
    encoding=st.sampled_from(Asked),
)  # fmt: skip


@given(COLUMNS)
def test_the_text_of_columns_is_read_as_the_same(columns: Columns) -> None:
    assert parse_columns(str(columns)) == columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("all", ALL_COLUMNS),
        ("default", None),
        ("ttl,memory,idle/8,length/8,encoding/16", SAMPLED_COLUMNS),
        ("type, TTL ,memory,frequency,length,encoding", EVERYTHING),
        ("type", Columns(Asked.NONE, Asked.NONE, Asked.NONE, Asked.NONE, Asked.NONE)),
        ("memory,length/8", Columns(Asked.NONE, Asked.ALL, Asked.NONE, Asked.SAMPLED, Asked.NONE)),
    ],
)
def test_what_is_typed(text: str, columns: Columns | None) -> None:
    assert parse_columns(text) == columns


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing is no column: there are type, ttl, memory, idle, length, encoding"),
        ("ttl,", "nothing is no column"),
        ("size", "'size' is no column"),
        ("ttl,all", "'all' stands alone"),
        ("ttl/8", "'ttl/8' is not possible: ttl asks all keys; samples are idle/8, length/8, encoding/16"),
        ("idle/4", "'idle/4' is not possible"),
        ("type/8", "'type/8' is no"),
        ("idle/8,frequency", "'frequency' is there twice"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, says: str) -> None:
    with pytest.raises(ColumnsError, match=re.escape(says)):
        parse_columns(text)


def test_small_keyspaces_are_asked_everything() -> None:
    assert columns_for(None, SMALL_KEYSPACE) == ALL_COLUMNS
    assert columns_for(None, SMALL_KEYSPACE + 1) == SAMPLED_COLUMNS
    assert columns_for(None, None) == SAMPLED_COLUMNS
    assert columns_for(SAMPLED_COLUMNS, 5) == SAMPLED_COLUMNS
