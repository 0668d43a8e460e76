# SPDX-License-Identifier: MIT
"""Goal: the table and the picture of readiness say what was measured.  Method: made-up figures."""

import unittest

from harness import readiness
from harness.figures import median

PLACE = {"cpu": "none", "kernel": "0", "os": "none", "virtualisation": "none"}


def made(figures: dict) -> dict:
    """A result of idle count to poller to rounds; None for a poller that could not."""
    cases = []
    for idle, pollers in figures.items():
        runs = {name: [{"absent": "no"}] if values is None else [{"round": value}
                                                                 for value in values]
                for name, values in pollers.items()}
        cases.append(readiness.case_of(idle, runs))
    return {"cases": cases, "environment": PLACE}


class Readiness(unittest.TestCase):
    def setUp(self):
        self.result = made({100: {"select": [1000.0], "epoll": [100.0, 200.0]},
                            10000: {"select": None, "epoll": [110.0, 200.0]}})

    def test_slope_is_per_idle_connection(self):
        found = readiness.points(made({100: {"poll": [1000.0]}, 1100: {"poll": [3000.0]}}), "poll")
        self.assertEqual(readiness.slope(found), "2.00")
        self.assertEqual(readiness.slope(found[:1]), "-")

    def test_growth_is_of_each_round(self):
        self.assertEqual(readiness.growth(self.result, "epoll"), [1.1, 1.0])
        self.assertAlmostEqual(median(readiness.growth(self.result, "epoll")), 1.05)

    def test_what_cannot_be_measured_says_why(self):
        text = "\n".join(readiness.lines(self.result))
        self.assertIn("select is unavailable with 10,000 idle: no", text)
        self.assertIn("epoll: 10,000 idle / 100 idle = 1.050, wanted <= 1.10: ok", text)

    def test_picture_is_well_formed(self):
        from xml.dom import minidom
        minidom.parseString(readiness.picture(self.result))


if __name__ == "__main__":
    unittest.main()
