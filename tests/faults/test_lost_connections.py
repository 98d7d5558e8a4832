"""The server goes away in the middle: every outcome is done, not done, or resolved by its request id."""

from __future__ import annotations

import random
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dibs import Refused
from dibs.board import queries
from dibs.board.identity import Identity
from dibs.board.locate import Place
from dibs.board.retry import may_be_retried
from dibs.board.transfer import move as moving
from dibs.board.user_config import User
from dibs.domain import commands as c
from dibs.domain.model import TaskKey, Terms
from dibs.domain.values import SECOND
from dibs.opening import create_at, open_at
from dibs.storage.address import Address
from dibs.storage.postgres import copy, pipeline
from dibs.storage.postgres.store import PostgresStore
from kit import soak
from kit.postgres import DURABLE, Node, Server
from kit.postgres_cluster import Cluster
from kit.postgres_ground import until
from kit.postgres_proxy import AFTER, BEFORE, COMMIT, DURING
from kit.repositories import Repo
from kit.writers import Writers, board_with, name_of, opened_by

KILLS = 10
MOMENTS = (BEFORE, DURING, AFTER)


def test_all_sessions_are_killed_ten_times_and_nothing_acknowledged_is_lost(tmp_path):
    """The writers get no notice; what was cut off they retry, with the same request id."""
    chance = random.Random(soak.seed())
    kills = soak.times(KILLS, share=0.1, each=1.5)
    node = Node(DURABLE).init().start()
    try:
        url = node.url()
        keys = board_with(url, tasks=40 + kills)
        with Writers(tmp_path, url, keys, seed=chance.random()) as writers:
            writers.go_on(2)
            for _ in range(kills):
                time.sleep(chance.uniform(0, 0.05))
                node.kill()
                node.start()
                writers.go_on(2)
            writers.finish()
        operations = writers.judge(url)
    finally:
        node.remove()
    answers = [op.answer for op in operations if not isinstance(op.answer, str | None)]
    replayed = sum(answer.replayed for answer in answers)
    print(
        f"{len(operations)} operations, {len(answers)} acknowledged, {replayed} done when cut off"
    )
    assert [op for op in operations if op.answer is None] == [], "nobody gave up"


# One connection.


@pytest.fixture
def database(node):
    return name_of(Server(node.url(), node).new_database())


def verbs(board, key) -> list[str]:
    return [event.verb for event in board.log(key)]


def wait_less(node, database) -> None:
    """Who does not get through gives up after a second."""
    with node.connect(database) as connection:
        connection.execute("UPDATE dibs.home SET settings = 'write_wait = \"1s\"'")


CHANGES = [
    ("claim", {}),
    ("note", {"text": "half"}),
    ("renew", {"ttl": "5m", "request_id": "r1"}),  # the lighter kind is not remembered
    ("release", {}),
    ("claim", {}),
    ("complete", {"note": "done"}),
]


@pytest.mark.parametrize("when", MOMENTS)
def test_whatever_is_cut_off_at_its_commit_is_done_once_and_answered(node, proxy, database, when):
    """Before the server received it, while it arrived, and when it had done it."""
    board_with(node.url(database), tasks=1)
    with opened_by(proxy.url(database), "codex") as board:
        proxy.cut_at(when)
        key = board.add("another").task.key
        for verb, options in CHANGES:
            assert proxy.sprung.wait(60)
            proxy.cut_at(when)
            answer = getattr(board, verb)(key, **options)
            assert when == DURING or answer.replayed == (when == AFTER), verb
        assert proxy.sprung.wait(60)
        assert answer.token == "1.2"
        assert verbs(board, key) == [
            *("added", "claimed", "started", "noted", "renewed", "released"),
            *("claimed", "started", "completed"),
        ]
        assert len(board.list(states=["open", "complete"])) == 2
        assert board.verify() == ()


def test_an_id_of_our_own_is_looked_up_only_when_it_may_be_known(node, proxy, database):
    [key] = board_with(node.url(database), tasks=1)
    with opened_by(proxy.url(database), "codex") as board:

        def looked_up(act, **options) -> int:
            proxy.reset()
            act(key, **options)
            return sum("FROM dibs.request" in text for text in proxy.statements)

        assert looked_up(board.claim) == 0
        assert looked_up(board.release, request_id="r1") == 1
        proxy.cut_at(BEFORE)
        assert looked_up(board.claim) == 1


