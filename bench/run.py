#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures gori and its peers: ./dev bench NAME.  The method is in bench/README.md.

Exit status: 0 when everything that was there was measured without a failed request (whether or not
a target was met), 1 when something failed, 2 for wrong usage and for results that must not be
compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Optional, Sequence

from harness import (chart, environment, idle, micro, readiness, report, result, rounds,
                     scenarios)
from harness.contestants import named
from harness.load import Generator
from harness.processes import Failure
from harness.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


def counts(text: str) -> list[int]:
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers") from error
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError("numbers from 1 on, please")
    return values


def positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("a number above 0, please")
    return value


def add_measuring_options(parser: argparse.ArgumentParser, draws: bool = True) -> None:
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench",
                        help="the build folder of the contestants (default: build/bench)")
    parser.add_argument("--gori", type=Path, help="another gori program than that of the build")
    parser.add_argument("--rounds", type=int, help="how often everybody runs")
    parser.add_argument("--seconds", type=positive, help="how long each run is counted")
    parser.add_argument("--quick", action="store_true", help="few and short rounds: just a look")
    parser.add_argument("--realtime", action="store_true",
                        help="go before everybody else on these CPUs (root), if others work here")
    parser.add_argument("--only", metavar="REGEX", help="only the contestants whose name matches")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole result there")
    if draws:
        parser.add_argument("--svg", type=Path, metavar="FILE",
                            help="write the ratios as a picture")
    else:
        parser.set_defaults(svg=None)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench", description="Measures gori and its peers.",
        epilog="Example: ./dev bench echo --connections 50,200 --rounds 9 --json echo.json")
    commands = parser.add_subparsers(dest="command", required=True, metavar="NAME")
    echoes = []
    for name, text in (("echo", "64-byte ping-pong: everybody"),
                       ("overhead", "the same on each interface: by hand, by gori, libuv, asio")):
        echo = commands.add_parser(name, help=text)
        echoes.append(echo)
        add_measuring_options(echo)
        echo.add_argument("--connections", type=counts, default=[1, 50, 200])
        echo.add_argument("--workers", type=counts, default=[1])
        echo.add_argument("--size", type=int, default=64, help="bytes per message")
    web = commands.add_parser("web", help="static files over keep-alive")
    add_measuring_options(web)
    web.add_argument("--connections", type=counts, default=[50])
    for parser_of_load in (*echoes, web):
        parser_of_load.add_argument("--pace", choices=("free", "step"), default="free",
                                    help="each connection by itself, or all together")
    models = commands.add_parser("models", help="one server in three models: a loop per core, one "
                                 "loop under a mutex, one loop and a lock-free map")
    add_measuring_options(models)
    models.add_argument("--workers", type=counts,
                        help="default: 1 to the CPUs, and twice as many (oversubscribed)")
    models.add_argument("--connections", type=int, default=200)
    resting = commands.add_parser("idle", help="what connections cost that do nothing")
    add_measuring_options(resting)
    resting.add_argument("--count", type=int, default=10000, help="idle connections")
    asking = commands.add_parser("readiness", help="the cost of asking who is ready")
    add_measuring_options(asking)
    asking.add_argument("--idle", type=counts, default=[100, 1000, 10000],
                        help="numbers of idle connections (default: 100,1000,10000)")
    for name, text in (("timers", "start, stop and restart among 1,000,000 timers"),
                       ("post", "messages to a busy and to a sleeping loop"),
                       ("jobs", "a job through a queue, stealing, fairness")):
        measured = commands.add_parser(name, help=text)
        add_measuring_options(measured, draws=False)
        if name == "post":
            measured.add_argument("--pingpong", type=int, nargs="?", const=10_000_000,
                                  metavar="MESSAGES", help="instead: two loops that sleep as "
                                  "often as they can; fails when a wake is lost (10,000,000)")
    compare = commands.add_parser("compare", help="two results of the same environment")
    compare.add_argument("before")
    compare.add_argument("after")
    draw = commands.add_parser("chart", help="draw a result as SVG")
    draw.add_argument("result")
    draw.add_argument("svg", type=Path)
    return parser.parse_args(arguments)


