# SPDX-License-Identifier: MIT
"""What connections cost that do nothing: user memory, wake-ups, and the price of one active
connection among them."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import Sequence

from . import contestants, report
from .contestants import Contestant
from .figures import Spread, Verdict, ratios
from .load import Generator, Idle, Load, Work
from .processes import Failure
from .result import envelope
from .rounds import progress
from .settings import SLICE_S, Settings

FEW = 100
BYTES_TARGET = 600.0
ACTIVE_TARGET = 1.05
ACTIVE = Work("echo", 1)


def measure_rest(entry: Contestant, generator: Generator, count: int, settings: Settings,
                 seconds: float) -> dict:
    """Memory for each of `count` idle connections, and wake-ups per second at rest."""
    with entry.start(settings) as server:
        before = server.private_bytes()
        with Idle(generator, server, count):
            time.sleep(0.5)  # the last accept has had its turn; what follows is rest
            bytes_each = (server.private_bytes() - before) / count
            wake_ups = server.wake_ups()
            time.sleep(seconds)
            wake_ups = server.wake_ups() - wake_ups
    return {"bytes_per_connection": bytes_each, "wake_ups_per_second": wake_ups / seconds}


def measure_active(entry: Contestant, generator: Generator, count: int,
                   settings: Settings) -> dict:
    """CPU per request of one active connection, among few and among many, round by round."""
    few: list[float] = []
    many: list[float] = []
    errors = 0
    with entry.start(settings) as small, entry.start(settings) as large, \
            Idle(generator, small, FEW), Idle(generator, large, count):
        for _ in range(settings.rounds):
            with Load(generator, small, ACTIVE, SLICE_S, settings.warmup) as among_few, \
                    Load(generator, large, ACTIVE, SLICE_S, settings.warmup) as among_many:
                pair = [among_few, among_many]
                for turn in range(settings.slices()):
                    for load in pair if turn % 2 == 0 else reversed(pair):
                        load.run_slice()
                few.append(among_few.report()["cpu_ns"])
                many.append(among_many.report()["cpu_ns"])
                errors += among_few.total["errors"] + among_many.total["errors"]
    return {"cpu_ns_among_few": few, "cpu_ns_among_many": many, "errors": errors,
            "active_ratio": asdict(Spread.of(ratios(many, few)))}


def measure(entry: Contestant, generator: Generator, count: int, settings: Settings,
            quick: bool) -> dict:
    found = entry.as_json()
    if entry.absent:
        return found
    try:
        progress(f"idle: {entry.name}")
        rest = measure_rest(entry, generator, count, settings, 1.0 if quick else 5.0)
        active = measure_active(entry, generator, count, settings)
    except Failure as failure:
        return {**found, "absent": str(failure)}
    return {**found, **rest, **active}


def run(options: argparse.Namespace, settings: Settings, environment: dict) -> dict:
    folder = options.build / "bench"
    generator = Generator(folder, settings)
    entries = [*contestants.raw(folder), *contestants.libraries(folder),
               *contestants.gori(["echo"], options.build, options.gori)]
    found = [measure(entry, generator, options.count, settings, options.quick)
             for entry in contestants.named(entries, options.only)]
    progress("")
    case = {"name": f"{options.count} idle connections", "contestants": found,
            "verdicts": verdicts(found)}
    return envelope("idle", f"one active among {FEW}", [case], environment,
                    {**settings.as_json(), "count": options.count})


def verdicts(found: Sequence[dict]) -> list[dict]:
    """The ratio of many to few for everybody, with the target where it is gori."""
    return [Verdict(entry["name"], f"itself among {FEW}", Spread(**entry["active_ratio"]),
                    ACTIVE_TARGET if entry["name"].startswith("gori") else None).as_json()
            for entry in found if not entry["absent"]]


def row(entry: dict) -> list[str]:
    judged = entry["name"].startswith("gori")
    good_bytes = entry["bytes_per_connection"] <= BYTES_TARGET
    good_rest = entry["wake_ups_per_second"] == 0
    return [entry["name"],
            f"{entry['bytes_per_connection']:,.0f}", word(judged, good_bytes),
            f"{entry['wake_ups_per_second']:.1f}", word(judged, good_rest),
            report.microseconds(Spread.of(entry["cpu_ns_among_few"]).median),
            report.microseconds(Spread.of(entry["cpu_ns_among_many"]).median),
            report.spread(entry["active_ratio"]),
            word(judged, entry["active_ratio"]["median"] <= ACTIVE_TARGET), str(entry["errors"])]


def word(judged: bool, good: bool) -> str:
    return ("ok" if good else "miss") if judged else ""


def lines(result: dict) -> list[str]:
    """The table for people."""
    case = result["cases"][0]
    present = [entry for entry in case["contestants"] if not entry["absent"]]
    heading = ["", "bytes each", f"<= {BYTES_TARGET:.0f}", "wake-ups/s", "0",
               f"us/req of {FEW}", "of many", "ratio", f"<= {ACTIVE_TARGET:.2f}", "errors"]
    found = ["", f"idle: {case['name']}"]
    if present:
        found += report.table(heading, [row(entry) for entry in present])
    return found + [f"{entry['name']} is absent: {entry['absent']}"
                    for entry in case["contestants"] if entry["absent"]]
