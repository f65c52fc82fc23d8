"""What Celery writes as broker and result backend (celery/backends/base.py, kombu/transport/redis.py)."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from celery import Celery, chord, group
from celery.contrib.testing.worker import start_worker

from tests.clients.written import keyspace, patterns_of, registered
from tests.servers import Server

TASKS = 10
WAIT_S = 30
DOCUMENTED = {
    "celery-task-meta-{uuid}": TASKS + 6 + 1 + 1,
    "celery-taskset-meta-{uuid}": 1,
    "celery-taskset-meta-{uuid}.c": 1,
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

    assert registered("celery", under_way).keys() >= {"unacked", "unacked_index", "_kombu.binding.{exchange}"}
    assert patterns_of(found) == DOCUMENTED
    entries = registered("celery", found)
    assert entries["celery-task-meta-{task}"] == TASKS + 8
    assert len(entries) == len(DOCUMENTED)
