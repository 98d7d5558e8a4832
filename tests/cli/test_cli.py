"""The contract of the command line: where options may be, what JSON holds, which exit means what."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.cli import verbs
from dibs.cli.call import COMMON, parse_arguments, parse_fast, parser
from dibs.cli.main import main
from dibs.domain import commands, refusals
from dibs.domain.refusals import Refusal
from dibs.domain.verbs import VERBS
from dibs.output import error_map
from kit.boards import of_a_file
from kit.repositories import DIBS, Repo

A = ("--agent", "codex-2", "--session", "s1")


# Verbs.


def loaded():
    return {
        name: importlib.import_module(module).VERBS[name] for name, module in verbs.MODULES.items()
    }


def test_every_verb_of_the_list_is_written_and_every_written_verb_is_listed():
    for module in {*verbs.MODULES.values()}:
        assert set(importlib.import_module(module).VERBS) == {
            name for name, place in verbs.MODULES.items() if place == module
        }


def test_every_command_of_the_core_is_reached_by_a_verb():
    own = {"session", "begin_epoch"}  # hooks and the board itself give these, and nobody types them
    assert {spec.typed.split()[0] for spec in VERBS.values()} == set(verbs.MODULES) | own
    given = {kind.verb for kind in vars(commands).values() if hasattr(kind, "verb")}
    assert given == {spec.name for spec in VERBS.values() if spec.facts}


@pytest.mark.parametrize("name", sorted(verbs.MODULES))
def test_every_verb_has_a_help_that_names_its_arguments(name, tmp_path):
    output = Repo(tmp_path).ok(name, "--help").out
    made = parser(name, VERBS[name].title, loaded()[name].arguments)
    for action in made._actions:
        assert (action.option_strings or [action.metavar])[0] in output
        assert action.help, f"{name} {action.dest}"


def test_help_names_every_verb(repo):
    output = repo.ok("help").out
    assert repo.ok("--help").out == output
    for name in verbs.MODULES:
        assert re.search(rf"^  {name} ", output, re.MULTILINE)
    assert repo.ok("help", "claim").out == repo.ok("claim", "--help").out
    assert repo.run().code == 2


def test_done_is_complete(repo):
    key = repo.add()
    repo.ok("claim", key, *A)
    assert repo.json("done", key, *A)["task"]["state"] == "complete"


def test_the_version_is_reported(repo):
    assert re.fullmatch(r"dibs \d+\.\d+\.\d+\n", repo.ok("--version").out)


# Where options may be.


@pytest.mark.parametrize(
    "order",
    [
        ("claim", "T-1", "--agent", "codex-2", "--session", "s1", "--json"),
        ("--agent", "codex-2", "--session", "s1", "--json", "claim", "T-1"),
        ("--json", "--agent=codex-2", "claim", "--session", "s1", "T-1"),
        ("--session", "s1", "claim", "T-1", "--json", "--agent", "codex-2"),
    ],
)
def test_options_of_identity_and_output_come_before_or_after_the_verb(repo, order):
    repo.add()
    assert repo.ok(*order).json["lease"]["holder"] == "codex-2"


WORDS = ["T-1", "set", "x y", "", "--json", "--ttl", "5m", "--scope", "a", "--as", "ana", "--agent", "b", "--token",
         "--reserve", "--state", "--alias", "--limit", "-x", "--", "--title=t", "-1"]  # fmt: skip


@given(st.sampled_from(sorted(verbs.MODULES)), st.lists(st.sampled_from(WORDS), max_size=6))
def test_the_plain_case_is_read_as_argparse_reads_it(name, words):
    arguments = loaded()[name].arguments
    quick = parse_fast((*arguments, *COMMON), words)
    if quick is not None:
        made = parser(name, VERBS[name].title, arguments)
        assert quick == vars(made.parse_intermixed_args(words))


@pytest.mark.parametrize(
    "words",
    [
        ["set", "codex", "--as", "ana"],
        ["set", "--as", "ana", "codex"],
        ["--as=ana", "set", "--", "codex"],
    ],
)
def test_arguments_and_options_may_be_mixed(words):
    found = parse_arguments("actor", "", loaded()["actor"].arguments, words)
    assert (found["action"], found["name"], found["person"]) == ("set", "codex", "ana")


def test_an_option_that_is_given_two_dashes_has_no_value(repo):
    for option in ("--agent", "--as", "--session", "--ttl"):
        ran = repo.run("claim", repo.add(), *A, f"{option}=--", "--json")
        assert (ran.code, ran.error["code"]) == (2, "bad_argument"), option


# JSON.

RECORD = {
    "assignee_agent", "assignee_tier", "assigned_at", "lease_ttl", "lease_expires_at", "scope",
    "constraints", "handoff_reason", "token", "session", "renewed_at", "renewals", "holder",
}  # fmt: skip


def test_the_assignment_record_has_the_names_that_backlogs_gave_it(repo):
    key = repo.add("Fix login", "--scope", "src/auth/**", "--allow", "edit", "--allow", "complete")
    free = repo.json("show", key)["task"]
    assert set(free) >= RECORD
    assert free["assignee_agent"] is free["lease_expires_at"] is free["holder"] is None
    repo.ok("claim", key, *A, "--ttl", "30m")
    held = repo.json("show", key)["task"]
    assert held["assignee_agent"] == "codex-2"
    assert held["assignee_tier"] == 1
    assert held["lease_ttl"] == "30m"
    assert held["scope"] == ["src/auth/**"]
    assert held["constraints"] == ["edit", "complete"]
    assert held["holder"] == {"name": "codex-2", "kind": "agent", "session": "s1"}
    assert held["worktree"] == str(repo.folder)
    assert held["branch"] == "main"
    for name in ("assigned_at", "lease_expires_at", "renewed_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", held[name])


def test_a_claim_answers_with_the_task_and_the_lease(repo):
    key = repo.add()
    reply = repo.json("claim", key, *A, "--ttl", "30m")
    assert reply["schema"] == 1
    assert reply["task"]["state"] == "in_progress"
    lease = reply["lease"]
    assert (lease["token"], lease["holder"], lease["session"]) == ("1.1", "codex-2", "s1")
    assert (lease["late"], lease["taken_over_from"], lease["ttl_seconds"]) == (False, None, 1800)


def every_look(key: str):
    return [("list",), ("show", key), ("status",), ("log",), ("log", "--refused"), ("log", "--verify"), ("who", key),
            ("config",), ("actor", "list"), ("doctor",), ("scope", key)]  # fmt: skip


def test_every_answer_in_json_is_one_object_with_its_schema(repo):
    key = repo.add()
    repo.run("complete", key, *A)
    for look in every_look(key):
        ran = repo.ok(*look, "--json")
        assert ran.out.count("\n") == 1
        assert (json.loads(ran.out)["schema"], ran.err) == (1, ""), look


def test_a_refusal_in_json_is_one_object_on_stderr(repo):
    ran = repo.run("claim", "T-9", *A, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert set(json.loads(ran.err)) == {"schema", "error"}
    assert set(ran.error) == {"code", "message", "advice", "facts"}


def test_a_request_id_gives_the_same_answer_with_the_current_owner_beside_it(repo):
    key = repo.add()
    first = repo.json("claim", key, *A, "--request-id", "r1")
    repo.ok("takeover", key, "--force", "--reason", "urgent", "--as", "ana")
    again = repo.json("claim", key, *A, "--request-id", "r1")
    assert again["lease"] == first["lease"] | {"holder": "codex-2"}
    assert (again["replayed"], again["current"]["assignee_agent"]) == (True, "ana")
    assert repo.run("claim", key, *A, "--ttl", "5m", "--request-id", "r1").code == 1


def test_a_replay_says_who_holds_the_task_now(repo):
    key = repo.add()
    repo.ok("claim", key, *A, "--request-id", "r1")
    repo.ok("release", key, *A)
    assert f"{key} is held by nobody now" in repo.ok("claim", key, *A, "--request-id", "r1").err
    repo.ok("claim", key, "--as", "ana")
    assert (
        f"{key} is held by ana now (token 1.2)"
        in repo.ok("claim", key, *A, "--request-id", "r1").err
    )


def test_what_is_to_leave_a_scope_and_is_no_entry_of_it_is_named(repo):
    """The paths of `src` stay reserved by `src/**`: whoever takes `src` out must know that."""
    repo.add("work", "--scope", "src/**")
    ran = repo.ok("scope", "T-1", "--remove", "src", "--as", "ana")
    assert "the scope of T-1 has no entry src: its entries are src/**" in ran.err
    words = ("scope", "T-1", "--remove", "src", "--remove", "src/**", "--as", "ana")
    first = repo.json(*words, "--request-id", "1")
    assert first["task"]["scope"] == []
    assert first["warnings"] == ["the scope of T-1 has no entry src: its entries are src/**"]
    again = repo.json(*words, "--request-id", "1")
    assert (again["replayed"], len(again["warnings"])) == (True, 1)
    assert "has no entry src, src/**: it is empty" in repo.ok(*words).err
    assert repo.ok("scope", "T-1", "--add", "src/**", "--as", "ana").err == ""
    assert repo.ok("scope", "T-1", "--remove", "src/**", "--as", "ana").err == ""


def test_what_is_free_for_somebody_is_what_it_can_claim(repo):
    free, human, hard = repo.add(), repo.add("x", "--for", "human"), repo.add("y", "--tier", "5")
    assert [t["key"] for t in repo.json("list", "--free")["tasks"]] == [free, human, hard]
    assert [t["key"] for t in repo.json("list", "--free", *A)["tasks"]] == [free]
    assert [t["key"] for t in repo.json("list", "--free", "--as", "ana")["tasks"]] == [free, human]


@of_a_file
def test_status_shows_what_waits_behind_many_that_do_not(repo):
    for _ in range(25):
        repo.ok("claim", repo.add(), *A, "--reserve")
    free = repo.add()
    seen = repo.json("status")
    assert [waiting["key"] for waiting in seen["waiting"]] == [free]
    assert seen["more"] is False


def test_renewing_all_treats_each_task_by_itself(repo):
    keys = [repo.add() for _ in range(3)]
    for key in keys:
        repo.ok("claim", key, *A)
    reply = repo.json("renew", *A, "--ttl", "1h")
    assert [one["task"]["key"] for one in reply["renewed"]] == keys
    assert {one["task"]["lease_ttl"] for one in reply["renewed"]} == {"1h"}
    assert repo.ok("renew", "--agent", "other", "--session", "s").out == "no leases held\n"


def test_who_answers_for_now_and_for_then_and_echoes_local_times_in_both(repo):
    key = repo.add()
    claimed = repo.json("claim", key, *A)["lease"]["acquired_at"]
    repo.ok("complete", key, *A)
    assert repo.json("who", key)["holder"] is None
    assert repo.json("who", key, "--at", claimed)["holder"]["name"] == "codex-2"
    output = repo.ok("who", key, "--at", claimed, TZ="Europe/Berlin").out
    assert re.match(r"at [\d\-T:.]+Z \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d CE", output)


def redirected(repo, words: str, redirect: str):
    return subprocess.run(
        f"set -o pipefail; {DIBS} {words} {redirect}",
        shell=True, executable="/bin/bash", cwd=repo.folder, env=repo.environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_nobody_reads_was_done_all_the_same(repo):
    """A closed pipe, a closed stream and a full device: the claim is made, and the exit code says so."""
    key = repo.add()
    for redirect, code in (("| true", 0), (">&-", 73), ("> /dev/full", 73)):
        ran = redirected(repo, f"claim {key} --agent codex --session s1 --json", redirect)
        assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stderr
    assert repo.json("show", key)["task"]["assignee_agent"] == "codex"


CHANGES = """
actor set codex --kind agent --as ana
actor set other --kind agent --as ana
add one --as ana
note T-1 text --as ana
edit T-1 --title two --as ana
depend T-1 --on T-2 --as ana
depend T-1 --not-on T-2 --as ana
scope T-1 --add src --as ana
park T-1 --as ana
unpark T-1 --as ana
assign T-1 --to codex --as ana
unassign T-1 --reason no --as ana
claim T-1 --agent codex --session s1
stop T-1 --agent codex --session s1
start T-1 --agent codex --session s1
renew T-1 --ttl 1h --agent codex --session s1
handoff T-1 --to other --agent codex --session s1
claim T-1 --agent other --session s2
submit T-1 --agent other --session s2
reject T-1 --reason no --as ana
next --agent codex --session s1
fail T-1 --reason no --agent codex --session s1
retry T-1 --as ana
drop T-1 --reason no --as ana
intake --channel chat --ref 1 --title x --as ana
dispatch --pause --reason no --as ana
sweep --as ana
doctor
"""
"""Verbs that change something, and two that may; each can be done when those before it were."""


@of_a_file
def test_a_change_whose_output_cannot_be_written_is_73_and_was_made(repo, monkeypatch, capfd):
    """In this process, since it prints the same way in every one."""
    repo.add(), repo.add()
    for name in set(os.environ) - set(repo.environment()):
        monkeypatch.delenv(name)
    for name, value in repo.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(repo.folder)
    seen = len(repo.json("log", "--limit", "1000")["events"])
    for words in CHANGES.strip().splitlines():
        with open("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stdout", full)
            code = main([*words.split(), "--json"])
        message = capfd.readouterr().err
        assert code == 73, (words, code, message)
        error = json.loads(message.splitlines()[-1])["error"]
        assert error["code"] == "output_lost"
        assert "the command succeeded, but its output cannot be written" in error["message"]
        now = len(repo.json("log", "--limit", "1000")["events"])
        assert now > seen or words.split()[0] in ("renew", "sweep", "doctor"), words
        seen = now


def test_a_code_that_says_more_than_that_the_output_is_lost_is_kept(repo):
    assert redirected(repo, "setup git --check", "> /dev/full").returncode == 1
    assert redirected(repo, "show T-99", "> /dev/full").returncode == 2


@pytest.mark.parametrize(
    "words",
    ["stint list", "timesheet --as ana", "list", "show T-1", "export -", "--version", "help"],
)
def test_what_only_prints_and_cannot_is_73(repo, words):
    repo.add()
    ran = redirected(repo, words, "> /dev/full")
    assert ran.returncode == 73
    assert "its output cannot be written: No space left on device" in ran.stderr
    assert redirected(repo, words, "| true").returncode == 0


def test_a_warning_that_cannot_be_written_keeps_no_answer_back(repo):
    repo.add("work", "--scope", "src")
    (repo.folder / "dibs.toml").write_text("strange = 1\n")
    assert "warning" in repo.ok("config").err
    ran = redirected(repo, "config --json", "2> /dev/full")
    assert (ran.returncode, json.loads(ran.stdout)["schema"]) == (0, 1)


def test_a_bug_is_exit_70_and_no_traceback_unless_it_is_wanted(repo, monkeypatch):
    script = (
        "import sys; from dibs.board import explain; explain.status = None;"
        "from dibs.cli.main import main; sys.exit(main(['status']))"
    )
    for wanted in ("", "1"):
        ran = subprocess.run(
            [sys.executable, "-c", script], cwd=repo.folder, env=repo.environment(DIBS_DEBUG=wanted),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ("Traceback" in ran.stderr, ran.returncode) == (bool(wanted), 70)
    assert "this is a bug in dibs" in subprocess.run(
        [sys.executable, "-c", script], cwd=repo.folder, env=repo.environment(), capture_output=True, text=True, check=False
    ).stderr  # fmt: skip


# Refusals and their surfaces.


def codes_in_the_code() -> set[str]:
    from pathlib import Path

    import dibs

    text = " ".join(path.read_text() for path in Path(dibs.__file__).parent.rglob("*.py"))
    found = re.findall(r'(?:refused\(|Refusal\()\s*"([a-z_]+)"', text)
    return set(found)


def test_every_code_has_a_surface_and_every_surface_a_code():
    assert codes_in_the_code() == set(error_map.ERROR_MAP)


@pytest.mark.parametrize("code", sorted(error_map.ERROR_MAP))
def test_every_surface_has_an_exit_a_status_and_an_advice_that_can_be_filled(code):
    surface = error_map.ERROR_MAP[code]
    assert surface.exit in error_map.EXITS
    assert 400 <= surface.http < 600
    assert surface.mcp < 0
    assert "{" not in error_map.advice(Refusal(code, "message", {}))


def test_exit_codes_are_those_of_the_contract():
    by_exit = {code: surface.exit for code, surface in error_map.ERROR_MAP.items()}
    assert by_exit["held"] == 4
    assert by_exit["lease_lost"] == by_exit["token_ahead"] == 5
    assert (
        by_exit["parked"]
        == by_exit["tier_too_low"]
        == by_exit["not_allowed"]
        == by_exit["wrong_kind"]
        == 3
    )
    assert (
        by_exit["unknown_task"]
        == by_exit["no_identity"]
        == by_exit["no_board"]
        == by_exit["reason_missing"]
        == 2
    )
    assert by_exit["final"] == by_exit["people_only"] == by_exit["not_held"] == 1
    assert by_exit["disk_full"] == by_exit["corrupt"] == by_exit["read_only"] == 74
    assert by_exit["busy"] == 75
    assert by_exit["bug"] == 70
    assert refusals.Refused(Refusal("held", "m")).code == "held"


# Start-up.

HEAVY = {
    "argparse",
    "asyncio", "dataclasses", "datetime", "decimal", "email", "hashlib", "http", "inspect", "logging", "pathlib",
    "random", "shutil", "socket", "sqlite3", "subprocess", "tempfile", "threading", "tomllib", "typing", "urllib",
    "uuid", "zoneinfo",
}  # fmt: skip


@of_a_file
def test_claim_loads_only_what_it_needs(repo):
    """Start-up is a feature: this list is the budget."""
    key = repo.add()
    script = (
        "import sys; before = set(sys.modules); from dibs.cli.main import main;"
        f"main(['claim', '{key}', '--agent', 'a1', '--session', 's1']);"
        "print(' '.join(sorted(set(sys.modules) - before)))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", script], cwd=repo.folder, env=repo.environment(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    modules = set(ran.stdout.splitlines()[-1].split())
    assert modules & HEAVY == set()
    ours = {name for name in modules if name.startswith("dibs")}
    assert len(ours) <= 50  # 9 of them are the empty files of packages
    assert {name for name in ours if name.startswith("dibs.board")} <= {
        "dibs.board", "dibs.board.command_builder", "dibs.board.execute", "dibs.board.facts", "dibs.board.facts.task",
        "dibs.board.former_work", "dibs.board.identity", "dibs.board.locate", "dibs.board.outcome", "dibs.board.retry",
        "dibs.board.settings", "dibs.board.user_config",
    }  # fmt: skip
    assert {name for name in ours if name.startswith("dibs.cli.")} <= {
        "dibs.cli.call", "dibs.cli.main", "dibs.cli.own", "dibs.cli.text",
        "dibs.cli.verbs",
    }  # fmt: skip


def test_finding_the_board_starts_no_process(repo):
    """Also in a linked work tree; no program is on the path."""
    key = repo.add()
    other = repo.worktree("other")
    assert other.json("show", key)["task"]["key"] == key
    ran = other.run("claim", key, *A, PATH="/nonexistent")
    assert ran.code == 0, ran.err
