"""A report file is whole, or as it was before; what went wrong is said."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from rtui.cli.output import NEW_FILE_MODE, Output, OutputError

FULL = Path("/dev/full")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path, text: str) -> None:
    Output(str(path)).write(text)


def test_a_new_file_is_for_its_owner(tmp_path: Path) -> None:
    write(tmp_path / "report.json", "≥ 1 \udcff\n")
    assert (tmp_path / "report.json").read_text() == "≥ 1 \\udcff\n"
    assert mode(tmp_path / "report.json") == NEW_FILE_MODE
    assert names(tmp_path) == ["report.json"]


def test_an_old_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old" * 100)
    path.chmod(0o644)
    write(path, "new")
    assert path.read_text() == "new"
    assert mode(path) == 0o644


def test_an_old_file_stays_whole_for_who_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    with path.open() as reader:
        write(path, "new")
        assert reader.read() == "old"


def test_a_link_stays_one_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.json").symlink_to("there/report.json")
    write(tmp_path / "link.json", "new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "there" / "report.json").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write(Path(os.devnull), "lost")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("act", [Output.check, lambda file: file.write("new")])
@pytest.mark.parametrize(
    ("name", "said"),
    [("folder", "It is a folder"), ("no/such/file", "No such file"), ("file/below", "Not a directory")],
)
def test_a_place_that_can_be_no_file(act: Callable[[Output], None], name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(OutputError) as failed:
        act(Output(str(tmp_path / name)))
    assert said in failed.value.happened
    assert str(tmp_path / name) in failed.value.happened
    assert names(tmp_path) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path / "folder") == []


def test_looking_leaves_nothing(tmp_path: Path) -> None:
    Output(str(tmp_path / "report.json")).check()
    Output("-").check()
    assert names(tmp_path) == []


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    program = (
        "import resource, signal, sys\n"
        "from rtui.cli.output import Output, OutputError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    Output(sys.argv[1]).write('x' * 100_000)\n"
        "except OutputError as failed:\n"
        "    sys.stdout.write(f'{failed.happened} {failed.remedy}')\n"
    )
    said = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True).stdout
    assert "File too large" in said
    assert "as it was" in said
    assert path.read_text() == "old"
    assert names(tmp_path) == ["report.json"]


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
def test_a_full_device() -> None:
    with pytest.raises(OutputError, match="No space left"):
        write(FULL, "x" * 100_000)


def test_standard_output_is_utf_8_in_any_locale() -> None:
    program = "from rtui.cli.output import Output; Output('-').write('≥ 1')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
    assert said == "≥ 1".encode()


@pytest.mark.parametrize("step", ["fsync", "fchmod"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error")])
def test_whatever_breaks_it_off_leaves_the_old_file_and_nothing_else(
    step: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")

    def broken(*args: object) -> None:
        raise error

    monkeypatch.setattr(os, step, broken)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else OutputError):
        write(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["report.json"]


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    program = (
        "import os, signal, sys\n"
        "from rtui.cli import output\n"
        "output.os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)\n"
        "output.Output(sys.argv[1]).write('new')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("-", "text"),
        ("a.json", "json"),
        ("A.HTML", "html"),
        ("a/b.c/report", "csv"),
        (".json", "csv"),
        ("a.log", "csv"),
    ],
)
def test_the_format_follows_from_the_name(name: str, form: str) -> None:
    assert Output(name, None, ("text", "json", "html", "csv"), "csv").form == form
    assert Output(name, "json", ("text", "json"), "csv").form == "json"


@pytest.mark.parametrize("name", ["a.md", "A.CSV", "keys.prom", "x/page.HTM"])
def test_a_name_of_a_format_that_a_command_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(click.UsageError, match=r"name one of text, json\.$"):
        Output(name, None, ("text", "json"))
    assert Output(name, "text", ("text", "json")).form == "text"
