"""A replay: the interface, over a player instead of a server, driven by recorded input; in the terminal or as frames.

The interface has its recorded size, and so many rows of the terminal; the line below it, which is not the interface's,
says where the replay is and what was pressed. The keys of whoever watches go to the replay alone. What recorded keys
could do beside showing is refused: the clipboard here, everything else by `rtui.server.recording.player`.

Frames, the screen at a moment, are made without a terminal and as fast as they can be. The clock jumps from input to
input, and each one is fed once all replies before it have come and are painted. So the same recording makes the same
frames, whatever the machine.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, NoReturn

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.app import SuspendNotSupported
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer

from rtui.analysis.columns import parse_columns
from rtui.keyspace.rows.rows import RowKind
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.glob import check_pattern
from rtui.registry.load import read_registry
from rtui.registry.registry import Registry, RegistryError
from rtui.server.browsing.session import BrowsingSession
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import BrowseOptions
from rtui.server.recording.document import Cursor, Header, Input, Key, Mouse, Paste, Recording, RecordingError, Resize
from rtui.server.recording.player import Player, ReplayClock
from rtui.server.scan.progress import ScanState
from rtui.server.wall_clock import seeded
from rtui.server.wire.connection import Connection
from rtui.server.wire.dial import dialled_by
from rtui.server.wire.target import Target, Timeouts, Way
from rtui.tui.app import RtuiApp
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.input_recording import MOUSE_EVENTS
from rtui.tui.kit.settings import Settings, SettingsFile
from rtui.tui.kit.themes import Palette, terminal_palette
from rtui.tui.server import ServerScreen

REPLAY_KEYS: Final[dict[str, frozenset[str]]] = {
    "pause": frozenset({"space"}),
    "step": frozenset({"full_stop", "right"}),
    "faster": frozenset({"plus", "equals_sign"}),
    "slower": frozenset({"minus"}),
    "leave": frozenset({"q", "ctrl+c", "ctrl+q", "escape"}),
}

HELP: Final = ("space pause · . next key · + - speed · q leave ", "space . + - q ", "")
"""The keys in words, and shorter for narrow terminals."""

LONGEST_PASTE: Final = 20


def replay_line(recording: Recording, clock: ReplayClock, pressed: Input | None, width: int) -> str:
    """Return the line in exactly `width` cells."""
    now_ms, length_ms = min(clock.now_ms(), recording.length_ms), recording.length_ms
    is_over = now_ms >= length_ms
    state = "the end" if is_over else "paused" if clock.is_paused else f"×{clock.speed:g}"
    cut = " (cut off)" if recording.end is None else ""
    left = f" replay  {minutes(now_ms)} / {minutes(length_ms)}{cut}  {state}"
    if pressed is not None:
        left += f"   {input_text(pressed)}"
    room = width - cell_len(left) - 2
    keys = next((one for one in HELP if len(one) <= room), "")
    return set_cell_size(left, max(0, width - len(keys))) + keys


def minutes(at_ms: float) -> str:
    """Return a time as `1:02.5`."""
    tenths = int(at_ms / 100)
    return f"{tenths // 600}:{tenths // 10 % 60:02}.{tenths % 10}"


def input_text(line: Input) -> SafeText:
    if isinstance(line, Key):
        return display_text(f"key {line.key}" if line.character in (None, " ") else f"key {line.character}")
    if isinstance(line, Paste):
        return display_text(f"pasted {line.text[:LONGEST_PASTE]}")
    if isinstance(line, Mouse):
        return display_text(f"mouse {line.what.replace('_', ' ')} at {line.x}, {line.y}")
    if isinstance(line, Cursor):
        return display_text("cursor")
    return display_text(f"terminal {line.width}×{line.height}")


NEVER_LATE: Final = Way(timeouts=Timeouts(direct_s=1e7, reply_s=1e7))
"""A replay may be paused: no reply is late."""

LINE_S: Final = 0.1
"""Interval in seconds at which the line of the replay is written."""

MOST_SOUGHT: Final = 5_000
"""Rows among which a row is looked for by its name."""

SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)

_TO_CLIPBOARD: Final = re.compile(r"\x1b\]52;|\x1bP")


class ReplayApp(RtuiApp):
    """Plays a recording; `exit` code 0."""

    def __init__(
        self,
        recording: Recording,
        *,
        clock: ReplayClock,
        player: Player,
        palette: Palette = Palette.TRUE,
        feeds_itself: bool = True,
    ) -> None:
        """`feeds_itself`: the recorded input comes by the clock; otherwise the caller feeds it with `feed`."""
        header = recording.header
        settings = SettingsFile()
        try:
            settings.settings = msgspec.convert(header.settings, Settings)
        except msgspec.ValidationError:
            settings.settings = Settings()
        super().__init__(replay_options(header), palette=palette, settings=settings)
        self.recording, self.clock, self.player = recording, clock, player
        self.fed = 0
        """The number of inputs fed."""
        self.frame_size = Size(*recording.size)
        """Of the interface, as recorded; a smaller terminal shows a smaller one."""
        self.terminal: ReplayTerminal | None = None
        """None without one."""
        self._feeds_itself = feeds_itself
        self._feed_timer: Timer
        self._line_timer: Timer

    async def begin(self) -> None:
        await super().begin()
        if self._feeds_itself:
            self._feed_timer = self.set_interval(0.02, self._feed_due)
            self._line_timer = self.set_interval(LINE_S, self._write_line)

    def _new_session(self) -> BrowsingSession:
        connection = Connection(self.options.target)
        began_s = self.recording.header.began_ms / 1000
        deployment = Deployment.over(connection)
        return BrowsingSession(self.options, deployment=deployment, clock=lambda: began_s + self.clock.now_ms() / 1000)

    @property
    def is_under_way(self) -> bool:
        """Whether anything is being fetched or scanned, though it may rest between two commands."""
        if any(worker.is_running for worker in self.workers):
            return True
        if isinstance(self.screen, ServerScreen) and self.screen.is_behind:
            return True  # a sample is being taken, or not shown yet
        state = None if self._session is None else self._session.status.progress.state
        return state is not None and not state.is_over and state is not ScanState.PAUSED

    @property
    def next_input(self) -> Input | None:
        inputs = self.recording.inputs
        return inputs[self.fed] if self.fed < len(inputs) else None

    def feed(self) -> None:
        line = self.next_input
        if line is None:
            return
        self.fed += 1
        if isinstance(line, Key):
            self.post_message(events.Key(line.key, line.character))
        elif isinstance(line, Paste):
            self.post_message(events.Paste(line.text))
        elif isinstance(line, Cursor):
            if isinstance(self.screen, BrowseScreen):
                self._move_cursor(self.screen.tree_pane.key_tree, (line.is_key, line.name.encode("latin-1", "replace")))
        elif isinstance(line, Resize):
            self.frame_size = Size(line.width, line.height)
            self._resize_frame()
        else:
            self.post_message(mouse_event(line))

    def _move_cursor(self, tree: KeyTree, place: tuple[bool, bytes]) -> None:
        if tree.cursor_place != place:
            rows = tree.rows.window(0, min(len(tree.rows), MOST_SOUGHT))
            tree.move_to_row(next((row for row in rows if (row.kind is RowKind.KEY, row.key()) == place), None))

    def _resize_frame(self) -> None:
        size = self.frame_size
        if self.terminal is not None:
            size = Size(*self.terminal.interface_size(size.width, size.height))
        self.post_message(events.Resize(size, size))

    def _feed_due(self) -> None:
        """Feed an input whose time has come; the next one a moment later."""
        line = self.next_input
        if line is not None and line.at <= self.clock.now_ms():
            self.feed()
        elif line is None and not self.clock.is_paused and self.clock.now_ms() > self.recording.length_ms:
            self.clock.pause()

    def _write_line(self) -> None:
        if self.terminal is not None:
            fed = reversed(self.recording.inputs[: self.fed])
            pressed = next((one for one in fed if not isinstance(one, Cursor)), None)
            width, _ = self.terminal.size()
            self.terminal.write_below(replay_line(self.recording, self.clock, pressed, width))

    def control(self, key: str) -> None:
        """Carry out a key of whoever watches."""
        clock, speeds = self.clock, SPEEDS
        if key in REPLAY_KEYS["leave"]:
            self.call_later(self._leave)
        elif key in REPLAY_KEYS["pause"]:
            clock.pause(is_paused=not clock.is_paused)
        elif key in REPLAY_KEYS["step"]:
            line = self.next_input
            clock.jump(self.recording.length_ms if line is None else line.at)
            clock.pause()
        elif key in REPLAY_KEYS["faster"]:
            clock.set_speed(next((speed for speed in speeds if speed > clock.speed), clock.speed))
        elif key in REPLAY_KEYS["slower"]:
            clock.set_speed(next((speed for speed in reversed(speeds) if speed < clock.speed), clock.speed))

    def extend_driver(self, driver_class: type[Driver]) -> type[Driver]:
        """Return a driver whose last row is not the interface's and whose keys are the replay's."""
        return replay_driver(super().extend_driver(driver_class), self)

    async def action_quit(self) -> None:
        """Do nothing: the recorded session ended, the replay stays."""

    def action_help_quit(self) -> None:
        """Do nothing, as above."""

    def action_suspend_process(self) -> None:
        """Do nothing: a recorded key doesn't suspend whoever watches."""

    def action_servers(self) -> None:
        """Notify that there is no other server."""
        self.notify("A replay has only the server that was recorded.", markup=False, timeout=3)

    async def browse_other(self, target: Target, pauses: bool | None = None) -> None:
        """Stay with the recorded server."""
        self.action_servers()

    def suspend(self) -> NoReturn:
        """Raise SuspendNotSupported: a replay runs no other program."""
        raise SuspendNotSupported("a replay runs no other program")

    def copy_to_clipboard(self, text: str) -> None:
        """Leave the clipboard alone."""


