"""What Dramatiq writes (dramatiq/brokers/redis/dispatch.lua, dramatiq/results/backend.py)."""

from __future__ import annotations

from threading import Event

from dramatiq import Worker, actor
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from tests.clients.written import keyspace, patterns_of, registered
from tests.servers import Server

MESSAGES = 10
WAIT_S = 30
DOCUMENTED = {
    "{hash}": MESSAGES,
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

    assert patterns_of(under_way)["dramatiq:__acks__.{uuid}.default"] == 1
    assert registered("dramatiq", under_way)["dramatiq:__acks__.{worker}.{queue}"] >= 1
    assert patterns_of(found) == DOCUMENTED
    entries = registered("dramatiq", found)
    assert entries["{result}"] == MESSAGES
    assert len(entries) == len(DOCUMENTED)
