#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tidy: the rules of STYLE.md that a machine can hold, over every file of the repository.

    tools/tidy.py [--files] [ROOT]

With --files it leaves out the rules for the whole tree: neighbour tests, unlisted files, links.
There is no list of exceptions.  Each rule is one function that gets a Source or the whole Tree and
gives findings; what cannot be seen from text alone (layers, symbols, formatting) has its own tool.
"""

import pathlib
import re
import sys

import csource
from csource import Finding

FUNCTION_LINES = 70
PARAMETERS = 7
NESTING = 4
LINE_COLUMNS = 100
SOURCE_LINES = 1200
HEADER_LINES = 500
EXAMPLE_LINES = 200

BANNED = {
    "strcpy": "use memcpy with a checked size",
    "strcat": "use memcpy with a checked size",
    "sprintf": "use snprintf",
    "vsprintf": "use vsnprintf",
    "strtok": "walk the slice",
    "atoi": "parse with limits, or use strtol and look at where it stopped",
    "gets": "use fgets",
    "alloca": "use a bounded array or an allocator",
    "rand": "use the seeded generator of base/random.h",
    "srand": "use the seeded generator of base/random.h",
}
ALLOCATION = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free)\s*\(")
ALLOCATOR = "src/base/alloc.c"
SYSTEM_MACRO = re.compile(
    r"\b(__linux__|__linux|_WIN32|_WIN64|__APPLE__|__FreeBSD__|__OpenBSD__|__NetBSD__|"
    r"__DragonFly__|__unix__|__ANDROID__)\b")
CODE_SUFFIXES = {".c", ".h", ".py", ".sh", ".js", ".cjs", ".mjs", ".css", ".cmake"}
GLOBALS_FILE = "tools/globals.txt"


class Source:
    """One file: its path below the root, its text, and the text without comments and literals."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.name = str(path)
        self.is_c = path.suffix in (".c", ".h")
        self.masked = csource.mask(text, keep_line_comments=True) if self.is_c else ""
        self.statements = csource.statements(self.masked) if self.is_c else []

    def under(self, *folders):
        return any(self.name.startswith(folder + "/") for folder in folders)

    def is_test(self):
        return self.under("tests") or self.path.stem.endswith("_test")

    def finding(self, position, what, advice):
        return Finding(self.name, csource.line_of(self.text, position), what, advice)


class Tree:
    """The repository as the rules see it."""

    def __init__(self, root):
        self.root = root
        self.paths = csource.repository_files(root)
        self.sources = []
        for path in self.paths:
            try:
                self.sources.append(Source(path, (root / path).read_text(encoding="utf-8")))
            except UnicodeDecodeError:
                continue

    def named(self, *suffixes):
        return [source for source in self.sources if source.path.suffix in suffixes]


# Rules for the text of any file of code.


def check_text(source):
    if source.path.suffix not in CODE_SUFFIXES and source.path.name != "CMakeLists.txt":
        return
    for number, line in enumerate(source.text.split("\n"), 1):
        if len(line) > LINE_COLUMNS and (source.is_c or source.path.suffix in (".py", ".sh")):
            yield Finding(source.name, number, f"line of {len(line)} columns",
                          f"break it before {LINE_COLUMNS}")
        if line != line.rstrip():
            yield Finding(source.name, number, "white space at the end of the line", "remove it")
        if "\t" in line:
            yield Finding(source.name, number, "tab", "indent with spaces")
    if source.text and not source.text.endswith("\n"):
        yield source.finding(len(source.text), "no line end at the end of the file", "add one")


def check_unfinished(source):
    if source.path.suffix not in CODE_SUFFIXES or source.under("tools", "tests/tools"):
        return
    for match in re.finditer(r"\b(TODO|FIXME|XXX)\b(?!\(baseline )", source.text):
        yield source.finding(match.start(), f"{match.group(1)} left in the source",
                             "finish it, or open an issue and say why here")


def check_file_comment(source):
    if source.is_c:
        pattern = r"/\* SPDX-License-Identifier: MIT \*/\n/\*\s[^/]{20,}"
        form = "/* SPDX-License-Identifier: MIT */ and then a comment on what the file is"
    elif source.path.suffix in (".py", ".sh") or source.name in ("dev", ".ci/run"):
        pattern = r"(#![^\n]*\n)?# SPDX-License-Identifier: MIT\n(#\s|\"\"\")[^\n]{10,}"
        form = "the SPDX line and then a comment on what the file is"
    elif source.path.suffix == ".cmake" or source.path.name == "CMakeLists.txt":
        pattern = r"# \S[^\n]{8,}"
        form = "a comment on what the file is"
    else:
        return
    if not re.match(pattern, source.text):
        yield source.finding(0, "no file comment", f"start with {form}")


# Rules for C.


