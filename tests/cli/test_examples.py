"""The commands in the README, on the pages of the help and in the help of each command, run on a server of ours.

Lines that install from a package index are not run here: one of them is how CI sets up, see `.ci/run`.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
import pytest

from rtui.cli.help import Command
from rtui.cli.main import COMMANDS, group, run
from rtui.registry.load import read_registry
from rtui.server.user import known_servers
from tests.servers import CHECKOUT, Server
from tests.window import window

_ADDRESS: Final = re.compile(r"(?<![\w.])(?:10\.0\.0\.[56]|prod|cache)(?::\d+)?(?![\w.-])")
_WORDS: Final = {"PAGE": "start", "TOPIC": "start", "STATEMENT": "SELECT count(*) FROM keys", "yesterday": "2"}

_FROM_REPORT: Final = ("report", "--no-keep", "-o")
MADE_BY: Final = {
    **dict.fromkeys(("before.json", "after.json", "yesterday.json", "today.json", "report.json"), _FROM_REPORT),
    **dict.fromkeys(("earlier.json", "keys.json"), _FROM_REPORT),
    **dict.fromkeys(
        ("keys.parquet", "node1.parquet", "node2.parquet", "monday.parquet", "tuesday.parquet"), ("export", "-o")
    ),
    "FOLDER/": ("export", "-o"),
    "samples.jsonl": ("health", "-o"),
    **dict.fromkeys(("keys.toml", "rtui.toml"), ("patterns", "-o")),
}
"""The files that commands read, and the commands that write them."""

_WRITES: Final = frozenset({"-o", "--output", "--log", "--record"})


def commands(lines: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the words of each command, with comments and what follows a pipe left out."""
    parts = [part.partition("|")[0] for line in lines for part in re.split(r" {2,}", line.strip())[0].split("&&")]
    return list(dict.fromkeys(words for part in parts if (words := tuple(shlex.split(part, comments=True)))))


def meant(words: Iterable[str], server: Server) -> list[str]:
    """Return words with this server in place of those that are named, and with words for placeholders."""
    address = f"127.0.0.1:{server.port}"
    words = shlex.split(re.sub(r"-h [\w.]+", f"-h 127.0.0.1 -p {server.port}", shlex.join(words)))
    found = [_ADDRESS.sub(address, word).replace("@yesterday", "@2") for word in words]
    named = [address if word == "TARGET" else _WORDS.get(word, word) for word in found]
    return [
        one for word in named for one in (sorted(map(str, Path().glob(word))) if word.startswith("dumps/") else [word])
    ]


