#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: what `cmake --install` leaves is a package that foreign projects can build against.

Method: builds and installs the library, static and shared, moves the result to another folder (a
package that holds its own path would break), then builds one small program against it twice,
through find_package and through pkg-config, and runs both.  Builds are kept: a second run is quick.

Usage: run.py BUILD_FOLDER
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "tests/install/foreign"


def run(*command, **options):
    """Runs a command; on failure shows what it said and ends."""
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        print(f"failed ({result.returncode}): {' '.join(words)}\n{result.stdout}{result.stderr}")
        sys.exit(1)
    return result.stdout


def install(variant, folder):
    """Builds and installs one variant and gives the folder it was moved to afterwards."""
    shared = "ON" if variant == "shared" else "OFF"
    build, first, prefix = folder / "build", folder / "first", folder / "moved"
    run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DBUILD_SHARED_LIBS={shared}", "-DGORI_TESTS=OFF")
    run("cmake", "--build", build)
    for old in (first, prefix):
        shutil.rmtree(old, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", first, "--strip")
    first.rename(prefix)
    return prefix


def check_relocatable(prefix):
    """No text file of the package may name the folder it was built or first installed in."""
    for path in sorted(prefix.rglob("*")):
        if path.suffix in (".pc", ".cmake", ".h") and str(ROOT) in path.read_text(encoding="utf-8"):
            print(f"{path}: holds the path {ROOT}; use a path relative to the file")
            sys.exit(1)


def library_folder(prefix):
    return next(prefix.rglob("gori-core.pc")).parent.parent


def check_contents(variant, prefix):
    """Every public header, a program if one is built, and symbols that keep the rules."""
    for header in (ROOT / "include").rglob("*.h"):
        installed = prefix / "include" / header.relative_to(ROOT / "include")
        if not installed.exists():
            print(f"{installed}: not installed")
            sys.exit(1)
    for page in (ROOT / "docs/man").glob("*.[1-8]"):
        if not (prefix / f"share/man/man{page.suffix[1]}" / page.name).exists():
            print(f"{page}: not installed")
            sys.exit(1)
    program = prefix / "bin/gori"
    if program.exists():
        print(run(program, "--version").strip())
    pattern = "libgori-*.so" if variant == "shared" else "libgori-*.a"
    libraries = sorted(library_folder(prefix).glob(pattern))
    print(run(sys.executable, ROOT / "tools/symbols.py", *libraries).strip())


def build_with_cmake(prefix, folder):
    build = folder / "foreign"
    shutil.rmtree(build, ignore_errors=True)
    run("cmake", "-S", FOREIGN, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return build / "foreign"


def build_with_pkg_config(variant, prefix, folder):
    package_folder = library_folder(prefix) / "pkgconfig"
    environment = {**os.environ, "PKG_CONFIG_PATH": str(package_folder)}
    static = ["--static"] if variant == "static" else []
    flags = run("pkg-config", *static, "--cflags", "--libs", "gori-web", "gori-core",
                env=environment).split()
    program = folder / "foreign-pkg-config"
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", program, FOREIGN / "main.c", *flags)
    return program


def test(variant, folder):
    folder.mkdir(parents=True, exist_ok=True)
    prefix = install(variant, folder)
    check_relocatable(prefix)
    check_contents(variant, prefix)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library_folder(prefix))}
    said = run(build_with_cmake(prefix, folder))
    print(f"{variant}, CMake: {said.strip()}")
    said = run(build_with_pkg_config(variant, prefix, folder), env=environment)
    print(f"{variant}, pkg-config: {said.strip()}")


def main(arguments):
    if len(arguments) != 2:
        print("usage: run.py BUILD_FOLDER", file=sys.stderr)
        return 2
    for variant in ("static", "shared"):
        test(variant, pathlib.Path(arguments[1]).resolve() / variant)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
