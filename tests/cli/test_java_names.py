"""Names that Java has serialised, in the commands: one pattern, found by their text, and one finding."""

from __future__ import annotations

import json

import pytest

from rtui.cli.main import run
from rtui.keyspace.text.segments import raw_java_name
from tests.servers import Server

TEXTS = [f"user:cache:{number}" for number in (*range(1, 40), 100, 1000)]


def plant(server: Server) -> None:
    client = server.client()
    client.mset({raw_java_name(text.encode()) or b"": "x" for text in TEXTS})
    client.mset({b"user:cache:10": "text", b"\xac\xed\0\5t\0\7abc": "of another length"})


def test_they_are_one_pattern_of_the_registry(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    assert run(["patterns", valkey.url]) == 0
    rows = [line.split()[:2] for line in capfd.readouterr().out.splitlines()]
    assert ["user:cache:<id>", "42"] in rows


@pytest.mark.parametrize(
    ("terms", "count"),
    [
        (["cache:1"], 14),
        (["user:cache:10*"], 4),
        (["in:user"], 42),
        (["in:⛾user:cache"], 41),
        (["pattern:user:cache:<id>", "type:string"], 42),
        (["user:cache:1000"], 1),
        (["abc"], 1),
    ],
)
def test_they_are_found_by_their_text(
    valkey: Server, capfd: pytest.CaptureFixture[str], terms: list[str], count: int
) -> None:
    plant(valkey)
    assert run(["find", valkey.url, *terms, "--count"]) == 0
    assert capfd.readouterr().out == f"{count}\n"


def test_two_keys_of_one_text_are_two(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    assert run(["find", valkey.url, "user:cache:10", "!user:cache:10?*", "--format", "json"]) == 0
    keys = json.loads(capfd.readouterr().out)["keys"]
    assert sorted(one["key_quoted"] for one in keys) == [
        r'"\xac\xed\x00\x05t\x00\ruser:cache:10"',
        '"user:cache:10"',
    ]


def test_they_are_reported(valkey: Server, capfd: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    assert run(["report", valkey.url, "--no-keep"]) == 0
    out = capfd.readouterr().out
    assert "41 keys have a Java-serialised name: JdkSerializationRedisSerializer wrote it" in out
    assert {line.split()[1] for line in out.splitlines() if line.startswith("  ⛾user:cache:<id>")} == {"41"}
    assert run(["report", valkey.url, "--no-keep", "--format", "json"]) == 0
    (found,) = (one for one in json.loads(capfd.readouterr().out)["findings"] if one["rule"] == "name-java-serialised")
    assert found["keys"] == 41
