# SPDX-License-Identifier: MIT
"""How a measurement is carried out: how long, how often, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence


SLICE_S = 0.05


@dataclass(frozen=True)
class Settings:
    """How long and how often."""

    rounds: int
    seconds: float
    warmup: float
    workers: int
    server_cpus: Sequence[int]
    load_cpus: Sequence[int]
    realtime: bool = False

    def slices(self) -> int:
        """How many slices make up the counted time of a round."""
        return max(1, round(self.seconds / SLICE_S))

    def as_json(self) -> dict:
        return {"rounds": self.rounds, "seconds": self.seconds, "warmup": self.warmup,
                "workers": self.workers, "realtime": self.realtime}
