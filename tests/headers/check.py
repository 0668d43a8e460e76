#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: every public header stands alone, in C99 and in C++17, without a warning.

Method: each header is included, twice, by a file that holds nothing else, and that file goes
through the compilers' front ends.  Usage: check.py C_COMPILER CXX_COMPILER
"""

import pathlib
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]


def compile_alone(compiler, language, standard, header, include):
    source = f"#include <{header}>\n#include <{header}>\nextern int gori_headers_check;\n"
    command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only",
               "-I", str(include), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


def main(arguments):
    if len(arguments) != 3:
        print("usage: check.py C_COMPILER CXX_COMPILER", file=sys.stderr)
        return 2
    include = pathlib.Path(__file__).resolve().parents[2] / "include"
    headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.h"))
    failures = 0
    for header in headers:
        for compiler, language, standard in ((arguments[1], "c", "c99"),
                                             (arguments[2], "c++", "c++17")):
            result = compile_alone(compiler, language, standard, header, include)
            if result.returncode != 0:
                failures += 1
                print(f"{header} does not stand alone as {standard}:\n{result.stderr}")
    print(f"headers: {len(headers)} checked, {failures} failures")
    return 1 if failures or not headers else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
