"""What decoding a value costs beside the bare library call: `python -m tests.bench.run decoders`.

Each row is one format of about 1 kB or 64 kB of a document of users: recognised, decoded, and made a tree within
the limits. Beside it is what the library needs to make Python values, or the decompressed bytes, of the same value.
"""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import pickletools
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Final

import brotli
import bson
import cbor2
import cramjam
import lz4.frame
import msgpack
from backports import zstd

from rtui.values import decode
from tests.bench.row import Row

SIZES: Final = {"1 kB": 1_000, "64 kB": 64_000}
SECONDS: Final = 0.05
"""How long each of a round's two measurements takes."""
ROUNDS: Final = 3

Document = list[dict[str, object]]
Case = tuple[bytes, Callable[[bytes], object]]


def document(size_bytes: int) -> Document:
    """Return users whose JSON takes about so many bytes."""
    count = size_bytes // 90
    return [
        {"id": at * 7919, "name": f"user {at * at % 9973}", "score": at / 7, "tags": ["new", f"t{at % 13}"]}
        for at in range(count)
    ]


def cases(size_bytes: int) -> Iterator[tuple[str, Case]]:
    """Yield each format's bytes and what the library does with them."""
    users = document(size_bytes)
    text = json.dumps(users).encode()
    yield "JSON", (text, json.loads)
    yield "gzip › JSON", (gzip.compress(text, mtime=0), lambda data: json.loads(gzip.decompress(data)))
    yield "zlib › JSON", (zlib.compress(text), lambda data: json.loads(zlib.decompress(data)))
    yield "zstd › JSON", (zstd.compress(text), lambda data: json.loads(zstd.decompress(data)))
    yield "LZ4 › JSON", (lz4.frame.compress(text), lambda data: json.loads(lz4.frame.decompress(data)))
    yield "brotli › JSON", (brotli.compress(text), lambda data: json.loads(brotli.decompress(data)))
    packed = bytes(cramjam.snappy.compress(text))
    yield "snappy › JSON", (packed, lambda data: json.loads(bytes(cramjam.snappy.decompress(data))))
    both = base64.b64encode(gzip.compress(text, mtime=0))
    yield "base64 › gzip › JSON", (both, lambda data: json.loads(gzip.decompress(base64.b64decode(data))))
    yield "msgpack", (msgpack.packb(users), msgpack.unpackb)
    yield "CBOR", (cbor2.dumps(users), cbor2.loads)
    yield "BSON", (bson.encode({"users": users}), bson.decode)
    yield "pickle", (pickle.dumps(users), lambda data: list(pickletools.genops(data)))
    yield "text", (b"word " * (size_bytes // 5), bytes.decode)
    yield "hex", (bytes(range(256)) * (size_bytes // 256), bytes.hex)


def seconds_each(call: Callable[[], object]) -> float:
    """Return how long a call takes, of many in a row."""
    calls, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < SECONDS:
        call()
        calls += 1
    return passed / calls


def rows() -> Iterator[Row]:
    """Measure both in turns; the medians count."""
    for size, size_bytes in SIZES.items():
        for name, (data, library) in cases(size_bytes):
            found = decode(data)
            assert found.title == name, found.title
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(seconds_each(lambda data=data: decode(data)))  # type: ignore[misc]
                theirs.append(seconds_each(lambda data=data, library=library: library(data)))  # type: ignore[misc]
            mine, other = statistics.median(ours) * 1e6, statistics.median(theirs) * 1e6
            cut = ", first 5,000 elements" if found.truncated else ""
            ratio = f"{mine / other:.1f} ×"
            yield Row(f"decoding {name}, {size}{cut}", f"{mine:,.0f} µs", f"library: {other:,.0f} µs", ratio)
