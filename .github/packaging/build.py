"""Builds what a release has beside wheel and sdist: `python .github/packaging/build.py WHAT… [--to dist]`.

WHAT is `pages` (man pages and completions), `sdist` (with the same times whenever it is built), `bundle` (a folder for
hosts without Python, as .tar.gz), `deb` (that folder as a package for Debian and Ubuntu), `formula` (for Homebrew, with
the hashes of all resources), `sbom` (CycloneDX) or `notes` (the section of the CHANGELOG). It runs in an environment
with the extra `release`, in which rtui is installed from its wheel. Times in archives are SOURCE_DATE_EPOCH, by default
that of the last commit, so that the same sources give the same files.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

import click

import rtui
from rtui.cli.help import Command
from rtui.cli.main import COMMANDS, group
from rtui.keyspace.text.help_pages import PAGES

HERE: Final = Path(__file__).parent
CHECKOUT: Final = HERE.parent.parent
SHELLS: Final = {
    "bash": "share/bash-completion/completions/rtui",
    "zsh": "share/zsh/vendor-completions/_rtui",
    "fish": "share/fish/vendor_completions.d/rtui.fish",
}
"""Where the completions of each shell belong below /usr."""

MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names of the machines."""


def epoch() -> int:
    """Return the time of what is built, in seconds since the epoch."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        command = ["git", "-C", str(CHECKOUT), "log", "-1", "--format=%ct"]
        given = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(given)


def pages(folder: Path) -> None:
    """Write man pages and completions below a folder that stands for /usr."""
    man = folder / "share/man/man1"
    man.mkdir(parents=True, exist_ok=True)
    context = click.Context(group, info_name="rtui")
    for name in COMMANDS:
        command = group.get_command(context, name)
        if not isinstance(command, Command):
            raise TypeError(name)
        _compress(man / f"rtui-{name}.1.gz", man_page(command, click.Context(command, context, name)))
    _compress(man / "rtui.1.gz", main_page())
    for shell, place in SHELLS.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"_RTUI_COMPLETE": f"{shell}_source"}
        done = subprocess.run([sys.executable, "-m", "rtui"], env=environment, capture_output=True, check=True)
        path.write_bytes(done.stdout)


def man_page(command: Command, context: click.Context) -> str:
    """Return the man page of a subcommand: click-man's, with its notes, examples and exit codes."""
    from click_man.man import ManPage  # noqa: PLC0415 - only pages need it

    page = ManPage(context.command_path)
    page.version, page.date = rtui.__version__, _day()
    page.short_help = COMMANDS[str(context.info_name)][1]
    page.synopsis = " ".join(command.collect_usage_pieces(context))
    page.description = _plain(cleandoc(command.help or ""))
    options = [one for one in command.get_params(context) if isinstance(one, click.Option) and one.help]
    records = [record for one in options if (record := one.get_help_record(context)) is not None]
    page.options = [(names.replace("|", "|\\:"), _plain(re.sub(r"  \[.*x.*\]$", "", told))) for names, told in records]
    text = command.get_help(context)
    sections = re.split(r"^(Examples|Exit codes|Samples and reports|A and B):\n", text, flags=re.MULTILINE)[1:]
    written = [
        f".SH {title.upper()}\n{_as_is(body)}" for title, body in zip(sections[::2], sections[1::2], strict=True)
    ]
    head, _, body = str(page).rstrip().partition("\n")
    head = head.replace(title := context.command_path.upper(), title.replace(" ", "-"))
    return "\n".join([head, _RAGGED, body, *written, _SEE_ALSO, ""])


