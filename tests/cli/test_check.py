"""What is wrong with a keyspace on the command line: what is printed and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
import redis

from rtui.analysis.findings.contents import FINDERS
from rtui.analysis.formats.json import write_json
from rtui.analysis.report.document import Report
from rtui.cli import check
from rtui.cli.main import run
from rtui.keyspace.text.display import HOSTILE
from rtui.registry.load import load_registry
from rtui.registry.rules import RULES, Family, RuleLevels
from rtui.server.wire.errors import ExitCode
from tests.analysis.formats.test_ci_documents import sarif_violations
from tests.made_report import denied_report, empty_report, made_report, partial_report
from tests.servers import Server

NO_RULES = "[rules]\n" + "".join(f'{finder.rule} = "off"\n' for finder in FINDERS)


def saved(folder: Path, of: Report) -> str:
    path = folder / "report.json"
    path.write_text(write_json(of))
    return str(path)


def registry(folder: Path, text: str) -> str:
    path = folder / "team.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("form", ["text", "json", "md"])
def test_what_is_printed(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--no-registry", "--report", saved(tmp_path, made_report()), "--format", form]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    for part in ("expiry-cliff", "38% of them", "lock-without-ttl", "redis-cli --scan", "Add a random time"):
        assert part in out
    assert not HOSTILE.search(out.replace("\n", ""))


SARIF_NEEDS = {"tool", "results", "invocations", "columnKind", "properties"}


def test_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--registry", registry(tmp_path, ""), "--report", saved(tmp_path, denied_report())]
    assert run(["check", *options, "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    (one_run,) = log["runs"]
    assert (set(log), log["version"], set(one_run)) == ({"$schema", "version", "runs"}, "2.1.0", SARIF_NEEDS)
    rules = one_run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(dict.fromkeys(rule["id"] for rule in rules))
    for rule in rules:
        assert rule["defaultConfiguration"]["level"] in ("warning", "error")
        assert all(rule[text]["text"] for text in ("shortDescription", "fullDescription", "help"))
    marks = [result["partialFingerprints"]["rulePlace/v1"] for result in one_run["results"]]
    assert len(set(marks)) == len(marks) > 3
    for result in one_run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"].endswith(".")
        (place,) = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "redis/10.0.0.5%3A6379/db0"
    assert {result["level"] for result in one_run["results"]} == {"warning", "error"}
    (invocation,) = one_run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert invocation["toolConfigurationNotifications"][0]["associatedRule"]["id"] == "key-big"


@pytest.mark.parametrize("fail_on", ["error", "warn"])
def test_junit(fail_on: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--no-registry", "--report", saved(tmp_path, denied_report())]
    assert run(["check", *options, "--format", "junit", "--fail-on", fail_on]) == 1
    suites = fromstring(capsys.readouterr().out)  # noqa: S314 - of our own
    (suite,) = suites
    cases = suite.findall("testcase")
    found = {kind: suite.findall(f"testcase/{kind}") for kind in ("failure", "skipped", "system-out")}
    assert (suites.tag, suite.tag, suite.get("errors")) == ("testsuites", "testsuite", "0")
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == [
        str(len(some)) for some in (cases, found["failure"], found["skipped"])
    ]
    assert all(case.get("name") and (case.get("classname") or "").startswith("rtui.") for case in cases)
    denied = ["memory is denied: NOPERM" in (one.get("message") or "") for one in found["skipped"]]
    assert denied == [True, False, True, False]
    severities = {failure.get("type") for failure in found["failure"]}
    assert severities == ({"error"} if fail_on == "error" else {"error", "warn"})
    assert bool(found["system-out"]) is (fail_on == "error")
    assert any("redis-cli" in (failure.text or "") for failure in found["failure"])


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", "--no-registry", "--report", saved(tmp_path, partial_report()), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    by_rule = {one["rule"]: one for one in document["findings"]}
    assert document["coverage"] == "partial"
    assert by_rule["lock-without-ttl"]["severity"] == "error"
    assert by_rule["lock-without-ttl"]["keys"] == {"at_least": 1200}
    assert by_rule["ttl-mixed"]["query"] == "pattern:shop:cache:product:detail:<id> ttl:none"


@pytest.mark.parametrize(
    ("rules", "fail_on", "code"),
    [
        ("", "error", 1),
        ("", "warn", 1),
        ('[rules]\nlock-without-ttl = "warn"', "error", 0),
        ('[rules]\nlock-without-ttl = "warn"', "warn", 1),
        (NO_RULES, "warn", 0),
        ('[rules]\nlock-without-tll = "warn"', "warn", 2),
    ],
)
def test_the_exit_code(rules: str, fail_on: str, code: int, tmp_path: Path) -> None:
    options = ["--report", saved(tmp_path, made_report()), "--registry", registry(tmp_path, rules)]
    assert run(["check", *options, "--fail-on", fail_on]) == code


def test_what_could_not_be_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = registry(tmp_path, NO_RULES.replace('key-big = "off"', 'key-big = "warn"'))
    denied = ["check", "--registry", quiet, "--report", saved(tmp_path, denied_report())]
    assert run([*denied, "--fail-on", "error"]) == 0
    assert run([*denied, "--fail-on", "warn"]) == 3
    out, err = capsys.readouterr()
    assert "not checked: key-big (memory is denied" in out
    assert err.startswith("rtui: not checked: key-big (memory is denied")
    partial = ["check", "--registry", registry(tmp_path, NO_RULES), "--report", saved(tmp_path, partial_report())]
    assert run(partial) == 3
    assert "partial: it was interrupted" in capsys.readouterr().err


def test_a_report_that_was_made_without_the_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = NO_RULES.replace('type-wrong = "off"', 'type-wrong = "error"')
    team = registry(tmp_path, f'{rules}[[pattern]]\npattern = "shop:{{what}}"\n')
    options = ["check", "--registry", team, "--report", saved(tmp_path, made_report())]
    assert run(options) == 3
    assert "not checked: type-wrong (the report was made without a registry)" in capsys.readouterr().out
    assert run([*options, "--format", "sarif"]) == 3
    assert sarif_violations(json.loads(capsys.readouterr().out)) == []


def test_nothing_is_wrong_with_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--no-registry", "--report", saved(tmp_path, empty_report()), "--fail-on", "warn"]) == 0
    assert "0 errors and 0 warnings by 8 rules" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        ["--report", "missing.json"], ["--report", "x.json", "localhost"], ["--report", "x.json", "--demo"],
        ["--report", "x.json", "--server"], ["--fail-on", "off"], ["--registry", "x", "--no-registry"],
    ],
)  # fmt: skip
def test_wrong_use(wrong: list[str]) -> None:
    assert run(["check", *wrong]) == 2


def test_what_is_to_be_known_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--rules"]) == 0
    every = capsys.readouterr().out
    assert all(f"{rule.id} ({rule.severity}): {rule.title}\n" in every for rule in RULES.values())
    assert run(["check", "--rules", "key-big"]) == 0
    (out, _) = capsys.readouterr()
    assert out in every
    assert "  do   Split it into several keys" in out
    assert run(["check", "--rules", "key-bigg"]) == 2
    assert "Did you mean key-big?" in capsys.readouterr().err


def test_the_line_that_sets_a_rule_is_read(tmp_path: Path) -> None:
    lines = "\n".join(rule.setting for rule in RULES.values())
    levels = load_registry(Path(registry(tmp_path, f"[rules]\n{lines}\n"))).rules
    plain = RuleLevels()
    for rule in RULES.values():
        assert levels.severity(rule.id) is rule.severity
        assert [levels.parameter(rule.id, name) for name in rule.parameters] == [
            plain.parameter(rule.id, name) for name in rule.parameters
        ]


def test_every_rule_of_keys_is_explained() -> None:
    listed = re.findall(r"^([a-z-]+) \(", check.rules_text("all"), re.MULTILINE)
    of_keys = [rule for rule in listed if RULES[rule].family is not Family.SERVER]
    assert sorted(of_keys) == sorted(finder.rule for finder in FINDERS)


def test_a_server(valkey: Server, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"127.0.0.1:{valkey.port}"
    for at in range(50):
        valkey.admin.set(f"order:lock:{at}", "me", px=30_000)
    assert run(["check", target, "--no-registry", "--fail-on", "warn"]) == 0
    valkey.admin.set("order:lock:50", "me")
    assert run(["check", target, "--no-registry"]) == 1
    out = capsys.readouterr().out
    assert "1 lock of order:lock: has no TTL" in out
    assert "query    in:order:lock: ttl:none" in out


@pytest.mark.parametrize("form", ["text", "json", "md", "sarif", "junit"])
def test_a_server_beside_its_keys(
    form: str, valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong with the server is found by the same rules as in its health, and the registry sets them."""
    valkey.admin.set("plain", 1)
    valkey.admin.config_set("maxmemory-policy", "volatile-lru")
    valkey.admin.config_set("maxmemory", 1)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        valkey.admin.set("refused", 1)
    where = ["check", "-p", str(valkey.port), "--format", form]
    quiet = registry(tmp_path, '[rules]\nwrites-refused = "off"\neviction-impossible = "off"\n')
    for options, code, is_said in (
        ([*where, "--no-registry", "--server"], ExitCode.FOUND, True),
        ([*where, "--no-registry"], ExitCode.FINE, False),
        ([*where, "--registry", quiet, "--server"], ExitCode.FINE, False),
    ):
        assert run(options) == code
        out, _ = capsys.readouterr()
        assert [one in out for one in ("writes-refused", "eviction-impossible")] == [is_said, is_said]
        if form == "sarif":
            assert not sarif_violations(json.loads(out))
        if form == "junit":
            assert ("<failure" in out) is is_said


