#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# setup: installs the peers and builds all contestants with the same flags in build/bench; called by
# ./dev bench.  Installing a web server may start it as a service and enable it at boot; measuring
# needs neither, so both are prevented, and a service that was there before is left as it was.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
. tools/need.sh

installed() { dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q ' installed$'; }

# without_services COMMAND...: while it runs, no package may start a service.
without_services() {
    local policy=/usr/sbin/policy-rc.d status=0
    if [ -e "$policy" ]; then
        "$@"
        return
    fi
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    "$@" || status=$?
    as_root rm -f "$policy"
    return "$status"
}

need_web_server() {
    local package=$1
    installed "$package" && return 0
    without_services need "$package"
    if command -v systemctl >/dev/null; then
        as_root systemctl --quiet disable "$package" 2>/dev/null || true
    fi
}

# peer COMMAND...: a peer that cannot be had is absent from the table, which says so.
peer() { ("$@") || say "measuring without it: $*"; }

need_build
case ${1:-} in
echo | overhead | idle)
    peer need libuv1-dev
    peer need c++=g++ libasio-dev liburing-dev
    ;;
web)
    peer need_web_server nginx
    peer need_web_server h2o
    ;;
post)
    peer need libuv1-dev
    peer need c++=g++ libasio-dev
    ;;
timers | readiness | jobs | models) ;;
*) exit 0 ;; # nothing to measure: no set-up
esac

log=build/bench-configure.log
mkdir -p build
cmake --preset bench >"$log" 2>&1 || { cat "$log" >&2 && die "configuring bench failed"; }
# Whoever does not build is absent from the table; the others are measured all the same.
cmake --build --preset bench -j "$(nproc)" -- -k 0 >build/bench-build.log 2>&1 ||
    say "not everything was built: see build/bench-build.log"
