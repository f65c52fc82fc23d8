"""Reports of files of keys, and references over a whole keyspace: what dangles and which copies disagree."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from redis.cluster import RedisCluster

from rtui.analysis.columns import EVERYTHING, SAMPLED_COLUMNS, Columns
from rtui.analysis.estimates import Estimate
from rtui.analysis.formats.json import document
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.members import CheckedReference, ReferenceChecks
from rtui.cli.main import run
from rtui.cli.run import run_analysis
from rtui.keyspace.text.display import SafeText
from rtui.registry.load import read_registry
from rtui.server.analysis.keys_report import UNTOLD, opened, report_of
from rtui.server.analysis.references import ReferenceCheck, ReferenceOptions
from rtui.server.deployment.nodes import Deployment
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.target import ReplicaPolicy
from rtui.table.keys_file import COLUMNS, KeysWriter
from rtui.table.schema import NEVER, names_of
from tests.clusters import TestCluster
from tests.made_report import made_report
from tests.server.deployment.test_nodes import deployed
from tests.server.every_type import fill
from tests.server.targets import target_of
from tests.servers import Server


def plant(server: Server) -> None:
    fill(server, server.admin)
    pipeline = server.admin.pipeline(transaction=False)
    for number in range(400):
        pipeline.set(f"shop:session:{number}", number * b"x", px=1_000 * (number + 90) if number % 3 else None)
        pipeline.hset(b"shop:\xff:%d:profile" % number, mapping={"name": "n", "email": "e"})
        pipeline.sadd(f"shop:{{tag{number % 5}}}:{number}", *range(number + 1))
    pipeline.execute()


async def export(server: Server, path: Path, **given: Any) -> Report:
    """Write all keys of a server into a file, and return the report of the same pass."""
    writers: list[KeysWriter] = []
    with path.open("wb") as file:

        def write_to(began_at_s: float, failed: Any) -> KeysWriter:
            writers.append(KeysWriter(file, "parquet", began_at_s, failed))
            return writers[-1]

        result = await run_analysis(target_of(server), AnalysisOptions(write_to=write_to, **given))
        assert result.report is not None
        writers[-1].end(result.report)
    return result.report


def figures(report: Report, *left_out: str) -> dict[str, Any]:
    """The summary as a file has it, without the encodings of keys in lists, which a pass asks at its end."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            listed = "asked_at_s" in value
            return {name: plain(one) for name, one in value.items() if not (listed and name in {"encoding", "note"})}
        return [plain(one) for one in value] if isinstance(value, list) else value

    found: dict[str, Any] = plain(document(report)["summary"])
    return {name: value for name, value in found.items() if name not in left_out}


