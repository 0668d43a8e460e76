# SPDX-License-Identifier: MIT
"""Small programs that time one operation of gori by themselves, in nanoseconds each."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from dataclasses import asdict

from . import report
from .figures import Spread, median
from .processes import Failure, placed
from .result import envelope
from .rounds import progress
from .settings import Settings

LIMIT_S = 300.0

# Program, whether it needs a second CPU, and the targets: nanoseconds, or another row and how many
# times that.
PROGRAMS = {
    "timers": ("micro_timers", False, {"start": 60.0, "restart later": 60.0,
                                       "restart anywhere": 60.0, "stop": 60.0}),
    "post": ("micro_post", True, {"busy loop: post": 100.0,
                                  "sleeping loop: post": ("eventfd: write", 1.0),
                                  "sleeping loop: until it runs": ("eventfd: until it runs", 1.0)}),
}


def run(options: argparse.Namespace, settings: Settings, environment: dict) -> dict:
    """The program prints one JSON object per run: operation to nanoseconds."""
    name, two_cpus, targets = PROGRAMS[options.command]
    program = options.build / "bench" / name
    if not os.access(program, os.X_OK):
        raise Failure(f"{name} is not built: this gori has no such part yet")
    cpus = [*settings.server_cpus, *settings.load_cpus] if two_cpus else settings.server_cpus
    figures: dict[str, list[float]] = {}
    for turn in range(settings.rounds):
        progress(f"{options.command}: round {turn + 1} of {settings.rounds}")
        done = subprocess.run([str(program)], capture_output=True, text=True, timeout=LIMIT_S,
                              check=False, preexec_fn=placed(cpus, settings.realtime))
        if done.returncode != 0:
            raise Failure(f"{name}: {done.stderr.strip() or done.returncode}")
        for operation, nanoseconds in json.loads(done.stdout).items():
            figures.setdefault(operation, []).append(nanoseconds)
    progress("")
    found = [{"name": operation, "absent": None, "nanoseconds": asdict(Spread.of(values)),
              "rounds": values, "target": limit(targets.get(operation), figures)}
             for operation, values in figures.items()]
    return envelope(options.command, "none",
                    [{"name": options.command, "contestants": found, "verdicts": []}],
                    environment, settings.as_json())


def limit(target: float | tuple[str, float] | None,
          figures: dict[str, list[float]]) -> float | None:
    """A target in nanoseconds, also where it was given in terms of another row."""
    if isinstance(target, tuple):
        return median(figures[target[0]]) * target[1]
    return target


def row(entry: dict) -> list[str]:
    figure, target = entry["nanoseconds"], entry["target"]
    verdict = "" if target is None else "ok" if figure["median"] <= target else "miss"
    return [entry["name"], f"{figure['median']:.1f} ({figure['low']:.1f}..{figure['high']:.1f})",
            "-" if target is None else f"<= {target:.0f}", verdict]


def lines(result: dict) -> list[str]:
    entries = result["cases"][0]["contestants"]
    return ["", *report.table([result["scenario"], "ns each", "wanted", ""],
                              [row(entry) for entry in entries])]
