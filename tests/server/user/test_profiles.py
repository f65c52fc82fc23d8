"""The profile file: what it can say, and what is said of one that is wrong or open to others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.registry.registry import SHIPPED
from rtui.server.guard.command import CommandNames, Secret
from rtui.server.options import MOST_SHOWN, RegistryChoice, RegistryFileError
from rtui.server.user.known_servers import Profiles
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import AddressMap, Login, Sentinels, Target, Tls, Way


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "profiles.toml"


def write(path: Path, text: str, mode: int = 0o600) -> Profiles:
    path.write_text(text)
    path.chmod(mode)
    return Profiles(path)


def refused(profiles: Profiles, name: str = "a") -> TargetError:
    with pytest.raises(TargetError) as caught:
        profiles.target(name)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Target(name="a")),
        (
            'url = "rediss://app:pw@cache:1/2"',
            Target("cache", 1, user="app", password=Secret("pw"), db=2, tls=Tls(), name="a"),
        ),
        (
            'host = "cache"\nport = 7\ndb = 3\nprotocol = 3\ncluster = true',
            Target("cache", 7, db=3, protocol=3, cluster=True, name="a"),
        ),
        (
            'only_node = true\nreplicas = "only"\nzone = "eu-1a"',
            Target(only_node=True, replicas="only", zone="eu-1a", name="a"),
        ),
        (
            'url = "sentinel://s1/m"\nsentinel_user = "u"\nsentinel_password = "p"\nsentinel_tls = true',
            Target(sentinels=Sentinels("m", (("s1", 26379),), "u", Secret("p"), Tls()), name="a"),
        ),
        (
            'via = ["one", "two"]\nmap = "a=b:7000"',
            Target(way=Way(("one", "two"), AddressMap(("a=b:7000",))), name="a"),
        ),
        ('password_command = "pass redis"', Target(login=Login(command=Secret("pass redis")), name="a")),
        ('credential_provider = "m:f"', Target(login=Login(provider="m:f"), name="a")),
        ('proxy = "socks5://p:1"', Target(way=Way(proxy=Secret("socks5://p:1")), name="a")),
        ('user = "u"\npassword = "p"', Target(user="u", password=Secret("p"), name="a")),
        ('url = "redis://:old@cache"\npassword = "new"', Target("cache", password=Secret("new"), name="a")),
        ("tls = true\ninsecure = true", Target(tls=Tls(insecure=True), name="a")),
        (
            'url = "sentinel://s1/m"\nsentinel_tls = true\ncert = "/c"\nkey_password = "# /"\nsni = "x"',
            Target(
                tls=Tls(cert="/c", key_password=Secret("# /"), sni="x"),
                sentinels=Sentinels("m", (("s1", 26379),), tls=Tls(cert="/c", key_password=Secret("# /"))),
                name="a",
            ),
        ),
        ('cacert = "/ca.pem"\nsni = "x"', Target(tls=Tls(cacert="/ca.pem", sni="x"), name="a")),
        ('socket = "/run/s"\ndb = 1', Target(socket_path="/run/s", db=1, name="a")),
    ],
)
def test_what_it_can_say(path: Path, text: str, expected: Target) -> None:
    assert write(path, f"[a]\n{text}\n").target("a") == expected


def test_files_lie_beside_it(path: Path) -> None:
    tls = write(path, '[a]\ncert = "me.pem"\nkey = "~/me.key"\n').target("a").tls
    assert tls == Tls(cert=str(path.parent / "me.pem"), key=str(Path("~/me.key").expanduser()))


def test_a_registry_lies_beside_it_or_ships(path: Path) -> None:
    profiles = write(path, '[a]\nregistry = "shop.toml"\n[b]\nregistry = "ecm"\n')
    assert profiles.target("a").registry == str(path.parent / "shop.toml")
    assert profiles.target("b").registry == str(SHIPPED / "ecm.toml")


@pytest.mark.parametrize(
    "text",
    [
        'paint = "red"',
        "registry = 1",
        "host = 1",
        'host = ""',
        "port = 0",
        'port = "1"',
        "port = true",
        'tls = "yes"',
        "db = -1",
        "protocol = 4",
        'url = "http://x"',
        'url = "redis://x"\nhost = "y"',
        'socket = "/s"\nport = 1',
        'socket = "/s"\ntls = true',
        'via = "-oProxyCommand=x"',
        'password_command = "x"\ncredential_provider = "m:f"',
        'via = "a"\nproxy = "socks5://p"',
        'map = "a"',
        'socket = "/s"\nvia = "a"',
        'url = "redis://x"\nsentinel_user = "u"',
        'url = "unix:///s"\ntls = true',
    ],
)
def test_what_it_can_not_say(path: Path, text: str) -> None:
    assert "'a'" in refused(write(path, f"[a]\n{text}\n")).happened


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
@pytest.mark.parametrize(
    "line",
    ['password = "s3cret"', 'url = "redis://:s3cret@h"', 'url = "redis://:s3/cret@h"', 'password_command = "s3cret"'],
)
def test_a_password_that_others_can_read_is_refused(path: Path, line: str, mode: int) -> None:
    said = refused(write(path, f"[b]\n{line}\n[a]\n", mode))
    assert "others" in said.happened
    assert f"chmod 600 {path}" in said.remedy
    assert "cret" not in f"{said}{said.remedy}"


def test_without_a_password_others_may_read_it(path: Path) -> None:
    assert write(path, '[a]\nhost = "cache"\n', 0o644).target("a").host == "cache"


def test_a_profile_that_is_not_there(path: Path) -> None:
    said = refused(write(path, "[b]\n[c]\nx = 1\n"))
    assert "'a'" in said.happened
    assert "b, c" in said.remedy


def test_a_file_that_is_not_there(path: Path) -> None:
    assert str(path) in refused(Profiles(path)).happened


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    assert "can't be read" in refused(Profiles(tmp_path)).happened


@pytest.mark.parametrize("text", ["[a", "[a]\nhost = cache", '[a]\npassword = "s3cret', "[a]\n[a]", "\0"])
def test_a_file_that_is_no_toml(path: Path, text: str) -> None:
    said = refused(write(path, text))
    assert "TOML" in said.happened
    assert "cret" not in said.happened


def test_a_file_that_is_no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    assert "TOML" in refused(Profiles(path)).happened


def test_a_huge_file(path: Path) -> None:
    with path.open("wb") as file:
        os.truncate(file.fileno(), 1 << 30)
    assert "bytes" in refused(Profiles(path)).happened


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=6).map("pw-{}-7Q".format))
def test_no_error_repeats_a_password(tmp_path_factory: pytest.TempPathFactory, password: str) -> None:
    path = tmp_path_factory.getbasetemp() / "hypothesis-profiles.toml"
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    for line in (f'password = "{quoted}"\nport = "x"', f'url = "redis://:{quoted}/@h"', f'password = "{quoted}'):
        said = refused(write(path, f"[a]\n{line}\n"))
        assert password not in f"{said.title} {said.happened} {said.remedy}"


def test_names_of_commands(path: Path) -> None:
    profiles = write(path, '[a]\nhost = "cache"\nrename.config = "c-b840"\n[a.rename]\nKEYS = ""\n')
    assert "TOML" in refused(profiles).happened
    profiles = write(path, '[a]\nhost = "cache"\n[a.rename]\nconfig = "c-b840"\nDBSIZE = ""\n')
    assert profiles.target("a").names == CommandNames((("CONFIG", "c-b840"), ("DBSIZE", "")))
    assert "c-b840" not in repr(profiles.target("a"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('rename.GET = "FLUSHALL"', "the other name of GET is that of another command"),
        ('rename.GETRANGE = "flushall"', "the other name of GETRANGE is that of another command"),
        ('rename.INFO = "a b"', "visible ASCII"),
        ('rename.b840 = "FLUSHALL"', "renames something that is not a command"),
        ("rename.INFO = 1", "rename"),
    ],
)
def test_names_that_can_not_be_used(path: Path, line: str, said: str) -> None:
    assert said in refused(write(path, f"[a]\n{line}\n")).happened


def test_names_of_commands_are_private(path: Path) -> None:
    assert "others" in refused(write(path, '[a]\nrename.INFO = "b840"\n', 0o644)).happened


def test_the_types_of_files_do_no_harm_as_rtui_ends() -> None:
    """Python frees them then; debugging allocators show what reads memory that is not theirs."""
    code = """
