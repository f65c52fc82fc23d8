"""Rules on real servers: those that take more than one look, and those that could not be judged."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from msgspec.structs import replace

from rtui.analysis.formats.json import write_json
from rtui.cli.main import run
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import RULES as DECLARED
from rtui.registry.rules import Family
from rtui.server.wire.errors import ExitCode
from tests.analysis.formats.test_ci_documents import junit_violations, sarif_violations
from tests.made_report import partial_report
from tests.servers import Server

FORMATS = ("text", "json", "md", "sarif", "junit")

REFERENCES = """
[rules]
reference-dangling = "error"
reference-twin = "error"
[[pattern]]
pattern = "owner:<id>"
references = [{ from = "value", to = "thing:<value>" }]
[[pattern]]
pattern = "thing:<id>"
"""


def registry(folder: Path, text: str) -> str:
    path = folder / "rules.toml"
    path.write_text(text)
    return str(path)


def report(server: Server, folder: Path, *options: str) -> str:
    path = str(folder / "report.json")
    assert run(["report", f"127.0.0.1:{server.port}", "--no-keep", "-o", path, *options]) == 0
    return path


def found(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    return run(["check", *words, "--format", "json"]), json.loads(capsys.readouterr().out)


def test_a_report_does_not_follow_references(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey.admin.mset({"owner:1": "2", "owner:2": "9", "thing:2": "x"})
    team = registry(tmp_path, REFERENCES)
    code, live = found(capsys, f"127.0.0.1:{valkey.port}", "--registry", team)
    assert (code, [one["rule"] for one in live["findings"]]) == (ExitCode.FOUND, ["reference-dangling"])
    of = ["check", "--report", report(valkey, tmp_path, "--registry", team), "--registry", team]
    for form in FORMATS:
        capsys.readouterr()
        assert run([*of, "--format", form]) == ExitCode.UNKNOWN, form
        out, err = capsys.readouterr()
        assert "reference-dangling" in out
        assert "references were not followed" in out
        assert "not checked: reference-dangling (references were not followed" in err
        if form == "sarif":
            (one_run,) = json.loads(out)["runs"]
            notes = one_run["invocations"][0]["toolConfigurationNotifications"]
            assert "reference-dangling" in [note["associatedRule"]["id"] for note in notes]
        if form == "junit":
            cases = fromstring(out).iter("testcase")  # noqa: S314 - of our own
            skipped = [case.get("classname") for case in cases if case.find("skipped") is not None]
            assert "rtui.reference-dangling" in skipped
            assert "rtui.reference-twin" not in skipped, "no reference has a twin"
    _, document = found(capsys, *of[1:])
    assert "reference-dangling" not in document["checked"]
    capsys.readouterr()
    run(of)
    assert f" by {len(document['checked'])} rules: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "unused"),
    [
        ("", ["a:b:<id>", "a:c", "z:<id>"]), ("--match a:*", ["a:b:<id>", "a:c"]), ("--match a:b:*", ["a:b:<id>"]),
        ("--match *", ["a:b:<id>", "a:c", "z:<id>"]), ("--match a:?:*", []), ("--match a:c", ["a:c"]),
        ("--type hash", []), ("--match a:* --type string", []),
    ],
)  # fmt: skip
def test_patterns_that_a_filter_leaves_out(
    options: str, unused: list[str], valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey.admin.mset({"used:1": "x", "a:x": "y"})
    team = registry(
        tmp_path,
        "".join(f'[[pattern]]\npattern = "{one}"\n' for one in ("used:<id>", "a:x", "a:b:<id>", "a:c", "z:<id>")),
    )
    words = [f"127.0.0.1:{valkey.port}", "--registry", team, *options.split()]
    code, document = found(capsys, *words, "--fail-on", "warn")
    assert [one["where"] for one in document["findings"] if one["rule"] == "pattern-unused"] == unused
    assert ("pattern-unused" not in [one["rule"] for one in document["not_judged"]]) is (len(unused) == 3)
    assert code == (ExitCode.FOUND if document["findings"] else ExitCode.UNKNOWN)


@pytest.mark.parametrize("rule", ["queue-growing", "hot-key-expiring"])
def test_a_rule_that_is_set_and_lacks_what_it_goes_by(
    rule: str, valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey.admin.set("key", "x")
    target = f"127.0.0.1:{valkey.port}"
    assert found(capsys, target, "--registry", registry(tmp_path, ""))[0] == ExitCode.FINE
    code, document = found(capsys, target, "--registry", registry(tmp_path, f'[rules]\n{rule} = "error"\n'))
    assert code == ExitCode.UNKNOWN
    assert rule in [one["rule"] for one in document["not_judged"]]
    assert rule not in document["checked"]


def test_names_by_a_rule_that_was_off(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    valkey.admin.set("with space", "x")
    made = report(valkey, tmp_path, "--registry", registry(tmp_path, '[rules]\nname-whitespace = "off"\n'))
    code, document = found(capsys, "--report", made, "--registry", registry(tmp_path, ""))
    assert code == ExitCode.UNKNOWN
    assert [one["rule"] for one in document["not_judged"]] == ["name-whitespace"]


def test_a_report_keeps_the_severities_that_it_was_made_with(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = valkey.admin
    rules = '[rules]\nlength-out-of-range = "error"\nkey-unregistered = { severity = "error", keys = 7 }\n'
    team = registry(tmp_path, f'{rules}[[pattern]]\npattern = "list:<id>"\nlength = "<=2"\n')
    admin.rpush("list:1", "a")
    before = Path(report(valkey, tmp_path, "--registry", team)).rename(tmp_path / "before.json")
    admin.rpush("list:1", "b", "c")
    for at in range(8):
        admin.set(f"other:{at}", "x")
    after = report(valkey, tmp_path, "--registry", team)
    found_in = {one["rule"]: one["severity"] for one in json.loads(Path(after).read_text())["findings"]}
    assert found_in == {"length-out-of-range": "error", "key-unregistered": "error"}
    pair = ["diff", str(before), after, "--no-registry"]
    assert run([*pair, "--fail-on", "new-errors>0"]) == ExitCode.FOUND
    assert run(["check", "--report", after, "--no-registry"]) == ExitCode.FOUND
    (tmp_path / "mild.toml").write_text("")
    capsys.readouterr()
    run(["check", "--report", after, "--registry", str(tmp_path / "mild.toml")])
    assert "0 errors and 2 warnings" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["json", "sarif", "junit"])
def test_a_failure_is_in_the_output_for_machines(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = registry(tmp_path, "[[pattern]]\npatern = 1\n")
    for words, code, said in (
        (["127.0.0.1:1", "--no-registry"], ExitCode.SERVER, "127.0.0.1:1"),
        (["127.0.0.1:1", "--registry", bad], ExitCode.USAGE, "rules.toml"),
        (["--report", str(tmp_path / "none.json")], ExitCode.USAGE, "none.json"),
        (["--report", "x", "127.0.0.1:1"], ExitCode.USAGE, "--report"),
    ):
        capsys.readouterr()
        path = tmp_path / "out"
        for out in (None, path):
            assert run(["check", *words, "--format", form, *([] if out is None else ["-o", str(out)])]) == code
            text = capsys.readouterr().out if out is None else path.read_text()
            assert said in text
            if form == "sarif":
                log = json.loads(text)
                assert sarif_violations(log) == []
                assert log["runs"][0]["invocations"][0]["executionSuccessful"] is False
                assert log["runs"][0]["invocations"][0]["exitCode"] == code
            elif form == "junit":
                root = fromstring(text)  # noqa: S314 - of our own
                assert junit_violations(root) == []
                assert root.get("errors") == "1"
            else:
                assert json.loads(text)["error"]["exit_code"] == code


def test_output_to_a_file(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.sarif"
    path.write_text("old")
    assert run(["check", f"127.0.0.1:{valkey.port}", "--no-registry", "-o", str(path)]) == 0
    assert sarif_violations(json.loads(path.read_text())) == []
    assert run(["check", f"127.0.0.1:{valkey.port}", "--no-registry", "-o", str(tmp_path / "no" / "x.xml")]) == 5
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("encode", [lambda text: BOM_UTF8 + text.encode(), lambda text: text.encode("utf-16")])
def test_files_with_a_byte_order_mark(encode: Any, valkey: Server, tmp_path: Path) -> None:
    valkey.admin.set("é", "x")
    path = Path(report(valkey, tmp_path, "--no-registry"))
    path.write_bytes(encode(path.read_text()))
    assert run(["diff", str(path), str(path)]) == 0
    team = tmp_path / "team.toml"
    team.write_bytes(BOM_UTF8 + b'[[pattern]]\npattern = "a:<id>"\n')
    assert run(["check", "--report", str(path), "--registry", str(team)]) == ExitCode.UNKNOWN


def test_a_registry_in_a_folder_above(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "conf" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "conf" / "rtui.toml").write_text('\n[[pattern]]\npattern = "gone:<id>"\n')
    monkeypatch.chdir(below)

    def uris() -> set[tuple[str, int]]:
        capsys.readouterr()
        run(["check", f"127.0.0.1:{valkey.port}", "--format", "sarif"])
        results = json.loads(capsys.readouterr().out)["runs"][0]["results"]
        places = [one["locations"][0]["physicalLocation"] for one in results]
        return {(at["artifactLocation"]["uri"], at["region"]["startLine"]) for at in places}

    assert uris() == {("rtui.toml", 3)}
    (tmp_path / ".git").mkdir()
    assert uris() == {("conf/rtui.toml", 3)}


def test_no_test_passes_by_a_part_of_the_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "partial.json"
    path.write_text(write_json(partial_report()))
    run(["check", "--report", str(path), "--no-registry", "--format", "junit"])
    cases = list(fromstring(capsys.readouterr().out).iter("testcase"))  # noqa: S314 - of our own
    assert all(len(case) for case in cases)
    for kind in ("skipped", "error"):
        messages = [one.get("message") for case in cases for one in case.findall(kind)]
        assert "the report is partial: it was interrupted" in messages


@pytest.mark.parametrize("reason", ["it was interrupted", "the budget of 5 s is spent", "", "<&\x1b]0;x\x07\ufffe"])
@pytest.mark.parametrize("found", [True, False])
def test_a_partial_report_is_no_green_run_for_a_machine(
    *, found: bool, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = partial_report()
    head = replace(partial.head, coverage=replace(partial.head.coverage, reason=SafeText(reason)))
    path = tmp_path / "partial.json"
    path.write_text(write_json(replace(partial, head=head)))
    team = registry(
        tmp_path,
        ""
        if found
        else "[rules]\n"
        + "".join(f'{rule.id} = "off"\n' for rule in DECLARED.values() if rule.family is not Family.SERVER),
    )
    words = ["check", "--report", str(path), "--registry", team, "--format"]
    code = ExitCode.FOUND if found else ExitCode.UNKNOWN
    assert run([*words, "junit"]) == code
    root = fromstring(capsys.readouterr().out)  # noqa: S314 - of our own
    assert junit_violations(root) == []
    assert root.get("errors") == "1"
    (error,) = root.iter("error")
    assert "the report is partial: " in (error.get("message") or "")
    assert run([*words, "sarif"]) == code
    log = json.loads(capsys.readouterr().out)
    assert sarif_violations(log) == []
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [one["level"] for one in invocation["toolExecutionNotifications"]] == ["error"]


def test_how_long_it_may_take(valkey: Server) -> None:
    target = f"127.0.0.1:{valkey.port}"
    limits = ["--budget-seconds", "600", "--timeout", "5"]
    for words in (["check", "--no-registry"], ["patterns"], ["find", "x"], ["report", "--no-registry", "--no-keep"]):
        assert run([words[0], target, *words[1:], *limits]) == ExitCode.FINE


def test_a_name_too_long_to_be_asked_is_no_question_of_rights(
    valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey.admin.mset({"n" * 90_000: "x", "m" * 70_000: "x", "short": "x"})
    notes = json.loads(Path(report(valkey, tmp_path, "--no-registry")).read_text())["head"]["notes"]
    assert not [note for note in notes if "ACL" in note]
    valkey.admin.execute_command("ACL", "SETUSER", "some", "reset", "on", ">pw", "%R~n*", "%R~s*", "+@all")
    valkey.admin.set("hidden", "x")
    notes = json.loads(Path(report(valkey, tmp_path, "--no-registry", "--user", "some", "-a", "pw")).read_text())[
        "head"
    ]
    assert [note for note in notes["notes"] if "The type of 1 key is not known" in note]


@pytest.mark.parametrize(
    "words",
    [
        ["find", "x", "-p", "1", "--format", "json"],
        ["report", "-p", "1", "--format", "json", "--no-registry"],
        ["health", "-p", "1", "--format", "json"],
        ["slot", "-p", "1", "x", "--json"],
    ],
)
def test_other_commands_say_it_to_machines_as_well(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == ExitCode.SERVER
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == f"rtui {words[0]}"
    assert document["error"]["exit_code"] == ExitCode.SERVER
    assert "127.0.0.1:1" in document["error"]["happened"]


def test_what_failed_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["report", "-p", "1", "--format", "json", "--no-registry"])
    (tmp_path / "failed.json").write_text(capsys.readouterr().out)
    path = str(tmp_path / "failed.json")
    out = tmp_path / "diff.json"
    assert run(["diff", path, path, "-o", str(out)]) == ExitCode.USAGE
    assert "No report was made: Nothing listens" in capsys.readouterr().err
    assert "No report was made" in json.loads(out.read_text())["error"]["happened"]


def findings_of(capsys: pytest.CaptureFixture[str], rule: str, server: Server, *options: str) -> list[dict[str, Any]]:
    """What `rtui check` finds by one rule."""
    target = f"127.0.0.1:{server.port}"
    run(["check", target, "--no-registry", "--format", "json", *options])
    document = json.loads(capsys.readouterr().out)
    assert rule in document["checked"]
    return [one for one in document["findings"] if one["rule"] == rule]


def test_a_list_that_only_grows(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    admin, earlier = valkey.admin, str(tmp_path / "earlier.json")
    for name, length in (("queue:mail", 900), ("queue:calm", 3_000), ("queue:worked", 3_000), ("queue:small", 10)):
        admin.rpush(name, *range(length))
    assert run(["report", f"127.0.0.1:{valkey.port}", "--no-registry", "--format", "json", "-o", earlier]) == 0
    assert findings_of(capsys, "queue-growing", valkey, "--since", earlier) == []
    admin.rpush("queue:mail", *range(600))
    admin.lpop("queue:worked", 2_000)
    admin.rpush("queue:worked", *range(1_500))
    admin.rpush("queue:small", *range(10))
    admin.rpush("queue:new", *range(5_000))
    (found,) = findings_of(capsys, "queue-growing", valkey, "--since", earlier)
    assert found["title"].startswith("List queue:mail grew from 900 to 1,500 elements in ")
    assert found["query"] == "glob:queue:mail"


def test_a_hot_key_about_to_expire(lfu_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    writes = lfu_server.admin.pipeline(transaction=False)
    for at in range(50):
        writes.set(f"product:{at}", "x" * 50, ex=200)
    writes.set("product:later", "x", ex=9_000)
    writes.set("settings", "x")
    writes.set("lock:product:7", "me", px=100_000)
    writes.execute()
    assert findings_of(capsys, "hot-key-expiring", lfu_server) == []
    reads = lfu_server.admin.pipeline(transaction=False)
    for name in 30 * ("product:7", "product:later", "settings", "lock:product:7"):
        reads.get(name)
    reads.execute()
    (found,) = findings_of(capsys, "hot-key-expiring", lfu_server)
    assert found["title"].startswith("Hot key product:7 has 3m ")


RULES = """
[rules]
strings-as-hash = { severity = "warn", saves = "10K" }
"""


def test_strings_of_users_and_of_a_cache(valkey: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "team.toml"
    path.write_text(RULES)
    pipeline = valkey.admin.pipeline(transaction=False)

    def found() -> dict[str, dict[str, Any]]:
        pipeline.execute()
        run(["check", f"127.0.0.1:{valkey.port}", "--registry", str(path), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        assert {"strings-as-hash", "null-cached"} <= set(document["checked"])
        return {one["rule"]: one for one in document["findings"]}

    for at in range(500):
        pipeline.hset(f"user:{at}", mapping={"name": f"ann{at}", "email": f"ann{at}@example.com"})
        pipeline.set(f"page:{at}:html", "<p>" * 100)
        pipeline.set(f"page:{at}:text", "words " * 50)
        pipeline.set(f"product:{at}", "x" * 300 if at % 5 else "null", px=600_000 if at % 5 else 30_000)
    assert not {"strings-as-hash", "null-cached"} & set(found())
    for at in range(500):
        for name in ("name", "email", "city", "street", "phone"):
            pipeline.set(f"client:{at}:{name}", f"{name} of {at}")
        pipeline.set(f"product:{at}", "x" * 300 if at % 5 else "null", px=600_000)
    both = found()
    assert both["strings-as-hash"]["title"].startswith("2,500 small strings of client:<id>: would take at least ")
    assert both["null-cached"]["title"].startswith(
        "100 strings of product:<id> hold 4 bytes at most, with more than 1m"
    )
    assert both["null-cached"]["query"] == "pattern:product:<id> type:string len<5"


def test_hashes_just_over_a_limit(redis810: Server, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = redis810.admin.pipeline(transaction=False)

    def write(name: str, fields: int) -> None:
        for at in range(120):
            pipeline.hset(f"{name}:{at}", mapping={str(field): "x" for field in range(fields)})
        pipeline.execute()

    write("order", 512)
    assert findings_of(capsys, "encoding-over", redis810) == []
    write("cart", 540)
    (found,) = findings_of(capsys, "encoding-over", redis810)
    assert found["title"].startswith("≥ 120 hash keys have 513 to 640 fields, just over the limit of 512")
    assert found["query"] == "type:hash len:513..640"


def test_keys_of_one_thing_in_several_slots(cluster_node: Server, capsys: pytest.CaptureFixture[str]) -> None:
    def write(*names: str) -> None:
        pipeline = cluster_node.admin.pipeline(transaction=False)
        for name in names:
            for at in range(100):
                pipeline.set(name.replace("ID", str(at)), "ann")
        pipeline.execute()

    write("{user:ID}:name", "{user:ID}:email", "session:ID")
    assert findings_of(capsys, "cross-slot", cluster_node) == []
    write("shop:ID:name", "shop:ID:owner")
    (found,) = findings_of(capsys, "cross-slot", cluster_node)
    assert found["title"].startswith("200 keys of shop:<id>: have no hash tag: ")
    assert found["keys"] == 200
