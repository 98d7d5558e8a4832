"""What went wrong in other tools, tried here with real processes."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from kit.boards import of_a_file
from kit.repositories import DIBS, Repo, git

A = ("--agent", "codex", "--session", "s1")
B = ("--agent", "claude", "--session", "s9")
ANA = ("--as", "ana")


@pytest.fixture
def key(repo):
    return repo.add("Fix login")


def test_a_lost_claim_is_never_exit_0(repo, key):
    repo.ok("claim", key, *A)
    lost = repo.run("claim", key, *B)
    assert (lost.code, lost.out) == (4, "")
    assert re.match(
        rf"dibs: {key} is held by codex \(session s1\) until [0-9: -]+Z, last renewed \d+ s ago\n  next: ",
        lost.err,
    )


def test_a_spawners_late_write_has_no_right_to_the_row(repo, key):
    """The job was finished before its spawner wrote: the spawner cannot put it back."""
    repo.ok("claim", key, *A)
    repo.ok("complete", key, *A)
    assert repo.run("start", key, "--agent", "spawner", "--session", "p").code == 1
    assert repo.run("renew", key, "--agent", "spawner", "--session", "p").code == 1
    assert repo.json("show", key)["task"]["state"] == "complete"


def test_a_key_is_never_given_out_twice(repo, key):
    repo.ok("drop", key, *ANA)
    imported = repo.json("add", "imported", "--key", "T-2", *ANA)["task"]["key"]
    assert imported == "T-2"
    assert repo.add() == "T-3"
    assert repo.run("add", "again", "--key", key, *ANA, "--json").error["code"] == "key_taken"


def test_work_that_is_claimed_is_not_offered(repo, key):
    other = repo.add("other")
    repo.ok("claim", key, *A)
    assert [task["key"] for task in repo.json("list", "--free")["tasks"]] == [other]


def test_a_compensating_release_does_not_erase_a_later_winner(repo, key):
    """A rolls its claim back late, after B won: A's release leaves B's claim alone."""
    token = repo.json("claim", key, *A, "--ttl", "1s")["lease"]["token"]
    repo.await_expiry(key)
    repo.ok("takeover", key, *B)
    assert repo.run("release", key, *A, "--token", token).code == 5
    repo.ok("release", key, *A)
    assert repo.json("show", key)["task"]["assignee_agent"] == "claude"


def test_the_state_is_checked_when_claiming_not_when_listing(repo, key):
    offered = repo.json("list", "--free")["tasks"][0]["key"]
    repo.ok("claim", key, *B)
    repo.ok("complete", key, *B)
    assert repo.run("claim", offered, *A).code == 1


@of_a_file
def test_a_setting_that_does_not_exist_is_an_error_and_one_that_does_counts(repo, key):
    settings = repo.database.parent / "settings.toml"
    settings.write_text('lease_timeout = "5m"\n')
    unknown = repo.run("claim", key, *A, "--json")
    assert (unknown.code, unknown.error["code"]) == (2, "unknown_setting")
    settings.write_text('ttl_agent = "45m"\n')
    assert repo.json("claim", key, *A)["task"]["lease_ttl"] == "45m"


def test_a_new_holder_never_has_an_old_time(repo, key):
    """A lease is written in one step: killed at any moment, it is there whole or not at all."""
    for n in range(12):
        process = repo.start("claim", key, "--agent", "codex", "--session", f"k{n}", "--ttl", "1s")
        time.sleep(0.004 * n)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        task = repo.json("show", key)["task"]
        if task["holder"]:
            assert task["lease_expires_at"] > task["assigned_at"] <= task["renewed_at"]
            repo.await_expiry(key)
    assert repo.json("log", "--verify")["ok"]


def test_a_stopped_process_that_continues_is_refused(repo, key):
    """A holder is stopped, its work is taken over, it continues: a zombie finishes nothing."""
    script = f"dibs claim {key} --ttl 1s && kill -STOP $$ && dibs complete {key} --note 'my result'"
    environment = repo.environment(DIBS_AGENT="codex", DIBS_SESSION="s1")
    environment["PATH"] = f"{os.path.dirname(DIBS)}:{environment['PATH']}"
    zombie = subprocess.Popen(
        ["sh", "-c", script],
        cwd=repo.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.waitpid(zombie.pid, os.WUNTRACED)
    repo.await_expiry(key)
    repo.ok("claim", key, *B)
    zombie.send_signal(signal.SIGCONT)
    _, err = zombie.communicate(timeout=60)
    assert zombie.returncode == 5
    assert "claude holds it now; your text was saved as a late note" in err
    shown = repo.json("show", key)
    assert shown["task"]["assignee_agent"] == "claude"
    assert [(note["kind"], note["text"], note["actor"]) for note in shown["notes"]] == [
        ("late", "my result", "codex")
    ]
    repo.ok("complete", key, *B)


def test_a_zombie_that_renews_everything_learns_of_its_loss(repo, key):
    repo.ok("claim", key, *A, "--ttl", "1s")
    repo.await_expiry(key)
    repo.ok("claim", key, *B)
    assert repo.run("renew", *A).code == 5
    repo.ok("release", key, *A)
    assert repo.ok("renew", *A).out == "no leases held\n"


def test_a_board_that_was_killed_while_it_was_made_can_be_made_again(tmp_path):
    """Entirely or not at all. What is half there is no board, and init makes it one."""
    for n in range(10):
        place = Repo.create(tmp_path / f"r{n}")
        process = place.start("init")
        folder = place.folder / ".git" / "dibs"
        while process.poll() is None and not (folder / "board.db").exists():
            pass
        time.sleep(0.002 * n)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert place.run("list").code in (0, 2)
        place.ok("init")
        place.add()
        assert place.json("log", "--verify")["ok"]
    empty = Repo.create(tmp_path / "empty")
    (empty.folder / ".git" / "dibs").mkdir(mode=0o700)
    (empty.folder / ".git" / "dibs" / "board.db").touch(0o600)
    assert empty.run("list", "--json").error["code"] == "no_board"
    empty.ok("init")
    empty.add()


def test_a_standard_error_that_is_closed_or_full_changes_no_exit_code(repo, key):
    """An answer that is lost with the standard output is 73; a refusal keeps its own code."""
    repo.ok("claim", key, *A)
    for command, expected in (
        (f"claim {key} {' '.join(B)}", 4),
        ("show T-99", 2),
        (f"renew {key} {' '.join(A)}", 0),
    ):
        for redirect, code in (("2>&-", 0), ("2>/dev/full", 0), (">&- 2>&-", 73)):
            ran = subprocess.run(
                f"{DIBS} {command} {redirect}", shell=True, cwd=repo.folder, env=repo.environment(),
                stdout=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            assert ran.returncode == (expected or code), (command, redirect)


def test_a_takeover_names_worktree_branch_and_uncommitted_files(repo, key):
    topic = repo.worktree("topic")
    topic.ok("claim", key, *A, "--ttl", "1s")
    (topic.folder / "half-done.py").write_text("x = 1\n")
    repo.await_expiry(key)
    taken = repo.ok("claim", key, *B)
    assert "codex (session s1), last seen" in taken.err
    assert f'its work is in "{topic.folder}" on branch "topic"' in taken.err
    assert 'uncommitted there: "half-done.py"' in taken.err
    event = next(e for e in repo.json("log", key)["events"] if e["verb"] == "taken_over")
    assert event["facts"]["ending"]["uncommitted"] == ["half-done.py"]
    assert event["facts"]["reason"] == "expired"


def test_the_next_session_of_an_agent_gets_the_work_by_handoff(repo, key):
    repo.ok("claim", key, *A)
    repo.ok("handoff", key, "--to", "codex", *A, "--reason", "new session")
    taken = repo.json("claim", key, "--agent", "codex", "--session", "s2")
    assert (taken["lease"]["token"], taken["lease"]["session"]) == ("1.2", "s2")


def test_no_process_belongs_to_a_persons_claim(repo, key):
    repo.ok("claim", key, *ANA)
    task = repo.json("show", key)["task"]
    assert (task["lease_ttl"], task["holder"]) == (
        "7d",
        {"name": "ana", "kind": "human", "session": "ana"},
    )
    assert repo.run("takeover", key, *B).code == 4


def test_anonymous_claims_are_refused(repo, key):
    for who in (
        (),
        ("--agent", ""),
        ("--agent", "<AGENT_NAME>", "--session", "s1"),
        ("--as", "user"),
    ):
        assert repo.run("claim", key, *who).code == 2
    assert repo.json("show", key)["task"]["holder"] is None


def test_a_harness_marks_an_agent_and_an_agent_cannot_force(repo, key):
    repo.ok("claim", key, *B)
    refused = repo.run("takeover", key, "--force", "--reason", "r", *ANA, "--json", CLAUDECODE="1")
    assert (refused.code, refused.error["code"], refused.error["facts"]["variable"]) == (
        1,
        "in_harness",
        "CLAUDECODE",
    )
    assert repo.run("takeover", key, "--force", "--reason", "r", *A).code == 1
    repo.ok("takeover", key, "--force", "--reason", "r", *ANA)


def test_next_mornings_terminal_is_the_same_person(repo, key):
    repo.ok("claim", key, *ANA, DIBS_SESSION="monday")
    repo.ok("complete", key, *ANA, DIBS_SESSION="tuesday")


def test_advice_never_contains_a_destructive_command():
    from dibs.output.error_map import ERROR_MAP

    for code, surface in ERROR_MAP.items():
        destructive = re.search(
            r"--force|\bdrop\b|\breset\b|\brm\b|\bdelete|\bremove\b|unassign|git |--yes|restore|set-clock",
            surface.advice,
        )
        assert not destructive, code


@of_a_file
def test_a_full_disk_is_exit_74_and_nothing_is_changed(repo, key, tmp_path):
    """A real file system without room; with room again it works, and nothing needs repair."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", small], check=False
    ).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        board = {"DIBS_BOARD": str(small / "board")}
        repo.ok("init", **board)
        repo.ok("add", "work", *ANA, **board)
        full = next(
            ran
            for ran in (
                repo.run("note", "T-1", "x" * 9000, *ANA, "--json", **board) for _ in range(99)
            )
            if ran.code
        )
        assert (full.code, full.error["code"]) == (74, "disk_full")
        before = repo.ok("show", "T-1", "--json", **board).json
        assert repo.ok("log", "--verify", "--json", **board).json["ok"]
        assert repo.run("claim", "T-1", *A, **board).code == 74
        assert repo.ok("show", "T-1", "--json", **board).json == before
        subprocess.run(["mount", "-o", "remount,size=8m", small], check=True)
        repo.ok("claim", "T-1", *A, **board)
        assert repo.ok("log", "--verify", "--json", **board).json["ok"]
    finally:
        subprocess.run(["umount", small], check=True)


