"""Small plots as inline SVG, without scripts or network. The page's style sets the colors, light or dark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 460


@dataclass(frozen=True)
class Bar:
    """One bar: a name, its length, and the label next to it."""

    name: str
    value: float
    label: str
    highlight: bool = False


@dataclass(frozen=True)
class Range:
    """A measured share with its confidence interval, and the claimed share."""

    name: str
    value: float
    low: float
    high: float
    claim: float | None


@dataclass(frozen=True)
class Point:
    """A candidate policy in the plane of risk and utility."""

    name: str
    x: float
    y: float
    on_frontier: bool


def bars(title: str, items: Sequence[Bar], room: int = 150) -> str:
    """Return horizontal bars, one per item."""
    top = max((item.value for item in items), default=0) or 1
    span = WIDTH - room - 96
    rows = []
    for number, item in enumerate(items):
        y = 6 + number * 24
        width = max(1.0 if item.value > 0 else 0.0, span * item.value / top)
        rows.append(
            f'<text class="label" x="{room - 8}" y="{y + 13}" text-anchor="end">{escape(_short(item.name, room))}</text>'
            f'<rect class="{"bar hot" if item.highlight else "bar"}" x="{room}" y="{y}" width="{width:.1f}" height="17" rx="2"/>'
            f'<text class="value" x="{room + width + 6:.1f}" y="{y + 13}">{escape(item.label)}</text>'
        )
    return draw(title, "".join(rows), 12 + 24 * len(items))


def pairs(title: str, items: Sequence[tuple[str, float, float]], room: int = 110) -> str:
    """Return two thin bars per name: the share before above the share after."""
    top = max((max(before, after) for _, before, after in items), default=0) or 1
    span = WIDTH - room - 60
    rows = []
    for number, (name, before, after) in enumerate(items):
        y = 6 + number * 20
        rows.append(
            f'<text class="label" x="{room - 8}" y="{y + 12}" text-anchor="end">{escape(_short(name, room))}</text>'
            f'<rect class="dot dull" x="{room}" y="{y}" width="{span * before / top:.1f}" height="7" rx="1"/>'
            f'<rect class="bar" x="{room}" y="{y + 8}" width="{span * after / top:.1f}" height="7" rx="1"/>'
            f'<text class="value" x="{WIDTH - 4}" y="{y + 12}" text-anchor="end">{before:.0%} / {after:.0%}</text>'
        )
    return draw(title, "".join(rows), 12 + 20 * len(items))


def ranges(
    title: str,
    items: Sequence[Range],
    room: int = 112,
    *,
    top: float = 1.0,
    label: Callable[[float, int], str] = lambda share, digits: f"{share:.{digits}%}",
) -> str:
    """Return one dot with its interval per item and a tick at the claim, from 0 to `top`."""
    span = WIDTH - room - 62
    height = 28 * len(items) + 34

    def at(share: float) -> float:
        return room + span * min(1.0, max(0.0, share / top))

    grid = "".join(
        f'<line class="grid" x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="4" y2="{height - 26}"/>'
        f'<text class="tick" x="{at(tick):.1f}" y="{height - 10}" text-anchor="middle">{label(tick, 0)}</text>'
        for tick in (top * part / 4 for part in range(5))
    )
    rows = []
    for number, item in enumerate(items):
        y = 18 + number * 28
        hot = item.claim is not None and item.low > item.claim
        claim = (
            f'<line class="claim" x1="{at(item.claim):.1f}" x2="{at(item.claim):.1f}" y1="{y - 10}" y2="{y + 10}"/>'
            if item.claim is not None
            else ""
        )
        rows.append(
            f'<text class="label" x="{room - 8}" y="{y + 4}" text-anchor="end">{escape(item.name)}</text>{claim}'
            f'<line class="whisker" x1="{at(item.low):.1f}" x2="{at(item.high):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="{"dot hot" if hot else "dot"}" cx="{at(item.value):.1f}" cy="{y}" r="5"/>'
            f'<text class="value" x="{WIDTH - 4}" y="{y + 4}" text-anchor="end">{label(item.value, 1)}</text>'
        )
    return draw(title, grid + "".join(rows), height)


def frontier(title: str, points: Sequence[Point], x_name: str, y_name: str) -> str:
    """Return candidates by risk (right is worse) and error (up is worse), with a line along the frontier."""
    left, bottom, top = 60, 220, 20
    span = WIDTH - left - 30
    x_top = max((point.x for point in points), default=0) * 1.15 or 1
    y_top = max((point.y for point in points), default=0) * 1.15 or 1
    digits = 0 if y_top > 0.2 else 1 if y_top > 0.02 else 2

    def place(point: Point) -> tuple[float, float]:
        return left + span * point.x / x_top, bottom - (bottom - top) * point.y / y_top

    ticks = "".join(
        f'<line class="grid" x1="{left + span * i / 4:.1f}" x2="{left + span * i / 4:.1f}" y1="{top}" y2="{bottom}"/>'
        f'<text class="tick" x="{left + span * i / 4:.1f}" y="{bottom + 16}" text-anchor="middle">{x_top * i / 4:.1%}</text>'
        f'<line class="grid" x1="{left}" x2="{left + span}" y1="{bottom - (bottom - top) * i / 4:.1f}" y2="{bottom - (bottom - top) * i / 4:.1f}"/>'
        f'<text class="tick" x="{left - 6}" y="{bottom - (bottom - top) * i / 4 + 4:.1f}" text-anchor="end">{y_top * i / 4:.{digits}%}</text>'
        for i in range(5)
    )
    best = sorted(place(point) for point in points if point.on_frontier)
    line = (
        f'<polyline class="front" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in best)}"/>' if len(best) > 1 else ""
    )
    places = [place(point) for point in points]
    dots = "".join(
        f'<circle class="{"dot" if point.on_frontier else "dot dull"}" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        for point, (x, y) in zip(points, places, strict=True)
    )
    dots += "".join(
        f'<text class="value" x="{x:.1f}" y="{y - 10:.1f}" text-anchor="middle">{", ".join(numbers)}</text>'
        for (x, y), numbers in _merge_labels(places).items()
    )
    axes = (
        f'<text class="tick" x="{left + span / 2:.0f}" y="{bottom + 36}" text-anchor="middle">{escape(x_name)}</text>'
        f'<text class="tick" x="14" y="{(bottom + top) / 2:.0f}" text-anchor="middle" transform="rotate(-90 14 {(bottom + top) / 2:.0f})">{escape(y_name)}</text>'
    )
    return draw(title, ticks + line + dots + axes, bottom + 44)


def _merge_labels(places: Sequence[tuple[float, float]]) -> dict[tuple[float, float], list[str]]:
    """Merge the labels of points that are so close that their labels would overlap."""
    names: dict[tuple[float, float], list[str]] = {}
    for number, (x, y) in enumerate(places, 1):
        near = next((at for at in names if abs(at[0] - x) < 28 and abs(at[1] - y) < 18), (x, y))
        names.setdefault(near, []).append(str(number))
    return names


def _short(name: str, room: int) -> str:
    most = room // 7
    return name if len(name) <= most else name[: most - 1] + "…"


def draw(title: str, body: str, height: int) -> str:
    """Return a plot with its title."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def standalone(svg: str) -> str:
    """Return a plot as a separate file, for light and dark backgrounds, with the colors that a page would set."""
    style = (
        "svg{background:#fff;color:#222;font:13px system-ui,sans-serif}.label,.value,.tick{fill:currentColor}.tick{font-size:11px}"
        "@media(prefers-color-scheme:dark){svg{background:#14191d;color:#dde5ea}}"
        ".bar,.dot{fill:#2563a8}.band{fill:#2563a8;opacity:.2}.hot{fill:#b3261e}.dull{fill:#999}.grid{stroke:#9995}"
        ".whisker,.claim{stroke:currentColor}.front{fill:none;stroke:#2563a8}.mark{stroke:#b3261e;stroke-dasharray:4 3}"
    )
    head, _, body = svg.partition("</title>")
    title, height = head.partition("<title>")[2], int(head.split()[4].strip('"'))
    head = head.replace(f"0 0 {WIDTH} {height}", f"0 -24 {WIDTH} {height + 24}", 1)
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" width="920" ', 1)
    return f'{head}</title><style>{style}</style><text class="label" x="8" y="-8">{title}</text>{body}'
