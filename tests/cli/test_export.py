"""Files that commands write: whole, or as they were before; who reads an export."""

from __future__ import annotations

import csv
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import polars as pl
import pytest

from rtui.analysis.formats.json import read_json
from rtui.cli.main import run
from rtui.cli.output import NEW_FILE_MODE, Output, OutputError
from rtui.server.wire.errors import ExitCode
from rtui.table.keys_file import KeysFile
from tests.cli.test_report import plant, plant_many
from tests.servers import Server


def test_every_key_is_a_row_in_each_format(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(valkey)
    for name in ("keys.parquet", "keys.csv", "keys.jsonl", "keys/"):
        assert run(["export", valkey.url, "-o", f"{tmp_path}/{name}"]) == ExitCode.FINE
        assert "320 keys in " in capsys.readouterr().err
    assert not [*tmp_path.glob(".*")]
    table = pl.concat(KeysFile.open(tmp_path / "keys.parquet").tables())
    assert sorted(table["name"].to_list()) == sorted(key.decode() for key in valkey.admin.scan_iter())
    assert table["node"].unique().to_list() == [f"127.0.0.1:{valkey.port}"]
    with (tmp_path / "keys.csv").open(newline="") as file:
        assert sum(int(row["memory_bytes"]) for row in csv.DictReader(file)) == table["memory_bytes"].sum()
    lines = [json.loads(line) for line in (tmp_path / "keys.jsonl").read_text().splitlines()]
    assert sum(one["length"] for one in lines) == table["length"].sum()
    folder = KeysFile.open(tmp_path / "keys")
    assert folder.height == 320
    assert folder.head is not None
    assert folder.head.head.coverage.keys == 320


def test_reports_checks_and_patterns_take_a_file_for_a_server(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    keys = str(tmp_path / "keys.parquet")
    assert run(["export", valkey.url, "-o", keys]) == ExitCode.FINE
    capsys.readouterr()
    parts = {"report --no-keep": "summary", "check --no-registry": "findings", "patterns": "patterns"}
    for command, part in parts.items():
        said = []
        for target in (valkey.url, keys):
            assert run([*command.split(), target, "--format", "json"]) == ExitCode.FINE
            found = json.loads(capsys.readouterr().out)[part]
            said.append(found["namespaces"] if part == "summary" else found)
        on_server, of_file = ([{name: one.get(name) for name in SAME} for one in found] for found in said)
        assert of_file == on_server
        assert on_server or part == "findings"


SAME = ("depth", "name", "keys", "memory_bytes", "types", "no_ttl_keys", "rule", "where", "pattern", "examples")
"""What two passes say of keys that nobody has changed, one after the other."""


@pytest.mark.slow
def test_interrupted_it_has_the_keys_seen_so_far(valkey: Server, tmp_path: Path) -> None:
    plant_many(valkey)
    path = tmp_path / "keys.parquet"
    line = [sys.executable, "-m", "rtui", "export", valkey.url, "-o", str(path), "--columns", "type,ttl,memory"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        while valkey.admin.info("commandstats").get("cmdstat_pttl", {}).get("calls", 0) < 20_000:
            assert process.poll() is None
        assert not path.exists()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 130, said
    assert path.exists(), said
    file = KeysFile.open(path)
    assert 0 < file.height < 150_000
    assert f"{file.height:,} keys in " in said
    assert "the file is partial: it was interrupted" in said
    assert file.head is not None
    assert (file.head.head.coverage.kind.value, file.head.rows) == ("partial", file.height)
    assert run(["report", str(path), "-o", str(tmp_path / "report.json"), "--no-keep"]) == ExitCode.FINE
    report = read_json((tmp_path / "report.json").read_bytes())
    assert report.head.coverage.keys == file.height
    assert report.head.coverage.reason == "it was interrupted"


def test_nothing_is_left_or_replaced_where_nothing_was_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "keys.parquet"
    path.write_text("before")
    for output in (str(path), f"{tmp_path}/folder/"):
        assert run(["export", "127.0.0.1:1", "-o", output]) == ExitCode.SERVER
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]
    assert run(["export", "127.0.0.1:1", "-o", str(tmp_path / "keys.xls")]) == ExitCode.USAGE
    assert run(["export", "127.0.0.1:1", "-o", f"{tmp_path}/"]) == ExitCode.USAGE
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["health", "browse", "slot a", "find x"])
def test_what_needs_a_server_does_not_take_a_file_for_one(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It must not end up at a server on this machine."""
    path = tmp_path / "keys.parquet"
    pl.DataFrame({"key": ["a"]}).write_parquet(path)
    command, *words = line.split()
    assert run([command, *(["-u"] if command == "slot" else []), str(path), *words]) in (
        ExitCode.USAGE,
        ExitCode.SERVER,
    )
    assert "keys.parquet" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "check", "patterns", "export -o new.csv"])
def test_a_damaged_file_ends_in_one_clear_error(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keys.parquet").write_bytes(b"PAR1" + 90 * b"\xfe" + b"\x40\0\0\0PAR1")
    assert run([*command.split(), "keys.parquet"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert said.startswith("rtui: The file of keys can't be read\n  ")
    assert said.count("\n") == 2
    assert not Path("new.csv").exists()


def test_two_files_are_compared_key_by_key_and_merged(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(valkey)
    before, after = (str(tmp_path / f"{name}.parquet") for name in ("before", "after"))
    assert run(["export", valkey.url, "-o", before]) == ExitCode.FINE
    valkey.admin.delete("shop:session:0")
    valkey.admin.set(b"shop:\xff", "new")
    valkey.admin.persist("shop:session:1")
    valkey.admin.append("shop:session:2", 500 * "x")
    assert run(["export", valkey.url, "-o", after]) == ExitCode.FINE
    capsys.readouterr()
    assert run(["diff", before, after, "--format", "json", "--no-registry"]) == ExitCode.FINE
    found = json.loads(capsys.readouterr().out)["keys"]
    names = {fate: [one["key_quoted"].strip('"') for one in keys["first"]] for fate, keys in found.items()}
    assert names == {
        "came": ["shop:\\xff"],
        "went": ["shop:session:0"],
        "grew": ["shop:session:2"],
        "lasting": ["shop:session:1"],
    }
    assert run(["diff", before, after, "--no-registry"]) == ExitCode.FINE
    said = capsys.readouterr().out
    assert "Keys: lost their TTL (1, " in said
    assert "shop:session:2  144 B → " in said
    assert run(["merge", before, after, "-o", str(tmp_path / "merged.json")]) == ExitCode.FINE
    report = read_json((tmp_path / "merged.json").read_bytes())
    assert (report.head.coverage.keys, report.head.coverage.kind.value) == (640, "exact")
    assert run(["merge", str(tmp_path / "merged.json")]) == ExitCode.USAGE
    assert "no dump or file of keys" in capsys.readouterr().err


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
        ("-", "text"), ("a.json", "json"), ("A.HTML", "html"), ("a/b.c/report", "csv"), (".json", "csv"),
        ("a.log", "csv"),
    ],
)  # fmt: skip
def test_the_format_follows_from_the_name(name: str, form: str) -> None:
    assert Output(name, None, ("text", "json", "html", "csv"), "csv").form == form
    assert Output(name, "json", ("text", "json"), "csv").form == "json"


@pytest.mark.parametrize("name", ["a.md", "A.CSV", "keys.prom", "x/page.HTM"])
def test_a_name_of_a_format_that_a_command_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(click.UsageError, match=r"name one of text, json\.$"):
        Output(name, None, ("text", "json"))
    assert Output(name, "text", ("text", "json")).form == "text"
