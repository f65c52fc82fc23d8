"""Which way keys take after the second stage: to the findings, by their length, or by a timed MEMORY USAGE."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtui.analysis.columns import SAMPLED_COLUMNS
from rtui.keyspace.types import HASH, STREAM, STRING
from rtui.server import guard
from rtui.server.inspection.pipeline import TOO_COSTLY_NOTE, LastStages
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.queries import KeyQuery, QueryStage, WaitingKeys
from rtui.server.inspection.tables import InspectedBatch, Tables
from rtui.server.scan.server_time import COSTLY_S, MAX_COSTLY
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.errors import ServerError
from rtui.server.wire.identity import NoTouch, ServerIdentity
from tests.server.inspection.gathered import Gathered

NOW_S = 1_000.0
KEYS = [b"a", b"b", b"c"]
STREAMS = InspectedBatch(STREAM.name, KEYS, ttl_ms=[-1, -1, -1])
REFUSED = ServerError("NOPERM User app has no permissions to run the 'memory|usage' command")


class Stages:
    """Last stages of a server where nothing bounds the MEMORY USAGE of a stream, and what comes of their keys."""

    def __init__(self) -> None:
        server = ServerIdentity(product="redis", version=(7, 0, 0))
        self.plan = InspectionPlan(Capabilities(), server, NoTouch.ON, SAMPLED_COLUMNS)
        self._found, self.gone, self.typed = Gathered(), list[bytes](), WaitingKeys()
        self._tables = Tables(self._found, "")
        self.stages = LastStages(self.plan, self._tables, clock=lambda: NOW_S, gone=self.gone.extend)

    @property
    def found(self) -> Gathered:
        """What has come of the keys."""
        self._tables.hand_on()
        return self._found

    def timed(self) -> KeyQuery:
        """The timed query that is sent next."""
        query = self.stages.timed_query(self.typed)
        assert query is not None
        assert query.stage is QueryStage.TIMED
        return query


def test_keys_of_which_all_is_known_go_to_the_findings() -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], lengths=[1, 2, 3]))
    assert set(one.found.facts) == set(KEYS)
    assert not one.stages.keys


def test_keys_whose_length_is_zero_are_gone_unless_their_type_may_be_empty() -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], lengths=[1, 0, 3]))
    one.stages.go_on(InspectedBatch(STRING.name, [b"s"], memory_bytes=[50], lengths=[0]))
    assert one.gone == [b"b"]
    assert set(one.found.facts) == {b"a", b"c", b"s"}


def test_a_length_is_asked_late_of_keys_that_are_not_sampled() -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], is_sampled=False))
    assert (one.stages.keys, len(one.found.facts)) == (3, 0)
    (query,) = one.stages.length_queries(2)
    assert (query.stage, len(query.batch.keys), one.stages.keys) == (QueryStage.THIRD, 2, 1)
    one.stages.put_back(query)
    assert one.stages.keys == 3
    (query,) = one.stages.length_queries(9)
    assert sorted(query.batch.keys) == KEYS
    one.stages.go_on_after_third(query.batch)
    assert (set(one.found.facts), one.stages.keys) == (set(KEYS), 0)


def test_one_timed_query_at_a_time_with_more_keys_while_they_are_cheap() -> None:
    one = Stages()
    one.stages.go_on(STREAMS)
    query = one.timed()
    assert len(query.batch.keys) == 1
    assert one.stages.timed_query(one.typed) is None
    one.stages.put_back(query)
    assert one.stages.keys == 3
    query = one.timed()
    one.stages.go_on_after_timed([query.batch], 1, 0.0)
    assert len(one.found.facts) == 1
    assert len(one.timed().batch.keys) == 2
    assert not one.stages.keys


def test_keys_that_wait_go_on_with_a_note_once_others_were_costly() -> None:
    one = Stages()
    one.stages.go_on(STREAMS)
    for _ in range(MAX_COSTLY - 1):
        one.stages.cost_watch.observe(1, 2 * COSTLY_S)
    query = one.timed()
    one.stages.go_on_after_timed([replace(query.batch, memory_bytes=[900])], 1, 2 * COSTLY_S)
    one.stages.go_on(InspectedBatch(STREAM.name, [b"later"]))
    assert not one.stages.keys
    notes = {key: facts["note"] for key, facts in one.found.facts.items()}
    assert notes.pop(query.batch.keys[0]) == ""
    assert len(notes) == 3
    assert set(notes.values()) == {TOO_COSTLY_NOTE}


def test_another_server_may_take_less_time() -> None:
    one = Stages()
    for _ in range(MAX_COSTLY):
        one.stages.cost_watch.observe(1, 2 * COSTLY_S)
    one.stages.use_other_server()
    one.stages.go_on(STREAMS)
    assert (one.stages.keys, len(one.found.facts)) == (3, 0)


def test_keys_whose_memory_is_refused_meanwhile_wait_for_the_second_stage_again() -> None:
    one = Stages()
    one.stages.go_on(STREAMS)
    one.plan.capabilities.record(guard.memory_usage.spec.name, REFUSED)
    assert one.stages.timed_query(one.typed) is None
    assert (one.stages.keys, one.typed.keys) == (0, 3)


@pytest.mark.parametrize("is_reset", [True, False])
def test_all_keys_are_taken_or_forgotten_at_once(is_reset: bool) -> None:
    one = Stages()
    one.stages.go_on(InspectedBatch(HASH.name, KEYS, memory_bytes=[80, 90, 99], is_sampled=False))
    one.stages.go_on(STREAMS)
    one.timed()
    assert one.stages.late_lengths.asked(HASH.name)
    if is_reset:
        one.stages.reset()
        assert not one.stages.late_lengths.asked(HASH.name)
    else:
        assert sum(len(batch.keys) for batch in one.stages.take_all()) == 5
    assert not one.stages.keys
    one.stages.go_on(STREAMS)
    # whoever takes all keys away leaves the query that is under way
    assert (one.stages.timed_query(one.typed) is not None) is is_reset
