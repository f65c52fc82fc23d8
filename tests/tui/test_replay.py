"""A session recorded on a real server is played without one: the same texts on the same screens."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from rtui.cli.browse import replay_command
from rtui.server.options import BrowseOptions
from rtui.server.recording.document import End, Header, Key, Recording, RecordingError, Resize, read_recording
from rtui.server.recording.player import ReplayClock
from rtui.server.recording.recorder import Recorder
from rtui.server.wall_clock import seeded
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.kit.settings import Settings, SettingsFile
from rtui.tui.replay import frames, minutes, replay_line, replay_options
from tests.clusters import TestCluster
from tests.server import every_type
from tests.servers import Server
from tests.tui.visiting import Visitor, private_folders, visiting

SIZE = (100, 30)


TOUR: tuple[tuple[str, ...], ...] = (
    *(("right",), ("down",), ("right",), ("down",), ("question_mark",), ("escape",), ("L",), ("escape",)),
    *(("slash",), tuple("zset"), ("enter",), ("escape",)),
)
"""Keys of each step."""

SHOWN: dict[tuple[str, ...], str] = {("question_mark",): "Help", ("L",): "DBSIZE"}
"""What some of them bring."""


class Taker:
    """Somebody whose session is recorded, with what stood on the screen after each step."""

    def __init__(self, visitor: Visitor, recorder: Recorder) -> None:
        self.visitor = visitor
        self.recorder = recorder
        self.seen: list[tuple[float, list[str]]] = []

    async def step(self, *keys: str, shows: str = "") -> None:
        """Press keys, and look at the screen when all that came of them is there."""
        for key in keys:
            await self.visitor.pilot.press(key)
        await self.rest(shows)
        self.seen.append((self.recorder.at_ms, middle(self.visitor.text())))

    async def rest(self, shows: str = "") -> None:
        """Wait until this text is there, and all that was asked."""
        if shows:
            await self.visitor.until_shown(shows)
        await self.visitor.until(self._is_at_rest, "what comes of what was pressed")

    def _is_at_rest(self) -> bool:
        """Whether all that was asked is answered and painted."""
        app, browse = self.visitor.app, self.visitor.browse
        if app.screen._dirty_widgets or any(worker.is_running for worker in app.workers):
            return False
        if app.screen is not browse:
            return True
        names, missing = browse.tree_pane.names, browse.tree_pane._facts.missing(self.visitor.tree.rows_in_view)
        is_shown = browse._shown[0] == browse.session.revision + names.revision
        return is_shown and not missing and self.visitor._is_settled()


def middle(text: str) -> list[str]:
    """The lines between the title and the status, which tell loads, without an idle time, which goes on."""
    return re.sub(r"idle +\d+s *", "idle ", text).splitlines()[1:-3]


async def record(server: Server, path: Path, folder: Path, *, is_short: bool = False) -> Taker:
    """Take a tour of some screens, or of the tree alone."""
    recorder = Recorder(path)
    target = Target(port=server.port)
    settings = SettingsFile()
    settings.settings = Settings(theme="rtui-light", queries={str(target.label): {"mine": "in:customer"}})
    app = RtuiApp(BrowseOptions(target=target, resume=False), recorder=recorder, settings=settings)
    with seeded(recorder.seed):
        async with visiting(target, folder, size=SIZE, app=app) as visitor:
            taker = Taker(visitor, recorder)
            await visitor.whole()
            await taker.rest("Biggest k")  # a recording that is cut off at the first key has all that comes before it
            await taker.step("home")  # the cursor stays with what came first
            for keys in TOUR[: 1 if is_short else None]:
                await taker.step(*keys, shows=SHOWN.get(keys, ""))
            await visitor.press("q")
            await visitor.until(lambda: not app.is_running, "the end")
    recorder.close()
    return taker


async def replayed(recording: Recording, folder: Path, times_ms: list[float]) -> list[list[str]]:
    """What stands on the screen at those times."""
    found = []
    with private_folders(folder):
        async with frames(recording) as shown:
            for at_ms in times_ms:
                await shown.play(at_ms)
                found.append(middle(shown.text()))
    return found


def plant(server: Server) -> None:
    with server.client() as client:
        every_type.fill(server, client)
        for number in range(60):
            client.set(f"customer:{number}:profile", "private-content")
            client.hset(f"{{tenant{number % 3}}}:basket:{number}", mapping={"private-field": "private-content"})


@pytest.mark.slow
def test_the_same_screens_without_a_server(redis70: Server, tmp_path: Path) -> None:
    plant(redis70)
    path = tmp_path / "tour.jsonl"
    taker = asyncio.run(record(redis70, path, tmp_path))
    recording = read_recording(path)
    assert recording.end is not None
    with redis70.client() as client:
        before = client.info("commandstats")
        found = asyncio.run(replayed(recording, tmp_path, [at_ms for at_ms, _ in taker.seen]))
        after = client.info("commandstats")
    assert {name: one["calls"] for name, one in after.items() if name != "cmdstat_info"} == {
        name: one["calls"] for name, one in before.items() if name != "cmdstat_info"
    }
    log = TOUR.index(("L",)) + 1  # times differ
    for number, ((_, wanted), shown) in enumerate(zip(taker.seen, found, strict=True)):
        if number != log:
            assert shown == wanted, f"step {number}"


SERVER_TOUR: tuple[tuple[tuple[str, ...], str], ...] = (
    (("exclamation_mark",), "no problems"),
    (("2",), "evictable keys"),
    (("4",), "Slow commands by command"),
    (("right_square_bracket",), "HGETALL"),
)
"""Keys on the way over the Server screen, and what they bring."""


def test_the_server_screen_is_played(redis70: Server, tmp_path: Path) -> None:
    plant(redis70)
    redis70.admin.config_set("slowlog-log-slower-than", 0)
    redis70.admin.hset("customer:seven", mapping={"name": "SECRET-1"})
    redis70.admin.hgetall("customer:seven")
    redis70.admin.config_set("slowlog-log-slower-than", 10_000)
    path, times = tmp_path / "session.jsonl.gz", list[float]()

    async def take() -> None:
        recorder = Recorder(path)
        options = BrowseOptions(target=Target(port=redis70.port), resume=False)
        app = RtuiApp(options, recorder=recorder)
        with seeded(recorder.seed):
            async with visiting(options.target, tmp_path / "folder", size=SIZE, app=app) as visitor:
                await visitor.whole()
                for keys, shows in SERVER_TOUR:
                    await visitor.press(*keys)
                    await visitor.until_shown(shows)
                    times.append(recorder.at_ms)
                await visitor.press("q")
                await visitor.until(lambda: not app.is_running, "the end")
        recorder.close()

    asyncio.run(take())
    shown = asyncio.run(replayed(read_recording(path), tmp_path / "replay", times))
    for screen, (_, shows) in zip(shown, SERVER_TOUR, strict=True):
        assert shows in "\n".join(screen)
    assert "customer" in "\n".join(shown[-1])
    picture = tmp_path / "frame.svg"
    program = [sys.executable, "-m", "rtui", "replay", str(path), "--to", str(picture), "--at", str(times[1] / 1000)]
    subprocess.run(program, check=True, timeout=120)
    assert "2&#160;Memory" in picture.read_text()


@pytest.mark.slow
def test_a_file_that_is_cut_off_plays_up_to_there(redis70: Server, tmp_path: Path) -> None:
    plant(redis70)
    path, cut = tmp_path / "tour.jsonl", tmp_path / "cut.jsonl"
    taker = asyncio.run(record(redis70, path, tmp_path, is_short=True))
    data = path.read_bytes()
    cut.write_bytes(data[: data.index(b'"kind":"key"') + 20])
    recording = read_recording(cut)
    assert recording.end is None
    assert recording.exchanges
    (shown,) = asyncio.run(replayed(recording, tmp_path, [taker.seen[0][0]]))
    assert shown == taker.seen[0][1]


HOSTILE = (
    *(Key(100.0 * at, key, character) for at, (key, character) in enumerate([
        ("right", None), ("down", None), ("w", "w"), ("enter", None), ("Y", "Y"), ("enter", None), ("P", "P"),
        ("O", "O"), ("escape", None), ("ctrl+z", None), ("ctrl+p", None), ("escape", None), ("ctrl+q", None),
    ])),
    Resize(2000, 1, 1), Resize(2001, 1000, 1000), Resize(2002, 100, 30),
)  # fmt: skip


@pytest.mark.slow
def test_keys_of_a_hostile_file_do_nothing_but_show(redis70: Server, tmp_path: Path) -> None:
    plant(redis70)
    path, folder = tmp_path / "tour.jsonl", tmp_path / "home"
    asyncio.run(record(redis70, path, tmp_path, is_short=True))
    recording = read_recording(path)
    lines = [recording.header, *recording.exchanges, *HOSTILE, End(3000, "left")]
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-m", "rtui", "replay", str(hostile), "--to", "-"]
    done = subprocess.run(line, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "replay of" in done.stdout
    assert list(folder.rglob("*")) == []


def test_confinement_refuses_what_writes_runs_or_connects() -> None:
    program = """
