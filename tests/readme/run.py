#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: the echo server printed in README.md compiles as it stands, echoes, and stops on SIGTERM.

Method: the fenced C block after the line `<!-- compiled: echo.c -->` is written to a file, with the
port of its loopback address set to 0, compiled with warnings as errors, and started.  Its port is
read from its "listening on" line, or else from the kernel's table of sockets.

Usage: run.py BUILD_FOLDER C_COMPILER LIBRARY...
"""

import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "<!-- compiled: echo.c -->"
PATIENCE = 20  # seconds until a hang counts as one; nothing depends on how many


def extract(text):
    """The block that follows the mark."""
    match = re.search(re.escape(MARK) + r"\s*```c\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if not match:
        sys.exit(f"README.md:1: no C block after {MARK}; put one there")
    return re.sub(r'"127\.0\.0\.1:\d+"', '"127.0.0.1:0"', match.group(1))


def build(folder, compiler, libraries):
    folder.mkdir(parents=True, exist_ok=True)
    source, program = folder / "echo.c", folder / "echo"
    source.write_text(extract((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
    command = [compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
               "-o", program, source, *libraries, "-pthread"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"README.md: the echo server does not compile:\n{result.stderr}")
    return program


def listening_port(process):
    """The port that one of the process's sockets listens on, or None."""
    inodes = set()
    for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", str(link.readlink())))
        except OSError:
            continue
    for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            return int(fields[1].split(":")[1], 16)
    return None


def find_port(process):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if select.select([process.stdout], [], [], 0.02)[0]:
            match = re.search(r"listening on .*:(\d+)", process.stdout.readline())
            if match:
                return int(match.group(1))
        port = listening_port(process)
        if port:
            return port
    sys.exit(f"the echo server does not listen (exit status {process.poll()})")


def echo(port, data):
    """Sends `data`, says that there is no more, and gives what came back until the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        received = bytearray()
        connection.sendall(data)
        while len(received) < len(data):
            piece = connection.recv(65536)
            if not piece:
                break
            received += piece
        return bytes(received)


def main(arguments):
    if len(arguments) < 4:
        print("usage: run.py BUILD_FOLDER C_COMPILER LIBRARY...", file=sys.stderr)
        return 2
    program = build(pathlib.Path(arguments[1]), arguments[2], arguments[3:])
    process = subprocess.Popen([program, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        port = find_port(process)
        for data in (b"hello, ring\n", bytes(range(256)) * 512):
            if echo(port, data) != data:
                sys.exit(f"the echo of {len(data)} bytes is not what was sent")
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    print(f"readme: echoed on port {port}, exit status {status} after SIGTERM")
    return 0 if status == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