def main_page() -> str:
    """Return the man page of rtui: how to begin, subcommands, pages of the help."""
    head = f'.TH "RTUI" "1" "{_day()}" "{rtui.__version__}" "rtui Manual"'
    text = group.get_help(click.Context(group, info_name="rtui"))
    rows = "\n".join(f".TP\n\\fBrtui\\-{name}\\fP(1)\n{_plain(told)}" for name, (_, told) in COMMANDS.items())
    listed = "\n".join(f".TP\n\\fBrtui help {_plain(name)}\\fP\n{_plain(told)}" for name, told in PAGES.items())
    name = "rtui \\- browse and inspect Redis and Valkey keyspaces, read\\-only"
    usage = _as_is(text.partition("\nCommands:")[0])
    parts = {"NAME": name, "SYNOPSIS": usage, "COMMANDS": rows, "PAGES OF THE HELP": listed}
    return "\n".join([head, _RAGGED, *(f".SH {title}\n{text}" for title, text in parts.items()), ""])


_SEE_ALSO: Final = ".SH SEE ALSO\n\\fBrtui\\fP(1), \\fBrtui help connection\\fP, \\fBrtui help exit\\-codes\\fP"


_RAGGED: Final = ".ad l\n.nh"
"""Long words make lines that can't be adjusted."""


def _day() -> str:
    from datetime import UTC, datetime  # noqa: PLC0415

    return f"{datetime.fromtimestamp(epoch(), UTC):%Y-%m-%d}"


def _plain(text: str) -> str:
    """Return text in which troff takes nothing for a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def _as_is(text: str) -> str:
    return f".nf\n{_plain(text.strip(chr(10)))}\n.fi"


def _compress(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def bundle(to: Path) -> Path:
    """Build the folder with PyInstaller and pack it; return the folder."""
    work = CHECKOUT / "build/bundle"
    shutil.rmtree(work, ignore_errors=True)
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR"]
    places = ["--workpath", str(work / "work"), "--distpath", str(work)]
    environment = os.environ | {"PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": str(epoch())}
    subprocess.run([*command, *places, str(HERE / "rtui.spec")], env=environment, cwd=HERE, check=True)
    folder = work / "rtui"
    pages(folder)
    for name in ("LICENSE", "CHANGELOG.md"):
        shutil.copy(CHECKOUT / name, folder)
    to.mkdir(parents=True, exist_ok=True)
    name = f"rtui-{rtui.__version__}-{platform.system().lower()}-{platform.machine()}"
    _pack(folder, to / f"{name}.tar.gz", name)
    return folder


def _pack(folder: Path, path: Path, name: str) -> None:
    """Write a folder to a .tar.gz of that name, in an order and with times that are always the same."""

    def reset(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch()
        return entry

    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=epoch()) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for one in sorted([folder, *folder.rglob("*")]):
            archive.add(one, f"{name}/{one.relative_to(folder)}".removesuffix("/."), recursive=False, filter=reset)


def deb(to: Path) -> None:
    """Build the bundle, and the package that installs it."""
    folder = bundle(to)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "root")
        library = root / "usr/lib/rtui"
        shutil.copytree(folder, library, symlinks=True)
        shutil.move(library / "share", root / "usr/share")
        documents = root / "usr/share/doc/rtui"
        documents.mkdir(parents=True)
        shutil.move(library / "LICENSE", documents / "copyright")
        _compress(documents / "changelog.gz", (library / "CHANGELOG.md").read_text("utf-8"))
        (library / "CHANGELOG.md").unlink()
        (root / "usr/bin").mkdir()
        (root / "usr/bin/rtui").symlink_to("../lib/rtui/rtui")
        size = sum(path.lstat().st_size for path in root.rglob("*")) >> 10
        control = root / "DEBIAN/control"
        control.parent.mkdir()
        control.write_text(_control(size))
        for path in [root, *root.rglob("*")]:
            os.utime(path, (epoch(), epoch()), follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        machine = MACHINES.get(platform.machine(), platform.machine())
        command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z6", "--build", str(root)]
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
        target = to / f"rtui_{rtui.__version__}_{machine}.deb"
        subprocess.run([*command, str(target)], env=environment, check=True, stdout=subprocess.DEVNULL)


def _control(size_kib: int) -> str:
    libc = platform.libc_ver()[1] or "2.31"
    fields = {
        "Package": "rtui",
        "Version": rtui.__version__,
        "Architecture": MACHINES.get(platform.machine(), platform.machine()),
        "Maintainer": "rtui <rtui@localhost>",
        "Installed-Size": str(size_kib),
        "Depends": f"libc6 (>= {libc}), zlib1g",
        "Section": "database",
        "Priority": "optional",
        "Description": "read-only terminal browser and inspector for Redis and Valkey",
    }
    more = " It shows keyspaces as a tree, what holds the memory and what is wrong, and never\n writes.\n"
    return "".join(f"{name}: {value}\n" for name, value in fields.items()) + more


def sdist(to: Path) -> None:
    """Pack the sdist in `to` again: setuptools gives its files the times at which it was built."""
    (path,) = to.glob("redis_rtui-*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(path) as archive:
            archive.extractall(name, filter="data")
        (folder,) = Path(name).iterdir()
        _pack(folder, path, folder.name)


def formula(to: Path) -> None:
    """Write a Homebrew formula: the sdist in `to`, and each library's own sdist or wheel as pip resolves them."""
    sdist = next(to.glob("redis_rtui-*.tar.gz"))
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--dry-run",
            "--ignore-installed",
            "--report",
            file.name,
        ]
        subprocess.run([*command, str(sdist)], check=True)
        found = json.loads(Path(file.name).read_bytes())["install"]
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    (to / "rtui.rb").write_text("\n".join(_formula_lines(found, digest, sdist.name)) + "\n")


