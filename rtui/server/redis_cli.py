"""What is copied of a key: its name in two forms, and redis-cli commands for what rtui itself does not do."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.text.display import SafeText, display_text, quoted
from rtui.server.wire.target import Target

_PLAIN: Final = re.compile(r"[!-~]+", re.ASCII)
"""Arguments that redis-cli reads as themselves when it reads quoted ones: printable ASCII without spaces."""


@dataclass(frozen=True, slots=True)
class CopiedCommand:
    """A command to paste into a shell; `writes` when it changes the key."""

    title: str
    line: SafeText
    writes: bool = False


def key_as_text(key: bytes) -> str:
    """Give the name as text where all of it is printable, else as `key_as_bytes` does: no terminal acts on either."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        return key_as_bytes(key)
    return text if text.isprintable() else key_as_bytes(key)


def key_as_bytes(key: bytes) -> SafeText:
    r"""Give the name in double quotes with `\xNN` for what is not ASCII, as `redis-cli --quoted-input` reads it."""
    return quoted(key)


def command_line(target: Target, command: str, key: bytes, *after: str) -> SafeText:
    """Write one command on one key as a line for a POSIX shell; redis-cli asks for the password where there is one.

    `command` may be of two words. Names of any bytes survive: they are quoted for redis-cli and then for the shell.
    """
    reach = [argument if argument.isprintable() else display_text(argument) for argument in target.redis_cli_args()]
    return SafeText(shlex.join(["redis-cli", *reach, "--quoted-input", *command.split(), _argument(key), *after]))


def _argument(key: bytes) -> str:
    r"""Quote a name for redis-cli; a single quote becomes `\x27`, so that the shell's own quotes stay readable."""
    text = key.decode("latin-1")
    if _PLAIN.fullmatch(text) and not set(text) & set("\"'"):
        return text
    return quoted(key).replace("'", r"\x27")


def copied_commands(target: Target, facts: KeyFacts, *, is_hyperloglog: bool = False) -> tuple[CopiedCommand, ...]:
    """List what can be copied for this key: unbounded reads first, then what looks deeper, then what writes."""

    def entry(title: str, command: str, *after: str, writes: bool = False) -> CopiedCommand:
        return CopiedCommand(title, command_line(target, command, facts.key, *after), writes)

    reads = [entry(f"read the value: {words[0]}", words[0], *words[1:]) for words in facts.redis_type.redis_cli]
    counts = [entry("count now, which stores the count in the key: PFCOUNT", "PFCOUNT", writes=True)]
    return (
        *reads,
        entry("serialised value: DUMP", "DUMP"),
        entry("memory, every element counted: MEMORY USAGE SAMPLES 0", "MEMORY USAGE", "SAMPLES", "0"),
        *(counts if is_hyperloglog else ()),
        entry("delete in the background: UNLINK", "UNLINK", writes=True),
        entry("set a time to live: EXPIRE", "EXPIRE", "3600", writes=True),
        entry("remove the time to live: PERSIST", "PERSIST", writes=True),
    )
