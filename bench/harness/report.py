# SPDX-License-Identifier: MIT
"""The tables for people."""

from __future__ import annotations

from typing import Optional, Sequence

Row = Sequence[str]


def table(heading: Row, rows: Sequence[Row], text_columns: int = 1) -> list[str]:
    """Lines of columns, the first `text_columns` to the left and the others to the right."""
    widths = [max(len(row[i]) for row in [heading, *rows]) for i in range(len(heading))]
    return ["  ".join(cell.ljust(width) if i < text_columns else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
            for row in [heading, *rows]]


def microseconds(nanoseconds: float) -> str:
    value = nanoseconds / 1000
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def spread(ratio: dict) -> str:
    return f"{ratio['median']:.3f} ({ratio['low']:.3f}..{ratio['high']:.3f})"


def calls(entry: dict) -> str:
    return "n/a" if entry["system_calls"] is None else f"{entry['system_calls']:.3f}"


def contestant_row(entry: dict, ratio: Optional[dict]) -> Row:
    return [entry["name"], microseconds(entry["cpu_ns"]["median"]),
            spread(ratio) if ratio else "-", f"{entry['rps']:,.0f}",
            microseconds(entry["p50_ns"]), microseconds(entry["p99_ns"]),
            microseconds(entry["p999_ns"]), calls(entry), str(entry["errors"])]


def verdict_lines(verdicts: Sequence[dict]) -> list[str]:
    rows = [[f"{verdict['subject']} / {verdict['baseline']}", spread(verdict["ratio"]),
             f"<= {verdict['target']:.2f}", "ok" if verdict["met"] else "miss"]
            for verdict in verdicts if verdict["target"] is not None]
    return table(["target", "ratio", "wanted", ""], rows) if rows else []


def note_lines(case: dict) -> list[str]:
    lines = [f"{entry['name']} is absent: {entry['absent']}" for entry in case["contestants"]
             if entry["absent"]]
    uncounted = {entry["system_calls_by"] for entry in case["contestants"]
                 if not entry["absent"] and entry.get("system_calls") is None}
    lines += [f"system calls not counted: {reason}" for reason in sorted(uncounted)]
    return lines + list(case.get("warnings", []))


def case_lines(result: dict, case: dict) -> list[str]:
    plain = {verdict["subject"]: verdict["ratio"] for verdict in case["verdicts"]
             if verdict["target"] is None}
    rows = [contestant_row(entry, plain.get(entry["name"])) for entry in case["contestants"]
            if not entry["absent"]]
    lines = ["", f"{result['scenario']}: {case['name']}"]
    if rows:
        lines += table(["", "CPU us/req", f"ratio to {result['baseline']}", "req/s", "p50 us",
                        "p99 us", "p99.9 us", "calls/req", "errors"], rows)
    lines += ["", *verdict_lines(case["verdicts"])] if any(
        verdict["target"] is not None for verdict in case["verdicts"]) else []
    return lines + note_lines(case)
