"""Entries of logs by command and namespace: where the first key stands, names that fold, keys that were cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.health.sample import LoggedCommand, Sample
from rtui.analysis.health.settings import SETTINGS
from rtui.analysis.health.slow_panel import NameFolding, first_key, grouped
from rtui.server.guard.closed_list import SETTINGS as ASKED


def entry(*argv: bytes, amount: int = 10, own: bool = False) -> LoggedCommand:
    return LoggedCommand(1, 1, amount, argv, is_own=own)


@pytest.mark.parametrize(
    ("argv", "key"),
    [
        ((b"get", b"a"), b"a"),
        ((b"MSET", b"a", b"1", b"b", b"2"), b"a"),
        ((b"EVALSHA", b"abc", b"2", b"a", b"b"), b"a"),
        ((b"EVAL", b"return 1", b"0"), None),
        ((b"FCALL", b"f"), None),
        ((b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", b"a", b">"), b"a"),
        ((b"XREAD", b"COUNT", b"2"), None),
        ((b"MEMORY", b"USAGE", b"a"), b"a"),
        ((b"ZUNION", b"2", b"a", b"b"), b"a"),
        ((b"BITOP", b"AND", b"to", b"a"), b"to"),
        ((b"KEYS", b"shop:*"), None),
        ((b"FT.SEARCH", b"index"), None),
        ((b"JSON.GET", b"a"), b"a"),
        ((b"GET",), None),
        ((), None),
    ],
)
def test_the_first_key(argv: tuple[bytes, ...], key: bytes | None) -> None:
    assert first_key(entry(*argv)) == key


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        (b"shop:user:42:cart", b"shop:user:{id}:cart"),
        (b"shop:user:" + b"x" * 99 + b"... (30 more bytes)", b"shop:user:"),
        (b"plain", b"plain"),
        (b"", b"{}"),
    ],
)
def test_names_fold_as_in_a_report(key: bytes, pattern: bytes) -> None:
    assert NameFolding().pattern(key) == pattern


def test_groups_are_ordered_by_all_that_they_took_and_ours_stand_apart() -> None:
    entries = [entry(b"GET", b"a:1", amount=30), entry(b"SET", b"a:1"), entry(b"get", b"a:2", amount=5)]
    first, second, third = grouped([*entries, entry(b"GET", b"a:3", amount=9, own=True)], NameFolding())
    assert (first.command, first.pattern, first.total, len(first.entries)) == ("GET", b"a:{id}", 35, 2)
    assert first.largest is entries[0]
    assert [(one.command, one.is_own) for one in (second, third)] == [("SET", False), ("GET", True)]


@given(
    st.lists(
        st.lists(st.binary(max_size=12) | st.sampled_from([b"EVAL", b"XREAD", b"GET", b"9"]), max_size=5), max_size=5
    )
)
def test_any_entries_are_grouped(argvs: list[list[bytes]]) -> None:
    entries = [entry(*argv) for argv in argvs]
    assert sum(len(group.entries) for group in grouped(entries, NameFolding())) == len(entries)


def test_every_setting_that_is_asked_is_explained() -> None:
    assert set(SETTINGS) == set(ASKED)


def test_defaults_are_those_of_the_version() -> None:
    valkey = Sample(0, "x", info={"redis_version": "7.2.4", "valkey_version": "9.1.2"})
    redis, old = (Sample(0, "x", info={"redis_version": version}) for version in ("8.0.2", "6.2.14"))
    backlog, diskless = SETTINGS["repl-backlog-size"], SETTINGS["repl-diskless-sync"]
    assert [backlog.default_of(one) for one in (valkey, redis, old)] == ["10485760", "1048576", "1048576"]
    assert [diskless.default_of(one) for one in (valkey, redis, old)] == ["yes", "yes", "no"]
