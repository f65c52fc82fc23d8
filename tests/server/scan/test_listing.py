"""What becomes of a page of keys: what is new of it, when the server is given up, which slots are listed."""

from __future__ import annotations

import pytest

from rtui.server.scan.cursor import FIRST_KEYS, SLOT_BITS, Dialect
from rtui.server.scan.listing import OUT_OF_ORDER, STUCK_AFTER, Listing
from rtui.server.scan.node import ScanNode
from rtui.server.scan.page import BeginAgainError, ScanFilter
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ScanRefusedError, ServerError
from rtui.server.wire.target import Target

STANDALONE_CURSORS = (0b100, 0b010, 0b110, 0b001)
"""Cursors of a table of eight buckets, in their order."""


def listing(dialect: Dialect, match: bytes | None = None) -> Listing:
    return Listing(ScanNode(Connection(Target()), dialect), ScanFilter(match))


def take(listed: Listing, cursor: int, keys: list[bytes]) -> list[bytes]:
    """Give a page to the range that is under way, and deliver what is new of it."""
    page: Reply = [b"%d" % cursor, [*keys]]
    fresh = listed.take_page(listed.ranges.under_way(1)[0], page)
    listed.delivered += len(fresh)
    return fresh


async def test_a_server_that_does_not_move_is_given_up() -> None:
    listed = listing(Dialect.OPAQUE)
    take(listed, 7, [])
    for _ in range(STUCK_AFTER - 1):
        take(listed, 7, [])
    with pytest.raises(ScanRefusedError, match="the cursor it was given"):
        take(listed, 7, [])


@pytest.mark.parametrize("keys", [[b"a", 1], [None], [b"a", [b"b"]], [["x"]], b"", b"ab", 3, [ServerError("ERR no")]])
async def test_what_is_no_list_of_names_is_refused(keys: Reply) -> None:
    listed = listing(Dialect.STANDALONE)
    with pytest.raises(ScanRefusedError, match="its keys are no names"):
        listed.take_page(listed.ranges.under_way(1)[0], [b"0", keys])


async def test_names_are_as_long_as_those_of_a_page_or_a_tenth_less_than_before() -> None:
    listed = listing(Dialect.STANDALONE)
    lengths = []
    for number, page in enumerate([[b"x" * 30, b""], [], [b"abc"], [b"y" * 40]]):
        take(listed, STANDALONE_CURSORS[number], page)
        lengths.append(listed.name_bytes)
    assert lengths == [15, 15, 13.5, 40]


async def test_a_server_that_begins_again_is_noticed_until_the_listing_does_so_too() -> None:
    first = [b"key:%d" % number for number in range(FIRST_KEYS)]
    listed = listing(Dialect.OPAQUE)
    assert take(listed, 7, first) == first
    with pytest.raises(BeginAgainError):
        take(listed, 8, first)
    listed.begin_anew(Dialect.OPAQUE)
    assert listed.delivered == 0
    assert take(listed, 7, first) == first


async def test_names_are_tested_where_the_server_gets_no_pattern() -> None:
    listed = listing(Dialect.OPAQUE, b"user:*")
    listed.matches = listed.only.names()
    assert take(listed, 0, [b"user:1", b"order:1"]) == [b"user:1"]
    assert (listed.keys, listed.delivered) == (2, 1)


async def test_slots_are_done_once_enough_keys_are_asked_about_that_were_listed_later() -> None:
    listed = listing(Dialect.SLOTTED)
    take(listed, 5, [b"key:1"])
    everything = listed.unlisted(1)
    assert {0, 4, 5} <= everything
    assert 4 not in listed.unlisted(0)
    take(listed, 9, [b"more:%d" % number for number in range(OUT_OF_ORDER)])
    assert listed.unlisted(OUT_OF_ORDER) == everything
    take(listed, 10 | 1 << SLOT_BITS, [b"last"])
    assert not {0, 4} & listed.unlisted(1)
    assert {5, 9, 10} <= listed.unlisted(1)
