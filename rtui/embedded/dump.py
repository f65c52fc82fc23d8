"""Opens a dump: a server of our own loads it, and what is asked about a server can be asked about the dump.

Valkey loads as a replica of nowhere in import mode, so keys that have expired since the dump was made are there, and
stay. It is then made a primary, and each connection says `CLIENT IMPORT-SOURCE ON`, by which such keys are shown. Redis
has no such mode: it drops them while it loads, and its log says how many.

Both get PEXPIRETIME under the name of PTTL: for an expired key PTTL would say 0. `wall_clock` turns the moments into
times to live as of when the dump was made. Idle times and frequencies would be those since it was loaded, and are not
asked for (`DumpFile.without`).
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rtui.analysis import humanize
from rtui.embedded.dump_head import CHECKSUMS_SINCE, DumpError, DumpHead
from rtui.embedded.server import DUMP_NAME, EmbeddedServer, EmbeddedServerError, Setting, exchange, find_program
from rtui.keyspace.text.display import display_text
from rtui.server import wall_clock
from rtui.server.wire.dial import dialled_by
from rtui.server.wire.target import DumpFile, Target

DATABASES: Final = 1_024
"""Databases of the server; a dump with others is refused by it."""

POLL_S: Final = 0.05

PROGRAMS: Final = ("valkey-server", "redis-server")
"""Servers that are looked for on PATH."""

MEMORY_FACTOR: Final = 4
"""Bytes that a server takes for each byte of a dump that does not say how much it took: dumps are compressed."""

OPTION: Final = "--server-binary"

OLDEST: Final = (7, 0)
"""The first version with PEXPIRETIME."""

_VERSION: Final = re.compile(r"(Valkey|Redis) server v=(\d+)\.(\d+)")
_WARNING: Final = re.compile(r"^\d+:\w \d+ \w+ \d+ [\d:.]+ # (.*)$", re.MULTILINE)
_READING: Final = re.compile(r"Internal error in RDB reading offset \d+, function at \S+ -> ")
_SHORT: Final = re.compile(r"short read|unexpected eof|error (reading|loading)|loading failed", re.IGNORECASE)
_KEY: Final = re.compile(r"^\[additional info\] Reading key '(.*)'$", re.MULTILINE)
_EXPIRED: Final = re.compile(r"keys expired: (\d+)")

_OF_ITS_KIND: Final = (
    (
        "Can't handle RDB format version",
        "Its format, version {version}, is newer than this server.",
        f"Name the server that wrote it, or a newer one, by {OPTION}.",
    ),
    (
        "Can't handle foreign type or opcode",
        "It holds a type that this server does not know, and the one that wrote it does ({server}).",
        f"Install that server, or name it by {OPTION}.",
    ),
    (
        "module data I can't load",
        "It holds keys of a module that this server has not loaded: {said}",
        f"Name a server with that module by {OPTION}; the dump is of {{server}}.",
    ),
    (
        "Wrong signature",
        "It is of {server}, whose format this server does not know.",
        f"Name that server, or a newer one, by {OPTION}.",
    ),
)
_REFUSED: Final = (
    (
        "Wrong RDB checksum",
        "Its checksum does not match: the dump is damaged.",
        "Copy it again, or use an earlier one.",
    ),
    (
        "handle more than",
        f"It holds more than {DATABASES:,} databases.",
        "rtui opens dumps with databases up to that number.",
    ),
)
"""By a part of the server's warning: the cause, and what to do. Another server may load the first ones."""


@dataclass(frozen=True, slots=True)
class _Program:
    path: Path
    imports: bool
    """Whether it has Valkey's import mode."""
    is_relaxed: bool
    """Whether it can load the formats of other kinds of servers."""
    renames_fields: bool
    """Whether it has times to live of hash fields."""

    @classmethod
    def of(cls, path: Path) -> _Program:
        """Ask a program for its version; raises EmbeddedServerError if it is no server."""
        try:
            asked = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
            found = _VERSION.search(asked.stdout)
        except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
            found = None
        if found is None:
            raise EmbeddedServerError(f"{path} is no Redis or Valkey server.", f"{OPTION} names a redis-server.")
        is_valkey, version = found[1] == "Valkey", (int(found[2]), int(found[3]))
        if version < OLDEST:
            raise EmbeddedServerError(
                f"{path} is {found[1]} {found[2]}.{found[3]}.", "Redis 7.0 is the oldest that can."
            )
        return cls(
            path,
            imports=is_valkey and version >= (8, 1),
            is_relaxed=is_valkey and version >= (9, 0),
            renames_fields=version >= ((9, 0) if is_valkey else (7, 4)),
        )

    def settings(self) -> Iterator[Setting]:
        """Yield the settings with which it loads a dump."""
        yield "dbfilename", DUMP_NAME
        yield "databases", str(DATABASES)
        yield "rename-command", "PTTL", ""
        yield "rename-command", "PEXPIRETIME", "PTTL"
        if self.renames_fields:
            yield "rename-command", "HPTTL", ""
            yield "rename-command", "HPEXPIRETIME", "HPTTL"
        if self.is_relaxed:
            yield "rdb-version-check", "relaxed"
        if self.imports:
            yield "import-mode", "yes"
            yield "replicaof", "127.0.0.1", "1"


