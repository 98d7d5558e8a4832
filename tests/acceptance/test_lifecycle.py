"""The life of a claim, with real processes: reset, retry, sweep, and whom `next` serves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import pytest

from kit.racers import race
from kit.repositories import DIBS, Repo
from kit.running import Running, here, lives, until, wait_for

LIVE = ("--agent", "live", "--session", "l1")
OTHER = ("--agent", "other", "--session", "o1")
STALL = "while :; do sleep 0.05; done"


def answers_of(repo, *commands) -> list:
    """What each of these commands answers. One process carries them out: none may be refused."""
    answers = [answer for [answer] in race([repo], [list(words) for words in commands])]
    assert {code for _, code, _ in answers} <= {0}, answers
    return [text for _, _, text in answers]


def added(repo, *titles, options=()) -> list[str]:
    commands = [("add", title, "--as", "founder", *options) for title in titles]
    return [answer["task"]["key"] for answer in answers_of(repo, *commands)]


def shown(repo, *keys):
    tasks = [answer["task"] for answer in answers_of(repo, *(("show", key) for key in keys))]
    return tasks if len(keys) > 1 else tasks[0]


def states(repo, *keys) -> list[str]:
    return [task["state"] for task in shown(repo, *keys)]


def claim(repo, key, who=LIVE):
    return answers_of(repo, ("claim", key, *who))[0]["lease"]["token"]


def done(repo, *keys, who=LIVE) -> None:
    answers_of(repo, *((verb, key, *who) for key in keys for verb in ("claim", "complete")))


def verbs(repo, *keys) -> list:
    logs = answers_of(repo, *(("log", key) for key in keys))
    found = [[entry["verb"] for entry in log["events"]] for log in logs]
    return found if len(keys) > 1 else found[0]


def sound(repo) -> bool:
    return answers_of(repo, ("log", "--verify"))[0]["ok"]


def dies(repo, *held, options=()) -> None:
    """An agent works on the first task; its session claims the others; then it is killed."""
    first, *others = held
    script = "".join(f"{DIBS} claim {key} {' '.join(options)} >&2\n" for key in others)
    with Running(repo, first, f"set -e\n{script}\n{here('it')}\n{STALL}", "--agent", "dead") as run:
        run.pid_of("it")
        run.send(signal.SIGKILL)
        until(lambda: not lives(run.pid), "a killed process is gone")


# Claims that outlived their agents.


def test_what_is_reset_is_offered_and_until_then_status_names_the_stale_claim(repo):
    [key] = added(repo, "work")
    [below] = added(repo, "below", options=("--after", key))
    dies(repo, key)
    [held] = repo.json("status")["held"]
    assert (held["key"], held["wrong"], held["helps"]) == (key, "stale: process gone", "dibs sweep")
    assert "stale: process gone; dibs sweep" in repo.ok("status").out
    repo.ok("reset", key, "--as", "ana")
    task = shown(repo, key)
    assert (task["state"], task["holder"], task["attempts"]) == ("open", None, 0)
    got = repo.json("next", *OTHER)
    assert (got["task"]["key"], got["lease"]["token"]) == (key, "1.2")
    assert shown(repo, below)["state"] == "open"
    assert sound(repo)


def test_retry_frees_what_the_dead_hold_downstream_and_nothing_else(repo):
    """A live holder survives the retry of what it builds on, and final tasks stay."""
    [top] = added(repo, "top")
    names = ("worked", "reserved", "living", "final", "dropped")
    worked, reserved, living, final, dropped = added(repo, *names, options=("--after", top))
    done(repo, top, final)
    answers_of(repo, ("drop", dropped, "--reason", "not wanted", "--as", "ana"))
    token = claim(repo, living)
    dies(repo, worked, reserved, options=("--reserve",))
    repo.ok("reset", top, "--only", "--as", "ana")
    answers_of(repo, ("claim", top, *OTHER), ("fail", top, "--reason", "worse", *OTHER))
    changes = repo.json("retry", top, "--as", "ana")["changes"]
    assert {change["key"] for change in changes} == {top, worked, reserved}
    *freed, kept, one, other = shown(repo, worked, reserved, living, final, dropped)
    assert {(task["state"], task["holder"]) for task in freed} == {("open", None)}
    assert (kept["state"], kept["token"]) == ("in_progress", token)
    answers_of(repo, ("renew", living, "--token", token, *LIVE))
    assert (one["state"], other["state"]) == ("complete", "dropped")
    assert repo.json("next", *OTHER)["task"]["key"] == top
    assert repo.run("next", *OTHER).code == 75, "what depends on it waits again"
    assert sound(repo)


def test_a_task_that_a_dead_agent_had_reserved_is_offered_again(repo):
    [worked] = added(repo, "worked", options=("--priority", "4"))
    [reserved] = added(repo, "reserved")
    dies(repo, worked, reserved, options=("--reserve",))
    assert (shown(repo, reserved)["state"], shown(repo, reserved)["session"]) != ("open", None)
    assert repo.json("next", *OTHER)["task"]["key"] == reserved
    assert repo.json("next", *OTHER)["task"]["key"] == worked
    assert verbs(repo, reserved) == ["added", "claimed", "lease_ended", "claimed", "started"]


# Without a daemon.


def test_a_killed_agents_task_is_offered_by_the_next_next_which_says_whose_it_was(repo):
    [key] = added(repo, "work")
    dies(repo, key)
    assert shown(repo, key)["state"] == "in_progress"
    ran = repo.ok("next", *OTHER)
    assert f"{key} was held by dead" in ran.err
    assert f'its work is in "{repo.folder}" on branch "main"' in ran.err
    task = shown(repo, key)
    assert (task["assignee_agent"], task["token"], task["attempts"]) == ("other", "1.2", 2)
    assert task["handoff_reason"] == "process gone"
    assert sound(repo)


def test_old_claims_of_the_dead_heal_in_the_first_sweep_with_one_line(repo):
    *keys, held = added(repo, *"abcde")
    claim(repo, held)
    dies(repo, *keys)
    lines = repo.ok("sweep", *OTHER).out.splitlines()
    assert lines[0] == "4 leases ended: 4 process gone"
    assert repo.ok("sweep", *OTHER).out == "nothing to do\n"
    assert states(repo, *keys, held) == ["open"] * 4 + ["in_progress"]
    assert sound(repo)


def test_what_a_session_claims_beside_its_run_does_not_end_with_the_run(repo):
    """The session lives longer than the run: what it claimed elsewhere is not stale then."""
    ran, beside = added(repo, "ran", "beside")
    with Running(repo, ran, f"{here('it')}; {wait_for('word')}", *LIVE, "--ttl", "4s") as run:
        run.pid_of("it")
        claim(repo, beside)
        before = shown(repo, ran)["renewals"]
        until(lambda: shown(repo, ran)["renewals"] > before, "it is not renewed")
        run.signal_word("word")
        assert run.ended().code == 0
    assert repo.ok("sweep", *OTHER).out == "nothing to do\n"
    assert repo.run("next", *OTHER).code == 75
    assert repo.run("claim", beside, *OTHER).code == 4


# People.


@contextlib.contextmanager
def agents_that_poll(repo: Repo, count: int):
    """Agents that call `next` without a pause; what is said after each call is a line of a file."""
    logs = [repo.folder.parent / f"commands-{n}" for n in range(count)]
    script = f"while kill -0 $PPID; do {DIBS} next --json --agent commands-$0 --session a$0 >> $1 2>&1; done"
    loops = [
        subprocess.Popen(
            ["sh", "-c", script, str(n), str(log)], cwd=repo.folder, env=repo.environment(),
            stdin=subprocess.DEVNULL, start_new_session=True,
        )
        for n, log in enumerate(logs)
    ]  # fmt: skip
    try:
        yield lambda: [len(log.read_text().splitlines()) if log.exists() else 0 for log in logs]
    finally:
        for loop in loops:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(loop.pid, signal.SIGKILL)
            loop.wait(60)


def test_what_a_person_reset_for_herself_is_not_started_by_agents_that_keep_asking(repo):
    """The dispatcher started an agent on it three minutes later, four times."""
    ways = {"--mine": (), "--assign": ("dora",), "--park": ()}
    keys = added(repo, *"abc")
    answers_of(repo, ("note", keys[0], "here I am", "--as", "dora"))
    answers_of(repo, *(("claim", key, *LIVE) for key in keys))
    with agents_that_poll(repo, 2) as agents:
        for key, (way, whom) in zip(keys, ways.items()):
            repo.ok("reset", key, way, *whom, "--reason", "mine", "--as", "ana")
        before = agents()
        until(
            lambda: all(now >= then + 3 for now, then in zip(agents(), before)), "nobody commands"
        )
        mine, given, parked = shown(repo, *keys)
        assert (mine["assignee_agent"], mine["state"], mine["token"]) == ("ana", "open", "1.2")
        assert (given["assigned_to"], given["state"], given["token"]) == ("dora", "open", "1.2")
        assert (parked["parked_by"], parked["state"], parked["token"]) == ("ana", "open", "1.1")
        last = [each[-2:] for each in verbs(repo, *keys)]
        assert last == [["reset", kept] for kept in ("claimed", "assigned", "parked")]
        repo.ok("unpark", keys[2], "--as", "ana")
        until(lambda: shown(repo, keys[2])["state"] == "in_progress", "they would have, had they")
    assert sound(repo)


# Cycles.


def make_cycle(repo: Repo, first: str, last: str) -> None:
    """As an import could have left it: `first` waits for `last`, which waits for it."""
    link = (
        "INSERT INTO dependency (board, task, on_task) SELECT a.board, a.id, b.id"
        " FROM task AS a JOIN task AS b ON a.board = b.board"
        f" WHERE a.key = '{first}' AND b.key = '{last}'"
    )
    counted = f"UPDATE task SET waits_on = waits_on + 1 WHERE key = '{first}'"
    if not repo.around:
        import apsw

        connection = apsw.Connection(str(repo.database))
        for statement in (link, counted):
            connection.execute(statement)
        connection.close()
        return
    import psycopg

    with psycopg.connect(repo.around["DIBS_URL"].partition("#")[0], autocommit=True) as connection:
        connection.execute("SET search_path = dibs")
        for statement in (link, counted):
            connection.execute(statement)


def test_every_command_ends_where_an_imported_graph_has_a_cycle(repo):
    prefix = f"C{id(repo)}"
    keys = [f"{prefix}-{n}" for n in range(3)]
    after = [(), *(("--after", key) for key in keys)]
    answers_of(repo, *(("add", "w", "--key", k, "--as", "ana", *a) for k, a in zip(keys, after)))
    make_cycle(repo, keys[0], keys[2])
    assert repo.run("next", *OTHER).code == 75
    assert len(repo.ok("why", keys[0]).out.splitlines()) >= 3
    repo.ok("status")
    repo.ok("reset", keys[0], "--redo", "--yes", "--as", "ana")
    assert repo.run("depend", keys[0], "--on", keys[1], "--as", "ana").code == 1
    repo.ok("depend", keys[0], "--not-on", keys[2], "--as", "ana")
    steps = [step for key in keys for step in (("next", *OTHER), ("complete", key, *OTHER))]
    steps = [(*step, "--request-id", f"r{n}") for n, step in enumerate(steps)]
    assert [answer["task"]["key"] for answer in answers_of(repo, *steps)[::2]] == keys


@pytest.mark.parametrize("racers", [2, 4])
def test_dependencies_that_are_made_at_once_make_no_cycle(repo, racers):
    """Each racer makes its task wait for the next one's: the last of them closes the ring."""
    rounds = 5
    add = [
        ["add", "work", "--key", f"R{r}-{n}", "--as", "ana"]
        for r in range(rounds)
        for n in range(racers)
    ]
    race([repo], add)
    ring = [
        ["depend", f"R{r}-{{n}}", "--on", f"R{r}-{{next}}", "--as", "ana"] for r in range(rounds)
    ]
    for r, answers in enumerate(race([repo] * racers, ring)):
        refused = [answer["error"] for _, code, answer in answers if code]
        assert [error["code"] for error in refused] == ["cycle"], answers
        assert len(refused[0]["facts"]["cycle"]) == racers + 1
        tasks = shown(repo, *(f"R{r}-{n}" for n in range(racers)))
        assert sorted(task["waits_on"] for task in tasks) == [0] + [1] * (racers - 1)
    assert sound(repo)


