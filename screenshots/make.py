"""Make the pictures of this folder from the demo keyspace: `python screenshots/make.py [NAME…]`, in a checkout."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from rtui.demo.load import demo_server  # noqa: E402 - the checkout has to be found first
from rtui.server.wire.target import Target  # noqa: E402
from rtui.tui.help import HelpScreen  # noqa: E402
from tests.tui.visiting import Visitor, visiting  # noqa: E402

Steps = Callable[[Visitor], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Picture:
    """One screen at one size in one theme, and how to get there."""

    name: str
    size: tuple[int, int]
    steps: Steps
    theme: str | None = None
    ascii_only: bool = False


async def browse(visitor: Visitor) -> None:
    """A session among its neighbours."""
    await session(visitor)
    await visitor.down()
    await opened(visitor)
    await visitor.down()
    await visitor.down()


async def opened(visitor: Visitor) -> None:
    """Open the namespace under the cursor, to the end."""
    await visitor.open()
    node = visitor.row.namespace
    await visitor.until(lambda: node.opened and not visitor.app.workers, "a namespace that is open")
    await visitor.settled()


async def session(visitor: Visitor) -> None:
    """The largest namespace, opened."""
    await visitor.press("home")
    await visitor.until(lambda: visitor.tree.cursor_line == 0, "the first row")
    await opened(visitor)


async def json(visitor: Visitor) -> None:
    """A JSON string laid out."""
    await visitor.go("order:1")


async def stream(visitor: Visitor) -> None:
    """A stream with its groups."""
    await visitor.go("awkward:values:stream")


async def slot(visitor: Visitor) -> None:
    """Why a key with a hash tag lies in its slot."""
    await visitor.go("awkward:tags:{user:1}:cart")
    await visitor.press("2")
    await visitor.until_shown("CRC16")


async def awkward(visitor: Visitor) -> None:
    """Names that would like to do something to the terminal."""
    await visitor.go("awkward:names:constructor")


async def search(visitor: Visitor) -> None:
    """Names with a text in them."""
    await visitor.press("slash")
    await visitor.until(lambda: visitor.app.focused is visitor.browse.filter_input, "the filter line")
    await visitor.paste("lock")
    names = visitor.browse.tree_pane.names
    await visitor.until(lambda: names.rows and not names.is_searching, "matches")
    await visitor.until_shown("ecm", "lock:*")
    await visitor.settled()


async def help_page(visitor: Visitor) -> None:
    """Every command."""
    await visitor.press("question_mark")
    await visitor.until(lambda: isinstance(visitor.app.screen, HelpScreen), "the help")
    await visitor.until_shown("esc closes", "Analyse")


async def analysed(visitor: Visitor) -> None:
    """Ask every key, to the end."""
    await visitor.press("a")
    await visitor.until_shown("What does this keyspace hold?")
    await visitor.press("plus", "plus", "r")
    await visitor.until_shown("complete")


def panel(key: str, *then: str) -> Steps:
    """A panel of the analysis, by its key, and keys to press there."""

    async def steps(visitor: Visitor) -> None:
        await analysed(visitor)
        await visitor.press(key, *then)
        await visitor.pilot.pause()

    return steps


async def server(visitor: Visitor) -> None:
    """What the memory of the server is used for, and how that went, joined with what is known of the keys."""
    await analysed(visitor)
    await visitor.press("exclamation_mark")
    await visitor.until_shown("[1 Overview]", "connected")
    await visitor.press("2")
    await visitor.until_shown("eviction policy", "15s ago")


PICTURES: Final = (
    Picture("browse-80x24", (80, 24), session),
    Picture("browse-120x36", (120, 36), browse),
    Picture("browse-200x50", (200, 50), json),
    Picture("browse-light", (120, 36), stream, theme="rtui-light"),
    Picture("browse-high-contrast", (120, 36), json, theme="rtui-high-contrast"),
    Picture("browse-ansi16", (120, 36), browse, theme="rtui-ansi16"),
    Picture("browse-ascii", (80, 24), session, ascii_only=True),
    Picture("slot", (120, 36), slot),
    Picture("awkward", (120, 36), awkward),
    Picture("search", (120, 36), search),
    Picture("help", (120, 36), help_page),
    Picture("server", (120, 36), server),
    Picture("analyse-findings", (120, 36), panel("1")),
    Picture("analyse-memory", (120, 36), panel("2")),
    Picture("analyse-memory-80x24", (80, 24), panel("2")),
    Picture("analyse-big", (120, 36), panel("3")),
    Picture("analyse-hot", (120, 36), panel("4")),
    Picture("analyse-expiry", (120, 36), panel("5"), theme="rtui-light"),
    Picture("analyse-slots", (120, 36), panel("6")),
    Picture("analyse-types", (120, 36), panel("7")),
)


async def make(picture: Picture, target: Target, folder: Path) -> None:
    """Go there and save what is shown."""
    options = {"theme": picture.theme, "ascii_only": picture.ascii_only, "demo": True, "resume": False}
    async with visiting(target, folder, size=picture.size, **options) as visitor:
        await visitor.whole()
        await picture.steps(visitor)
        if visitor.is_browsing:
            await visitor.until(lambda: not visitor.facts_missing(), "the facts of the rows")
        svg = visitor.app.export_screenshot(title="rtui", simplify=True)
        path = HERE / f"{picture.name}.svg"
        # Without this, some renderers drop the spaces that texts begin and end with.
        path.write_text(svg.replace("<text ", '<text xml:space="preserve" '), encoding="utf-8")
        print(path.name)  # noqa: T201 - what a script says


def main(wanted: list[str]) -> None:
    """Make the pictures with these names, or all."""
    with demo_server() as demo, tempfile.TemporaryDirectory() as folder:
        if not demo.wait_loaded():
            sys.exit("the demo keyspace did not load")
        for picture in PICTURES:
            if not wanted or picture.name in wanted:
                asyncio.run(make(picture, demo.target, Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
