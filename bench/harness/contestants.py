# SPDX-License-Identifier: MIT
"""Who is measured: how each server is started, and why one is absent."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional, Sequence

from .processes import Failure, Server, free_port
from .settings import Settings

NGINX = """
worker_processes 1;
worker_rlimit_nofile 20000;
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{ worker_connections 16384; accept_mutex off; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    open_file_cache max=1000 inactive=3600s;
    open_file_cache_valid 3600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port} backlog=4096; root {root}; }}
}}
"""

H2O = """
num-threads: 1
max-connections: 16384
http1-request-timeout: 3600
error-log: {folder}/h2o-error.log
{user}
listen:
  host: 127.0.0.1
  port: {port}
hosts:
  default:
    paths:
      "/":
        file.dir: {root}
"""


@dataclass(frozen=True)
class Contestant:
    """One entry of a table.  `start` begins a fresh server."""

    name: str
    engine: str
    program: str
    start: Callable[[Settings], Server]
    absent: Optional[str] = None
    version: str = ""

    def as_json(self) -> dict:
        return {"name": self.name, "engine": self.engine, "program": self.program,
                "version": self.version, "absent": self.absent}


def package_version(package: str) -> str:
    """What Debian calls the version of an installed package; empty when it cannot tell."""
    try:
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package],
                               capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def echo_server(name: str, engine: str, program: Path, arguments: Sequence[str] = (),
                package: str = "") -> Contestant:
    """A server with gori's command line and ready line."""

    def start(settings: Settings) -> Server:
        return Server([str(program), *arguments, "--listen", "127.0.0.1:0",
                       "--workers", str(settings.workers)],
                      settings.server_cpus, settings.realtime)

    absent = None if os.access(program, os.X_OK) else f"{program.name} is not built"
    if absent and package:
        absent += f" (is {package} installed?)"
    return Contestant(name, engine, program.name, start, absent,
                      package_version(package) if package else "")


def gori(command: Sequence[str], build: Path, program: Optional[Path],
         engines: Sequence[str] = ("io_uring", "epoll")) -> list[Contestant]:
    """gori itself, once per engine.  `build` is where the contestants of bench/ are."""
    path = program or build / "gori"
    found = []
    for engine in engines:
        entry = echo_server(f"gori {engine}", engine, path, [*command, "--engine", engine])
        if entry.absent is None:
            listed = subprocess.run([str(path), command[0], "--help"], check=False,
                                    capture_output=True)
            if listed.returncode != 0:
                entry = Contestant(entry.name, engine, path.name, entry.start,
                                   f"this gori has no subcommand {command[0]}")
        found.append(entry)
    return found


def raw(folder: Path) -> list[Contestant]:
    return [echo_server("raw epoll", "epoll", folder / "raw_epoll"),
            echo_server("raw io_uring", "io_uring", folder / "raw_io_uring")]


def models(folder: Path) -> list[Contestant]:
    return [echo_server("per core", "epoll", folder / "model_per_core"),
            echo_server("one loop, mutex", "epoll", folder / "model_mutex"),
            echo_server("one loop, lock-free map", "epoll", folder / "model_lock_free")]


def raw_poll(folder: Path) -> Contestant:
    return echo_server("raw poll", "poll", folder / "raw_poll")


def libraries(folder: Path) -> list[Contestant]:
    return [
        echo_server("libuv", "epoll", folder / "peer_libuv", package="libuv1-dev"),
        echo_server("libuv tuned", "epoll", folder / "peer_libuv_tuned", package="libuv1-dev"),
        echo_server("asio epoll", "epoll", folder / "peer_asio_epoll", package="libasio-dev"),
        echo_server("asio epoll tuned", "epoll", folder / "peer_asio_epoll_tuned",
                    package="libasio-dev"),
        echo_server("asio io_uring", "io_uring", folder / "peer_asio_io_uring",
                    package="libasio-dev"),
    ]


def configured(name: str, program: str, template: str, user: str, arguments: Sequence[str],
               root: Path, folder: Path) -> Contestant:
    """A web server that is told all by a configuration file, written anew for each start."""

    def start(settings: Settings) -> Server:
        if settings.workers != 1:
            raise Failure(f"{name} is configured for one worker only")
        port = free_port()
        file = folder / f"{program}.conf"
        file.write_text(template.format(port=port, root=root, folder=folder,
                                        user=user if os.geteuid() == 0 else ""))
        return Server([path or program, *arguments, str(file)],
                      settings.server_cpus, settings.realtime, port)

    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    return Contestant(name, "epoll", program, start,
                      None if path else f"{program} is not installed", package_version(program))


def web_servers(root: Path, folder: Path) -> list[Contestant]:
    return [
        configured("nginx", "nginx", NGINX, "user root;",
                   ["-p", str(folder), "-e", str(folder / "nginx-error.log"), "-c"], root, folder),
        configured("h2o", "h2o", H2O, "user: root", ["-m", "worker", "-c"], root, folder),
    ]


def named(contestants: Sequence[Contestant], pattern: Optional[str]) -> list[Contestant]:
    """Those whose name matches; all without a pattern."""
    return [entry for entry in contestants if pattern is None or re.search(pattern, entry.name)]
