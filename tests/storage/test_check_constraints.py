"""A rule is written once, as a CHECK. SQLite has it so; PostgreSQL as a domain, or in a trigger."""

from __future__ import annotations

import re
from contextlib import closing

import apsw
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dibs.storage.dialect import definition
from dibs.storage.queries import migrations
from kit import soak
from kit.boards import database_apart

SHARED = migrations("sqlite")[1][0]
DIGEST = "d" * 64

FREE = {
    "board": 1, "id": 1, "uid": "u", "key": "T-1", "created": 5, "updated": 5, "creator": 1, "title": "t",
    "priority": 2, "audience": "any", "tier": 0, "capabilities": "[]", "constraints": "[]",
    "max_attempts": 3, "billable": 0, "charge_code": "", "scope": "[]", "state": "open", "token_epoch": 1, "token_number": 0,
    "blocked_on": "", "attempts": 0, "waits_on": 0, "head": "", "events": 1, "version": 1,
}  # fmt: skip
HELD = FREE | {
    "state": "in_progress", "holder": 1, "session": "s1", "acquired": 5, "renewed": 5, "ttl": 1_000_000,
    "expires": 1_000_005, "renewals": 0, "reason": "", "stint": 5, "host": "", "worktree": "", "branch": "",
}  # fmt: skip

SOUND = [
    ("task", FREE),
    ("task", HELD),
    ("task", FREE | {"channel": "mail", "origin_ask_ref": "1"}),
    ("board", {"board": 1, "uid": "u", "created": 5, "epoch": 1, "floor": 5, "seq": 0, "actors": 0, "tasks": 0,
               "keys": 0, "head": "", "events": 0, "moved_to": "", "paused_why": "", "arriving": 0, "ticket": ""}),
    ("actor", {"board": 1, "id": 1, "name": "a", "kind": "human", "tier": 0, "capabilities": "[]", "zone": ""}),
    ("session", {"board": 1, "actor": 1, "name": "s", "host": "", "worktree": "", "branch": "", "boot": "b",
                 "namespace": "n", "pid": 1, "pid_started": 1, "watched": 0, "background": 0, "registered": 5}),
    ("dependency", {"board": 1, "task": 1, "on_task": 2}),
    ("ended_lease", {"board": 1, "task": 1, "token_epoch": 1, "token_number": 1, "actor": 1, "acquired": 5,
                     "renewed": 5, "expires": 9, "renewals": 0, "ended": 9, "cause": "c", "lost": 0,
                     "acknowledged": 0, "seq": 9, "stint_started": 5, "stint_ended": 9, "spending": "",
                     "host": "", "worktree": "", "branch": ""}),
    ("stint", {"board": 1, "seq": 9, "task": 1, "actor": 1, "started": 5, "ended": 9, "source": "claim",
               "spending": ""}),
    ("stint", {"board": 1, "seq": 9, "task": 1, "actor": 1, "started": 5, "ended": 5, "source": "amended",
               "amends": 5, "tokens": 1, "cost": 1, "spending": "actual"}),
    ("event", {"board": 1, "seq": 1, "task": 1, "position": 1, "at": 5, "actor": 1, "session": "", "verb": "v",
               "cause": "", "facts": "{}", "digest": DIGEST}),
]  # fmt: skip

NUMBERS = (None, -1, 0, 1, 2, 3, 4, 5, 6, 9, 10, 1000, 1001, 999_999, 1_000_000, 1_000_005,
           2_592_000_000_000, 2_592_000_000_001)  # fmt: skip
TEXTS = (None, "", "x", "x" * 200, "x" * 201, DIGEST, "open", "in_progress", "blocked", "review", "failed",
         "complete", "dropped", "any", "human", "agent", "service",
         "claim", "added", "amended", "actual", "unknown")  # fmt: skip


