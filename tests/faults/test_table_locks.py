"""Somebody else has locked the tables, or put others in their place: dibs waits so long, and says for whom."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import contextmanager

import pytest

from dibs import Refused
from dibs.domain.scopes.policy import hook_timeout
from kit.guarded import ONE, Tree
from kit.harnesses import context, denial, edit, hook
from kit.postgres import Server, pooler
from kit.postgres_ground import programs
from kit.repositories import Repo
from kit.writers import board_with, name_of, opened_by

SOON = 'write_wait = "1s"'
LONGEST = 30.0
"""Seconds that anything here may take on a busy machine: far less than the half minute of a silent server."""


@pytest.fixture
def url(node):
    url = Server(node.url(), node).new_database()
    board_with(url, tasks=2)
    with node.connect(name_of(url)) as connection:
        connection.execute(f"UPDATE dibs.home SET settings = '{SOON}'")
    return url


@contextmanager
def locked(node, url, table: str = "task"):
    """Somebody who maintains the tables has one for itself; gives the process of its session."""
    named = node.connect(name_of(url), application_name="nightly vacuum")
    with named as other, other.transaction():
        other.execute(f"LOCK TABLE dibs.{table} IN ACCESS EXCLUSIVE MODE")
        yield other.info.backend_pid


# What waits for a lock.


@pytest.mark.parametrize("table", ["task", "home", "board"])
@pytest.mark.parametrize(
    "verb", [("list",), ("show", "T-1"), ("claim", "T-1", "--agent", "a", "--session", "s"), ("status",)]
)  # fmt: skip
def test_a_locked_table_is_busy_and_names_who_has_it(node, url, tmp_path, verb, table):
    repo = Repo.create(tmp_path / "repo", url)
    since = time.monotonic()
    with locked(node, url, table) as pid:
        ran = repo.fails(75, *verb, "--json")
    assert time.monotonic() - since < LONGEST
    assert ran.error["code"] == "busy"
    assert (
        f'process {pid} of the server ("nightly vacuum" of the role postgres, since '
        in ran.error["message"]
    )
    assert f"has held a lock on dibs.{table}" in ran.error["message"]
    repo.ok(*verb)


def test_behind_a_pooler_it_is_the_same(node, url, tmp_path):
    with pooler(node, size=2) as address:
        repo = Repo.create(tmp_path / "repo", f"{address}/{name_of(url)}")
        repo.ok("list")
        with locked(node, url) as pid:
            ran = repo.fails(75, "list")
        assert f'process {pid} of the server ("nightly vacuum"' in ran.err
        repo.ok("list")
    with node.connect(name_of(url)) as connection:
        [(left,)] = connection.execute("SHOW lock_timeout")
    assert left == "0"


def test_who_keeps_the_boards_lock_is_named(node, url):
    with opened_by(url, "a1") as one, opened_by(url, "a2") as two:
        one.claim("T-1")
        with node.connect(name_of(url), application_name="stopped") as other, other.transaction():
            other.execute("SELECT pg_advisory_xact_lock(1684628083, 1)")
            with pytest.raises(
                Refused, match=r'\("stopped" of the role postgres, .*\) has held its lock'
            ):
                two.claim("T-2")
        two.claim("T-2")


def test_another_client_of_dibs_is_named_by_its_process(node, url):
    import os

    with opened_by(url, "a1") as board:
        board.show("T-1")
        query = "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'dibs %'"
        assert node.query(query, name_of(url)).startswith(f"dibs {os.getpid()}@")


# Hooks.


def waited(message: str) -> float:
    """Seconds that a lock was waited for; whoever is no hook waits for five."""
    return float(re.search(r"for more than ([\d.]+) s", message)[1])


HASTY = {"DIBS_HOOK_SECONDS": "4"}
"""Less than the five seconds of whoever is no hook, and enough to start on a busy machine."""


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [("", 2), ("1", 1), ("60", 60), ("0", 2), ("61", 2), ("9999", 2), ("1.5", 2), ("-3", 2), ("²", 2), ("inf", 2)],
)  # fmt: skip
def test_the_timeout_of_a_hook_can_be_stated_within_limits(stated, seconds):
    assert hook_timeout({"DIBS_HOOK_SECONDS": stated}) == seconds
    assert hook_timeout({}) == 2


def test_a_hook_of_a_harness_waits_less_than_others_and_lets_through_with_a_warning(
    node, url, tmp_path
):
    with node.connect(name_of(url)) as connection:
        connection.execute(
            "UPDATE dibs.home SET settings = ''"
        )  # five seconds, for whoever is no hook
    repo = Repo.create(tmp_path / "repo", url)
    with locked(node, url) as pid:
        message = context(hook(repo, edit(repo, "x.py"), **HASTY))
    assert f"process {pid} of the server" in message
    assert "This edit is not guarded." in message
    assert waited(message) < 5
    closed = repo.folder / ".git" / "dibs"
    closed.mkdir(mode=0o700)
    (closed / "settings.toml").write_text('guard_failure = "refuse"\n')
    with locked(node, url) as pid:
        assert f"process {pid} of the server" in denial(hook(repo, edit(repo, "x.py"), **HASTY))


def test_a_commit_waits_less_than_others_and_obeys_guard_failure(node, url, tmp_path):
    tree = Tree(Tree.at(tmp_path / "repo").folder, ONE, url)
    tree.git("commit", "-q", "--allow-empty", "-m", "first")
    tree.ok("setup", "git")
    (tree.folder / "x").write_text("x\n")
    tree.git("add", "x")
    with locked(node, url) as pid:
        ran = tree.try_git("commit", "-m", "second", **HASTY)
    assert ran.code == 0, ran.err
    assert f"not guarded by the board: the board is busy: process {pid} of the server" in ran.err
    assert waited(ran.err) < 5
    (tree.folder / ".git" / "dibs").mkdir(mode=0o700, exist_ok=True)
    (tree.folder / ".git" / "dibs" / "settings.toml").write_text('guard_failure = "refuse"\n')
    (tree.folder / "x").write_text("y\n")
    tree.git("add", "x")
    with locked(node, url):
        assert tree.try_git("commit", "-m", "third", **HASTY).code != 0


# Other tables in the place of those that a client knows.


def test_a_client_goes_on_after_a_dump_was_loaded(node, url):
    """The same server, the same tables, made anew: what the client has prepared does not fit them."""
    with opened_by(url, "a1") as board:
        token = board.claim("T-1").token
        board.renew("T-1")
        reload(url)
        assert board.show("T-1").lease.token == token
        reload(url)
        board.renew("T-1")
        reload(url)
        board.complete("T-1", note="done")
        reload(url)
        board.claim("T-2")
        assert [event.verb for event in board.log()][-3:] == ["completed", "claimed", "started"]
        assert board.verify() == ()


def reload(url: str) -> None:
    dump = subprocess.run(
        [programs() / "pg_dump", "--clean", "--schema=dibs", url], check=True, capture_output=True
    )
    subprocess.run(
        [programs() / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-d", url],
        input=dump.stdout, check=True, capture_output=True,
    )  # fmt: skip
