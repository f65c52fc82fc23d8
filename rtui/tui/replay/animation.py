"""A replay as an animated picture: one SVG file that browsers play by themselves, without scripts.

Most rows of a screen stay as they are from one frame to the next. So the file holds each row as often as it looked
different, and for each of these versions when it is seen, as a CSS animation that shows and hides it. A row that reads
`shop 750` in the frames 0 to 3, `shop 812` in 4, and again `shop 750` from 5 on is there twice: the first version is
seen in two spans of time. Versions that are seen at the same times share one animation. A viewer that plays no
animations, and one who has asked for less motion, sees the frame that was chosen for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.terminal_theme import DIMMED_MONOKAI, TerminalTheme

CELL: Final = 8.4
LINE: Final = 18
FONT: Final = 14
"""Width and height of a cell, and size of the letters, in units of the picture."""

EDGE: Final = 12
"""Around the screen."""

HEAD: Final = 28
"""Above it, for the title and what was pressed."""

LEAST_S: Final = 0.7
MOST_S: Final = 2.4
LAST_S: Final = 4.0
"""A frame is shown for the time until the next one, within bounds; the last one for so long."""

BASELINE: Final = 13.2
"""From the top of a row to the feet of its letters."""

_WORDS: Final = re.compile(r"\S+(?: \S+)*")
"""What stands together; not all viewers keep more than one blank."""

Row = tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What stood on the screen at a time."""

    at_ms: float
    caption: str
    """What was pressed just before; safe to show."""
    rows: tuple[Row, ...]


def durations(frames: Sequence[Frame]) -> list[float]:
    """Return for how many seconds each frame is shown."""
    gaps = [(after.at_ms - before.at_ms) / 1000 for before, after in pairwise(frames)]
    return [*(min(MOST_S, max(LEAST_S, gap)) for gap in gaps), LAST_S]


def animated_svg(frames: Sequence[Frame], *, title: str, still: int = 0) -> str:
    """Return an SVG document that shows frames of one size, over and over; `still` is the one without animation."""
    width = max(sum(cell_len(segment.text) for segment in row) for row in frames[0].rows)
    height = len(frames[0].rows)
    spans = durations(frames)
    total_s = sum(spans)
    starts = [sum(spans[:at]) / total_s for at in range(len(frames) + 1)]
    versions: dict[tuple[int, str], list[int]] = {}
    """By row and what it looks like, the frames in which it does."""
    for at, frame in enumerate(frames):
        for y, row in enumerate(frame.rows[:height]):
            versions.setdefault((y, _row_svg(row)), []).append(at)
        versions.setdefault((-1, _caption_svg(frame.caption, width)), []).append(at)
    names = {seen: f"s{number}" for number, seen in enumerate(dict.fromkeys(map(tuple, versions.values())))}
    styles = [_animation(name, seen, starts, total_s, still) for seen, name in names.items() if len(seen) < len(frames)]
    body = []
    for (y, drawn), seen in sorted(versions.items(), key=lambda item: item[0][0]):
        top = EDGE / 2 if y < 0 else HEAD + y * LINE
        is_always = len(seen) == len(frames)
        which = "" if is_always else f' class="{names[tuple(seen)]}"'
        body.append(f'<g transform="translate({EDGE} {top:g})"{which}>{drawn}</g>')
    background = _hex(frames[0].rows[0][0], of_text=False)
    size = f"{width * CELL + 2 * EDGE:g} {height * LINE + HEAD + EDGE:g}"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" aria-label={quoteattr(title)}>',
        f"<style>text{{font:{FONT}px 'Fira Code','DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}",
        ".b{font-weight:bold}.c{font-family:sans-serif;fill:#98a3b5}",
        *styles,
        "@media(prefers-reduced-motion:reduce){g{animation:none!important}}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>',
        f'<text class="c b" x="{EDGE}" y="19">{escape(title)}</text>',
        *body,
        "</svg>\n",
    ])  # fmt: skip


def _animation(name: str, seen: Sequence[int], starts: Sequence[float], total_s: float, still: int) -> str:
    """Return the style of what is seen in some frames."""
    shown = set(seen)
    steps, before = [], None
    for at in range(len(starts) - 1):
        now = at in shown
        if now is not before:
            steps.append(f"{100 * starts[at]:.2f}%{{visibility:{'visible' if now else 'hidden'}}}")
        before = now
    rest = "visible" if still in shown else "hidden"
    keyframes = f"@keyframes {name}{{{''.join(steps)}}}"
    return f".{name}{{visibility:{rest};animation:{name} {total_s:g}s step-end infinite}}{keyframes}"


def _row_svg(row: Row) -> str:
    """Return a row: its backgrounds, then its texts, each run of cells of one style at once."""
    backgrounds, texts, x = [], [], 0
    for (fill, ink, is_bold), run in groupby(row, key=_look):
        text = "".join(segment.text for segment in run)
        cells = cell_len(text)
        backgrounds.append((fill, x, cells))
        bold = ' class="b"' if is_bold else ""
        for word in _WORDS.finditer(text):
            at, wide = x + cell_len(text[: word.start()]), cell_len(word[0])
            texts.append(
                f'<text x="{at * CELL:.4g}" y="{BASELINE}" fill="{ink}"{bold} '
                f'textLength="{wide * CELL:.4g}">{escape(word[0])}</text>'
            )
        x += cells
    return "".join([*_rectangles(backgrounds), *texts])


def _rectangles(backgrounds: Iterable[tuple[str, int, int]]) -> list[str]:
    found = []
    for fill, runs in groupby(backgrounds, key=lambda one: one[0]):
        cells = [(x, width) for _, x, width in runs]
        start, width = cells[0][0], sum(width for _, width in cells)
        found.append(
            f'<rect x="{start * CELL:.4g}" width="{width * CELL + 0.3:.4g}" height="{LINE + 0.3}" fill="{fill}"/>'
        )
    return found


def _caption_svg(caption: str, width: int) -> str:
    if not caption:
        return ""
    return f'<text class="c" x="{width * CELL:.4g}" y="{BASELINE}" text-anchor="end">{escape(caption)}</text>'


def _look(segment: Segment) -> tuple[str, str, bool]:
    """Return background, ink and weight of a segment."""
    style = segment.style
    fill, ink = _hex(segment, of_text=False), _hex(segment, of_text=True)
    return (ink, fill, bool(style.bold)) if style is not None and style.reverse else (
        fill, ink, style is not None and bool(style.bold)
    )  # fmt: skip


def _hex(segment: Segment, *, of_text: bool, theme: TerminalTheme = DIMMED_MONOKAI) -> str:
    """Return a colour of a segment as SVG writes it."""
    style = segment.style
    colour: Color | None = None if style is None else style.color if of_text else style.bgcolor
    plain = theme.foreground_color if of_text else theme.background_color
    return (plain if colour is None else colour.get_truecolor(theme, foreground=of_text)).hex