def prepare(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Write the files that a command reads, and keep two reports where it asks for kept ones."""
    read = [word for at, word in enumerate(words) if at and words[at - 1] not in _WRITES]
    for name in read:
        if name in MADE_BY and not Path(name).exists():
            assert run([*MADE_BY[name], name]) == 0, name
    if words[0] == "history" or any("@" in word and not word.startswith("redis://") for word in read):
        assert [run(["report", "-o", "kept.json"]) for _ in range(2)] == [0, 0]
    capsys.readouterr()


@pytest.fixture
def addressed(valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with some keys, a user, a profile and dumps, in place of those that texts name."""
    valkey.admin.mset(dict.fromkeys(("order:1", "cart:42", "session:7", "sale:{campaign42}"), "x"))
    valkey.admin.set("shop:big", "x" * (2 << 20))
    valkey.admin.execute_command("ACL", "SETUSER", "app", "on", "nopass", "~*", "+@read", "+@connection", "+info")
    valkey.admin.save()
    dump = Path(*(str(valkey.admin.config_get(name)[name]) for name in ("dir", "dbfilename")))
    (tmp_path / "dumps").mkdir()
    for name in ("dump.rdb", "monday.rdb", "tuesday.rdb", "dumps/1.rdb", "dumps/2.rdb"):
        (tmp_path / name).write_bytes(dump.read_bytes())
    for name in ("servers.txt", "prod.txt"):
        (tmp_path / name).write_text(f"127.0.0.1:{valkey.port} team=shop\n")
    profiles = known_servers.default_path()
    profiles.parent.mkdir(parents=True, exist_ok=True)
    profiles.touch(0o600)
    profiles.write_text(f'[prod-cache]\nurl = "redis://127.0.0.1:{valkey.port}"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RTUI_URL", f"redis://127.0.0.1:{valkey.port}")
    return valkey


ON_SCREEN: Final = frozenset({"browse", "open", "replay"})
ENDLESS: Final = frozenset({"--watch", "--open", "mcp"})
SLOW: Final = frozenset({"--demo", "sql", "dump.rdb", "monday.rdb", "--dask"})
FINDS: Final = frozenset({"check", "diff", "slot"})
"""The commands whose exit code says what they found: 0, 1 or 3."""


README: Final = (CHECKOUT / "README.md").read_text("utf-8")


def fenced(text: str) -> list[str]:
    """Return the lines of code for a shell."""
    found = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line for one in found for line in one.splitlines()]


def spans(text: str) -> list[str]:
    """Return the code in sentences that is a command with arguments."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`((?:rtui|make) [^`\n]+)`", prose)


def examples(text: str) -> list[tuple[str, ...]]:
    """Return the commands of rtui in code and in sentences, those of a subcommand alone left out."""
    indented = re.findall(r"^ {4}(rtui .*)$", text, re.MULTILINE)
    named = [one for one in spans(text) if one.count(" ") > 1]
    found = commands([*fenced(text), *indented, *named])
    return [words[1:] for words in found if Path(words[0]).name == "rtui" and len(words) > 1]


TEXTS: Final = {
    "README": examples(README),
    **{path.stem: examples(path.read_text("utf-8")) for path in sorted((CHECKOUT / "rtui/help").glob("*.md"))},
}


def own_examples(name: str) -> list[tuple[str, ...]]:
    command = group.get_command(click.Context(group), name)
    assert isinstance(command, Command)
    return [words[1:] for words in commands(command.examples)]


ALL: Final = list(
    dict.fromkeys(
        words for found in (*TEXTS.values(), *map(own_examples, COMMANDS)) for words in found if words[0] != "PROFILE"
    )
)


def name_of(words: tuple[str, ...]) -> str:
    return words[0] if words[0] in COMMANDS else "browse"


SHOWN: Final = [words for words in ALL if name_of(words) in ON_SCREEN or ENDLESS & {*words}]


def test_texts_name_many() -> None:
    assert len(ALL) > 100
    assert not [
        name for name, found in TEXTS.items() if name in ("start", "safety", "health", "registry") and not found
    ]


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_a_command_of_the_screen_is_understood(words: tuple[str, ...], addressed: Server) -> None:
    command = group.get_command(click.Context(group), name_of(words))
    assert command is not None
    given = meant(words[words[0] in COMMANDS :], addressed)
    command.make_context(name_of(words), given)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=[pytest.mark.slow] if SLOW & {*words} else [], id=" ".join(words))
        for words in ALL
        if words not in SHOWN
    ],
)
def test_a_command_does_its_work(words: tuple[str, ...], addressed: Server, capsys: pytest.CaptureFixture[str]) -> None:
    given = meant(words, addressed)
    prepare(given, capsys)
    code = run(given)
    told = capsys.readouterr()
    assert code in ((0, 1, 3) if words[0] in FINDS else (0,)), told.err
    if words[0] != "settings":
        assert told.out or Path(given[given.index("-o") + 1]).stat().st_size


def test_the_registries_of_the_pages_are_read() -> None:
    texts = [(CHECKOUT / f"rtui/help/{page}.md").read_text("utf-8") for page in ("registry", "findings")]
    blocks = [one for text in texts for one in re.findall(r"^((?: {4}.*\n|\n)+)", text, re.MULTILINE)]
    found = [one for one in blocks if re.search(r"^    \[rules\]$", one, re.MULTILINE)]
    read = [read_registry("\n".join(line[4:] for line in block.splitlines())) for block in found]
    assert len(read) == 2


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for words in TEXTS["README"] if words in SHOWN], ids=" ".join)
def test_the_interface_shows_keys(words: tuple[str, ...], addressed: Server) -> None:
    arguments = [str(Path(word).absolute()) if word.endswith(".rdb") else word for word in meant(words, addressed)]
    with window(["-m", "rtui", *arguments]) as shown:
        shown.wait_for(b"READ-ONLY")
        shown.wait_for(b"order")


def test_what_else_the_readme_names_is_there() -> None:
    targets = set(re.findall(r"^([\w-]+):.* ## ", (CHECKOUT / "Makefile").read_text("utf-8"), re.MULTILINE))
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for words in commands(line for line in [*fenced(README), *spans(README)]):
        if words[0] == "make":
            assert set(words[1:]) <= targets, words
        for word in words:
            if word.startswith(".["):
                assert set(word.removeprefix(".[").removesuffix("]").split(",")) <= set(extras), words
            if word.endswith(".sh"):
                assert (CHECKOUT / word).is_file()
    for path in re.findall(r"\[[^]]*\]\(([\w./-]+)\)", README):
        assert (CHECKOUT / path).exists(), path
