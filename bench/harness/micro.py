# SPDX-License-Identifier: MIT
"""Small programs that time one operation of gori by themselves, in nanoseconds each."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass, replace

from . import report
from .figures import Spread, median
from .load import finish
from .processes import Failure, placed
from .result import envelope
from .rounds import progress
from .settings import Settings

LIMIT_S = 60.0


@dataclass(frozen=True)
class Program:
    """One micro bench.

    A target is nanoseconds, or the name of the row that is the limit and the factor to it.
    """

    name: str
    variants: tuple[str, ...]  # each a run of its own with this argument; "" is none
    uses_load_cpu: bool
    targets: dict[str, float | tuple[str, float]]
    also: tuple[str, ...] = ()  # further programs of the same subject, each a case of its own
    peers: tuple[str, ...] = ()  # programs that add rows to each case, if they were built


PROGRAMS = {
    "timers": Program("micro_timers", ("",), False,
                      {"start": 60.0, "restart later": 60.0, "restart anywhere": 60.0,
                       "stop": 60.0}),
    "post": Program("micro_post", ("io_uring", "epoll"), True,
                    {"busy loop: post": 100.0,
                     "busy loop: post and run": ("libuv, busy loop: post and run", 1 / 3),
                     "sleeping loop: post": ("eventfd: write", 1.2),
                     "sleeping loop: until it runs": ("eventfd: until it runs", 1.2)},
                    ("micro_wake",), ("post_libuv", "post_asio")),
    "jobs": Program("micro_jobs", ("",), True,
                    {"same worker, own queue": 150.0, "same worker, two queues": 150.0,
                     "balanced, with per thousand of without": 1050.0,
                     "fairness, the queue with the fewest":
                         ("fairness, the queue with the most jobs", 1.5)}),
}


def run(options: argparse.Namespace, settings: Settings, environment: dict) -> dict:
    """The program prints one JSON object per run: operation to nanoseconds."""
    program = PROGRAMS[options.command]
    path = options.build / "bench" / program.name
    if not os.access(path, os.X_OK):
        raise Failure(f"{program.name} is not built: this gori has no such part yet")
    cases = [measure(program, [str(path), *filter(None, [variant])], variant or options.command,
                     settings) for variant in program.variants]
    cases += [measure(replace(program, peers=()), [str(options.build / "bench" / name)], name,
                      settings) for name in program.also]
    return envelope(options.command, "none", cases, environment, settings.as_json())


def pingpong(options: argparse.Namespace, settings: Settings, environment: dict) -> dict:
    """The long form of the test that no wake is lost: once per engine, and it fails if one is."""
    program = Program("micro_pingpong", PROGRAMS["post"].variants, True, {})
    path = options.build / "bench" / program.name
    limit_s = max(LIMIT_S, options.pingpong * 100e-6)
    cases = [measure(program, [str(path), engine, str(options.pingpong)], engine,
                     replace(settings, rounds=1), limit_s) for engine in program.variants]
    return envelope("pingpong", "none", cases, environment, settings.as_json())


def measure(program: Program, command: list[str], case: str, settings: Settings,
            limit_s: float = LIMIT_S) -> dict:
    cpus = [*settings.server_cpus, *(settings.load_cpus if program.uses_load_cpu else [])]
    folder = os.path.dirname(command[0])
    peers = [[os.path.join(folder, peer)] for peer in program.peers
             if os.access(os.path.join(folder, peer), os.X_OK)]
    figures: dict[str, list[float]] = {}
    for turn in range(settings.rounds):
        progress(f"{case}: round {turn + 1} of {settings.rounds}")
        for one in [command, *peers]:
            output = finish(one, limit_s, placed(cpus, settings.realtime))
            for operation, nanoseconds in json.loads(output).items():
                figures.setdefault(operation, []).append(nanoseconds)
    progress("")
    found = [{"name": operation, "absent": None, "nanoseconds": asdict(Spread.of(values)),
              "rounds": values, "target": limit(program.targets.get(operation), figures)}
             for operation, values in figures.items()]
    return {"name": case, "contestants": found, "verdicts": []}


def limit(target: float | tuple[str, float] | None,
          figures: dict[str, list[float]]) -> float | None:
    """A target in nanoseconds, also where it was given in terms of another row."""
    if not isinstance(target, tuple):
        return target
    row_name, factor = target
    return median(figures[row_name]) * factor if row_name in figures else None


def row(entry: dict) -> list[str]:
    figure, target = entry["nanoseconds"], entry["target"]
    verdict = "" if target is None else "ok" if figure["median"] <= target else "miss"
    return [entry["name"], f"{figure['median']:.1f} ({figure['low']:.1f}..{figure['high']:.1f})",
            "-" if target is None else f"<= {target:.0f}", verdict]


def lines(result: dict) -> list[str]:
    found = []
    for case in result["cases"]:
        found += ["", *report.table([case["name"], "ns each", "wanted", ""],
                                    [row(entry) for entry in case["contestants"]])]
    return found
