# SPDX-License-Identifier: MIT
"""Goal: results say where they come from, and results of different places are never ranked.
Method: results written by hand, through the same functions and the same command as real ones."""

import contextlib
import copy
import io
import json
import tempfile
import unittest
from pathlib import Path

import run
from harness import chart, environment, result, rounds, scenarios
from harness.contestants import echo_server
from harness.load import Work
from harness.processes import Failure
from harness.settings import Settings

PLACE = {"cpu": "Z80", "kernel": "6.18", "mitigations": {"meltdown": "Not affected"},
         "os": "Debian", "virtualisation": "none"}


def report(cpu_ns, errors=0):
    return {"cpu_ns": cpu_ns, "rps": 1e5, "p50_ns": 1000, "p99_ns": 2000, "p999_ns": 3000,
            "max_ns": 4000, "errors": errors}


def result_of(subject, baseline, place=None):
    """A result of two contestants with the given CPU figures, and of one that is absent."""
    entries = [echo_server(name, "epoll", Path("/bin/true")) for name in ("gori epoll", "libuv")]
    entries.append(echo_server("asio epoll", "epoll", Path("/nonexistent/asio")))
    case = scenarios.Case("1 connection", Work("echo", 1))
    scenario = scenarios.Scenario("echo", "libuv", entries, [case],
                                  [scenarios.Target("gori epoll", "libuv", 0.9)])
    done = rounds.CaseRun(case, entries)
    done.reports["gori epoll"] = [report(value) for value in subject]
    done.reports["libuv"] = [report(value) for value in baseline]
    settings = Settings(len(subject), 1.0, 0.2, 1, [0], [1])
    return result.result_json(scenario, [done], place or PLACE, settings)


class Form(unittest.TestCase):
    def test_survives_json(self):
        found = json.loads(json.dumps(result_of([8, 9], [10, 10])))
        self.assertEqual(result.check(found), found)

    def test_ratio_and_target(self):
        verdicts = result_of([8, 9], [10, 10])["cases"][0]["verdicts"]
        judged = [verdict for verdict in verdicts if verdict["target"] is not None]
        self.assertEqual(len(judged), 1)
        self.assertAlmostEqual(judged[0]["ratio"]["median"], 0.85)
        self.assertTrue(judged[0]["met"])

    def test_the_absent_say_why(self):
        absent = result_of([8], [10])["cases"][0]["contestants"][2]
        self.assertIn("not built", absent["absent"])
        self.assertNotIn("cpu_ns", absent)

    def test_refuses_other_forms(self):
        good = result_of([8], [10])
        for spoil in ({"format": "other/1"}, {"environment": {}}, {"cases": None},
                      {"scenario": 4}, {"cases": [{"name": "x"}]}):
            with self.assertRaises(Failure):
                result.check({**good, **spoil})
        with self.assertRaises(Failure):
            result.check([])

    def test_draws(self):
        picture = chart.ratios(result_of([8, 9], [10, 10]))
        self.assertTrue(picture.startswith("<svg"))
        self.assertIn("gori epoll", picture)

    def test_draws_long_names_whole(self):
        name = "a contestant with a name of forty letters"
        canvas = chart.Canvas(["short", name])
        self.assertGreaterEqual(canvas.label, 7 * len(name))


    def test_what_cannot_be_drawn_is_refused_before_it_is_measured(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            run.parse(["jobs", "--svg", "jobs.svg"])
        self.assertIsNone(run.parse(["jobs"]).svg)


class Models(unittest.TestCase):
    def ratios(self, *found):
        cases = [{"name": f"{workers} workers", "contestants": [{"name": "per core"},
                                                               {"name": "mutex"}],
                  "verdicts": [{"subject": "mutex", "target": None, "ratio": {"median": ratio}}]}
                 for workers, ratio in enumerate(found, 1)]
        return result.growth({"baseline": "per core", "cases": cases})

    def test_a_ratio_that_grows_is_said_to(self):
        self.assertEqual(self.ratios(1.0, 1.2, 1.5),
                         ["mutex to per core: 1.000 (1 workers), 1.200 (2 workers), "
                          "1.500 (3 workers); wanted: growing; ok"])
        self.assertIn("miss", self.ratios(1.0, 1.5, 1.5)[0])
        self.assertEqual(self.ratios(1.0), [])

    def test_sharing_is_judged_when_there_is_somebody_to_share_with(self):
        self.assertEqual(scenarios.models(Path("/bin"), 1, 1, 2).targets, [])
        scenario = scenarios.models(Path("/bin"), 1, 4, 2)
        judged = [(target.subject, target.ratio) for target in scenario.targets
                  if target.covers(scenario.cases[0])]
        self.assertEqual(judged, [("per core", 1.0)] * 2)
        alone = scenarios.models(Path("/bin"), 1, 1, 2).cases[0]
        self.assertFalse(any(target.covers(alone) for target in scenario.targets))


class Comparison(unittest.TestCase):
    def compare(self, one, other):
        """Exit status, output and complaint of the command."""
        out, complaint = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, content in (("one", one), ("other", other)):
                paths.append(str(Path(folder) / name))
                Path(paths[-1]).write_text(json.dumps(content))
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaint):
                status = run.main(["compare", *paths])
        return status, out.getvalue(), complaint.getvalue()

    def test_same_place(self):
        status, out, _ = self.compare(result_of([8], [10]), result_of([9], [10]))
        self.assertEqual(status, 0)
        self.assertIn("+12.5 %", out)

    def test_other_place(self):
        for key, value in (("kernel", "6.1"), ("cpu", "Z800"), ("mitigations", {})):
            place = {**PLACE, key: value}
            status, out, complaint = self.compare(result_of([8], [10]),
                                                  result_of([9], [10], place))
            self.assertEqual(status, 2)
            self.assertEqual(out, "")
            self.assertIn(key, complaint)

    def test_other_settings(self):
        other = copy.deepcopy(result_of([8], [10]))
        other["settings"]["workers"] = 2
        self.assertEqual(self.compare(result_of([8], [10]), other)[0], 2)

    def test_no_result(self):
        self.assertEqual(self.compare({}, result_of([8], [10]))[0], 2)


class Environment(unittest.TestCase):
    def test_record_names_the_place(self):
        place = environment.record(Path("/nonexistent"), [0], [1])
        for key in ("cpu", "kernel", "os", "compiler", "flags", "cores", "mitigations",
                    "virtualisation"):
            self.assertIn(key, place)
        self.assertEqual(environment.differences(place, copy.deepcopy(place)), [])
        self.assertEqual(len(environment.summary(place)), 5)


if __name__ == "__main__":
    unittest.main()
