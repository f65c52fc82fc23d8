"""What `make bundle` has built, in a root that holds nothing but the package and what it depends on: no Python.

Only with `--thorough`, as root; `make bundle-test` runs it.
"""

from __future__ import annotations

import gzip
import os
import pty
import re
import select
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import CHECKOUT

DEPENDS = ("libc6", "zlib1g")
NOBODY = 65_534


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest) -> Path:
    if not request.config.getoption("--thorough") or os.getuid() != 0:
        pytest.skip("only with --thorough, as root")
    found = sorted((CHECKOUT / "dist").glob("rtui_*.deb"))
    if not found:
        pytest.skip("make bundle builds the package")
    return found[-1]


@pytest.fixture(scope="module")
def root(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with the package and its dependencies as dpkg unpacks them, two devices, and a home that is writable."""
    folder = tmp_path_factory.mktemp("root")
    subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    for name in ("dev", "tmp", "home"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(0o1777)
    for name, minor in (("null", 3), ("urandom", 9)):
        os.mknod(folder / "dev" / name, 0o20666, os.makedev(1, minor))
        (folder / "dev" / name).chmod(0o666)
    listed = subprocess.run(["dpkg", "-L", *DEPENDS], capture_output=True, text=True, check=True).stdout.split("\n")
    for path in (Path(line).resolve() for line in listed if ".so" in line):
        if path.is_file():
            (folder / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path.relative_to("/"))
    for line in listed:  # names of libraries are links, and folders may be
        if ".so" in line and not (folder / line.lstrip("/")).exists():
            (folder / line.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(line), folder / line.lstrip("/"))
    assert not [*folder.glob("usr/bin/python*")]
    return folder


def command(root: Path, *arguments: str) -> list[str]:
    return ["chroot", f"--userspec={NOBODY}:{NOBODY}", str(root), "/usr/bin/rtui", *arguments]


def environment(locale: str = "C", term: str = "xterm-256color") -> dict[str, str]:
    return {"HOME": "/home", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": locale, "TERM": term}


def test_it_starts_without_python(root: Path) -> None:
    done = subprocess.run(command(root, "--version"), env=environment(), capture_output=True, text=True, check=True)
    assert "engine: compiled" in done.stdout
    report = subprocess.run(command(root, "doctor"), env=environment(), capture_output=True, text=True, check=True)
    assert "bundle" in report.stdout


def test_the_demo_its_loader_and_its_server_are_in_it(root: Path) -> None:
    asked = command(root, "check", "--demo", "--demo-keys", "300")
    done = subprocess.run(asked, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "key-big" in done.stdout


@pytest.mark.parametrize("term", ["linux", "screen", "xterm-256color"])
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_the_interface_is_drawn(root: Path, term: str, locale: str) -> None:
    shown = b"".join(until(root, environment(locale, term), b"READ-ONLY"))
    assert (re.search(rb"[\x80-\xff]", shown) is not None) is (locale != "C")


def until(root: Path, given: dict[str, str], text: bytes) -> Iterator[bytes]:
    """Yield what the demo writes to a terminal until this text has come, and what follows within half a second."""
    process, terminal = pty.fork()
    if not process:
        os.execvpe("chroot", command(root, "--demo", "--demo-keys", "300"), given)  # noqa: S606
    try:
        seen, wait_s = b"", 60.0
        while select.select([terminal], [], [], wait_s)[0]:
            data = os.read(terminal, 65_536)
            seen += data
            yield data
            if text in seen:
                wait_s = 0.5
        assert text in seen, seen[-2_000:]
        os.write(terminal, b"q")
        ends_s = time.monotonic() + 20
        while os.waitpid(process, os.WNOHANG) == (0, 0):
            assert time.monotonic() < ends_s, "it does not leave"
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    os.read(terminal, 65_536)
                except OSError:
                    os.waitpid(process, 0)
                    break
    finally:
        os.close(terminal)


def test_pages_and_completions_are_where_they_belong(root: Path) -> None:
    man = root / "usr/share/man/man1"
    asked = environment() | {"_RTUI_COMPLETE": "bash_complete", "COMP_WORDS": "rtui ", "COMP_CWORD": "1"}
    done = subprocess.run(command(root), env=asked, capture_output=True, text=True, check=True)
    names = {line.removeprefix("plain,") for line in done.stdout.split()}
    assert {path.name for path in man.iterdir()} == {"rtui.1.gz", *(f"rtui-{name}.1.gz" for name in names)}
    for path in man.iterdir():
        page = gzip.decompress(path.read_bytes())
        checked = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "-"], input=page, capture_output=True, check=True
        )
        assert checked.stderr == b"", path.name
        assert b"NAME" in checked.stdout
    for name in (
        "bash-completion/completions/rtui",
        "zsh/vendor-completions/_rtui",
        "fish/vendor_completions.d/rtui.fish",
    ):
        assert "_RTUI_COMPLETE" in (root / "usr/share" / name).read_text()
    script = root / "usr/share/bash-completion/completions/rtui"
    subprocess.run(["bash", "-n", script], check=True)


def test_the_archive_has_one_folder_of_root(package: Path) -> None:
    (path,) = package.parent.glob("rtui-*-linux-*.tar.gz")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    (folder,) = {one.name.partition("/")[0] for one in members}
    assert folder == path.name.removesuffix(".tar.gz")
    assert {(one.uid, one.uname) for one in members} == {(0, "root")}
    assert len({one.mtime for one in members}) == 1
