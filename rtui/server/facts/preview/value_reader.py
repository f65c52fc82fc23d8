"""Reads pages of one value: limits of a page, sending commands, and taking replies apart.

Every page ends with TYPE in the same write, so that a key that was deleted or replaced in between is noticed. The
number of elements of a page follows from the memory of an average one, so that a page stays below a megabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis.facts import GONE, Frequency, IdleBasis, KeyFacts, Reason, Unknown
from rtui.analysis.humanize import size
from rtui.keyspace.text.display import display
from rtui.keyspace.types import NO_TYPE
from rtui.server import guard, wall_clock
from rtui.server.facts.preview.page import FIRST, Offer, Page, Preview, PreviewCell, PreviewKind, Unread
from rtui.server.guard.closed_list import MAX_ELEMENTS
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import FEW_ELEMENTS, CollectionEvidence
from rtui.server.guard.spec import Version
from rtui.server.wire.capability import Querier, unknown_from
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.own_reads import STALE_S

PAGE_ITEMS: Final = 100
CAUTIOUS_ITEMS: Final = FEW_ELEMENTS

MAX_PAGE_BYTES: Final = 1 << 20
"""The largest page, by the memory of an average element."""

STRING_WINDOW_BYTES: Final = 4 * 1024

MAX_EMPTY_CALLS: Final = 10
"""The number of consecutive empty replies that ends a page: a table right after a mass deletion is mostly holes."""


MAX_PURPOSE_BYTES: Final = 128 << 20
"""The largest value whose elements are read on request: no command returns the size of an item, a member or an entry,
so that any of them may be nearly the whole value."""

KEPT_BYTES: Final = 16 << 20
"""The bytes that are kept of elements that were read on request; for others the size is shown."""

COPIED_MIB_PER_S: Final = 500
"""The speed at which servers write large replies, measured on 80 MiB: 0.5 to 1.8 GiB/s."""


class Refused(Exception):  # noqa: N818 - it ends a preview, it is no error
    """The reason why nothing can be shown."""

    def __init__(self, why: Unknown, offers: tuple[Offer, ...] = ()) -> None:
        super().__init__(why.detail)
        self.why = why
        self.offers = offers
        """Elements that can be read all the same, on the user's request."""


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Reads one page of the value of one key."""

    querier: Querier
    facts: KeyFacts
    page: Page = FIRST
    window_bytes: int = STRING_WINDOW_BYTES
    """The size of a page of a string."""

    @property
    def key(self) -> bytes:
        return self.facts.key

    @property
    def start(self) -> int:
        return self.page.position if isinstance(self.page.position, int) else 0

    @property
    def evidence(self) -> CollectionEvidence:
        """The evidence that the guard requires for a hash, set or sorted set."""
        facts = self.facts
        return CollectionEvidence(
            None if isinstance(facts.encoding, Unknown) else facts.encoding,
            None if isinstance(facts.length, Unknown) else facts.length,
            None if isinstance(facts.memory_bytes, Unknown) else facts.memory_bytes,
        )

    def supports(self, *, redis: Version, valkey: Version) -> bool:
        """Whether the server has these versions' features; True if it hides its version."""
        server = self.querier.connection.server
        if server.version is None or server.product not in ("redis", "valkey"):
            return True
        return server.version >= (valkey if server.product == "valkey" else redis)

    @property
    def max_items(self) -> int:
        """The most elements for the page, by the size of the average one; 0 if a single one is too large."""
        memory_bytes, mean = self.facts.memory_bytes, self.facts.mean_element_bytes
        if isinstance(memory_bytes, Unknown):
            return CAUTIOUS_ITEMS
        if self.page.on_purpose and memory_bytes <= MAX_PURPOSE_BYTES:
            return min(self.page.on_purpose, PAGE_ITEMS)
        if memory_bytes <= MAX_PAGE_BYTES:
            return PAGE_ITEMS
        return CAUTIOUS_ITEMS if mean is None else min(PAGE_ITEMS, MAX_ELEMENTS, int(MAX_PAGE_BYTES // mean))

    def require_items(self, element: str) -> int:
        """Return `max_items`; raises Refused, in terms of `element`, if a single one is too large."""
        if not self.max_items:
            mean = self.facts.mean_element_bytes or 0
            why = f"on average one {element} takes {size(mean)}: none was read"
            raise Refused(Unknown(Reason.TOO_LARGE, why), self.offers(element))
        return self.max_items

    def offers(self, element: str) -> tuple[Offer, ...]:
        """Return offers to read elements at the page's position on request, with their maximum cost."""
        memory_bytes, mean, length = self.facts.memory_bytes, self.facts.mean_element_bytes, self.facts.length
        if isinstance(memory_bytes, Unknown) or mean is None or not isinstance(length, int):
            return ()
        if memory_bytes > MAX_PURPOSE_BYTES or self.page.find is not None:
            return ()
        left = min(PAGE_ITEMS, length - (self.page.seen or 0))
        busy_ms = max(1, round(1000 * memory_bytes / (1 << 20) / COPIED_MIB_PER_S))
        most = f"at most all {size(memory_bytes)}, which blocks the server for up to {busy_ms} ms"
        one = Offer(replace(self.page, on_purpose=1), f"Read 1 {element}: {size(mean)} on average, {most}.")
        plural = element.removesuffix("y") + ("ies" if element.endswith("y") else "s")
        many = Offer(replace(self.page, on_purpose=left), f"Read {left} {plural}: {most}.")
        return (one, many) if left > 1 else (one,)

    def kept(self, found: Iterable[Reply]) -> list[PreviewCell]:
        """Return elements as cells; elements read on request only as far as they fit into KEPT_BYTES."""
        if not self.page.on_purpose:
            return [cell(reply) for reply in found]
        room, cells = KEPT_BYTES, []
        for reply in found:
            length = len(reply) if isinstance(reply, bytes) else 0
            cells.append(cell(reply) if length <= room else Unread(length, was_read=True))
            room -= length if length <= room else 0
        return cells

    @property
    def size_notes(self) -> tuple[str, ...]:
        if self.max_items >= PAGE_ITEMS or self.page.on_purpose:
            return ()
        mean = self.facts.mean_element_bytes
        if mean is None:
            return (f"pages of {self.max_items}: the size of the elements is not known",)
        return (f"pages of {self.max_items}: on average one element takes {size(mean)}",)

    def would(self, command: str, cost: str) -> str:
        """Return the reason why a command is not used for this value."""
        if isinstance(self.facts.encoding, Unknown):
            return f"{command} might {cost}, since the encoding is not known"
        return f"{command} would {cost} in this encoding"

    def require_sample(self, command: str) -> None:
        """Raise Refused if the server would walk over all elements even for random ones."""
        if not self.evidence.may_be_sampled:
            raise Refused(Unknown(Reason.TOO_LARGE, self.would(command, "walk over all elements")))

    async def begin(self, *commands: Command, reads_more: bool = False) -> list[Reply]:
        """Send the first commands of a page with TYPE behind them; raises Refused if the key was deleted or replaced.

        If reading counts as an access, the idle time is read once more before, unless it is recent; `reads_more`: more
        commands will follow.
        """
        recency: list[Command] = []
        if (commands or reads_more) and self.querier.touches:
            is_stale = wall_clock.now_s() - self.facts.asked_at_s > STALE_S
            is_kept = self.facts.idle_basis is IdleBasis.ACCESS and not isinstance(self.facts.idle_s, Unknown)
            recency = [guard.object_idletime(self.key)] if is_kept and is_stale else []
            self._note_own_read(None)  # before it is sent: the caller may be cancelled meanwhile
        *replies, type_name = await self.querier.run(*recency, *commands, guard.key_type(self.key))
        if recency:
            self._note_own_read(replies.pop(0))
        if type_name == NO_TYPE:
            raise Refused(GONE)
        if isinstance(type_name, bytes) and type_name != self.facts.type:
            shown = display(type_name, limit=64)
            raise Refused(Unknown(Reason.GONE, f"the name now belongs to another key, of type {shown}"))
        return replies

    def _note_own_read(self, idle_s: Reply) -> None:
        """Remember that the key is read, and its last use by others: from `idle_s` if that is later than its facts."""
        own_reads, facts, now_s = self.querier.own_reads, self.facts, wall_clock.now_s()
        used_s = None if isinstance(facts.idle_s, Unknown) else facts.asked_at_s - facts.idle_s
        if isinstance(idle_s, int):
            found = own_reads.idle(self.key, idle_s, now_s)
            used_s = used_s if found.is_own_read else now_s - idle_s
        counter = facts.frequency.counter if isinstance(facts.frequency, Frequency) else None
        own_reads.add(self.key, now_s, used_s=used_s, counter=counter)

    async def scan(self, command: Callable[[int], Command]) -> tuple[list[Reply], int]:
        """Read from the page's cursor until something is found; return it and the next cursor, 0 at the end.

        A reply may be empty if the table has holes; then the next call follows, up to `MAX_EMPTY_CALLS`.
        """
        (reply,) = await self.begin(command(self.start))
        cursor, found = element_page(reply)
        for _ in range(MAX_EMPTY_CALLS - 1):
            if found or not cursor:
                break
            (reply,) = await self.querier.run(command(cursor))
            cursor, found = element_page(reply)
        return found, cursor

    def page_after(self, found: int, wanted: int) -> Page | None:
        """Return the page after `found` consecutive elements, None if the value ends with them."""
        end = self.start + found
        return self.page.following(end, shown=found) if found == wanted and end != self.facts.length else None

    def preview(self, kind: PreviewKind) -> Preview:
        facts = self.facts
        return Preview(
            facts.key, facts.type, kind, self.page, facts.length, first=self.page.seen, touched=self.querier.touches
        )


NO_ANSWER: Final = Unknown(Reason.FAILED, "unexpected reply from the server")
"""The refusal of a reply of an unexpected shape."""

_MAX_DIGITS: Final = 20


def items(reply: Reply) -> list[Reply]:
    """Return the items of an array, or of a set of protocol 3; empty for anything else, including an error reply."""
    return list(reply) if isinstance(reply, (list, set, frozenset)) else []


def byte_items(reply: Reply) -> list[bytes]:
    return [item for item in items(reply) if isinstance(item, bytes)]


def pairs(reply: Reply) -> Iterator[tuple[Reply, Reply]]:
    """Yield the pairs of a map, a flat array or an array of pairs; nothing for anything else."""
    if isinstance(reply, dict):
        yield from reply.items()
        return
    flat = items(reply)
    if flat and all(isinstance(item, list) and len(item) == 2 for item in flat):
        flat = [part for item in flat for part in items(item)]
    yield from zip(flat[::2], flat[1::2], strict=False)


def mapping(reply: Reply) -> dict[bytes, Reply]:
    return {name: value for name, value in pairs(reply) if isinstance(name, bytes)}


def cell(reply: Reply) -> PreviewCell:
    return reply if isinstance(reply, (bytes, int, float)) else None


def integer(reply: Reply) -> int | None:
    """Return a number, or None; a number beyond signed 64 bits comes as text."""
    if isinstance(reply, bytes) and reply.isdigit() and len(reply) <= _MAX_DIGITS:
        return int(reply)
    return reply if isinstance(reply, int) else None


def score(reply: Reply) -> float | None:
    """Return a score: text in protocol 2, a number in protocol 3. Both are exact."""
    if isinstance(reply, (int, float)):
        return float(reply)
    try:
        return float(reply) if isinstance(reply, bytes) else None
    except ValueError:
        return None


def expect_items(reply: Reply) -> list[Reply]:
    """Return the items of an array, or of a set of protocol 3; raises Refused for anything else."""
    if isinstance(reply, (list, set, frozenset)):
        return list(reply)
    raise Refused(unknown_from(reply) if isinstance(reply, ServerError) else NO_ANSWER)


def expect_bytes(reply: Reply) -> bytes:
    """Return a byte string; raises Refused for anything else."""
    if isinstance(reply, bytes):
        return reply
    raise Refused(unknown_from(reply) if isinstance(reply, ServerError) else NO_ANSWER)


def expect_count(reply: Reply) -> int:
    """Return a count or an index; raises Refused for anything else, such as a negative number."""
    if isinstance(reply, int) and not isinstance(reply, bool) and reply >= 0:
        return reply
    raise Refused(unknown_from(reply) if isinstance(reply, ServerError) else NO_ANSWER)


def element_page(reply: Reply) -> tuple[int, list[Reply]]:
    """Return the next cursor and the elements of an HSCAN or SSCAN reply; raises Refused for anything else."""
    parts = expect_items(reply)
    cursor = integer(parts[0]) if len(parts) == 2 else None
    if cursor is None or not 0 <= cursor < 1 << 64:
        raise Refused(NO_ANSWER)
    return cursor, expect_items(parts[1])