def check_line_comments(source):
    for match in re.finditer("//", source.masked):
        yield source.finding(match.start(), "// comment",
                             "write /* */ if it is worth keeping, or remove it")


def check_banned_calls(source):
    for name, advice in BANNED.items():
        for match in re.finditer(rf"(?<![\w.>]){name}\s*\(", source.masked):
            yield source.finding(match.start(), f"call of {name}", advice)
    if source.name == ALLOCATOR or not source.under("src"):
        return
    for match in ALLOCATION.finditer(source.masked):
        yield source.finding(match.start(), f"call of {match.group(1)} outside {ALLOCATOR}",
                             "use the allocator that the object was created with")


def check_system_macros(source):
    if source.under("src/os", "src/engine", "bench"):
        return
    for match in csource.DIRECTIVE.finditer(source.masked):
        macro = SYSTEM_MACRO.search(match.group(0))
        if macro and re.match(r"\s*#\s*(if|elif|ifdef|ifndef)", match.group(0)):
            yield source.finding(match.start() + macro.start(),
                                 f"{macro.group(1)} outside src/os and src/engine",
                                 "put what differs behind a function of src/os")


def check_file_size(source):
    lines = source.text.count("\n")
    limit = SOURCE_LINES if source.path.suffix == ".c" else HEADER_LINES
    if source.under("examples"):
        limit = EXAMPLE_LINES
    if lines > limit:
        yield Finding(source.name, lines, f"file of {lines} lines, {limit} are allowed",
                      "split it by what it is about")


def check_functions(source):
    for statement in source.statements:
        if statement.body is None or "(" not in statement.head:
            continue
        name = csource.name_of_function(statement.head)
        lines = (statement.head + statement.body).count("\n") + 2
        if lines > FUNCTION_LINES:
            yield source.finding(statement.start, f"{name} has {lines} lines",
                                 f"split it: {FUNCTION_LINES} are allowed, 25 are a good size")
        count = csource.parameters(statement.head)
        if count > PARAMETERS:
            yield source.finding(statement.start, f"{name} has {count} parameters",
                                 "pass a struct with named fields")
        depth, offset = deepest_block(statement.body)
        if depth > NESTING:
            position = source.text.index("\n{\n", statement.start) + 1 + offset
            yield source.finding(position, f"{name} is nested {depth} deep",
                                 f"return early or split it: {NESTING} are allowed")


def deepest_block(body):
    """How deep the blocks of a function go, and where; initialisers are no blocks."""
    deepest, where, stack = 0, 0, []
    for match in re.finditer(r"[{}]", body):
        if match.group(0) == "{":
            stack.append(opens_block(body[:match.start()]))
            depth = sum(stack) - 1
            if depth > deepest:
                deepest, where = depth, match.start()
        elif stack:
            stack.pop()
    return deepest, where


