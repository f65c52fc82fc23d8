"""A keyspace in ordinary use, on every version: nothing is found wrong with the server, and every figure is known."""

from __future__ import annotations

import random
import secrets
import socket

import pytest

from rtui.analysis.facts import Unknown
from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.panel import State
from rtui.analysis.health.possible import range_of
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.server.health.info import sample_of_info
from rtui.server.health.session import problems_of
from tests.conftest import require
from tests.grammar import Grammar, load
from tests.server.health.driven import looking
from tests.servers import VERSIONS, Server, running

KEYS = 3_000
OPTIONS = ("--maxmemory", "500mb", "--maxmemory-policy", "volatile-lru")


def use(server: Server, names: list[bytes], rng: random.Random) -> None:
    """Read most keys that are there and some that are not, write a few, some of them with a TTL."""
    with server.client(client_name="shop") as client:
        pipeline = client.pipeline(transaction=False)
        for _ in range(1_500):
            name = rng.choice(names)
            if rng.random() < 0.9:
                pipeline.exists(name)
            elif rng.random() < 0.5:
                pipeline.get(b"gone:" + name)
            else:
                pipeline.set(b"session:" + name, b"x" * rng.randint(10, 500), ex=rng.randint(600, 90_000))
        pipeline.execute()


@pytest.mark.slow
@pytest.mark.sampled("version")
@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_is_found_on_a_server_in_ordinary_use(version: str) -> None:
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    with running(require(version), *OPTIONS) as server:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server.socket)
            load(connection, Grammar(seed, 40), KEYS)
        with server.client() as client:  # as many have a TTL as a volatile policy is chosen for
            names = sorted(client.scan_iter(count=1_000))
            rng.shuffle(names)
            for name in names[: KEYS // 2]:
                client.expire(name, rng.randint(3_600, 500_000))
        async with looking(server) as looked:
            await looked.look()
            await looked.analyse()
            for _ in range(7):
                use(server, names, rng)
                await looked.look()
        found = [f"{one.rule}: {one.title} {one.evidence}" for one in looked.health.found.findings]
        assert found == [], f"seed {seed}"
        assert not looked.health.found.unjudged, f"seed {seed}"
        lines = [line for panel in looked.health.panels for line in panel.lines]
        assert {line.state for line in lines} <= {State.PLAIN, State.NORMAL, State.UNKNOWN}
        unknown = {line.id: line.value for line in lines if isinstance(line.value, Unknown)}
        assert all(value.detail == "this server does not tell it" for value in unknown.values()), unknown


SECTIONS = ("server", "clients", "memory", "persistence", "stats", "replication", "cluster")
NODE = SafeText("10.0.0.5:6379")


@pytest.mark.parametrize("said", ["-5", "18446744073709551615", "nan", "1e400", "4102444799", "250.5%", "abc"])
def test_what_can_not_be_is_no_trouble(said: str) -> None:
    replies = {
        section: "".join(
            f"{one.name}:{said}\r\n"
            for one in FIELDS.values()
            if one.source == f"INFO {section}" and one.name != "role"
        ).encode()
        for section in SECTIONS
    }
    sample = sample_of_info(replies, NODE, 1_700_000_000_000)
    figures = {name: value for name, value in sample.info.items() if FIELDS[name].unit is not FieldUnit.TEXT}
    assert all(value in range_of(FIELDS[name]) for name, value in figures.items())
    _, trouble = problems_of({NODE: HealthView((sample,))})
    assert trouble is None or figures, "it is of figures that can be"
    assert trouble is None or "saved" not in trouble.word