import os, socket, subprocess, tempfile
from rtui.server.recording.player import confine
confine()
for step in (
    lambda: open("written", "w"), lambda: os.open("written", os.O_CREAT | os.O_WRONLY),
    lambda: tempfile.mkstemp(dir="."),
    lambda: subprocess.run(["true"]), lambda: os.system("true"), lambda: os.mkdir("made"), lambda: os.remove("there"),
    lambda: socket.create_connection(("127.0.0.1", 6379)), lambda: os.execv("/bin/true", ["true"]), lambda: os.fork(),
):
    try:
        step()
    except PermissionError:
        print("refused")
print(open(os.devnull).read(), end="")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.count("refused") == 10, done.stderr


@pytest.mark.slow
def test_a_session_is_recorded_to_a_picture(redis70: Server, tmp_path: Path) -> None:
    plant(redis70)
    path = tmp_path / "tour.jsonl"
    asyncio.run(record(redis70, path, tmp_path, is_short=True))
    for name, begins in (("a.svg", "<svg"), ("a.txt", " rtui")):
        program = [sys.executable, "-m", "rtui", "replay", str(path), "--to", str(tmp_path / name), "--at", "1"]
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_text().startswith(begins)


def test_options_that_say_nothing_together_are_refused(tmp_path: Path) -> None:
    for line in (["a", "--at", "1"], ["a", "--to", "a.png"], ["missing", "--to", "-"]):
        assert CliRunner().invoke(replay_command, [str(tmp_path / line[0]), *line[1:]]).exit_code != 0


