"""What needs a terminal says so instead of drawing into a file."""

from __future__ import annotations

import sys

import click


def require_terminal(why: str) -> None:
    """Raise a usage error unless standard input and output are a terminal; `why` ends the sentence."""
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if not stream.isatty():
            raise click.UsageError(f"Standard {name} is not a terminal, and {why}.")
