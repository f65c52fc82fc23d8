"""What the details of a key say of its pattern, its purpose and what is expected of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import NO_TTL, KeyFacts, Reason, Unknown, gone_key
from rtui.keyspace.text.display import HOSTILE
from rtui.registry.load import read_registry
from rtui.tui.browse.registry_lines import RegistryLines
from rtui.tui.kit.styled_text import Line, Role, line_width
from tests.tui.browsing import browsing
from tests.tui.fixed_session import ASKED_AT_S, key_facts

REGISTRY = read_registry(
    """
[rules]
type-wrong = "warn"

[[pattern]]
pattern = "shop:user:<userId>:profile"
type = "hash"
ttl = "30m"
size = "<=1M"
purpose = "Name, e-mail and role of a user"
owner = "accounts"
scene = "login"

[[pattern]]
pattern = "shop:session:<id>"
purpose = "Session"
deprecated = "use auth:session:…"

[[pattern]]
pattern = "lock:<**>"
type = "list"
length = "<=2"
"""
)
KEY = b"shop:user:42:profile"


def said(line: Line) -> str:
    return " ".join("".join(span.text for span in line).split())


def lines(key: bytes, facts: KeyFacts | None, width: int = 100) -> list[str]:
    return [said(line) for line in RegistryLines(REGISTRY).lines(key, facts, width)]


def facts_of(key: bytes = KEY, key_type: bytes = b"hash", length: int = 3) -> KeyFacts:
    return replace(key_facts(key), type=key_type, length=length, memory_bytes=128, ttl_ms=NO_TTL)


def test_a_key_says_what_it_is_for_and_what_is_broken_first() -> None:
    assert lines(KEY, facts_of()) == [
        "pattern shop:user:<userId>:profile · owner accounts",
        "for Name, e-mail and role of a user · login",
        "rules ✗ TTL: expected 30m, has none · ✓ hash · ✓ size <=1M",
    ]


def test_everything_that_is_met_has_a_mark() -> None:
    assert lines(KEY, replace(facts_of(), ttl_ms=60_000))[2] == "rules ✓ hash · ✓ TTL 30m · ✓ size <=1M"


def test_what_is_found_instead_is_said() -> None:
    far = replace(facts_of(key_type=b"set"), ttl_ms=7_200_000, memory_bytes=3 << 20)
    assert lines(KEY, far, 200)[2] == (
        "rules ✗ type: expected hash, is set · ✗ TTL: expected 30m, 2h left · ✗ size: expected <=1M, has ≈ 3.00 MiB"
    )
    assert lines(b"lock:x:y", facts_of(b"lock:x:y", b"list", 9))[2] == "rules ✗ length: expected <=2, has 9 · ✓ list"


def test_colours_follow_the_severity() -> None:
    rules = RegistryLines(REGISTRY).lines(KEY, facts_of(key_type=b"set"), 200)[2]
    roles = dict[str, Role]((span.text, span.role) for span in rules)
    assert roles["TTL: expected 30m, has none"] is Role.BAD
    assert roles["type: expected hash, is set"] is Role.WARN


def test_what_is_not_known_is_neither_met_nor_broken() -> None:
    denied = Unknown(Reason.DENIED, "")
    unknown = replace(facts_of(), type=denied, ttl_ms=denied, memory_bytes=denied, length=denied)
    assert lines(KEY, unknown)[2] == "rules ? hash · ? TTL 30m · ? size <=1M"
    assert lines(KEY, None)[2] == lines(KEY, gone_key(KEY, ASKED_AT_S))[2] == "rules –"


def test_a_key_without_a_pattern() -> None:
    assert lines(b"a:b:c:d", facts_of(b"a:b:c:d")) == [
        "pattern none registered",
        "for –",
        "rules ✗ too short to understand",
    ]


def test_what_is_deprecated_says_so_first() -> None:
    assert lines(b"shop:session:1", None)[1] == "for deprecated: use auth:session:… · Session"


@given(st.binary(max_size=40), st.integers(40, 200), st.sampled_from([None, facts_of(), gone_key(KEY, ASKED_AT_S)]))
def test_any_key_has_its_lines_within_the_width(key: bytes, width: int, facts: KeyFacts | None) -> None:
    found = RegistryLines(REGISTRY).lines(key, facts, width)
    assert len(found) == 3
    assert all(line_width(line) <= width for line in found)
    assert not HOSTILE.search("".join(span.text for line in found for span in line))


def test_texts_of_a_registry_are_not_trusted() -> None:
    hostile = read_registry('[[pattern]]\npattern = "a:<b>"\npurpose = "\\u001b[31m"\nowner = "\\u202e"\n')
    found = RegistryLines(hostile).lines(b"a:1", None, 80)
    assert not HOSTILE.search("".join(span.text for line in found for span in line))


@pytest.mark.parametrize("size", [(120, 36), (200, 50)])
async def test_they_are_below_the_facts(size: tuple[int, int]) -> None:
    async with browsing(size=size, registry=REGISTRY) as user:
        await user.go(KEY)
        head = [said(line) for line in user.screen.detail_pane._head.lines]
        assert head[6].startswith("pattern shop:user:<userId>:profile")
        assert head[8].startswith("rules ")
        assert user.screen.detail_pane._head.size.height == 9


async def test_without_a_registry_there_is_no_room_for_them() -> None:
    async with browsing() as user:
        await user.go(KEY)
        assert user.screen.detail_pane._head.size.height == 6
