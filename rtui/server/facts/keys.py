"""Questions about single keys, each sent to the server that has the key: facts of rows, of one key, pages of its value.

In a cluster that is the primary of the key's slot. Rows are asked for in parallel at their nodes, and a node that can't
be reached costs its own rows only. After a MOVED reply the topology is read again, and the question is asked once more,
at the new node. ASKING is never sent: keys of a slot that is being moved stay unknown, with that reason.

The existence of names takes one command a name, many in one write. EXISTS leaves idle times and access counters
unchanged from Redis 6.2 on; before, it counts as a use of the key. TYPE never does and costs the same, so it is sent to
older servers, and to those that hide their version.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from rtui.analysis.facts import NOT_ASKED, KeyFacts, LfuSettings, Reason, RowFacts, Unknown
from rtui.keyspace.types import NO_TYPE
from rtui.server import guard
from rtui.server.deployment.nodes import Deployment
from rtui.server.facts.first_answers import KnownKey
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.facts.preview.hashes import read_field
from rtui.server.facts.preview.page import Page, Preview
from rtui.server.facts.preview.places import find_place
from rtui.server.facts.preview.strings import string_windows
from rtui.server.facts.preview.value_reader import ValueReader
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, KeyCommand, build_batch, split_keys
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import Capabilities, CommandRunner, Querier, Verdict, unknown_from
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, Reply, ServerError
from rtui.server.wire.identity import ServerIdentity

if TYPE_CHECKING:
    from rtui.registry.registry import Registry
    from rtui.server.facts.references import KeyReferences

UNTOUCHING_SINCE: Final = (6, 2)
"""The first Redis whose EXISTS does not count as a use of the key."""

MOST_IN_WRITE: Final = 100
"""The most names in one write: 0.1 ms of the server's time."""

Presence = bool | Unknown
"""Whether a key exists, or why that is unknown."""


def presence_query(server: ServerIdentity) -> KeyCommand:
    """Return the command that tells whether a key exists without counting as a use of it on this server."""
    version = server.version
    is_new = server.product == "valkey" or (
        server.product == "redis" and version is not None and version >= UNTOUCHING_SINCE
    )
    return guard.exists if is_new else guard.key_type


async def are_there(querier: Querier, names: Iterable[bytes]) -> dict[bytes, Presence]:
    """Return for each name whether it is a key; a refused command is sent once. Raises ConnectionLost."""
    found: dict[bytes, Presence] = {}
    short: list[bytes] = []
    for name in dict.fromkeys(names):
        if len(name) <= MAX_BULK_KEY_BYTES:
            short.append(name)
        else:
            found[name] = Unknown(Reason.TOO_LARGE, "names over 64 KiB are not read")
    command = presence_query(querier.connection.server)
    is_tried = querier.capabilities[command.spec.name].verdict is not Verdict.UNTRIED
    first = MOST_IN_WRITE if is_tried else 1
    writes = [short[:first], *(short[at : at + MOST_IN_WRITE] for at in range(first, len(short), MOST_IN_WRITE))]
    for some in writes:
        if not querier.capabilities.allows(command.spec.name):
            refused = querier.capabilities[command.spec.name]
            found.update(dict.fromkeys(some, Unknown(Reason(refused.verdict.value), refused.reason)))
        elif some:
            replies = await _ask(querier, command, some)
            found.update(zip(some, map(_presence, replies), strict=True))
    return found


async def _ask(querier: Querier, command: KeyCommand, names: Sequence[bytes]) -> list[Reply]:
    batches = [build_batch(command, part) for part in split_keys(names, 1)]
    replies = await querier.connection.run(*batches)
    querier.record([command.spec.name] * len(replies), replies)
    return replies


def _presence(reply: Reply) -> Presence:
    if isinstance(reply, ServerError):
        return unknown_from(reply)
    if isinstance(reply, bytes):
        return reply != NO_TYPE
    return reply == 1 if reply in (0, 1) else Unknown(Reason.FAILED, "the reply is neither 0 nor 1")


T = TypeVar("T")


_HIGHEST: Final = (1 << 31) - 1
"""The largest value that servers accept for either setting."""


async def lfu_settings(connection: CommandRunner, capabilities: Capabilities) -> LfuSettings:
    """Read both settings of a server that keeps counters; defaults if that is refused. Raises ConnectionLost."""
    if connection.server.is_lfu is False:
        return LfuSettings()
    querier = Querier(connection, capabilities)
    factor, decay = await querier.run(guard.config_get("lfu-log-factor"), guard.config_get("lfu-decay-time"))
    log_factor, decay_minutes = parse_setting(factor), parse_setting(decay)
    return LfuSettings(
        LfuSettings().log_factor if log_factor is None else log_factor,
        LfuSettings().decay_minutes if decay_minutes is None else decay_minutes,
        assumed=log_factor is None or decay_minutes is None,
    )


