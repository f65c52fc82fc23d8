#!/bin/bash
# Runs what tests the compiled engine with the engine built for the address and undefined-behaviour sanitizers, then
# feeds it changed replies for FUZZ_SECONDS, then looks for memory that it has not freed. With the engine built for the
# thread sanitizer it then analyses and browses a real server for RACE_SECONDS, while other threads do all that the
# application does beside it, unless NO_RACE is set. Needs gcc with its libasan and libtsan.
# SANITIZED_TESTS are further files of tests, such as tests/server/engine/test_scan_engine.py, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD
python=$PWD/.venv/bin/python
[[ -x $python ]] || python=${PYTHON:-python3}
source=$(mktemp -d)
trap 'rm -rf "$source" "$source".*' EXIT
# Not built in here; and only what is needed, for others write their caches into the checkout meanwhile.
tar -c --exclude='*.so' --exclude='__pycache__' rtui tests themes pyproject.toml setup.py README.md LICENSE | tar -x -C "$source"

# Nothing is optimised: compiling takes a third of the time then, which was most of what all of this takes.
# build NAME FLAGS: the package and its tests in $source.NAME, where neither pytest nor Python finds the other engine.
build() {
    cp -a "$source" "$source.of-$1"
    CC=gcc CFLAGS="$2 -O0 -fno-omit-frame-pointer -g1" LDFLAGS="$2" \
        ${BUILD_PYTHON:-"$python"} -m pip install -q --no-deps --no-compile ${BUILD_OPTIONS:-} \
        --target "$source.$1" "$source.of-$1"
    cp -r "$source/tests" "$source/pyproject.toml" "$source.$1"
    ln -s "$checkout/.servers" "$source.$1/.servers"
}

build addresses "-fsanitize=address,undefined -fno-sanitize-recover=all" &
building=$!
[[ -n ${NO_RACE:-} ]] || build threads "-fsanitize=thread"
wait $building
export PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1

(
    cd "$source.addresses"
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)"
    export LD_PRELOAD PYTHONPATH=$PWD
    export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
    "$python" -m pytest -q -x -p no:cacheprovider -n "${WORKERS:-2}" --fast -k 'not memory and not pure and not busy' \
        tests/server/engine/test_scan_replies.py tests/server/engine/test_name_table.py \
        tests/server/scan/test_slot_filter.py ${SANITIZED_TESTS:-}
    "$python" -m tests.server.engine.fuzz "${FUZZ_SECONDS:-10}"

    # What Python and others allocate and keep has no frame of the engine next to malloc.
    printf 'leak:python3\nleak:libpython\nleak:hiredis\nleak:msgspec\nleak:ld-linux\nleak:libc.so\n' >suppressions
    ASAN_OPTIONS=malloc_context_size=2 LSAN_OPTIONS=suppressions=$PWD/suppressions:print_suppressions=0 \
        "$python" -m tests.server.engine.fuzz 3
)
[[ -n ${NO_RACE:-} ]] || (
    cd "$source.threads"
    export PYTHONPATH=$PWD
    # Python is not instrumented, and needs not be: the sanitizer sees its locks, the GIL among them, and the accesses of
    # the engine. Where it does not find the addresses free that it wants, they are not to be laid out at random.
    export TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=66
    watched=(env LD_PRELOAD="$(gcc -print-file-name=libtsan.so)" "$python")
    "${watched[@]}" -c '' 2>/dev/null || watched=(setarch "$(uname -m)" -R "${watched[@]}")
    "${watched[@]}" -m tests.server.engine.race "${RACE_SECONDS:-15}"
)
