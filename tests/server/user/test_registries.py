"""Which registry is used, and what is said of one that can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.server.options import MOST_SHOWN, RegistryChoice, RegistryFileError
from rtui.server.wire.target import Target


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
