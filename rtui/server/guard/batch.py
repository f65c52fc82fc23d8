"""Many keys in one write: the same constant-time commands for each key, packed as one byte string.

A request for a key differs from the next one only in the key and its length. `TYPE` of `a` and of `user:1` goes out as
`*2 $4 TYPE $1 a *2 $4 TYPE $6 user:1`, with CRLF after each part. So `build_batch` checks the commands and the lengths
of all keys once, then interleaves the keys with the bytes that come before each: a list of two parts for each request,
filled by slices, without a Python loop over the keys. The bytes before a key depend on its length alone and are kept
ready for lengths under 512.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, final

from rtui.server.guard.command import _TOKEN, Command, GuardError, build_command, require_evidence
from rtui.server.guard.evidence import Evidence
from rtui.server.guard.spec import Spec
from rtui.server.guard.table import TABLE

MAX_BULK_KEY_BYTES: Final = 64 * 1024
"""Longest key in a batch: a longer name costs the server more to read and hash than its reply is worth."""

MAX_BATCH_KEYS: Final = 2000
"""Most keys of one batch: a page of the largest scan, and as many again that its last bucket may bring."""

MAX_BATCH_BYTES: Final = 16 << 20
"""Largest batch on the wire; `split_keys` cuts the keys so that none is larger."""

MAX_BATCH_COMMANDS: Final = 8
"""Most commands for each key of one batch."""

_CACHED_LENGTHS: Final = 512
"""Key lengths for which the bytes before the key are kept ready."""


@final
class KeyCommand:
    """A builder of a command whose only argument is a key; `build_batch` sends it for many keys."""

    __slots__ = ("_before_length", "_headers", "spec")

    def __init__(self, name: str) -> None:
        words = tuple(name.encode().split(b" "))
        self.spec: Spec = next(spec for spec in TABLE if spec.words == words)
        packed_words = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self._before_length = b"\r\n*%d\r\n%b$" % (len(words) + 1, packed_words)
        self._headers: list[bytes] = []

    def __call__(self, key: bytes, evidence: Evidence | None = None) -> Command:
        """Build it for one key; GuardError when the name is too long, or too little is known of the key."""
        return build_command(*self.spec.words, key, evidence=evidence)

    def __repr__(self) -> str:
        return f"<KeyCommand {self.spec.name}>"

    def headers(self, lengths: Sequence[int]) -> Iterator[bytes]:
        """Give, for each key length, the bytes between the key before and this key."""
        start = self._before_length
        if max(lengths) >= _CACHED_LENGTHS:
            return (b"%b%d\r\n" % (start, length) for length in lengths)
        if not self._headers:
            self._headers = [b"%b%d\r\n" % (start, length) for length in range(_CACHED_LENGTHS)]
        return map(self._headers.__getitem__, lengths)


def build_batch(
    build: KeyCommand | Sequence[KeyCommand], keys: Sequence[bytes], evidence: Evidence | None = None
) -> Command:
    """Build one command or several for each of 1 to 2,000 keys of at most 64 KiB, as one Command.

    `evidence` is what is known of each of the keys. Replies come key by key: with builders (a, b) and keys (k1, k2)
    they are a(k1), b(k1), a(k2), b(k2). Raises GuardError.
    """
    builds = (build,) if isinstance(build, KeyCommand) else tuple(build)
    if not 1 <= len(builds) <= MAX_BATCH_COMMANDS or not all(one.spec.in_bulk for one in builds):
        raise GuardError(f"a batch is of 1 to {MAX_BATCH_COMMANDS} commands for each key, all of them constant in time")
    if not 1 <= len(keys) <= MAX_BATCH_KEYS:
        raise GuardError(f"a batch is of 1 to {MAX_BATCH_KEYS} keys, not {len(keys)}")
    lengths = list(map(len, keys))
    if max(lengths) > MAX_BULK_KEY_BYTES:
        raise GuardError(f"keys over {MAX_BULK_KEY_BYTES} bytes are not sent in bulk")
    if sum(lengths) * len(builds) > MAX_BATCH_BYTES:
        raise GuardError(f"a batch is of at most {MAX_BATCH_BYTES} bytes of keys")
    for one in builds:
        require_evidence(one.spec, evidence, keys=len(keys))
    step = 2 * len(builds)
    parts = [b""] * (step * len(keys))
    for index, one in enumerate(builds):
        parts[2 * index :: step] = one.headers(lengths)
        parts[2 * index + 1 :: step] = keys
    parts[0] = parts[0][2:]  # no line end of a key before
    parts.append(b"\r\n")
    name = " + ".join(one.spec.name for one in builds)
    return Command(_TOKEN, name, b"".join(parts), replies=len(keys) * len(builds))


def split_keys(keys: Sequence[bytes], commands_per_key: int) -> Iterator[Sequence[bytes]]:
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
