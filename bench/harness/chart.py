# SPDX-License-Identifier: MIT
"""Pictures: the ratios of a result as horizontal bars with their quartiles, in plain SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape

from .processes import Failure

WIDTH, LABEL, RIGHT = 760, 150, 120
BAR, GAP, HEADING, TOP = 18, 6, 34, 56
INK, OWN, OTHER, GRID = "#222", "#0b6e4f", "#9aa5b1", "#ddd"
STYLE = ('font-family="system-ui, sans-serif" '
         'font-size="13" fill="#222"')


class Canvas:
    """Elements in the order in which they are painted."""

    def __init__(self) -> None:
        self.elements: list[str] = []

    def text(self, x: float, y: float, content: str, more: str = "") -> None:
        self.elements.append(f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(content)}</text>')

    def bar(self, x: float, y: float, width: float, colour: str) -> None:
        self.elements.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" '
                             f'fill="{colour}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
        self.elements.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                             f'stroke="{colour}" stroke-width="1.5"/>')

    def document(self, height: float) -> str:
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
                f'viewBox="0 0 {WIDTH} {height:.0f}" {STYLE}>\n'
                f'<rect width="100%" height="100%" fill="#fff"/>\n'
                + "\n".join(self.elements) + "\n</svg>\n")


def plain_verdicts(case: dict) -> list[dict]:
    return [verdict for verdict in case["verdicts"] if verdict["target"] is None]


def draw_case(canvas: Canvas, case: dict, top: float, scale: float) -> float:
    """Paints one group of bars and returns where it ends."""
    canvas.text(8, top + 16, case["name"], 'font-weight="600"')
    y = top + HEADING - 8
    for verdict in plain_verdicts(case):
        ratio = verdict["ratio"]
        colour = OWN if verdict["subject"].startswith("gori") else OTHER
        middle = y + BAR / 2
        canvas.text(LABEL - 8, middle + 4, verdict["subject"], 'text-anchor="end"')
        canvas.bar(LABEL, y, ratio["median"] * scale, colour)
        canvas.line(LABEL + ratio["low"] * scale, middle,
                    LABEL + ratio["high"] * scale, middle, INK)
        canvas.text(LABEL + max(ratio["high"], ratio["median"]) * scale + 6, middle + 4,
                    f"{ratio['median']:.2f}")
        y += BAR + GAP
    return y + GAP


def ratios(result: dict) -> str:
    """The whole picture; shorter is better, the thin line spans the quartiles of the rounds."""
    cases = [case for case in result["cases"] if plain_verdicts(case)]
    if not cases:
        raise Failure("the result has no ratios to draw")
    most = max(verdict["ratio"]["high"] for case in cases for verdict in plain_verdicts(case))
    scale = (WIDTH - LABEL - RIGHT) / max(most, 1.0)
    canvas = Canvas()
    place = result["environment"]
    canvas.text(8, 22, f"{result['scenario']}: CPU of the server per request, ratio to "
                f"{result['baseline']} (less is better)", 'font-weight="600" font-size="15"')
    canvas.text(8, 42, f"{place['cpu']}, kernel {place['kernel']}, {place['os']}, "
                f"{place['virtualisation']}", 'fill="#666"')
    bottom: float = TOP
    for case in cases:
        bottom = draw_case(canvas, case, bottom, scale)
    canvas.elements.insert(2, f'<line x1="{LABEL + scale:.1f}" y1="{TOP}" x2="{LABEL + scale:.1f}" '
                           f'y2="{bottom - GAP:.1f}" stroke="{GRID}" stroke-width="2"/>')
    return canvas.document(bottom + 4)
