"""What a role that was granted the use of boards can do by SQL of its own, and what finds it out."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from dibs.board import queries
from dibs.board.execute import Board
from dibs.board.facts.task import fresh_uid
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.storage.address import Address
from dibs.storage.postgres import copy
from dibs.storage.postgres.store import PostgresStore
from dibs.storage.queries import move_token_hash
from kit.boards import Bench
from kit.postgres import server

NO_LEASE = """state = 'open', holder = NULL, session = NULL, acquired = NULL, renewed = NULL, ttl = NULL,
    expires = NULL, renewals = NULL, reason = NULL, stint = NULL, suspect = NULL, host = NULL, worktree = NULL,
    branch = NULL"""
ANOTHER_LEASE = """holder = 2, session = 's2', acquired = 1, renewed = 1, ttl = 1000000, expires = 1000001,
    renewals = 0, reason = '', host = '', worktree = '', branch = ''"""


FORGED = """INSERT INTO dibs.event SELECT event.board, board.seq + 1, task, position + 100, at, actor, session,
    token_epoch, token_number, verb, cause, facts, digest, request
    FROM dibs.event JOIN dibs.board USING (board) ORDER BY event.seq DESC LIMIT 1"""
"""An event with the number of the next one: nobody can write that any more."""


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path, kind="postgres", apart=True)
    bench.add()
    bench.agent().claim()
    bench.agent().do(c.Release(TaskKey("T-1")))
    bench.agent().claim()
    yield bench
    bench.close()


@pytest.fixture
def granted(bench):
    """The board, as a role sees it that may use it."""
    name = server().new_role(f"r{fresh_uid()[:13]}")
    bench.store.grant(name)
    url = bench.store.address.url.replace("postgres@", f"{name}@")
    store = PostgresStore(Address(url, bench.store.address.board))
    yield store
    store.close()


@pytest.fixture
def role(granted):
    with granted.connect() as connection:
        yield connection


def test_who_may_use_a_board_and_not_make_one_learns_that_it_is_there(granted):
    assert granted.create(fresh_uid()) is False


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dibs.board SET epoch = 5; UPDATE dibs.board SET epoch = 4",
        "UPDATE dibs.task SET token_number = token_number - 1",
        "UPDATE dibs.task SET session = 's2'",
        f"UPDATE dibs.task SET {NO_LEASE}; UPDATE dibs.task SET {ANOTHER_LEASE}",
    ],
)
def test_a_role_cannot_let_a_token_fall_or_give_one_twice(role, statement):
    with pytest.raises(psycopg.errors.CheckViolation, match=r"never|a new holder has a new token"):
        role.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dibs.task SET title = 'x'",
        "UPDATE dibs.task SET expires = expires + 1, ttl = ttl + 1",
        "UPDATE dibs.task SET author = 1",
        "UPDATE dibs.board SET seq = seq + 1",
        "DELETE FROM dibs.actor_name",
        "UPDATE dibs.actor SET kind = 'human' WHERE id = 2",
        "UPDATE dibs.ended_lease SET tokens = 5, spending = 'actual'",
        "INSERT INTO dibs.note SELECT board, seq, task, 'noted', 'x' FROM dibs.event WHERE verb = 'claimed'",
        (
            "INSERT INTO dibs.allowance SELECT board, seq, task, '[\"src\"]', 1, 9 FROM dibs.event"
            " WHERE verb = 'claimed'"
        ),
        FORGED,
    ],
)
def test_what_a_role_changes_behind_the_back_of_the_ledger_is_found(bench, role, statement):
    assert bench.faults() == ()
    role.execute(statement)
    assert bench.faults() != ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dibs.task SET board = 2",
        "UPDATE dibs.task SET key = 'X-1', uid = 'u'",
        "UPDATE dibs.task SET channel = 'mail', origin_ask_ref = '1'",
        "UPDATE dibs.task SET created = 0",
        "UPDATE dibs.actor SET id = 99",
        "UPDATE dibs.session SET actor = 1",
        "UPDATE dibs.board SET uid = 'u'",
        "UPDATE dibs.board SET moved_to = 'postgresql://elsewhere/x'",
        "UPDATE dibs.home SET name = 'other'",
        "UPDATE dibs.home SET settings = ''",
        "UPDATE dibs.note SET kind = 'late'",
        "UPDATE dibs.event SET at = 0",
        "DELETE FROM dibs.event",
        "DELETE FROM dibs.task",
        "DELETE FROM dibs.note",
        "DELETE FROM dibs.ended_lease",
        "DELETE FROM dibs.session",
        "TRUNCATE dibs.refusal",
        "INSERT INTO dibs.board SELECT * FROM dibs.board",
        "INSERT INTO dibs.home SELECT * FROM dibs.home",
        "INSERT INTO dibs.migration VALUES (99)",
        "BEGIN; LOCK TABLE dibs.task IN ACCESS EXCLUSIVE MODE",
        "BEGIN; LOCK TABLE dibs.event IN ACCESS EXCLUSIVE MODE",
        "BEGIN; LOCK TABLE dibs.board IN ACCESS EXCLUSIVE MODE",
        "CREATE TABLE dibs.mine (x int)",
        "CREATE TRIGGER mine AFTER INSERT ON dibs.task EXECUTE FUNCTION dibs.refuse('no')",
        "ALTER TABLE dibs.event DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
    ],
)
def test_a_role_has_no_right_to(role, statement):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        role.execute(statement)


def test_a_role_cannot_empty_a_note_without_an_event_that_says_so(bench, granted, role):
    bench.agent().do(c.Note(TaskKey("T-1"), note="half way"))
    empty = "UPDATE dibs.note SET text = ''"
    with pytest.raises(psycopg.errors.CheckViolation, match="the ledger says who redacted a note"):
        role.execute(empty)
    of = next(event.seq for event in bench.events() if event.verb == "noted")
    board = Board(granted, Settings())
    board.execute(bench.person().identity, c.Redact(TaskKey("T-1"), of, "a secret"))
    assert [row[-1] for row in bench.rows("note")] == [""]
    assert bench.faults() == ()


def test_the_owner_cannot_move_a_task_to_another_board_either(bench):
    """Its events, notes and leases refer to it where it is."""
    with bench.store.connect() as owner, pytest.raises(psycopg.errors.ForeignKeyViolation):
        owner.execute("UPDATE dibs.task SET board = board + 1")


REPAIR = Path(__file__).parents[2] / "docs" / "how-to" / "use-postgresql.md"


@pytest.mark.parametrize(
    "statement",
    [
        FORGED,
        FORGED.replace("board.seq + 1", "board.seq + 2"),
        (
            "INSERT INTO dibs.ended_lease (board, task, token_epoch, token_number, actor, acquired, renewed, expires,"
            " renewals, ended, cause, lost, acknowledged, seq, spending, host, worktree, branch) SELECT board, id,"
            " token_epoch, token_number, holder, acquired, renewed, expires, 0, renewed, 'x', 0, 0, 1, '', '', '', ''"
            " FROM dibs.task"
        ),
        "INSERT INTO dibs.actor SELECT board, id + 2, 'x', kind, tier, capabilities, zone FROM dibs.actor",
        "INSERT INTO dibs.actor_name SELECT board, 'new', 'new', 1 FROM dibs.board",
        "INSERT INTO dibs.refusal SELECT board, 9223372036854775807, 1, '', '', '', '', '', '' FROM dibs.board",
        "UPDATE dibs.board SET seq = 9223372036854775807",
        "UPDATE dibs.board SET floor = 9223372036854775807 / 2",
        "UPDATE dibs.board SET tasks = 0, actors = 0",
    ],
)
def test_what_a_role_blocks_the_owner_of_the_tables_repairs(bench, role, statement):
    """By the statements that the page names."""
    role.execute(statement)
    [repair] = re.findall(r"```sql\n(-- Repair.*?)```", REPAIR.read_text(), re.DOTALL)
    with bench.store.connect() as owner:
        owner.execute(repair)
    bench.store.close()
    assert bench.faults() == ()
    codex = bench.agent()
    assert codex.refused(c.Claim(TaskKey("T-9"))) == "unknown_task"
    assert codex.refused(c.Accept(TaskKey("T-1"))) == "wrong_state"
    codex.do(c.Complete(TaskKey("T-1"), note="done"))
    bench.add()
    bench.agent("new", "s9").claim("T-2")
    assert bench.faults() == ()


@pytest.mark.parametrize("statement", ["SET arriving = 2", "SET arriving = 1", "SET ticket = ''"])
def test_a_role_cannot_say_where_a_board_is(role, statement):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        role.execute(f"UPDATE dibs.board {statement}")


def test_a_role_says_that_a_copy_has_arrived_only_with_the_word_of_its_move(bench, granted):
    uid = queries.uid(bench.board)
    with bench.store.connect() as owner:
        place = "SET moved_to = '/from', arriving = 1, ticket = %s"
        owner.execute(f"UPDATE dibs.board {place}", (move_token_hash("the word"),))
    for word, expected in (
        ("another", False),
        (move_token_hash("the word"), False),
        ("the word", True),
    ):
        assert copy.has_inactive_copy(granted, uid, word) is expected
        copy.activate_copy(granted, uid, word)
        with bench.store.connect() as owner:
            [(arriving,)] = owner.execute("SELECT arriving FROM dibs.board")
        assert arriving == (2 if expected else 1)


def test_everybody_is_no_role(bench):
    with pytest.raises(Refused, match="there is no role public"):
        bench.store.grant("public")