def test_escape_sequences_in_a_title_are_shown_not_obeyed(repo):
    title = "\x1b]0;owned\x07\x1b[2J\u202eevil\x9b31m\r\n"
    key = repo.add(title + "end")
    for command in (("list",), ("show", key), ("status",), ("log",), ("claim", key, *A)):
        shown = repo.ok(*command).out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown), (
            command
        )
    assert "\\x1b]0;owned\\x07" in repo.ok("list").out
    assert repo.json("show", key)["task"]["title"] == title + "end"


@of_a_file
def test_two_work_trees_of_a_clone_share_one_board_and_a_second_clone_has_its_own(
    repo, key, tmp_path
):
    other = repo.worktree("other")
    assert other.json("list")["tasks"][0]["key"] == key
    git(tmp_path, "clone", "-q", str(repo.folder), "second")
    second = Repo(tmp_path / "second")
    assert second.run("list", "--json").error["code"] == "no_board"
    second.ok("init")
    assert second.json("list")["tasks"] == []
    first_id, second_id = (
        next(f["found"] for f in r.json("doctor")["findings"] if f["what"] == "board").split()[0]
        for r in (repo, second)
    )
    assert first_id != second_id


def test_a_board_outside_git_is_found_from_below(tmp_path):
    place = Repo(tmp_path / "plain")
    place.folder.mkdir()
    assert place.run("list", "--json").error["code"] == "no_board"
    place.ok("init")
    below = Repo(place.folder / "a" / "b")
    below.folder.mkdir(parents=True)
    key = below.add()
    assert place.json("list")["tasks"][0]["key"] == key
    assert (place.folder / ".dibs" / "board.db").exists()


