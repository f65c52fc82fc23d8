"""Replies of protocol 3 read as those of protocol 2 do."""

from __future__ import annotations

import pytest

from rtui.server.wire.errors import Reply, as_resp2


@pytest.mark.parametrize(
    ("name", "reply", "expected"),
    [
        ("XINFO STREAM", {b"length": 1, b"groups": {b"a": None}}, [b"length", 1, b"groups", [b"a", None]]),
        ("ZRANGE", [[b"a", 1.5], [b"b", 3.0]], [b"a", b"1.5", b"b", b"3"]),
        ("ZRANGE", [], []),
        ("ZRANGE", [[b"a", float("inf")]], [b"a", b"inf"]),
        ("HRANDFIELD", [[b"f", b"v"]], [b"f", b"v"]),
        ("HRANDFIELD", [b"f", b"g"], [b"f", b"g"]),
        ("XRANGE", [[b"1-0", [b"f", b"v"]]], [[b"1-0", [b"f", b"v"]]]),
        ("HSCAN", [b"0", [b"f", b"v"]], [b"0", [b"f", b"v"]]),
        ("X", True, 1),
        ("X", False, 0),
        ("X", None, None),
        ("X", 1e300, b"1e+300"),
        ("TYPE", b"zset", b"zset"),
    ],
)
def test_shapes(name: str, reply: Reply, expected: Reply) -> None:
    assert as_resp2(name, reply) == expected
