"""What happens to nodes and slots of a cluster while it is read, drawn from a seed; and one who writes meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import redis

from rtui.keyspace.slots import key_slot
from rtui.server.wire.target import AddressMap, Target, Tls, Way
from tests.clusters import Member, TestCluster, new_member, set_slots, start_cluster, stop_cluster, wait_ok
from tests.proxy import DelayProxy
from tests.servers import ADMIN, Binary, Server, ServerDiedError, stop

FAULT_S = 10.0
"""What has not come about after so long does not: another fault is in its way."""

SETTLE_S = 30.0
"""No cluster takes so long until it is whole again."""

LOOK_S = 0.02
"""How often it is looked whether something has come about."""

TROUBLE = (redis.RedisError, OSError, AssertionError, ServerDiedError)
"""What comes of asking a node to which something else has just happened; one that is stopped has no connection."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one node says of another one."""

    id: str
    is_primary: bool
    primary_id: str
    is_down: bool
    slots: frozenset[int]
    moving: dict[int, tuple[str, str]]
    """Of itself: by slot `migrating` or `importing`, and the id of the other node."""


class Writer:
    """Writes keys of its own into a cluster and deletes some of them, from a thread; each name is used once."""

    def __init__(self, cluster: TestCluster) -> None:
        self.names: set[bytes] = set()
        """All that were ever tried."""
        self._cluster = cluster
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._ended.is_set():
            with (
                contextlib.suppress(*TROUBLE, AttributeError),
                self._cluster.client() as client,
            ):  # a race of redis-py's
                while not self._ended.wait(0.002):
                    number += 1
                    name = b"volatile:%d" % number
                    self.names.add(name)
                    client.set(name, b"x")
                    if number % 3 == 0:
                        client.delete(b"volatile:%d" % (number - 2))
            self._ended.wait(0.05)