def _formula_lines(found: list[dict[str, Any]], digest: str, sdist: str) -> Iterator[str]:
    yield from (
        "class Rtui < Formula",
        "  include Language::Python::Virtualenv",
        "",
        '  desc "Read-only terminal browser and inspector for Redis and Valkey"',
        f"  url \"#{{ENV.fetch('RTUI_RELEASES', 'file:///tmp')}}/{sdist}\"",
        f'  sha256 "{digest}"',
        '  license "MIT"',
        '  depends_on "python@3.13"',
    )
    for one in sorted(found, key=lambda one: str(one["metadata"]["name"]).lower()):
        name, download = one["metadata"]["name"], one["download_info"]
        if name != "redis-rtui":
            hashed = download["archive_info"]["hashes"]["sha256"]
            yield from (
                "",
                f'  resource "{name}" do',
                f'    url "{download["url"]}"',
                f'    sha256 "{hashed}"',
                "  end",
            )
    yield from (
        "",
        "  def install",
        "    virtualenv_install_with_resources",
        '    generate_completions_from_executable(bin/"rtui", shell_parameter_format: :click)',
        "  end",
        "",
        "  test do",
        '    assert_match version.to_s, shell_output("#{bin}/rtui --version")',
        "  end",
        "end",
    )


def sbom(to: Path) -> None:
    """Write which libraries rtui is built of, by the environment in which it is installed."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(CHECKOUT / "pyproject.toml")]
    options = ["--output-reproducible", "--of", "JSON", "-o", str(to / "rtui.cdx.json")]
    subprocess.run([*command, *options, sys.executable], check=True)


def notes(to: Path) -> None:
    """Write the section of the CHANGELOG on this version, or on what is not released yet."""
    text = (CHECKOUT / "CHANGELOG.md").read_text("utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    found = next((one for one in sections if rtui.__version__ in one.partition("\n")[0]), None) or sections[0]
    (to / "NOTES.md").write_text(found.partition("\n")[2].strip() + "\n", "utf-8")


WHAT: Final[dict[str, Callable[[Path], object]]] = {
    "pages": pages, "sdist": sdist, "bundle": bundle, "deb": deb, "formula": formula, "sbom": sbom, "notes": notes,
}  # fmt: skip

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="+", choices=WHAT)
    parser.add_argument("--to", type=Path, default=CHECKOUT / "dist")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    for one in given.what:
        WHAT[one](given.to)
