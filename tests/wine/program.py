#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program for Windows as the shell of that system starts it: its arguments are UTF-8 whatever
the code page of the machine, nothing is put in the place of patterns, and `doctor` knows where it
is.

Usage: program.py PROGRAM
"""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

PROGRAM = None
PATIENCE = 30
NAME = "größer als 日本 🌊"  # in no code page of one byte


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=PATIENCE, check=False)


class Program(unittest.TestCase):
    def test_a_folder_of_any_name_is_served(self):
        with tempfile.TemporaryDirectory(prefix="gori-wine-") as folder:
            root = pathlib.Path(folder) / NAME
            root.mkdir()
            (root / "a.txt").write_text("here")
            log = pathlib.Path(folder) / f"{NAME}.log"
            with subprocess.Popen([PROGRAM, "serve", root, "--listen", "127.0.0.1:0",
                                   "--access-log", log], stdout=subprocess.PIPE,
                                  text=True) as server:
                line = server.stdout.readline()
                port = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\s*", line).group(1)
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/a.txt",
                                            timeout=PATIENCE) as response:
                    self.assertEqual(response.read(), b"here")
                server.send_signal(signal.SIGINT)
                self.assertEqual(server.wait(PATIENCE), 0)
            self.assertIn("/a.txt", log.read_text())

    def test_a_name_comes_back_as_it_was(self):
        for name in (NAME, "*", "a b", 'a"b', ""):
            result = run(name)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"'{name}'", result.stderr.decode())

    def test_doctor_knows_where_it_is(self):
        found = json.loads(run("doctor", "--json").stdout)
        self.assertEqual((found["system"], found["engine"]), ("Windows", "iocp"))
        engines = {engine["name"]: engine for engine in found["engines"]}
        self.assertEqual(set(engines), {"iocp", "io_uring", "epoll", "kqueue", "poll", "select"})
        self.assertTrue(engines["iocp"]["usable"])
        self.assertIn("Linux", engines["epoll"]["text"])

    def test_an_engine_of_another_system_is_an_error(self):
        result = run("echo", "--engine", "epoll")
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn(b"gori doctor", result.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
