#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: each rule of the tools finds what it is for, and finds nothing in good code.

Method: every case writes a tree of a few small files into a temporary folder and looks at what the
tool says.  A rule that never fires is worse than none, because people trust it.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import csource  # noqa: E402
import layers  # noqa: E402
import symbols  # noqa: E402
import tidy  # noqa: E402

HEAD = "/* SPDX-License-Identifier: MIT */\n/* A sample for the test of the tools. */\n"
SAMPLE = "programs/gori/sample.c"
LIST = {"programs/gori/CMakeLists.txt": "# Sources of the sample.\ngori_program(gori sample.c)\n"}


class Case(unittest.TestCase):
    def write(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    def assert_found(self, findings, text, path=None, line=None):
        messages = [str(finding) for finding in findings]
        self.assertEqual(len(messages), 1, messages)
        self.assertIn(text, messages[0])
        if path:
            self.assertTrue(messages[0].startswith(f"{path}:{line or ''}"), messages[0])


class TidyTest(Case):
    def tidy(self, files):
        return tidy.check(self.write(files))

    def sample(self, code, text, line=None, path=SAMPLE, head=HEAD):
        listing = {f"{pathlib.PurePosixPath(path).parent}/CMakeLists.txt":
                   f"# The sources.\n{pathlib.PurePosixPath(path).name}\n"}
        self.assert_found(self.tidy({**listing, path: head + code}), text, path, line)

    def test_good_code_passes(self):
        code = ('static const char *const names[] = {"a // b", "malloc(1)"};\n\n'
                "/* Why: the parent frees. */\nint first(const int *items, int count)\n{\n"
                "    struct point origin = {.x = {1}, .y = {2}};\n"
                "    for (int index = 0; index < count; index++) {\n"
                "        if (items[index] != origin.x) {\n            return index;\n        }\n"
                "    }\n    return -1;\n}\n")
        self.assertEqual([str(found) for found in self.tidy({**LIST, SAMPLE: HEAD + code})], [])

    def test_line_comment(self):
        self.sample("int a(void); // left over\n", "// comment", 3)

    def test_banned_call(self):
        self.sample("void a(char *b)\n{\n    strcpy(b, \"x\");\n}\n", "call of strcpy", 5)

    def test_banned_name_as_member_is_fine(self):
        code = "void a(struct b *b)\n{\n    b->free(b);\n}\n"
        self.assertEqual(self.tidy({**LIST, SAMPLE: HEAD + code}), [])

    def test_allocation_outside_the_allocator(self):
        self.sample("void *a(void)\n{\n    return malloc(1);\n}\n", "call of malloc", 5,
                    path="src/rt/sample.c")

    def test_unfinished(self):
        self.sample("/* TODO: the rest */\nint a(void);\n", "TODO", 3)

    def test_long_line(self):
        self.sample("int " + "a" * 100 + ";\n", "line of 105 columns", 3, path="tests/sample.c")

    def test_trailing_space(self):
        self.sample("int a(void); \n", "white space", 3)

    def test_long_function(self):
        self.sample("void a(void)\n{\n" + "    b();\n" * 70 + "}\n", "a has 73 lines", 3)

    def test_too_many_parameters(self):
        arguments = ", ".join(f"int {letter}" for letter in "abcdefgh")
        self.sample(f"void f({arguments})\n{{\n}}\n", "f has 8 parameters", 3)

    def test_deep_nesting(self):
        body = "".join("    " * depth + "if (x) {\n" for depth in range(1, 6))
        body += "".join("    " * depth + "}\n" for depth in range(5, 0, -1))
        self.sample("void f(int x)\n{\n" + body + "}\n", "f is nested 5 deep")

    def test_long_file(self):
        self.sample("/* x */\n" * 1201, "file of 1203 lines")

    def test_missing_file_comment(self):
        self.sample("int a(void);\n", "no file comment", 1, head="")

    def test_missing_spdx_in_python(self):
        found = self.tidy({"tools/a.py": '"""A tool."""\n'})
        self.assert_found(found, "no file comment", "tools/a.py", 1)

    def test_missing_neighbour_test(self):
        self.sample("int a(void);\n", "no test beside it", 1, path="src/base/sample.c")

    def test_unlisted_source(self):
        found = self.tidy({SAMPLE: HEAD})
        self.assert_found(found, "no CMakeLists.txt names it", SAMPLE, 1)

    def test_header_that_nobody_includes(self):
        found = self.tidy({"src/rt/lonely.h": HEAD})
        self.assert_found(found, "nobody includes it", "src/rt/lonely.h", 1)

    def test_system_macro(self):
        self.sample("#ifdef __linux__\n#endif\n", "__linux__ outside src/os", 3)

    def test_two_titles(self):
        found = self.tidy({"a.md": "# One\n\n```\n# no title\n```\n\n# Two\n"})
        self.assert_found(found, "2 titles", "a.md", 7)

    def test_dead_link(self):
        found = self.tidy({"a.md": "# One\n\n[there](b.md), [net](https://example.org/)\n"})
        self.assert_found(found, "link to b.md", "a.md", 3)

    def test_undocumented_function(self):
        code = ("/** Says what it does. */\nGORI_API int gori_a(void);\n\n"
                "/* Not a documentation block. */\nGORI_API int gori_b(void);\n")
        found = self.tidy({"include/gori/sample.h": HEAD + code})
        self.assert_found(found, "gori_b is not documented", "include/gori/sample.h", 7)

    def test_global_without_a_prefix(self):
        self.sample("static int counter;\n", "counter outlives its call", 3)

    def test_global_in_a_function(self):
        self.sample("int f(void)\n{\n    static int calls;\n    return calls++;\n}\n",
                    "calls outlives its call", 5)

    def test_global_that_is_not_listed(self):
        self.sample("static _Atomic int g_counter = 1;\n", "g_counter is a global variable", 3)

    def test_global_that_is_listed(self):
        listing = {"tools/globals.txt": f"{SAMPLE} g_counter the reason\n"}
        found = self.tidy({**LIST, **listing, SAMPLE: HEAD + "static int g_counter;\n"})
        self.assertEqual([str(finding) for finding in found], [])

    def test_listed_global_that_is_gone(self):
        found = self.tidy({"tools/globals.txt": f"{SAMPLE} g_counter the reason\n"})
        self.assert_found(found, "g_counter is no longer", "tools/globals.txt", 1)


class LayersTest(Case):
    def layers(self, files):
        return layers.read_graph(self.write(files))[1]

    def test_downward_passes(self):
        self.assertEqual(self.layers({
            "include/gori/x.h": "#include <stddef.h>\n", "src/base/a.h": "#include <gori/x.h>\n",
            "src/os/b.c": '#include "base/a.h"\n#include <sys/socket.h>\n',
            "programs/gori/main.c": "#include <gori/x.h>\n#include <unistd.h>\n"}), [])

    def test_upward(self):
        found = self.layers({"src/rt/loop.h": "", "src/base/a.c": '\n#include "rt/loop.h"\n'})
        self.assert_found(found, "base includes rt/loop.h", "src/base/a.c", 2)

    def test_codec_with_a_runtime(self):
        found = self.layers({"src/os/a.h": "", "src/proto/b.c": '#include "os/a.h"\n'})
        self.assert_found(found, "proto includes os/a.h", "src/proto/b.c", 1)

    def test_module_with_an_engine(self):
        found = self.layers({"src/engine/engine.h": "",
                             "src/web/b.c": '#include "engine/engine.h"\n'})
        self.assert_found(found, "web includes engine/engine.h", "src/web/b.c", 1)

    def test_module_with_the_inside_of_the_runtime(self):
        found = self.layers({"src/rt/a.h": "", "src/web/b.c": '#include "rt/a.h"\n'})
        self.assert_found(found, "web includes rt/a.h", "src/web/b.c", 1)

    def test_module_with_another_module(self):
        found = self.layers({"src/game/a.h": "", "src/web/b.c": '#include "game/a.h"\n'})
        self.assert_found(found, "web includes game/a.h", "src/web/b.c", 1)

    def test_private_header_of_an_engine(self):
        found = self.layers({"src/engine/uring/ring.h": "",
                             "src/rt/a.c": '#include "engine/uring/ring.h"\n'})
        self.assert_found(found, "private to its engine", "src/rt/a.c", 1)

    def test_program_with_a_private_header(self):
        found = self.layers({"src/base/a.h": "", "programs/gori/b.c": '#include "base/a.h"\n'})
        self.assert_found(found, "programs includes base/a.h", "programs/gori/b.c", 1)

    def test_public_header_with_a_private_one(self):
        found = self.layers({"src/base/a.h": "", "include/gori/b.h": '#include "base/a.h"\n'})
        self.assert_found(found, "public header includes base/a.h", "include/gori/b.h", 1)

    def test_system_header_in_a_codec(self):
        found = self.layers({"src/proto/a.c": "#include <sys/socket.h>\n"})
        self.assert_found(found, "proto includes <sys/socket.h>", "src/proto/a.c", 1)

    def test_climbing_path(self):
        found = self.layers({"src/base/a.h": "", "src/base/a_test.c": '#include "../base/a.h"\n'})
        self.assert_found(found, "path that climbs", "src/base/a_test.c", 1)

    def test_cycle(self):
        found = self.layers({"src/rt/a.h": '#include "rt/b.h"\n',
                             "src/rt/b.h": '#include "rt/a.h"\n'})
        self.assert_found(found, "include cycle src/rt/a.h -> src/rt/b.h -> src/rt/a.h")


class SymbolsTest(Case):
    def build(self, code, name):
        root = self.write({"a.c": code})
        library = root / name
        if name.endswith(".so"):
            command = ["cc", "-shared", "-fPIC", "-o", library, root / "a.c"]
            subprocess.run(command, check=True)
        else:
            subprocess.run(["cc", "-c", "-o", root / "a.o", root / "a.c"], check=True)
            subprocess.run(["ar", "rc", library, root / "a.o"], check=True)
        return root, library

    def test_shared_exports_only_what_headers_declare(self):
        root, library = self.build("int gori_a(void) { return 1; }\nint gi_b(void) { return 2; }\n",
                                   "liba.so")
        header = root / "include/gori/a.h"
        header.parent.mkdir(parents=True)
        header.write_text("GORI_API int gori_a(void);\n")
        self.assert_found(list(symbols.check(root, library)), "exports gi_b")

    def test_static_keeps_to_the_prefixes(self):
        code = "int gi_a(void) { return 1; }\nint helper(void) { return 2; }\n"
        root, library = self.build(code, "liba.a")
        self.assert_found(list(symbols.check(root, library)), "defines helper")

    def test_static_defines_each_name_once(self):
        root, library = self.build("int gi_a(void) { return 1; }\n", "liba.a")
        (root / "a.o").rename(root / "b.o")
        subprocess.run(["ar", "q", library, root / "b.o"], check=True)
        self.assert_found(list(symbols.check(root, library)), "defines gi_a 2 times")


class DevTest(unittest.TestCase):
    def dev(self, *arguments):
        command = [ROOT / "dev", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_wrong_usage_is_one_line(self):
        for arguments in ((), ("nonsense",)):
            result = self.dev(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertEqual(result.stdout, "")
            self.assertEqual(result.stderr.count("\n"), 1)

    def test_help_names_every_command(self):
        result = self.dev("--help")
        self.assertEqual(result.returncode, 0)
        for line in (ROOT / "dev").read_text(encoding="utf-8").splitlines():
            if line.startswith("cmd_"):
                name = line.split("(")[0].removeprefix("cmd_").replace("_", "-")
                self.assertIn(f"\n  {name}", result.stdout)


class SourceTest(unittest.TestCase):
    def test_literals_hide_nothing_and_show_nothing(self):
        self.assertEqual(csource.mask('a("/*"); /* b */ c'), 'a("  ");         c')

    def test_parameters(self):
        self.assertEqual(csource.parameters("int f(void)"), 0)
        self.assertEqual(csource.parameters("int f(int a, void (*b)(int, int))"), 2)


if __name__ == "__main__":
    unittest.main()