async def database_count(connection: CommandRunner, capabilities: Capabilities) -> int | None:
    """Read the number of databases; None if that is refused. Raises ConnectionLost."""
    (reply,) = await Querier(connection, capabilities).run(guard.config_get("databases"))
    return parse_setting(reply)


def parse_setting(reply: Reply) -> int | None:
    """Return the number in a reply of name and value; None for an error or anything else."""
    match reply:
        case [bytes(), bytes(text)] if text.isdigit() and len(text) <= len(str(_HIGHEST)) and int(text) <= _HIGHEST:
            return int(text)
    return None


@dataclass(slots=True)
class AskedServer:
    """A server with facts learned from it; another connection may lead to another server."""

    connection: Connection
    capabilities: Capabilities = field(default_factory=Capabilities)
    lfu: LfuSettings = LfuSettings()  # noqa: RUF009 - a frozen value
    memory_watch: CostWatch = field(default_factory=CostWatch)
    generation: int = 0
    _lfu_read_of: object = None
    """The state in which the settings of the access counters were read; another state means reading them again."""

    def forget_if_new(self) -> bool:
        """Forget everything if the connection was made anew since the last call; return whether it was."""
        if self.generation == self.connection.generation:
            return False
        self.generation = self.connection.generation
        self.capabilities.forget()
        self.lfu, self._lfu_read_of = LfuSettings(), None
        self.memory_watch = CostWatch()
        return True

    def reader(self, facts: KeyFacts) -> ValueReader:
        return ValueReader(Querier(self.connection, self.capabilities, self.connection.own_reads), facts)

    async def read_lfu(self, rescans: int = 0) -> None:
        """Read settings that hardly ever change: once a connection, and again for a rescan or under another policy."""
        now = self.connection.generation, self.connection.server.is_lfu, rescans
        if now != self._lfu_read_of:
            self.lfu = await lfu_settings(self.connection, self.capabilities)
            self._lfu_read_of = now


