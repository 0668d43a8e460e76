# SPDX-License-Identifier: MIT
"""Starting, watching and ending the servers under measurement."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable, Optional, Sequence

from .environment import first_match, read_text

START_LIMIT_S = 10.0
STOP_LIMIT_S = 10.0


class Failure(Exception):
    """A contestant or a tool did not do its part; the text says which and why."""


def placed(cpus: Sequence[int], realtime: bool = False) -> Callable[[], None]:
    """What a child does before it becomes another program: takes its CPUs, and goes before all
    others there if it is to."""

    def place() -> None:
        os.sched_setaffinity(0, cpus)
        if realtime:
            # In turns: a thread that waits to end the others would never run beside FIFO ones.
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    return place


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def process_tree(process: int) -> list[int]:
    """A process and all that descend from it, parents first."""
    found = [process]
    for parent in found:
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in (read_text(path) or "").split()]
    return found


class Server:
    """A running contestant.  Use it as a context manager; it is ended whatever happens inside."""

    def __init__(self, command: Sequence[str], cpus: Sequence[int], realtime: bool,
                 port: Optional[int] = None) -> None:
        """`port`: where it will listen, for a server that prints no ready line of its own."""
        self.log = tempfile.TemporaryFile()
        self.exit_status: Optional[int] = None
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self.log,
                                            stdout=subprocess.PIPE,
                                            preexec_fn=placed(cpus, realtime))
        except OSError as error:
            raise Failure(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            self.address = self._ready_line() if port is None else self._ready_port(port)
        except Failure:
            self.stop()
            raise

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _complaint(self) -> str:
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return lines[0] if lines else f"exit status {self.process.poll()}, nothing on stderr"

    def _ready_line(self) -> str:
        assert self.process.stdout is not None
        until = time.monotonic() + START_LIMIT_S
        text = b""
        while b"\n" not in text:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failure(f"not ready after {START_LIMIT_S:.0f} s: {self._complaint()}")
            chunk = os.read(self.process.stdout.fileno(), 4096)
            if not chunk:
                self.process.wait(STOP_LIMIT_S)
                raise Failure(self._complaint())
            text += chunk
        address = first_match(r"listening on (\S+)", text.decode(errors="replace"))
        if address is None:
            raise Failure(f"no ready line but {text!r}")
        return address

    def _ready_port(self, port: int) -> str:
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Failure(self._complaint())
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return f"127.0.0.1:{port}"
            except OSError:
                time.sleep(0.01)
        raise Failure(f"does not accept connections after {START_LIMIT_S:.0f} s")

    def processes(self) -> list[int]:
        return process_tree(self.process.pid)

    def private_bytes(self) -> int:
        """User memory that is this server's alone."""
        total = 0
        for process in self.processes():
            text = read_text(f"/proc/{process}/smaps_rollup") or ""
            total += sum(int(kib) for kib in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.M))
        return total * 1024

    def wake_ups(self) -> int:
        """How often any of its threads has given up a CPU to wait, so far."""
        total = 0
        for process in self.processes():
            for path in Path(f"/proc/{process}/task").glob("*/status"):
                count = first_match(r"^voluntary_ctxt_switches:\s+(\d+)", read_text(path))
                total += int(count or 0)
        return total

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.exit_status = self.process.returncode
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.log.close()
