"""A curve over time as a small SVG picture, with the limit that it must stay under."""

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 720, 240, 56, 28, 28
MOST_POINTS = 400


def curve(points: Sequence[tuple[float, float]], *, title: str, limit: float, unit: str) -> str:
    """Points are seconds and values; of many, the highest of each stretch is drawn, so that no peak is lost."""
    longest = max((at for at, _ in points), default=0) or 1.0
    highest = max(limit, *(value for _, value in points)) * 1.1

    def x(at: float) -> float:
        return LEFT + at / longest * (WIDTH - LEFT - 12)

    def y(value: float) -> float:
        return HEIGHT - BELOW - value / highest * (HEIGHT - BELOW - ABOVE)

    path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in thinned(points))
    size, right, bottom = f'width="{WIDTH}" height="{HEIGHT}"', WIDTH - 12, f"{y(0):.1f}"
    red = f'y1="{y(limit):.1f}" y2="{y(limit):.1f}" stroke="#c33" stroke-dasharray="6 4"'
    text = 'font-family="sans-serif" font-size="12" fill="#444"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {size}>',
            f'<rect {size} fill="#fff"/>',
            f'<text x="{LEFT}" y="16" {text}>{escape(title)}</text>',
            f'<line x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}" stroke="#888"/>',
            f'<line x1="{LEFT}" x2="{right}" {red}/>',
            f'<text x="4" y="{y(limit) + 4:.1f}" {text}>{limit:g} {escape(unit)}</text>',
            f'<text x="4" y="{y(0) + 4:.1f}" {text}>0</text>',
            f'<text x="{LEFT}" y="{HEIGHT - 8}" {text}>0 s</text>',
            f'<text x="{right}" y="{HEIGHT - 8}" text-anchor="end" {text}>{longest:.0f} s</text>',
            f'<polyline points="{path}" fill="none" stroke="#26c" stroke-width="1.5"/>',
            "</svg>",
            "",
        ]
    )


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    step = max(-(-len(points) // MOST_POINTS), 1)
    return [max(points[start : start + step], key=lambda point: point[1]) for start in range(0, len(points), step)]
