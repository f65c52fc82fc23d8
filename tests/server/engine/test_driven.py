"""The engine driven over a socket without the GIL: what others are told meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from rtui.server.scan.compiled_scan import Event
from rtui.server.scan.cursor import POSITION_END, Dialect, equal_ranges
from rtui.server.scan.ranges import CursorSpan, Ranges
from tests.server.engine.model_server import Answers, CompiledRun, ModelServer, Setting
from tests.server.scan.table import Table
from tests.wire import Requests

SILENCE_US = 20_000_000
SLICE_US = 1_000


@contextmanager
def served(server: ModelServer) -> Iterator[int]:
    """The file descriptor of a connection to a server that answers in a thread."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        requests = Requests()
        while received := theirs.recv(1 << 16):
            requests.feed(received)
            theirs.sendall(b"".join(map(server.answer, requests.commands)))
            requests.commands.clear()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield ours.fileno()
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        thread.join()
        ours.close()
        theirs.close()


def state(ranges: Ranges) -> tuple[object, ...]:
    """All that the ranges of a scan say."""
    table, flags = ranges.table, (ranges.is_done, ranges.is_untouched, ranges.repeats_possible)
    return ranges.fraction(), ranges.remaining(), flags, (table.bits, table.has_shrunk, table.is_sure)


def test_the_ranges_say_in_a_slice_what_they_said_before_and_can_not_be_changed() -> None:
    rng = Random(5)
    names = [b"user:%d" % number for number in range(3_000)]
    table = Table({one: rng.randrange(POSITION_END) for one in names}, bits=10)
    server = ModelServer([], Answers(3, frozenset({"odd"})), scan=table.scan)
    ranges = Ranges(Dialect.STANDALONE, [CursorSpan(start, end) for start, end in equal_ranges(8)])
    run = CompiledRun(Setting(), server, rng, ranges)
    engine, decide, one = run.engine, run.queries.decide, ranges.under_way(1)[0]
    seen: list[tuple[object, ...]] = []

    def look(*reply: Any) -> int:
        """Called by the engine in the middle of a slice."""
        seen.append(state(ranges))
        for forbidden in (
            lambda: ranges.under_way(1),
            lambda: ranges.next_range(1),
            lambda: ranges.advance(one, 0, []),
            lambda: ranges.table.observe(1),
            lambda: ranges.table.observe_random([1]),
            lambda: one.position,
            engine.progress,
            engine.take_samples,
            lambda: engine.has_work,
            lambda: engine.is_awaiting,
            lambda: engine.drive(-1, SLICE_US, SILENCE_US, is_draining=False),
        ):
            with pytest.raises(RuntimeError):
                forbidden()
        return decide(*reply)

    run.queries.decide = look  # type: ignore[method-assign, assignment]
    slices_that_moved, event = 0, 0
    with served(server) as fd:
        while event != Event.IS_DONE:
            run.queries.prepare()
            engine.set_pace(count=10, portion=10, most_under_way=200, width=8, key_gap_us=0, idle_us=0)
            before = state(ranges)
            event = engine.drive(fd, SLICE_US, SILENCE_US, is_draining=False)
            assert event in (Event.SLICE_IS_OVER, Event.IS_DONE)
            assert all(one == before for one in seen)
            slices_that_moved += bool(seen) and state(ranges) != before
            seen.clear()
            run.take()
    assert slices_that_moved
    assert ranges.is_done
    assert ranges.remaining() == []


def test_two_engines_can_not_drive_the_same_ranges() -> None:
    server = ModelServer([[b"key:%d" % number] for number in range(100)], Answers(3, frozenset({"odd"})))
    run = CompiledRun(Setting(), server, Random(1))
    other = CompiledRun(Setting(), server, Random(1), run.ranges)
    decide, tried = run.queries.decide, []

    def drive_the_other(*reply: Any) -> int:
        with pytest.raises(RuntimeError, match="works on these ranges"):
            other.engine.drive(-1, SLICE_US, SILENCE_US, is_draining=False)
        tried.append(reply)
        return decide(*reply)

    run.queries.decide = drive_the_other  # type: ignore[method-assign, assignment]
    run.queries.prepare()
    with served(server) as fd:
        while run.engine.drive(fd, SLICE_US, SILENCE_US, is_draining=False) != Event.IS_DONE:
            run.queries.prepare()
            run.take()
    assert tried
    assert not other.engine.has_work
