"""The keys of job queues: RQ (rq/queue.py, rq/job.py), huey (huey/storage.py), Celery and Dramatiq."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from threading import Event

import pytest
from celery import Celery, chord, group
from celery.contrib.testing.worker import start_worker
from dramatiq import Worker, actor
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from huey import PriorityRedisHuey, RedisExpireHuey, RedisHuey
from rq import Queue, SimpleWorker
from rq.timeouts import TimerDeathPenalty

from tests.clients.written import keyspace, patterns_of, registered
from tests.servers import Server

JOBS = 10


class BurstWorker(SimpleWorker):
    """Works in this process, and leaves its signals and its alarm alone."""

    death_penalty_class = TimerDeathPenalty

    def _install_signal_handlers(self) -> None:
        return


def test_jobs_done_failed_and_waiting(valkey: Server) -> None:
    connection = valkey.client()
    queue = Queue("emails", connection=connection)
    for number in range(JOBS):
        queue.enqueue(math.sqrt, number)
    queue.enqueue(math.sqrt, 16, depends_on=queue.enqueue(math.sqrt, -1))
    queue.enqueue(math.sqrt, 16, depends_on=queue.enqueue(math.sqrt, 9))
    BurstWorker([queue], connection=connection).work(burst=True, logging_level="CRITICAL")
    queue.enqueue(math.sqrt, 25)
    found = keyspace(valkey)
    connection.close()

    jobs = JOBS + 5
    learnt = patterns_of(found)
    assert {pattern: count for pattern, count in learnt.items() if "<" in pattern} == {
        "rq:job:<uuid>": jobs,
        "rq:job:<uuid>:dependents": 1,
        "rq:job::<uuid>:dependencies": 2,
        "rq:results:<uuid>": jobs - 2,
        "rq:worker:<hash>": 1,
    }
    assert {"rq:queues", "rq:queue:emails", "rq:finished:emails", "rq:failed:emails", "rq:deferred:emails"} < set(
        learnt
    )

    entries = registered("rq", found)
    assert entries["rq:job:<job>"] == jobs
    assert entries["rq:<registry>:<queue>"] == 3


TASKS = 10


@pytest.mark.parametrize(
    ("kind", "learnt"),
    [
        (RedisHuey, {"huey.results.shop": 1}),
        (PriorityRedisHuey, {"huey.results.shop": 1}),
        (RedisExpireHuey, {"huey.r.shop.<uuid>": TASKS, "huey.r.shop.shop.lock.stock": 1}),
    ],
)
def test_tasks_done_waiting_and_scheduled(valkey: Server, kind: type[RedisHuey], learnt: dict[str, int]) -> None:
    huey = kind("shop", url=valkey.url, blocking=False)
    add = huey.task(name="add")(operator.add)
    for number in range(TASKS):
        add(number, number)
    while (task := huey.dequeue()) is not None:
        huey.execute(task)
    huey.lock_task("stock").acquire()
    huey.add_schedule(add.s(1, 2, delay=600))
    add(1, 2)
    found = keyspace(valkey)

    assert patterns_of(found) == {"huey.redis.shop": 1, "huey.schedule.shop": 1, **learnt}
    assert registered("huey", found).total() == len(found)
    assert patterns_of(found, (b".",)).keys() >= {"huey.redis.shop", "huey.schedule.shop"}


WAIT_S = 30
OF_CELERY = {
    "celery-task-meta-<uuid>": TASKS + 6 + 1 + 1,
    "celery-taskset-meta-<uuid>": 1,
    "celery-taskset-meta-<uuid>.c": 1,
    "_kombu.binding.celery": 1,
    "_kombu.binding_permanent.celery": 1,
    "_kombu.binding_deadlines": 1,
    "celery": 1,
    "celery\x06\x166": 1,
}


def add_numbers(first: int, second: int) -> int:
    return first + second


def sum_numbers(numbers: Sequence[int]) -> int:
    return sum(numbers)


def test_tasks_a_group_a_chord_and_what_a_worker_holds(valkey: Server) -> None:
    begun, looked = Event(), Event()

    def hold() -> bool:
        begun.set()
        return looked.wait(WAIT_S)

    app = Celery("shop", broker=valkey.url, backend=valkey.url, set_as_current=False)
    app.conf.worker_hijack_root_logger = False
    add, total = app.task(add_numbers, name="add"), app.task(sum_numbers, name="total")
    holding = app.task(hold, name="hold", acks_late=True)
    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="ERROR"):
        results = [add.delay(number, number) for number in range(TASKS)]
        several = group(add.s(number, 1) for number in range(3)).apply_async()
        several.save()
        results += [several, chord((add.s(number, 1) for number in range(3)), total.s()).apply_async()]
        held = holding.delay()
        assert begun.wait(WAIT_S)
        under_way = keyspace(valkey)
        looked.set()
        for result in (*results, held):
            result.get(timeout=WAIT_S)
    add.delay(1, 2)
    add.apply_async((1, 2), priority=6)
    found = keyspace(valkey)
    app.close()

    assert registered("celery", under_way).keys() >= {"unacked", "unacked_index", "_kombu.binding.<exchange>"}
    assert patterns_of(found) == OF_CELERY
    entries = registered("celery", found)
    assert entries["celery-task-meta-<task>"] == TASKS + 8
    assert len(entries) == len(OF_CELERY)


MESSAGES = 10
OF_DRAMATIQ = {
    "<hash>": MESSAGES,
    "dramatiq:__heartbeats__": 1,
    "dramatiq:default": 1,
    "dramatiq:default.msgs": 1,
    "dramatiq:default.DQ": 1,
    "dramatiq:default.DQ.msgs": 1,
    "dramatiq:mail.XQ": 1,
    "dramatiq:mail.XQ.msgs": 1,
}


def test_messages_held_done_dead_waiting_and_delayed(valkey: Server) -> None:
    begun, looked = Event(), Event()
    broker = RedisBroker(url=valkey.url)
    broker.add_middleware(Results(backend=RedisBackend(url=valkey.url)))

    def add(first: int, second: int) -> int:
        return first + second

    def fail() -> None:
        raise ValueError

    def hold() -> None:
        begun.set()
        looked.wait(WAIT_S)

    adding = actor(broker=broker, store_results=True)(add)
    failing = actor(broker=broker, queue_name="mail", max_retries=0, throws=ValueError)(fail)
    holding = actor(broker=broker)(hold)
    worker = Worker(broker, worker_timeout=10, worker_threads=1)
    worker.start()
    for number in range(MESSAGES):
        adding.send(number, number)
    failing.send()
    holding.send()
    assert begun.wait(WAIT_S)
    under_way = keyspace(valkey)
    looked.set()
    broker.join("default")
    broker.join("mail")
    worker.join()
    worker.stop()
    adding.send(1, 2)
    adding.send_with_options(args=(1, 2), delay=600_000)
    found = keyspace(valkey)
    broker.close()

    assert patterns_of(under_way)["dramatiq:__acks__.<uuid>.default"] == 1
    assert registered("dramatiq", under_way)["dramatiq:__acks__.<worker>.<queue>"] >= 1
    assert patterns_of(found) == OF_DRAMATIQ
    entries = registered("dramatiq", found)
    assert entries["<result>"] == MESSAGES
    assert len(entries) == len(OF_DRAMATIQ)
