"""`dibs dispatch` with real processes: what is ready is started once, and nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import time

import pytest

from dibs.board.verify import verify
from kit.dispatching import BEGIN, HOLD, Ground, carrying
from kit.running import DEADLINE, Running, here, until

WORK = f"{BEGIN}; {HOLD}"


@pytest.fixture
def ground(repo):
    with Ground(repo) as ground:
        yield ground


# What is started.


def test_ready_work_is_started_within_the_agents_limit_and_carried_on(ground):
    ground.agents(codex=WORK)
    keys = [ground.add() for _ in range(3)]
    dispatch = ground.start()
    until(lambda: len(ground.begun()) == 2)
    dispatch.prints(f"started {keys[0]} with codex", f"started {keys[1]} with codex")
    sentinel = ground.add("later", audience="human")  # a change, and so a tick
    assert ground.state_of(sentinel) == "open"
    assert ground.counts() == {"in_progress": 2, "open": 2}
    ground.go(keys[0])
    until(lambda: sorted(ground.begun()) == keys)
    ground.go()
    until(lambda: ground.counts() == {"complete": 3, "open": 1})
    dispatch.prints(f"codex on {keys[2]} ended with 0: {keys[2]} is complete")
    kept = [f"{key}-1.1.log" for key in keys]
    until(lambda: sorted(path.name for path in ground.logs.glob("*.log")) == kept)


def test_all_agents_together_hold_no_more_than_the_board_allows(ground):
    ground.agents("[dispatch]\nmax = 3", codex=WORK, claude=WORK)
    keys = [ground.add() for _ in range(5)]
    dispatch = ground.start()
    until(lambda: len(ground.begun()) == 3)
    ground.go(ground.begun()[0])
    until(lambda: len(ground.begun()) == 4)
    assert ground.counts() == {"complete": 1, "in_progress": 3, "open": 1}
    assert sorted(ground.begun()) == keys[:4]
    dispatch.prints(*(f"started {key}" for key in keys[:4]))


def test_a_limit_on_the_command_line_goes_before_the_settings(ground):
    ground.agents(codex=WORK, claude=WORK)
    for _ in range(3):
        ground.add()
    assert ground.once("--max", "1").count("started") == 1
    assert ground.once("--max", "1") == ""
    assert ground.once().count("started") == 2


def test_a_task_goes_to_an_agent_that_fits_it_and_overlapping_scopes_wait(ground):
    ground.settings(
        f"[agents.small]\ncommand = ['sh', '-c', '{WORK}']\nmax = 5\n"
        f"[agents.big]\ncommand = ['sh', '-c', '{WORK}']\ntier = 3\ncapabilities = ['rust']\n"
    )
    hard = ground.add("hard", tier=3, priority=0)
    rust = ground.add("rust", capabilities=("rust",), priority=1)
    one = ground.add("one", ("src/**",))
    two = ground.add("two", ("src/a.py",))
    output = ground.once()
    assert (f"started {hard} with big" in output, f"started {one} with small" in output) == (
        True,
        True,
    )
    assert output.count("started") == 2
    actors = {a["name"]: a for a in ground.repo.json("actor", "list")["actors"]}
    assert (actors["big"]["tier"], actors["big"]["capabilities"]) == (3, ["rust"])
    assert actors["small"]["tier"] == 1
    ground.go()
    until(lambda: ground.counts().get("complete") == 2)
    output = ground.once()
    assert all(
        f"started {key} with {name}" in output for key, name in ((rust, "big"), (two, "small"))
    ), output
    until(lambda: ground.counts() == {"complete": 4})
    assert verify(ground.board).faults == ()


def test_an_agent_gets_what_is_assigned_to_it_though_its_limit_is_one(ground):
    """What is assigned and not taken up is no work that it has at hand."""
    ground.settings(f"[agents.codex]\ncommand = ['sh', '-c', '{WORK}']\n")
    first, second = ground.add("first", priority=4), ground.add("second")
    ground.repo.ok("note", second, "hello", "--agent", "codex", "--session", "s1")
    ground.repo.ok("assign", first, "--to", "codex", "--as", "ana")
    assert f"started {first} with codex" in ground.once()


def test_any_number_of_dispatchers_start_each_task_once(ground):
    ground.agents(codex=BEGIN, claude=BEGIN)
    keys = [ground.add() for _ in range(8)]
    dispatchers = [ground.start() for _ in range(3)]
    until(lambda: ground.counts() == {"complete": len(keys)})
    assert sorted(ground.begun()) == sorted(keys)
    assert {str(e.token) for e in ground.events("claimed")} == {"1.1"}
    for dispatch in dispatchers:
        dispatch.send(signal.SIGTERM)
    assert [dispatch.ends() for dispatch in dispatchers] == [0, 0, 0]


def test_what_is_in_the_repository_is_neither_imported_nor_taken_for_settings(ground):
    """Any agent can edit it."""
    ground.agents(codex=BEGIN)
    for name in ("json.py", "dibs.py", "signal.py"):
        (ground.repo.folder / name).write_text("raise SystemExit('imported')")
    for name in ("settings.toml", "dibs.toml"):
        (ground.repo.folder / name).write_text("[agents.evil]\ncommand = 'true'\n")
    keys = [ground.add() for _ in range(3)]
    output = ground.once()
    assert [key for key in keys if f"started {key} with codex" in output] == keys[:2], output
    ran = ground.repo.ok("config")
    assert "evil" not in output + ran.out
    assert "dibs.toml: agents: programs and servers" in ran.err
    assert "dibs config --adopt" in ran.err


# What goes wrong.


def test_a_command_that_is_not_there_costs_no_attempt_and_its_agent_backs_off(ground):
    """It is not the tasks' fault."""
    ground.settings("[agents.codex]\ncommand = ['/nowhere/to/be/found']\n")
    key = ground.add()
    dispatch = ground.start()
    dispatch.prints("codex ended with 2", "cannot be started", "next attempt of codex in 2 s")
    assert (ground.task(key).attempts, ground.events("claimed")) == (0, [])