def test_a_registry_is_played_with_the_session() -> None:
    header = Header(
        rtui="1", began_ms=0, seed=1, server="s", separators=[":"], width=80, height=24,
        registry='title = "shop"',
    )  # fmt: skip
    options = replay_options(header)
    assert options.registry is not None
    assert options.registry.title == "shop"
    with pytest.raises(RecordingError, match="registry"):
        replay_options(msgspec.structs.replace(header, registry="include = ['ecm']"))


@pytest.mark.parametrize("width", [10, 30, 60, 80, 200])
def test_the_line_has_the_width_of_the_terminal(width: int) -> None:
    header = Header(rtui="1", began_ms=0, seed=1, server="s", separators=[":"], width=80, height=24)
    line = replay_line(
        Recording(header, inputs=[Key(5, "a")]), ReplayClock(is_paused=True), Key(5, "\x1b", "字"), width
    )
    assert cell_len(line) == width
    assert "\x1b" not in line
    assert ("q leave" in line) == (width == 200)
    assert ("space" in line) == (width >= 80)


def test_minutes() -> None:
    assert [minutes(at_ms) for at_ms in (0, 999, 62_500, 3_600_000)] == ["0:00.0", "0:00.9", "1:02.5", "60:00.0"]


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_a_session_of_a_cluster_is_not_recorded_and_says_so(cluster: TestCluster, tmp_path: Path) -> None:
    path, target = tmp_path / "session.jsonl", Target(port=cluster.members[0].server.port)
    recorder = Recorder(path)
    app = RtuiApp(BrowseOptions(target=target, resume=False), recorder=recorder)
    async with visiting(target, tmp_path, size=SIZE, app=app) as visitor:
        await visitor.until_shown("--only-node records")
    recorder.close()
    with pytest.raises(RecordingError, match="of which nothing is recorded"):
        read_recording(path)