@contextmanager
def opened(target: Target, file: DumpFile, on_progress: Callable[[float], object] = lambda _: None) -> Iterator[Target]:
    """Load the dump of a target; within the block all connections lead to it, and the time is that of the dump.

    `on_progress` gets the share that is loaded. Raises DumpError and EmbeddedServerError.
    """
    path, head = file.path, DumpHead.read(file.path)
    if not file.is_forced:
        _require_memory(path, head)
    made_at_s = head.made_at_s or path.stat().st_mtime
    with ExitStack() as stack:
        server, left_out, imports = stack.enter_context(_loaded(path, head, file.program, on_progress))
        stack.enter_context(wall_clock.stopped_at(round(made_at_s * 1000)))
        stack.enter_context(dialled_by(lambda: _dialled(server, imports=imports)))
        known = replace(
            file,
            made_at=humanize.moment(made_at_s)[:16] + ("" if head.made_at_s else " by the date of the file"),
            server=head.server or "",
            used_memory_bytes=head.used_memory_bytes,
            left_out=left_out,
            has_more=not head.is_at_end and head.version >= CHECKSUMS_SINCE,
        )
        yield replace(target, socket_path=server.socket_path, dump=known)


def _require_memory(path: Path, head: DumpHead) -> None:
    from rtui.table.rows import free_memory  # noqa: PLC0415 - it takes NumPy along

    needed, free = head.used_memory_bytes or MEMORY_FACTOR * path.stat().st_size, free_memory()
    if needed > free:
        happened = f"It needs about {humanize.size(needed)} of memory, and {humanize.size(free)} are free."
        raise DumpError(path, happened, "Open it on a larger machine, or try it with --force.")


@contextmanager
def _loaded(
    path: Path, head: DumpHead, program: Path | None, on_progress: Callable[[float], object]
) -> Iterator[tuple[EmbeddedServer, int, bool]]:
    """Give a server that has loaded the dump, the number of keys that it dropped, and whether it imports.

    Servers are tried in turn: others may know a type that the first one does not.
    """
    programs = [program] if program is not None else list(_programs())
    if not programs:
        find_program()  # says what to install
    failed: DumpError | None = None
    for one in programs:
        try:
            kind = _Program.of(one)
        except EmbeddedServerError as error:
            failed = failed or DumpError(path, error.happened, error.remedy)
            continue
        with EmbeddedServer(list(kind.settings()), program=kind.path, dump=path) as server:
            try:
                left_out = _load(server, imports=kind.imports, on_progress=on_progress)
            except EmbeddedServerError as error:
                is_of_its_kind = any(mark in error.said for mark, *_ in _OF_ITS_KIND)
                failed = failed or _explained(path, head, error)
                if is_of_its_kind:
                    continue
                break
            yield server, left_out, kind.imports
            return
    assert failed is not None  # noqa: S101 - at least one was tried
    raise failed


def _programs() -> Iterator[Path]:
    with suppress(EmbeddedServerError):
        yield find_program()
    for name in PROGRAMS:
        if (found := shutil.which(name)) is not None:
            yield Path(found)


def _load(server: EmbeddedServer, *, imports: bool, on_progress: Callable[[float], object]) -> int:
    """Wait until the dump is loaded, and return how many keys the server dropped; raises EmbeddedServerError."""
    while True:
        server.require_running()
        with suppress(OSError):
            said = server.ask(b"INFO persistence\r\n")
            if b"\nloading:0" in said:
                break
            found = re.search(rb"\nloading_loaded_perc:([\d.]+)", said)
            on_progress(float(found[1]) / 100 if found else 0.0)
        time.sleep(POLL_S)
    on_progress(1.0)
    if imports:
        server.ask(b"REPLICAOF NO ONE\r\n")
    found_in_log = _EXPIRED.search(server.log())
    return int(found_in_log[1]) if found_in_log else 0


def _dialled(server: EmbeddedServer, *, imports: bool) -> socket.socket:
    """Return a new connection, for which keys that have expired are there."""
    connection = server.connect()
    try:
        if imports:
            said = exchange(connection, b"CLIENT IMPORT-SOURCE ON\r\n")
            if said != b"+OK\r\n":
                raise ConnectionRefusedError(said.decode(errors="replace"))
        connection.setblocking(False)
    except BaseException:
        connection.close()
        raise
    return connection


def _explained(path: Path, head: DumpHead, error: EmbeddedServerError) -> DumpError:
    """Return why the server ended, by the first warning of its log that tells: the last one is of another kind."""
    warnings = [_READING.sub("", said) for said in _WARNING.findall(error.said) if "overcommit" not in said]
    for said in warnings:
        for mark, happened, remedy in _OF_ITS_KIND + _REFUSED:
            if mark in said:
                words = {"version": head.version, "server": head.server or "unknown", "said": said.split(": ")[-1]}
                return DumpError(path, happened.format(**words), remedy.format(**words))
    if not warnings and "Loading RDB" in error.said:
        return DumpError(path, "The server ended while it loaded the dump; memory may have run out.")
    if not warnings:
        return DumpError(path, error.happened, error.remedy)
    if _SHORT.search(warnings[0]) and not head.is_at_end:
        happened = "The dump ends too early: it is truncated, or still being written."
        return DumpError(path, happened, "Wait until it is complete, copy it again, or use an earlier one.")
    key = _KEY.search(error.said)
    where = "A value in it" if key is None else f"The value of {display_text(key[1], limit=80)}"
    why = "a length in it is wrong" if _SHORT.search(warnings[0]) else display_text(warnings[0].rstrip("."), limit=200)
    return DumpError(path, f"{where} is damaged: {why}.", "Copy the dump again, or use an earlier one.")
