"""`dibs run`: a command under a task. Real processes, on both stores."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

from dibs.board.liveness import end_survivors
from dibs.domain.model import LeaseProcess
from dibs.domain.values import HOUR, MINUTE
from dibs.machine import this_machine
from dibs.workers.run import backoff_after
from kit import soak
from kit.boards import of_a_file
from kit.hands import Hand
from kit.repositories import DIBS, Repo
from kit.running import (
    DEADLINE,
    Running,
    here,
    lives,
    mode_of,
    process_of_session,
    until,
    wait_for,
    waits_for_a_lock,
)

A = ("--agent", "codex-2", "--session", "s1")
BUSY = "while true; do sleep 0.05; done"


def shown(repo, key):
    return repo.json("show", key)["task"]


def notes(repo, key) -> list[str]:
    return [note["text"] for note in repo.json("show", key)["notes"]]


def held_by(repo, key, name) -> bool:
    return shown(repo, key)["assignee_agent"] == name


# How it ends.


def test_a_command_that_exits_with_0_completes_its_task(repo):
    key = repo.add()
    ran = repo.run("run", key, *A, "--", "sh", "-c", "echo out; echo err >&2")
    assert (ran.code, ran.out) == (0, "out\n")
    assert "\nerr\n" in ran.err
    assert f"the command exited with 0; {key} is complete" in ran.err
    assert shown(repo, key)["state"] == "complete"
    assert notes(repo, key) == ["the command exited with 0"]


def test_it_can_submit_with_a_note_of_its_own(repo):
    key = repo.add()
    assert repo.run("run", key, *A, "--submit", "--note", "look at it", "--", "true").code == 0
    assert shown(repo, key)["state"] == "review"
    assert notes(repo, key) == ["look at it"]


@pytest.mark.parametrize(("on_fail", "state"), [("fail", "failed"), ("block", "blocked")])
def test_a_command_that_fails_is_written_down_with_its_last_words(repo, on_fail, state):
    key = repo.add()
    script = "seq -f 'line %g' 40; printf '\\033[31mno\\377\\000 disk\\n'; exit 3"
    with Running(repo, key, script, *A, "--on-fail", on_fail, "--json") as run:
        ran = run.ended()
    assert (ran.code, ran.json["task"]["state"]) == (1, state)
    [note] = notes(repo, key)
    assert note.startswith("exited with 3: ")
    assert note.endswith("no\\xff disk")
    assert note.count("line") == 19
    assert ran.json["run"]["exit"] == 3


def test_a_command_that_is_killed_has_failed(repo):
    key = repo.add()
    ran = repo.run("run", key, *A, "--json", "--", "sh", "-c", "kill -9 $$")
    assert (ran.code, ran.json["run"]["exit"], ran.json["run"]["signal"]) == (1, None, "SIGKILL")
    assert notes(repo, key) == ["was ended by SIGKILL"]


def test_a_try_that_did_not_succeed_is_given_back_and_backs_off_until_there_are_no_more(repo):
    key = repo.add("work", "--max-attempts", "2")
    release = ("run", key, *A, "--on-fail", "release", "--", "false")
    assert repo.run(*release).code == 1
    assert (shown(repo, key)["state"], notes(repo, key)) == ("open", ["exited with 1"])
    assert repo.run(*release).code == 1
    assert shown(repo, key)["state"] == "failed"


@pytest.mark.parametrize(
    ("attempts", "about"), [(1, MINUTE), (2, 2 * MINUTE), (4, 8 * MINUTE), (7, HOUR), (900, HOUR)]
)
def test_the_backoff_doubles_up_to_an_hour_and_is_never_quite_the_same(attempts, about):
    rests = {backoff_after(attempts) for _ in range(200)}
    assert len(rests) > 100
    assert 0.8 * about <= min(rests) < max(rests) <= 1.2 * about


def test_an_end_that_the_rules_refuse_gives_the_task_back(repo):
    key = repo.add("work", "--allow", "edit")
    ran = repo.run("run", key, *A, "--", "true")
    assert ran.code == 3
    assert ", not complete" in ran.err
    assert shown(repo, key)["state"] == "open"


# What the command sees, and what is seen of it.


def test_output_passes_through_while_the_command_runs(repo):
    key = repo.add()
    with Running(repo, key, f"echo first; {wait_for('word')}; echo last", *A) as run:
        assert run.line() == "first\n"
        assert shown(repo, key)["state"] == "in_progress"
        run.signal_word("word")
        ran = run.ended()
    assert (ran.code, ran.out) == (0, "last\n")


def test_output_is_passed_on_byte_by_byte(repo):
    key = repo.add()
    script = "import os; os.write(1, bytes(range(256)) * 4000)"
    ran = subprocess.run(
        [DIBS, "run", key, *A, "--", sys.executable, "-c", script],
        cwd=repo.folder, env=repo.environment(), capture_output=True, check=True, timeout=DEADLINE,
    )  # fmt: skip
    assert ran.stdout == bytes(range(256)) * 4000


def test_who_reads_slowly_misses_nothing(repo):
    """The command is long gone when its output is read."""
    key = repo.add()
    with Running(repo, key, f"seq 20000; {here('it')}", *A) as run:
        pid = run.pid_of("it")
        until(lambda: not lives(pid))
        with pytest.raises(subprocess.TimeoutExpired):
            run.process.wait(1.5)
        assert run.ended().out.splitlines()[-1] == "20000"


def test_who_stops_reading_stops_the_command(repo):
    key = repo.add()
    done = subprocess.run(
        f"{DIBS} run {key} --agent codex --session s1 -- yes | head -n 1",
        shell=True, cwd=repo.folder, env=repo.environment(), capture_output=True, timeout=DEADLINE,
        check=True,
    )  # fmt: skip
    assert done.stdout == b"y\n"
    assert notes(repo, key)[0].startswith("was ended by SIGPIPE")


def test_nobody_waits_for_what_the_command_left_behind(repo):
    key = repo.add()
    with Running(repo, key, f"({here('left')}; sleep 600) & echo done", *A) as run:
        assert run.ended().out == "done\n"


def test_with_json_standard_output_holds_one_object(repo):
    key = repo.add()
    ran = repo.run("run", key, *A, "--json", "--", "echo", "hello")
    assert ran.err == "hello\n"
    reply = ran.json["run"]
    assert reply.pop("log") is None
    assert reply == {
        "exit": 0, "signal": None, "ended_by": "complete", "by_command": False, "interrupted_by": None,
        "token": "1.1", "session": "s1", "tail": "hello",
    }  # fmt: skip


@pytest.mark.parametrize("words", [("--json", "--agent", "x"), ("--", "a", "--help"), ("-h",)])
def test_what_is_after_the_dashes_is_the_commands_own(repo, words):
    key = repo.add()
    ran = repo.ok("--agent", "codex-2", "run", "--session=s1", key, "--", "echo", "-n", *words)
    assert ran.out == " ".join(words)


def test_a_command_must_be_given(repo):
    key = repo.add()
    for words in (("run", key, *A), ("run", key, *A, "--")):
        ran = repo.run(*words, "--json") if "--" not in words else repo.run("--json", *words)
        assert (ran.code, ran.error["code"]) == (2, "bad_argument")
    assert shown(repo, key)["token"] == "0.0"


ENVIRONMENT = "env | grep -a ^DIBS_ | sort"


def variables(printed: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in printed.splitlines())


def test_the_command_knows_who_it_is(repo):
    key = repo.add()
    with Running(repo, key, ENVIRONMENT, *A) as run:
        environment = variables(run.ended().out)
    assert environment.pop("DIBS_URL", None) == repo.around.get("DIBS_URL")
    del environment["DIBS_HOOK_SECONDS"]  # of all tests
    assert environment == {
        "DIBS_AGENT": "codex-2", "DIBS_SESSION": "s1", "DIBS_TASK": key, "DIBS_TOKEN": "1.1",
        "DIBS_RUN": run.mark,
    }  # fmt: skip


def test_a_persons_command_is_nobodys_agent(repo):
    key = repo.add()
    inherited = {"DIBS_AGENT": "codex-2", "DIBS_SESSION": "s1"}
    ran = repo.ok("run", key, "--as", "ana", "--", "sh", "-c", ENVIRONMENT, **inherited)
    assert {"DIBS_AGENT", "DIBS_SESSION"} & variables(ran.out).keys() == set()
    assert variables(ran.out)["DIBS_TASK"] == key
    [lease] = repo.json("show", key)["ended_leases"]
    assert (lease["holder"], lease["session"], lease["cause"]) == ("ana", "ana", "complete")


def test_output_is_kept_for_its_owner_alone(repo):
    key = repo.add()
    logs = repo.folder.parent / "logs" / "deep"
    script = "echo out; echo err >&2"
    reply = repo.ok("run", key, *A, "--json", "--log-dir", str(logs), "--", "sh", "-c", script).json
    log = logs / f"{key}-1.1.log"
    assert reply["run"]["log"] == str(log)
    assert (sorted(log.read_text().split()), mode_of(log)) == (["err", "out"], 0o600)


# The session.


def test_a_run_without_a_session_has_one_of_its_own(repo):
    first, second = repo.add(), repo.add()
    sessions = [
        repo.ok("--json", "run", key, "--agent", "codex-2", "--", "true").json["run"]["session"]
        for key in (first, second)
    ]
    assert all(session.startswith("run-") for session in sessions)
    assert sessions[0] != sessions[1]


def test_the_session_lives_as_long_as_the_run_also_when_the_command_claims(repo):
    """A claim inside the command, in a shell of its own, does not untie it."""
    key, other = repo.add(), repo.add()
    script = f"sh -c '{DIBS} claim {other}; true' && {here('it')}; {wait_for('word')}"
    with Running(repo, key, script, *A) as run:
        run.pid_of("it")
        assert held_by(repo, other, "codex-2")
        tied = process_of_session(repo, "codex-2", "s1")
        assert tied == this_machine().process(run.pid)
        run.signal_word("word")
        assert run.ended().code == 0


def test_the_session_of_a_run_inside_a_run_ends_with_the_inner_one(repo):
    """Also after renewals, which are sent from a place that is tied to the outer one."""
    outer, inner = repo.add(), repo.add()
    script = f"{DIBS} run {inner} --session s2 --ttl 4s -- sh -c '{here('it')}; {wait_for('word')}'"
    with Running(repo, outer, script, *A) as run:
        parent = this_machine().parent(run.pid_of("it"))
        until(lambda: (shown(repo, inner)["renewals"] or 0) >= 2)
        assert process_of_session(repo, "codex-2", "s2") == this_machine().process(parent)
        run.signal_word("word")
        assert run.ended().code == 0


def test_a_session_with_other_tasks_does_not_end_with_the_run(repo):
    key, other = repo.add(), repo.add()
    repo.ok("claim", other, *A)
    repo.ok("run", key, *A, "--", "true")
    assert process_of_session(repo, "codex-2", "s1") is None


def test_two_runs_of_one_session_are_two(repo):
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {wait_for('word')}", *A) as run:
        run.pid_of("it")
        ran = repo.run("--json", "run", key, *A, "--", "touch", str(run.folder / "second"))
        assert (ran.code, ran.error["code"]) == (4, "already_running")
        run.signal_word("word")
        assert run.ended().code == 0
    assert not (run.folder / "second").exists()


ANA = ("--as", "ana")


def test_a_person_runs_a_task_once_at_a_time_and_learns_which_process_it_is(repo):
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {wait_for('word')}", *ANA) as run:
        run.pid_of("it")
        ran = repo.run("run", key, *ANA, "--", "touch", str(run.folder / "second"))
        assert ran.code == 4
        assert f"ana is already running {key}: process {run.pid} on " in ran.err
        assert ", since " in ran.err and ", token 1.1\n" in ran.err
        assert f"next: wait for it: dibs wait {key} --for free" in ran.err
        assert repo.ok("claim", key, *ANA, "--json").json["lease"]["token"] == "1.1"
        assert repo.run("run", key, *ANA, "--", "true").code == 4, "a claim beside it is no end"
        run.signal_word("word")
        assert run.ended().code == 0
    assert not (run.folder / "second").exists()


def test_a_session_that_holds_another_task_runs_each_of_them_once_at_a_time(repo):
    key, other = repo.add(), repo.add()
    repo.ok("claim", other, *A)
    with Running(repo, key, f"{here('it')}; {wait_for('word')}", *A) as run:
        run.pid_of("it")
        ran = repo.run("run", key, *A, "--", "touch", str(run.folder / "second"))
        assert ran.code == 4
        assert f"codex-2 (session s1) is already running {key}: process {run.pid} on " in ran.err
        assert repo.ok("run", other, *A, "--", "true").code == 0
        run.signal_word("word")
        assert run.ended().code == 0
    assert not (run.folder / "second").exists()


@pytest.mark.parametrize("who", [A, ANA])
def test_a_run_that_gave_its_lease_back_and_goes_on_is_not_run_a_second_time(repo, who):
    """Its command ended the lease, or somebody did in its name: it works on all the same."""
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {wait_for('word')}", *who) as run:
        run.pid_of("it")
        repo.ok("release", key, *who)
        ran = repo.run("run", key, *who, "--", "true")
        assert (ran.code, "its lease has ended, token 1.1" in ran.err) == (4, True)
        run.signal_word("word")
        run.ended()
    assert repo.ok("run", key, *who, "--", "true").code == 0


@pytest.mark.parametrize("who", [A, ANA])
def test_who_was_killed_can_run_its_task_again_at_once(repo, who):
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {BUSY}", *who) as run:
        run.pid_of("it")
        run.send(signal.SIGKILL)
        run.process.wait()
        ran = repo.ok("--json", "run", key, *who, "--", "true")
        assert ran.json["run"]["token"] == "1.1"
    assert shown(repo, key)["state"] == "complete"


def test_a_claim_by_hand_after_the_run_was_killed_is_the_sessions_own_again(repo):
    """What is behind the lease is then not the dead run any more: nobody takes it over."""
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {BUSY}", *A) as run:
        run.pid_of("it")
        run.send(signal.SIGKILL)
        run.process.wait()
        repo.ok("claim", key, *A)
        assert repo.run("claim", key, "--agent", "heir", "--session", "s9").code == 4
        repo.ok("complete", key, *A)


def test_a_lease_ends_with_its_run_also_if_the_session_holds_another_task(repo):
    key, other = repo.add(), repo.add()
    repo.ok("claim", other, *A)
    with Running(repo, key, f"{here('it')}; {BUSY}", *A) as run:
        run.pid_of("it")
        run.send(signal.SIGKILL)
        run.process.wait()
        assert "stale: process gone" in repo.ok("status").out
        repo.ok("claim", key, "--agent", "heir", "--session", "s9")
        assert repo.run("claim", other, "--agent", "heir", "--session", "s9").code == 4


@pytest.mark.parametrize("who", [A, ANA], ids=["session", "person"])
def test_of_four_runs_that_start_at_the_same_instant_one_starts_its_command(repo, who):
    """Whoever comes second is refused inside the transaction of the claim."""
    keys = [repo.add() for _ in range(soak.times(5, share=0.05, each=2))]
    started = repo.folder.parent / "started"
    started.touch()
    for key in keys:
        word = repo.folder.parent / key
        script = f"echo {key} >> {started}; while [ ! -e {word} ]; do sleep 0.02; done"
        runs = [
            subprocess.Popen(
                [DIBS, "run", key, *who, "--", "sh", "-c", script], cwd=repo.folder,
                env=repo.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            for _ in range(4)
        ]  # fmt: skip
        until(lambda runs=runs: sum(run.poll() is not None for run in runs) >= len(runs) - 1)
        word.touch()
        assert sorted(run.wait(DEADLINE) for run in runs) == [0, 4, 4, 4]
    assert started.read_text().split() == keys


# Who a command is.

KEPT = " ".join(f'${{{name}:+{name}="${name}"}}' for name in ("DIBS_URL", "PYTHONPATH"))
CLEARED = f'env -i PATH="$PATH" HOME="$HOME" SEEN="$SEEN" {KEPT}'
WAYS = {
    "as it is": "$ACT",
    "without its variables": "env -u DIBS_RUN -u DIBS_AGENT -u DIBS_SESSION $ACT",
    "with an empty environment": f"{CLEARED} $ACT",
    "in a session of its own": f"{CLEARED} setsid -w $ACT",
    "when what started it is gone": f"({CLEARED} sh -c 'while [ -e /proc/$0/stat ]; do sleep 0.01; done; $ACT' $$ & ); exit 0",
}


def acts(way: str, act: str) -> str:
    """A script that does it in this way, and keeps what came of it."""
    written = f"sh -c '{act} > $SEEN/said 2>&1; echo $? > $SEEN/part; mv $SEEN/part $SEEN/code'"
    nested = written.replace("'", "'\\''") if "sh -c '" in WAYS[way] else written
    return WAYS[way].replace("$ACT", nested)


@pytest.mark.parametrize("way", sorted(WAYS))
def test_an_agent_that_a_run_started_is_no_person_whatever_it_says(repo, way):
    key, other = repo.add(), repo.add()
    with Running(repo, key, acts(way, f"{DIBS} claim {other} --as ana"), *A) as run:
        code = run.pid_of("code")
        output = (run.folder / "said").read_text()
        assert code == 1, output
        assert "ana cannot act here: this is part of dibs run of codex-2" in output
        assert "next: act as an agent" in output
        run.ended()
    assert shown(repo, other)["token"] == "0.0"
    assert repo.json("log", "--refused")["refusals"][0]["code"] == "in_harness"


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_persons_own_run_makes_nobody_an_agent(repo, way):
    key, other = repo.add(), repo.add()
    with Running(repo, key, acts(way, f"{DIBS} claim {other} --as ana"), *ANA) as run:
        assert run.pid_of("code") == 0, (run.folder / "said").read_text()
        run.ended()
    assert held_by(repo, other, "ana")


def test_an_agent_stays_one_after_it_has_ended_its_lease_itself(repo):
    key, other = repo.add(), repo.add()
    act = f"{DIBS} claim {other} --as ana"
    script = f"{DIBS} complete {key}; {acts('with an empty environment', act)}"
    with Running(repo, key, script, *A) as run:
        assert run.pid_of("code") == 1
        assert run.ended().code == 0
    assert shown(repo, other)["token"] == "0.0"


def test_an_agent_of_a_run_is_no_person_a_hundred_processes_further_down(repo, tmp_path):
    other = repo.add()
    deep = tmp_path / "deep"
    deep.write_text(
        f"[ $1 -gt 0 ] || exec setsid -w {DIBS} claim {other} --as ana\nsh {deep} $(($1 - 1))\nexit $?\n"
    )
    kept = " ".join(
        f"{name}=${name}" for name in ("PATH", "PYTHONPATH", "XDG_CONFIG_HOME", "DIBS_URL")
    )
    with Running(repo, repo.add(), acts("as it is", f"env -i {kept} sh {deep} 100"), *A) as run:
        assert run.pid_of("code") == 1
        assert "dibs run of codex-2" in (run.folder / "said").read_text()
        run.ended()
    assert shown(repo, other)["token"] == "0.0"


def test_a_run_of_another_board_is_known_by_its_variables(repo, tmp_path):
    elsewhere = Repo.create(tmp_path / "elsewhere")
    elsewhere.ok("init")
    other = elsewhere.add()
    act = f"cd {elsewhere.folder}; DIBS_URL= {DIBS} claim {other} --as ana"
    with Running(repo, repo.add(), acts("as it is", act), *A) as run:
        assert run.pid_of("code") == 1
        assert "dibs run of codex-2, as DIBS_RUN says" in (run.folder / "said").read_text()
        run.ended()


@pytest.mark.parametrize("who", [A, ("DIBS_AGENT",)], ids=["option", "variable"])
@pytest.mark.parametrize("way", ["without its variables", "in a session of its own"])
def test_a_run_of_another_board_is_known_without_its_variables(repo, tmp_path, way, who):
    elsewhere = Repo.create(tmp_path / "elsewhere")
    elsewhere.ok("init")
    other = elsewhere.add()
    act = f"cd {elsewhere.folder}; DIBS_URL= {DIBS} claim {other} --as ana"
    if who is not A:
        repo.around |= {"DIBS_AGENT": "codex-2", "DIBS_SESSION": "s1"}
    with Running(repo, repo.add(), acts(way, act), *(who if who is A else ())) as run:
        assert run.pid_of("code") == 1
        assert "this is part of dibs run of an agent" in (run.folder / "said").read_text()
        run.ended()


def test_a_persons_run_of_another_board_makes_nobody_an_agent(repo, tmp_path):
    elsewhere = Repo.create(tmp_path / "elsewhere")
    elsewhere.ok("init")
    other = elsewhere.add()
    act = f"cd {elsewhere.folder}; DIBS_URL= {DIBS} claim {other} --as ana"
    with Running(repo, repo.add(), acts("without its variables", act), *ANA) as run:
        assert run.pid_of("code") == 0, (run.folder / "said").read_text()
        run.ended()


def test_the_library_takes_an_agent_of_a_run_for_no_person_either(repo):
    script = (
        "import dibs, sys\n"
        "try:\n    dibs.open_board(person='ana').claim(sys.argv[1])\n"
        "except dibs.Refused as problem:\n    print(problem.code)"
    )
    command = f"{CLEARED} {sys.executable} -c {shlex.quote(script)} {repo.add()}"
    with Running(repo, repo.add(), command, *A) as run:
        assert run.ended().out == "in_harness\n"


def test_a_subagent_runs_nothing_under_its_parents_lease(repo):
    key = repo.add()
    ran = repo.run("--json", "run", key, "--agent", "codex", "--session", "s1/a2", "--", "true")
    assert (ran.code, ran.error["code"]) == (1, "parent_only")
    assert shown(repo, key)["token"] == "0.0"


def test_a_run_has_no_request_id(repo):
    key = repo.add()
    ran = repo.run("--json", "run", key, *A, "--request-id", "r1", "--", "true")
    assert (ran.code, ran.error["code"]) == (2, "bad_argument")


# The lease.


def test_a_task_that_another_holds_starts_nothing(repo):
    key, file = repo.add(), repo.folder / "started"
    repo.ok("claim", key, "--as", "ana")
    assert repo.run("run", key, *A, "--", "touch", str(file)).code == 4
    assert not file.exists()


def test_the_lease_is_renewed_while_the_command_lives(repo):
    key = repo.add()
    with Running(repo, key, wait_for("word"), *A, "--ttl", "4s") as run:
        until(lambda: (shown(repo, key)["renewals"] or 0) >= 3)
        run.signal_word("word")
        assert run.ended().code == 0
    [lease] = repo.json("show", key)["ended_leases"]
    assert (lease["token"], lease["cause"]) == ("1.1", "complete")


@pytest.mark.parametrize("command", [["/nowhere/to/be/found"], ["/"], [""]])
def test_a_command_that_cannot_be_started_costs_no_claim_and_no_attempt(repo, command):
    key = repo.add()
    ran = repo.run("--json", "run", key, *A, "--", *command)
    assert (ran.code, ran.error["code"]) == (2, "cannot_start")
    task = shown(repo, key)
    assert (task["state"], task["token"], task["attempts"]) == ("open", "0.0", 0)


def test_a_command_that_turns_out_to_be_none_gives_the_claim_back(repo):
    """It is there, and may be run; only the kernel does not know how."""
    key = repo.add()
    broken = repo.folder / "broken"
    broken.write_text("#!/nowhere/to/be/found\n")
    broken.chmod(0o755)
    ran = repo.run("--json", "run", key, *A, "--", str(broken))
    assert (ran.code, ran.error["code"]) == (2, "cannot_start")
    task = shown(repo, key)
    assert (task["state"], task["token"], task["holder"]) == ("open", "1.1", None)
    assert notes(repo, key)[0].startswith("not started: ")


def test_a_log_that_cannot_be_kept_gives_the_claim_back(repo):
    key = repo.add()
    ran = repo.run("--json", "run", key, *A, "--log-dir", "/dev/null/logs", "--", "true")
    assert (ran.code, ran.error["code"]) == (2, "cannot_start")
    assert shown(repo, key)["state"] == "open"


@pytest.mark.parametrize(
    ("own", "state", "code"),
    [
        ("complete --note own", "complete", 0),
        ("submit", "review", 0),
        ("release", "open", 0),
        ("block --reason 'no key'", "blocked", 0),
        ("handoff --to ana", "in_progress", 0),
        ("fail --reason 'no'", "failed", 1),
    ],
)
def test_a_command_may_end_its_lease_itself(repo, own, state, code):
    repo.add("known")
    repo.ok("note", "T-1", "hello", "--as", "ana")
    key = repo.add()
    verb, _, rest = own.partition(" ")
    ran = repo.run("--json", "run", key, *A, "--", "sh", "-c", f"{DIBS} {verb} {key} {rest}")
    assert ran.code == code, ran.err
    reply = ran.json
    assert (reply["task"]["state"], reply["run"]["by_command"], reply["run"]["ended_by"]) == (
        state,
        True,
        verb,
    )
    assert "the command exited with 0" not in notes(repo, key)


def test_a_command_that_ended_its_lease_itself_may_go_on(repo):
    """The keeper learns that the lease is over: that is no reason to end anything."""
    key = repo.add()
    script = f"{DIBS} complete {key} && {here('it')}; {wait_for('word')}; echo bye"
    with Running(repo, key, script, *A, "--ttl", "4s") as run:
        run.pid_of("it")
        until(lambda: repo.json("log", "--refused")["refusals"])
        run.signal_word("word")
        ran = run.ended()
    assert (ran.code, ran.out.endswith("bye\n")) == (0, True)


FAMILY = (
    f"setsid sh -c '{here('grandchild')}; trap : TERM; {BUSY}' & sh -c '{here('child')}; {BUSY}' & "
    f"{here('it')}; {BUSY}"
)
"""A command with a child in its group, and a grandchild that left the group and ignores SIGTERM."""


def family_of(run: Running) -> list[int]:
    return [run.pid_of(name) for name in ("it", "child", "grandchild")]


def test_who_loses_the_lease_ends_with_everything_that_it_started(repo):
    key = repo.add()
    with Running(repo, key, FAMILY, *A, "--ttl", "4s") as run:
        family = family_of(run)
        repo.ok("takeover", key, "--force", "--reason", "urgent", "--as", "ana")
        ran = run.ended()
        assert (ran.code, [lives(pid) for pid in family]) == (5, [False] * 3), ran.err
    assert "ana holds it now" in ran.err
    assert held_by(repo, key, "ana")


def test_who_hides_its_mark_ends_with_the_group(repo):
    key = repo.add()
    hidden = f"env -i PATH=$PATH SEEN=$SEEN sh -c '{here('hidden')}; trap : TERM; {BUSY}'"
    with Running(repo, key, f"{hidden} & {here('it')}; {BUSY}", *A, "--ttl", "4s") as run:
        pids = [run.pid_of("it"), run.pid_of("hidden")]
        repo.ok("takeover", key, "--force", "--reason", "urgent", "--as", "ana")
        assert (run.ended().code, [lives(pid) for pid in pids]) == (5, [False] * 2)


def test_a_run_that_stood_still_ends_what_it_started_when_it_goes_on(repo):
    key = repo.add()
    with Running(repo, key, FAMILY, *A, "--ttl", "1s") as run:
        family = family_of(run)
        run.stop()
        until(lambda: shown(repo, key)["expired"])
        repo.ok("claim", key, "--agent", "heir", "--session", "s9")
        assert all(map(lives, family))
        run.send(signal.SIGCONT)
        assert (run.ended().code, [lives(pid) for pid in family]) == (5, [False] * 3)
    assert held_by(repo, key, "heir")


# Signals.


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_that_gets_sigterm_gives_the_task_back(repo, number, code):
    """Also if the command does not care: it is killed after a while, with all that it started."""
    key = repo.add()
    with Running(repo, key, f"trap : TERM HUP; {FAMILY}", *A) as run:
        family = family_of(run)
        run.send(number)
        ran = run.ended()
        assert (ran.code, [lives(pid) for pid in family]) == (code, [False] * 3), ran.err
    assert shown(repo, key)["state"] == "open"
    assert notes(repo, key)[0].startswith(f"interrupted by {number.name}")


@pytest.mark.parametrize("script", [BUSY, f"trap 'exit 2' INT; {BUSY}"])
def test_an_interrupted_command_has_not_failed(repo, script):
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {script}", *A) as run:
        run.pid_of("it")
        run.send(signal.SIGINT)
        assert run.ended().code == 130
    assert shown(repo, key)["state"] == "open"
    assert notes(repo, key)[0].startswith("interrupted by SIGINT")


def test_what_a_command_makes_of_a_signal_is_its_own_affair(repo):
    key = repo.add()
    script = f"trap 'echo int' INT; trap 'echo usr; touch $SEEN/word' USR1; {here('it')}; {wait_for('word')}; exit 0"
    with Running(repo, key, script, *A) as run:
        run.pid_of("it")
        run.send(signal.SIGINT)
        assert run.line() == "int\n"
        run.send(signal.SIGUSR1)
        ran = run.ended()
    assert (ran.code, ran.out) == (0, "usr\n")
    assert shown(repo, key)["state"] == "complete"


def test_who_is_stopped_at_the_terminal_stops_the_command_and_continues_it(repo):
    """It starts no others: a shell that waits for one that was stopped before it began is not stopped."""
    key = repo.add()
    waits = (
        "import os, time\nwhile not os.path.exists(os.environ['SEEN'] + '/word'): time.sleep(0.02)"
    )
    with Running(
        repo, key, f"{here('it')}; exec {sys.executable} -c {shlex.quote(waits)}", *A
    ) as run:
        pid = run.pid_of("it")
        run.send(signal.SIGTSTP)
        machine = this_machine()
        until(lambda: machine.is_stopped(run.pid) and machine.is_stopped(pid))
        run.send(signal.SIGCONT)
        until(lambda: not machine.is_stopped(pid))
        run.signal_word("word")
        assert run.ended().code == 0


linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a child with its parent"
)


@linux
def test_a_run_that_is_killed_takes_its_command_with_it_and_the_rest_is_found(repo):
    key = repo.add()
    with Running(repo, key, FAMILY, *A) as run:
        it, child, grandchild = family_of(run)
        run.send(signal.SIGKILL)
        until(lambda: not lives(it))
        machine = this_machine()
        assert {process.pid for process in machine.carrying(run.mark)} >= {child, grandchild}
        repo.ok("claim", key, "--agent", "heir", "--session", "s9")
        assert machine.carrying(run.mark) == []
        assert [lives(pid) for pid in (child, grandchild)] == [False, False]


def test_a_process_of_another_run_is_not_a_survivor_of_this_one(repo):
    key = repo.add()
    with Running(repo, key, f"{here('it')}; {wait_for('word')}", *A) as run:
        pid = run.pid_of("it")
        process = run.run.process
        for other in (process.started * 10, process.started // 10):
            near = LeaseProcess(process.but(started=other))
            assert end_survivors(this_machine(), near, 0) == []
        run.signal_word("word")
        assert run.ended().code == 0
        assert not lives(pid)


# A board that cannot be written.


def keep_the_lock(hand) -> None:
    hand.send("stop_inside", "think")
    assert hand.receive() == "inside"
    hand.wait_until_stopped()


@of_a_file
def test_an_end_that_cannot_be_written_down_is_tried_again(repo):
    (repo.database.parent / "settings.toml").write_text('write_wait = "1s"\n')
    key = repo.add()
    with (
        Running(repo, key, f"{here('it')}; {wait_for('word')}", *A) as run,
        Hand(repo.folder, "slow") as slow,
    ):
        pid = run.pid_of("it")
        keep_the_lock(slow)
        run.signal_word("word")
        until(lambda: not lives(pid))
        with pytest.raises(subprocess.TimeoutExpired):
            run.process.wait(2.5)
        slow.resume()
        assert run.ended().code == 0
    assert shown(repo, key)["state"] == "complete"


@of_a_file
@pytest.mark.parametrize("output", [0, signal.SIGINT])
def test_an_end_that_could_not_be_written_down_is_reported(repo, output):
    """When the lease is over, or when somebody does not want to wait for that."""
    (repo.database.parent / "settings.toml").write_text('write_wait = "1s"\n')
    key = repo.add()
    ttl = "60s" if output else "2s"
    with (
        Running(repo, key, f"{here('it')}; {wait_for('word')}", *A, "--ttl", ttl, "--json") as run,
        Hand(repo.folder, "slow") as slow,
    ):
        pid = run.pid_of("it")
        keep_the_lock(slow)
        run.signal_word("word")
        until(lambda: not lives(pid))
        if output:
            until(lambda: waits_for_a_lock(run.pid))
            run.send(output)
        ran = run.ended()
        slow.resume()
        slow.receive()
    error = json.loads(ran.err.splitlines()[-1])["error"]
    assert (ran.code, error["code"]) == (75, "busy")
    assert f"the command exited with 0, and complete {key} was not recorded" in error["message"]
    assert (error["facts"]["verb"], error["facts"]["token"]) == ("complete", "1.1")
    assert os.path.exists(repo.database)


def test_the_last_words_of_a_command_are_passed_on_though_it_ends_without_output(monkeypatch):
    """It speaks and ends between the end of a silence and the look whether it has ended."""
    import os
    import select

    from dibs.workers import child

    reading, writing = os.pipe()
    command = child.Child.__new__(child.Child)
    command._status = None
    real = select.poll

    class Ended:
        """The first silence ends just as the command says something, and ends."""

        def __init__(self):
            self._poll, self._first = real(), True

        def register(self, *what):
            self._poll.register(*what)

        def poll(self, timeout):
            if self._first:
                self._first = False
                os.write(writing, b"built")
                os.close(writing)
                command._status = 0
                return []
            return self._poll.poll(timeout)

    monkeypatch.setattr(child.select, "poll", Ended)
    with open(reading, "rb", buffering=0) as source:
        assert command._read(source) == b"built"