class KeyQuestions:
    """Answers questions about keys, on one server or many; each method raises ConnectionLost if the key's server is
    lost."""

    def __init__(self, deployment: Deployment, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self.home = AskedServer(deployment.home)
        self._deployment, self._clock = deployment, clock
        self._nodes: dict[str, AskedServer] = {}
        self._known: KnownKey | None = None
        """The last key whose facts were asked for, with commands that were sent ahead."""
        self._looked_up: RowFacts | None = None
        """The type of the name that was looked up last."""

    def forget_if_new(self) -> None:
        """Forget facts about the home server once its connection was made anew: it may be another server."""
        if self.home.forget_if_new():
            self._looked_up = None

    @for_purpose(Purpose.LOOKUP)
    async def lookup(self, name: bytes) -> bool | None:
        """Return whether a key of exactly this name exists, by one TYPE; None if that is refused, now or earlier.

        Raises GuardError for a name that is too long to be sent, and ConnectionLost.
        """
        command = guard.key_type(name)

        async def ask(server: AskedServer) -> object:
            return (await Querier(server.connection, server.capabilities).run(command))[0]

        reply = await self._at_node(name, ask)
        if isinstance(reply, ServerError):
            return None
        if isinstance(reply, bytes):
            self._looked_up = RowFacts(name, reply, NOT_ASKED, NOT_ASKED, self._clock())
        return reply != b"none"

    async def row_facts(self, keys: Sequence[bytes], *, with_more: bool = False) -> list[RowFacts]:
        """Return the facts of listed keys, see `facts.key_facts.row_facts`."""

        async def ask(server: AskedServer, some: Sequence[bytes]) -> dict[bytes, RowFacts]:
            found = await row_facts(
                server.connection, some, server.capabilities, with_more=with_more, clock=self._clock
            )
            return {facts.key: facts for facts in found}

        def lost(key: bytes, why: Unknown) -> RowFacts:
            return RowFacts(key, why, why, why, self._clock(), why, why, why)

        rows = await self._side_by_side(keys, ask, lost)
        return [rows[key] for key in keys]

    async def key_facts(self, key: bytes, row: RowFacts | None = None) -> KeyFacts:
        """Return the facts of the key under the cursor, see `facts.key_facts`; its `row` saves round trips."""
        row = self._looked_up if row is None and self._looked_up is not None and self._looked_up.key == key else row

        async def ask(server: AskedServer) -> KeyFacts:
            if server is not self.home and server.connection.server.is_lfu:
                await server.read_lfu()
            self._known = None if row is None else KnownKey(row, self._clock())
            facts = await key_facts(
                server.connection,
                key,
                server.capabilities,
                known=self._known,
                lfu=server.lfu,
                watch=server.memory_watch,
                clock=self._clock,
            )
            if not self._deployment.is_cluster:
                return facts
            role = server.connection.server.role or ""
            return replace(facts, node=server.connection.target.label, node_role=role)

        try:
            return await self._at_node(key, ask)
        except ConnectionLost as failed:
            if not self._deployment.is_cluster:
                raise
            why = _unreached(failed)
            return KeyFacts(key, self._clock(), why, why, why, why, why, why, why)

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:

        async def ask(server: AskedServer) -> Preview:
            known, self._known = self._known, None
            return await key_preview(server.connection, facts, page, capabilities=server.capabilities, known=known)

        return await self._at_node(facts.key, ask)

    @for_purpose(Purpose.PREVIEW)
    async def find_place(self, facts: KeyFacts, text: str) -> Page | Unknown:
        """Return the page at a typed place in a value, or why there is none."""
        now_s = self._clock()

        async def ask(server: AskedServer) -> Page | Unknown:
            return await find_place(server.reader(facts), text, now_s)

        return await self._at_node(facts.key, ask)

    @for_purpose(Purpose.PREVIEW)
    async def read_field(self, facts: KeyFacts, name: bytes, most_bytes: int) -> bytes | Unknown:
        """Return the whole value of one field of a hash, or why it is not read."""

        async def ask(server: AskedServer) -> bytes | Unknown:
            return await read_field(server.reader(facts), name, most_bytes)

        return await self._at_node(facts.key, ask)

    async def string_windows(self, facts: KeyFacts) -> AsyncIterator[bytes | Unknown]:
        server = await self.server_of(facts.key)
        async for window in string_windows(server.reader(facts)):
            yield window

    async def references(self, registry: Registry, facts: KeyFacts, preview: Preview) -> KeyReferences:
        from rtui.server.facts.references import key_references  # noqa: PLC0415 - when it is wanted

        server = await self.server_of(facts.key)
        return await key_references(server.reader(facts), registry, preview, self.presence)

    async def presence(self, names: Iterable[bytes]) -> dict[bytes, Presence]:

        async def ask(server: AskedServer, some: Sequence[bytes]) -> dict[bytes, Presence]:
            return await are_there(Querier(server.connection, server.capabilities), some)

        return await self._side_by_side(list(dict.fromkeys(names)), ask, lambda _, why: why)

    async def server_of(self, key: bytes) -> AskedServer:
        """Return the server that has a key; raises ConnectionLost if there is none, or it is gone."""
        return await self._server_of(self._deployment.owner_of(key))

    async def _server_of(self, node_id: str) -> AskedServer:
        """Return the node of a cluster, or the only server; raises ConnectionLost for a node that is gone."""
        connection = await self._deployment.connection_of(node_id)
        if connection is self.home.connection:
            return self.home
        found = self._nodes.get(node_id)
        if found is None or found.connection is not connection:
            found = self._nodes[node_id] = AskedServer(connection, generation=connection.generation)
        found.forget_if_new()
        return found

    async def _look(self) -> None:
        """Read the topology again; if no node answers, the last one stays."""
        with contextlib.suppress(ConnectFailure):
            await self._deployment.look()

    async def _at_node(self, key: bytes, ask: Callable[[AskedServer], Awaitable[T]]) -> T:
        """Ask about a key at its node; after a redirect or a loss, read the topology again and ask once more."""
        try:
            server = await self.server_of(key)
            redirects = server.connection.redirects
            found = await ask(server)
            if server.connection.redirects == redirects:
                return found
        except ConnectionLost:
            if not self._deployment.is_cluster:
                raise
        await self._look()
        return await ask(await self.server_of(key))

    async def _side_by_side(
        self,
        keys: Sequence[bytes],
        ask: Callable[[AskedServer, Sequence[bytes]], Awaitable[dict[bytes, T]]],
        lost: Callable[[bytes, Unknown], T],
    ) -> dict[bytes, T]:
        """Ask about keys, each at its node; `lost` makes the results for an unreachable node."""
        if not self._deployment.is_cluster:
            return await ask(self.home, keys)
        answers: dict[bytes, T] = {}

        async def ask_node(node_id: str, some: Sequence[bytes]) -> Sequence[bytes]:
            """Put the results of a node into `answers`; return the keys to be asked elsewhere."""
            try:
                server = await self._server_of(node_id)
                redirects = server.connection.redirects
                answers.update(await ask(server, some))
            except ConnectionLost as failed:
                answers.update((key, lost(key, _unreached(failed))) for key in some)
                return some
            return some if server.connection.redirects > redirects else ()

        left = list(keys)
        for is_last in (False, True):
            by_node: dict[str, list[bytes]] = {}
            for key in left:
                try:
                    by_node.setdefault(self._deployment.owner_of(key), []).append(key)
                except ConnectionLost as failed:
                    answers[key] = lost(key, _unreached(failed))
            elsewhere = await asyncio.gather(*(ask_node(node_id, some) for node_id, some in by_node.items()))
            left = [key for some in elsewhere for key in some]
            if is_last or not left:
                break
            await self._look()
        return answers


def _unreached(failed: ConnectionLost) -> Unknown:
    return Unknown(Reason.FAILED, f"its node can't be reached: {failed.happened.rstrip('.')}")
