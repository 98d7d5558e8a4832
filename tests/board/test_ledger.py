"""The ledger proves the rows: any change, deletion, insertion or reordering is found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.board.queries import LogFilter, log, refused_log, who
from dibs.board.verify import checkup, verify
from dibs.domain import commands as c
from dibs.domain import ledger
from dibs.domain.events import tasks as e
from dibs.domain.model import TaskKey, Terms, Token
from dibs.domain.values import DAY, HOUR, SECOND
from dibs.storage.transaction import EXPIRES_REQUESTS_EVERY

K = TaskKey("T-1")


@pytest.fixture
def busy(apart):
    """A board on which much has happened."""
    bench = apart
    for _ in range(3):
        bench.add(capabilities=())
    codex, claude, ana = (
        bench.agent("codex", "s1"),
        bench.agent("claude", "s9"),
        bench.person("ana"),
    )
    codex.claim(ttl=HOUR)
    bench.advance(3601)
    claude.claim()
    codex.refused(c.Complete(K, note="late result"))
    codex.do(c.Release(K))
    claude.do(c.Note(K, note="half way"))
    ana.do(c.Force(K, reason="urgent"))
    ana.do(c.Handoff(K, to="codex"))
    codex.claim()
    codex.do(c.Block(K, reason="no keys", keep=True))
    ana.do(c.Unblock(K))
    codex.do(c.Complete(K, note="it was the cache"))
    ana.do(c.Assign(TaskKey("T-2"), to="codex"))
    ana.do(c.Park(TaskKey("T-3")))
    assert bench.faults() == ()
    return bench


TAMPERING = {
    "an instant is flipped": "UPDATE event SET at = at - 1 WHERE seq = 9",
    "an actor is replaced": "UPDATE event SET actor = 1 WHERE seq = 9",
    "a session is replaced": "UPDATE event SET session = 'sX' WHERE seq = 9",
    "a fact is changed": "UPDATE event SET facts = replace(facts, 'urgent', 'a whim')",
    "a verb is changed": "UPDATE event SET verb = 'released' WHERE verb = 'blocked'",
    "a digest is changed": "UPDATE event SET digest = upper(digest) WHERE seq = 9",
    "a token is changed": "UPDATE event SET token_number = token_number + 1 WHERE seq = 9",
    "a middle event is deleted": "DELETE FROM event WHERE seq = 9",
    "the first event is deleted": "DELETE FROM event WHERE task = 1 AND position = 1",
    "the last event is deleted": "DELETE FROM event WHERE task = 1 AND position = (SELECT max(position) FROM event WHERE task = 1)",
    "a board event is deleted": "DELETE FROM event WHERE task IS NULL AND position = 2",
    "two events are swapped": (
        "UPDATE event SET position = CASE position WHEN 3 THEN -4 ELSE -3 END WHERE task = 1 AND position IN (3, 4);"
        "UPDATE event SET position = -position WHERE position < 0"
    ),
    "an event is inserted": (
        "INSERT INTO event SELECT board, 999, task, 99, at, actor, session, token_epoch, token_number, verb,"
        " cause, facts, digest, request FROM event WHERE seq = 9"
    ),
    "a state is changed": "UPDATE task SET state = 'dropped' WHERE id = 1",
    "a title is changed": "UPDATE task SET title = 'other' WHERE id = 2",
    "a holder is changed": "UPDATE task SET holder = 1 WHERE id = 2",
    "attempts are changed": "UPDATE task SET attempts = 0 WHERE id = 1",
    "a parker is changed": "UPDATE task SET parked_by = 1 WHERE id = 3",
    "a head is changed": "UPDATE task SET head = '' WHERE id = 2",
    "an ended lease is changed": "UPDATE ended_lease SET actor = 1 WHERE token_number = 1",
    "an ended lease is deleted": "DELETE FROM ended_lease WHERE token_number = 1",
    "a note's text is changed": "UPDATE note SET text = 'it was not me' WHERE text = 'it was the cache'",
    "a note is deleted": "DELETE FROM note WHERE text = 'half way'",
    "a note is invented": "INSERT INTO note SELECT board, 9, 1, 'noted', 'invented' FROM board",
    "an actor's kind is changed": "UPDATE actor SET kind = 'human' WHERE name = 'codex'",
    "an alias is invented": "INSERT INTO actor_name VALUES (1, 'boss', 'boss', 2)",
    "an actor is invented": (
        "INSERT INTO actor SELECT board, 99, 'boss', kind, tier, capabilities, zone FROM actor WHERE name = 'ana';"
        "UPDATE board SET actors = 99"
    ),
    "the counter of events is changed": "UPDATE board SET seq = seq + 5",
    "a task is deleted": "DELETE FROM task WHERE id = 3",
    "every name is deleted": "DELETE FROM actor_name",
    "a name leads elsewhere": "UPDATE actor_name SET folded = 'zz' WHERE folded = 'codex'",
    "the counter of tasks is changed": "UPDATE board SET tasks = 0",
    "the counter of actors is changed": "UPDATE board SET actors = 0",
    "the counter of keys is changed": "UPDATE board SET keys = 50",
    "the epoch is raised by hand": "UPDATE board SET epoch = 5",
    "the epoch falls": "UPDATE task SET token_epoch = 7 WHERE id = 1",
    "the clock's floor is lowered": "UPDATE board SET floor = floor - 1000000000000",
    "the clock's floor is raised": "UPDATE board SET floor = floor + 1000000000000",
    "a list is no list": "UPDATE task SET capabilities = '{}' WHERE id = 2",
    "a list cannot be read": "UPDATE task SET scope = 'garbage' WHERE id = 2",
    "a board event cannot be read": "UPDATE event SET facts = '{}' WHERE task IS NULL AND position = 2",
    "a board event has no name": "UPDATE event SET verb = 'zzz' WHERE task IS NULL AND position = 2",
    "a task event cannot be read": "UPDATE event SET facts = 'nope' WHERE task = 2 AND position = 1",
    "a holder is nobody": "UPDATE task SET holder = 99 WHERE id = 2",
}  # fmt: skip


@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_is_found(busy, how):
    before = busy.snapshot()
    busy.tamper(TAMPERING[how])
    assert busy.snapshot() != before
    assert verify(busy.board).faults


def test_an_event_that_is_rewritten_with_a_fitting_digest_breaks_the_chain_behind_it(busy):
    """Who rewrites one event must rewrite all that follow it, up to the head in the row."""
    entries = busy.events()
    target = next(entry for entry in entries if entry.verb == "forced")
    before = entries[target.position - 2]
    changed = target.but(facts=target.facts.replace("urgent", "a whim"), digest="")
    digest = ledger.chain(before.digest, changed)
    busy.tamper(
        f"UPDATE event SET facts = '{changed.facts}', digest = '{digest}' WHERE seq = {target.seq}"
    )
    assert verify(busy.board).faults


def test_an_instant_that_falls_is_found_though_every_digest_fits(busy):
    """The board's last own event, moved back behind all others: nothing but its instant is odd."""
    with busy.store.read() as tx:
        before, last = list(tx.events_of_board())[-2:]
    moved = last.but(at=last.at - DAY, digest="")
    digest = ledger.chain(before.digest, moved)
    busy.tamper(
        f"UPDATE event SET at = {moved.at}, digest = '{digest}' WHERE seq = {last.seq};"
        f"UPDATE board SET head = '{digest}'"
    )
    assert verify(busy.board).faults == (f"event {last.seq} is earlier than the one before",)


