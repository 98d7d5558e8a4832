"""A board on a server: where it is, who may use it, and what is refused. The rules are tested elsewhere."""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import sys
import threading

import psycopg
import pytest

from dibs.board.execute import Board
from dibs.board.facts.task import fresh_uid
from dibs.board.server_boards import all_boards
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from dibs.domain.refusals import Refused
from dibs.storage.address import Address, parse, without_password
from dibs.storage.postgres.health import standbys_found
from dibs.storage.postgres.store import PostgresStore
from dibs.storage.postgres.transaction import may_touch_same_row
from kit.boards import USER, Bench, database_apart
from kit.postgres import server
from kit.repositories import Repo

K = TaskKey("T-1")


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path, kind="postgres", apart=True)
    bench.add()
    yield bench
    bench.close()


def code_of(call) -> str:
    with pytest.raises(Refused) as problem:
        call()
    return problem.value.code


# Addresses.

SHOWN = {
    "postgresql://ana:geheim@db.example.org/team": "postgresql://ana@db.example.org/team",
    "postgresql:///team": "postgresql:///team",
    "postgresql:///?service=team": "postgresql:///?service=team",
    "postgresql://ana@/x?host=/run/a%20b&port=5": "postgresql://ana@/x?host=/run/a%20b&port=5",
    "postgresql://h/x?password=geheim&sslmode=require": "postgresql://h/x?sslmode=require",
    "postgresql://h/x?password=geheim": "postgresql://h/x",
    "postgresql://a:ge%40heim@h1:5,h2:6/x": "postgresql://a@h1:5,h2:6/x",
    "postgres://:geheim@h/x": "postgres://@h/x",
    "postgresql://h/x?passwor%64=geheim": "postgresql://h/x",
    "postgresql://h/x?sslpassword=geheim&oauth_client_secret=g": "postgresql://h/x",
}


@pytest.mark.parametrize("url", SHOWN)
def test_an_address_is_shown_without_its_password_and_else_as_it_is(url):
    assert without_password(url) == SHOWN[url]
    assert str(parse(f"{url}#web")) == f"{SHOWN[url]}#web"
    assert parse(url).has_password == (url != SHOWN[url])


