"""A proxy before a server that makes the link long, cuts it, holds replies back and writes down what went through."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tests.wire import CHUNK_BYTES, Listener, Requests


@dataclass
class RoundTrips:
    """How often one client has sent something after it was answered, and so had waited for the answer."""

    count: int = 0
    _is_answered: bool = True

    def asked(self) -> None:
        """Count a request, unless it was sent together with the one before."""
        self.count += self._is_answered
        self._is_answered = False

    def answered(self) -> None:
        """Have the next request count."""
        self._is_answered = True


class _Pipe:
    """One direction of one connection: chunks leave `delay_s` after they came in, in order."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float, trips: RoundTrips
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._delay_s = delay_s
        self._trips = trips
        self._chunks: deque[tuple[float, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._passed = 0

    async def read(self, seen: Requests | None) -> None:
        """Take chunks in until the sender closes; an empty chunk marks the end."""
        loop = asyncio.get_running_loop()
        data = b"start"
        while data:
            data = await self._reader.read(CHUNK_BYTES)
            if seen is not None:
                seen.feed(data)
                if data:
                    self._trips.asked()
            self._chunks.append((loop.time() + self._delay_s, data))
            self._arrived.set()

    async def write(self, proxy: DelayProxy, *, replies: bool) -> None:
        """Pass each chunk on when it is due; replies wait while the proxy holds them."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._chunks:
                self._arrived.clear()
                await self._arrived.wait()
            due, data = self._chunks.popleft()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if replies and data:
                await proxy.pass_reply()
            if not data:
                if self._writer.can_write_eof():
                    self._writer.write_eof()
                return
            if replies and not proxy.may_pass(self._passed, len(data)):
                raise ConnectionResetError
            self._passed += len(data)
            if replies:
                self._trips.answered()
            cut = proxy.allowance(len(data)) if replies else None
            self._writer.write(data if cut is None else data[:cut])
            await self._writer.drain()
            if cut is not None:
                proxy.act()
                if not proxy.goes_on:
                    return


class DelayProxy(Listener):
    """Passes everything on to a server.

    `delay_s` is added in each direction, so a round trip takes twice that. `requests` holds every command that
    clients sent, by connection, in the order in which the connections came, unless nobody `records` it.
    """

    def __init__(
        self, upstream_port: int, delay_s: float = 0.0, *, host: str = "127.0.0.1", records: bool = True
    ) -> None:
        super().__init__()
        self.requests: list[Requests] = []
        self.round_trips: list[RoundTrips] = []
        """Of each connection, in the order in which they came, where requests are recorded."""
        self.held = 0
        self._upstream = (host, upstream_port)
        self._delay_s = delay_s
        self._records = records
        self.most_bytes: int | None = None
        """Each connection is cut before it would have passed on more bytes of replies than this; None for no bound."""
        self._left_bytes: int | None = None
        self.act: Callable[[], object] = self.cut_softly
        """Done when the bytes of `cut_after` have been passed on."""
        self.goes_on = False
        """Whether the connection is open after that."""
        self._flow = asyncio.Event()
        self._flow.set()

    @property
    def connections(self) -> int:
        return len(self.tasks)

    def commands(self) -> list[list[bytes]]:
        """Every command of every connection so far."""
        return [argv for requests in self.requests for argv in requests.commands]

    def cut(self) -> None:
        """Drop all connections now, also where replies are held back."""
        super().cut()
        self._flow.set()

    def lead_to(self, port: int) -> None:
        """Pass on to another server what connects from now on."""
        self._upstream = (self._upstream[0], port)

    def cut_softly(self) -> None:
        """Drop all connections after what has been passed on has left."""
        for writer in self.writers:
            writer.close()
        for task in self.tasks:
            task.cancel()

    def cut_for_good(self) -> None:
        """Do what `cut_softly` does, and refuse new connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut_softly()

    def cut_after(self, reply_bytes: int) -> None:
        """Drop all connections when this many more bytes of replies have been passed on: in the middle of one."""
        self._left_bytes = reply_bytes

    def allowance(self, size_bytes: int) -> int | None:
        """How much of a chunk may pass before the cut that `cut_after` ordered; None is all of it."""
        if self._left_bytes is None:
            return None
        self._left_bytes -= size_bytes
        if self._left_bytes > 0:
            return None
        left, self._left_bytes = self._left_bytes + size_bytes, None
        return left

    def may_pass(self, passed_bytes: int, size_bytes: int) -> bool:
        """Whether a connection that has passed on so much may pass on so much more."""
        return self.most_bytes is None or passed_bytes + size_bytes <= self.most_bytes

    def hold_replies(self) -> None:
        """Let requests through and keep every reply back."""
        self._flow.clear()

    def release_replies(self) -> None:
        """Pass on what was held back, and everything after it."""
        self._flow.set()

    async def pass_reply(self) -> None:
        if not self._flow.is_set():
            self.held += 1
            await self._tell()
            await self._flow.wait()
            self.held -= 1

    async def wait_held(self, count: int) -> None:
        """Wait until the replies of this many connections are being held back."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.held >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self._upstream, limit=CHUNK_BYTES)
        self.writers.add(up_writer)
        trips = RoundTrips()
        self.round_trips.append(trips)
        try:
            ahead = _Pipe(reader, up_writer, self._delay_s, trips)
            await self._pass_on(ahead, _Pipe(up_reader, writer, self._delay_s, trips))
        finally:
            up_writer.close()
            self.writers.discard(up_writer)

    async def _pass_on(self, ahead: _Pipe, back: _Pipe) -> None:
        """Carry one connection until both sides have closed it or one of them is cut."""
        seen = Requests() if self._records else None
        if seen is not None:
            self.requests.append(seen)
        works = (ahead.read(seen), back.read(None), ahead.write(self, replies=False), back.write(self, replies=True))
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()


async def _serve_for_ever(upstream_port: int, delay_s: float) -> None:
    async with DelayProxy(upstream_port, delay_s, records=False) as proxy:
        sys.stdout.write(f"{proxy.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    # A process of its own for benchmarks: python -m tests.proxy UPSTREAM_PORT DELAY_MS; prints its port.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_for_ever(int(sys.argv[1]), float(sys.argv[2]) / 1000))
