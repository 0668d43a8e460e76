# SPDX-License-Identifier: MIT
"""Interleaved rounds.  In each round all contestants stand ready and take turns in slices of a few
hundredths of a second, the order rotating: the machine's mood lasts longer than that, so all meet
the same one.  Each round begins with fresh processes: no accident of memory layout stays.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Sequence

from .contestants import Contestant
from .figures import Spread, Verdict, ratios
from .load import Generator, Load
from .processes import Failure, Server
from .scenarios import Case, Scenario
from .settings import SLICE_S, Settings


def progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def rotated(entries: Sequence[Contestant], turn: int) -> list[Contestant]:
    shift = turn % len(entries) if entries else 0
    return [*entries[shift:], *entries[:shift]]


class CaseRun:
    """The figures of one case."""

    def __init__(self, case: Case, entries: Sequence[Contestant]) -> None:
        self.case = case
        self.reports: dict[str, list[dict]] = {entry.name: [] for entry in entries}
        self.absent = {entry.name: entry.absent for entry in entries if entry.absent}
        self.system_calls: dict[str, tuple] = {}
        self.warnings: list[str] = []

    def present(self, entries: Sequence[Contestant]) -> list[Contestant]:
        return [entry for entry in entries if entry.name not in self.absent]

    def cpu(self, name: str) -> list[float]:
        return [report["cpu_ns"] for report in self.reports[name]]

    def errors(self, name: str) -> int:
        return sum(report["errors"] for report in self.reports[name])

    def drop(self, entry: Contestant, failure: Failure) -> None:
        """One that failed takes no further part, and none of its figures is shown."""
        self.absent[entry.name] = str(failure)
        self.reports[entry.name] = []


def start_all(stack: ExitStack, generator: Generator, scenario: Scenario, settings: Settings,
              run: CaseRun) -> dict[str, tuple[Server, Load]]:
    """Fresh servers for a round, each with its connections open and warmed up."""
    started = {}
    for entry in run.present(scenario.contestants):
        try:
            server = stack.enter_context(entry.start(settings))
            started[entry.name] = (server, stack.enter_context(
                Load(generator, server, run.case.work, SLICE_S, settings.warmup)))
        except Failure as failure:
            run.drop(entry, failure)
    return started


def run_slices(started: dict[str, tuple[Server, Load]], scenario: Scenario, settings: Settings,
               run: CaseRun) -> None:
    """One contestant after the other gets a short slice, over and over."""
    for turn in range(settings.slices()):
        for entry in rotated(run.present(scenario.contestants), turn):
            try:
                started[entry.name][1].run_slice()
            except Failure as failure:
                run.drop(entry, failure)


def finish_round(generator: Generator, started: dict[str, tuple[Server, Load]],
                 scenario: Scenario, settings: Settings, run: CaseRun, is_last: bool) -> None:
    for entry in run.present(scenario.contestants):
        server, load = started[entry.name]
        try:
            run.reports[entry.name].append(load.report())
            if is_last:
                seconds = min(0.5, settings.seconds)
                run.system_calls[entry.name] = generator.system_calls(server, run.case.work,
                                                                      seconds)
        except Failure as failure:
            run.drop(entry, failure)


def run_case(generator: Generator, scenario: Scenario, case: Case, settings: Settings) -> CaseRun:
    run = CaseRun(case, scenario.contestants)
    for turn in range(settings.rounds):
        progress(f"{scenario.name}, {case.name}: round {turn + 1} of {settings.rounds}")
        with ExitStack() as stack:
            started = start_all(stack, generator, scenario, settings, run)
            run_slices(started, scenario, settings, run)
            finish_round(generator, started, scenario, settings, run,
                         turn + 1 == settings.rounds)
        for name, (server, _) in started.items():
            if server.exit_status != 0:
                run.warnings.append(f"{name} ended with status {server.exit_status} at SIGTERM")
    progress("")
    return run


def verdicts(scenario: Scenario, run: CaseRun) -> list[Verdict]:
    """The ratio of each contestant to the baseline, and each target's ratio beside the target."""
    found = []
    pairs = [(entry.name, scenario.baseline, None) for entry in scenario.contestants]
    pairs += [(target.subject, target.baseline, target.ratio) for target in scenario.targets
              if target.covers(run.case)]
    for subject, baseline, target in pairs:
        if run.reports.get(subject) and run.reports.get(baseline):
            ratio = Spread.of(ratios(run.cpu(subject), run.cpu(baseline)))
            found.append(Verdict(subject, baseline, ratio, target))
    return found