def test_an_honest_board_has_no_faults_and_no_orphans(busy):
    seen = checkup(busy.board)
    assert (seen.ledger.faults, seen.orphans, seen.damaged) == ((), (), False)
    assert seen.ledger.tasks == 3


def test_the_ledger_alone_gives_every_row(busy):
    with busy.store.read() as tx:
        for task in map(tx.task, tx.task_keys()):
            folded = ledger.fold(tx.events_of(task.id), ())
            assert ledger.differences(task, folded.task) == []
            assert list(folded.ended) == tx.ended_leases(task.id)


def test_free_text_is_not_in_the_ledger_but_its_digest_is(busy):
    with busy.store.read() as tx:
        text = " ".join(entry.facts for entry in tx.events())
    assert "it was the cache" not in text
    assert ledger.digest_of("it was the cache") in text


values = st.one_of(st.none(), st.text(max_size=5), st.integers(0, 2**62))
endings = st.builds(
    e.Ending,
    token=st.builds(Token, st.integers(0, 9), st.integers(0, 9)),
    actor=st.integers(1, 9),
    session=st.one_of(st.none(), st.text(max_size=5)),
    acquired=st.integers(0, 9),
    renewed=st.integers(0, 9),
    expires=st.integers(0, 9),
    renewals=st.integers(0, 9),
    late=st.booleans(),
    stint=st.one_of(st.none(), st.builds(e.Stint, st.integers(0, 9), st.integers(0, 9))),
    worktree=st.text(max_size=9),
    uncommitted=st.lists(st.text(max_size=9)).map(tuple),
)


