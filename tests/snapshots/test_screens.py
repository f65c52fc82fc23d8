"""The main states of the interface as pictures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.status import BrowsingStatus, NodeStatus
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.identity import Outdated
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.connect import ConnectScreen
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.clipboard import SelectScreen
from tests.tui.analyse.analysing import analysed_session
from tests.tui.browse.test_lines import KEY, REGISTRY
from tests.tui.browse.test_panes import Growing, refreshed
from tests.tui.browsing import BrowseUser, is_settled, until
from tests.tui.fixed_session import COMPLETE, FixedSession
from tests.tui.palettes import PALETTE_APPS, ConsoleApp

REFUSED = Progress(state=ScanState.FAILED, fraction=None, reason=SafeText("NOPERM SCAN is not allowed"))

Compare = Callable[..., bool]
SMALL, MEDIUM = (80, 24), (120, 36)
SIZES = pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=["80x24", "120x36"])

SCANNING = replace(
    COMPLETE,
    complete=False,
    sampled=2_000,
    progress=Progress(state=ScanState.RUNNING, fraction=0.78, keys=5_280, keys_per_s=212_000, eta_s=2.4),
    cost=Cost(commands=120, keys=5_280, bytes_in=180_224, bytes_out=11_264, server_us=22_000, elapsed_s=0.2),
)


CLUSTERED = replace(
    COMPLETE,
    server=replace(COMPLETE.server, cluster_enabled=True),
    nodes=tuple(
        NodeStatus(f"{at:040}", SafeText(f"10.0.0.{at}:6379"), slots, None, 1_000)
        for at, slots in ((5, ((0, 5_460),)), (6, ((5_461, 10_922),)), (7, ((10_923, 16_383),)))
    ),
)


def app(session: FixedSession, **options: object) -> RtuiApp:
    return RtuiApp(BrowseOptions(target=Target(host="10.0.0.5"), **options), session)  # type: ignore[arg-type]


def doing(*keys: str) -> Callable[[Pilot[int]], Awaitable[None]]:
    """Wait for the tree, press keys, and let everything come to rest."""

    async def run(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, BrowseScreen))
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
        await settle(pilot)

    return run


async def settle(pilot: Pilot[int]) -> None:
    """Wait until nothing more comes of what was pressed."""
    browse = next(screen for screen in pilot.app.screen_stack if isinstance(screen, BrowseScreen))
    await until(pilot, lambda: is_settled(browse))


@SIZES
def test_browsing(snap_compare: Compare, size: tuple[int, int]) -> None:
    keys = ("enter", "down", "enter", "down", "enter", "down", "down")
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*keys))


@SIZES
def test_after_an_analysis(snap_compare: Compare, size: tuple[int, int]) -> None:
    keys = ("f", *"shop", "enter", "enter", "down", "enter", "down", "enter", "down", "down")
    assert snap_compare(app(analysed_session()), terminal_size=size, run_before=doing(*keys))


def test_marked_keys(snap_compare: Compare) -> None:
    async def mark(pilot: Pilot[int]) -> None:
        await doing()(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, BrowseScreen)
        tree = screen.tree_pane.key_tree
        for key in (b"shop:user:7:orders", b"shop:user:7:profile"):
            screen.tree_pane.reveal(key)
            await until(pilot, lambda key=key: tree.cursor is not None and tree.cursor.key() == key)  # type: ignore[misc]
            await pilot.press("space")
        await pilot.press("U")
        await until(pilot, lambda: isinstance(pilot.app.screen, TextCard))
        await settle(pilot)
        await pilot.pause()

    assert snap_compare(app(FixedSession(CLUSTERED)), terminal_size=MEDIUM, run_before=mark)


def test_scanning_over_a_sample(snap_compare: Compare) -> None:
    session = FixedSession(SCANNING)
    session.expect(b"shop", 5_900, 6_200, 6_500)
    session.expect(b"queue", 12, 30, 70)
    session.status = replace(session.status, total=6_750)
    assert snap_compare(app(session), terminal_size=MEDIUM, run_before=doing("i"))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("hash-with-hostile-values", "shop:session:0042"), ("zset", "ranking"), ("stream", "events"),
        ("too-large", "huge"), ("denied-and-unknown-type", "secret"), ("empty-name", ""),
    ],
    ids=lambda value: str(value).replace(":", "-"),
)  # fmt: skip
def test_a_key(snap_compare: Compare, name: str, keys: str) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await doing()(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, BrowseScreen)
        screen.tree_pane.reveal(keys.encode())
        await until(pilot, lambda: screen.detail_pane.detail.key == keys.encode() and is_settled(screen))

    assert snap_compare(app(FixedSession()), terminal_size=MEDIUM, run_before=look)


def test_watching(snap_compare: Compare) -> None:
    session = Growing()

    async def look(pilot: Pilot[int]) -> None:
        await doing()(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, BrowseScreen)
        screen.tree_pane.reveal(b"jobs")
        await until(pilot, lambda: screen.detail_pane.detail.key == b"jobs" and is_settled(screen))
        await pilot.press("W")
        user = BrowseUser(pilot, screen, session)
        await refreshed(user)
        session.length, session.memory = 700, 9_000
        await refreshed(user)
        screen.pane_watch.watcher.pace_s = 3.0
        screen.pane_watch.tick(is_ready=False)
        await pilot.pause()

    assert snap_compare(app(session), terminal_size=MEDIUM, run_before=look)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("columns", ("c",)),
        ("palette", ("ctrl+p", *"sort")),
        ("slot-with-a-tag", ("f", *"{user", "enter", "right", "down", "2")),
        ("reading", ("right", "right", "tab")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_keys_bring(snap_compare: Compare, name: str, keys: tuple[str, ...]) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=MEDIUM, run_before=doing(*keys))


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("outdated", replace(COMPLETE, outdated=Outdated.RESTARTED, seen_age_s=125.0)),
        ("lost", replace(SCANNING, link=Lost(None, 2, 0.0))),
        ("one-node", replace(COMPLETE, server=replace(COMPLETE.server, cluster_enabled=True, cluster_known_nodes=6))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_states(snap_compare: Compare, name: str, status: BrowsingStatus) -> None:
    assert snap_compare(app(FixedSession(status)), terminal_size=MEDIUM, run_before=doing())


def test_empty_database(snap_compare: Compare) -> None:
    assert snap_compare(app(FixedSession(COMPLETE, [])), terminal_size=SMALL, run_before=doing())


def test_a_text_to_select(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")

    async def look(pilot: Pilot[int]) -> None:
        await doing("f", *"{user", "enter", "y")(pilot)
        await until(pilot, lambda: isinstance(pilot.app.screen, SelectScreen))

    assert snap_compare(app(FixedSession()), terminal_size=SMALL, run_before=look)


def test_connection_failed(snap_compare: Compare) -> None:
    session = FixedSession()
    session.failure = ConnectFailure(
        FailureKind.REFUSED,
        "Nothing listens on 10.0.0.5 port 6379.",
        "Check host and port; is the server running, and does it listen on this address?",
    )

    async def wait(pilot: Pilot[int]) -> None:
        screen = pilot.app.screen
        await until(pilot, lambda: isinstance(screen, ConnectScreen) and screen.card.has_class("-failed"))

    assert snap_compare(app(session), terminal_size=SMALL, run_before=wait)


def test_narrow_detail(snap_compare: Compare) -> None:
    keys = ("enter", "down", "enter", "down", "enter", "down", "down", "enter")
    assert snap_compare(app(FixedSession()), terminal_size=SMALL, run_before=doing(*keys))


@pytest.mark.parametrize("colours", PALETTE_APPS)
def test_few_colours(snap_compare: Compare, colours: str) -> None:
    shown = PALETTE_APPS[colours]
    keys = ("enter", "down", "enter", "down", "enter", "down", "down")
    one = shown(BrowseOptions(target=Target(host="10.0.0.5")), FixedSession(), palette=shown.shown_in)
    assert snap_compare(one, terminal_size=MEDIUM, run_before=doing(*keys))


def test_on_the_linux_console(snap_compare: Compare) -> None:
    one = ConsoleApp(BrowseOptions(on_console=True), FixedSession(SCANNING), palette=ConsoleApp.shown_in)
    assert snap_compare(one, terminal_size=SMALL, run_before=doing("enter", "down"))


def test_plain_ascii(snap_compare: Compare) -> None:
    session = FixedSession(SCANNING)
    session.expect(b"shop", 5_900, 6_200, 6_500)
    assert snap_compare(app(session, ascii_only=True), terminal_size=MEDIUM, run_before=doing("enter", "down"))


def test_without_colours(snap_compare: Compare) -> None:
    assert snap_compare(app(FixedSession(), no_color=True), terminal_size=MEDIUM, run_before=doing("enter", "down"))


def test_the_schema_after_an_analysis(snap_compare: Compare) -> None:
    run = doing("F", "home", "asterisk", "down", "down", "down")
    assert snap_compare(app(analysed_session()), terminal_size=MEDIUM, run_before=run)


def test_the_schema_by_names_while_scanning(snap_compare: Compare) -> None:
    run = doing("F", "home", "asterisk", "down", "down", "tab")
    assert snap_compare(app(FixedSession(SCANNING)), terminal_size=SMALL, run_before=run)


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        (("question_mark",), SMALL),
        (("a", "2", "question_mark"), MEDIUM),
        (("question_mark", "shift+tab", "shift+tab"), SMALL),
    ],
    ids=["tree", "analysis", "rules"],
)
def test_help(snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*keys))


@pytest.mark.parametrize(
    ("text", "size"), [("", SMALL), ("user", MEDIUM), ("key hostile", (40, 14))], ids=["begins", "names", "hostile"]
)
def test_going(
    snap_compare: Compare, size: tuple[int, int], text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("rtui.server.user.known_servers.default_path", lambda: tmp_path / "profiles.toml")
    monkeypatch.setattr("platformdirs.user_state_path", lambda *_names, **_options: tmp_path)
    keys = ("colon", *("space" if character == " " else character for character in text))
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*keys))


@pytest.mark.parametrize(
    ("key", "size"), [(KEY, MEDIUM), (KEY, SMALL), (b"jobs", MEDIUM)], ids=["broken", "broken-80x24", "unregistered"]
)
def test_what_a_registry_says(snap_compare: Compare, key: bytes, size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await doing()(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, BrowseScreen)
        screen.tree_pane.reveal(key)
        await until(pilot, lambda: screen.detail_pane.detail.preview is not None)
        await settle(pilot)
        if size == SMALL:
            await pilot.press("enter")
            await settle(pilot)

    assert snap_compare(app(FixedSession(), registry=REGISTRY), terminal_size=size, run_before=look)
