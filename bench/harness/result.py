# SPDX-License-Identifier: MIT
"""The JSON form of a result, its check, and the comparison of two."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Sequence

from .environment import differences
from .figures import Spread, median
from .processes import Failure
from .rounds import CaseRun, verdicts
from .scenarios import OVERSUBSCRIBED, Scenario
from .settings import Settings

FORMAT = "gori-bench/1"
FIGURES = ("rps", "p50_ns", "p99_ns", "p999_ns", "max_ns")


def contestant_json(scenario: Scenario, run: CaseRun, name: str) -> dict:
    entry = next(entry for entry in scenario.contestants if entry.name == name)
    found = {**entry.as_json(), "absent": run.absent.get(name), "rounds": run.reports[name]}
    if run.reports[name]:
        found["cpu_ns"] = asdict(Spread.of(run.cpu(name)))
        found["errors"] = run.errors(name)
        for figure in FIGURES:
            found[figure] = median([report[figure] for report in run.reports[name]])
        calls, source = run.system_calls.get(name, (None, "not counted"))
        found["system_calls"] = calls
        found["system_calls_by"] = source
    return found


def case_json(scenario: Scenario, run: CaseRun) -> dict:
    return {
        "name": run.case.name,
        "work": asdict(run.case.work),
        "contestants": [contestant_json(scenario, run, entry.name)
                        for entry in scenario.contestants],
        "verdicts": [verdict.as_json() for verdict in verdicts(scenario, run)],
        "warnings": run.warnings,
    }


def result_json(scenario: Scenario, runs: Sequence[CaseRun], environment: dict,
                settings: Settings) -> dict:
    return envelope(scenario.name, scenario.baseline,
                    [case_json(scenario, run) for run in runs], environment, settings.as_json())


def envelope(scenario: str, baseline: str, cases: list[dict], environment: dict,
             settings: dict) -> dict:
    """What every result has, whatever its scenario measures."""
    return {"format": FORMAT, "scenario": scenario, "baseline": baseline,
            "environment": environment, "settings": settings, "cases": cases}


def check(result: object) -> dict:
    """Returns a result of the form this harness writes; raises Failure that says what lacks."""
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        raise Failure(f"not a result in the format {FORMAT}")
    for key, kind in (("scenario", str), ("baseline", str), ("environment", dict),
                      ("settings", dict), ("cases", list)):
        if not isinstance(result.get(key), kind):
            raise Failure(f"the result has no proper {key}")
    if not result["environment"]:
        raise Failure("the result does not say where it was measured")
    for case in result["cases"]:
        if not isinstance(case.get("name"), str) or not isinstance(case.get("contestants"), list):
            raise Failure("a case has no name or no contestants")
        for entry in case["contestants"]:
            if not isinstance(entry.get("name"), str) or "absent" not in entry:
                raise Failure(f"a contestant of {case['name']} has no name or does not say whether "
                              "it was there")
    return result


def load(path: str) -> dict:
    try:
        return check(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: {error}") from error
    except Failure as failure:
        raise Failure(f"{path}: {failure}") from failure


def refuse_reasons(one: dict, other: dict) -> list[str]:
    """Why two results must not be compared; empty when they may be."""
    reasons = differences(one["environment"], other["environment"])
    for key in ("scenario", "baseline", "settings"):
        if one[key] != other[key]:
            reasons.append(f"{key}: {one[key]!r} and {other[key]!r}")
    return reasons


def ratio_to_baseline(case: dict, name: str) -> float | None:
    for verdict in case.get("verdicts", []):
        if verdict["subject"] == name and verdict["target"] is None:
            return verdict["ratio"]["median"]
    return None


def growth(result: dict) -> list[str]:
    """For each contestant but the baseline: whether its ratio grows from case to case, as long as
    there is a CPU for each worker."""
    cases = [case for case in result["cases"] if not case["name"].endswith(OVERSUBSCRIBED)]
    lines = []
    for entry in cases[0]["contestants"] if len(cases) > 1 else []:
        found = [ratio_to_baseline(case, entry["name"]) for case in cases]
        if entry["name"] == result["baseline"] or None in found:
            continue
        grows = all(after > before for before, after in zip(found, found[1:]))
        steps = ", ".join(f"{ratio:.3f} ({case['name']})" for ratio, case in zip(found, cases))
        lines.append(f"{entry['name']} to {result['baseline']}: {steps}; wanted: growing; "
                     + ("ok" if grows else "miss"))
    return lines


def compare(one: dict, other: dict) -> list[str]:
    """The lines of a comparison.  Ratios to the baseline of the same run are set side by side: the
    figures themselves would compare the moods of the machine."""
    reasons = refuse_reasons(one, other)
    if reasons:
        raise Failure("these results are not comparable:\n  " + "\n  ".join(reasons))
    lines = [f"CPU per request as a ratio to {one['baseline']}, before, after, change"]
    others = {case["name"]: case for case in other["cases"]}
    for case in one["cases"]:
        twin = others.get(case["name"])
        for entry in case["contestants"] if twin else []:
            before, after = (ratio_to_baseline(side, entry["name"]) for side in (case, twin))
            if before and after:
                lines.append(f"{case['name']:<24} {entry['name']:<16} {before:7.3f} {after:7.3f} "
                             f"{(after / before - 1) * 100:+6.1f} %")
    return lines
