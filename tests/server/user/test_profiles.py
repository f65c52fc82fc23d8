"""Profiles, recent servers and lists of targets: what files can say, what never is in them, what broken ones cost."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import display_text
from rtui.registry.registry import SHIPPED
from rtui.server.files import config_folder
from rtui.server.guard.command import CommandNames, Secret
from rtui.server.options import MOST_SHOWN, RegistryChoice, RegistryFileError
from rtui.server.user.known_servers import KEPT, Profiles, RecentServers, profile_targets, read_target_file, united
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import AddressMap, Login, Sentinels, Target, Tls, Way, parse_target


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


@pytest.fixture
def recent(tmp_path: Path) -> RecentServers:
    return RecentServers(tmp_path / "rtui" / "recent.json")


def test_the_last_one_comes_first_and_once(recent: RecentServers) -> None:
    one, other = Target("cache", 1), Target("queue", 2, user="app", tls=Tls(cacert="/ca.pem"), protocol=3)
    for target in (one, other, Target("cache", 1, db=4)):
        recent.add(target)
    assert recent.servers() == [Target("cache", 1, db=4), other]


def test_sockets_and_profiles_are_remembered(recent: RecentServers) -> None:
    recent.add(Target(socket_path="/run/redis.sock", db=2))
    recent.add(Target("cache", name=display_text("prod")))
    recent.add(Target("moved", name=display_text("prod")))
    assert recent.servers() == [Target("moved", name=display_text("prod")), Target(socket_path="/run/redis.sock", db=2)]


def test_a_service_is_remembered_with_its_sentinels_and_without_their_password(recent: RecentServers) -> None:
    sentinels = Sentinels("mymaster", (("s1", 26379), ("s2", 7)), "watcher", Secret("hunter2"), Tls())
    recent.add(Target("10.0.0.1", 6379, sentinels=sentinels))
    recent.add(Target("10.0.0.2", 6379, sentinels=sentinels))
    assert "hunter2" not in recent.path.read_text()
    assert recent.servers() == [Target(sentinels=replace(sentinels, password=None))]


def test_the_way_is_remembered(recent: RecentServers) -> None:
    way = Way(("one", "two"), AddressMap(("10.0.0.1:6379=localhost:7001",)))
    recent.add(Target("10.0.0.1", way=replace(way, proxy=Secret("socks5://me:hunter2@p"))))
    recent.add(Target("10.0.0.1"))
    assert "hunter2" not in recent.path.read_text()
    assert recent.servers() == [Target("10.0.0.1"), Target("10.0.0.1", way=way)]


def test_how_a_cluster_was_looked_at_is_remembered(recent: RecentServers) -> None:
    whole = Target("10.0.0.1", seeds=(("10.0.0.2", 6379), ("10.0.0.3", 7000)), cluster=True, replicas="only", zone="z")
    one = Target("10.0.0.4", only_node=True)
    recent.add(whole)
    recent.add(one)
    assert recent.servers() == [one, whole]


def test_no_password_is_written(recent: RecentServers) -> None:
    recent.add(Target("cache", password=Secret("hunter2")))
    assert "hunter2" not in recent.path.read_text()
    assert recent.servers() == [Target("cache")]
    assert recent.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "url",
    [
        "redis://app:hunter2@cache/3",
        "rediss://:hunter2@cache:6380",
        "valkey://app:hunter2@[::1]:7000/1",
        "unix://app:hunter2@/run/redis.sock?db=2",
    ],
)
def test_no_password_of_a_url_is_written(recent: RecentServers, url: str) -> None:
    target = parse_target(url)
    assert target.password == Secret("hunter2")
    recent.add(target)
    assert "hunter2" not in recent.path.read_text()
    assert [one.password for one in recent.servers()] == [None]


def test_there_are_never_too_many(recent: RecentServers) -> None:
    for port in range(1, KEPT + 10):
        recent.add(Target("cache", port))
    assert [one.port for one in recent.servers()] == list(range(KEPT + 9, 9, -1))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"port": 99999}]', "[" * 100_000, "\0"])
def test_a_broken_file_counts_as_empty(recent: RecentServers, text: str) -> None:
    recent.path.parent.mkdir()
    recent.path.write_text(text)
    assert recent.servers() == []
    recent.add(Target("cache"))
    assert recent.servers() == [Target("cache")]


def test_a_name_that_is_no_text_is_not_remembered(recent: RecentServers) -> None:
    recent.add(Target("cache", user="\udcff"))
    assert recent.servers() == []


def test_the_key_of_a_client_is_remembered_without_its_passphrase(recent: RecentServers) -> None:
    tls = Tls(cert="/c.pem", key="/k.pem")
    known = Target("cache", tls=tls, sentinels=Sentinels("m", (("s1", 1),), tls=tls))
    recent.add(known.with_key_password(Secret("hunter2")))
    assert "hunter2" not in recent.path.read_text()
    assert [(one.tls, one.sentinels and one.sentinels.tls) for one in recent.servers()] == [(tls, tls)]


LIST = """\
# caches
  10.0.0.5:6380   team=shop zone=a   # the carts

