"""The references of a key on the screen: what is missing, where Enter leads, and the way back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Reason, Unknown
from rtui.registry.load import read_registry
from rtui.server.facts.references import KeyReferences, Link
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.registry_lines import RegistryLines
from rtui.tui.browse.shown_value import Trail
from rtui.tui.browse.value_view import ItemKind
from rtui.tui.kit.command_screen import TreePlace
from rtui.tui.kit.styled_text import line_width
from tests.tui.browsing import browsing
from tests.tui.fixed_session import key_facts

REGISTRY = read_registry(
    """
[[pattern]]
pattern = "shop:user:{userId}:orders"
references = [{ from = "member", to = "shop:user:{member}:orders" }, { from = "member", to = "jobs:{member}" }]
[[pattern]]
pattern = "jobs:failed"
"""
)
KEY = b"shop:user:42:orders"
LINKS = KeyReferences(
    outgoing=(
        Link(b"order:17", "member", b"17", True),
        Link(b"order:19", "member", b"19", False),
        Link(b"order:20", "member", b"20", Unknown(Reason.DENIED, "")),
    ),
    twins=(Link(b"order:index:user:42", "twin", None, True),),
    incoming=(Link(b"user:list", "member", b"42", True),),
    notes=("the value is too long",),
    is_declared=True,
)


def said(detail: Detail, width: int = 80, way: tuple[bytes, ...] = ()) -> list[str]:
    rows = RegistryLines(REGISTRY).reference_rows(detail, way, width)
    assert all(line_width(row.line) <= width for row in rows)
    return [" ".join("".join(span.text for span in row.line).split()) for row in rows if row.line]


def detail(found: KeyReferences | None, key: bytes = KEY) -> Detail:
    return Detail(key=key, facts=key_facts(key), references=found)


def test_each_link_says_whether_it_is_there() -> None:
    assert said(detail(LINKS), way=(b"a", b"b")) == [
        "a › b › shop:user:42:orders", "Points to 1 dangling", "✓ order:17 member", "✗ order:19 missing, member",
        "? order:20 denied, member", "Kept twice, also in", "✓ order:index:user:42 twin", "Should point here",
        "✓ user:list member 42", "The value is too long.",
    ]  # fmt: skip


def test_what_is_not_known_is_said() -> None:
    assert said(detail(None)) == ["asking…"]
    assert said(detail(None, b"gone")) == ["The key no longer exists."]
    assert "has no pattern" in said(detail(KeyReferences(), b"plain"))[0]
    assert "declares no references for jobs:failed." in said(detail(KeyReferences(), b"jobs:failed"))[0]
    assert said(detail(replace(LINKS, outgoing=(), twins=(), incoming=(), notes=()))) == [
        "The value contains no reference to a key."
    ]


@given(st.lists(st.binary(max_size=60), max_size=4), st.binary(max_size=30), st.integers(20, 200))
def test_any_names_stay_within_the_width(names: list[bytes], value: bytes, width: int) -> None:
    links = tuple(Link(name, "member", value, True) for name in names)
    said(detail(replace(LINKS, outgoing=links)), width, tuple(names))


def test_a_trail_holds_as_long_as_it_is_followed() -> None:
    trail = Trail()
    trail.follow(TreePlace(b"a"), b"b")
    trail.follow(TreePlace(b"b"), b"c")
    assert trail.before(b"c") == [b"a", b"b"]
    assert trail.back(b"x") is None
    assert trail.back(b"c") == TreePlace(b"b")
    assert trail.before(b"b") == [b"a"]
    trail.follow(TreePlace(b"elsewhere"), b"d")
    assert trail.before(b"d") == [b"elsewhere"]


async def test_enter_follows_and_escape_comes_back() -> None:
    async with browsing(registry=REGISTRY) as user:
        await user.go(KEY)
        assert not any(one.startswith("references") for one in user.session.asked)
        await user.press("tab", "3")
        pane = user.screen.detail_pane
        await user.until(lambda: pane.detail.references is not None)
        assert "✓ shop:user:17:orders" in user.body
        assert "✗ jobs:17" in user.body
        assert "3 dangling" in user.body
        item = pane.body.item
        assert item is not None
        assert (item.kind, item.data) == (ItemKind.KEY, b"shop:user:17:orders")
        await user.press("enter")
        await user.until(lambda: pane.detail.references is not None and pane.detail.key == b"shop:user:17:orders")
        assert "shop:user:42:orders › shop:user:17:orders" in user.body
        assert pane.body.has_focus
        await user.press("down", "enter")
        await user.until(lambda: pane.detail.references is not None and pane.detail.key == b"shop:user:23:orders")
        assert "… › shop:user:17:orders › shop:user:23:orders" in user.body
        for expected in (b"shop:user:17:orders", KEY):
            await user.press("escape")
            await user.until(lambda key=expected: pane.detail.references is not None and pane.detail.key == key)  # type: ignore[misc]
            assert pane.body.has_focus
        await user.press("escape")
        assert user.screen.tree_pane.key_tree.has_focus
        assert user.name == KEY


async def test_without_a_registry_there_is_no_such_tab() -> None:
    async with browsing(size=(80, 24)) as user:
        await user.go(KEY)
        await user.press("3")
        tabs = user.screen.detail_pane
        assert "References" not in "".join(span.text for line in tabs._tabs.lines for span in line)
        await user.press("right_square_bracket", "right_square_bracket")
        assert tabs.tab == 0
