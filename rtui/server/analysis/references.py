"""Follows the references that a registry declares, over a whole keyspace: finds dangling ones and copies that disagree.

First all names are listed, by one SCAN at the chosen pace, and matched; of each pattern with references the wanted
number of keys is kept, each with the same chance (reservoir sampling), or all. Then each of these is read like its
preview, a bounded page at a time, and the keys that it points to are looked up, 100 in a write; each key at its node.
Two dozen keys are read at once, so that a slow link costs little; their server time is spread by the pace.

In a sample the share of broken keys has its 95 % interval: the keys are independent, though values of one key are not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rtui.analysis.facts import NOT_ASKED, KeyFacts, RowFacts
from rtui.analysis.report.members import CheckedReference, ReferenceChecks
from rtui.keyspace.text.display import display_text
from rtui.keyspace.text.glob import PatternError, check_pattern, escape_glob
from rtui.registry.expectations import Reference, ReferenceSource
from rtui.registry.patterns import Literal, Pattern
from rtui.registry.registry import Registry
from rtui.server import wall_clock
from rtui.server.deployment.nodes import Deployment, ScannedCluster
from rtui.server.facts.key_facts import key_preview
from rtui.server.facts.keys import KeyQuestions
from rtui.server.facts.preview.page import FIRST, Page
from rtui.server.facts.references import PAGE_NOTE, PageValues, source_text
from rtui.server.scan.node import with_slots
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wall_clock import new_random
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.supervised_tasks import failure_of

SAMPLE_KEYS: Final = 2_000
"""Keys of each pattern that are looked at, unless another number is wanted."""

MOST_KEYS: Final = 1_000_000
"""Names that are kept where all are to be looked at."""

MOST_PAGES: Final = 20
"""Pages of one value that are read in a sample; where all keys are looked at, MOST_PAGES_OF_ALL."""

MOST_PAGES_OF_ALL: Final = 10_000

GROUP_KEYS: Final = 16
"""Keys whose facts are read in one write, and whose values are read at the same time."""

AT_ONCE: Final = 2
"""Such groups at the same time."""

KEY_US: Final = 40.0
"""Server time of reading a key and its first page without its elements, roughly, in µs."""

ELEMENT_US: Final = 2.5
"""Server time of an element, roughly, in µs: it is read, and the key that it points to is looked up."""


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """How to check."""

    keys: int | None = SAMPLE_KEYS
    """Keys of each pattern that are looked at; None for all."""
    match: bytes | None = None
    """A glob for the keys to look at."""
    pace: Pace = Pace.GENTLE


@dataclass
class _Checked:
    """A pattern with references, and the keys of it that are to be looked at."""

    pattern: Pattern
    references: Sequence[tuple[Reference, CheckedReference, CheckedReference | None]]
    """Each reference with its figures, and with those of its twin."""
    keys: list[bytes] = field(default_factory=list)
    seen: int = 0


@dataclass(frozen=True, slots=True)
class _Read:
    """The referring values of one key."""

    values: Sequence[Sequence[bytes]]
    """Of each reference, each value once."""
    is_whole: bool
    """Whether that is all that points."""


_PAGED: Final = (ReferenceSource.MEMBER, ReferenceSource.FIELDS)
"""Sources whose values continue on later pages."""


def _checked(pattern: Pattern, references: Sequence[Reference]) -> _Checked:
    glob = _glob(pattern)

    def figures(reference: Reference, target: Pattern, *, is_twin: bool) -> CheckedReference:
        return CheckedReference(pattern.text, glob, source_text(reference), target.text, is_twin)

    return _Checked(
        pattern,
        [
            (
                one,
                figures(one, one.target, is_twin=False),
                None if one.twin is None else figures(one, one.twin, is_twin=True),
            )
            for one in references
        ],
    )


def _glob(pattern: Pattern) -> bytes:
    """Return a glob for the keys of a pattern, and maybe others."""
    parts = [
        escape_glob(part.text) if isinstance(part, Literal) else b"*"
        for segment in pattern.segments
        for part in (*segment.parts, Literal(segment.separator))
    ]
    try:
        return check_pattern(b"".join(parts))
    except PatternError:
        return b"*"


class ReferenceCheck:
    """One check over all servers of a deployment that is open; `run` it once."""

    def __init__(
        self,
        deployment: Deployment,
        registry: Registry,
        options: ReferenceOptions = ReferenceOptions(),
        *,
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        self.control = RunControl(options.pace)
        self.found = ReferenceChecks()
        self._deployment, self._registry, self._options = deployment, registry, options
        self._questions = KeyQuestions(deployment, clock)
        self._rng = new_random("references")
        self._checked = {
            at: _checked(entry.pattern, entry.references)
            for at, entry in enumerate(registry.entries)
            if entry.references
        }
        self._most = MOST_KEYS // max(1, len(self._checked)) if options.keys is None else options.keys
        self._free_at = 0.0
        for one in self._checked.values():
            for _, figures, twin in one.references:
                self.found.references += [figures] if twin is None else [figures, twin]

    @property
    def looked_at(self) -> int:
        return max((one.looked_at for one in self.found.references), default=0)

    @for_purpose(Purpose.REFERENCES)
    async def run(self) -> None:
        """Do all of it; a failure is in `found`, only cancellation is raised."""
        if not self._checked:
            self.found.is_complete = True
            return
        failure = await failure_of(self._run(), name="rtui references")
        if failure is not None:
            self.found.failure = display_text(failure.happened.removesuffix("."))

    async def _run(self) -> None:
        await self._deployment.home.online()
        await self._list_keys()
        queue = (
            (one, one.keys[at : at + GROUP_KEYS])
            for one in self._checked.values()
            for at in range(0, len(one.keys), GROUP_KEYS)
        )
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._look_at(queue), name="rtui references")
        if self.control.is_stopped and not self.found.failure:
            self.found.failure = self.control.stop_reason or ""

    async def _list_keys(self) -> None:
        cluster = ScannedCluster(self._deployment)
        nodes = cluster.scan_nodes(await self._deployment.scanned(), {})
        whole = cluster if self._deployment.is_cluster else None
        if whole is None:
            nodes = [await with_slots(nodes[0])]
        options, again = self._options, self._begin_again
        scan = Scan(nodes, self._add, self.control, match=options.match, on_restart=again, cluster=whole)
        await scan.run()
        self.found.is_complete = scan.state is ScanState.DONE
        if scan.state is ScanState.FAILED or scan.uncovered_reason:
            self.found.failure = str(scan.progress.reason or "the scan failed")
        for one in self._checked.values():
            for _, figures, twin in one.references:
                figures.matching = one.seen
                if twin is not None:
                    twin.matching = one.seen

    def _begin_again(self, _: ScanNote) -> None:
        self.found.keys = 0
        for one in self._checked.values():
            one.keys.clear()
            one.seen = 0

    def _add(self, keys: list[bytes]) -> None:
        """Keep keys of a page, each of a pattern with the same chance."""
        self.found.keys += len(keys)
        for key, index in zip(keys, self._registry.matcher.match_page(keys), strict=True):
            one = self._checked.get(index)
            if one is None:
                continue
            one.seen += 1
            if len(one.keys) < self._most:
                one.keys.append(key)
            elif (at := self._rng.randrange(one.seen)) < self._most:
                one.keys[at] = key

    async def _look_at(self, queue: Iterator[tuple[_Checked, Sequence[bytes]]]) -> None:
        for one, keys in queue:
            if self.control.is_held:
                await self.control.wait_while_held()
            if self.control.is_stopped:
                return
            await self._rest(await self._follow(one, keys))

    async def _rest(self, cost_us: float) -> None:
        now = time.monotonic()
        duty = self.control.pace.limits.duty
        self._free_at = max(now, self._free_at) + cost_us / 1e6 * (1 / duty - 1)
        await self.control.yield_loop(has_waited=True)
        if self._free_at > now:
            await self.control.sleep(self._free_at - now)

    async def _follow(self, one: _Checked, keys: Sequence[bytes]) -> float:
        """Look at keys of one pattern; return about how much of its time that has cost the server, in µs."""
        found = await self._read(keys, [reference for reference, _, _ in one.references])
        fields = {key: one.pattern.fields(key) or {} for key in found}
        targets = {
            (key, at): reference.names(fields[key], read.values[at])
            for key, read in found.items()
            for at, (reference, _, _) in enumerate(one.references)
        }
        there = await self._questions.presence(name for names in targets.values() for name in names)
        elements = len(there)
        for at, (reference, figures, twin) in enumerate(one.references):
            figures.matching -= len(keys) - len(found)
            for key, read in found.items():
                names = targets[key, at]
                figures.looked_at += 1
                figures.skipped += not read.is_whole
                unknown = sum(not isinstance(there[name], bool) for name in names)
                figures.add(key, len(names), [name for name in names if there[name] is False], unknown=unknown)
            if twin is not None:
                twin.matching -= len(keys) - len(found)
                values = {key: (reference.twin_name(fields[key]), read, at) for key, read in found.items()}
                elements += await self._compare(reference, twin, values)
        return KEY_US * len(keys) + ELEMENT_US * elements

    async def _compare(
        self, reference: Reference, figures: CheckedReference, values: Mapping[bytes, tuple[bytes | None, _Read, int]]
    ) -> int:
        """Compare the referring values of keys with those of their twins; return how many elements the twins have."""
        whole = {name for name, read, _ in values.values() if name is not None and read.is_whole}
        others = await self._read(sorted(whole), [reference])
        for key, (name, read, at) in values.items():
            figures.looked_at += 1
            other = None if name is None else others.get(name)
            if name not in whole or (other is not None and not other.is_whole):
                figures.skipped += 1
                continue
            theirs = set() if other is None else set(other.values[0])
            figures.add(key, len(read.values[at]), sorted(set(read.values[at]) ^ theirs))
        return sum(len(one.values[0]) for one in others.values())

    async def _read(self, keys: Sequence[bytes], references: Sequence[Reference]) -> dict[bytes, _Read]:
        """Read the referring values of keys; keys that are gone are left out."""
        rows = await self._questions.row_facts(keys, with_more=True)
        left = [row for row in rows if not row.is_gone]
        found = await asyncio.gather(*(self._read_value(row, references) for row in left))
        return dict(zip((row.key for row in left), found, strict=True))

    async def _read_value(self, row: RowFacts, references: Sequence[Reference]) -> _Read:
        server = await self._questions.server_of(row.key)
        connection, capabilities = server.connection, server.capabilities
        facts = KeyFacts(
            *(row.key, row.asked_at_s, row.type, row.encoding, row.length),
            *(row.memory_bytes, row.ttl_ms, row.idle_s, NOT_ASKED),
        )
        reader = server.reader(facts)
        most = MOST_PAGES if self._options.keys is not None else MOST_PAGES_OF_ALL
        values: list[list[bytes]] = [[] for _ in references]
        notes: dict[str, None] = {}
        page: Page | None = FIRST
        pages = 0
        while page is not None and pages < most and not self.control.is_stopped:
            preview = await key_preview(connection, facts, page, capabilities=capabilities)
            of_page = PageValues(reader, preview, notes)
            for reference, found in zip(references, values, strict=True):
                if not pages or reference.source in _PAGED:
                    found.extend(await of_page.of(reference))
            self.found.touched += preview.touched and not pages
            page = preview.next_page if any(one.source in _PAGED for one in references) else None
            pages += 1
        is_whole = page is None and not notes.keys() - {PAGE_NOTE}
        return _Read([list(dict.fromkeys(found)) for found in values], is_whole)