@given(endings, st.text(max_size=9))
def test_an_event_that_was_written_is_read_back_as_it_was(ending, reason):
    for event in (
        e.TakenOver(Token(1, 2), 3, "s", 4, reason, ending),
        e.Released(ending=ending),
        e.Edited(Terms(reason or "t", capabilities=("a", "b"))),
        e.Acknowledged(Token(3, 4)),
        e.Renewed(5, None, ending.stint),
    ):
        assert ledger.decode(event.verb, ledger.encode(event)) == event


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(anything)
def test_a_value_is_written_as_json_in_one_way(value):
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert ledger.canonical(value) == written


def test_every_event_has_a_name_of_its_own():
    assert len(ledger.BY_VERB) == len(ledger.EVENTS)


# Who owned what when.


def test_who_at_an_instant_is_read_from_the_leases(bench):
    bench.add()
    codex, claude, ana = (
        bench.agent("codex", "s1"),
        bench.agent("claude", "s9"),
        bench.person("ana"),
    )
    times = {}

    def mark(name):
        bench.advance(10)
        times[name] = bench.now()
        bench.advance(10)

    ana.do(c.Note(K, note="hello"))
    mark("before")
    codex.claim(ttl=HOUR)
    mark("codex")
    bench.advance(3600)
    mark("codex expired")
    codex.do(c.Renew(K))
    mark("codex again")
    bench.advance(3600)
    mark("codex expired again")
    claude.claim()
    mark("claude")
    claude.do(c.Handoff(K, to="ana"))
    mark("ana, not taken up")
    ana.claim()
    mark("ana")
    ana.do(c.Complete(K))
    mark("after")
    seen = {}
    for name, at in times.items():
        owner = who(bench.board, K, at)
        seen[name] = (
            owner.actor and owner.actor.name,
            owner.token and owner.token.number,
            owner.expired,
        )
    assert seen == {
        "before": (None, None, False),
        "codex": ("codex", 1, False),
        "codex expired": ("codex", 1, True),
        "codex again": ("codex", 1, False),
        "codex expired again": ("codex", 1, True),
        "claude": ("claude", 2, False),
        "ana, not taken up": ("ana", 3, False),
        "ana": ("ana", 3, False),
        "after": (None, None, False),
    }