def opens_block(before):
    before = before.rstrip()
    if not before or before[-1] in ";{}:":
        return True
    if before[-1] != ")":
        return bool(re.search(r"\b(else|do)$", before))
    depth = 0
    for index in range(len(before) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(before[index], 0)
        if depth == 0:
            word = re.search(r"(\w+)\s*$", before[:index])
            return bool(word) and (word.group(1) in ("if", "for", "while", "switch")
                                   or word.group(1).isupper())
    return False


def check_public_documentation(source):
    if not source.under("include/gori"):
        return
    for statement in source.statements:
        name = csource.name_of_function(statement.head)
        is_type = "{" in statement.head.split("(")[0] or statement.head.startswith("typedef")
        if not name.startswith("gori_") or is_type:
            continue
        before = source.text[:statement.start].rstrip()
        comment = before[before.rfind("/*"):] if before.endswith("*/") else ""
        if not comment.startswith("/**"):
            yield source.finding(statement.start, f"{name} is not documented",
                                 "put a /** */ block directly above its prototype")


# Variables that outlive a call.

NOT_A_VARIABLE = re.compile(
    r"^(typedef|extern|_Static_assert|static_assert)\b|"
    r"^(struct|union|enum)(\s+\w+)?\s*(\{.*\})?$", re.DOTALL)


def variables(source):
    """(position, name) of every variable of static duration that can change."""
    for statement in source.statements:
        if statement.body is not None:
            start = source.text.index("\n{\n", statement.start) + 1
            for match in re.finditer(r"[;{}]\s*static\s+([^;=]*?)(\w+)\s*(\[[^;=]*)?[;=]",
                                     statement.body):
                if not is_constant(match.group(1)) and "(" not in match.group(1):
                    yield start + match.start(2), match.group(2)
            continue
        declaration = re.sub(r"\{.*?\}", "", statement.head.split("=")[0], flags=re.DOTALL).strip()
        if NOT_A_VARIABLE.match(statement.head) or not declaration or "(" in declaration:
            continue
        name = re.search(r"(\w+)\s*(\[.*\])?$", declaration, re.DOTALL)
        if name and not is_constant(declaration[:name.start()]) and " " in declaration:
            yield statement.start, name.group(1)


def is_constant(declaration):
    return "const" in declaration.rsplit("*", 1)[-1].split()


def check_variables(tree):
    listed = set()
    if (tree.root / GLOBALS_FILE).exists():
        lines = (tree.root / GLOBALS_FILE).read_text(encoding="utf-8").splitlines()
        listed = {tuple(line.split()[:2]) for line in lines if line and not line.startswith("#")}
    seen = set()
    for source in tree.named(".c", ".h"):
        if not source.under("src", "programs") or source.is_test():
            continue
        for position, name in variables(source):
            seen.add((source.name, name))
            if not name.startswith(("g_", "tl_")):
                yield source.finding(position, f"{name} outlives its call and says nothing of it",
                                     "keep it in a struct, or name it g_… (tl_… for a thread's)")
            elif (source.name, name) not in listed:
                yield source.finding(
                    position, f"{name} is a global variable",
                    f"keep it in a struct, or list it in {GLOBALS_FILE} and say why")
    for path, name in sorted(listed - seen):
        yield Finding(GLOBALS_FILE, 1, f"{name} is no longer in {path}", "remove the line")


# Rules for the tree.


def check_neighbour_tests(tree):
    present = {str(path) for path in tree.paths}
    for source in tree.named(".c"):
        if not source.under("src/base", "src/proto") or source.is_test():
            continue
        test = str(source.path.with_name(source.path.stem + "_test.c"))
        if test not in present:
            yield source.finding(0, "no test beside it", f"write {test}")


def check_listed(tree):
    """Every .c file is built by somebody and every private header is included by somebody."""
    words, includes = {}, set()
    for source in tree.sources:
        folder = str(source.path.parent)
        if source.is_c:
            includes.update(re.findall(r'#\s*include\s+["<]([^">]+)[">]', source.text))
        elif source.path.name == "CMakeLists.txt" or source.path.suffix in (".py", ".cmake", ".sh"):
            # A path from the root, written after ${PROJECT_SOURCE_DIR}, counts for the root.
            found = re.findall(r"[\w./-]+", source.text)
            words.setdefault(folder, set()).update(found)
            words.setdefault(".", set()).update(word[1:] for word in found if word[0] == "/")
    names = {include.rsplit("/", 1)[-1] for include in includes}
    for source in tree.named(".c"):
        if not is_listed(source.path, words):
            yield source.finding(0, "no CMakeLists.txt names it", "list it, or remove it")
    for source in tree.named(".h"):
        if not source.under("include") and source.path.name not in names:
            yield source.finding(0, "nobody includes it", "include it, or remove it")


def is_listed(path, words):
    for folder in path.parents:
        relative = path.relative_to(folder)
        known = words.get(str(folder), ())
        if str(relative) in known or str(relative.with_suffix("")) in known:
            return True
    return False


def check_markdown(tree):
    for source in tree.named(".md"):
        text = re.sub(r"^```.*?^```", lambda match: csource.blank(match.group(0)), source.text,
                      flags=re.DOTALL | re.MULTILINE)
        titles = list(re.finditer(r"^# ", text, re.MULTILINE))
        if len(titles) != 1:
            position = titles[1].start() if titles else 0
            yield source.finding(position, f"{len(titles)} titles in one document",
                                 "have one line that starts with '# '")
        for match in re.finditer(r"\]\(([^)#:\s]+)(#[^)]*)?\)", text):
            if not (tree.root / source.path.parent / match.group(1)).exists():
                yield source.finding(match.start(), f"link to {match.group(1)}, which is not there",
                                     "correct the link")


SOURCE_RULES = [check_text, check_unfinished, check_file_comment]
C_RULES = [check_line_comments, check_banned_calls, check_system_macros, check_file_size,
           check_functions, check_public_documentation]
TREE_RULES = [check_variables, check_neighbour_tests, check_listed, check_markdown]


def check(root, files_only=False):
    tree = Tree(root)
    findings = []
    for source in tree.sources:
        for rule in SOURCE_RULES + (C_RULES if source.is_c else []):
            findings.extend(rule(source))
    for rule in TREE_RULES if not files_only else []:
        findings.extend(rule(tree))
    return sorted(findings, key=lambda finding: (finding.path, finding.line, finding.what))


def main(arguments):
    default = pathlib.Path(__file__).resolve().parent.parent
    rest = [argument for argument in arguments[1:] if argument != "--files"]
    root = pathlib.Path(rest[0]) if rest else default
    return csource.report(check(root, "--files" in arguments), "tidy")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
