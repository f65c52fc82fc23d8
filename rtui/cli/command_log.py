"""The command log of a subcommand without a screen: kept, written to the file of `--log`, and a failure said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from rtui.server.wire.command_log import CommandLog


@contextmanager
def command_log(path: Path | None) -> Iterator[CommandLog]:
    """Give a log for a connection, whose entries are written to a file if there is one.

    Why they can't be is said once on standard error, at the end; nothing else depends on it.
    """
    log = CommandLog()
    if path is None:
        yield log
        return
    from rtui.server.user.log_file import CommandLogFile  # noqa: PLC0415 - few want it

    file = CommandLogFile(log, path)
    try:
        yield log
    finally:
        file.close()
        if log.failure is not None:
            click.echo(f"rtui: {log.failure}", err=True)
