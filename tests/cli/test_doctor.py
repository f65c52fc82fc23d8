"""`rtui doctor`: a report about rtui, the terminal and a server's rights that anybody may read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rtui.cli.main import run
from tests.servers import Server, free_port
from tests.window import QUESTIONS, window

SECRETS = ("mallory", "hunter2", "localhost", "acme-internal", "orders:of:acme")


def section(text: str, name: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return line.removeprefix(name)


def test_what_a_server_denies_is_named_and_nothing_secret(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = ["+@all", "-memory", "-slowlog", "~orders:of:acme*"]
    server.admin.execute_command("ACL", "SETUSER", "mallory", "on", ">hunter2", *rights)
    server.admin.set("orders:of:acme", "x")
    profiles = Path(os.environ["XDG_CONFIG_HOME"]) / "rtui/profiles.toml"
    profiles.parent.mkdir(parents=True)
    profiles.write_text('[acme-internal]\nhost = "acme-internal"\npassword = "hunter2"\n')
    profiles.chmod(0o600)
    monkeypatch.setenv("REDISCLI_AUTH", "hunter2")
    assert run(["doctor", f"redis://mallory:hunter2@localhost:{server.port}"]) == 0
    printed = capsys.readouterr()
    assert set(section(printed.out, "denied").strip().split(", ")) == {"MEMORY USAGE", "SLOWLOG GET"}
    assert "INFO memory" in section(printed.out, "allowed")
    assert "1 named" in section(printed.out, "profiles.toml")
    assert "REDISCLI_AUTH" in section(printed.out, "also set")
    assert not [secret for secret in SECRETS if secret in printed.out + printed.err]


def test_no_server_is_asked_unless_one_is_named(
    valkey: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["doctor"]) == 0
    assert "reached by" not in capsys.readouterr().out
    monkeypatch.setenv("RTUI_URL", valkey.url)
    assert run(["doctor"]) == 0
    assert "none" in section(capsys.readouterr().out, "denied")


def test_a_report_is_written_also_of_a_server_that_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert run(["doctor", f"redis://mallory@localhost:{port}", "-o", str(tmp_path / "doctor.md")]) == 4
    written = (tmp_path / "doctor.md").read_text("utf-8")
    assert "**failure**: Connection refused" in written
    assert "localhost" not in written
    assert f"localhost:{port}" in capsys.readouterr().err, "who runs it wants to know"


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "said"), [(b"\x1b[1;2R", "takes 1 of 2"), (b"", "not known")])
def test_the_terminal_is_asked_how_wide_characters_are(
    answer: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUESTIONS, b"\x1b[6n", answer)
    with window(["-m", "rtui", "doctor"]) as shown:
        shown.wait_for(said.encode())
        shown.wait_for(b"writable")
