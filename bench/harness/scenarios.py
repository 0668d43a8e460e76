# SPDX-License-Identifier: MIT
"""What is measured: a scenario names its contestants, its cases, its baseline and its targets."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional, Sequence

from . import contestants
from .contestants import Contestant
from .load import Work


@dataclass(frozen=True)
class Target:
    """`subject` should need at most `ratio` times the CPU of `baseline` per request."""

    subject: str
    baseline: str
    ratio: float
    cases: tuple[str, ...] = ()  # names of the cases it is for; none: all

    def covers(self, case: "Case") -> bool:
        return not self.cases or case.name in self.cases


@dataclass(frozen=True)
class Case:
    """One table: a work that every contestant does."""

    name: str
    work: Work


@dataclass(frozen=True)
class Scenario:
    """Contestants that do the same cases."""

    name: str
    baseline: str
    contestants: Sequence[Contestant]
    cases: Sequence[Case]
    targets: Sequence[Target] = field(default=())


ECHO_TARGETS = (
    Target("raw io_uring", "raw epoll", 0.98, ("50 connections", "200 connections")),
    Target("gori io_uring", "raw io_uring", 1.02, ("50 connections", "200 connections")),
    Target("gori io_uring", "libuv", 0.85, ("50 connections", "200 connections")),
    Target("gori io_uring", "asio epoll", 0.93, ("50 connections", "200 connections")),
    Target("gori io_uring", "asio io_uring", 0.93, ("50 connections", "200 connections")),
    Target("gori epoll", "raw epoll", 1.02),
    Target("gori epoll", "libuv", 0.90),
)

MODELS_BASELINE, OVERSUBSCRIBED = "per core", ", oversubscribed"


def models_case(workers: int, cpus: int) -> str:
    return (f"{workers} worker" + ("" if workers == 1 else "s")
            + (OVERSUBSCRIBED if workers > cpus else ""))


def models(folder: Path, connections: int, workers: int, cpus: int) -> Scenario:
    """The same server in three models: what sharing between its threads costs."""
    entries = contestants.models(folder)
    shared = tuple(models_case(count, cpus) for count in range(2, workers + 1))
    targets = [Target(MODELS_BASELINE, entry.name, 1.0, shared) for entry in entries
               if shared and entry.name != MODELS_BASELINE]
    case = Case(models_case(workers, cpus), Work("echo", connections, ("--pace", "step")))
    return Scenario("models", MODELS_BASELINE, entries, [case], targets)


SMALL, LARGE, PIPELINED = "1 KiB", "64 KiB", "1 KiB, 16 pipelined"

WEB_TARGETS = (
    Target("gori io_uring", "nginx", 0.60, (SMALL,)),
    Target("gori io_uring", "h2o", 0.72, (SMALL,)),
    Target("gori io_uring", "nginx", 0.95, (LARGE,)),
    Target("gori io_uring", "nginx", 0.25, (PIPELINED,)),
)


def plural(count: int) -> str:
    return f"{count} connection" + ("" if count == 1 else "s")


def echo(folder: Path, build: Path, program: Optional[Path], connections: Sequence[int],
         options: Sequence[str]) -> Scenario:
    """Ping-pong: the cost of the interface and of what is laid over it."""
    entries = [*contestants.raw(folder), *contestants.libraries(folder),
               *contestants.gori(["echo"], build, program)]
    cases = [Case(plural(count), Work("echo", count, tuple(options)))
             for count in connections]
    return Scenario("echo", "raw epoll", entries, cases, ECHO_TARGETS)


OVERHEAD_TARGETS = (
    Target("gori io_uring", "raw io_uring", 1.02, ("50 connections", "200 connections")),
    Target("gori epoll", "raw epoll", 1.03, ("50 connections", "200 connections")),
    Target("gori poll", "raw poll", 1.03, ("50 connections", "200 connections")),
)


def overhead(folder: Path, build: Path, program: Optional[Path], connections: Sequence[int],
             options: Sequence[str]) -> Scenario:
    """Each interface by hand, under gori, and under the libraries: read it row by row."""
    entries = [*contestants.raw(folder), contestants.raw_poll(folder),
               *contestants.gori(["echo"], build, program, ("io_uring", "epoll", "poll")),
               *contestants.libraries(folder)]
    cases = [Case(plural(count), Work("echo", count, tuple(options))) for count in connections]
    return Scenario("overhead", "raw epoll", entries, cases, OVERHEAD_TARGETS)


class Site:
    """A folder of files to serve, and room for the configuration of those who serve it."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="gori-bench-")
        base = Path(self.folder.name)
        base.chmod(0o755)
        self.root = base / "site"
        self.root.mkdir()
        for name, size in (("1k.txt", 1024), ("64k.txt", 65536)):
            line = b"All that is gold does not glitter, but it serves to fill a file. .\n"
            (self.root / name).write_bytes((line * (size // len(line) + 1))[:size])

    def path(self) -> Path:
        return Path(self.folder.name)


def web(site: Site, build: Path, program: Optional[Path], connections: int,
        options: Sequence[str]) -> Scenario:
    """Static files over keep-alive connections."""
    entries = [*contestants.web_servers(site.root, site.path()),
               *contestants.gori(["serve", str(site.root)], build, program)]
    small = (*options, "--path", "/1k.txt", "--expect-size", "1024")
    large = (*options, "--path", "/64k.txt", "--expect-size", "65536")
    cases = [Case(SMALL, Work("http", connections, small)),
             Case(LARGE, Work("http", connections, large)),
             Case(PIPELINED, Work("http", connections, (*small, "--depth", "16")))]
    return Scenario("web", "nginx", entries, cases, WEB_TARGETS)
