"""What huey writes (huey/storage.py: RedisStorage, RedisExpireStorage, RedisPriorityQueue)."""

from __future__ import annotations

import operator

import pytest
from huey import PriorityRedisHuey, RedisExpireHuey, RedisHuey

from tests.clients.written import keyspace, patterns_of, registered
from tests.servers import Server

TASKS = 10


@pytest.mark.parametrize(
    ("kind", "learnt"),
    [
        (RedisHuey, {"huey.results.shop": 1}),
        (PriorityRedisHuey, {"huey.results.shop": 1}),
        (RedisExpireHuey, {"huey.r.shop.{uuid}": TASKS, "huey.r.shop.shop.lock.stock": 1}),
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
