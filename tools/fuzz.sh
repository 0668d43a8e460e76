#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fuzz: runs the fuzz targets of build/fuzz.  New inputs go to build/fuzz/corpus; what crashes a
# target goes to build/fuzz/crashes, and belongs into tests/fuzz/corpus once it is fixed.
#
#     tools/fuzz.sh [TARGET] [SECONDS]
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

wanted='' seconds=60
for argument in "$@"; do
    case $argument in *[!0-9]*) wanted=$argument ;; *) seconds=$argument ;; esac
done

mapfile -t programs < <(find build/fuzz -name "${wanted:-*}_fuzz" -type f -perm -u+x | sort)
if [ ${#programs[@]} -eq 0 ]; then
    echo "fuzz: no target '${wanted:-*}' in build/fuzz" >&2
    exit 2
fi

for program in "${programs[@]}"; do
    name=$(basename "$program" _fuzz)
    mkdir -p "build/fuzz/corpus/$name" build/fuzz/crashes
    options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
        -artifact_prefix="build/fuzz/crashes/$name-")
    if [ -f "tests/fuzz/$name.dict" ]; then options+=(-dict="tests/fuzz/$name.dict"); fi
    folders=("build/fuzz/corpus/$name")
    if [ -d "tests/fuzz/corpus/$name" ]; then folders+=("tests/fuzz/corpus/$name"); fi
    echo "fuzz: $name for $seconds seconds"
    "$program" "${options[@]}" "${folders[@]}"
done
