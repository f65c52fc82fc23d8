"""What the engine of a scan makes of replies that are no pages of keys, and of bytes that are no replies."""

from __future__ import annotations

import gc
import subprocess
import sys
from random import Random
from typing import Any

import pytest

from rtui.server import guard
from rtui.server.engine._scan import ScanEngine
from rtui.server.guard.command import key_template, scan_template
from rtui.server.guard.evidence import TypeEvidence
from rtui.server.scan.compiled_scan import Event
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.ranges import Ranges
from rtui.server.wire.errors import ServerBusyError
from tests.server.engine.fuzz import fuzz
from tests.server.engine.model_server import Answers, CompiledRun, ModelServer, Setting, ask, findings_of, page
from tests.wire import Requests

NO_PAGES = (
    *(
        b":1\r\n", b"+OK\r\n", b"$-1\r\n", b"*-1\r\n", b"_\r\n", b"*0\r\n", b"-ERR no\r\n", b"%0\r\n",
        b"-LOADING no\r\n",
    ),
    *(b"*1\r\n$1\r\n0\r\n", b"*3\r\n$1\r\n0\r\n*0\r\n*0\r\n", b"*2\r\n*0\r\n$1\r\n0\r\n", b"*2\r\n:0\r\n*0\r\n"),
    *(page(cursor, [b"a"]) for cursor in (b"", b"x", b"-1", b"+1", b"18446744073709551616", b"9" * 20, b"0" * 21)),
    *(
        b"*2\r\n$1\r\n0\r\n$-1\r\n",
        b"*2\r\n$1\r\n0\r\n*-1\r\n",
        b"*2\r\n$-1\r\n*0\r\n",
        b"*2\r\n$1\r\n0\r\n~1\r\n+a\r\n",
    ),
    *(b"*2\r\n$1\r\n0\r\n*1\r\n:1\r\n", b"*2\r\n$1\r\n0\r\n*1\r\n$-1\r\n", b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n*0\r\n"),
)  # fmt: skip

NOT_THE_PROTOCOL = (
    *(b"\n", b"\r\n", b"x\r\n", b"0\n", b":1\n", b"+\n", b":\r\n", b":x\r\n", b":1x\r\n", b":--1\r\n", b":+1\r\n"),
    *(b":9223372036854775808\r\n", b":-9223372036854775809\r\n", b":" + b"0" * 22 + b"\r\n"),
    *(b"$\r\n", b"$-2\r\n", b"$536870913\r\n", b"$1\r\nabc", b"$3\r\nabcd\r", b"$0\r\nxx"),
    *(b"*-2\r\n", b"*1073741825\r\n", b"*\r\n", b"*1\r\n\n", b"*1\r\n$5\r\nabcdefg", b"|1\r\n", b"$?\r\n", b"*?\r\n"),
    *(b"*1073741824\r\n" * 3, b"+" + b"x" * (1 << 20) + b"\r\n", b"x" * (1 << 20)),
)


def new_engine(*, depth: int = 1) -> ScanEngine:
    """An engine that only lists keys."""
    engine = ScanEngine(Ranges(Dialect.OPAQUE), scan_template())
    engine.set_pace(count=10, portion=10, most_under_way=10 * depth, width=8, key_gap_us=0, idle_us=0)
    return engine


def awaits(engine: ScanEngine) -> bool:
    return engine.is_awaiting


@pytest.mark.parametrize("piece", [1, 10**6])
@pytest.mark.parametrize("reply", NO_PAGES, ids=repr)
def test_what_is_no_page_is_kept_for_python_to_read(reply: bytes, piece: int) -> None:
    engine = new_engine()
    assert engine.next_write()
    event = 0
    for at in range(0, len(reply), piece):
        assert not event
        event = engine.feed(reply[at : at + piece])
    assert event == Event.NO_PAGE
    assert engine.feed(b"*2\r\n$1\r\n0") == Event.NO_PAGE  # which arrives before anyone has looked
    assert engine.feed(b"\r\n*0\r\n" + b"+x\r\n" * 100_000) == Event.NO_PAGE
    assert engine.odd_reply() == reply
    assert engine.next_write() == b""
    engine.resume()
    assert engine.feed(b"") == Event.UNASKED


@pytest.mark.parametrize("piece", [1, 10**7])
@pytest.mark.parametrize("start", [b"", b">1\r\n+push\r\n"], ids=repr)
@pytest.mark.parametrize("reply", NOT_THE_PROTOCOL, ids=lambda reply: repr(reply[:30]))
def test_what_is_not_the_protocol_ends_at_once(reply: bytes, start: bytes, piece: int) -> None:
    engine = new_engine()
    assert engine.next_write()
    received = start + reply
    size = piece if len(received) < 1_000 else 10_000
    events = [engine.feed(received[at : at + size]) for at in range(0, len(received), size)]
    assert events[-1] == Event.NO_PROTOCOL
    engine.drop()
    assert engine.event == 0
    assert not awaits(engine)
    assert engine.next_write()
    assert engine.feed(page(b"0", [b"a"])) == 0
    assert not engine.has_work


def test_a_reply_may_have_so_many_bytes_and_no_more() -> None:
    engine = new_engine()
    engine.most_reply_bytes = 100_000
    engine.next_write()
    assert engine.feed(page(b"1", [b"x" * 99_950])) == 0
    engine.next_write()
    assert engine.feed(b"*2\r\n$1\r\n0\r\n*1073741824\r\n") == 0
    events = [engine.feed(b"$9900\r\n%b\r\n" % (b"x" * 9_900)) for _ in range(11)]
    assert events == [0] * 10 + [Event.TOO_LONG]


def test_a_reply_that_nobody_asked_for() -> None:
    engine = new_engine()
    assert engine.feed(b">1\r\n+push\r\n") == 0
    assert not awaits(engine)
    assert engine.feed(b">1\r\n+pu") == 0
    assert awaits(engine)  # the rest, before anyone else may read from the connection
    assert engine.feed(b"sh\r\n-ERR closing\r\n") == Event.UNASKED
    assert engine.odd_reply() == b"-ERR closing\r\n"
    engine.drop()
    assert engine.odd_reply() == b""


def test_replies_that_have_arrived_are_passed_over_when_it_goes_on() -> None:
    server = ModelServer([[b"a", b"b"], [b"c"], [b"d"]], Answers(1))
    run = CompiledRun(Setting(), server, Random(1))
    engine = run.engine
    run.queries.prepare()
    engine.set_pace(count=2, portion=2, most_under_way=2 * 4, width=8, key_gap_us=0, idle_us=0)
    assert engine.feed(ask(server, engine.next_write())[0]) == 0
    replies = ask(server, engine.next_write())[0]
    with pytest.raises(ServerBusyError):
        engine.feed(b"-LOADING\r\n" + replies.partition(b"\r\n")[2])
    assert awaits(engine)
    engine.resume()
    assert engine.feed(b"") == 0
    assert not awaits(engine)
    assert findings_of(run.run()).keys == 4


def test_cursors_that_do_not_move_are_noticed() -> None:
    engine = new_engine()
    engine.next_write()
    assert engine.feed(page(b"7", [])) == 0
    for _ in range(999):
        engine.next_write()
        assert engine.feed(page(b"7", [])) == 0
    engine.next_write()
    assert engine.feed(page(b"7", [])) == Event.IS_STUCK


def test_cursors_that_go_back_are_noticed() -> None:
    engine = ScanEngine(Ranges(Dialect.STANDALONE), scan_template())
    engine.set_pace(count=10, portion=10, most_under_way=10 * 1, width=8, key_gap_us=0, idle_us=0)
    for cursor, event in ((b"1", 0), (b"2", Event.NOT_IN_ORDER)):
        engine.next_write()
        assert engine.feed(page(cursor, [])) == event


@pytest.mark.slow
def test_more_types_than_any_server_has() -> None:
    run = CompiledRun(Setting(count=1000), server := ModelServer([], Answers(1)), Random(1))
    names = [b"%d" % number for number in range(5_000)]
    server.pages = [names[at : at + 500] for at in range(0, 5_000, 500)]
    server.answer = (  # type: ignore[method-assign]
        lambda argv: b"+type-%b\r\n" % argv[-1] if argv[0] == b"TYPE" else ModelServer.answer(server, argv)
    )
    assert findings_of(run.run()).keys == 5_000
    assert 4_000 < len(run.engine.types()) <= 4_096


def test_what_python_raises_comes_out_and_nothing_is_lost() -> None:
    run = CompiledRun(Setting(), ModelServer([[b"a", b"b"]], Answers(1)), Random(1))
    run.queries.prepare()
    engine = run.engine

    class OddError(Exception):
        pass

    def decide(*_: Any) -> int:
        with pytest.raises(RuntimeError):
            engine.feed(b"")
        with pytest.raises(RuntimeError):
            engine.drop()
        raise OddError

    run.queries.decide = decide  # type: ignore[method-assign, assignment]
    engine.set_pace(count=2, portion=2, most_under_way=2 * 4, width=8, key_gap_us=0, idle_us=0)
    assert engine.feed(ask(run.server, engine.next_write())[0]) == 0
    assert engine.next_write()
    with pytest.raises(OddError):
        engine.feed(b"*0\r\n+more\r\n")
    assert engine.feed(b":-1\r\n") != 0
    engine.drop()
    del run.queries.decide
    assert findings_of(run.run()).keys == 2


def test_templates_are_those_of_the_guard_and_complete() -> None:
    run = CompiledRun(Setting(), ModelServer([[b"a"]], Answers(1)), Random(1))
    with pytest.raises(TypeError):
        ScanEngine(Ranges(Dialect.OPAQUE), b"FLUSHALL")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        run.engine.set_template(0, b"DEL")  # type: ignore[arg-type]
    for asked, length in (((1 << 4, 0), None), ((0, 1 << 5), None), ((1 << 2, 0), None), ((1 << 7, 0), None)):
        with pytest.raises(ValueError, match=r"no such columns|no command"):
            run.engine.define_type(0, is_exported=False, is_removed_when_empty=False, asked=asked, length=length)
    run.engine.set_template(4, key_template(guard.memory_usage, TypeEvidence(b"string", "redis", (7, 0))))
    with pytest.raises(ValueError, match="no such column"):
        run.engine.set_template(5, key_template(guard.strlen))


def test_an_engine_with_writes_under_way_may_be_collected() -> None:
    for _ in range(20):
        run = CompiledRun(Setting(), ModelServer([[b"a"] * 50, [b"b"]], Answers(1)), Random(1))
        run.queries.prepare()
        run.engine.set_pace(count=10, portion=10, most_under_way=10 * 5, width=8, key_gap_us=0, idle_us=0)
        run.engine.feed(ask(run.server, run.engine.next_write())[0])
        requests = Requests()
        while write := run.engine.next_write():
            requests.feed(write)
        assert requests.commands
        del run
        gc.collect()


@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(40))
def test_mutated_streams(seed: int) -> None:
    fuzz(seed)


