"""A lane on real servers, the tasks that serve it, and what rtui has read itself."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.guard.command import CommandNames, build_batch
from rtui.server.guard.compatible import COMPATIBLE
from rtui.server.wire.errors import NOT_SENT, ConnectionLost, FailureKind, InternalError, Reply, RtuiError, ServerError
from rtui.server.wire.lane import Refusals, with_errors
from rtui.server.wire.opening import open_lane
from rtui.server.wire.own_reads import MAX_REMEMBERED_KEYS, RESOLUTION_S, IdleTime, OwnReads
from rtui.server.wire.supervised_tasks import failure_of, start_supervised
from rtui.server.wire.target import Target
from tests.conftest import known
from tests.proxy import DelayProxy
from tests.server.targets import ask, lane_to, target_of
from tests.servers import Server
from tests.wire import Listener


async def test_replies_come_in_order(server: Server) -> None:
    server.admin.mset({f"k{i}": "x" * i for i in range(50)})
    async with lane_to(target_of(server)) as lane:
        assert await lane.run(*[guard.strlen(b"k%d" % i) for i in range(50)]) == list(range(50))


async def test_runs_overlap_and_keep_their_replies_apart(server: Server) -> None:
    server.admin.mset({f"k{i}": "x" * i for i in range(500)})
    async with lane_to(target_of(server)) as lane:
        runs = [
            lane.run(build_batch(guard.strlen, [b"k%d" % i for i in range(start, start + 5)]))
            for start in range(0, 500, 5)
        ]
        assert lane.traffic.commands == 500
        assert not any(run.done() for run in runs)
        assert await asyncio.gather(*runs) == [list(range(start, start + 5)) for start in range(0, 500, 5)]


async def test_over_a_unix_socket(unix_server: Server) -> None:
    async with lane_to(target_of(unix_server)) as lane:
        assert await ask(lane, guard.ping()) == b"PONG"


async def test_over_tls_with_replies_larger_than_any_buffer(tls_server: Server) -> None:
    tls_server.admin.set("big", b"x" * 60_000)
    async with lane_to(target_of(tls_server)) as lane:
        replies = await lane.run(*[guard.getrange(b"big", 0, 59_999)] * 100)
    assert replies == [b"x" * 60_000] * 100


async def test_an_error_reply_is_a_value_among_others(server: Server) -> None:
    server.admin.rpush("list", 1)
    async with lane_to(target_of(server)) as lane:
        first, error, last = await lane.run(guard.llen(b"list"), guard.strlen(b"list"), guard.llen(b"list"))
        assert (first, last) == (1, 1)
        assert isinstance(error, ServerError)
        assert error.code == "WRONGTYPE"
        with pytest.raises(ServerError, match="WRONGTYPE"):
            await ask(lane, guard.strlen(b"list"))


async def test_nothing_but_guard_commands_can_be_sent(valkey: Server) -> None:
    class Impostor:
        name, packed, replies, redacted = "FLUSHALL", b"*1\r\n$8\r\nFLUSHALL\r\n", 1, False

    valkey.admin.set("k", "v")
    async with lane_to(target_of(valkey)) as lane:
        for wrong in (Impostor(), b"*1\r\n$8\r\nFLUSHALL\r\n", "FLUSHALL"):
            with pytest.raises(TypeError):
                lane.run(cast(Any, wrong))
            with pytest.raises(TypeError):
                lane.run(guard.ping(), cast(Any, wrong))
        assert await ask(lane, guard.exists(b"k")) == 1
        assert lane.traffic.commands == 1


async def test_a_run_of_nothing(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        assert await lane.run() == []


async def test_what_went_through_is_counted(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        await lane.run(guard.ping(), guard.ping())
        assert lane.traffic.commands == 2
        assert lane.traffic.bytes_out == 2 * len(b"*1\r\n$4\r\nPING\r\n")
        assert lane.traffic.bytes_in == 2 * len(b"+PONG\r\n")


async def test_a_cancelled_run_leaves_the_others_alone(valkey: Server) -> None:
    valkey.admin.set("k", "four")
    async with lane_to(target_of(valkey)) as lane:
        given_up = lane.run(*[guard.ping()] * 100)
        kept = lane.run(guard.strlen(b"k"))
        given_up.cancel()
        assert await kept == [4]


async def test_requests_wait_while_the_server_does_not_read(valkey: Server) -> None:
    keys = [b"%d" % i + b"x" * 4_000 for i in range(1_000)]
    async with lane_to(target_of(valkey)) as lane:
        valkey.freeze()
        runs = [lane.run(build_batch(guard.exists, keys)) for _ in range(8)]
        await asyncio.sleep(0)
        assert lane.traffic.bytes_out < 8 * 4_000_000
        assert lane.traffic.commands == 8_000
        assert not any(run.done() for run in runs)
        valkey.thaw()
        for replies in await asyncio.gather(*runs):
            assert replies == [0] * 1_000


async def test_a_silent_server_is_given_up(valkey: Server) -> None:
    async with lane_to(target_of(valkey), reply_timeout_s=0.1) as lane:
        valkey.freeze()
        with pytest.raises(ConnectionLost) as caught:
            await lane.run(guard.ping())
        assert caught.value.kind is FailureKind.TIMEOUT
        assert not lane.is_open


async def test_a_slow_answer_in_pieces_is_not_silence() -> None:
    async def dribbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        for byte in b"+PONG\r\n":
            await asyncio.sleep(0.03)
            writer.write(bytes([byte]))

    async with Listener(dribbling) as server, lane_to(server.target, reply_timeout_s=0.15) as lane:
        assert await ask(lane, guard.ping()) == b"PONG"


async def test_an_idle_lane_is_not_silent(valkey: Server) -> None:
    async with lane_to(target_of(valkey), reply_timeout_s=0.5) as lane:
        await lane.run(guard.ping())
        await asyncio.wait([lane.closed], timeout=0.7)
        assert lane.is_open
        assert await ask(lane, guard.ping()) == b"PONG"


async def test_a_cut_in_the_middle_of_a_reply(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 50_000)
    async with DelayProxy(valkey.port) as proxy, lane_to(Target(port=proxy.port)) as lane:
        await lane.run(guard.ping())
        proxy.cut_after(60_000)
        runs = [lane.run(guard.getrange(b"big", 0, 49_999)) for _ in range(3)]
        assert await runs[0] == [b"x" * 50_000]
        for run in runs[1:]:
            with pytest.raises(ConnectionLost):
                await run
        assert (await lane.closed).kind is FailureKind.CLOSED


async def test_a_dead_server_fails_everything_that_waits_and_everything_after(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        valkey.freeze()
        waiting = [lane.run(guard.ping()) for _ in range(3)]
        valkey.stop()
        for run in waiting:
            with pytest.raises(ConnectionLost):
                await run
        with pytest.raises(ConnectionLost):
            await lane.run(guard.ping())
        with pytest.raises(ConnectionLost):
            await ask(lane, guard.ping())


async def test_closing_fails_what_waits(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        valkey.freeze()
        waiting = lane.run(guard.ping())
        lane.close()
        lane.close()
        with pytest.raises(ConnectionLost, match="closed by rtui"):
            await waiting


async def test_a_failed_run_that_nobody_awaits_makes_no_noise(valkey: Server) -> None:
    noises: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noises.append(context))
    async with lane_to(target_of(valkey)) as lane:
        lane.run(guard.ping())
        lane.close()
        lane.run(guard.ping())
        await lane.closed
    gc.collect()
    assert noises == []


async def test_replies_that_nobody_asked_for() -> None:
    async def babbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"+OK\r\n")
        await reader.read()

    async with Listener(babbling) as server, lane_to(server.target) as lane:
        assert (await lane.closed).kind is FailureKind.PROTOCOL


async def test_a_second_lane_reaches_the_address_of_the_first(valkey: Server) -> None:
    async with lane_to(target_of(valkey, host="localhost")) as first:
        second = await open_lane(Target(host="no-such-host.invalid", port=valkey.port), peer=known(first.peer))
        assert await ask(second, guard.ping()) == b"PONG"
        second.close()


DENIED = ServerError("NOPERM User x has no permissions to run the 'strlen' command")
NO_KEY = ServerError("NOPERM No permissions to access a key")
STRLEN, EXISTS = guard.strlen(b"k"), guard.exists(b"k")


def test_a_command_is_refused_once_the_server_has_denied_it() -> None:
    refusals = Refusals(CommandNames())
    assert not refusals.denied
    refusals.learn((STRLEN, EXISTS), [DENIED, 1])
    assert refusals.of((EXISTS, STRLEN, STRLEN), None) == [None, DENIED, DENIED]
    refusals.forget()
    assert refusals.of((STRLEN,), None) == [None]


def test_a_denied_key_or_a_batch_denies_no_command() -> None:
    refusals = Refusals(CommandNames())
    refusals.learn((STRLEN,), [NO_KEY])
    refusals.learn((build_batch(guard.strlen, [b"a", b"b"]),), [DENIED, DENIED])
    assert not refusals.denied


def test_what_the_profile_disables_stays_refused() -> None:
    refusals = Refusals(CommandNames((("STRLEN", ""),)))
    for _ in range(2):
        (error,) = refusals.of((STRLEN,), None)
        assert "disabled" in known(error).text
        refusals.forget()


def test_what_a_compatible_server_must_not_get_is_refused_with_the_reason() -> None:
    garnet = next(one for one in COMPATIBLE if one.name == "Garnet")
    refusals = Refusals(CommandNames())
    refusals.learn((STRLEN,), [DENIED])
    denied, allowed, unsent = refusals.of((STRLEN, EXISTS, guard.dbsize()), garnet)
    assert denied is DENIED
    assert allowed is None
    assert unsent is not None
    assert unsent.code == NOT_SENT
    assert "DBSIZE is not sent to Garnet" in unsent.text


async def test_errors_stand_among_the_replies_in_order() -> None:
    sent: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
    batch = build_batch(guard.exists, [b"a", b"b"])
    found = with_errors(sent, (STRLEN, batch, STRLEN, EXISTS), (DENIED, None, DENIED, None))
    sent.set_result([1, 0, 7])
    assert await found == [DENIED, 1, 0, DENIED, 7]


async def test_of_a_lost_connection_all_is_lost() -> None:
    sent: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
    found = with_errors(sent, (STRLEN, EXISTS), (DENIED, None))
    given_up = with_errors(sent, (STRLEN, EXISTS), (DENIED, None))
    given_up.cancel()
    sent.set_exception(ConnectionLost("It is gone.", kind=FailureKind.TIMEOUT, last_error=NO_KEY))
    with pytest.raises(ConnectionLost, match="It is gone") as lost:
        await found
    assert (lost.value.kind, lost.value.last_error) == (FailureKind.TIMEOUT, NO_KEY)
    assert given_up.cancelled()


NOW_S = 1_790_000_000.0


@given(st.lists(st.tuples(st.floats(0, 10_000), st.booleans()), max_size=12), st.floats(0, 1_000), st.floats(-1, 1))
def test_the_last_use_by_others_is_told_as_far_as_it_can_be(
    later: list[tuple[float, bool]], asked_after_s: float, lag_s: float
) -> None:
    """Somebody uses the key, and then rtui and others do, in any order; rtui looks before it reads."""
    own_reads, moment_s = OwnReads(), NOW_S
    last_use_s = others_s = NOW_S
    for wait_s, is_own in later:
        moment_s += wait_s
        if is_own:
            found = own_reads.idle(b"key", max(0, int(moment_s - last_use_s + lag_s)), moment_s)
            assert found.seconds is not None
            own_reads.add(b"key", moment_s, used_s=moment_s - found.seconds)
        else:
            others_s = moment_s
        last_use_s = moment_s
    moment_s += asked_after_s
    found = own_reads.idle(b"key", max(0, int(moment_s - last_use_s + lag_s)), moment_s)
    assert found.seconds is not None
    assert found.seconds >= int(moment_s - last_use_s + lag_s)
    if last_use_s - others_s > 2 * RESOLUTION_S:
        assert found.is_own_read
    if not any(is_own for _, is_own in later):
        assert not found.is_own_read
        assert abs(moment_s - found.seconds - others_s) <= RESOLUTION_S


def test_a_single_read_gives_way_to_the_use_before() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S, used_s=NOW_S - 230)
    assert own_reads.idle(b"key", 5, NOW_S + 5) == IdleTime(235, is_own_read=True)
    assert own_reads.idle(b"key", 5, NOW_S + 50) == IdleTime(5)
    assert own_reads.idle(b"other", 5, NOW_S + 5) == IdleTime(5)


def test_what_was_seen_before_the_last_read_is_held_against_the_one_before() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S, used_s=NOW_S - 230)
    own_reads.add(b"key", NOW_S + 100)
    assert own_reads.idle(b"key", 10, NOW_S + 10) == IdleTime(240, is_own_read=True)
    assert own_reads.idle(b"key", 10, NOW_S + 110) == IdleTime(340, is_own_read=True)
    assert own_reads.idle(b"key", 40, NOW_S + 99) == IdleTime(40)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 500), st.booleans()), max_size=30))
def test_many_keys_are_told_as_each_alone(found: list[tuple[int, int, bool]]) -> None:
    own_reads = OwnReads()
    for number, seconds, is_read in found:
        if is_read:
            own_reads.add(b"key:%d" % number, NOW_S - seconds, used_s=NOW_S - seconds - number)
    keys = [b"key:%d" % number for number, _, _ in found]
    idle_s = [seconds for _, seconds, _ in found]
    alone = [own_reads.idle(key, seconds, NOW_S) for key, seconds in zip(keys, idle_s, strict=True)]
    told, count = own_reads.correct_idle_times(keys, idle_s, NOW_S)
    assert list(told) == [one.seconds for one in alone]
    assert count == sum(one.is_own_read for one in alone)


def test_a_read_that_changed_nothing_is_not_taken_for_the_last_use() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S, used_s=NOW_S - 230)
    assert own_reads.idle(b"key", 235, NOW_S + 5) == IdleTime(235)


def test_a_use_that_nobody_knows_is_not_made_up() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S)
    assert own_reads.idle(b"key", 5, NOW_S + 5) == IdleTime(None, is_own_read=True)


def test_the_counter_is_the_one_before_the_first_read() -> None:
    own_reads = OwnReads()
    for counter in (7, 8, 9):
        own_reads.add(b"key", NOW_S, counter=counter)
    assert known(own_reads.get(b"key")).counter == 7


def test_no_more_is_remembered_than_the_bound() -> None:
    own_reads = OwnReads()
    for number in range(MAX_REMEMBERED_KEYS + 10):
        own_reads.add(b"key:%d" % number, NOW_S)
    assert len(own_reads) == MAX_REMEMBERED_KEYS
    assert own_reads.get(b"key:0") is None
    assert own_reads.get(b"key:%d" % (MAX_REMEMBERED_KEYS + 9)) is not None


HELD = "s3cret"


async def _raise(error: BaseException) -> None:
    raise error


async def test_work_that_ends_well_has_no_failure() -> None:
    assert await failure_of(asyncio.sleep(0), name="work") is None


async def test_a_failure_that_is_meant_for_the_user_is_given_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    lost = ConnectionLost("The server closed the connection.")
    assert await failure_of(_raise(lost), name="work") is lost
    assert await failure_of(_raise(BaseExceptionGroup("", [lost])), name="work") is lost
    assert not caplog.records


async def test_what_nobody_foresaw_is_logged_and_says_where_without_data(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raise(KeyError(HELD)))

    failure = await failure_of(work(), name="work")
    assert isinstance(failure, InternalError)
    assert failure.happened.startswith("a fault of rtui itself (KeyError at test_lane.py:")
    assert HELD not in str(failure)
    assert isinstance(failure.__cause__, KeyError)
    assert [record.levelno for record in caplog.records if record.name == "rtui"] == [logging.ERROR]


async def test_cancelled_it_ends_the_work_first() -> None:
    began, cleaned = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    waiting = asyncio.create_task(failure_of(work(), name="work"))
    await began.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cleaned.is_set()


async def test_a_supervised_task_tells_its_failure_and_never_raises() -> None:
    told: list[RtuiError] = []
    await start_supervised(_raise(ValueError()), name="work", failed=told.append)
    assert [type(one.__cause__) for one in told] == [ValueError]
    task = start_supervised(asyncio.Event().wait(), name="work", failed=told.append)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert len(told) == 1


@pytest.mark.filterwarnings("error")
async def test_cancelled_before_it_begins_it_leaves_nothing() -> None:
    told: list[RtuiError] = []
    work = _raise(ValueError())
    task = start_supervised(work, name="work", failed=told.append)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    assert not told
