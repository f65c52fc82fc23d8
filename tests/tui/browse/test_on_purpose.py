"""Elements that may be large: what is said before they are read, and that they are read only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.tui.browse.value_rows import ItemKind
from rtui.tui.kit.choice import ChoiceScreen
from tests.servers import Server
from tests.tui.browse.test_decoders import at_value

HUGE = 12 << 20


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_enter_reads_items_that_may_be_large_and_shows_the_small_ones(
    valkey: Server, tmp_path: Path, size: tuple[int, int]
) -> None:
    client = valkey.client()
    client.rpush("list", b"first", b"x" * HUGE, b"third")
    async with at_value(valkey, tmp_path, b"list", size=size) as visitor:
        await visitor.until_shown("Too large to read", "Read 1 item: 4.00 MiB on", "Read 3 items: at most all 12.0 MiB")
        item = visitor.pane.body.item
        assert item is not None
        assert item.kind is ItemKind.OFFER
        await visitor.press("enter")
        await visitor.until_shown("first", "n ›")
        await visitor.press("n")
        await visitor.until_shown("Read 1 item")
        assert visitor.detail.preview is not None
        assert visitor.detail.preview.offers[0].page.position == 1
        await visitor.press("b")
        await visitor.until_shown("first")
        await visitor.press("n")
        await visitor.until_shown("Read 2 items")
        await visitor.press("down", "enter")
        await visitor.until_shown("third")
        assert "xxxx" in visitor.text()
        visitor.check_painted()


@pytest.mark.slow
async def test_a_large_field_is_read_after_a_question(valkey: Server, tmp_path: Path) -> None:
    valkey.client().hset("hash", mapping={"large": b"x" * HUGE})
    async with at_value(valkey, tmp_path, b"hash") as visitor:
        await visitor.until_shown("(12.0 MiB, not read)")
        await visitor.press("enter")
        await visitor.until(lambda: isinstance(visitor.app.screen, ChoiceScreen), "the question")
        await visitor.until_shown("field large", "Read 12.0 MiB")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "that it is left")
        assert not visitor.pane.value.value.opened
        await visitor.press("enter")
        await visitor.until(lambda: isinstance(visitor.app.screen, ChoiceScreen), "the question")
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.pane.value.value.opened, "the field")
        assert visitor.pane.value.value.opened[0].document.data == b"x" * HUGE