@pytest.mark.parametrize("columns", [EVERYTHING, SAMPLED_COLUMNS])
async def test_a_file_has_the_report_of_its_pass(columns: Columns, valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    report = await export(valkey, tmp_path / "keys.parquet", columns=columns)
    found = report_of([opened(tmp_path / "keys.parquet")], AnalysisOptions())
    late = () if columns == EVERYTHING else ("big", "types")  # a pass asks more lengths at its end
    assert figures(found, *late) == figures(report, *late)
    assert structs.replace(found.head, notes=report.head.notes, made_at_s=report.head.made_at_s) == report.head
    assert (found.hot, found.keysizes, found.cluster) == (report.hot, report.keysizes, report.cluster)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Rows of some hundred keys, of which not everything is known."""
    drawn = Random(5)
    keys = [b"app:%d:%s" % (number, drawn.choice([b"cart", b"\xff", b"{t}:x"])) for number in range(300)]
    name, raw = names_of(keys)
    facts: dict[str, Any] = {
        "type": [drawn.choice(["string", "hash", None]) for _ in keys],
        "expires_ms": [drawn.choice([NEVER, 10**6, 10**9, None]) for _ in keys],
        "memory_bytes": [drawn.choice([None, drawn.randrange(1, 9_000)]) for _ in keys],
        "length": [drawn.randrange(9_000) for _ in keys],
        "idle_s": [drawn.randrange(9_000) for _ in keys],
        "sampled": [True for _ in keys],
        "asked_ms": [drawn.randrange(1, 99) for _ in keys],
    }
    rest = {column: facts.get(column, [None for _ in keys]) for column in COLUMNS if column not in ("name", "raw")}
    return pl.DataFrame({"name": name, "raw": raw, **rest}, schema=COLUMNS)


def written(path: Path, table: pl.DataFrame, report: Report) -> Path:
    with path.open("wb") as file:
        writer = KeysWriter(file, "parquet", 60.0)
        writer.append(table)
        writer.end(report)
    return path


@pytest.mark.slow
@given(cuts=st.lists(st.integers(0, 300), max_size=3).map(sorted), order=st.randoms(use_true_random=False))
def test_several_files_add_up_to_one_pass_over_all(
    cuts: list[int], order: Random, table: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, report = tmp_path_factory.mktemp("keys"), made_report()
    edges = pairwise([0, *cuts, table.height])
    parts = [written(folder / f"{at}.parquet", table[low:high], report) for at, (low, high) in enumerate(edges)]
    whole = report_of([opened(written(folder / "all.parquet", table, report))], AnalysisOptions())
    order.shuffle(parts)
    merged = report_of([opened(one) for one in parts], AnalysisOptions())
    assert figures(merged, "slots") == figures(whole, "slots")
    assert merged.summary.slots.keys == whole.summary.slots.keys
    assert merged.head.coverage.keys == whole.head.coverage.keys == table.height
    assert merged.head.cost.commands == len(parts) * report.head.cost.commands


def test_what_a_file_does_not_say_is_not_known(tmp_path: Path) -> None:
    """A file of another program may have all keys or not, and lacks facts, which are no zeros."""
    pl.DataFrame({"key": ["a:1", "a:2"], "memory_bytes": [5, None]}).write_parquet(tmp_path / "keys.parquet")
    report = report_of([opened(tmp_path / "keys.parquet")], AnalysisOptions())
    head, stats = report.head, report.summary.root.stats
    assert (head.coverage.kind, head.coverage.reason) == (CoverageKind.PARTIAL, UNTOLD)
    assert (stats.keys, stats.memory_bytes, stats.no_ttl_keys, stats.idle) == (2, 5, None, None)
    states = {name: column.state.value for name, column in head.columns.items()}
    assert states == dict.fromkeys(states, "not asked") | {"memory": "some"}


def test_rows_that_were_added_or_removed_are_told(tmp_path: Path, table: pl.DataFrame) -> None:
    """A program that keeps the metadata says what was written, not what it has left."""
    path = written(tmp_path / "keys.parquet", table, made_report())
    kept = pl.read_parquet_metadata(path)["rtui"]
    pl.read_parquet(path).head(100).write_parquet(path, metadata={"rtui": kept})
    coverage = report_of([opened(path)], AnalysisOptions()).head.coverage
    assert (coverage.kind, coverage.keys) == (CoverageKind.PARTIAL, 100)
    assert "has 100 rows, and 300 were written" in coverage.reason


def test_a_filter_counts_only_what_it_lets_through(tmp_path: Path, table: pl.DataFrame) -> None:
    path = written(tmp_path / "keys.parquet", table, made_report())
    report = report_of([opened(path)], AnalysisOptions(match=b"*\xff", key_type=b"hash"))
    wanted = table.filter(pl.col("raw").is_not_null(), pl.col("type") == "hash")
    assert report.head.coverage.keys == wanted.height > 0
    assert report.summary.root.stats.memory_bytes == wanted["memory_bytes"].sum()
    assert (report.head.scope.match, report.head.scope.key_type) == (b"*\xff", b"hash")


TEXT = """
[[pattern]]
pattern = "user:<userId>:orders"
references = [{ from = "member", to = "order:<member>", twin = "order:index:user:<userId>" }]
[[pattern]]
pattern = "order:index:user:<userId>"
[[pattern]]
pattern = "user:list"
references = [{ from = "member", to = "user:<member>" }]
[[pattern]]
pattern = "user:<id>"
placeholders = { id = "int" }
references = [{ from = "json:roleId", to = "role:<value>" }]
[[pattern]]
pattern = "order:<id>"
"""
REGISTRY = read_registry(TEXT)
USERS = 100
GONE = 7
"""Each such user has an order that is gone."""
UNLIKE = 50
"""Each such user's copy lacks one."""


def plant_references(client: redis.Redis | RedisCluster) -> None:
    pipeline = client.pipeline(transaction=False)
    for user in range(USERS):
        pipeline.set(f"user:{user}", json.dumps({"roleId": 1 if user else 9}))
        orders = [f"{user}-{number}" for number in range(3)]
        pipeline.sadd(f"user:{user}:orders", *orders)
        pipeline.sadd(f"order:index:user:{user}", *(orders[1:] if user % UNLIKE == 0 else orders))
        for order in orders[user % GONE == 0 :]:
            pipeline.set(f"order:{order}", "{}")
        pipeline.sadd("user:list", user)
    pipeline.sadd("user:list", "nobody")
    pipeline.set("role:1", "{}")
    pipeline.sadd("user:0:orders", *(f"0-{number}" for number in range(3, 250)))
    pipeline.execute()


async def checked(deployment: Deployment, keys: int | None) -> ReferenceChecks:
    check = ReferenceCheck(deployment, REGISTRY, ReferenceOptions(keys, pace=Pace.FULL))
    await check.run()
    assert check.found.failure == ""
    assert check.found.is_complete
    return check.found


def one(found: ReferenceChecks, pattern: str, *, is_twin: bool = False) -> CheckedReference:
    (of,) = (of for of in found.references if (of.pattern, of.is_twin) == (pattern, is_twin))
    return of


async def test_all_and_a_sample(valkey: Server) -> None:
    plant_references(valkey.admin)
    async with deployed(target_of(valkey)) as deployment:
        found = await checked(deployment, None)
        orders = one(found, "user:<userId>:orders")
        gone = {user for user in range(USERS) if user % GONE == 0}
        assert (orders.matching, orders.looked_at, orders.broken) == (USERS, USERS, len(gone))
        assert orders.values == 3 * USERS + 247
        assert orders.broken_values == len(gone) + 247
        key, missing = orders.examples[0]
        assert missing.startswith(b"order:" + key.split(b":")[1] + b"-")
        twin = one(found, "user:<userId>:orders", is_twin=True)
        assert (twin.target, twin.broken, twin.is_sample) == ("order:index:user:<userId>", USERS // UNLIKE, False)
        listed = one(found, "user:list")
        assert (listed.looked_at, listed.values, listed.examples) == (1, USERS + 1, [(b"user:list", b"user:nobody")])
        assert one(found, "user:<id>").examples == [(b"user:0", b"role:9")]
        assert not found.touched

        sampled = one(await checked(deployment, 40), "user:<userId>:orders")
        assert (sampled.matching, sampled.looked_at, sampled.is_sample) == (USERS, 40, True)
        assert isinstance(sampled.broken, Estimate)
        assert sampled.broken_keys <= sampled.broken.low <= sampled.broken.value <= sampled.broken.high <= USERS

        stopped = ReferenceCheck(deployment, REGISTRY)
        stopped.control.stop(SafeText("it was enough"))
        await stopped.run()
        assert (stopped.found.failure, stopped.found.is_complete) == ("it was enough", False)


@pytest.mark.parametrize("replicas", ["never", "prefer"])
@pytest.mark.parametrize("cluster", ["redis-7.0", "valkey-9.1"], indirect=True)
async def test_each_key_of_a_cluster_is_asked_at_its_node(
    cluster: TestCluster, valkey: Server, replicas: ReplicaPolicy
) -> None:
    with cluster.client() as client:
        plant_references(client)
    plant_references(valkey.admin)
    async with (
        deployed(target_of(valkey)) as alone,
        deployed(target_of(cluster.members[1].server, replicas=replicas)) as whole,
    ):
        expected, found = await checked(alone, None), await checked(whole, None)
    assert found.keys == expected.keys
    for ours, theirs in zip(found.references, expected.references, strict=True):
        figures = ("matching", "looked_at", "skipped", "broken", "values", "broken_values", "broken_keys", "unknown")
        assert [getattr(ours, one) for one in figures] == [getattr(theirs, one) for one in figures]


def test_what_check_says_of_them(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant_references(valkey.admin)
    registry = tmp_path / "team.toml"
    registry.write_text(TEXT)
    asked = ["check", valkey.url, "--registry", str(registry), "--pace", "full", "--fail-on", "warn"]
    assert run([*asked, "--format", "json", "--references", "all"]) == 1
    found = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["rule"].startswith("reference")]
    assert [one["rule"] for one in found].count("reference-dangling") == 3
    (twin,) = (one for one in found if one["rule"] == "reference-twin")
    assert twin["where"] == "user:<userId>:orders"
    run([*asked, "--references", "off"])
    assert "point to a key" not in capsys.readouterr().out
    run(asked)
    out = capsys.readouterr().out
    assert "of user:<userId>:orders point to a missing key: member → order:<member>" in out
    assert "user:list → user:nobody" in out