class Terminal:
    """A real terminal with an interactive shell in it."""

    def __init__(self, repo: Repo, **environment: str) -> None:
        pid, self.master = pty.fork()
        if pid == 0:
            os.chdir(repo.folder)
            path = f"{os.path.dirname(DIBS)}:{os.environ['PATH']}"
            os.execve("/bin/sh", ["sh", "-i"], repo.environment(PATH=path, PS1="", **environment))
        self.pid = pid

    def run(self, command: str) -> tuple[int, str]:
        os.write(self.master, f"{command}; echo done=$?=\n".encode())
        seen = ""
        while not (end := re.search(r"done=(\d+)=\r", seen)):
            if not select.select([self.master], [], [], 30)[0]:
                raise AssertionError(seen)
            seen += os.read(self.master, 4096).decode()
        return int(end.group(1)), seen

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)


def test_two_terminals_are_two_sessions_each_found_by_its_own_shell(repo, key):
    """A session that was named once in a terminal is found there again, and only there."""
    first, second = Terminal(repo), Terminal(repo)
    try:
        assert first.run(f"dibs claim {key} --agent codex --session one")[0] == 0
        assert first.run(f"dibs renew {key} --agent codex")[0] == 0
        assert second.run(f"dibs renew {key} --agent codex")[0] == 2
        other = repo.add("other")
        assert second.run(f"dibs claim {other} --agent codex --session two")[0] == 0
        assert second.run(f"dibs renew {key} --agent codex")[0] == 4
        assert first.run(f"dibs note {key} hello --agent codex 2>/dev/null")[0] == 0
        assert first.run(f"dibs complete {key} --agent codex")[0] == 0
    finally:
        first.close()
        second.close()


