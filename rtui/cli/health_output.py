"""Where `rtui health` writes to, and as what: samples line by line as they come, or what they mean as a whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rtui.registry.rules import Severity

if TYPE_CHECKING:
    from rtui.cli.health_run import Judged

LINES: Final = "jsonl"
"""The samples themselves, a line each; the other formats say what they mean."""

FORMATS: Final = ("text", "json", "jsonl", "md", "html", "prom", "sarif", "junit")

_SUFFIXES: Final = {
    ".txt": "text", ".json": "json", ".jsonl": LINES, ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html",
    ".prom": "prom", ".sarif": "sarif", ".xml": "junit",
}  # fmt: skip


def format_of(form: str | None, output: Path | None) -> str:
    """Return as what is written: as is said, else by the ending of the file, else the samples to any other file."""
    if form is not None:
        return form
    return "text" if output is None else _SUFFIXES.get(output.suffix.lower(), LINES)


def written(form: str, judged: Judged) -> str:
    """Return what samples mean, in one of the formats that say it; nothing before the first one."""
    from rtui.analysis import formats  # noqa: PLC0415
    from rtui.analysis.findings.server import server_findings  # noqa: PLC0415 - the help must not wait for all this
    from rtui.analysis.formats.findings import servers_junit, servers_sarif  # noqa: PLC0415
    from rtui.analysis.formats.health import health_json, health_page  # noqa: PLC0415
    from rtui.analysis.formats.prometheus import health_prometheus  # noqa: PLC0415
    from rtui.analysis.formats.text import DEFAULT_WIDTH  # noqa: PLC0415

    views = judged.views()
    if not views:
        return ""
    if form == "prom":
        return health_prometheus(views, judged.failures)
    if form == "sarif":
        return servers_sarif({view.latest.node: server_findings(view) for view in views}, judged.failures)
    if form == "junit":
        found = {view.latest.node: (view.latest.at_ms / 1000, server_findings(view)) for view in views}
        return servers_junit(found, judged.severity or Severity.ERROR, judged.failures)
    comparison = judged.comparison(views)
    asked = views, comparison, judged.judgements(views, comparison), judged.failures
    if form == "json":
        return health_json(*asked)
    return formats.written(health_page(*asked, in_browser=form == "html"), form, width=DEFAULT_WIDTH)


@contextmanager
def lines_to(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Give what writes a line at once, to standard output or to a new file that only its owner may read."""
    from rtui.cli.output import OutputError  # noqa: PLC0415 - the help must not wait for it

    if path is None:

        def to_output(line: str) -> None:
            sys.stdout.write(line)
            sys.stdout.flush()

        yield to_output
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise click.UsageError(f"{path} is there already: name a new file.") from None
    except OSError as error:
        raise OutputError(str(path), error) from None
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:

        def to_file(line: str) -> None:
            try:
                file.write(line)
                file.flush()
            except OSError as error:
                raise OutputError(str(path), error, "What was written before is there.") from None

        yield to_file
