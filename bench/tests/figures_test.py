# SPDX-License-Identifier: MIT
"""Goal: the arithmetic of the tables is right.  Method: small inputs with answers done by hand."""

import unittest

from harness.figures import Spread, Verdict, median, quantile, ratios
from harness.load import strace_total
from harness.processes import Failure
from harness.report import table
from harness.rounds import rotated


class Quantiles(unittest.TestCase):
    def test_median(self):
        self.assertEqual(median([3, 1, 2]), 2)
        self.assertEqual(median([4, 1, 2, 3]), 2.5)
        self.assertEqual(median([7]), 7)

    def test_interpolates(self):
        self.assertEqual(quantile([0, 10], 0.25), 2.5)
        self.assertEqual(quantile([1, 2, 3, 4, 5], 0.75), 4)
        self.assertEqual(quantile([1, 2, 3], 0), 1)
        self.assertEqual(quantile([1, 2, 3], 1), 3)

    def test_nothing_has_no_quantile(self):
        with self.assertRaises(ValueError):
            quantile([], 0.5)
        with self.assertRaises(ValueError):
            quantile([1], 1.5)


class Ratios(unittest.TestCase):
    def test_round_by_round(self):
        """A machine that halves its speed between rounds must not move the ratio."""
        self.assertEqual(ratios([8, 16, 4], [10, 20, 5]), [0.8, 0.8, 0.8])
        self.assertAlmostEqual(Spread.of(ratios([8, 16, 4], [10, 20, 5])).median, 0.8)

    def test_rounds_must_pair_up(self):
        with self.assertRaises(ValueError):
            ratios([1, 2], [1])

    def test_spread(self):
        spread = Spread.of([1, 2, 3, 4, 5])
        self.assertEqual((spread.least, spread.low, spread.median, spread.high, spread.most),
                         (1, 2, 3, 4, 5))

    def test_verdict(self):
        ratio = Spread.of([0.9])
        self.assertTrue(Verdict("a", "b", ratio, 0.9).met)
        self.assertFalse(Verdict("a", "b", ratio, 0.89).met)
        self.assertIsNone(Verdict("a", "b", ratio).met)


class Rounds(unittest.TestCase):
    def test_order_rotates(self):
        self.assertEqual([rotated("abc", turn) for turn in range(4)],
                         [list("abc"), list("bca"), list("cab"), list("abc")])
        self.assertEqual(rotated([], 3), [])


class Strace(unittest.TestCase):
    def test_reads_the_total(self):
        head = "% time     seconds  usecs/call     calls    errors syscall\n"
        self.assertEqual(strace_total(head + "100.00    0.123456           1      4711        12 "
                                      "total\n"), 4711)
        self.assertEqual(strace_total(head + "100.00    0.123456           1      4711           "
                                      "total\n"), 4711)
        with self.assertRaises(Failure):
            strace_total("")


class Tables(unittest.TestCase):
    def test_columns_line_up(self):
        self.assertEqual(table(["", "n"], [["long", "1"], ["a", "100"]]),
                         ["        n", "long    1", "a     100"])


if __name__ == "__main__":
    unittest.main()
