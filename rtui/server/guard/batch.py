"""Many keys in one write: the same constant-time commands for each, packed several times faster than one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, final

from rtui.server.guard.command import _TOKEN, Command, GuardError, checked, require
from rtui.server.guard.evidence import Evidence
from rtui.server.guard.spec import Spec
from rtui.server.guard.table import spec_of

MAX_BULK_KEY_BYTES: Final = 64 * 1024
"""Longest key in a batch: a longer name costs the server more to read and hash than what it would answer is worth."""

MAX_BATCH_KEYS: Final = 2000
"""Most keys of one batch: a page of the largest scan, and as many again that its last bucket may bring."""

MAX_BATCH_BYTES: Final = 16 << 20
"""Largest batch on the wire; `portions` cuts the keys so that none is larger."""

MAX_BATCH_BUILDS: Final = 8
"""Most commands for each key of one batch."""

_HEADS: Final = 512
"""Key lengths for which the bytes before the key are kept ready."""


@final
class PerKey:
    """A builder of a command whose only argument is a key; `each` sends it for many."""

    __slots__ = ("_heads", "_lead", "spec")

    def __init__(self, name: str) -> None:
        words = tuple(name.encode().split(b" "))
        self.spec: Spec = spec_of(words)
        lead = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self._lead = b"\r\n*%d\r\n%b$" % (len(words) + 1, lead)
        self._heads: list[bytes] = []

    def __call__(self, key: bytes, evidence: Evidence | None = None) -> Command:
        """Build it for one key; GuardError when the name is too long, or too little is known of the key."""
        return checked(*self.spec.words, key, evidence=evidence)

    def __repr__(self) -> str:
        return f"<PerKey {self.spec.name}>"

    def heads(self, lengths: Sequence[int]) -> Iterator[bytes]:
        """Give, for each key length, the bytes between the key before and this key."""
        lead = self._lead
        if max(lengths) >= _HEADS:
            return (b"%b%d\r\n" % (lead, length) for length in lengths)
        if not self._heads:
            self._heads = [b"%b%d\r\n" % (lead, length) for length in range(_HEADS)]
        return map(self._heads.__getitem__, lengths)


def each(build: PerKey | Sequence[PerKey], keys: Sequence[bytes], evidence: Evidence | None = None) -> Command:
    """Build one command or several for each of 1 to 2,000 keys of at most 64 KiB, as one Command.

    `evidence` is what is known of each of the keys. Replies come key by key: with builders (a, b) and keys (k1, k2)
    they are a(k1), b(k1), a(k2), b(k2).
    """
    builds = (build,) if isinstance(build, PerKey) else tuple(build)
    if not 1 <= len(builds) <= MAX_BATCH_BUILDS or not all(one.spec.in_bulk for one in builds):
        raise GuardError(f"a batch is of 1 to {MAX_BATCH_BUILDS} commands for each key, all of them constant in time")
    if not 1 <= len(keys) <= MAX_BATCH_KEYS:
        raise GuardError(f"a batch is of 1 to {MAX_BATCH_KEYS} keys, not {len(keys)}")
    lengths = list(map(len, keys))
    if max(lengths) > MAX_BULK_KEY_BYTES:
        raise GuardError(f"keys over {MAX_BULK_KEY_BYTES} bytes are not sent in bulk")
    if sum(lengths) * len(builds) > MAX_BATCH_BYTES:
        raise GuardError(f"a batch is of at most {MAX_BATCH_BYTES} bytes of keys")
    for one in builds:
        require(one.spec, evidence, keys=len(keys))
    step = 2 * len(builds)
    flat = [b""] * (step * len(keys))
    for place, one in enumerate(builds):
        flat[2 * place :: step] = one.heads(lengths)
        flat[2 * place + 1 :: step] = keys
    flat[0] = flat[0][2:]
    flat.append(b"\r\n")
    name = " + ".join(one.spec.name for one in builds)
    return Command(_TOKEN, name, b"".join(flat), replies=len(keys) * len(builds))


def portions(keys: Sequence[bytes], commands_per_key: int) -> Iterator[Sequence[bytes]]:
    """Cut keys that are short enough for bulk into runs that each fit into one batch, in order."""
    start, size = 0, 0
    for index, key in enumerate(keys):
        cost = len(key) * commands_per_key
        if index - start == MAX_BATCH_KEYS or size + cost > MAX_BATCH_BYTES:
            yield keys[start:index]
            start, size = index, 0
        size += cost
    if start < len(keys):
        yield keys[start:]
