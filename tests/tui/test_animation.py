"""An animated picture shows at each moment what stood on the screen: each row once, in the version of that frame."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style

from rtui.tui.replay.animation import Frame, animated_svg, durations

SVG = "{http://www.w3.org/2000/svg}"
STYLES = (Style(color="#ffffff", bgcolor="#101010"), Style(color="#00ff00", bgcolor="#101010", bold=True))
WIDTH = 6

words = st.sampled_from(("shop", "  a b ", "<&>\"'", "日本", "", "x" * WIDTH))
rows = st.builds(
    lambda text, style: (Segment(text, style), Segment(" " * WIDTH, STYLES[0])), words, st.sampled_from(STYLES)
)
frame_lists = st.integers(1, 3).flatmap(
    lambda height: st.lists(
        st.builds(
            Frame,
            at_ms=st.integers(0, 9_000).map(float),
            caption=st.sampled_from(("", "key a", "pasted <b>")),
            rows=st.tuples(*[rows] * height),
        ),
        min_size=1,
        max_size=6,
    )
)


def visible_at(style: str, name: str, percent: float) -> bool:
    """Whether what has a class is seen at a moment, by its keyframes."""
    found = re.search(rf"@keyframes {name}{{((?:[0-9.]+%{{visibility:[a-z]+}})+)}}", style)
    assert found is not None
    steps = re.findall(r"([0-9.]+)%{visibility:([a-z]+)}", found[1])
    assert steps[0][0] == "0.00"
    return [seen for at, seen in steps if float(at) <= percent][-1:] == ["visible"]


def shown_at(root: ET.Element, percent: float) -> dict[float, list[str]]:
    """The texts that are seen at a moment, by the top of their row; two versions of a row would come together."""
    style = root.findtext(f"{SVG}style") or ""
    found: dict[float, list[str]] = {}
    for group in root.iter(f"{SVG}g"):
        name = group.get("class")
        if name is None or visible_at(style, name, percent):
            top = float(group.attrib["transform"].rstrip(")").split(" ")[1])
            assert top not in found
            found[top] = [text.text or "" for text in group.iter(f"{SVG}text")]
    return found


@given(frame_lists)
def test_each_moment_shows_its_frame(frames: list[Frame]) -> None:
    root = ET.fromstring(animated_svg(frames, title="a <title>"))  # noqa: S314 - our own
    spans = durations(frames)
    for at, frame in enumerate(frames):
        middle = 100 * (sum(spans[:at]) + spans[at] / 2) / sum(spans)
        caption, *texts = (texts for _, texts in sorted(shown_at(root, middle).items()))
        assert caption == ([frame.caption] if frame.caption else [])
        assert texts == [[word] if (word := row[0].text.strip()) else [] for row in frame.rows]


@given(frame_lists, st.data())
def test_without_animation_one_frame_is_seen(frames: list[Frame], data: st.DataObject) -> None:
    still = data.draw(st.integers(0, len(frames) - 1))
    drawn = animated_svg(frames, title="rtui", still=still)
    names = re.findall(r"\.(s\d+){visibility:visible;", drawn)
    root = ET.fromstring(drawn)  # noqa: S314 - our own
    seen = [group for group in root.iter(f"{SVG}g") if group.get("class") in (None, *names)]
    texts = [text.text or "" for group in seen for text in group.iter(f"{SVG}text")]
    rows_of = [word for row in frames[still].rows if (word := row[0].text.strip())]
    assert sorted(texts) == sorted([*rows_of, *([frames[still].caption] if frames[still].caption else [])])
