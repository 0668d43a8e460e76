# SPDX-License-Identifier: MIT
"""Where a figure comes from.  No figure is printed or kept without this record, and figures of
different records are not compared."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Optional


def read_text(path: str | Path) -> Optional[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def first_match(pattern: str, text: Optional[str]) -> Optional[str]:
    found = re.search(pattern, text or "", re.MULTILINE)
    return found.group(1).strip() if found else None


def mitigations() -> dict[str, str]:
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    if not folder.is_dir():
        return {}
    return {entry.name: read_text(entry) or "unknown" for entry in sorted(folder.iterdir())}


def virtualisation() -> str:
    vendor = first_match(r"Hypervisor vendor:\s*(.*)", lscpu())
    if vendor is None:
        vendor = "a hypervisor" if " hypervisor" in (read_text("/proc/cpuinfo") or "") else "none"
    return vendor + (" and a container" if Path("/.dockerenv").exists() else "")


def lscpu() -> str:
    try:
        return subprocess.run(["lscpu"], capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:
        return ""


def cached(build: Path, name: str) -> str:
    """The value of a CMake cache entry of the build that is measured."""
    text = read_text(build / "CMakeCache.txt")
    return first_match(rf"^{re.escape(name)}:[A-Z]+=(.*)$", text) or ""


def compiler(build: Path) -> str:
    path = cached(build, "CMAKE_C_COMPILER") or "cc"
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True,
                              check=False).stdout
    except OSError:
        return "unknown"
    return text.splitlines()[0] if text else "unknown"


def flags(build: Path) -> str:
    kind = cached(build, "CMAKE_BUILD_TYPE").upper()
    return " ".join(filter(None, [cached(build, "CMAKE_C_FLAGS"),
                                  cached(build, f"CMAKE_C_FLAGS_{kind}")])) or "unknown"


def record(build: Path, server_cpus: list[int], load_cpus: list[int]) -> dict:
    """Everything that a figure of this run depends on and that is not a contestant's own."""
    cpuinfo = read_text("/proc/cpuinfo")
    return {
        "cpu": first_match(r"^model name\s*:\s*(.*)$", cpuinfo) or platform.machine(),
        "cpu_stepping": "/".join(first_match(rf"^{name}\s*:\s*(.*)$", cpuinfo) or "?"
                                 for name in ("cpu family", "model", "stepping")),
        "cpu_count": os.cpu_count(),
        "governor": read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "unknown",
        "kernel": platform.release(),
        "kernel_build": platform.version(),
        "os": first_match(r'^PRETTY_NAME="?(.*?)"?$', read_text("/etc/os-release")) or "unknown",
        "compiler": compiler(build),
        "flags": flags(build),
        "cores": {"server": server_cpus, "load": load_cpus},
        "mitigations": mitigations(),
        "virtualisation": virtualisation(),
    }


def differences(one: dict, other: dict) -> list[str]:
    """What differs between two records, each as one line; empty when figures may be compared."""
    lines = []
    for key in sorted(set(one) | set(other)):
        if one.get(key) != other.get(key):
            lines.append(f"{key}: {one.get(key)!r} and {other.get(key)!r}")
    return lines


def summary(environment: dict) -> list[str]:
    """The record for people."""
    weak = [name for name, state in environment["mitigations"].items()
            if state.startswith("Vulnerable")]
    cores = environment["cores"]
    return [
        f"machine     {environment['cpu_count']} x {environment['cpu']}, "
        f"virtualisation {environment['virtualisation']}, governor {environment['governor']}",
        f"system      {environment['os']}, kernel {environment['kernel']}",
        f"compiler    {environment['compiler']}, {environment['flags']}",
        f"cores       server on {cores['server']}, load on {cores['load']}"
        + ("" if cores["server"] != cores["load"] else
           "  (only one CPU: both share it, and the load disturbs the server)"),
        f"mitigations {len(environment['mitigations'])} known, "
        f"vulnerable to: {', '.join(weak) if weak else 'none'}",
    ]
