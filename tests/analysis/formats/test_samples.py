"""Files of samples: written and read again whole, cut anywhere, of any bytes, and without addresses."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Reason
from rtui.analysis.formats.samples import (
    Masker,
    SamplesFormatError,
    SamplesHeader,
    header_line,
    is_samples,
    read_samples,
    sample_line,
)
from rtui.analysis.health.possible import with_possible
from rtui.analysis.health.sample import (
    FIGURES,
    ClientFigures,
    CommandStats,
    Database,
    LatencyEvent,
    LoggedCommand,
    Missing,
    Replica,
    Sample,
    Source,
    only_new,
    with_earlier,
)
from rtui.analysis.report.document import KeySizes
from rtui.keyspace.text.display import display_text

HEADER = SamplesHeader(began_ms=1_790_000_000_000, server="10.0.0.5:6379")
NUMBERS = st.integers(0, (1 << 63) - 1)
TEXTS = st.text(max_size=12).map(display_text)
NAMES = st.binary(max_size=12)
ENTRIES = st.lists(
    st.builds(LoggedCommand, NUMBERS, NUMBERS, NUMBERS, st.lists(NAMES, min_size=1, max_size=3).map(tuple), NAMES),
    max_size=3,
).map(tuple)

SAMPLES = st.builds(
    Sample,
    st.just(1),
    st.just("10.0.0.5:6379"),
    info=st.dictionaries(st.sampled_from(("used_memory", "role", "hz")), NUMBERS | TEXTS | st.floats(0, 1e9)),
    databases=st.dictionaries(st.integers(0, 15), st.builds(Database, NUMBERS, NUMBERS), max_size=2),
    commands=st.dictionaries(
        st.sampled_from(("GET", "CONFIG|GET")),
        st.builds(CommandStats, NUMBERS, NUMBERS, percentiles_us=st.just({"50": 1.0})),
    ),
    errors=st.dictionaries(TEXTS, NUMBERS, max_size=2),
    replicas=st.lists(st.builds(Replica, NAMES, TEXTS), max_size=1).map(tuple),
    slow=ENTRIES,
    large_replies=ENTRIES,
    latency=st.lists(st.builds(LatencyEvent, TEXTS, NUMBERS, NUMBERS, NUMBERS, st.just(((1, 2),)))).map(tuple),
    clients=st.lists(st.builds(ClientFigures, st.none() | NUMBERS, NAMES, NAMES), max_size=2).map(tuple),
    settings=st.dictionaries(st.sampled_from(("save", "hz")), TEXTS),
    key_sizes=st.lists(st.builds(KeySizes, TEXTS, st.just(((1, 5),))), max_size=1).map(tuple),
    sources=st.sets(st.sampled_from(Source)).map(lambda chosen: tuple(one for one in Source if one in chosen)),
    missing=st.dictionaries(st.sampled_from(Source), st.builds(Missing, st.sampled_from(Reason), TEXTS), max_size=2),
)


def whole(samples: list[Sample]) -> list[Sample]:
    """The samples as a probe gives them: each with what those before it said."""
    found: list[Sample] = []
    for at_ms, sample in enumerate(samples):
        told = only_new(Sample(**{name: getattr(sample, name) for name in sample.__struct_fields__} | {"at_ms": at_ms}))
        found.append(with_earlier(told, found[-1]) if found else told)
    return found


def written(samples: list[Sample]) -> bytes:
    return (header_line(HEADER) + "".join(sample_line(one, HEADER) for one in samples)).encode()


@given(st.lists(SAMPLES, max_size=4))
def test_what_is_written_is_read_again_but_for_clients_of_earlier_samples(samples: list[Sample]) -> None:
    expected = whole([with_possible(one) for one in samples])
    data = written(expected)
    assert is_samples(data)
    found = read_samples(data.splitlines(keepends=True))
    assert found.header == HEADER
    assert (found.unread, found.left_out) == (0, 0)
    read = found.nodes.get("10.0.0.5:6379", ())
    assert [one.at_ms for one in read] == [one.at_ms for one in expected]
    assert read[-1:] == tuple(expected[-1:])
    for one, other in zip(read, expected, strict=True):
        for name in {*FIGURES.values(), "info", "missing", "sources"} - {"clients"}:
            assert getattr(one, name) == getattr(other, name), name


@given(st.lists(SAMPLES, min_size=1, max_size=3), st.data())
def test_a_file_that_is_cut_is_read_up_to_there(samples: list[Sample], data: st.DataObject) -> None:
    whole_file = written(whole(samples))
    cut = whole_file[: data.draw(st.integers(len(header_line(HEADER).encode()), len(whole_file)))]
    found = read_samples(cut.splitlines(keepends=True))
    read = sum(map(len, found.nodes.values()))
    assert read in (cut.count(b"\n") - 1, cut.count(b"\n"))
    assert bool(found.unread) == (not cut.endswith(b"\n") and read == cut.count(b"\n") - 1)


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_any_bytes_are_read_or_refused(lines: list[bytes], has_header: bool) -> None:
    try:
        read_samples([header_line(HEADER).encode()] * has_header + lines)
    except SamplesFormatError:
        assert not has_header


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b'{"format":"rtui report"}', b'{"format":"rtui samples","schema":9}']
)
def test_other_files_are_refused(line: bytes) -> None:
    with pytest.raises(SamplesFormatError):
        read_samples([line])


def test_texts_of_a_file_are_safe() -> None:
    line = rb'{"kind":"sample","at":1,"node":"a\u001b[31m","settings":{"save\u001b":"\u202e"}}'
    (node,) = read_samples([header_line(HEADER).encode(), line]).nodes
    assert "\x1b" not in node
    (sample,) = read_samples([header_line(HEADER).encode(), line]).nodes[node]
    assert all(text.isprintable() for pair in sample.settings.items() for text in pair)


def test_of_a_long_file_samples_in_between_are_left_out() -> None:
    data = written(whole([Sample(0, "10.0.0.5:6379")] * 1_000))
    found = read_samples(data.splitlines(keepends=True))
    times = [one.at_ms for one in found.nodes["10.0.0.5:6379"]]
    assert (times[0], times[-1]) == (0, 999)
    assert len(times) + found.left_out == 1_000
    assert found.left_out
    assert all(earlier < later for earlier, later in pairwise(times))


def addresses_of(sample: Sample) -> list[bytes]:
    return [*(one.address for one in sample.clients), *(one.address for one in sample.slow)]


@given(SAMPLES)
def test_masked_samples_have_no_addresses(sample: Sample) -> None:
    masker = Masker()
    masked = masker.masked(sample)
    assert masked == masker.masked(sample)
    for address in (*addresses_of(masked), *(one.address for one in masked.large_replies)):
        assert address == b"" or address.startswith(b"client-")
    assert all(client.id is None for client in masked.clients)
    assert len(set(addresses_of(sample))) == len(set(addresses_of(masked)))


def test_events_of_other_kinds_are_passed_over() -> None:
    sample = Sample(HEADER.began_ms + 5, "a:1")
    lines = [header_line(HEADER), '{"kind":"end","at":9}\n', sample_line(sample, HEADER)]
    assert read_samples([one.encode() for one in lines]).nodes == {"a:1": (sample,)}
    assert read_samples([header_line(HEADER).encode(), b'{"at":9}\n']).unread == 2


def test_a_line_is_an_event_as_in_recorded_sessions() -> None:
    event = msgspec.json.decode(sample_line(Sample(HEADER.began_ms + 5, "a:1"), HEADER))
    assert (event["kind"], event["at"]) == ("sample", 5)
    assert "at_ms" not in event
