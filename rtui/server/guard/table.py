"""The closed list: everything that may go to a server, and the check of any command line against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.server.guard.connection_entries import CONNECTION, SERVER
from rtui.server.guard.keyspace_entries import KEYSPACE
from rtui.server.guard.load_entries import LOAD
from rtui.server.guard.module_entries import MODULES
from rtui.server.guard.spec import Spec
from rtui.server.guard.value_entries import VALUES

TABLE: Final[tuple[Spec, ...]] = (*CONNECTION, *SERVER, *LOAD, *KEYSPACE, *VALUES, *MODULES)
"""Every command that may be sent. What is not here can't be."""

_BY_WORDS: Final = {spec.words: spec for spec in TABLE}

_BY_FIRST_WORD: Final = {
    word: tuple(spec for spec in TABLE if spec.words[0] == word) for word in {spec.words[0] for spec in TABLE}
}


def admits(argv: Sequence[bytes]) -> Spec | None:
    """Find the entry that a whole command line fits, words in capitals; None when it may not be sent."""
    for spec in _BY_FIRST_WORD.get(argv[0], ()) if argv else ():
        if spec.admits(argv):
            return spec
    return None


def spec_of(words: tuple[bytes, ...]) -> Spec:
    """Give the entry of a command by its words; KeyError when it is not on the list."""
    return _BY_WORDS[words]


def usage_of(argv: Sequence[bytes]) -> list[str]:
    """Say how the commands that begin like this one may be used, with their bounds."""
    specs = _BY_FIRST_WORD.get(argv[0], ()) if argv else ()
    near = [spec for spec in specs if tuple(argv[: len(spec.words)]) == spec.words] or specs
    return [f"{spec.usage} ({', '.join(spec.bounds)})" if spec.bounds else spec.usage for spec in near]
