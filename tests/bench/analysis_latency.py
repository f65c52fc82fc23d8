"""What another client notices of an analysis, as the bench of scans measures it, and of redis-cli's analysers.

`python -m tests.bench.run analysis_latency`. The environment may set RTUI_BENCH_SERVER (valkey-9.1),
RTUI_BENCH_ROUNDS (11) and RTUI_BENCH_WINDOW_S (2).
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.latency import BASELINE, ROUNDS, SERVER, WINDOW_S, load_rows, measure
from tests.bench.loads import again_and_again, own, redis_clis
from tests.bench.mixed import seeded
from tests.bench.row import Row


def conditions(port: int) -> dict[str, list[str] | None]:
    """Every load beside the baseline, as a command line."""
    cli = (redis_clis() or [["redis-cli"]])[0]
    found: dict[str, list[str] | None] = {
        BASELINE: None,
        "rtui analysis, gentle (default)": own("analysis", port, "gentle"),
        "rtui analysis, normal": own("analysis", port, "normal"),
        "rtui analysis, full": own("analysis", port, "full"),
    }
    for analyser in ("--bigkeys", "--memkeys"):
        found[f"redis-cli {analyser}"] = again_and_again([*cli, "-p", str(port), analyser])
    return found


def rows() -> Iterator[Row]:
    """One row a load."""
    with seeded(SERVER) as server:
        results = measure(server, conditions(server.port), ROUNDS, WINDOW_S)
    yield from load_rows(results)