redis://app:secret@cache/3 team=mail
profile:queue zone=b
[::1]:7000\ttier=1
unix:///run/a#b.sock
10.0.0.5:6380 zone=c
"""


@pytest.fixture
def profiles() -> Path:
    path = config_folder() / "profiles.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '[queue]\nhost = "q"\nlabels.team = "mail"\nlabels.zone = "a"\n[prod-1]\nhost = "p"\n[dev]\nport = 1\n'
    )
    path.chmod(0o600)
    return path


def written(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "targets"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.usefixtures("profiles")
def test_a_list_names_servers_and_their_labels(tmp_path: Path) -> None:
    found = united(read_target_file(written(tmp_path, LIST)))
    assert [(one.label, dict(one.labels)) for one in found] == [
        ("10.0.0.5:6380", {"team": "shop", "zone": "c"}),
        ("cache:6379", {"team": "mail"}),
        ("q:6379", {"team": "mail", "zone": "b"}),
        ("[::1]:7000", {"tier": "1"}),
        ("/run/a#b.sock", {}),
    ]
    assert [one.name for one in found if one.name] == ["queue"]


@pytest.mark.parametrize(
    ("line", "mode", "said"),
    [
        ("redis://app:hunter2@a b", 0o600, "behind a target stand labels"),
        ("redis://app:hunter2@a 9b=c", 0o600, "behind a target stand labels"),
        ("redis://app:hunter2@a:port", 0o600, "the colon after the host"),
        ("app:hunter2@a", 0o600, "not a URL"),
        ("redis://app:hunter2@a", 0o640, "others may read"),
        (f"a b={'hunter2' * 20}", 0o600, "behind a target stand labels"),
        ("profile:nobody", 0o600, "no profile 'nobody'"),
    ],
)
@pytest.mark.usefixtures("profiles")
def test_a_line_that_can_not_be_used_is_named_and_not_repeated(line: str, mode: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError) as caught:
        read_target_file(written(tmp_path, f"a:1\n\n{line}\n", mode))
    text = f"{caught.value.happened} {caught.value.remedy}"
    assert said in text
    assert ", line 3:" in text
    assert "hunter2" not in text


def test_what_others_may_read_may_hold_no_password_but_the_options_one(tmp_path: Path) -> None:
    name = written(tmp_path, "a:1\n", 0o644)
    found = read_target_file(name, lambda text: parse_target(f"redis://:pw@{text}"))
    assert [str(one.password) for one in found] == ["•••"]
    for wrong in (str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(TargetError):
            read_target_file(wrong)


@pytest.mark.usefixtures("profiles")
def test_profiles_by_their_names() -> None:
    assert [one.name for one in profile_targets(["*"])] == ["queue", "prod-1", "dev"]
    assert [one.name for one in profile_targets(["prod-*", "dev"])] == ["prod-1", "dev"]
    with pytest.raises(TargetError, match="no profile"):
        profile_targets(["prod-*", "stage-*"])
    assert united([Target(), Target()]) == [Target()]