class ReplayTerminal(NamedTuple):
    """The terminal below a replay's driver; its last row is not the interface's."""

    size: Callable[[], tuple[int, int]]
    """Returns columns and rows."""
    write: Callable[[str], None]
    """Writes to the terminal directly, past the frames and their comparison."""
    flush: Callable[[], None]

    def interface_size(self, width: int, height: int) -> tuple[int, int]:
        """Return a size as far as the terminal has it, its last row left out."""
        columns, rows = self.size()
        return max(1, min(width, columns)), max(1, min(height, rows - 1))

    def write_below(self, line: str) -> None:
        """Write a safe line on the last row, which is outside the frames."""
        self.write(f"\x1b7\x1b[{self.size()[1]};1H\x1b[0;7m{line}\x1b[0m\x1b8")
        self.flush()


def replay_driver(driver_class: type[Driver], app: ReplayApp) -> type[Driver]:
    base: Any = driver_class

    class ReplayDriver(base):  # type: ignore[misc]
        """Keeps the last row, gives keys to the replay, and writes nothing to the clipboard."""

        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            below_diff: Any = super(base, self)
            self._terminal = ReplayTerminal(super()._get_terminal_size, below_diff.write, self.flush)
            app.terminal = self._terminal

        def _get_terminal_size(self) -> tuple[int, int]:
            return self._terminal.interface_size(app.frame_size.width, app.frame_size.height)

        def send_message(self, message: Message) -> None:
            """Give keys to the replay, and drop all else that a user does."""
            if isinstance(message, events.Key):
                app.call_later(app.control, message.key)
            elif isinstance(message, events.Resize):
                app.call_later(app._resize_frame)
            elif not isinstance(message, events.InputEvent):
                super().send_message(message)

        def write(self, data: str) -> None:
            if not _TO_CLIPBOARD.search(data):
                super().write(data)

    return ReplayDriver