def columns(table: str) -> dict[str, str]:
    body = re.search(rf"CREATE TABLE {table} \((.*?)^\) STRICT", SHARED, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^    (\w+) +(INTEGER|TEXT)\b", body[1], re.MULTILINE)
    return dict(found)


@st.composite
def rows(draw):
    """A row that is sound, but for a few columns. A file numbers boards by itself: not for that one."""
    table, row = draw(st.sampled_from(SOUND))
    kinds = columns(table)
    del kinds["board"]
    changed = draw(st.lists(st.sampled_from(sorted(kinds)), max_size=3, unique=True))
    pools = {"INTEGER": NUMBERS, "TEXT": TEXTS}
    return table, row | {name: draw(st.sampled_from(pools[kinds[name]])) for name in changed}


@pytest.fixture(scope="module")
def both():
    """The tables in each database, without foreign keys: they are written alike."""
    file = apsw.Connection(":memory:")
    file.execute(SHARED)
    with closing(psycopg.connect(database_apart())) as server:
        keys = server.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint"
            " WHERE contype = 'f' AND connamespace = 'dibs'::regnamespace"
        ).fetchall()
        for table, name in keys:
            server.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        server.commit()
        yield file, server


def in_a_file(file: apsw.Connection, table: str, row: dict) -> bool:
    marks = ", ".join(f":{name}" for name in row)
    file.execute("BEGIN")
    try:
        file.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)
    except apsw.ConstraintError:
        return False
    finally:
        file.execute("ROLLBACK")
    return True


def on_a_server(server: psycopg.Connection, table: str, row: dict) -> bool:
    marks = ", ".join(f"%({name})s" for name in row)
    try:
        server.execute(f"INSERT INTO dibs.{table} ({', '.join(row)}) VALUES ({marks})", row)
    except psycopg.IntegrityError:
        return False
    finally:
        server.rollback()
    return True


@pytest.mark.parametrize(("table", "row"), SOUND)
def test_a_sound_row_is_kept(both, table, row):
    file, server = both
    assert in_a_file(file, table, row)
    assert on_a_server(server, table, row)


@settings(
    max_examples=soak.examples(600),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows())
def test_both_databases_refuse_the_same_rows(both, case):
    file, server = both
    table, row = case
    assert on_a_server(server, table, row) == in_a_file(file, table, row)


def test_no_rule_is_lost_on_its_way_to_a_server(both):
    """Counted where the server has them: each is a CHECK, a domain's, or a line of the trigger."""
    _, server = both
    [(checks,)] = server.execute(
        "SELECT count(*) FROM pg_constraint WHERE contype = 'c'"
        " AND connamespace = 'dibs'::regnamespace AND conrelid <> 'dibs.home'::regclass"
    ).fetchall()
    [(source,)] = server.execute(
        "SELECT prosrc FROM pg_proc WHERE oid = 'dibs.refuse_task'::regproc"
    ).fetchall()
    server.rollback()
    stated = source.partition("RAISE")[0].count("\n        AND (") + 1
    assert checks + stated == SHARED.count("CHECK (")


def test_a_rule_of_one_column_is_a_domain_and_what_is_quoted_is_no_column():
    shared = (
        "CREATE TABLE task (\n    state TEXT NOT NULL CHECK (state IN\n        ('state', 'done')),\n"
        "    a     INTEGER CHECK (a <> b),\n    b     INTEGER,\n    CHECK (a = 1 OR state = 'a')\n) STRICT;\n"
    )
    made = definition(shared, "IF NOT ({rules of task}) THEN")
    assert "CHECK (VALUE IN ('state', 'done'));" in made
    assert "state dibs.state_of_task NOT NULL,\n" in made
    assert "b     BIGINT\n);" in made
    assert "IF NOT ((new.a <> new.b)\n        AND (new.a = 1 OR new.state = 'a')) THEN" in made


def test_a_row_is_refused_also_where_triggers_are_off(both):
    """As where a server receives what another one sends."""
    _, server = both
    server.execute("SET LOCAL session_replication_role = 'replica'")
    assert not on_a_server(server, "task", HELD | {"holder": None})
