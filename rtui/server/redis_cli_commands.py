"""Copying a key: its name as text, and redis-cli commands for what rtui itself does not do."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.text.display import SafeText, display_text, quoted
from rtui.server.wire.target import Target

_PLAIN: Final = re.compile(r"[!#-&(-~]+", re.ASCII)
"""Arguments that `redis-cli --quoted-input` reads as themselves: printable ASCII without spaces and quotes."""


@dataclass(frozen=True, slots=True)
class CopiedCommand:
    """A command to paste into a shell; `writes` when it changes the key."""

    title: str
    line: SafeText
    writes: bool = False


def key_as_text(key: bytes) -> str:
    """Return the name as text where all of it is printable, else quoted, so that no terminal interprets it."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        return quoted(key)
    return text if text.isprintable() else quoted(key)


def command_line(target: Target, command: str, key: bytes, *after: str) -> SafeText:
    """Write one command on one key as a line for a POSIX shell; redis-cli prompts for the password if there is one.

    `command` may have two words. The name may have any bytes: it is quoted for redis-cli and then for the shell.
    """
    options = [argument if argument.isprintable() else display_text(argument) for argument in target.redis_cli_args()]
    name = key.decode("latin-1")
    if not _PLAIN.fullmatch(name):
        name = quoted(key).replace("'", r"\x27")  # so that the shell's own quotes stay readable
    return SafeText(shlex.join(["redis-cli", *options, "--quoted-input", *command.split(), name, *after]))


def copied_commands(target: Target, facts: KeyFacts) -> tuple[CopiedCommand, ...]:
    """List the commands for a key: reads without a bound, then commands that inspect it, then those that write."""

    def entry(title: str, command: str, *after: str, writes: bool = False) -> CopiedCommand:
        return CopiedCommand(title, command_line(target, command, facts.key, *after), writes)

    reads = [entry(f"read the value: {words[0]}", words[0], *words[1:]) for words in facts.redis_type.redis_cli]
    return (
        *reads,
        entry("serialised value: DUMP", "DUMP"),
        entry("memory, every element counted: MEMORY USAGE SAMPLES 0", "MEMORY USAGE", "SAMPLES", "0"),
        entry("delete in the background: UNLINK", "UNLINK", writes=True),
        entry("set a time to live: EXPIRE", "EXPIRE", "3600", writes=True),
        entry("remove the time to live: PERSIST", "PERSIST", writes=True),
    )