def replay_options(header: Header) -> BrowseOptions:
    """Return the options of the recorded session; raises RecordingError for invalid ones."""
    match = None if header.match is None else header.match.encode("latin-1", "replace")
    try:
        if match is not None:
            check_pattern(match)
        columns = None if header.columns is None else parse_columns(header.columns)
        separators = tuple(one.encode("latin-1") for one in header.separators)
        key_type = None if header.key_type is None else header.key_type.encode("ascii")
    except ValueError:
        raise RecordingError("Its options are unknown to this version.") from None
    return BrowseOptions(
        target=Target(
            db=header.db,
            protocol=header.protocol,
            way=NEVER_LATE,
            shown_as=display_text(f"replay of {header.server}"),
        ),
        separators=separators,
        match=match,
        key_type=key_type,
        pace=header.pace,
        columns=columns,
        ascii_only=header.ascii,
        no_color=header.no_color,
        resume=False,
        registry=None if header.registry is None else _registry(header.registry),
    )


def _registry(text: str) -> Registry:
    """Read the registry of a recording, which may be anybody's."""
    try:
        return read_registry(text, may_include=False)
    except RegistryError:
        raise RecordingError("Its registry is unknown to this version.") from None


def mouse_event(line: Mouse) -> events.MouseEvent:
    delta = {"scroll_down": (0, 1), "scroll_up": (0, -1), "scroll_left": (-1, 0), "scroll_right": (1, 0)}
    delta_x, delta_y = delta.get(line.what, (0, 0))
    return MOUSE_EVENTS[line.what](
        None, line.x, line.y, delta_x, delta_y, line.button, line.shift, line.meta, line.ctrl, line.x, line.y
    )