import importlib, pkgutil, msgspec, rtui
for module in pkgutil.walk_packages(rtui.__path__, "rtui."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
classes, found = [msgspec.Struct], set()
while classes:
    for one in classes.pop().__subclasses__():
        classes.append(one)
        if one.__module__.startswith("rtui."):
            msgspec.json.Decoder(one)
            found.add(one)
assert len(found) > 50, found
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONMALLOC": "malloc_debug"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in another one, each with a registry, and one beside them."""
    (tmp_path / "deep").mkdir()
    for name, path in (("above", tmp_path / "rtui.toml"), ("named", tmp_path / "deep" / "mine.toml")):
        path.write_text(f'title = "{name}"\n')
    (tmp_path / "profile.toml").write_text('title = "profile"\n')
    return tmp_path / "deep"


def title(choice: RegistryChoice, target: Target | None = None) -> str | None:
    registry = choice.load(target or Target())
    return None if registry is None else registry.title


def test_the_nearest_reason_counts(folder: Path) -> None:
    of_profile = Target(registry=str(folder.parent / "profile.toml"))
    assert title(RegistryChoice("mine.toml", folder=folder), of_profile) == "named"
    assert title(RegistryChoice(folder=folder), of_profile) == "profile"
    assert title(RegistryChoice(folder=folder)) == "above"
    assert title(RegistryChoice("ecm", folder=folder)) == "ECM usage rules"
    assert title(RegistryChoice(is_off=True, folder=folder), of_profile) is None


def test_without_any_there_is_none(tmp_path: Path) -> None:
    assert title(RegistryChoice(folder=tmp_path)) is None


def test_one_that_is_wrong_says_where(folder: Path) -> None:
    (folder / "mine.toml").write_text('tile = "x"\n[naming]\nlonges = 5\n')
    with pytest.raises(RegistryFileError) as raised:
        title(RegistryChoice("mine.toml", folder=folder))
    error = raised.value
    assert error.exit_code == 2
    assert error.happened == f"{folder}/mine.toml:1: tile: there is no key tile; did you mean title?"
    assert error.others == (f"{folder}/mine.toml:3: naming.longes: there is no key longes; did you mean longest?",)


def test_a_file_that_is_missing_says_so(folder: Path) -> None:
    with pytest.raises(RegistryFileError, match="can't be read: No such file"):
        title(RegistryChoice("none.toml", folder=folder))


def test_not_all_of_very_many_mistakes_are_shown(folder: Path) -> None:
    (folder / "mine.toml").write_text("".join(f"wrong{number} = 1\n" for number in range(100)))
    with pytest.raises(RegistryFileError) as raised:
        title(RegistryChoice("mine.toml", folder=folder))
    assert len(raised.value.others) == MOST_SHOWN
    assert raised.value.others[-1] == "and 80 more"
