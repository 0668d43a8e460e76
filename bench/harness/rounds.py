# SPDX-License-Identifier: MIT
"""Interleaved rounds: in each round every contestant runs once, and the order rotates, so that no
contestant always meets the machine in the same mood or after the same neighbour."""

from __future__ import annotations

import sys
from typing import Sequence

from .contestants import Contestant
from .figures import Spread, Verdict, ratios
from .load import Generator
from .processes import Failure
from .scenarios import Case, Scenario
from .settings import Settings


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


def run_once(generator: Generator, entry: Contestant, case: Case, settings: Settings,
             run: CaseRun, count_calls: bool) -> None:
    with entry.start(settings) as server:
        report = generator.run(server, case.work, settings.seconds, settings.warmup)
        if count_calls:
            seconds = min(1.0, settings.seconds)
            run.system_calls[entry.name] = generator.system_calls(server, case.work, seconds)
    run.reports[entry.name].append(report)
    if server.exit_status != 0:
        run.warnings.append(f"{entry.name} ended with status {server.exit_status} after SIGTERM")


def run_case(generator: Generator, scenario: Scenario, case: Case, settings: Settings) -> CaseRun:
    run = CaseRun(case, scenario.contestants)
    for turn in range(settings.rounds):
        for entry in rotated(run.present(scenario.contestants), turn):
            progress(f"{scenario.name}, {case.name}: round {turn + 1} of {settings.rounds}, "
                     f"{entry.name}")
            try:
                run_once(generator, entry, case, settings, run, turn + 1 == settings.rounds)
            except Failure as failure:
                run.drop(entry, failure)
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