def test_separators_of_the_registry(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at in range(50):
        valkey.admin.set(f"order-lock-{at}", "me")
    options = [f"127.0.0.1:{valkey.port}", "--registry", registry(tmp_path, 'separators = ["-"]')]
    assert run(["check", *options]) == 1
    assert "50 locks of order-lock- have no TTL" in capsys.readouterr().out
    assert run(["check", *options, "--separator", ":"]) == 1
    assert "50 locks of order-lock-<n> have no TTL" in capsys.readouterr().out


REGISTRY = """
placeholders = { id = "int" }
[naming]
case = "lower"
[[pattern]]
pattern = "app:session:<id>"
type = "hash"
ttl = "30m..2h"
length = "<=3"
purpose = "who is logged in"
owner = "accounts"
[[pattern]]
pattern = "app:name:<id>"
type = "string"
ttl = "none"
size = "<=1K"
[[pattern]]
pattern = "app:old:<id>"
deprecated = "use app:name"
[[pattern]]
pattern = "app:gone"
"""


def test_a_registry(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, options = valkey.admin, ["check", f"127.0.0.1:{valkey.port}", "--registry", registry(tmp_path, REGISTRY)]

    def broken() -> dict[str, dict[str, Any]]:
        run([*options, "--format", "json"])
        return {one["rule"]: one for one in reversed(json.loads(capsys.readouterr().out)["findings"])}

    for at in range(20):
        admin.hset(f"app:session:{at}", "user", at)
        admin.expire(f"app:session:{at}", 3_600)
        admin.set(f"app:name:{at}", "x")
    admin.set("app:gone", "x")
    assert broken() == {}
    assert run([*options, "--fail-on", "warn"]) == 0
    capsys.readouterr()

    admin.delete("app:gone")
    admin.set("app:session:100", "x", ex=3_600)
    admin.hset("app:session:101", "user", 1)
    admin.hset("app:session:102", mapping={str(at): at for at in range(9)})
    admin.expire("app:session:102", 86_400)
    admin.set("app:name:103", "x" * 5_000, ex=5_000)
    admin.set("app:old:1", "x")
    admin.mset({"app:name:bad name": "x", "otherWord:1": "x"})
    for at in range(100):
        admin.set(f"other:{at}", "x")
    found = broken()
    assert set(found) == {
        *("type-wrong", "ttl-missing", "ttl-too-long", "ttl-unexpected", "size-out-of-range", "length-out-of-range"),
        *("key-unregistered", "pattern-unused", "pattern-deprecated", "name-whitespace", "name-case"),
    }
    assert found["ttl-missing"]["title"] == "1 key of app:session:<id> has no TTL (expected: 30m..2h)"
    assert found["ttl-missing"]["evidence"] == ["such as app:session:101", "who is logged in · owner accounts"]
    assert found["ttl-missing"]["query"] == "app:session:* ttl:none"
    assert found["type-wrong"]["query"] == "app:session:* !type:hash"
    assert found["key-unregistered"]["keys"] == 100
    assert found["key-unregistered"]["query"] == "pattern:other:<id>"
    assert found["pattern-unused"]["title"] == "No key has the pattern app:gone"
    assert found["pattern-deprecated"]["title"].endswith("which is deprecated: use app:name")
    monkeypatch.chdir(tmp_path)
    assert run([*options, "--fail-on", "error", "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    assert sarif_violations(log) == []
    lines = REGISTRY.splitlines()
    for result in log["runs"][0]["results"]:
        at = result["locations"][0]["physicalLocation"]
        if at["artifactLocation"]["uri"] == "team.toml":
            region, written = at["region"], lines[at["region"]["startLine"] - 1]
            pattern = result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
            assert (written, region["endColumn"]) == (f'pattern = "{pattern}"', len(written) + 1)
        else:
            assert result["ruleId"] in ("key-unregistered", "name-whitespace", "name-case")


def test_a_single_key_that_nobody_registered(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = valkey.admin
    team = registry(tmp_path, '[rules]\nkey-unregistered = "error"\n[[pattern]]\npattern = "order:<id>"\n')
    options = ["check", f"127.0.0.1:{valkey.port}", "--registry", team]
    for at in range(300):
        admin.set(f"order:{at}", "x")
    assert run(options) == 0
    for name in ("ghost", "basket:7", "n:" + "k" * 400):
        capsys.readouterr()
        admin.set(name, "x")
        assert run(options) == 1
        assert "1 key" in capsys.readouterr().out
        admin.delete(name)
    for at in range(120):
        admin.set(f"cart:{at}", "x")
    admin.mset({"ghost": "x", "basket:7": "x", "basket:8": "x", "n:" + "k" * 400: "x", "m" * 70_000: "x"})
    assert run([*options, "--format", "json"]) == 1
    found = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["rule"] == "key-unregistered"]
    assert [one["title"] for one in found] == [
        "120 keys of cart:<id> have no registered pattern",
        "5 keys of 2 name patterns have no registered pattern",
    ]
    evidence = "\n".join(found[1]["evidence"])
    assert "2 keys without a listed pattern" in evidence
    assert "n:kkk" in evidence
    assert "… (402 bytes)" in evidence
    assert "… (70,000 bytes)" in evidence


def test_an_example_lies_below_its_place(valkey: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    admin = valkey.admin
    admin.mset({"b:" + "w" * 3_000: "x", "user:" + "v" * 60: "x", "user:two words": "x", "b:" + "u" * 65: "x"})
    run(["check", f"127.0.0.1:{valkey.port}", "--registry", registry(tmp_path, ""), "--format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    named = [one for one in found if one["rule"] in ("name-long", "name-huge", "name-whitespace")]
    assert {(one["rule"], one["where"]) for one in named} == {
        ("name-long", "b:"), ("name-long", "user:"), ("name-huge", "b:"), ("name-whitespace", "user:"),
    }  # fmt: skip
    for one in named:
        (line,) = one["evidence"]
        assert all(
            name.startswith(one["where"]) for name in line.removeprefix("such as ").split(", ") if name[0].isalpha()
        )