def test_the_log_can_be_asked_for_a_task_an_actor_a_time_and_what_was_forced(busy):
    everything = log(busy.board, LogFilter(), 1000).lines
    assert [line.entry.seq for line in everything] == list(range(1, len(everything) + 1))
    forced = log(busy.board, LogFilter(forced=True), 10).lines
    assert [(line.entry.verb, line.actor.name) for line in forced] == [("forced", "ana")]
    mine = log(busy.board, LogFilter(actor="CLAUDE"), 100).lines
    assert {line.actor.name for line in mine} == {"claude"}
    since = everything[-1].entry.at - 5 * SECOND
    late = log(busy.board, LogFilter(since=since), 100).lines
    assert all(line.entry.at >= since for line in late)
    early = log(busy.board, LogFilter(task=K, until=everything[0].entry.at), 100).lines
    assert [line.entry.verb for line in early] == ["added", "claimed", "started"]
    assert log(busy.board, LogFilter(), 2).more


def test_a_refusal_leaves_nothing_but_a_line_in_its_log(bench):
    bench.add()
    bench.agent().claim()
    before = bench.snapshot()
    assert bench.agent("new-one", "s5").refused(c.Claim(K)) == "held"
    assert bench.snapshot() == before
    lines, _ = refused_log(bench.board, LogFilter(actor="new-one"), 10)
    assert [(line.verb, line.task, line.code) for line in lines] == [("claim", "T-1", "held")]


def test_the_log_of_refusals_is_capped(bench, monkeypatch):
    monkeypatch.setattr("dibs.storage.transaction.REFUSALS_KEPT", 5)
    bench.add()
    bench.agent().claim()
    for _ in range(12):
        bench.agent("claude", "s9").refused(c.Claim(K))
    lines, _ = refused_log(bench.board, LogFilter(), 100)
    assert len(lines) == 5


# Requests.


def test_a_lost_answer_is_resolved_by_asking_again(bench):
    codex = bench.agent()
    first = codex.do(c.Add(Terms("once")), "r1")
    again = codex.do(c.Add(Terms("once")), "r1")
    assert (again.task, again.entries, again.replayed) == (first.task, first.entries, True)
    with bench.store.read() as tx:
        assert len(list(tx.task_keys())) == 1


def test_a_request_id_of_one_session_gives_another_nothing(bench):
    """Leases belong to sessions: the answer to one is not the answer to the other."""
    bench.add()
    bench.agent("codex", "s1").do(c.Claim(K), "r1")
    assert bench.agent("codex", "s2").refused(c.Claim(K), "r1") == "request_reused"


def test_a_replayed_success_carries_the_current_owner(bench):
    bench.add()
    codex, claude = bench.agent(), bench.agent("claude", "s9")
    codex.do(c.Claim(K, ttl=HOUR), "r1")
    bench.advance(3601)
    claude.claim()
    again = codex.do(c.Claim(K, ttl=HOUR), "r1")
    assert again.task.token == Token(1, 1)
    assert again.current.token == Token(1, 2)


def test_a_request_id_belongs_to_its_actor(bench):
    bench.add()
    bench.agent().do(c.Note(K, note="a"), "r1")
    bench.person().do(c.Note(K, note="b"), "r1")
    assert bench.agent().refused(c.Note(K, note="b"), "r1") == "request_reused"


def test_a_refusal_is_decided_anew_when_repeated(bench):
    bench.add()
    codex, claude = bench.agent(), bench.agent("claude", "s9")
    codex.claim()
    assert claude.refused(c.Claim(K), "r1") == "held"
    codex.do(c.Release(K))
    assert not claude.do(c.Claim(K), "r1").replayed


def test_request_ids_are_kept_for_thirty_days(bench):
    bench.add()
    codex = bench.agent()
    codex.do(c.Note(K, note="a"), "r1")
    bench.advance(30 * 86400)
    assert codex.do(c.Note(K, note="a"), "r1").replayed
    bench.advance(EXPIRES_REQUESTS_EVERY // SECOND)
    codex.do(c.Note(K, note="x"), "r2")
    assert not codex.do(c.Note(K, note="a"), "r1").replayed


def test_the_facts_of_an_event_are_one_line_of_json(busy):
    with busy.store.read() as tx:
        for entry in tx.events():
            assert ledger.canonical(json.loads(entry.facts)) == entry.facts
