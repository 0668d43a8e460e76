# SPDX-License-Identifier: MIT
"""The cost of asking who is ready: idle connections by the thousand, and one active."""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import asdict

from . import report
from .chart import GRID, OWN, WIDTH, Canvas
from .figures import Spread, median
from .load import finish
from .processes import Failure, placed
from .result import envelope
from .rounds import progress
from .settings import Settings

POLLERS = {"select": "select", "poll": "poll", "epoll": "epoll", "io_uring, poll": "uring_poll",
           "io_uring, receive": "uring_receive", "kqueue": "kqueue"}
FLAT = ("epoll", "io_uring, poll", "io_uring, receive")
FLAT_RATIO = 1.1
LIMIT_S = 120.0


def one_run(path: str, poller: str, idle: int, settings: Settings) -> dict:
    command = [path, POLLERS[poller], str(idle)]
    return json.loads(finish(command, LIMIT_S, placed([settings.server_cpus[0]],
                                                      settings.realtime)))


def case_of(idle: int, runs: dict[str, list[dict]]) -> dict:
    """One number of idle connections: what each poller took, or why it could not."""
    found = []
    for poller, answers in runs.items():
        reason = next((answer["absent"] for answer in answers if "absent" in answer), None)
        values = [] if reason else [answer["round"] for answer in answers]
        found.append({"name": poller, "absent": reason, "rounds": values, "target": None,
                      "nanoseconds": asdict(Spread.of(values)) if values else None})
    return {"name": f"{idle} idle, 1 active", "idle": idle, "contestants": found, "verdicts": []}


def run(options: argparse.Namespace, settings: Settings, environment: dict) -> dict:
    path = options.build / "bench" / "micro_readiness"
    if not os.access(path, os.X_OK):
        raise Failure("micro_readiness is not built")
    runs: dict[int, dict[str, list[dict]]] = {
        idle: {poller: [] for poller in POLLERS} for idle in options.idle}
    for turn in range(settings.rounds):
        for poller in POLLERS:
            progress(f"{poller}: round {turn + 1} of {settings.rounds}")
            for idle in options.idle:  # one after the other: their ratio is what is wanted
                runs[idle][poller].append(one_run(str(path), poller, idle, settings))
    progress("")
    cases = [case_of(idle, runs[idle]) for idle in options.idle]
    return envelope("readiness", "none", cases, environment, settings.as_json())


def points(result: dict, poller: str) -> list[tuple[int, dict]]:
    """Idle connections and figure, where there is one."""
    return [(case["idle"], entry["nanoseconds"]) for case in result["cases"]
            for entry in case["contestants"]
            if entry["name"] == poller and entry["nanoseconds"]]


def slope(found: list[tuple[int, dict]]) -> str:
    """Nanoseconds that each idle connection adds, from the fewest to the most of them."""
    if len(found) < 2:
        return "-"
    (few, least), (many, most) = found[0], found[-1]
    return f"{(most['median'] - least['median']) / (many - few):.2f}"


def growth(result: dict, poller: str) -> list[float]:
    """The most idle connections against the fewest, round by round."""
    rounds = [entry["rounds"] for case in result["cases"] for entry in case["contestants"]
              if entry["name"] == poller and entry["rounds"]]
    return [last / first for first, last in zip(rounds[0], rounds[-1])] if len(rounds) > 1 else []


def lines(result: dict) -> list[str]:
    counts = [case["idle"] for case in result["cases"]]
    rows = []
    for poller in POLLERS:
        found = dict(points(result, poller))
        cells = [f"{found[idle]['median']:,.0f}" if idle in found else "unavailable"
                 for idle in counts]
        rows.append([poller, *cells, slope(points(result, poller))])
    heading = ["ns per round", *(f"{idle:,} idle" for idle in counts), "ns per idle one"]
    shown = ["", *report.table(heading, rows), ""]
    for poller in FLAT:
        ratios = growth(result, poller)
        if ratios:
            verdict = "ok" if median(ratios) <= FLAT_RATIO else "miss"
            shown.append(f"{poller}: {counts[-1]:,} idle / {counts[0]:,} idle = "
                         f"{median(ratios):.3f}, wanted <= {FLAT_RATIO:.2f}: {verdict}")
    for case in result["cases"]:
        shown += [f"{entry['name']} is unavailable with {case['idle']:,} idle: {entry['absent']}"
                  for entry in case["contestants"] if entry["absent"]]
    return shown


COLOURS = {"select": "#b5651d", "poll": "#c0392b", "epoll": OWN, "io_uring, poll": "#2b6cb0",
           "io_uring, receive": "#6b46c1", "kqueue": "#555"}
LEFT, TOP, SIDE, HEIGHT = 70, 64, 535, 320


def picture(result: dict) -> str:
    """Both axes logarithmic: a flat line does not care how many are idle."""
    canvas = Canvas()
    place = result["environment"]
    canvas.text(8, 22, "One active connection among idle ones: microseconds per round",
                'font-weight="600" font-size="15"')
    canvas.text(8, 42, f"{place['cpu']}, kernel {place['kernel']}, {place['os']}, "
                f"{place['virtualisation']}", 'fill="#666"')
    counts = [case["idle"] for case in result["cases"]]
    figures = [figure["median"] for poller in POLLERS for _, figure in points(result, poller)]
    if not figures:
        raise Failure("the result has no figure to draw")
    low, high = math.floor(math.log10(min(figures))), math.ceil(math.log10(max(figures)))
    high = max(high, low + 1)
    reach = math.log10(max(counts) / min(counts)) or 1.0

    def across(idle: int) -> float:
        return LEFT + SIDE * math.log10(idle / min(counts)) / reach

    def up(value: float) -> float:
        return TOP + HEIGHT * (high - math.log10(value)) / (high - low)

    for power in range(low, high + 1):
        canvas.line(LEFT, up(10.0 ** power), LEFT + SIDE, up(10.0 ** power), GRID)
        canvas.text(LEFT - 8, up(10.0 ** power) + 4, f"{10.0 ** power / 1000:g}",
                    'text-anchor="end"')
    for idle in counts:
        canvas.text(across(idle), TOP + HEIGHT + 22, f"{idle:,} idle", 'text-anchor="middle"')
    for poller in POLLERS:
        found = points(result, poller)
        for (idle, one), (next_idle, other) in zip(found, found[1:]):
            canvas.line(across(idle), up(one["median"]), across(next_idle), up(other["median"]),
                        COLOURS[poller])
    for index, poller in enumerate(name for name in POLLERS if points(result, name)):
        canvas.line(LEFT + SIDE + 14, TOP + 20 * index, LEFT + SIDE + 30, TOP + 20 * index,
                    COLOURS[poller])
        canvas.text(LEFT + SIDE + 36, TOP + 20 * index + 4, poller, 'font-size="11"')
    return canvas.document(TOP + HEIGHT + 40)
