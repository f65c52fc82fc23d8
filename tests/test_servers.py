"""The servers of the tests themselves: that a reset undoes what a test may do, and that they end with it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.servers import Server


def test_every_version_answers_as_itself(server: Server) -> None:
    product, _, version = server.name.partition("-")
    assert ".".join(map(str, server.version[:2])) == version
    with server.client() as client:
        assert client.ping()
        assert ("valkey_version" in client.info("server")) is (product == "valkey")


def test_a_reset_undoes_data_settings_users_and_pauses(valkey: Server) -> None:
    with valkey.client() as client:
        client.set("key", "value")
        client.config_set("hash-max-listpack-entries", "7")
        client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "+@read", "~*")
        client.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
        client.execute_command("ACL", "SETUSER", "default", "off", "-@all")
    valkey.reset()
    with valkey.client() as client:
        assert client.dbsize() == 0
        assert client.config_get("hash-max-listpack-entries") != {"hash-max-listpack-entries": "7"}
        assert sorted(map(str, client.acl_users())) == ["default", "tests-admin"]
        assert client.set("key", "value")


def test_a_stopped_or_frozen_server_is_revived_by_a_reset(redis62: Server) -> None:
    port = redis62.port
    redis62.stop()
    redis62.reset()
    redis62.freeze()
    redis62.reset()
    with redis.Redis(port=port) as client:
        assert client.ping()


def test_tls(tls_server: Server) -> None:
    assert tls_server.tls is not None
    with redis.Redis(port=tls_server.port, ssl=True, ssl_ca_certs=str(tls_server.tls.ca)) as client:
        assert client.ping()
    with redis.Redis(port=tls_server.port, retry=Retry(NoBackoff(), 0)) as plain, pytest.raises(redis.ConnectionError):
        plain.ping()


def test_a_unix_server_has_no_port(unix_server: Server) -> None:
    assert unix_server.url == f"unix://{unix_server.socket}"
    assert unix_server.admin.config_get("port") == {"port": "0"}


def test_a_cluster_node_owns_every_slot(cluster_node: Server) -> None:
    with cluster_node.client() as client:
        assert client.execute_command("CLUSTER", "KEYSLOT", "123456789") == 0x31C3
        assert client.set("key", "value")


def test_a_server_ends_with_the_process_that_started_it() -> None:
    program = (
        "import sys; from tests.servers import binaries, start; "
        "server = start(next(iter(binaries().values()))); "
        "print(server.pid, server.folder, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        watch = os.pidfd_open(int(pid))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert select.select([watch], [], [], 20)[0], "the server outlived its parent"
        os.close(watch)
        shutil.rmtree(folder)