def test_a_command_that_turns_out_to_be_none_gives_the_claim_back_and_the_task_backs_off(ground):
    broken = ground.repo.folder / "broken"
    broken.write_text("#!/nowhere/to/be/found\n")
    broken.chmod(0o755)
    ground.settings(f"[agents.codex]\ncommand = ['{broken}']\n")
    key = ground.add()
    dispatch = ground.start()
    dispatch.prints(f"codex on {key} ended with 2", "cannot be started", f"{key} is open")
    task = ground.task(key)
    assert (task.lease, task.attempts, task.rests_until is not None) == (None, 1, True)


def test_a_task_that_fails_every_time_is_failed_in_the_end_and_no_loop(ground):
    ground.agents(codex=f"{BEGIN}; echo no luck; exit 3")
    key = ground.add(max_attempts=1)
    dispatch = ground.start()
    dispatch.prints(f"codex on {key} ended with 1: {key} is failed")
    assert (ground.begun(), ground.state_of(key)) == ([key], "failed")


def test_old_claims_of_the_dead_are_healed_on_the_first_tick_with_one_line(ground):
    repo, keys = ground.repo, [ground.add() for _ in range(3)]
    for key in keys:
        with Running(
            repo, key, f"{here('it')}; sleep 600", "--agent", "old", "--session", key
        ) as run:
            run.pid_of("it")
            run.send(signal.SIGKILL)
    assert ground.counts() == {"in_progress": 3}
    ground.agents(codex=BEGIN)
    dispatch = ground.start()
    swept = ", ".join(f"{key} (process gone)" for key in keys)
    dispatch.prints(f"3 leases ended: {swept}")
    until(lambda: ground.counts() == {"complete": 3})
    assert dispatch.output.count("ended:") == 1


def test_a_killed_worker_leaves_its_task_to_the_next_one(ground):
    ground.agents(codex=WORK)
    key = ground.add()
    dispatch = ground.start()
    until(lambda: ground.begun() == [key])
    session = ground.task(key).lease.session
    [run] = [pid for pid in carrying(f"SEEN={ground.seen}") if session in command_line(pid)]
    os.kill(run, signal.SIGKILL)
    dispatch.prints(f"1 lease ended: {key} (process gone)", "was ended by signal 9")
    until(lambda: ground.begun() == [key, key])
    assert str(ground.task(key).token) == "1.2"