def test_a_renewal_that_is_cut_off_has_its_answer_and_the_lease_its_time(node, proxy, database):
    [key] = board_with(node.url(database), tasks=1)
    with opened_by(proxy.url(database), "codex") as board:
        before = board.claim(key).lease
        for when in MOMENTS:
            proxy.cut_at(when)
            after = board.renew(key).lease
            assert proxy.sprung.wait(60)
            assert after.expires_at > before.expires_at
            before = after
        assert before.token == "1.1"
        assert verbs(board, key) == ["added", "claimed", "started"]


def test_a_connection_that_is_cut_at_any_statement_is_made_anew(node, proxy, database):
    """Every statement of a claim in its turn, before and after the server received it."""
    [key] = board_with(node.url(database), tasks=1)
    with opened_by(proxy.url(database), "codex") as board:
        board.claim(key)
        board.release(key)
        proxy.reset()
        board.claim(key)
        statements = [*dict.fromkeys(text[:40] for text in proxy.statements)]
        for pattern in statements:
            for when in (BEFORE, AFTER):
                before = board.release(key).token
                proxy.cut_at(when, re.escape(pattern))
                after = board.claim(key).token
                assert proxy.sprung.wait(60), pattern
                assert number(after) == number(before) + 1
        assert board.verify() == ()
    print(f"cut at {len(statements)} statements")
    assert len(statements) > 5


def number(token: str) -> int:
    return int(token.partition(".")[2])


@pytest.mark.parametrize("when", MOMENTS)
def test_a_command_whose_commit_is_cut_off_has_its_answer(node, proxy, database, tmp_path, when):
    [key] = board_with(node.url(database), tasks=1)
    repo = Repo.create(tmp_path / "repo", proxy.url(database))
    proxy.cut_at(when, "UPDATE dibs.board")
    claimed = repo.json("claim", key, "--agent", "codex", "--session", "s1")
    assert proxy.sprung.is_set()
    assert claimed["lease"]["token"] == "1.1"
    with opened_by(node.url(database), "codex") as board:
        assert verbs(board, key) == ["added", "claimed", "started"]


QUESTIONS = [("list",), ("show", "T-1"), ("status",), ("log",), ("who", "T-1"), ("why", "T-1")]


@pytest.mark.parametrize("line", QUESTIONS, ids=lambda line: line[0])
@pytest.mark.parametrize("what", [COMMIT, "(?s).*FROM dibs.(task|event|actor)"])
def test_a_question_that_is_cut_off_is_asked_again(node, proxy, database, tmp_path, line, what):
    board_with(node.url(database), tasks=1)
    repo = Repo.create(tmp_path / "repo", proxy.url(database))
    for when in MOMENTS:
        proxy.cut_at(when, what)
        repo.ok(*line)
        assert proxy.sprung.wait(60)


@pytest.mark.parametrize("when", MOMENTS)
def test_how_a_look_ends_matters_to_nobody(node, proxy, database, when):
    [key] = board_with(node.url(database), tasks=1)
    with opened_by(proxy.url(database), "codex") as board:
        board.show(key)
        proxy.cut_at(when)
        assert board.show(key).key == key
        assert proxy.sprung.wait(60)


def test_a_question_that_nobody_answers_is_not_asked_twice_as_long(node, proxy, database):
    """It was tried for as long as the settings say; it is not cut off in the middle."""
    board_with(node.url(database), tasks=1)
    wait_less(node, database)
    board = open_at(Place("/nowhere", url=proxy.url(database)))
    proxy.refuse()
    with pytest.raises(Refused) as refused:
        queries.show(board, TaskKey("T-1"))
    assert not may_be_retried(refused.value)
    board.store.close()


