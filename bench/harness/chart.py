# SPDX-License-Identifier: MIT
"""Pictures: the ratios of a result as horizontal bars with their quartiles, in plain SVG."""

from __future__ import annotations

from typing import Sequence
from xml.sax.saxutils import escape

from .processes import Failure
from .scenarios import MODELS_BASELINE

WIDTH, RIGHT = 760, 120
LABEL_LEAST, CHARACTER = 150, 7.2  # a system's sans-serif is about as wide as this on average
BAR, GAP, HEADING, TOP = 18, 6, 34, 56
INK, OWN, OTHER, GRID = "#222", "#0b6e4f", "#9aa5b1", "#ddd"
OURS = ("gori", MODELS_BASELINE)  # how the names of our own begin
STYLE = ('font-family="system-ui, sans-serif" '
         'font-size="13" fill="#222"')


class Canvas:
    """Elements in the order in which they are painted; names end where `label` is."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.elements: list[str] = []
        self.label = max([LABEL_LEAST, *(16 + CHARACTER * len(name) for name in names)])

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
    y, label = top + HEADING - 8, canvas.label
    for verdict in plain_verdicts(case):
        ratio = verdict["ratio"]
        colour = OWN if verdict["subject"].startswith(OURS) else OTHER
        middle = y + BAR / 2
        canvas.text(label - 8, middle + 4, verdict["subject"], 'text-anchor="end"')
        canvas.bar(label, y, ratio["median"] * scale, colour)
        canvas.line(label + ratio["low"] * scale, middle,
                    label + ratio["high"] * scale, middle, INK)
        canvas.text(label + max(ratio["high"], ratio["median"]) * scale + 6, middle + 4,
                    f"{ratio['median']:.2f}")
        y += BAR + GAP
    return y + GAP


def ratios(result: dict) -> str:
    """The whole picture; shorter is better, the thin line spans the quartiles of the rounds."""
    cases = [case for case in result["cases"] if plain_verdicts(case)]
    if not cases:
        raise Failure("the result has no ratios to draw")
    most = max(verdict["ratio"]["high"] for case in cases for verdict in plain_verdicts(case))
    canvas = Canvas([verdict["subject"] for case in cases for verdict in plain_verdicts(case)])
    scale = (WIDTH - canvas.label - RIGHT) / max(most, 1.0)
    one = canvas.label + scale
    place = result["environment"]
    canvas.text(8, 22, f"{result['scenario']}: CPU of the server per request, ratio to "
                f"{result['baseline']} (less is better)", 'font-weight="600" font-size="15"')
    canvas.text(8, 42, f"{place['cpu']}, kernel {place['kernel']}, {place['os']}, "
                f"{place['virtualisation']}", 'fill="#666"')
    bottom: float = TOP
    for case in cases:
        bottom = draw_case(canvas, case, bottom, scale)
    canvas.elements.insert(2, f'<line x1="{one:.1f}" y1="{TOP}" x2="{one:.1f}" '
                           f'y2="{bottom - GAP:.1f}" stroke="{GRID}" stroke-width="2"/>')
    return canvas.document(bottom + 4)