LOOK_S: Final = 0.02
QUIET_LOOKS: Final = 10
"""Looks without any change after which the screen is as it will be: screens look ten times a second."""

MORE_LOOKS: Final = 100
"""The same while work is under way: a scan rests between its pages the longer, the slower the machine is."""

PATIENCE_S: Final = 30.0
"""The longest wait in seconds until the screen no longer changes."""


def run_replay(recording: Recording, *, speed: float = 1.0, is_paused: bool = False) -> int:
    """Play until whoever watches leaves; returns the exit code."""
    clock = ReplayClock(speed=speed, is_paused=is_paused)
    player = Player(recording, clock.now_ms, clock.wait_until)
    app = ReplayApp(recording, clock=clock, player=player, palette=terminal_palette())
    with dialled_by(player.dial), seeded(recording.header.seed):
        return app.run(size=recording.size) or 0


class Frames:
    """A replay that stands between two inputs."""

    def __init__(self, app: ReplayApp) -> None:
        self.app = app

    async def play(self, until_ms: float = float("inf")) -> None:
        """Feed all inputs up to a time, and wait until the screen is as it was then."""
        app = self.app
        while (line := app.next_input) is not None and line.at <= until_ms:
            app.clock.jump(line.at)
            await self.settle()
            app.feed()
            if not isinstance(line, Cursor):
                await self.settle()
        app.clock.jump(min(until_ms, app.recording.length_ms))
        await self.settle()

    async def settle(self) -> None:
        """Wait until everything that was asked is answered and painted."""
        before, looks = -1, 0
        async with asyncio.timeout(PATIENCE_S):
            while looks < (MORE_LOOKS if self.app.is_under_way else QUIET_LOOKS):
                if self.app._exception is not None:
                    raise self.app._exception
                await asyncio.sleep(LOOK_S)
                is_painted = bool(self.app.screen_stack) and not self.app.screen._dirty_widgets
                now = self.app.player.answered
                looks = looks + 1 if now == before and is_painted else 0
                before = now

    def rows(self) -> list[list[Segment]]:
        with self.app._context():
            strips = list(self.app.screen._compositor.render_strips())
        return [[segment for segment in strip if not segment.control] for strip in strips]

    def text(self) -> str:
        lines = ["".join(segment.text for segment in row) for row in self.rows()]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def svg(self) -> str:
        return self.app.export_screenshot(title="rtui", simplify=True)


@asynccontextmanager
async def frames(recording: Recording) -> AsyncIterator[Frames]:
    """Give a replay without a terminal that stands at its beginning."""
    clock = ReplayClock(is_paused=True)
    player = Player(recording, clock.now_ms)
    app = ReplayApp(recording, clock=clock, player=player, feeds_itself=False)
    with dialled_by(player.dial), seeded(recording.header.seed):
        async with app.run_test(size=recording.size, notifications=True):
            shown = Frames(app)
            await shown.settle()
            yield shown


async def picture_of(recording: Recording, until_ms: float, *, is_svg: bool) -> str:
    async with frames(recording) as shown:
        await shown.play(until_ms)
        return shown.svg() if is_svg else shown.text()