def command_line(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().decode().replace("\0", " ")


# People.


def test_a_paused_board_is_swept_and_nothing_is_started_until_it_is_resumed(ground):
    ground.agents(codex=BEGIN)
    repo, key = ground.repo, ground.add()
    reply = repo.json("dispatch", "--pause", "--reason", "release", "--as", "ana")
    assert (reply["paused"], reply["by"], reply["reason"]) == (True, "ana", "release")
    assert 'it was paused by ana: "release"' in repo.ok("dispatch", "--pause", "--as", "bo").out
    dispatch = ground.start()
    dispatch.prints('paused by ana: "release"')
    assert repo.run("next", "--agent", "a1", "--session", "s1").code == 75
    repo.ok("note", key, "a change", "--as", "ana")
    assert (ground.begun(), dispatch.output.count("paused")) == ([], 1)
    repo.ok("dispatch", "--resume", "--as", "bo")
    dispatch.prints("resumed", f"started {key}")
    assert not repo.json("dispatch", "--resume", "--as", "bo")["changed"]


@pytest.mark.parametrize("way", ["--mine", "--park", "--assign"])
def test_what_a_person_reset_for_herself_is_left_alone(ground, way):
    """The second task comes last by priority: once it has begun, the first was passed over."""
    ground.agents('ttl_keeper = "2s"', codex=WORK)
    key = ground.add("first", priority=0)
    dispatch = ground.start()
    until(lambda: ground.begun() == [key])
    words = (way, "founder") if way == "--assign" else (way,)
    ground.repo.ok("reset", key, *words, "--reason", "I do it", "--as", "ana")
    dispatch.prints(f"codex on {key} ended with 5")
    last = ground.add("last", priority=4)
    until(lambda: last in ground.begun())
    assert ground.begun() == [key, last]
    assert ground.state_of(key) == "open"


def test_final_tasks_stay(ground):
    ground.agents(codex=BEGIN)
    done, dropped = ground.add(), ground.add()
    ground.repo.ok("claim", done, "--as", "ana")
    ground.repo.ok("complete", done, "--as", "ana")
    ground.repo.ok("drop", dropped, "--reason", "no", "--as", "ana")
    last = ground.add("last", priority=4)
    assert ground.once().split()[:2] == ["started", last]
    until(lambda: ground.counts() == {"complete": 2, "dropped": 1})


# Signals.


def test_who_gets_sigterm_starts_nothing_more_and_waits_for_its_workers(ground):
    ground.agents(codex=WORK)
    first = ground.add()
    dispatch = ground.start()
    until(lambda: ground.begun() == [first])
    dispatch.prints(f"started {first}")
    dispatch.send(signal.SIGTERM)
    dispatch.prints(f"draining: no new workers are started; waits for {first}")
    second = ground.add()
    ground.go()
    assert dispatch.ends() == 0
    assert (ground.state_of(first), ground.state_of(second)) == ("complete", "open")
    assert f"codex on {first} ended with 0" in dispatch.output


def test_who_gets_sigterm_twice_leaves_the_workers_who_carry_on_by_themselves(ground):
    ground.agents(codex=WORK)
    key = ground.add()
    dispatch = ground.start()
    until(lambda: ground.begun() == [key])
    dispatch.prints(f"started {key}")
    dispatch.send(signal.SIGINT)
    dispatch.prints("draining")
    dispatch.send(signal.SIGINT)
    assert dispatch.ends() == 0
    assert f"left {key} running" in dispatch.output
    ground.go()
    until(lambda: ground.state_of(key) == "complete")


def test_settings_are_read_anew_on_a_signal_and_wrong_ones_change_nothing(ground):
    ground.agents(codex="exit 0")
    dispatch = ground.start()
    dispatch.prints("dispatches codex (at most 2); 10 together at most")
    if not ground.repo.around:  # a server takes no wrong settings in the first place
        (ground.repo.database.parent / "settings.toml").write_text("colour = 1")
        dispatch.send(signal.SIGHUP)
        dispatch.prints("settings not reloaded", "there is no setting 'colour'")
    ground.agents(claude=BEGIN)
    dispatch.send(signal.SIGHUP)
    dispatch.prints("settings reloaded", "dispatches claude")
    key = ground.add()
    dispatch.prints(f"started {key} with claude")


# Death.


def test_a_dispatcher_may_die_at_any_instant_and_the_next_one_carries_on(ground):
    """No task is lost, none begins twice: the work is in nobody's hands but the workers'."""
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    ground.agents(codex=f"{BEGIN}; sleep 0.1", claude=BEGIN)
    keys = [ground.add() for _ in range(10)]
    deadline = time.monotonic() + DEADLINE
    rounds = 0
    while ground.counts() != {"complete": len(keys)}:
        assert time.monotonic() < deadline, f"seed {seed}: {ground.counts()}"
        dispatch = ground.start()
        if chance.random() < 0.5:  # between two steps that it prints
            until(lambda d=dispatch: "started" in d.output or d.process.poll() is not None
                  or ground.counts() == {"complete": len(keys)})  # fmt: skip
        time.sleep(chance.uniform(0, 0.5))
        dispatch.kill()
        rounds += 1
    assert sorted(ground.begun()) == sorted(keys), f"seed {seed}, {rounds} rounds"
    assert {str(e.token) for e in ground.events("claimed")} == {"1.1"}
    assert verify(ground.board).faults == ()


# Notifications.


def test_a_command_gets_what_needs_a_person_once_also_after_a_death(ground):
    received = ground.seen / "told"
    tell = ["sh", "-c", f"echo $DIBS_EVENT $DIBS_TASK $(cat) >> {received}"]
    more = f"[notify]\ncommand = {json.dumps(tell)}"
    ground.agents(more, codex="exit 1")
    before = ground.add("before")
    ground.repo.ok("block", before, "--reason", "no key", "--as", "ana")
    dispatchers = [ground.start(), ground.start()]
    for dispatch in dispatchers:
        dispatch.prints("dispatches codex")
    failed = ground.add("failing", max_attempts=1)
    until(lambda: ground.state_of(failed) == "failed")
    until(lambda: received.exists() and received.read_text().count("\n") == 1)
    [cursor], last = ground.logs.glob("notified-*"), ground.events("released")[-1].seq
    until(lambda: int(cursor.read_text()) >= last)
    for dispatch in dispatchers:
        dispatch.kill()
    until(
        lambda: not carrying(f"SEEN={ground.seen}"),
        "who was started, and found nothing to do, has ended",
    )
    blocked = ground.add("blocked")
    ground.repo.ok("block", blocked, "--reason", "no key", "--as", "ana")
    ground.start()
    until(lambda: received.read_text().count("\n") == 2)
    lines = [line.split(" ", 2) for line in received.read_text().splitlines()]
    assert [line[:2] for line in lines] == [["failed", failed], ["blocked", blocked]]
    notice = json.loads(lines[1][2])
    assert (notice["task"], notice["verb"], notice["schema"]) == (blocked, "blocked", 1)


# The command line.


def test_without_agents_there_is_nobody_to_start(repo):
    ran = repo.run("dispatch", "--once", "--as", "ana", "--json")
    assert (ran.code, ran.error["code"]) == (2, "no_agents")
    assert "dibs config agents.codex.command 'codex exec ...'" in ran.error["advice"]


def test_a_dry_run_shows_what_a_tick_would_do_and_does_nothing(ground):
    ground.agents(codex=BEGIN)
    key = ground.add()
    before = ground.events()
    reply = ground.repo.json("dispatch", "--dry-run", "--as", "ana")
    assert reply["starts"] == [{"task": key, "agent": "codex"}]
    assert (
        f"would start {key} with codex" in ground.repo.ok("dispatch", "--dry-run", "--as", "x1").out
    )
    assert ground.events() == before
    assert not (ground.repo.database.parent / "dispatch").exists()
    assert not ground.state.exists()


def test_in_json_each_thing_that_happens_is_one_object(ground):
    ground.agents(codex=BEGIN)
    key = ground.add()
    events, *_ = map(json.loads, ground.once("--json").splitlines())
    assert (events["schema"], events["event"], events["task"], events["agent"]) == (
        1,
        "started",
        key,
        "codex",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tick", "0s"), "--tick '0s': it must be between 1s and 1h"),
        (("--max", "0"), "--max '0': it is 0; it must be between 1 and 1000"),
        (("--once", "--pause"), "--once and --pause do not combine"),
        (("--reason", "x"), "--reason requires --pause"),
        (("--request-id", "r1"), "--request-id requires --pause or --resume"),
    ],
)
def test_what_makes_no_sense_is_refused(ground, words, message):
    ground.agents(codex=BEGIN)
    ran = ground.repo.run("dispatch", "--as", "ana", "--json", *words)
    assert (ran.code, ran.error["code"]) == (2, "bad_argument")
    assert message in ran.error["message"]


def test_an_actor_that_is_registered_otherwise_is_named_with_the_command_that_helps(ground):
    ground.add()
    ground.repo.ok("claim", "T-1", "--agent", "codex", "--session", "s1")
    ground.settings("[agents.codex]\ncommand = 'true'\ntier = 4\ncapabilities = ['rust']\n")
    helps = "dibs actor set codex --tier 4 --capability rust"
    assert helps in ground.once()
    ground.repo.ok(*helps.split()[1:], "--as", "ana")
    assert helps not in ground.once()


def test_a_persons_name_is_no_agent(ground):
    ground.settings("[agents.founder]\ncommand = 'true'\n")
    ground.add()
    ran = ground.repo.run("dispatch", "--once", "--as", "ana", "--json", **ground.environment)
    assert (ran.code, ran.error["code"]) == (2, "bad_setting")
