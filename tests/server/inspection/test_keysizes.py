from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.document import KeySizes
from rtui.server.inspection.server_figures import key_sizes, parse_key_sizes
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.target import Secret
from tests.server.raw_commands import raw
from tests.server.targets import connected, target_of
from tests.servers import Server

INFO = (
    b"# Keysizes\r\ndb0_distrib_strings_sizes:0=1,1=1,2K=1,512M=2\r\ndb0_distrib_lists_items:4=1\r\n"
    b"db12_distrib_hashes_items:1M=3\r\ndb0_\x1b[31m:1=1\r\ndb0_distrib_zsets_items:x=1,4=,-1=2,8=5\r\n"
)


async def sizes_of(server: Server, db: int, **login: object) -> tuple[KeySizes, ...]:
    async with connected(target_of(server, db=db, **login)) as connection:
        return await key_sizes(connection, Capabilities(), db)


async def test_each_version(server: Server) -> None:
    server.admin.mset({"empty": "", "small": "x", "large": "x" * 3000})
    server.admin.rpush("list", *range(5))
    keeps = server.product == "redis" and server.version >= (8, 0)
    strings = KeySizes("distrib_strings_sizes", ((0, 1), (1, 1), (2048, 1)))
    expected = (strings, KeySizes("distrib_lists_items", ((4, 1),))) if keeps else ()
    assert await sizes_of(server, 0) == expected
    assert await sizes_of(server, 1) == ()


async def test_denied(redis810: Server) -> None:
    redis810.admin.set("key", "x")
    raw(redis810, "ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", "-info")
    assert await sizes_of(redis810, 0, user="few", password=Secret("word")) == ()


def test_only_one_database_and_only_what_is_understood() -> None:
    assert parse_key_sizes(INFO, 0) == (
        KeySizes("distrib_strings_sizes", ((0, 1), (1, 1), (2048, 1), (512 << 20, 2))),
        KeySizes("distrib_lists_items", ((4, 1),)),
        KeySizes("distrib_zsets_items", ((8, 5),)),
    )
    assert parse_key_sizes(INFO, 12) == (KeySizes("distrib_hashes_items", ((1 << 20, 3),)),)
    assert parse_key_sizes(INFO, 1) == ()


@given(st.binary(max_size=200), st.integers(0, 20))
def test_any_reply_is_read_without_an_error(reply: bytes, db: int) -> None:
    parse_key_sizes(b"db%d_distrib_strings_sizes:" % db + reply, db)
