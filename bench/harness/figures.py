# SPDX-License-Identifier: MIT
"""The arithmetic: medians, quartiles, ratios round by round, and whether a target is met.

A ratio is formed inside one round, where both contestants met the same machine, and only then is
the median taken.  A ratio of medians would mix rounds in which the machine ran at different speeds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Optional, Sequence


def quantile(values: Sequence[float], fraction: float) -> float:
    """The quantile of `values`, interpolated between neighbours."""
    if not values:
        raise ValueError("no values")
    if not 0 <= fraction <= 1:
        raise ValueError("the fraction must be from 0 to 1")
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles and its ends."""

    median: float
    low: float
    high: float
    least: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        return Spread(median(values), quantile(values, 0.25), quantile(values, 0.75),
                      min(values), max(values))


def ratios(subject: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Round by round: the subject's figure divided by the baseline's."""
    if len(subject) != len(baseline):
        raise ValueError("the rounds of the two do not pair up")
    return [a / b for a, b in zip(subject, baseline)]


@dataclass(frozen=True)
class Verdict:
    """One ratio beside its target."""

    subject: str
    baseline: str
    ratio: Spread
    target: Optional[float] = None

    @property
    def met(self) -> Optional[bool]:
        return None if self.target is None else self.ratio.median <= self.target

    def as_json(self) -> dict:
        return {"subject": self.subject, "baseline": self.baseline, "ratio": asdict(self.ratio),
                "target": self.target, "met": self.met}