def test_on_a_terminal_errors_are_coloured_unless_no_color_is_set(repo, key):
    plain = Terminal(repo, NO_COLOR="1")
    coloured = Terminal(repo)
    try:
        assert "\x1b[31mdibs:" in coloured.run("dibs show T-99")[1]
        assert "\x1b[" not in plain.run("dibs show T-99")[1]
    finally:
        plain.close()
        coloured.close()


def test_the_address_in_git_names_the_person_on_a_terminal(repo, key):
    git(repo.folder, "config", "user.email", "ana@example.org")
    terminal = Terminal(repo)
    try:
        assert terminal.run(f"dibs claim {key}")[0] == 0
    finally:
        terminal.close()
    assert repo.json("show", key)["task"]["holder"]["name"] == "ana@example.org"
    assert repo.run("renew", key).code == 2


@of_a_file
def test_a_clock_that_cannot_be_right_is_reported_by_every_command(repo, key):
    """Done here as after a boot with an empty battery: the anchor is of another boot, the floor ahead."""
    import apsw

    board = apsw.Connection(str(repo.database))
    board.execute("UPDATE clock SET boot = 'another'; UPDATE board SET floor = floor + 86400000000")
    board.close()
    repo.ok("claim", key, *A)
    for command in (
        ("list",),
        ("show", key),
        ("status",),
        ("log",),
        ("who", key),
        ("renew", key, *A),
    ):
        assert "clock skew" in repo.ok(*command).err, command
    assert "clock skew" in repo.run("claim", key, *B).err
    assert repo.run("doctor").code == 1
    repo.ok("doctor", "--set-clock", "--reason", "battery changed", *ANA)
    assert repo.ok("doctor").err == ""
