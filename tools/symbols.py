#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""symbols: what a library shows to the linker is what its headers declare, and nothing else.

    tools/symbols.py LIBRARY...

A shared library (.so) exports only functions and data that a public header declares.  A static one
(.a) cannot hide what its files need from each other, but must keep to the prefixes gori_ and gi_,
so that it never collides with a name of the program it is linked into, and defines each name once:
of two, the linker would silently take the first that it meets.
"""

import collections
import pathlib
import re
import subprocess
import sys

import csource
from csource import Finding


def defined_symbols(library):
    """The names that `library` defines for others, one for each definition, save the compiler's."""
    dynamic = ["-D"] if ".so" in library.name else []
    output = subprocess.run(["nm", "--defined-only", "--extern-only", *dynamic, str(library)],
                            capture_output=True, text=True, check=True).stdout
    names = []
    for line in output.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "TDBRGSi":
            names.append(fields[2].split("@")[0])
    return sorted(name for name in names if not name.startswith(("__", "_init", "_fini")))


def declared_functions(root):
    """The names of all functions and data that include/gori exports."""
    names = set()
    for path in sorted((root / "include/gori").rglob("*.h")):
        for statement in csource.statements(csource.mask(path.read_text(encoding="utf-8"))):
            if "GORI_API" in statement.head:
                names.update(re.findall(r"\b(gori_\w+)\s*(?:\(|\[|$)", statement.head))
    return names


def check(root, library):
    shared = ".so" in library.name
    declared = declared_functions(root) if shared else set()
    counts = collections.Counter(defined_symbols(library))
    for name, count in counts.items():
        if count > 1:
            yield Finding(library.name, 1, f"defines {name} {count} times", "rename all but one")
        if shared and name not in declared:
            yield Finding(library.name, 1, f"exports {name}, which no public header declares",
                          "take GORI_API off it, or declare it in include/gori")
        elif not shared and not name.startswith(("gori_", "gi_")):
            yield Finding(library.name, 1, f"defines {name}",
                          "make it static, or give it the prefix gi_")


def main(arguments):
    if len(arguments) < 2:
        print("usage: tools/symbols.py LIBRARY...", file=sys.stderr)
        return 2
    root = pathlib.Path(__file__).resolve().parent.parent
    findings = []
    for name in arguments[1:]:
        findings.extend(check(root, pathlib.Path(name)))
    return csource.report(findings, "symbols")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
