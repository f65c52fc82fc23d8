"""The path in the title of the tree: where the cursor is, cut to its width, and clicked."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.store.namespace import Namespace
from rtui.tui.browse.tree_header import title_of
from rtui.tui.kit.styled_text import width_of
from tests.tui.browsing import BrowseUser, browsing


def header(user: BrowseUser) -> str:
    (line,) = user.screen.tree_pane.header.lines
    return "".join(span.text for span in line)


async def test_the_title_says_where_the_cursor_is_and_leads_there() -> None:
    async with browsing() as user:
        assert header(user).startswith(" Namespaces split at :")
        await user.go(b"shop:user:7:profile")
        assert header(user).startswith(" shop › user › 7")
        await user.pilot.click("#tree-header", offset=(10, 0))
        await user.settled()
        assert user.name == b"shop:user:"
        assert header(user).startswith(" shop ")
        await user.pilot.click("#tree-header", offset=(2, 0))
        await user.settled()
        assert user.name == b"shop:"
        assert header(user).startswith(" Namespaces split at :")


async def test_hostile_and_empty_names_in_the_path() -> None:
    async with browsing() as user:
        await user.go(b"::")
        assert header(user).startswith(" (empty) › (empty)")
        await user.go(b"hostile:\x1b[31mred")
        assert header(user).startswith(" hostile")


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=8), st.integers(0, 80))
def test_each_part_stands_where_it_is_clicked(names: list[bytes], cells: int) -> None:
    path: list[Namespace] = []
    node = Namespace()
    for name in names:
        node = Namespace(name + b":", b":", node)
        path.append(node)
    title, crumbs = title_of(path, cells)
    assert crumbs[-1].node is path[-1]
    assert [crumb.node for crumb in crumbs] == path[-len(crumbs) :]
    assert len(crumbs) == 1 or width_of(title) <= cells
    assert crumbs[-1].end == 1 + width_of(title)
    for before, after in pairwise(crumbs):
        assert before.end + 3 == after.start
