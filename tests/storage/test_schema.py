"""Every invariant exists twice: the schema refuses what the code would never write."""

from __future__ import annotations

import re

import apsw
import psycopg
import pytest

from dibs.domain import commands as c
from dibs.domain.model import AUDIENCES, HOLDABLE, KINDS, STATES, TTL_MAX, TTL_MIN, TaskKey
from dibs.storage import queries
from dibs.storage.queries import migrations
from kit.boards import Bench, of_a_file

SCHEMA = "".join(migrations("sqlite")[1])


@pytest.fixture
def held(apart) -> Bench:
    """A board with one task in progress, one free, one ended lease, one stint that was stopped."""
    bench = apart
    bench.add()
    bench.add()
    codex = bench.agent()
    codex.claim()
    codex.do(c.Release(TaskKey("T-1")))
    codex.claim()
    codex.do(c.Stop(TaskKey("T-1")))
    codex.do(c.Start(TaskKey("T-1")))
    codex.do(c.Note(TaskKey("T-1"), note="half way"))
    return bench


REFUSED = {
    "holder and expiry are null together": "UPDATE task SET holder = NULL WHERE id = 1",
    "expiry is renewal and ttl": "UPDATE task SET expires = expires + 1 WHERE id = 1",
    "a ttl is not too short": "UPDATE task SET ttl = 999999, expires = renewed + 999999 WHERE id = 1",
    "a ttl is not too long": "UPDATE task SET ttl = 2592000000001, expires = renewed + ttl + 1 WHERE id = 1",
    "in progress has a holder": "UPDATE task SET state = 'in_progress' WHERE id = 2",
    "a stint is in progress": "UPDATE task SET state = 'open' WHERE id = 1",
    "a stint has a session": "UPDATE task SET session = NULL WHERE id = 1",
    "a renewal is not before its lease": "UPDATE task SET acquired = renewed + 1 WHERE id = 1",
    "there is no other state": "UPDATE task SET state = 'claimed' WHERE id = 2",
    "there is no other audience": "UPDATE task SET audience = 'robots' WHERE id = 2",
    "there is no other kind": "UPDATE actor SET kind = 'robot'",
    "a title is not empty": "UPDATE task SET title = '' WHERE id = 2",
    "a number is a number": "UPDATE task SET attempts = 'many' WHERE id = 2",
    "attempts are not negative": "UPDATE task SET attempts = -1 WHERE id = 2",
    "an assignee is an actor": "UPDATE task SET assignee = 99 WHERE id = 1",
    "a key is used once": "UPDATE task SET key = 'T-1' WHERE id = 2",
    "a token never falls": "UPDATE task SET token_number = token_number - 1 WHERE id = 1",
    "an epoch never falls": "UPDATE task SET token_epoch = 0, token_number = 99 WHERE id = 1",
    "a new holder has a new token": "UPDATE task SET holder = 1 WHERE id = 1",
    "a new session has a new token": "UPDATE task SET session = 's2' WHERE id = 1",
    "a key is never changed": "UPDATE task SET key = 'X-1' WHERE id = 2",
    "a task is never deleted": "DELETE FROM task",
    "the ledger is never updated": "UPDATE event SET at = at + 1",
    "the ledger is never deleted": "DELETE FROM event",
    "a note is only redacted": "UPDATE note SET text = 'other'",
    "a note stays with its event": "UPDATE note SET text = '', seq = seq + 1",
    "a note is redacted by an event": "UPDATE note SET text = ''",
    "a note is never deleted": "DELETE FROM note",
    "an ended lease never changes": "UPDATE ended_lease SET ended = ended + 1",
    "the place of an ended lease never changes": "UPDATE ended_lease SET worktree = '/elsewhere'",
    "an ended lease is never deleted": "DELETE FROM ended_lease",
    "a stint of an ended lease never changes": "UPDATE ended_lease SET stint_started = stint_started - 1",
    "a stint has a start and an end": (
        "INSERT INTO ended_lease (board, task, token_epoch, token_number, actor, acquired, renewed, expires,"
        " renewals, ended, cause, lost, acknowledged, seq, stint_started, spending, host, worktree,"
        " branch) SELECT board, task, 9, 9, actor, acquired, renewed, expires, renewals, ended, cause, lost,"
        " acknowledged, seq, stint_started, '', '', '', '' FROM ended_lease"
    ),
    "a stint never changes": "UPDATE stint SET started = started - 1",
    "a stint is never deleted": "DELETE FROM stint",
    "a stint does not end before it starts": (
        "INSERT INTO stint (board, seq, task, actor, started, ended, source, spending)"
        " SELECT board, 1, task, actor, ended + 1, ended, 'claim', '' FROM stint"
    ),
    "only an amendment amends": (
        "INSERT INTO stint (board, seq, task, actor, started, ended, source, amends, spending)"
        " SELECT board, 2, task, actor, started, ended, 'added', 1, '' FROM stint"
    ),
    "an amendment amends something": (
        "INSERT INTO stint (board, seq, task, actor, started, ended, source, spending)"
        " SELECT board, 2, task, actor, started, ended, 'amended', '' FROM stint"
    ),
    "a stint is amended once": (
        "INSERT INTO stint (board, seq, task, actor, started, ended, source, amends, spending)"
        " SELECT board, 3, task, actor, started, ended, 'amended', 1, '' FROM stint"
        " UNION ALL SELECT board, 4, task, actor, started, ended, 'amended', 1, '' FROM stint"
    ),
    "a stint comes from an event": (
        "INSERT INTO stint (board, seq, task, actor, started, ended, source, spending)"
        " SELECT board, 999, task, actor, started, ended, 'added', '' FROM stint"
    ),
    "what was used is not less than nothing": "UPDATE stint SET tokens = -1",
    "an origin is used once": "UPDATE task SET channel = 'mail', origin_ask_ref = '1'",
    "an origin has two parts": "UPDATE task SET channel = 'mail' WHERE id = 2",
    "a name leads to one actor": "INSERT INTO actor_name VALUES (1, 'codex', 'codex', 1)",
    "a token is ended once": "INSERT INTO ended_lease SELECT * FROM ended_lease",
    "a place in a chain is taken once": (
        "INSERT INTO event SELECT board, seq + 1000, task, position, at, actor, session, token_epoch,"
        " token_number, verb, cause, facts, digest, request FROM event WHERE task = 1 LIMIT 1"
    ),
    "a place in the board's own chain is taken once": (
        "INSERT INTO event SELECT board, seq + 1000, task, position, at, actor, session, token_epoch,"
        " token_number, verb, cause, facts, digest, request FROM event WHERE task IS NULL LIMIT 1"
    ),
    "an event is of a task that is there": (
        "INSERT INTO event SELECT board, seq + 1000, 99, position, at, actor, session, token_epoch,"
        " token_number, verb, cause, facts, digest, request FROM event WHERE task = 1 LIMIT 1"
    ),
    "a note is of a task that is there": (
        "INSERT INTO note SELECT board, seq, 99, 'noted', 'text' FROM event WHERE verb = 'claimed' LIMIT 1"
    ),
    "a stint is of a task that is there": (
        "INSERT INTO stint (board, seq, task, actor, started, ended, source, spending)"
        " SELECT board, 1, 99, actor, started, ended, 'added', '' FROM stint"
    ),
    "an ended lease is of a task that is there": (
        "INSERT INTO ended_lease (board, task, token_epoch, token_number, actor, acquired, renewed, expires,"
        " renewals, ended, cause, lost, acknowledged, seq, spending, host, worktree, branch)"
        " SELECT board, 99, 9, 9, actor, acquired, renewed, expires, renewals, ended, cause, lost,"
        " acknowledged, seq, '', host, worktree, branch FROM ended_lease"
    ),
}
REFUSED |= {
    f"without a holder there is no {field}": f"UPDATE task SET {field} = {value} WHERE id = 2"
    for field, value in {
        "acquired": "1", "renewed": "1", "ttl": "1000000", "expires": "1", "renewals": "0",
        "suspect": "1", "session": "'s1'", "reason": "''", "host": "''", "worktree": "''", "branch": "''",
    }.items()
} | {
    f"with a holder there is a {field}": f"UPDATE task SET {field} = NULL WHERE id = 1"
    for field in ("acquired", "renewed", "ttl", "expires", "renewals", "reason", "host", "worktree", "branch")
} | {
    f"nobody holds what is {state}": f"UPDATE task SET state = '{state}', stint = NULL WHERE id = 1"
    for state in STATES if state not in HOLDABLE
}  # fmt: skip