@pytest.mark.parametrize(
    "text",
    [
        "mysql://h/x", "h/x", "", "postgresql://h/x#a b", "postgresql://h/x#../up", "postgresql://h:p/x",
        "host=h password=geheim", "postgresql:/u:geheim@h/d", "postgresql://u:p@geheim@h/x",
        "postgresql://u:p#geheim@h/x",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_without_repeating_a_password(text):
    with pytest.raises(Refused) as problem:
        parse(text)
    assert problem.value.code == "bad_argument"
    assert "geheim" not in problem.value.refusal.message


@pytest.mark.parametrize(
    "url", ["postgresql://ana:ge%heim@127.0.0.1:1/x", "postgresql://h/x?foo=bar"]
)
def test_an_address_that_the_driver_cannot_read_is_reported_without_its_text(url):
    with pytest.raises(Refused) as problem:
        PostgresStore(Address(url)).read().__enter__()
    assert problem.value.code == "bad_argument"
    assert "heim" not in problem.value.refusal.message


def test_who_cannot_log_in_learns_it_at_once():
    url = server().new_database(tcp=True)
    for wrong in (url.replace("correct", "wrong"), url.rpartition("/")[0] + "/nowhere"):
        with pytest.raises(Refused) as problem:
            PostgresStore(Address(wrong)).read().__enter__()
        assert problem.value.code == "not_let_in"
        assert "login failed for postgres" in problem.value.refusal.message


def test_a_board_without_a_name_is_the_main_one():
    assert parse("postgresql://h/x") == Address("postgresql://h/x", "main")


# Boards.


def test_boards_of_one_database_are_apart(bench):
    other = PostgresStore(Address(bench.store.address.url, "other"))
    other.create(fresh_uid())
    board = Board(other, Settings(key_prefix="O"))
    key = board.execute(bench.person().identity, c.Add(bench.terms())).task.key
    assert key == "O-1"
    bench.agent().claim()
    with other.read() as tx:
        assert [str(k) for k in tx.task_keys()] == ["O-1"]
        assert tx.task(K) is None
    with other.write("a long one"):
        assert bench.agent().do(c.Renew(K)).task.lease.renewals == 1
    assert {name for name, *_ in other.boards()} == {bench.store.address.board, "other"}
    other.close()


def test_the_boards_of_a_database_are_listed_though_the_named_one_is_not_there(bench, tmp_path):
    url = bench.store.address.url
    [known] = all_boards(Board(PostgresStore(Address(url, "nobody")), Settings()))
    assert known.name == bench.store.address.board
    listed = Repo.create(tmp_path / "repo", f"{url}#nobody").json("board", "list")
    assert [each["name"] for each in listed["boards"]] == [known.name]
    empty = Board(PostgresStore(Address(server().new_database())), Settings())
    assert code_of(lambda: all_boards(empty)) == "no_board"


def test_making_it_twice_keeps_the_board(bench):
    assert bench.store.create("another") is False
    assert bench.task().key == K


def test_many_make_the_schema_and_the_board_at_once():
    url = server().new_database()
    stores = [PostgresStore(Address(url, f"b{n % 2}")) for n in range(6)]
    made = []
    threads = [
        threading.Thread(target=lambda s=store: made.append(s.create(fresh_uid())))
        for store in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 4 + [True] * 2


def test_no_schema_no_board_and_a_newer_schema(bench):
    empty = PostgresStore(Address(server().new_database(), "main"))
    assert code_of(lambda: empty.read().__enter__()) == "no_board"
    other = PostgresStore(Address(bench.store.address.url, "nobody"))
    assert code_of(lambda: other.read().__enter__()) == "no_board"
    bench.change("INSERT INTO migration VALUES (99, 0)")
    newer = bench.store.another()
    assert code_of(lambda: newer.read().__enter__()) == "newer_schema"


def test_nothing_depends_on_the_search_path(bench):
    """A table of the same name in another schema is never meant."""
    with bench.store.connect() as connection:
        connection.execute(
            "CREATE TABLE public.board (board INT); CREATE TABLE public.task (x INT)"
        )
        [(name,)] = connection.execute("SELECT current_database()")
        connection.execute(f'ALTER DATABASE "{name}" SET search_path = public')
    fresh = Board(bench.store.another(), Settings())
    assert fresh.execute(bench.agent().identity, c.Claim(K)).task.lease is not None


def test_the_second_lock_refuses_a_row_that_is_not_in_the_version_that_was_read(bench):
    with pytest.raises(Refused) as problem, bench.store.write("x") as tx:
        task = tx.task(K)
        tx.save(task.but(blocked_on="a"))
        tx.save(task.but(blocked_on="b"))
    assert problem.value.code == "storage_failed"
    assert bench.task() == task


# Who may use it.


@pytest.fixture
def role(bench):
    name = f"r{fresh_uid()[:13]}"
    server().new_role(name)
    bench.store.grant(name)
    return PostgresStore(
        Address(bench.store.address.url.replace("postgres@", f"{name}@"), bench.store.address.board)
    )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dibs.event SET facts = '{}'",
        "DELETE FROM dibs.event",
        "TRUNCATE dibs.event",
        "DELETE FROM dibs.task",
        "DELETE FROM dibs.note",
        "UPDATE dibs.note SET kind = 'late'",
        "UPDATE dibs.ended_lease SET actor = 1",
        "UPDATE dibs.board SET moved_to = '/tmp/mine'",
        "ALTER TABLE dibs.event DISABLE TRIGGER ALL",
        "DROP TRIGGER the_ledger_is_never_updated ON dibs.event",
        "CREATE TABLE dibs.mine (x INT)",
        "DROP SCHEMA dibs CASCADE",
        "SET session_replication_role = replica",
    ],
)
def test_a_role_with_few_rights_works_and_cannot_change_the_ledger_or_the_schema(
    bench, role, statement
):
    board = Board(role, Settings())
    codex = bench.agent()
    assert board.execute(codex.identity, c.Claim(K)).task.lease.session == "s1"
    done = board.execute(codex.identity, c.Complete(K, note="done"))
    redact = c.Redact(K, done.entries[-1].seq, "a secret")
    assert board.execute(bench.person().identity, redact).events
    with role.connect() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)
    role.close()


def test_who_owns_nothing_grants_nothing(bench, role):
    other = server().new_role(f"r{fresh_uid()[:13]}")
    assert code_of(lambda: role.grant(other)) == "not_granted"
    assert code_of(lambda: bench.store.grant("nobody here")) == "bad_argument"


def test_a_role_without_rights_learns_it(bench):
    name = server().new_role(f"r{fresh_uid()[:13]}")
    url = bench.store.address.url.replace("postgres@", f"{name}@")
    stranger = PostgresStore(Address(url, bench.store.address.board))
    assert code_of(lambda: stranger.read().__enter__()) == "not_granted"


