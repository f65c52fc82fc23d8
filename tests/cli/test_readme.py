"""The commands of the README: those of rtui are run on a real server, the others name what is there.

Lines that install from a package index are not run here: one of them is how CI sets up, see `.ci/run`.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from rtui.cli.main import COMMANDS, run
from rtui.keyspace.text.help_pages import PAGES
from tests.servers import CHECKOUT, Server
from tests.window import window

README = (CHECKOUT / "README.md").read_text("utf-8")
ADDRESS = "10.0.0.5"
FENCED = [
    line for fence in re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE) for line in fence.splitlines()
]
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE))


def commands(lines: list[str]) -> list[tuple[str, ...]]:
    """Return the words of each command, with comments left out."""
    parts = [part for line in lines for part in line.split("&&")]
    return list(dict.fromkeys(words for part in parts if (words := tuple(shlex.split(part, comments=True)))))


ALL = commands(FENCED) + [words for words in commands(SPANS) if words[0] in ("rtui", "make")]
OURS = [words[1:] for words in ALL if Path(words[0]).name == "rtui"]
SHOWN = [words for words in OURS if words and words[0] not in COMMANDS and words[0] not in ("--help", "--version")]
"""Those of the interface."""


def test_there_are_some() -> None:
    assert len(OURS) > 5
    assert any("--demo" in words for words in SHOWN)


@pytest.fixture
def addressed(valkey: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with a key and a user, and a dump, in place of those of the README."""
    valkey.admin.set("order:1", "x")
    valkey.admin.execute_command("ACL", "SETUSER", "app", "on", "nopass", "~*", "+@read", "+@connection", "+info")
    valkey.admin.save()
    dump = Path(*(str(valkey.admin.config_get(name)[name]) for name in ("dir", "dbfilename")))
    (tmp_path / "dump.rdb").write_bytes(dump.read_bytes())
    monkeypatch.chdir(tmp_path)
    return valkey


def meant(words: tuple[str, ...], server: Server) -> list[str]:
    address = f"127.0.0.1:{server.port}"
    return [re.sub(rf"{re.escape(ADDRESS)}(:6379)?", address, word) for word in words]


@pytest.mark.parametrize("words", [words for words in OURS if words not in SHOWN], ids=" ".join)
def test_a_command_does_its_work(words: tuple[str, ...], addressed: Server) -> None:
    if words == ("help", "PAGE"):
        words = ("help", next(iter(PAGES)))
    assert run(meant(words, addressed)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_the_interface_shows_keys(words: tuple[str, ...], addressed: Server) -> None:
    arguments = [str(Path(word).absolute()) if word.endswith(".rdb") else word for word in meant(words, addressed)]
    with window(["-m", "rtui", *arguments]) as shown:
        shown.wait_for(b"READ-ONLY")
        shown.wait_for(b"order")


def test_what_else_is_named_is_there() -> None:
    targets = set(re.findall(r"^([\w-]+):.* ## ", (CHECKOUT / "Makefile").read_text("utf-8"), re.MULTILINE))
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for words in ALL:
        if words[0] == "make":
            assert set(words[1:]) <= targets, words
        for word in words:
            if word.startswith(".["):
                assert set(word.removeprefix(".[").removesuffix("]").split(",")) <= set(extras), words
            if word.endswith(".sh"):
                assert (CHECKOUT / word).is_file()
    for path in re.findall(r"\[[^]]*\]\(([\w./-]+)\)", README):
        assert (CHECKOUT / path).exists(), path