@pytest.mark.parametrize("rule", REFUSED)
def test_the_schema_refuses(held, rule):
    before = held.snapshot()
    with pytest.raises((apsw.ConstraintError, apsw.MismatchError, psycopg.Error)):
        held.change(REFUSED[rule])
    assert held.snapshot() == before


def test_the_epoch_of_a_board_never_falls(apart):
    """Else tokens would be given again."""
    apart.change("UPDATE board SET epoch = 5, seq = seq")
    for lower in (
        "UPDATE board SET epoch = 4",
        "UPDATE board SET seq = seq + 1, epoch = epoch - 1",
    ):
        before = apart.snapshot()
        with pytest.raises((apsw.ConstraintError, psycopg.errors.CheckViolation)):
            apart.change(lower)
        assert apart.snapshot() == before
    apart.change("UPDATE board SET epoch = 5")
    apart.change("UPDATE board SET epoch = 6")


def listed(column: str) -> set[str]:
    """The values that the schema's CHECK of a column allows."""
    found = re.search(rf"CHECK \({column} IN\s*\(([^)]*)\)\)", SCHEMA)
    return set(re.findall(r"'(\w+)'", found.group(1)))


def test_the_schema_has_the_states_kinds_and_limits_of_the_code():
    assert listed("state") == set(STATES)
    assert listed("audience") == set(AUDIENCES)
    assert listed("kind") == set(KINDS)
    holdable = re.search(r"branch IS NOT NULL\s+AND state IN \(([^)]*)\)", SCHEMA).group(1)
    assert set(re.findall(r"'(\w+)'", holdable)) == set(HOLDABLE)
    assert f"ttl BETWEEN {TTL_MIN} AND {TTL_MAX}" in SCHEMA