@pytest.mark.parametrize(("when", "done"), [(BEFORE, False), (AFTER, True)])
def test_who_gives_up_after_a_cut_commit_learns_that_nobody_knows_and_can_ask_again(
    node, proxy, database, when, done
):
    [key] = board_with(node.url(database), tasks=1)
    wait_less(node, database)
    with opened_by(proxy.url(database), "codex") as board:
        board.show(key)
        proxy.cut_at(when)
        proxy.accepts = False  # what is open stays open, until it is cut off
        with pytest.raises(Refused) as refused:
            board.claim(key, request_id="r1")
        assert (refused.value.code, refused.value.refusal.facts["unknown"]) == ("unreachable", True)
        proxy.accept()
        answer = board.claim(key, request_id="r1")
        assert (answer.token, answer.replayed) == ("1.1", done)
        assert verbs(board, key) == ["added", "claimed", "started"]


def test_who_never_reached_the_server_learns_that_nothing_was_done(node, proxy, database):
    [key] = board_with(node.url(database), tasks=1)
    wait_less(node, database)
    with opened_by(proxy.url(database), "codex") as board:
        board.show(key)
        proxy.refuse()
        with pytest.raises(Refused) as refused:
            board.claim(key, request_id="r1")
        assert (refused.value.code, refused.value.refusal.facts["unknown"]) == (
            "unreachable",
            False,
        )


def test_a_server_that_does_not_answer_is_given_up(node, proxy, database, monkeypatch):
    """It takes what is sent, as a stopped process does, and no timeout of the network shows it."""
    monkeypatch.setattr(pipeline, "RESPONSE_TIMEOUT", 0.1)
    [key] = board_with(node.url(database), tasks=1)
    wait_less(node, database)
    with opened_by(proxy.url(database), "codex") as board:
        board.show(key)
        proxy.freeze()
        since = time.monotonic()
        with pytest.raises(Refused) as refused:
            board.claim(key, request_id="r1")
        assert time.monotonic() < since + 30
        assert (refused.value.code, refused.value.refusal.facts["unknown"]) == (
            "unreachable",
            False,
        )
        proxy.thaw()
        assert board.claim(key, request_id="r1").token == "1.1"


def test_a_deadline_ends_the_wait_for_a_server_that_does_not_answer(node, proxy, database):
    """As a hook has one: else the same server is given half a minute."""
    board_with(node.url(database), tasks=1)
    store = PostgresStore(Address(proxy.url(database)))
    with store.read():
        """Connected while the server still answers."""
    proxy.freeze()
    store.deadline = time.monotonic() + 0.5
    store.borrow().deadline = store.deadline
    with pytest.raises(Refused, match="is unreachable"):
        store.read().__enter__()
    assert time.monotonic() < store.deadline + 20
    proxy.thaw()
    store.close()


# What the server itself ends.


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("what", ["(?s).*FROM .*board", "(?s).*FROM .*event"])
def test_who_waits_goes_on_when_it_is_cut_off(node, proxy, database, when, what):
    """Between two polls, and in the middle of one: nothing is missed, nothing is reported twice."""
    [key] = board_with(node.url(database), tasks=1)
    with opened_by(proxy.url(database), "ben") as ben, opened_by(node.url(database), "al") as al:
        events = ben.watch(key, since=0, timeout="60s")
        assert next(events).verb == "added"
        proxy.cut()
        al.claim(key)
        assert next(events).verb == "claimed"
        proxy.cut_at(when, what)
        al.complete(key)
        assert [next(events).verb, next(events).verb] == ["started", "completed"]
        assert proxy.sprung.wait(60)
        proxy.cut_at(when, what)
        assert ben.wait(key).state == "complete"
        events.close()


def test_a_server_that_stays_unreachable_is_not_waited_for_without_end(node, proxy, database):
    [key] = board_with(node.url(database), tasks=1)
    wait_less(node, database)
    with opened_by(proxy.url(database), "ben") as ben:
        events = ben.watch(key, since=0)
        next(events)
        proxy.refuse()
        with pytest.raises(Refused) as problem:
            next(events)
        assert problem.value.code == "unreachable"


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{}'"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = '{}'"

PAUSE = """
CREATE FUNCTION dibs.pause() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
CREATE TRIGGER pause AFTER INSERT ON dibs.event EXECUTE FUNCTION dibs.pause();
"""


