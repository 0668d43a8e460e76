#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the black-box tests of `gori serve` on one engine.

Usage: run.py PROGRAM ENGINE [TEST...]        TEST as framing_test.Framing.test_refused
Exit status: that of unittest; 77 when the machine has no such engine.
"""

import json
import pathlib
import subprocess
import sys
import unittest

SKIPPED = 77


def is_usable(program, engine):
    found = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True,
                           check=True)
    return any(entry["name"] == engine and entry["usable"]
               for entry in json.loads(found.stdout)["engines"])


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    program, engine = arguments[1:3]
    if not is_usable(program, engine):
        print(f"this machine has no {engine}")
        return SKIPPED
    folder = str(pathlib.Path(__file__).resolve().parent)
    sys.path.insert(0, folder)
    loader = unittest.TestLoader()
    tests = (loader.loadTestsFromNames(arguments[3:]) if len(arguments) > 3
             else loader.discover(folder, pattern="*_test.py"))
    result = unittest.TextTestRunner(verbosity=1).run(tests)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