def test_nobody_answers():
    away = PostgresStore(Address("postgresql://ana:geheim@127.0.0.1:1/x", "main"), wait=0.1)
    with pytest.raises(Refused) as problem:
        away.read().__enter__()
    assert problem.value.code == "unreachable"
    assert "geheim" not in problem.value.refusal.message


# Connections.


def test_threads_share_a_pool_and_write_one_after_the_other(bench):
    pooled = PostgresStore(bench.store.address, pool=4)
    board = Board(pooled, Settings())
    who = bench.person().identity
    threads = [
        threading.Thread(target=board.execute, args=(who, c.Note(K, note=f"note {n}")))
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with bench.store.read() as tx:
        assert len(tx.notes(tx.task(K).id)) == 12
    pooled.close()
    assert bench.faults() == ()


def prepared(store) -> int:
    session = store.borrow()
    [(count,)] = session.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()
    store.give_back(session)
    return count


def test_statements_are_prepared_once_where_the_session_is_our_own(bench):
    """Behind a pooler it is not: see `test_pooler`."""
    codex, counts = bench.agent(), []
    for _ in range(4):
        codex.claim()
        codex.do(c.Release(K))
        counts.append(prepared(bench.store))
    assert counts[0] > 5
    assert counts[-1] == counts[-2]


SETTLE_ONE = ("settle_dependants", {"task": 1, "by": -1})
SAVE_ONE, SAVE_TWO = ("save_task", {"id": 1}), ("save_task", {"id": 2})


@pytest.mark.parametrize(
    ("change", "before", "meets"),
    [
        (SAVE_ONE, [], False),
        (SAVE_ONE, [SETTLE_ONE], False),
        (SAVE_TWO, [SETTLE_ONE], True),
        (SETTLE_ONE, [SAVE_ONE], False),
        (SETTLE_ONE, [SAVE_TWO], True),
        (SAVE_TWO, [SAVE_ONE], True),
        (("settle_dependants", {"task": 2, "by": 1}), [SETTLE_ONE], True),
        (("save_seq", {}), [SETTLE_ONE, SAVE_ONE], False),
    ],
)
def test_a_row_is_changed_once_in_a_statement(change, before, meets):
    """A second change of it would be lost without a word: task 2 may depend on task 1."""
    assert may_touch_same_row(*change, before) is meets


KEPT = {
    "request": "Index Scan using request_", "forget_requests": "request_by_age", "session": "session_pkey",
    "settle_dependants": "dependency_by_cause", "ready_for": "task_ready", "tasks_ready": "task_ready",
    "events_of_request": "event_pkey",
}  # fmt: skip
"""By which index a question is answered."""


@pytest.mark.parametrize("query", KEPT)
def test_a_plan_that_is_kept_suits_tables_that_will_have_grown(bench, query):
    """For a table that is empty when the plan is made, the server would choose to read all of it."""
    session = bench.store.borrow()
    session.execute("VACUUM ANALYZE")
    given = dict.fromkeys(re.findall(r"%\((\w+)\)s", bench.store.queries[query]), "1")
    plan = session.execute("EXPLAIN " + bench.store.queries[query], given).fetchall()
    assert KEPT[query] in str(plan)
    assert "Seq Scan" not in str(plan)


def test_a_command_about_many_tasks_needs_no_statement_for_each_of_them(bench):
    codex, ana = bench.agent(), bench.person()
    keys = tuple(TaskKey(bench.add()) for _ in range(20))
    counts = []
    for some in (keys[:5], keys[5:10], keys[10:]):
        for key in some:
            codex.claim(key)
        ana.do(c.Reset(some, only=True, yes=True, reason="all wrong"))
        counts.append(prepared(bench.store))
    assert counts[1] == counts[2]
    assert {bench.task(key).state for key in keys} == {"open"}


def test_what_an_error_kept_from_being_prepared_is_prepared_later(bench):
    """The server skips what follows an error; here, the wait for a lock that was not given."""
    hasty = PostgresStore(bench.store.address, wait=0.1)
    board, who = Board(hasty, Settings()), bench.agent().identity
    with bench.store.write("a long one"):
        assert code_of(lambda: board.execute(who, c.Claim(K))) == "busy"
    session = hasty.borrow()
    assert board.execute(who, c.Claim(K)).task.lease is not None
    assert hasty.borrow() is session
    assert session.own, "it still prepares: no statement was missing"
    hasty.close()


def test_a_session_that_has_forgotten_a_statement_is_not_trusted_again(bench):
    """A pooler that looks like a server would give us another one's session."""
    codex = bench.agent()
    codex.claim()
    session = bench.store.borrow()
    session.execute("DEALLOCATE ALL")
    assert codex.do(c.Release(K)).task.lease is None
    assert bench.store.borrow() is session
    assert prepared(bench.store) == 0


def test_a_text_with_a_zero_byte_is_refused_not_cut(bench):
    with bench.store.read() as tx, pytest.raises(psycopg.DataError):
        tx.task(TaskKey("T-1\0"))


def test_a_connection_does_not_cross_a_fork(bench):
    bench.now()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=lambda: answers.put(code_of(bench.store.read().__enter__)))
    child.start()
    assert answers.get(timeout=60) == "forked"
    child.join()
    assert bench.task().key == K


