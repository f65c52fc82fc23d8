"""Does beside the engine's thread all that the application does: `python -m tests.server.engine.race SECONDS [SEED]`.

Analyses and browsing sessions of a real server, and analyses of a cluster whose slots move, run at full pace, while the
event loop reads how far they are, pauses and paces them and has their connections killed, and threads add up reports.
Meant to be run with the engine built for the thread sanitizer, which sees whatever the engine's thread and another one
touch without a lock: `make sanitize`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

from rtui.server.analysis import run as analysis_run
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan import cluster_scan, listing
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.connection import Connection
from tests.clusters import TestCluster, cluster_of
from tests.server.targets import eventually, numbered, plant, target_of
from tests.servers import Server, binaries, running

KEYS: Final = 30_000


async def disturb(control: RunControl, rng: Random, look: Callable[[], object], server: Server) -> None:
    """Do what people and screens do while something runs, for as long as it does."""
    while True:
        look()
        match rng.randrange(40):
            case 0:
                control.pause()
                look()
                control.resume()
            case 1:
                control.pace = rng.choice((Pace.NORMAL, Pace.FULL))
            case 2 if rng.random() < 0.1:
                clients = [int(one["id"]) for one in server.admin.client_list() if one["name"] == "rtui"]
                if clients:
                    server.admin.client_kill_filter(_id=str(max(clients)))
        await asyncio.sleep(0.001 * rng.random())


async def beside(work: asyncio.Task[None], disturbing: asyncio.Task[None], most_s: float) -> None:
    """Run both until the work is done; what takes longer is cancelled in the middle."""
    try:
        await asyncio.wait([work], timeout=most_s)
    finally:
        for task in (work, disturbing):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def analyse(server: Server, rng: Random) -> None:
    connection = Connection(target_of(server))
    await connection.open()
    try:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))

        def look() -> None:
            assert 0 <= (analysis.progress.fraction or 0.0) <= 1
            assert analysis.cost.commands >= 0

        work, disturbing = (
            asyncio.create_task(one) for one in (analysis.run(), disturb(analysis.control, rng, look, server))
        )
        await beside(work, disturbing, 2 + 8 * rng.random())
    finally:
        await connection.close()


async def browse(server: Server, rng: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = BrowseOptions(target_of(server), pace="full", resume=False)
        session = BrowsingSession(options, state_folder=Path(folder))
        await session.start()

        def look() -> None:
            assert 0 <= (session.status.progress.fraction or 0.0) <= 1
            assert session.store.keys <= 2 * KEYS

        complete = eventually(lambda: session.store.complete)
        work, disturbing = (asyncio.create_task(one) for one in (complete, disturb(session.control, rng, look, server)))
        try:
            await beside(work, disturbing, 1 + 4 * rng.random())
        finally:
            await session.close()


async def analyse_nodes(cluster: TestCluster, slots: Iterator[int], rng: Random) -> None:
    """Analyse while slots move from the first node to the second, each once: back at once they would confuse both."""
    servers = [one.server for one in cluster.members]
    deployment = Deployment(target_of(cluster.members[0].server))
    await deployment.open()
    try:
        analysis = AnalysisRun(deployment.home, AnalysisOptions(pace=Pace.FULL), deployment=deployment)

        async def move_slots() -> None:
            for slot in slots:
                moving = asyncio.create_task(asyncio.to_thread(cluster.move_slots, [slot], *servers))
                try:
                    await asyncio.shield(moving)
                finally:  # also when cancelled, before the next slot is moved
                    await moving
                assert 0 <= (analysis.progress.fraction or 0.0) <= 1

        await beside(asyncio.create_task(analysis.run()), asyncio.create_task(move_slots()), 4 + 4 * rng.random())
    finally:
        await deployment.close()


def main(seconds: float, seed: int) -> None:
    for name in ("FIRST_REPORT_S", "REPORT_EVERY_S"):
        setattr(analysis_run, name, 0.0)
    for module in (cluster_scan, listing):
        module.VIEW_EVERY_S = 0.1  # type: ignore[attr-defined]
    analysis_run.REPORT_SHARE = 1e9  # type: ignore[misc]
    os.environ.pop("LD_PRELOAD", None)  # not for the server
    until, rng, count = time.monotonic() + seconds, Random(seed), 0
    newest = list(binaries().values())[-1]
    with running(newest) as server, cluster_of(newest, primaries=2) as cluster:
        names = [b"%b:%d" % (name, count % 50) for count, name in enumerate(numbered(KEYS))]
        plant(server, names)
        cluster.fill(names)
        first = cluster.members[0].slots or (0, 0)
        slots = iter(rng.sample(range(first[0], first[1] + 1), first[1] - first[0]))
        while count < 3 or time.monotonic() < until:
            kinds = (
                lambda: analyse(server, rng),
                lambda: analyse_nodes(cluster, slots, rng),
                lambda: browse(server, rng),
            )
            asyncio.run(kinds[count % 3]())
            count += 1
    sys.stdout.write(f"{count} runs, from seed {seed}\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SystemRandom().getrandbits(32))
