"""Names and values that break careless tools; each is legal in Redis and has been seen in practice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Final

from rtui.demo.writes import Write, WriteGroup, expires, record, text

LONG_NAME_BYTES: Final = 100_000

CORNER: Final = b"awkward"
"""The namespace of all such names but those that can't have a prefix, which are at the top level."""

HOSTILE_NAMES: Final = (
    b"\x00\x01\x02\xff\xfe",
    b"\xc3\x28 invalid utf-8",
    b"\xed\xa0\x80 surrogate",
    b"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 joined",
    b"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e wide",
    b"e\xcc\x81 combining",
    b"\xcc\x81 lone combining",
    b"\x1b[31mred\x1b[0m",
    b"\x1b]0;title\x07",
    b"\x1b]52;c;cm0gLXJmIC8K\x07",
    b"\x1b[2J\x1b[H cleared",
    b"\xc2\x9b31m C1",
    b"[/]",
    b"[bold red]markup[/bold red]",
    b"[@click=app.quit]click[/]",
    b"$(reboot) `id` ; rm -rf",
    b"\xe2\x80\xaegnirts desrever",
    b"\xe2\x81\xa6isolated\xe2\x81\xa9",
    b"zero\xe2\x80\x8bwidth",
    b"line\nbreak\r\nand\ttab",
    b"line\xe2\x80\xa8separator",
    b"back\\slash and \"quotes\" and 'more'",
    b"glob*[a-z]?\\",
    b" leading and trailing ",
    b"constructor",
    b"__proto__",
    b"%s %d {0} %n",
    b"--option",
)
"""Segments that have an effect in a program that trusts text."""

SEPARATED_NAMES: Final = (b"", b":", b"::", b":::", b":leading", b"trailing:", b"double::inside", b":both:")
"""Names with empty segments; the first is the empty name."""

TAGGED_NAMES: Final = (
    b"{user:1}:cart",
    b"{user:1}:orders",
    b"{}:whole",
    b"{:half",
    b"}:other{half}:x",
    b"a{{b}}c",
    b"a{b}{c}",
    b"{a:b",
    b"x:{y:z}:w",
)
"""A name for each rule about hash tags, with separators inside and outside of the tag."""


def write_groups(random: Random) -> Iterator[WriteGroup]:
    """Yield the writes of all awkward names, then of the awkward values."""
    writes: list[Write] = [text(CORNER + b":names:" + name, "a hostile name") for name in HOSTILE_NAMES]
    writes += [text(name, "empty segments") for name in SEPARATED_NAMES]
    writes += [text(CORNER + b":" + name, "empty segments") for name in SEPARATED_NAMES]
    writes += [text(CORNER + b":tags:" + name, "a tag or none") for name in TAGGED_NAMES]
    writes += [text(b"\xff\xfe\x00binary at the top", "bytes"), text(b"\x1b[31mred at the top", "an escape sequence")]
    writes += [text(CORNER + b":both", "a key that is a namespace too"), text(CORNER + b":both:inner", "under it")]
    writes += [text(CORNER + b":deep:" + b":".join([b"s"] * 500), "very deep")]
    writes += [text((CORNER + b":long:").ljust(LONG_NAME_BYTES, b"n"), "a very long name")]
    yield WriteGroup(writes)
    yield _values(random)


def _values(random: Random) -> WriteGroup:
    def name(last: str) -> str:
        return f"awkward:values:{last}"

    document = {"id": 7, "nested": {"list": [1, 2.5, None, True], "text": "ü\x1b[31m[/]"}, "empty": {}}
    writes: list[Write] = [
        text(name("empty"), ""),
        text(name("megabyte"), random.randbytes(1_000) * 1_000),
        text(name("json"), json.dumps(document, ensure_ascii=False)),
        text(name("not-quite-json"), '{"id": 7, "cut off'),
        text(name("binary"), bytes(range(256))),
        text(name("integer"), -9_223_372_036_854_775_808),
        text(name("escape"), b"\x1b]0;title\x07[/]\xe2\x80\xaereversed"),
        ("SETBIT", name("bitmap"), 100_000, 1),
        ("SETBIT", name("bitmap"), 7, 1),
        ("PFADD", name("hyperloglog"), *(f"visitor-{number}" for number in range(2_000))),
        ("RPUSH", name("list"), b"[/]", b"\x1b[31m", b"", b"\xff", "x" * 3_000),
        ("SADD", name("set"), b"", b"\xff\xfe", "[bold]", "line\nbreak"),
        ("SADD", name("intset"), *range(100)),
        ("ZADD", name("zset"), "-inf", "lowest", "1.5", "middle", "1.5", "same score", "inf", "highest"),
        record(name("hash"), {"": "empty field", "[/]": "[/]", "\x1b[31m": "\x1b[0m", "constructor": "__proto__"}),
        ("XADD", name("stream"), "1-1", "field", "value", "field", "the same field again"),
        ("XADD", name("stream"), "2-0", b"\xff", b"\x1b[31m"),
        record(name("field-ttl"), {"stays": "for ever", "session": "goes in an hour", "code": "goes in ten minutes"}),
        text(name("soon-gone"), "expires a minute after the start", ttl_s=60),
        text(name("far-away"), "expires in about 3,000 years", ttl_s=10**11),
    ]
    field_ttl = name("field-ttl")
    writes += [
        ("HPEXPIRE", field_ttl, 3_600_000, "FIELDS", 1, "session"),
        ("HPEXPIRE", field_ttl, 600_000, "FIELDS", 1, "code"),
        expires(name("intset"), 7 * 86_400),
    ]
    stream = name("stream")
    groups: list[Write] = [
        ("XGROUP", "CREATE", stream, b"group\x1b[31m", 0),
        ("XREADGROUP", "GROUP", b"group\x1b[31m", "[/]", "COUNT", 1, "STREAMS", stream, ">"),
    ]
    return WriteGroup(writes, groups)