HUNGRY = """
import resource
from random import Random
from tests.server.engine.model_server import Answers, CompiledRun, ModelServer, Setting

run = CompiledRun(Setting(count=100), ModelServer([], Answers(1)), Random(1))
rng = Random(2)
run.server.scan = lambda cursor, count: (cursor + 1, [rng.randbytes(2_000) for _ in range(100)])
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, ((pages * resource.getpagesize()) + (%d << 20),) * 2)
try:
    run.engine.set_pace(count=100, portion=100, most_under_way=100 * 8, width=8, key_gap_us=0, idle_us=0)
    run.queries.prepare()
    while True:
        run.engine.next_write()
        run.engine.feed(b"*2\\r\\n$1\\r\\n1\\r\\n*1\\r\\n$60000\\r\\n" + b"x" * 60_000 + b"\\r\\n")
except MemoryError:
    pass
run.engine.drop()
for _ in range(3):
    try:
        run.engine.next_write()
        run.engine.feed(b"")
    except MemoryError:
        continue
    break
print("refused" if run.engine.event else "goes on")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is read from /proc")
@pytest.mark.parametrize("megabytes", [8, 24])
def test_too_little_memory_is_an_error_and_no_crash(megabytes: int) -> None:
    done = subprocess.run([sys.executable, "-c", HUNGRY % megabytes], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("refused\n", "goes on\n")