def save_settings(bench, text: str) -> None:
    with bench.store.write("config") as tx:
        tx.save_settings(text)
        tx.finish()


def test_settings_on_a_server_are_the_same_for_everybody(bench):
    from dibs.board.locate import settings_in

    save_settings(bench, 'ttl_agent = "3h"\nself_review = true\n')
    seen = settings_in(bench.store.another(), Settings(), USER)
    assert (seen.ttl_agent, seen.self_review) == (3 * 3600 * 1_000_000, True)


def test_a_wrong_setting_on_a_server_is_reported(bench):
    from dibs.board.locate import settings_in

    save_settings(bench, "no_such = 1\n")
    assert (
        code_of(lambda: settings_in(bench.store.another(), Settings(), USER)) == "unknown_setting"
    )


def test_doctor_reports_what_the_server_promises(bench):
    found = {finding.what: finding for finding in bench.store.health()}
    assert {"server", "fsync", "synchronous_commit", "standbys", "server's clock", "pooler"} <= set(
        found
    )
    assert (found["fsync"].level, found["standbys"].level) == ("ok", "note")


STREAMING = ("b", "streaming", "sync")


@pytest.mark.parametrize(
    ("names", "commit", "standbys", "level", "message"),
    [
        ("", "on", [], "note", "none: a claim survives"),
        ("", "on", [("b", "streaming", "async")], "note", "b streaming async"),
        ("b", "on", [STREAMING], "ok", "b streaming sync"),
        ("b", "on", [], "wrong", "none: every change hangs until 'b' connects"),
        ("FIRST 2 (b, c)", "on", [STREAMING], "wrong", "b streaming sync: every change hangs"),
        ("ANY 1 (b, c)", "on", [("b", "streaming", "quorum")], "ok", "b streaming quorum"),
        ("2 (b, c)", "on", [STREAMING, ("c", "streaming", "sync")], "ok", "b streaming sync, c"),
        ("b", "local", [], "wrong", "none: a claim survives a power failure"),
        ("b", "on", [("b", None, None)], "note", "b hidden"),
    ],
)
def test_doctor_says_when_every_change_hangs(names, commit, standbys, level, message):
    found = standbys_found(standbys, names, commit)
    assert (found.what, found.level) == ("standbys", level)
    assert message in found.found


def test_a_standby_that_is_asked_for_and_not_there_is_found(bench):
    """The server itself says both: what is asked for, and who is there."""
    node = server().node
    if node is None:
        pytest.skip("the settings of a server that was named are not ours")
    node.configure({"synchronous_standby_names": "absent"})
    try:
        found = {finding.what: finding for finding in bench.store.health()}
    finally:
        node.configure({"synchronous_standby_names": ""})
    assert found["standbys"].level == "wrong"
    assert "every change hangs until 'absent' connects" in found["standbys"].found


def test_a_database_of_its_own_has_the_schema():
    with psycopg.connect(database_apart()) as connection:
        assert connection.execute("SELECT max(number) FROM dibs.migration").fetchall() == [(1,)]


INTERRUPTED = """
import sys
from dibs.storage.address import Address
from dibs.storage.postgres.store import PostgresStore

try:
    store = PostgresStore(Address(sys.argv[1]))
    with store.guarded(), store.connect() as connection, connection.transaction():
        connection.pgconn.send_query(b"SELECT 1")  # between what is asked and its answer
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("interrupted")
"""


def test_who_interrupts_a_transaction_sees_nothing_of_the_driver():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, database_apart()],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
