# SPDX-License-Identifier: MIT
"""Running the load generators against a server, and counting its system calls meanwhile."""

from __future__ import annotations

import json
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional, Sequence

from .processes import Failure, Server, placed
from .settings import Settings

RUN_MARGIN_S = 60.0


@dataclass(frozen=True)
class Work:
    """What the load generator is to do: protocol and options, the same for every contestant."""

    protocol: str
    connections: int
    options: tuple[str, ...] = field(default=())

    def command(self, program: Path, server: Server, cpu: int, seconds: float) -> list[str]:
        return [str(program), self.protocol, server.address,
                "--connections", str(self.connections), "--cpu", str(cpu),
                "--seconds", str(seconds), *self.options]


def finish(command: Sequence[str], limit: float, place: Callable[[], None]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False,
                              preexec_fn=place)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{Path(command[0]).name}: {error}") from error
    if done.returncode != 0:
        text = (done.stderr or done.stdout).strip().splitlines()
        raise Failure(f"{Path(command[0]).name}: {text[-1] if text else done.returncode}")
    return done.stdout


def strace_total(text: str) -> int:
    """The calls in all, from the last line of what `strace -c` prints.  Its columns are percent,
    seconds, microseconds a call, calls, perhaps errors, and the word total."""
    for line in text.splitlines():
        fields = line.split()
        if fields[-1:] == ["total"] and len(fields) >= 5:
            return int(fields[3])
    raise Failure("strace could not attach")


class Generator:
    """The load generators of one build, on their CPU."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.program = folder / "bench_load"
        self.holder = folder / "bench_idle"
        self.cpu = settings.load_cpus[0]
        self.place = placed(settings.load_cpus, settings.realtime)

    def system_calls(self, server: Server, work: Work,
                     seconds: float) -> tuple[Optional[float], str]:
        """System calls of the server per request and what counted them, or None and why not."""
        reasons = []
        for count in (self._count_by_perf, self._count_by_strace):
            try:
                return count(server, work, seconds)
            except Failure as failure:
                reasons.append(str(failure))
        return None, "; ".join(reasons)

    def _count_by_perf(self, server: Server, work: Work, seconds: float) -> tuple[float, str]:
        if shutil.which("perf") is None:
            raise Failure("perf is not installed")
        with tempfile.NamedTemporaryFile("r") as counts:
            command = ["perf", "stat", "-x", ",", "-o", counts.name, "-e", "raw_syscalls:sys_enter",
                       "-p", ",".join(map(str, server.processes())), "--"]
            command += work.command(self.program, server, self.cpu, seconds)
            report = json.loads(finish(command, seconds + RUN_MARGIN_S, self.place))
            for line in counts.read().splitlines():
                fields = line.split(",")
                if len(fields) > 2 and "sys_enter" in fields[2] and fields[0].isdigit():
                    return int(fields[0]) / report["requests"], "perf"
        raise Failure("perf did not count raw_syscalls:sys_enter")

    def _count_by_strace(self, server: Server, work: Work, seconds: float) -> tuple[float, str]:
        if shutil.which("strace") is None:
            raise Failure("strace is not installed")
        with tempfile.NamedTemporaryFile("r") as counts:
            tracer = subprocess.Popen(["strace", "-c", "-f", "-o", counts.name, "-p",
                                       " ".join(map(str, server.processes()))],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                time.sleep(0.3)
                command = work.command(self.program, server, self.cpu, seconds)
                report = json.loads(finish(command, seconds + RUN_MARGIN_S, self.place))
            finally:
                tracer.send_signal(signal.SIGINT)
                tracer.wait()
            return strace_total(counts.read()) / report["requests"], "strace"


class Load:
    """A load generator with its connections open, idle until it is told to run a slice.  Nothing is
    in flight between slices, so the server sleeps then and its run time is exact."""

    def __init__(self, generator: Generator, server: Server, work: Work, slice_seconds: float,
                 warmup: float) -> None:
        command = work.command(generator.program, server, generator.cpu, slice_seconds)
        command += ["--warmup", str(warmup), "--slices", "stdin",
                    "--watch", ",".join(map(str, server.processes()))]
        self.total: dict = {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        preexec_fn=generator.place)
        try:
            if self._line() != "ready":
                raise Failure("the load generator is not ready")
        except Failure:
            self.close()
            raise

    def _line(self) -> str:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], RUN_MARGIN_S)[0]:
            raise Failure(f"the load generator says nothing for {RUN_MARGIN_S:.0f} s")
        line = self.process.stdout.readline().strip()
        if not line:
            assert self.process.stderr is not None
            raise Failure(self.process.stderr.read().strip() or "the load generator ended")
        return line

    def run_slice(self) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Failure(f"the load generator gave up: {self.total.get('error_kinds')}") from error
        self.total = json.loads(self._line())

    def report(self) -> dict:
        """All slices together, with the server's CPU time per request."""
        if not self.total.get("requests"):
            raise Failure(f"no request was answered: {self.total.get('error_kinds')}")
        return {**self.total, "cpu_ns": self.total["server_run_ns"] / self.total["requests"]}

    def close(self) -> None:
        try:
            self.process.communicate(timeout=RUN_MARGIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Idle:
    """Idle connections held open by another process for as long as the context lasts."""

    def __init__(self, generator: Generator, server: Server, count: int) -> None:
        self.process = subprocess.Popen([str(generator.holder), server.address, str(count)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        preexec_fn=generator.place)
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("holding"):
            _, complaint = self.process.communicate()
            raise Failure(complaint.strip() or "the idle connections could not be opened")

    def __enter__(self) -> "Idle":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=RUN_MARGIN_S)