# At the same moment.


def test_two_blockers_that_are_completed_at_once_release_what_waits_for_both(repo, kind):
    rounds = 16 if kind == "sqlite" else 8
    made, claims = [], []
    for r in range(rounds):
        blockers = [f"B{r}-0", f"B{r}-1"]
        made += [["add", "work", "--key", key, "--as", "ana"] for key in blockers]
        after = [part for key in blockers for part in ("--after", key)]
        made.append(["add", "work", "--key", f"W{r}", "--priority", "0", *after, "--as", "ana"])
        claims += [["claim", key, "--agent", f"a{key[-1]}", "--session", key] for key in blockers]
    assert {code for answers in race([repo], made + claims) for _, code, _ in answers} == {0}
    complete = [
        ["complete", f"B{r}-{{n}}", "--agent", "a{n}", "--session", f"B{r}-{{n}}"]
        for r in range(rounds)
    ]
    for answers in race([repo, repo.worktree("other")], complete):
        assert [code for _, code, _ in answers] == [0, 0], answers
    ready = {task["key"] for task in repo.json("list", "--ready", "--limit", "100")["tasks"]}
    assert ready == {f"W{r}" for r in range(rounds)}
    assert sound(repo)


@pytest.mark.parametrize("racers", [2, 12])
def test_so_many_ask_for_the_next_task_at_once_so_many_different_ones_are_given(repo, racers):
    rounds = 3
    race([repo], [["add", f"task {n}", "--as", "ana"] for n in range(rounds * racers)])
    commands = [["next", "--agent", "r{n}", "--session", f"s{r}-{{n}}"] for r in range(rounds)]
    got = [answer for answers in race([repo] * racers, commands) for answer in answers]
    assert {code for _, code, _ in got} == {0}
    keys = [reply["task"]["key"] for _, _, reply in got]
    assert len(set(keys)) == rounds * racers
    assert {reply["lease"]["token"] for _, _, reply in got} == {"1.1"}
    assert repo.run("next", *OTHER).code == 75
    assert sound(repo)


def test_any_number_of_sweeps_at_once_end_each_dead_lease_once(repo):
    keys = added(repo, *"abcd")
    dies(repo, *keys)
    [answers] = race([repo] * 8, [["sweep", "--agent", "r{n}", "--session", "s{n}"]])
    assert {code for _, code, _ in answers} == {0}
    ended = [change["key"] for _, _, answer in answers for change in answer["changes"]]
    assert sorted(ended) == sorted(keys)
    assert {each.count("lease_ended") for each in verbs(repo, *keys)} == {1}
    assert sound(repo)


def test_whoever_asks_while_others_sweep_gets_a_task_that_nobody_else_got(repo):
    """`next` sweeps first: all of them find the same dead, and share what they left."""
    keys = added(repo, *"abcd")
    dies(repo, *keys)
    [answers] = race([repo] * 6, [["next", "--agent", "r{n}", "--session", "s{n}"]])
    given = [answer["task"]["key"] for _, code, answer in answers if code == 0]
    assert sorted(given) == sorted(keys)
    assert [code for _, code, _ in answers if code] == [75, 75]
    assert {each.count("lease_ended") for each in verbs(repo, *keys)} == {1}
    assert sound(repo)
