#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""layers: holds the layer law of ARCHITECTURE.md over the graph of #include lines.

    tools/layers.py [ROOT]           check
    tools/layers.py --dot [ROOT]     print the graph of folders for Graphviz

Code that tests (x_test.c, tests/) may include everything; only cycles are looked for there.
"""

import pathlib
import re
import sys

import csource
from csource import Finding

# What each layer may include below src/.  Whatever is not listed here is a module: it reaches the
# runtime through public headers, because the shared library hides all else.
LAW = {
    "base": {"base"},
    "os": {"base", "os"},
    "engine": {"base", "os", "engine"},
    "rt": {"base", "os", "engine", "rt"},
    "proto": {"base", "proto"},
}
MODULE = {"base", "proto"}

# Programs, examples and bench are users: they see the public headers and their own folder.  Only
# the micro benches see inside: they time one part by itself.
USERS = ("programs", "examples", "bench")
INSIDERS = ("bench/micro/",)

SYSTEM_HEADER = re.compile(
    r"^(sys|linux|netinet|net|arpa|asm)/|^(unistd|errno|fcntl|poll|sched|signal|"
    r"pthread|netdb|windows|winsock2|dlfcn|dirent)\.h$")
C_LIBRARY = {
    "assert.h", "float.h", "inttypes.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h",
    "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h",
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.MULTILINE)


class Include:
    def __init__(self, path, line, quoted, target):
        self.path, self.line, self.quoted, self.target = path, line, quoted, target

    def finding(self, what, advice):
        return Finding(self.path, self.line, what, advice)


def includes_of(root, path):
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    for match in INCLUDE.finditer(text):
        line = csource.line_of(text, match.start())
        yield Include(str(path), line, match.group(1) == '"', match.group(2))


def resolve(include, files):
    """The file of the repository that an include means, or None."""
    folder = str(pathlib.PurePosixPath(include.path).parent)
    places = ["src/", "tests/", folder + "/"] if include.quoted else ["include/"]
    for place in places:
        if place + include.target in files:
            return place + include.target
    return None


def is_test(path):
    return path.startswith("tests/") or pathlib.PurePosixPath(path).stem.endswith("_test")


def layer(path):
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return parts[0]


def check_include(include, target):
    """The findings for one include; `target` is the file it means, or None."""
    if ".." in include.target.split("/"):
        yield include.finding("include path that climbs", 'root it: "base/x.h" or <gori/x.h>')
    if is_test(include.path):
        return
    own = layer(include.path)
    if own == "include":
        yield from check_public(include, target)
    elif include.path.startswith("src/"):
        yield from check_library(include, own, target)
    elif own in USERS and not include.path.startswith(INSIDERS) and target and (
            layer(target) not in ("include", own)):
        yield include.finding(f"{own} includes {include.target}",
                              "use the public headers; what is missing there is missing for users")


def check_public(include, target):
    if target is None and include.target not in C_LIBRARY:
        yield include.finding(f"public header includes {include.target}",
                              "public headers need the C library and <gori/…> only")
    elif target is not None and not target.startswith("include/"):
        yield include.finding(f"public header includes {include.target}",
                              "public headers do not see src/")


def check_library(include, own, target):
    if target is None:
        if include.quoted:
            yield include.finding(f"{include.target} is not in the tree",
                                  'root it: "base/x.h" for private, <gori/x.h> for public headers')
        elif SYSTEM_HEADER.search(include.target) and not may_see_system(include.path):
            yield include.finding(f"{own} includes <{include.target}>",
                                  "ask src/os for what the system gives")
        return
    if target.startswith("include/"):
        return
    allowed = LAW.get(own, MODULE | {own})
    below = layer(target)
    if below not in allowed:
        yield include.finding(f"{own} includes {include.target}",
                              f"{own} may use {', '.join(sorted(allowed))} and public headers")
    elif below == "engine" and not may_see_implementation(include.path, target):
        yield include.finding(f"{include.target} is private to its engine",
                              "go through engine/engine.h")


def may_see_system(path):
    return path.startswith(("src/os/", "src/engine/")) and not path.startswith("src/engine/sim/")


def may_see_implementation(path, target):
    """Headers in src/engine itself are for all; those in a folder below are for that folder and
    for the files of src/engine that choose among the engines."""
    folder = str(pathlib.PurePosixPath(target).parent)
    return folder == "src/engine" or path.startswith(folder + "/") or (
        str(pathlib.PurePosixPath(path).parent) == "src/engine")


def find_cycle(graph):
    """One cycle as a list of files, or an empty list."""
    state, trail = {}, []

    def visit(node):
        state[node] = "open"
        trail.append(node)
        for other in sorted(graph.get(node, ())):
            if state.get(other) == "open":
                return trail[trail.index(other):] + [other]
            if other not in state:
                cycle = visit(other)
                if cycle:
                    return cycle
        state[node] = "done"
        trail.pop()
        return []

    for node in sorted(graph):
        if node not in state:
            cycle = visit(node)
            if cycle:
                return cycle
    return []


def read_graph(root):
    files = {str(path) for path in csource.repository_files(root)}
    graph, findings = {}, []
    for path in sorted(files):
        if not path.endswith((".c", ".h")):
            continue
        for include in includes_of(root, path):
            target = resolve(include, files)
            findings.extend(check_include(include, target))
            if target:
                graph.setdefault(path, set()).add(target)
    cycle = find_cycle(graph)
    if cycle:
        findings.append(Finding(cycle[0], 1, "include cycle " + " -> ".join(cycle),
                                "split what both need into a header of its own"))
    return graph, findings


def print_dot(graph):
    edges = {(layer(path), layer(target)) for path, targets in graph.items() if not is_test(path)
             for target in targets}
    print("digraph layers {\n    rankdir=BT;\n    node [shape=box, fontname=\"sans-serif\"];")
    for above, below in sorted(edges):
        if above != below:
            print(f'    "{above}" -> "{below}";')
    print("}")


def main(arguments):
    rest = [argument for argument in arguments[1:] if argument != "--dot"]
    root = pathlib.Path(rest[0]) if rest else pathlib.Path(__file__).resolve().parent.parent
    graph, findings = read_graph(root)
    if "--dot" in arguments:
        print_dot(graph)
        return 0
    return csource.report(findings, "layers")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