def test_the_victim_of_a_deadlock_tries_again(node, database):
    """Another has the task and wants the board; a claim has the board, and wants the task last."""
    [key] = board_with(node.url(database), tasks=1)
    waiting = WAITING.format(database)
    node.configure({"deadlock_timeout": "50ms"})
    with (
        opened_by(node.url(database), "codex") as board,
        node.connect(database) as pause,
        node.connect(database) as other,
        ThreadPoolExecutor() as pool,
    ):
        pause.execute(PAUSE)
        pause.execute("SELECT pg_advisory_lock(1)")
        other.execute("SET deadlock_timeout = '1min'")
        with other.transaction():
            other.execute("SELECT FROM dibs.task FOR UPDATE")
            claim = pool.submit(board.claim, key)
            until(lambda: node.query(waiting) == 1, "a claim that has the board")
            locked = pool.submit(other.execute, "SELECT FROM dibs.board FOR UPDATE")
            until(lambda: node.query(waiting) == 2, "another that waits for the board")
            pause.execute("SELECT pg_advisory_unlock(1)")
            locked.result(60)
        assert claim.result(60).token == "1.1"
        assert verbs(board, key) == ["added", "claimed", "started"]
    until(lambda: node.query(DEADLOCKS.format(database)) == 1, "a deadlock that is counted")


FAILS_ONCE = """
CREATE SEQUENCE dibs.tries;
CREATE FUNCTION dibs.fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('dibs.tries') = 1 THEN
        RAISE EXCEPTION 'not this time' USING ERRCODE = '{}';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER fails_once AFTER INSERT ON dibs.event
DEFERRABLE INITIALLY {} FOR EACH ROW EXECUTE FUNCTION dibs.fail_once();
"""


@pytest.mark.parametrize("when", ["IMMEDIATE", "DEFERRED"])
@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_what_the_server_asks_to_be_tried_again_is_tried_again(node, database, state, when):
    """At once, and at the commit."""
    [key] = board_with(node.url(database), tasks=1)
    with node.connect(database) as connection:
        connection.execute(FAILS_ONCE.format(state, when))
    with opened_by(node.url(database), "codex") as board:
        assert board.claim(key).token == "1.1"
        assert verbs(board, key) == ["added", "claimed", "started"]


# A commit that waits for its standby.

STANDBY = "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(synchronous=True) as cluster:
        yield cluster


def waits(cluster):
    with cluster.primary.connect() as connection:
        return connection.execute(STANDBY).fetchone()


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
@pytest.mark.parametrize("messages", ["warning", "error"])
def test_a_commit_that_is_made_to_wait_no_longer_is_asked_for_again(cluster, end, messages):
    """The server has it, the standby perhaps not: nobody gets a success before both have.

    It says so by a warning. Somebody may have switched warnings off.
    """
    database = name_of(Server(cluster.primary.url(), cluster.primary).new_database())
    [key] = board_with(cluster.url(database), tasks=1)
    hidden = f"ALTER DATABASE {database} SET client_min_messages = '{messages}'"
    with cluster.primary.connect() as connection:
        connection.execute(hidden)
    with opened_by(cluster.url(database), "codex") as board, ThreadPoolExecutor() as pool:
        cluster.cut()
        claim = pool.submit(board.claim, key)
        first = until(lambda: waits(cluster), "a commit that waits")
        assert cluster.primary.query(f"SELECT {end}({first[0]})")
        until(lambda: (waits(cluster) or first) != first or claim.done(), "another that waits")
        assert not claim.done()
        cluster.join()
        answer = claim.result(60)
        assert (answer.token, answer.replayed) == ("1.1", True)
        assert verbs(board, key) == ["added", "claimed", "started"]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_move_whose_commit_is_made_to_wait_no_longer_can_be_run_again(cluster, tmp_path, side):
    """Nobody is led from one place to the other before the standbys know of it too."""
    url = cluster.url(name_of(Server(cluster.primary.url(), cluster.primary).new_database()))
    there, folder = f"{url}#web", str(tmp_path / "board")
    source, target = (there, folder) if side == "source" else (folder, there)
    repo = Repo.create(tmp_path / "repo")
    here, away = at(source), at(target)
    repo.ok("init", **here)
    repo.ok("add", "one", "--as", "ana", **here)
    with ThreadPoolExecutor() as pool:
        cluster.cut()
        move = ("board", "move", "--to", target, "--as", "ana", "--json")
        moving = pool.submit(repo.run, *move, **here)
        first = until(lambda: waits(cluster), "a commit that waits")
        assert cluster.primary.query(f"SELECT pg_cancel_backend({first[0]})")
        ran = moving.result(60)
        assert (ran.code, ran.error["facts"]["unknown"]) == (75, True)
        if side == "source":  # it is left, as far as this server knows: whoever follows makes sure
            claim = ("claim", "T-1", "--agent", "codex", "--session", "s1", "--json")
            claiming = pool.submit(repo.run, *claim, **here)
            until(lambda: waits(cluster), "one who makes sure")
            assert not claiming.done()
            cluster.join()
            assert claiming.result(60).json["lease"]["token"] == "1.1"
        else:
            cluster.join()
            repo.ok("claim", "T-1", "--agent", "codex", "--session", "s1", **here)
    repo.ok(*move, **here)
    assert repo.ok("show", "T-1", "--json", **away).json["task"]["token"] == "1.1"
    assert repo.ok("show", "T-1", "--json", **here).json["task"]["token"] == "1.1"


