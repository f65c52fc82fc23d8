#!/bin/bash
# Runs what tests the compiled engine with the engine built for the address and undefined-behaviour sanitizers, then
# feeds it changed replies for FUZZ_SECONDS, then looks for memory that it has not freed. Needs gcc with its libasan.
# SANITIZED_TESTS are further files of tests, such as tests/server/engine/test_scan_engine.py, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
[[ -x $python ]] || python=${PYTHON:-python3}
built=$(mktemp -d) source=$(mktemp -d)
trap 'rm -rf "$built" "$source"' EXIT
tar -c --exclude=./.git --exclude=./.venv --exclude=./.servers --exclude='*.so' . | tar -x -C "$source" # not built in here

flags="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g"
CC=gcc CFLAGS="$flags" LDFLAGS="$flags" RTUI_BUILD_ENGINE=required ${BUILD_PYTHON:-"$python"} -m pip install -q --no-deps \
    --no-compile ${BUILD_OPTIONS:-} --target "$built" "$source"
cp -r tests pyproject.toml "$built"
cd "$built" # so that neither pytest nor Python finds the other engine

LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)"
export LD_PRELOAD PYTHONMALLOC=malloc PYTHONPATH=$built RTUI_REQUIRE_ENGINE=1 PYTHONDONTWRITEBYTECODE=1
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1

"$python" -m pytest -q -x -p no:cacheprovider -n "${WORKERS:-2}" --fast -k 'not memory and not pure and not busy' \
    tests/server/engine/test_scan_replies.py tests/server/engine/test_name_table.py ${SANITIZED_TESTS:-}
"$python" -m tests.server.engine.fuzz "${FUZZ_SECONDS:-10}"

# What Python and others allocate and keep has no frame of the engine next to malloc.
printf 'leak:python3\nleak:libpython\nleak:hiredis\nleak:msgspec\nleak:ld-linux\nleak:libc.so\n' >suppressions
ASAN_OPTIONS=malloc_context_size=2 LSAN_OPTIONS=suppressions=$built/suppressions:print_suppressions=0 \
    "$python" -m tests.server.engine.fuzz 3