def split_cpus(workers: int) -> tuple[list[int], list[int]]:
    """CPUs for the server and for the load.  The load keeps the last one to itself if it can."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) == 1:
        return usable, usable
    return usable[:max(1, min(workers, len(usable) - 1))], usable[-1:]


def settings_of(options: argparse.Namespace, workers: int, default_rounds: int) -> Settings:
    server_cpus, load_cpus = split_cpus(workers)
    quick = options.quick
    return Settings(
        rounds=options.rounds or (2 if quick else default_rounds),
        seconds=options.seconds or (0.3 if quick else 0.5),
        warmup=0.1 if quick else 0.15, workers=workers,
        server_cpus=server_cpus, load_cpus=load_cpus, realtime=options.realtime)


def keep(found: dict, options: argparse.Namespace) -> None:
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.svg:
        options.svg.write_text(chart.ratios(found), encoding="utf-8")


def run_scenario(options: argparse.Namespace, scenario: scenarios.Scenario,
                 settings: Settings) -> bool:
    """Runs and prints all cases; whether every request was answered."""
    scenario = scenarios.Scenario(scenario.name, scenario.baseline,
                                  named(scenario.contestants, options.only), scenario.cases,
                                  scenario.targets)
    generator = Generator(options.build / "bench", settings)
    where = environment.record(options.build, list(settings.server_cpus), list(settings.load_cpus))
    print("\n".join(environment.summary(where)))
    runs = []
    for case in scenario.cases:
        runs.append(rounds.run_case(generator, scenario, case, settings))
        found = result.result_json(scenario, runs, where, settings)
        print("\n".join(report.case_lines(found, found["cases"][-1])), flush=True)
    keep(found, options)
    return not any(run.errors(name) for run in runs for name in run.reports)


def run_echo(options: argparse.Namespace) -> bool:
    build = getattr(scenarios, options.command)
    good = True
    for workers in options.workers:
        scenario = build(options.build / "bench", options.build, options.gori,
                         options.connections,
                         ("--pace", options.pace, "--size", str(options.size)))
        if workers != 1:
            print(f"\n{workers} workers")
        good &= run_scenario(options, scenario, settings_of(options, workers, 15))
    return good


def run_web(options: argparse.Namespace) -> bool:
    site = scenarios.Site()
    scenario = scenarios.web(site, options.build, options.gori, options.connections[0],
                             ("--pace", options.pace))
    return run_scenario(options, scenario, settings_of(options, 1, 15))


def model_settings(options: argparse.Namespace, workers: int) -> Settings:
    """A CPU for each worker, as far as there are any; the last one is the load's as well."""
    usable = sorted(os.sched_getaffinity(0))
    return replace(settings_of(options, workers, 9), server_cpus=usable[:workers],
                   load_cpus=usable[-1:])


def caveats(cpus: int) -> list[str]:
    """What the figures of a machine with so many CPUs can show, and what they cannot."""
    lines = ["", "The ratio is CPU time per message to that of a loop per core: above 1, "
             "sharing costs."]
    if cpus < 4:
        lines += [f"With {cpus} CPUs the load generator shares one with the workers once there are "
                  f"{cpus}: then",
                  "messages per second are its figure too. The ratio shows the price of locks,",
                  "hand-offs and wake-ups between few threads; it cannot show caches that many",
                  "cores fight over, where the models part further."]
    return lines


def run_models(options: argparse.Namespace) -> bool:
    cpus = len(os.sched_getaffinity(0))
    runs = []
    for workers in options.workers or [*range(1, cpus + 1), 2 * cpus]:
        settings = model_settings(options, workers)
        generator = Generator(options.build / "bench", settings)
        scenario = scenarios.models(options.build / "bench", options.connections, workers, cpus)
        scenario = replace(scenario, contestants=named(scenario.contestants, options.only))
        where = environment.record(options.build, list(settings.server_cpus),
                                   list(settings.load_cpus))
        if not runs:
            print("\n".join(environment.summary(where)))
        runs.append(rounds.run_case(generator, scenario, scenario.cases[0], settings))
        found = result.result_json(scenario, runs, where, settings)
        print("\n".join(report.case_lines(found, found["cases"][-1])), flush=True)
    print("\n".join(["", *result.growth(found), *caveats(cpus)]))
    keep(found, options)
    return not any(run.errors(name) for run in runs for name in run.reports)


def run_idle(options: argparse.Namespace) -> bool:
    settings = settings_of(options, 1, 7)
    where = environment.record(options.build, list(settings.server_cpus), list(settings.load_cpus))
    print("\n".join(environment.summary(where)))
    found = idle.run(options, settings, where)
    print("\n".join(idle.lines(found)))
    keep(found, options)
    return True


def run_readiness(options: argparse.Namespace) -> bool:
    settings = settings_of(options, 1, 5)
    where = environment.record(options.build, list(settings.server_cpus), [])
    print("\n".join(environment.summary(where)))
    found = readiness.run(options, settings, where)
    print("\n".join(readiness.lines(found)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.svg:
        options.svg.write_text(readiness.picture(found), encoding="utf-8")
    return True


def run_micro(options: argparse.Namespace) -> bool:
    settings = settings_of(options, 1, 7)
    where = environment.record(options.build, list(settings.server_cpus), list(settings.load_cpus))
    print("\n".join(environment.summary(where)))
    found = (micro.pingpong(options, settings, where) if getattr(options, "pingpong", None)
             else micro.run(options, settings, where))
    print("\n".join(micro.lines(found)))
    keep(found, options)
    return True


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    if options.command == "compare":
        try:
            print("\n".join(result.compare(result.load(options.before),
                                           result.load(options.after))))
            return 0
        except Failure as failure:
            print(f"compare: {failure}", file=sys.stderr)
            return 2
    runners = {"models": run_models,
               "echo": run_echo, "overhead": run_echo, "web": run_web, "idle": run_idle,
               "readiness": run_readiness, "timers": run_micro, "post": run_micro,
               "jobs": run_micro}
    try:
        if options.command == "chart":
            found = result.load(options.result)
            picture = (readiness.picture if found["scenario"] == "readiness" else chart.ratios)
            options.svg.write_text(picture(found), encoding="utf-8")
            return 0
        return 0 if runners[options.command](options) else 1
    except (Failure, OSError) as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