def at(where: str) -> dict[str, str]:
    """An environment in which the board is there."""
    return {"DIBS_BOARD" if where.startswith("/") else "DIBS_URL": where}


# A server that says nothing.


@pytest.mark.parametrize("what", ["boards", "grant", "arrive", "expects", "move", "follow"])
def test_nobody_waits_without_end_for_a_server_that_does_not_answer(
    node, proxy, database, tmp_path, monkeypatch, what
):
    monkeypatch.setattr(pipeline, "RESPONSE_TIMEOUT", 0.3)
    folder = str(tmp_path / "board")
    ana = Identity("ana", True, "")
    board_with(node.url(database), tasks=1)
    store = PostgresStore(Address(proxy.url(database)), wait=0.2)
    near, _ = create_at(Place(folder, user=User(str(tmp_path / "config"))))
    near.execute(ana, c.Add(Terms("one")))
    near.settings = near.settings.but(write_wait=SECOND // 5)
    to = f"{proxy.url(database)}#new"
    if what == "follow":
        moving.move(near, to, ana)
    acts = {
        "boards": store.boards,
        "grant": lambda: store.grant("postgres"),
        "arrive": lambda: copy.activate_copy(store, "uid", "word"),
        "expects": lambda: copy.has_inactive_copy(store, "uid", "word"),
        "move": lambda: moving.move(near, to, ana),
        "follow": lambda: queries.show(near, TaskKey("T-1")),
    }
    begun = pipeline.ServerConnection.connect

    def connect(*given, **named):
        session = begun(*given, **named)
        proxy.freeze()
        return session

    monkeypatch.setattr(pipeline.ServerConnection, "connect", connect)
    with ThreadPoolExecutor() as pool:
        try:
            problem = pool.submit(acts[what]).exception(20)
        finally:
            proxy.thaw()
    assert problem.code == "unreachable" and "timed out" in str(problem)
    near.store.close()
    store.close()


# A time of its own.


def test_a_server_that_ends_a_transaction_by_its_own_time_is_reported_as_an_error(node, database):
    [key] = board_with(node.url(database), tasks=1)
    wait_less(node, database)
    with node.connect(database) as other:
        other.execute(f"ALTER DATABASE {database} SET transaction_timeout = '50ms'")
        with opened_by(node.url(database), "codex") as board, other.transaction():
            other.execute("LOCK TABLE dibs.task")
            with pytest.raises(Refused) as refused:
                board.claim(key)
        assert refused.value.code == "unreachable" and "rejected the request" in str(refused.value)
        other.execute(f"ALTER DATABASE {database} RESET transaction_timeout")
    with opened_by(node.url(database), "codex") as board:
        assert board.claim(key).token == "1.1"
