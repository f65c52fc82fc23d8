"""`rtui replay`: a recorded session played again, without a server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from rtui.cli.connection import Number
from rtui.cli.options import require_terminal
from rtui.cli.output import OutputError


@click.command("replay")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--speed", type=Number(0.1, 100), default=1.0, help="So many times as fast (1).")
@click.option("--step", is_flag=True, help="Begin paused: . shows the next key.")
@click.option(
    "--to",
    "picture",
    metavar="PICTURE",
    type=click.Path(path_type=Path),
    help="Write what stood on the screen to a file, .svg or .txt, and play nothing; - is text on standard output.",
)
@click.option("--at", "at_s", type=Number(0), metavar="SECONDS", help="When; the end of the session.")
@click.help_option("--help")
def command(file: Path, speed: float, step: bool, picture: Path | None, at_s: float | None) -> None:
    """Play a session that `rtui --record FILE` has recorded; no server is asked.

    The line below says what was pressed and when. Space pauses, . goes to the next key, + and - change the speed,
    q leaves. A recording can't write files, start programs or reach the clipboard, whatever its keys are.

    The exit code is 2 if FILE can't be read.
    """
    if at_s is not None and picture is None:
        raise click.UsageError("--at says when --to is.")
    if picture is not None and str(picture) != "-" and picture.suffix not in (".svg", ".txt"):
        raise click.UsageError("The picture is .svg or .txt.")
    if picture is None:
        require_terminal("a session is played on one")
    from rtui.server.analysis.table_import import import_ahead  # noqa: PLC0415 - the help must not wait for all this
    from rtui.server.recording.document import read_recording  # noqa: PLC0415
    from rtui.server.recording.player import confine  # noqa: PLC0415

    recording = read_recording(file.expanduser())
    import_ahead()  # it sets the environment, which a replay may not
    if picture is None:
        from rtui.tui.replay import run_replay  # noqa: PLC0415

        confine()
        sys.exit(run_replay(recording, speed=speed, is_paused=step))
    from rtui.tui.replay import picture_of  # noqa: PLC0415

    until_ms = float("inf") if at_s is None else 1000 * at_s
    if str(picture) == "-":
        confine()
        click.echo(asyncio.run(picture_of(recording, until_ms, is_svg=False)), nl=False)
        return
    try:
        with picture.open("w", encoding="utf-8") as out:
            confine()
            out.write(asyncio.run(picture_of(recording, until_ms, is_svg=picture.suffix == ".svg")))
    except OSError as error:
        raise OutputError(str(picture), error) from None
