#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs: checks the manual pages and writes what is generated from the sources.

    tools/docs.py OUTPUT_FOLDER

  man/*.html       the manual pages of docs/man, after mandoc found nothing to complain about
  reference.html   every public header: its purpose, and each declaration with its comment
  layers.dot       the graph of folders, for Graphviz
"""

import contextlib
import html
import pathlib
import re
import subprocess
import sys

import csource
import layers

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>gori: reference</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto }}
pre {{ background: #8881; padding: .6rem .8rem; overflow-x: auto; margin-bottom: .3rem }}
p {{ white-space: pre-line; margin: 0 0 1.5rem }}
:root {{ color-scheme: light dark }}
</style>
<h1>gori: reference</h1>
{body}
"""


def comment_text(comment):
    """The words of a comment, without its frame of stars."""
    lines = comment.strip().removeprefix("/*").removesuffix("*/").strip("*\n ").split("\n")
    return "\n".join(re.sub(r"^\s*\*\s?", "", line) for line in lines).strip()


def comment_before(text, position):
    before = text[:position].rstrip()
    comment = before[before.rfind("/*"):] if before.endswith("*/") else ""
    return comment if comment.startswith("/**") else ""


def header_section(path, name):
    """One header as HTML."""
    text = path.read_text(encoding="utf-8")
    purpose = re.search(r"\*/\s*(/\*.*?\*/)", text, re.DOTALL)
    parts = [f"<h2 id='{name}'>&lt;{name}&gt;</h2>"]
    if purpose:
        parts.append(f"<p>{html.escape(comment_text(purpose.group(1)))}</p>")
    for statement in csource.statements(csource.mask(text)):
        comment = comment_before(text, statement.start)
        if comment:
            source = text[statement.start:statement.start + len(statement.head)]
            source = re.sub(r"\b(GORI_API|GORI_MUST_USE)\s+", "", source)
            parts.append(f"<pre>{html.escape(source)};</pre>")
            parts.append(f"<p>{html.escape(comment_text(comment))}</p>")
    return "\n".join(parts)


def write_reference(root, output):
    include = root / "include"
    headers = sorted(include.rglob("*.h"))
    body = [header_section(path, path.relative_to(include).as_posix()) for path in headers]
    (output / "reference.html").write_text(PAGE.format(body="\n".join(body)), encoding="utf-8")
    return len(headers)


def write_pages(root, output):
    """Lints and renders the manual pages; gives how many there are and how many are faulty."""
    pages, faulty = sorted((root / "docs/man").glob("*.[1-8]")), 0
    (output / "man").mkdir(parents=True, exist_ok=True)
    for page in pages:
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(page)],
                              capture_output=True, text=True, check=False)
        if lint.returncode != 0:
            faulty += 1
            print((lint.stdout + lint.stderr).strip())
        rendered = subprocess.run(["mandoc", "-T", "html", str(page)], capture_output=True,
                                  text=True, check=True).stdout
        (output / "man" / f"{page.name}.html").write_text(rendered, encoding="utf-8")
    return len(pages), faulty


def main(arguments):
    if len(arguments) != 2:
        print("usage: tools/docs.py OUTPUT_FOLDER", file=sys.stderr)
        return 2
    root = pathlib.Path(__file__).resolve().parent.parent
    output = pathlib.Path(arguments[1])
    pages, faulty = write_pages(root, output)
    headers = write_reference(root, output)
    with open(output / "layers.dot", "w", encoding="utf-8") as file:
        with contextlib.redirect_stdout(file):
            layers.print_dot(layers.read_graph(root)[0])
    print(f"docs: {pages} manual pages ({faulty} faulty) and {headers} headers in {output}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