@dataclass
class FaultyCluster:
    """Three primaries with a replica each behind proxies, a node that may join them, and what is done to them all."""

    cluster: TestCluster
    spare: Member
    proxies: dict[str, DelayProxy]
    """By the ids of the nodes."""
    writer: Writer
    random: Random
    stable: frozenset[bytes]
    """Keys that are there from the first moment on, unless a failover loses them."""
    happened: list[str] = field(default_factory=list)
    """What was done, and how it went."""

    def __post_init__(self) -> None:
        self._one_down = asyncio.Lock()
        """More than one primary that is down at the same time would leave no majority."""
        self._frozen: set[str] = set()

    def target(self, **changes: Any) -> Target:
        """Any node of it, by way of its proxy, as are all others."""
        seed = self.random.choice(self.cluster.members).server
        rules = [
            f"{one.server.host}:{one.server.port}=127.0.0.1:{self.proxies[one.id].port}"
            for one in (*self.cluster.members, self.spare)
        ]
        tls = None if seed.tls is None else Tls(cacert=str(seed.tls.ca))
        return Target(port=seed.port, tls=tls, way=Way(addresses=AddressMap(tuple(rules))), **changes)

    async def happen(self, fault: str) -> None:
        """Have something happen; what fails because of another fault is given up."""
        act: Callable[[], Awaitable[str]] = getattr(self, f"_{fault}")
        try:
            said = await act()
        except TROUBLE as trouble:
            said = f"{fault}: {type(trouble).__name__} {trouble}"
        self.happened.append(said)

    # what may happen

    async def _kill(self) -> str:
        """A primary dies, its replica takes over, and sometimes it comes back as a replica."""
        async with self._one_down:
            dying = await self._dispensable()
            if dying is None:
                return "killed nothing"
            dying.server.stop()
            await self._taken_over(dying)
            if self.random.random() < 0.5:
                await self._launch(dying)
            return f"killed {dying.server.port}"

    async def _freeze(self) -> str:
        """A primary answers nobody for a while: too short to notice, or until its replica has taken over."""
        async with self._one_down:
            frozen = await self._dispensable()
            if frozen is None:
                return "froze nothing"
            self._frozen.add(frozen.id)
            frozen.server.freeze()
            try:
                if self.random.random() < 0.3:
                    await asyncio.sleep(self.random.uniform(0.05, 0.5))
                    return f"froze {frozen.server.port} for a moment"
                await self._taken_over(frozen)
            finally:
                frozen.server.thaw()
                self._frozen.discard(frozen.id)
            return f"froze {frozen.server.port}"

    async def _fail_over(self) -> str:
        """A replica takes over from a primary that lives on as its replica."""
        primary = await self._primary(with_replica=True)
        seen = (await self._view(primary)).values()
        replica_id = next((one.id for one in seen if one.primary_id == primary.id and not one.is_down), "")
        replica = self._member(replica_id)
        await self._ask(replica, "CLUSTER FAILOVER")
        await self._taken_over(primary)
        return f"failed over {primary.server.port} to {replica.server.port}"

    async def _cut(self) -> str:
        """A node can't be reached for a while, though the others reach it."""
        cut = self.random.choice(self.cluster.members)
        proxy = self.proxies[cut.id]
        proxy.cut()
        await proxy.refuse()
        await asyncio.sleep(self.random.uniform(0.0, 1.5))
        await proxy.resume()
        return f"cut {cut.server.port} off"

    async def _move(self) -> str:
        """Slots move key by key; sometimes back again."""
        source, target = await self._two_primaries()
        slots = await self._some_slots(source, self.random.randint(1, 40))
        batch = self.random.choice((1, 5, 100))
        await asyncio.to_thread(self.cluster.move_slots, slots, source.server, target.server, batch=batch)
        if self.random.random() < 0.3:
            for one in await self._live():  # who has not heard of it would have the source delete them later
                await self._until(one, lambda view: view[target.id].slots.issuperset(slots))
            await asyncio.to_thread(self.cluster.move_slots, slots, target.server, source.server, batch=batch)
        return f"moved {len(slots)} slots from {source.server.port} to {target.server.port}"

    async def _migrate(self) -> str:
        """A range of slots moves in one piece where the server can do that."""
        source, target = await self._two_primaries()
        slots = sorted((await self._view(source))[source.id].slots)
        if not slots:
            return f"{source.server.port} has no slots any more"
        first = self.random.randrange(len(slots))
        await self._hand_over(slots[first : first + self.random.randint(1, 2000)], source, target)
        return f"migrated slots from {source.server.port} to {target.server.port}"

    async def _add(self) -> str:
        """Another node joins the cluster and takes some slots over."""
        if self.spare.server.is_running:
            return "added nothing"
        source = await self._primary()
        self.spare.remember([self.spare])
        await self._launch(self.spare)
        self.cluster.members.append(self.spare)
        await self._ask(self.spare, "CLUSTER MEET", source.server.host, source.server.port)
        for one in await self._live():
            await self._until(one, lambda view: self.spare.id in view and not view[self.spare.id].is_down)
        await asyncio.to_thread(wait_ok, self.spare.server)
        slots = sorted((await self._view(source))[source.id].slots)
        await self._hand_over(slots[-self.random.randint(1, 2000) :], source, self.spare)
        return f"added {self.spare.server.port} with slots of {source.server.port}"

    async def _remove(self) -> str:
        """A primary hands over all of its slots and leaves the cluster, as does its process."""
        async with self._one_down:
            source = await self._dispensable()
            if source is None:
                return "removed nothing"
            target = await self._primary(but=source)
            await self._hand_over(sorted((await self._view(source))[source.id].slots), source, target)
            await self._until(source, lambda view: not view[source.id].slots)
            self.cluster.members.remove(source)
            for one in await self._live():
                with contextlib.suppress(redis.ResponseError):  # a replica does not forget its primary
                    await self._ask(one, "CLUSTER FORGET", source.id)
            await asyncio.to_thread(stop, source.server)
            return f"removed {source.server.port} after {target.server.port} took its slots"

    # how

    async def _hand_over(self, slots: list[int], source: Member, target: Member) -> None:
        """Move many slots, in one piece where the server can do that."""
        ranges = [number for first, last in _pairs(slots) for number in (first, last)]
        name = source.server.binary.name
        if name == "valkey-9.1":
            await self._ask(source, "CLUSTER MIGRATESLOTS", "SLOTSRANGE", *ranges, "NODE", target.id)
        elif name == "redis-8.10":
            await self._ask(target, "CLUSTER MIGRATION", "IMPORT", *ranges)
        else:
            await asyncio.to_thread(self.cluster.move_slots, slots, source.server, target.server)
        await self._until(source, lambda view: view[source.id].slots.isdisjoint(slots))

    async def _launch(self, member: Member) -> None:
        """Start a node; raises ServerDiedError, such as for a port that somebody else has taken meanwhile."""
        member.server.launch()
        try:
            await asyncio.to_thread(member.server.wait_ready)
        except ServerDiedError:
            member.server.stop()
            raise

    async def _ask(self, member: Member, command: str, *words: Any) -> Any:
        return await asyncio.to_thread(_ask, member.server, command, *words)

    async def _view(self, member: Member) -> dict[str, Seen]:
        return _read(await self._ask(member, "CLUSTER NODES"))

    async def _live(self) -> list[Member]:
        return [one for one in self.cluster.members if one.server.is_running and one.id not in self._frozen]

    async def _anyones_view(self) -> dict[str, Seen]:
        return await self._view(self.random.choice(await self._live()))

    async def _until(self, member: Member, holds: Callable[[dict[str, Seen]], bool]) -> None:
        until = time.monotonic() + FAULT_S
        while not holds(await self._view(member)):
            if time.monotonic() > until:
                raise redis.TimeoutError(f"{member.server.port} does not see it")
            await asyncio.sleep(LOOK_S)

    def _member(self, node_id: str) -> Member:
        found = next((one for one in self.cluster.members if one.id == node_id), None)
        if found is None:
            raise redis.RedisError("the node is not there any more")
        return found

    async def _two_primaries(self) -> tuple[Member, Member]:
        first = await self._primary()
        return first, await self._primary(but=first)

    async def _primary(self, *, with_replica: bool = False, but: Member | None = None) -> Member:
        """A primary that has slots, another one than `but`; with a replica that is in sync if that is wanted."""
        until = time.monotonic() + FAULT_S
        while time.monotonic() < until:
            with contextlib.suppress(*TROUBLE):
                view = await self._anyones_view()
                live = {one.id for one in await self._live() if one is not but}
                found = [one for one in view.values() if one.is_primary and one.slots and one.id in live]
                if with_replica:
                    found = [one for one in found if await self._has_replica(one.id, view)]
                if found:
                    return self._member(self.random.choice(found).id)
            await asyncio.sleep(LOOK_S)
        raise redis.TimeoutError("no such primary")

    async def _dispensable(self) -> Member | None:
        """A primary with a replica without which the others have a majority; None where there are too few."""
        primaries = [one for one in (await self._anyones_view()).values() if one.is_primary and one.slots]
        return await self._primary(with_replica=True) if len(primaries) > 2 else None

    async def _has_replica(self, node_id: str, view: dict[str, Seen]) -> bool:
        live = {one.id for one in await self._live()}
        for one in view.values():
            if one.primary_id == node_id and one.id in live and not one.is_down:
                said = await self._ask(self._member(one.id), "INFO", "replication")
                if said.get("master_link_status") == "up":
                    return True
        return False

    async def _some_slots(self, member: Member, count: int) -> list[int]:
        """Slots of a node, those with most keys first."""
        slots = sorted((await self._view(member))[member.id].slots)
        keys = self.random.sample(slots, min(len(slots), count - count // 4))
        loaded = sorted({key_slot(b"{%d}" % tag) for tag in range(TAGS)} & {*slots})
        return sorted({*keys, *loaded[: count // 4]})

    async def _taken_over(self, before: Member) -> None:
        """Wait until all that live say that a node serves nothing any more."""
        for one in await self._live():
            if one is not before:
                await self._until(one, lambda view: not view[before.id].slots)

    async def settle(self, *, after: Awaitable[object]) -> None:
        """Then stop writing, finish what was broken off, and wait until all nodes agree and every slot is served.

        For SETTLE_S at most: a slot that moves to a node in the middle of its failover may be left to nobody.
        """
        await after
        await asyncio.to_thread(self.writer.stop)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                while not await self._is_settled():  # noqa: ASYNC110 - it is servers that are waited for
                    await asyncio.sleep(LOOK_S)

    async def _is_settled(self) -> bool:
        with contextlib.suppress(*TROUBLE):
            views = [await self._view(one) for one in await self._live()]
            return not await self._finish_moves() and _agree(views)
        return False

    async def _finish_moves(self) -> bool:
        """Finish the moves of slots that were broken off; return whether there were any."""
        found = False
        for one in await self._live():
            own = (await self._view(one))[one.id]
            moving = own.moving if own.is_primary else {}
            for slot, (state, other_id) in moving.items():
                found = True
                view = await self._view(one)
                owner = next((each.id for each in view.values() if slot in each.slots), None)
                live = {each.id: each for each in await self._live()}
                target = one if state == "importing" else live.get(other_id)
                source = live.get(owner or "")
                if source is None or target is None or source is target:
                    await asyncio.to_thread(set_slots, one.server, [slot], "STABLE")
                else:
                    await asyncio.to_thread(self.cluster.move_slots, [slot], source.server, target.server)
        return found

    async def held(self) -> set[bytes]:
        """All keys that are there, each on the node that serves its slot."""
        found: set[bytes] = set()
        for one in await self._live():
            slots = (await self._view(one))[one.id].slots
            keys: list[bytes] = await self._ask(one, "KEYS", "*")
            found.update(key for key in keys if key_slot(key) in slots)
        return found


TAGS = 8
"""Hash tags that load a slot each."""


def stable_keys(count: int) -> list[bytes]:
    """So many names; a fifth of them in a few slots."""
    return [
        b"stable:{%d}:%d" % (number // 5 % TAGS, number) if number % 5 == 0 else b"stable:%d" % number
        for number in range(count)
    ]


def _ask(server: Server, command: str, *words: Any) -> Any:
    with server.client(username=ADMIN, password=server.password, socket_timeout=5) as client:
        return client.execute_command(command, *words)


def _read(nodes: Any) -> dict[str, Seen]:
    found = {}
    for one in nodes.values():
        slots = {slot for pair in one["slots"] for slot in range(int(pair[0]), int(pair[-1]) + 1)}
        moving = {int(each["slot"]): (each["state"], each["node_id"]) for each in one["migrations"]}
        flags = one["flags"].split(",")
        is_down = not one["connected"] or bool({"fail", "fail?", "handshake", "noaddr"} & {*flags})
        found[one["node_id"]] = Seen(
            one["node_id"], "master" in flags, one["master_id"], is_down, frozenset(slots), moving
        )
    return found


def _agree(views: list[dict[str, Seen]]) -> bool:
    """Whether all nodes say the same of every slot, and someone serves it."""
    owners = [{slot: one.id for one in view.values() for slot in one.slots} for view in views]
    return all(one == owners[0] and len(one) == 16_384 for one in owners)


def _pairs(slots: list[int]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for slot in slots:
        if pairs and pairs[-1][1] == slot - 1:
            pairs[-1] = pairs[-1][0], slot
        else:
            pairs.append((slot, slot))
    return pairs


@asynccontextmanager
async def faulty_cluster(
    binary: Binary, random: Random, stable: Sequence[bytes], *, tls: bool = False
) -> AsyncIterator[FaultyCluster]:
    """A cluster with these keys, with a writer and with proxies whose delay is drawn; stopped at the end.

    With `tls` its nodes talk to each other, and to clients, in TLS only.
    """
    cluster = start_cluster(binary, replicas=1, tls=tls)
    spare = new_member(binary, tls=tls)
    async with AsyncExitStack() as stack:
        stack.callback(stop, spare.server)
        stack.callback(stop_cluster, cluster)
        cluster.fill(stable)
        for primary in cluster.primaries:
            primary.admin.wait(1, 5_000)
        delay_s = random.choice((0.0005, 0.002, 0.005))
        proxies = {
            one.id: await stack.enter_async_context(DelayProxy(one.server.port, delay_s, records=False))
            for one in (*cluster.members, spare)
        }
        writer = Writer(cluster)
        writer.start()
        stack.callback(writer.stop)
        yield FaultyCluster(cluster, spare, proxies, writer, random, frozenset(stable))


FAULTS = ("kill", "freeze", "fail_over", "cut", "move", "migrate", "add", "remove")
