"""Lists of targets: lines of a file, their labels, profiles, and what is said of a line that can't be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.server.files import config_folder
from rtui.server.user.known_servers import profile_targets, read_target_file, united
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import Target, parse_target

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
