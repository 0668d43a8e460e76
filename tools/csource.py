# SPDX-License-Identifier: MIT
"""A shallow look at C source, shared by the checks.

It knows comments, literals, preprocessor lines, braces and parentheses, and nothing of types.  It
relies on the repository's own clang-format layout in one place: the brace that opens a function
stands alone in the first column.
"""

import pathlib
import re
import subprocess

TOKEN = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
                   re.VERBOSE | re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


class Finding:
    """One complaint: where, what is wrong, and what to do about it."""

    def __init__(self, path, line, what, advice):
        self.path, self.line, self.what, self.advice = str(path), line, what, advice

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}; {self.advice}"


def blank(text):
    """The same text with everything but line ends turned into spaces."""
    return re.sub(r"[^\n]", " ", text)


def mask(text, keep_line_comments=False):
    """`text` with comments and the insides of literals blanked, positions unchanged."""

    def replace(match):
        token = match.group(0)
        if token.startswith("//") and keep_line_comments:
            return "//" + blank(token[2:])
        if token[0] in "\"'":
            return token[0] + blank(token[1:-1]) + token[0]
        return blank(token)

    return TOKEN.sub(replace, text)


def mask_directives(masked):
    """Masked text with preprocessor lines blanked as well."""
    return DIRECTIVE.sub(lambda match: blank(match.group(0)), masked)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


class Statement:
    """A declaration or a definition at file scope: `head` is its text up to the body or the end."""

    def __init__(self, start, head, body):
        self.start, self.head, self.body = start, head, body


def skip_block(text, position):
    """The position after the brace that closes the one at `position`."""
    depth = 0
    for index in range(position, len(text)):
        if text[index] == "{":
            depth += 1
        elif text[index] == "}":
            depth -= 1
            if depth == 0:
                return index + 1
    return len(text)


def statements(masked):
    """The statements at file scope; looks through `extern "C" {`."""
    text = mask_directives(masked)
    text = re.sub(r'extern\s*"[^"]*"\s*\{', lambda match: blank(match.group(0)), text)
    result, start, position = [], 0, 0
    while position < len(text):
        char = text[position]
        if char == "{":
            end = skip_block(text, position)
            if text[position - 1:position] == "\n" and text[position + 1:position + 2] == "\n":
                result.append(make_statement(text, start, position, text[position:end]))
                start = end
            position = end
        elif char in ";}":
            result.append(make_statement(text, start, position, None))
            start = position = position + 1
        else:
            position += 1
    return [statement for statement in result if statement.head]


def make_statement(text, start, end, body):
    head = text[start:end]
    return Statement(start + len(head) - len(head.lstrip()), head.strip(), body)


def parameters(head):
    """How many parameters the function declared by `head` has."""
    opening = head.find("(")
    depth, commas, index = 0, 0, opening
    for index in range(opening, len(head)):
        depth += {"(": 1, ")": -1}.get(head[index], 0)
        commas += head[index] == "," and depth == 1
        if depth == 0:
            break
    inside = head[opening + 1:index].strip()
    return 0 if inside in ("", "void") else commas + 1


def name_of_function(head):
    match = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head))
    return match.group(1) if match else "?"


def repository_files(root):
    """Every file of the tree that git would commit, or all below `root` outside a repository."""
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, check=False)
    if listing.returncode == 0:
        names = [name for name in listing.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return sorted(pathlib.PurePosixPath(name) for name in set(names) if (root / name).is_file())


def report(findings, subject):
    """Prints the findings and gives the exit status."""
    for finding in findings:
        print(finding)
    if findings:
        print(f"{subject}: {len(findings)} to correct")
        return 1
    print(f"{subject}: clean")
    return 0
