"""Hot keys by what was inspected."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.document import HotReport, HotSource, KeyRecord
from rtui.server.hot.report import ASSUMED, NO_RATE, READS_COUNT, counted_source
from rtui.server.wire.capability import Capabilities, Feature
from rtui.server.wire.errors import ServerError
from rtui.server.wire.own_reads import OwnReads
from tests.server.hot.sessions import ASKED_AT_S, counted, idle, summary_of

KNOWN = LfuSettings(10, 1, assumed=False)


def source_of(
    *records: KeyRecord,
    lfu: LfuSettings = KNOWN,
    is_lfu_policy: bool | None = True,
    basis: IdleBasis = IdleBasis.ACCESS,
    capabilities: Capabilities | None = None,
    own_reads: OwnReads | None = None,
) -> HotReport:
    return counted_source(
        summary_of(*records),
        capabilities or Capabilities(),
        lfu=lfu,
        is_lfu_policy=is_lfu_policy,
        basis=basis,
        now_s=ASKED_AT_S + 7,
        own_reads=own_reads,
    )


def test_counters_become_accesses_a_minute() -> None:
    found = source_of(counted(b"cool", 5), counted(b"warm", 105), lfu=LfuSettings(10, 2, assumed=False))
    (hot,) = found.lists
    assert found.source is HotSource.FREQUENCY
    assert hot.unit == "accesses/min"
    assert [(one.record.key, one.value) for one in hot.keys] == [(b"warm", 500.5), (b"cool", 0.5)]
    assert found.age_s == 7
    assert not found.better


def test_the_top_of_the_counter_is_a_lower_bound_without_ranks() -> None:
    (hot,) = source_of(counted(b"z", 255), counted(b"a", 255), counted(b"b", 254)).lists
    assert [(one.record.key, one.value, one.at_least) for one in hot.keys] == [
        *((b"a", 2501.0, True), (b"z", 2501.0, True), (b"b", 2491.0, False))
    ]


def test_defaults_are_called_so() -> None:
    assert source_of(counted(b"a", 9), lfu=LfuSettings()).better == (ASSUMED,)


def test_a_counter_that_never_falls_is_no_rate() -> None:
    found = source_of(counted(b"a", 9), counted(b"b", 255), lfu=LfuSettings(10, 0, assumed=False))
    (hot,) = found.lists
    assert hot.unit == "LFU counter"
    assert [one.value for one in hot.keys] == [255.0, 9.0]
    assert found.better == (NO_RATE,)


def test_idle_times_where_there_are_no_counters() -> None:
    found = source_of(idle(b"late", 90), idle(b"now", 0), is_lfu_policy=False)
    (hot,) = found.lists
    assert found.source is HotSource.IDLE
    assert [(one.record.key, one.value) for one in hot.keys] == [(b"now", 0.0), (b"late", 90.0)]
    assert "last use" in found.about
    assert "LFU" in found.better[0]


def test_keys_whose_last_use_was_rtuis_own_do_not_lead_the_list() -> None:
    own_reads = OwnReads()
    own_reads.add(b"old", ASKED_AT_S - 1, used_s=ASKED_AT_S - 10_000)
    own_reads.add(b"unknown", ASKED_AT_S - 1)
    own_reads.add(b"used since", ASKED_AT_S - 30, used_s=ASKED_AT_S - 10_000)
    records = (idle(b"old", 1), idle(b"unknown", 0), idle(b"used since", 5), idle(b"late", 90))
    found = source_of(*records, is_lfu_policy=False, own_reads=own_reads)
    assert [(one.record.key, one.value) for one in found.lists[0].keys] == [(b"used since", 5.0), (b"late", 90.0)]
    assert any(text.startswith("2 keys are excluded: last accessed by rtui") for text in found.better)


def test_under_a_policy_that_counts_writes_reads_change_nothing() -> None:
    own_reads = OwnReads()
    own_reads.add(b"a", ASKED_AT_S - 1, used_s=ASKED_AT_S - 60)
    found = source_of(idle(b"a", 1), is_lfu_policy=False, basis=IdleBasis.WRITE, own_reads=own_reads)
    assert [one.value for one in found.lists[0].keys] == [1.0]
    assert READS_COUNT not in found.better


def test_idle_times_that_count_writes() -> None:
    assert "last write" in source_of(idle(b"a", 1), is_lfu_policy=False, basis=IdleBasis.WRITE).about


def test_a_policy_that_nobody_knows_goes_by_what_was_found() -> None:
    assert source_of(counted(b"a", 9), is_lfu_policy=None).source is HotSource.FREQUENCY
    assert source_of(idle(b"a", 9), is_lfu_policy=None).source is HotSource.IDLE


def test_nothing_is_said_with_the_reason() -> None:
    capabilities = Capabilities()
    capabilities.record(Feature.OBJECT_IDLETIME, ServerError("NOPERM this user has no permissions to run it"))
    found = source_of(KeyRecord(b"a"), capabilities=capabilities)
    assert not found.lists
    assert "OBJECT IDLETIME" in found.better[0]
    assert source_of().better


@given(st.lists(st.tuples(st.binary(max_size=4), st.integers(0, 255)), max_size=20), st.integers(0, 100))
def test_hotter_is_never_below(found: list[tuple[bytes, int]], factor: int) -> None:
    source = source_of(*(counted(key, counter) for key, counter in found), lfu=LfuSettings(factor, 1, assumed=False))
    for one in source.lists:
        values = [hot.value for hot in one.keys]
        assert values == sorted(values, reverse=True)
        assert len(values) == len(found)
