"""What RQ writes: queues, jobs, results and registries (https://python-rq.org/docs/, rq/queue.py, rq/job.py)."""

from __future__ import annotations

import math

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
    assert {pattern: count for pattern, count in learnt.items() if "{" in pattern} == {
        "rq:job:{uuid}": jobs,
        "rq:job:{uuid}:dependents": 1,
        "rq:job::{uuid}:dependencies": 2,
        "rq:results:{uuid}": jobs - 2,
        "rq:worker:{hash}": 1,
    }
    assert {"rq:queues", "rq:queue:emails", "rq:finished:emails", "rq:failed:emails", "rq:deferred:emails"} < set(
        learnt
    )

    entries = registered("rq", found)
    assert entries["rq:job:{job}"] == jobs
    assert entries["rq:{registry}:{queue}"] == 3
