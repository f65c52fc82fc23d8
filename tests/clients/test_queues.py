"""The keys that job queues (RQ, huey, Celery, Dramatiq) and web caches write, and the patterns learnt of them."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import md5
from threading import Event

import pytest
from celery import Celery, chord, group
from celery.contrib.testing.worker import start_worker
from dramatiq import Worker, actor
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from flask import Flask
from flask_caching import Cache
from huey import PriorityRedisHuey, RedisExpireHuey, RedisHuey
from rq import Queue, SimpleWorker
from rq.timeouts import TimerDeathPenalty

from rtui.analysis.estimates import as_estimate
from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.expectations import FoundKey, breaches_of
from rtui.registry.load import load_registry
from rtui.registry.registry import SHIPPED
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.servers import Server
from tests.table.naive import add_batch

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
    "celery-task-meta-<uuid>": TASKS + 6 + 1 + 1, "celery-taskset-meta-<uuid>": 1, "celery-taskset-meta-<uuid>.c": 1,
    "_kombu.binding.celery": 1, "_kombu.binding_permanent.celery": 1, "_kombu.binding_deadlines": 1, "celery": 1,
    "celery\x06\x166": 1,
}  # fmt: skip


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
    "<hash>": MESSAGES, "dramatiq:__heartbeats__": 1, "dramatiq:default": 1, "dramatiq:default.msgs": 1,
    "dramatiq:default.DQ": 1, "dramatiq:default.DQ.msgs": 1, "dramatiq:mail.XQ": 1, "dramatiq:mail.XQ.msgs": 1,
}  # fmt: skip


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


PAGES = 20
WEEK_MS = 604_800_000


def test_views_and_functions_of_flask(valkey: Server) -> None:
    app = Flask("shop")
    cache = Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": valkey.url})

    def product(number: int) -> str:
        return str(number)

    def search() -> str:
        return "found"

    def price(number: int) -> int:
        return number

    app.add_url_rule("/product/<int:number>", view_func=cache.cached(timeout=60)(product))
    app.add_url_rule("/search", view_func=cache.cached(query_string=True)(search))
    priced = cache.memoize(50)(price)
    client = app.test_client()
    for number in range(PAGES):
        assert client.get(f"/product/{number}").text == str(number)
        client.get(f"/search?q={number}")
    with app.app_context():
        for number in range(PAGES):
            priced(number)
        cache.set("settings", 1)
    found = keyspace(valkey)

    assert patterns_of(found, (b"/",))["flask_cache_view//product/<id>"] == PAGES
    assert patterns_of(found)["flask_cache_view//product/<n>"] == PAGES
    assert dict(registered("flask-caching", found)) == {
        "flask_cache_view/<**>": 2 * PAGES,
        "flask_cache_<function>_memver": 1,
        "flask_cache_<**>": PAGES + 1,
    }


def test_names_of_django_begin_with_the_separator() -> None:
    digests = [md5(b"%d" % number, usedforsecurity=False).hexdigest() for number in range(PAGES)]
    names = [
        *(f":1:product:{number}" for number in range(PAGES)),
        *(f":1:django.contrib.sessions.cache{digest}" for digest in digests),
        *(f":1:template.cache.sidebar.{digest}" for digest in digests),
        *(f":1:views.decorators.cache.cache_page..GET.{digest}.{digest}.en-us.UTC" for digest in digests),
    ]
    found = {name.encode(): FoundKey(b"string", WEEK_MS) for name in names}
    assert (
        patterns_of(found).items()
        >= {
            ":1:product:<id>": PAGES,
            ":1:django.contrib.sessions.cache<hash>": PAGES,
            ":1:template.cache.sidebar.<hash>": PAGES,
            ":1:views.decorators.cache.cache_page..GET.<hash>.<hash>.en-us.UTC": PAGES,
        }.items()
    )
    assert set(registered("django", found).values()) == {PAGES}


Keyspace = dict[bytes, FoundKey]
"""Keys with their type and TTL."""


def keyspace(server: Server) -> Keyspace:
    admin = server.admin
    return {key: FoundKey(admin.execute_command("TYPE", key), admin.pttl(key)) for key in admin.scan_iter(count=1_000)}


def patterns_of(keys: Iterable[bytes], separators: Sequence[bytes] = (b":",)) -> dict[str, int]:
    """The patterns that an analysis learns of keys, with how many keys each has."""
    names = sorted(keys)
    scope = Scope(separators=tuple(separators))
    found = Aggregates(Separators(separators), scope=scope, started_at_s=0.0)
    add_batch(found, InspectedBatch(b"string", names, [-1] * len(names), [60] * len(names)), 1.0)
    patterns: dict[str, int] = {}
    for path in finish(found.summary()).root.walk():
        node = path[-1]
        own = as_estimate(node.stats.keys).value - sum(as_estimate(one.stats.keys).value for one in node.children)
        if own > 0:
            patterns[b"".join(one.name + one.separator for one in path).decode()] = int(own)
    return patterns


def registered(name: str, keys: Keyspace) -> Counter[str]:
    """How many keys each pattern of a registry that ships has; every key has one, and breaks nothing of it."""
    registry = load_registry(SHIPPED / f"{name}.toml")
    counts: Counter[str] = Counter()
    for key, found in keys.items():
        entry = registry.entry_of(key)
        assert entry is not None, key
        assert breaches_of(entry.expectations.broken(found)) == (), (key, found)
        counts[entry.pattern.text] += 1
    return counts