def test_every_query_is_known_to_the_database_and_used_by_the_code(apart, kind):
    used = set(re.findall(r'"([a-z_]+)"', " ".join(open_all())))
    for name, sql in queries.load(kind).all().items():
        apart.change("EXPLAIN " + re.sub(r"(?<!:):\w+", "NULL", sql))
        assert name in used, f"{name} is asked by nobody"


WHOLE = {
    "actors", "boards", "count_events", "count_task_events", "count_tasks", "digests_after", "strays", "wrong_leases", "events_after",
    "events_before", "events_without_task", "highest", "keys", "leases_without_task", "names",
    "names_of_actor", "notes_of_task", "stints", "stints_and_tasks", "stints_without_task", "refusals", "remove_names_of_actor", "wrong_waits",
    "forget_refusals", "forget_requests", "add_refusal",
}  # fmt: skip
"""Questions about all of something; or about a table that is small, or is read from its end."""


@of_a_file
def test_no_question_walks_over_all_tasks(apart):
    """A board's number is the same in every row: an index that is used for it alone is useless."""
    for name, text in queries.load("sqlite").all().items():
        if name in WHOLE:
            continue
        sql = re.sub(r"(?<!:):\w+", "1", text)
        plan = apart.store.connection.execute("EXPLAIN QUERY PLAN " + sql).fetchall()
        for *_, step in plan:
            assert not re.search(r"SCAN (task|dependency|event|ended_lease|stint|note)\b", step), (
                name
            )
            whole = re.search(r"SEARCH (task|dependency|event)\b.*\(board=\?\)", step)
            assert not whole or "task_ready" in step, name  # that one has only what is asked for


@of_a_file
@pytest.mark.parametrize("query", ["ready_for", "tasks_ready"])
def test_what_is_ready_is_read_from_its_own_index(apart, query):
    """Not from that of all open tasks, most of which may wait for others."""
    sql = re.sub(r"(?<!:):\w+", "1", queries.load("sqlite")[query])
    plan = apart.store.connection.execute("EXPLAIN QUERY PLAN " + sql).fetchall()
    assert "task_ready" in str(plan)


def test_the_queries_that_differ_are_few_and_architecture_states_how_many(capsys):
    """What is shared is written once."""
    from pathlib import Path

    count = {
        file: len(
            re.findall(
                r"^-- name: ", (Path(queries.FOLDER) / f"{file}.sql").read_text(), re.MULTILINE
            )
        )
        for file in ("queries", "readiness", "sqlite", "postgres")
    }
    stated = (
        f"{count['queries'] + count['readiness']} queries are shared; SQLite has {count['sqlite']} of its own, "
        f"PostgreSQL {count['postgres']},"
    )
    with capsys.disabled():
        print(f"\n{stated}")
    page = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
    assert stated in " ".join(page.split())


def open_all():
    from pathlib import Path

    from dibs import storage

    return [path.read_text() for path in Path(storage.__file__).parent.rglob("*.py")]


def test_no_sql_is_written_outside_the_store():
    from pathlib import Path

    import dibs

    root = Path(dibs.__file__).parent
    for path in root.rglob("*.py"):
        if "storage" not in path.parts:
            assert not re.search(
                r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b", path.read_text()
            ), path
