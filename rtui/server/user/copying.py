"""Copying a key: its name as text, and redis-cli commands for operations that rtui itself does not offer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.text.display import SafeText, display_text, quoted
from rtui.server.wire.target import Target

_PLAIN: Final = re.compile(r"[!#-&(-~]+", re.ASCII)
"""An argument that `redis-cli --quoted-input` takes literally: printable ASCII without spaces and quotes."""


@dataclass(frozen=True, slots=True)
class CopiedCommand:
    """A command to paste into a shell; `writes` if it changes the key."""

    title: str
    line: SafeText
    writes: bool = False


def key_as_text(key: bytes) -> str:
    """Return the name as text if all of it is printable, else quoted, so that no terminal interprets it."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        return quoted(key)
    return text if text.isprintable() else quoted(key)


def command_line(target: Target, command: str, key: bytes, *after: str | bytes) -> SafeText:
    """Return a command on one key as a line for a POSIX shell; redis-cli prompts for the password if there is one.

    `command` may have two words. The name and arguments given as bytes may hold any bytes: they are quoted for
    redis-cli and then for the shell.
    """
    words = (argument if isinstance(argument, str) else _argument(argument) for argument in (key, *after))
    return _shell_line(target, [*command.split(), *words])


def sent_line(target: Target, argv: Sequence[bytes]) -> SafeText:
    return _shell_line(target, map(_argument, argv))


def prompt_line(argv: Sequence[bytes]) -> SafeText:
    return SafeText(" ".join(map(_argument, argv)))


def _shell_line(target: Target, arguments: Iterable[str]) -> SafeText:
    options = [argument if argument.isprintable() else display_text(argument) for argument in target.redis_cli_args()]
    word, *others = arguments
    name = target.names.others.get(word.encode(), b"").decode() or word
    return SafeText(shlex.join(["redis-cli", *options, "--quoted-input", name, *others]))


def _argument(raw: bytes) -> str:
    """Return an argument as redis-cli reads it, quoted if it isn't plain."""
    text = raw.decode("latin-1")
    # without single quotes, so that the shell's own stay readable
    return text if _PLAIN.fullmatch(text) else quoted(raw).replace("'", r"\x27")


def copied_commands(target: Target, facts: KeyFacts) -> tuple[CopiedCommand, ...]:
    """Return the commands for a key: unbounded reads first, then commands that inspect it, then writes."""

    def entry(title: str, command: str, *after: str, writes: bool = False) -> CopiedCommand:
        return CopiedCommand(title, command_line(target, command, facts.key, *after), writes)

    reads = [entry(f"read the value: {words[0]}", words[0], *words[1:]) for words in facts.redis_type.redis_cli]
    return (
        *reads,
        entry("serialised value: DUMP", "DUMP"),
        entry("memory, every element counted: MEMORY USAGE SAMPLES 0", "MEMORY USAGE", "SAMPLES", "0"),
        entry("delete in the background: UNLINK", "UNLINK", writes=True),
        entry("set a TTL: EXPIRE", "EXPIRE", "3600", writes=True),
        entry("remove the TTL: PERSIST", "PERSIST", writes=True),
    )
