"""`rtui health`: samples of servers and clusters as lines, in files, out of files, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rtui.analysis.formats.samples import read_samples
from rtui.cli.main import run
from tests.clusters import TestCluster
from tests.servers import CHECKOUT, Server


def lines_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_sample_of_a_server(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", server.url, "--format", "jsonl"]) == 0
    header, sample = lines_of(capsys.readouterr().out)
    assert (header["format"], header["server"]) == ("rtui samples", f"127.0.0.1:{server.port}")
    assert sample["node"] == f"127.0.0.1:{server.port}"
    assert sample["sources"]


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
def test_a_sample_of_each_node(cluster: TestCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", cluster.members[0].server.url, "--format", "jsonl"]) == 0
    _, *samples = lines_of(capsys.readouterr().out)
    assert {one["node"] for one in samples} == {f"127.0.0.1:{one.server.port}" for one in cluster.members}


def test_a_file_that_is_read_again(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "samples.jsonl"
    assert run(["health", valkey.url, "-o", str(path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert capsys.readouterr().out == ""
    assert run(["health", str(path), "--format", "jsonl"]) == 0
    assert capsys.readouterr().out == path.read_text()
    assert run(["health", valkey.url, "-o", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    with path.open("a") as file:
        file.write('{"at_ms":')
    assert run(["health", str(path)]) == 0
    assert "line 3 can't be read" in capsys.readouterr().err


def test_addresses_are_masked(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    valkey.admin.config_set("slowlog-log-slower-than", 0)
    valkey.admin.ping()
    assert run(["health", valkey.url, "--mask", "--format", "jsonl"]) == 0
    header, sample = capsys.readouterr().out.splitlines()
    (found,) = read_samples([header.encode(), sample.encode()]).nodes.values()
    assert found[0].clients
    assert found[0].slow
    for address in (*(one.address for one in found[0].clients), *(one.address for one in found[0].slow)):
        assert address.startswith(b"client-")


def test_samples_until_a_signal(valkey: Server) -> None:
    command = [sys.executable, "-m", "rtui", "health", valkey.url, "--watch", "1", "--format", "jsonl"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, env={**os.environ}) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    (samples,) = read_samples(lines).nodes.values()
    assert len(samples) == 2


def test_a_server_that_is_not_there(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    url = valkey.url
    valkey.stop()
    assert run(["health", url]) == 1
    assert "refused" in capsys.readouterr().err


def test_a_file_can_not_be_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"format":"rtui samples","schema":1,"rtui":"1","began_ms":1,"server":"a"}\n')
    assert run(["health", str(path), "--watch", "5"]) == 2
    path.write_text('{"format":"rtui samples","schema":2}\n')
    assert run(["health", str(path)]) == 2
    assert "it is no file of samples" in capsys.readouterr().err


def test_a_healthy_server_has_nothing_wrong(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.admin.set("a", "b")
    assert run(["health", server.url, "--fail-on", "warn"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].endswith("nothing wrong")
    assert "not judged" not in text


def test_a_snapshot_that_can_not_be_written(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    settings = valkey.admin.config_get("d*")
    in_the_way = Path(str(settings["dir"])) / str(settings["dbfilename"])
    in_the_way.mkdir()
    try:
        valkey.admin.bgsave()
        while valkey.admin.info("persistence")["rdb_bgsave_in_progress"]:
            pass
        assert run(["health", valkey.url, "--fail-on", "error"]) == 1
        assert "error  persistence-failing" in capsys.readouterr().out
        assert run(["health", valkey.url, "--format", "prom"]) == 0
        assert 'rule="persistence-failing",severity="error"' in capsys.readouterr().out
        assert run(["health", valkey.url, "--format", "md"]) == 0
        assert "not saved" in capsys.readouterr().out
    finally:
        in_the_way.rmdir()
        valkey.admin.save()
        in_the_way.unlink()


def test_slow_scripts_are_told_by_their_namespace(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    spin = "local n = 0; for i = 1, 3000000 do n = n + i end; return redis.call('GET', KEYS[1])"
    valkey.admin.config_set("slowlog-log-slower-than", 0)
    for number in range(3):
        valkey.admin.eval(spin, 1, f"shop:user:{number}:cart")
    assert run(["health", valkey.url, "--fail-on", "warn"]) == 1
    assert "EVAL of shop:user:{id}:cart took over 10ms 3 times" in capsys.readouterr().out


def test_a_registry_sets_the_rules(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rtui.toml"
    path.write_text('[rules]\neviction-policy = { severity = "error", policies = ["volatile-ttl"] }\n')
    assert run(["health", valkey.url, "--registry", str(path), "--fail-on", "error"]) == 1
    assert "The eviction policy is noeviction; agreed is volatile-ttl" in capsys.readouterr().out
    assert run(["health", valkey.url, "--no-registry", "--fail-on", "error"]) == 0
