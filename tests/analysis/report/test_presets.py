"""Thresholds for big keys and where they come from."""

from __future__ import annotations

import pytest

from rtui.analysis.report.thresholds import DEFAULT_PRESET, KIB, MIB, preset, preset_names


def test_the_default_comes_first_and_names_are_distinct() -> None:
    assert preset_names()[0] == DEFAULT_PRESET
    assert len(set(preset_names())) == len(preset_names())


@pytest.mark.parametrize("name", preset_names())
def test_each_says_who_set_it_and_what(name: str) -> None:
    one = preset(name)
    assert one.name == name
    assert one.title
    assert one.source
    assert one.string_bytes > 0


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(KeyError, match="alibaba, alibaba-realtime, tencent"):
        preset("none")


@pytest.mark.parametrize(
    ("name", "kind", "memory_bytes", "length", "big"),
    [
        ("rtui", b"string", 10, 128 * KIB, False),
        ("rtui", b"string", 10, 128 * KIB + 1, True),
        ("rtui", b"hash", MIB, 10_000, False),
        ("rtui", b"hash", MIB + 1, 1, True),
        ("rtui", b"hash", 1, 10_001, True),
        ("rtui", b"hash", None, None, False),
        ("huawei", b"string", None, 10 * KIB + 1, True),
        ("huawei", b"string", 10 * KIB + 1, None, True),
        ("huawei", b"string", 10 * KIB + 50, 10 * KIB, False),
        ("huawei", b"zset", 50 * MIB + 1, None, True),
        ("huawei", b"zset", None, 5_001, True),
        ("redisinsight", b"hash", 10**12, 5_000, False),
        ("redisinsight", b"hash", 0, 5_001, True),
        ("redisinsight", b"set", 0, 1_001, True),
        ("redisinsight", b"zset", 10**12, 10**9, False),
        ("alibaba-realtime", b"made-up-type", None, 2_001, True),
        ("tencent", None, 1_000 * MIB + 1, None, True),
        ("tencent", None, None, 10**9, False),
    ],
)
def test_what_is_big(name: str, kind: bytes | None, memory_bytes: int | None, length: int | None, big: bool) -> None:
    assert preset(name).is_big(kind, memory_bytes, length) is big
