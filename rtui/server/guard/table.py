"""The closed list: everything that may be sent to a server, and the check of a command line against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.server.guard.key_entries import KEYSPACE, MODULES, VALUES
from rtui.server.guard.server_entries import CONNECTION, LOAD, SERVER
from rtui.server.guard.spec import Spec

TABLE: Final[tuple[Spec, ...]] = (*CONNECTION, *SERVER, *LOAD, *KEYSPACE, *VALUES, *MODULES)
"""Every command that may be sent. What is not here can't be."""

_BY_FIRST_WORD: Final = {
    word: tuple(spec for spec in TABLE if spec.words[0] == word) for word in {spec.words[0] for spec in TABLE}
}


def find_spec(argv: Sequence[bytes]) -> Spec | None:
    """Find the entry that admits a whole command line, words in capitals; None when the line may not be sent."""
    line = tuple(argv)
    for spec in _BY_FIRST_WORD.get(line[0], ()) if line else ():
        if spec.admits(line):
            return spec
    return None


def refusal(argv: Sequence[bytes]) -> str:
    """Say why a command line is refused and what would be allowed, without repeating its arguments."""
    specs = _BY_FIRST_WORD.get(argv[0], ()) if argv else ()
    if not specs:
        return "this command is not on the list of what may be sent"
    near = [spec for spec in specs if tuple(argv[: len(spec.words)]) == spec.words] or specs
    usages = [f"{spec.usage} ({', '.join(spec.bounds)})" if spec.bounds else spec.usage for spec in near]
    return "outside the bounds of " + " or ".join(usages)
