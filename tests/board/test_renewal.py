"""What a session holds is renewed before every edit, by the shortest way, which leads where `renew` leads."""

from __future__ import annotations

import pytest

from dibs.board.renewal import held_by, renew
from dibs.domain import commands as c
from dibs.domain.decision import Decision
from dibs.domain.facts import is_plain_renewal
from dibs.domain.model import Session
from dibs.domain.refusals import Refused
from dibs.domain.values import MINUTE
from dibs.storage.errors import BoardMoved
from kit.boards import of_a_file


def hooked(bench, name="codex", session="s1"):
    """As a harness's hook names it: without a place."""
    return bench.agent(name, session).identity.but(place=None)


def sign_of_life(bench, who) -> None:
    renew(bench.board, who, held_by(bench.board, who))


def watched(bench, name="codex", session="s1") -> None:
    """The hooks of a harness report what the session does."""
    with bench.store.write("session") as tx:
        tx.keep_session(Session(tx.actor_named(name).id, session, "testhost", watched=True))
        tx.finish()


def test_only_the_lease_changes_and_the_ledger_says_nothing_of_it(bench):
    bench.add(scope=("src/**",)), bench.add()
    agent = bench.agent()
    agent.claim("T-1", ttl=3 * 60 * MINUTE), agent.claim("T-2")
    before, verbs = bench.task("T-1"), bench.verbs("T-1")
    bench.advance(600)
    sign_of_life(bench, hooked(bench))
    after = bench.task("T-1")
    assert after.lease == before.lease.but(renewed=bench.now(), renewals=1)
    assert after == before.but(lease=after.lease, version=before.version + 1)
    assert after.lease.expires == bench.now() + 3 * 60 * MINUTE
    assert bench.task("T-2").lease.renewals == 1
    assert bench.verbs("T-1") == verbs
    assert bench.faults() == ()


def test_a_lease_that_is_suspected_is_not_after_a_sign_of_life(bench):
    bench.add()
    bench.agent().claim(ttl=MINUTE)
    bench.advance(61)
    bench.agent("other", "s2").do(c.Sweep())
    assert bench.task().lease.suspect is not None
    sign_of_life(bench, hooked(bench))
    assert (bench.task().lease.suspect, bench.verbs()[-1]) == (None, "renewed")


SITUATIONS = {
    # minutes of the lease, seconds since the claim, the session that calls, whether it is watched:
    # whether it is plain, and the event that comes of it
    "at once": (60, 0, "s1", False, True, None),
    "at the last instant": (10, 600, "s1", False, True, None),
    "too late": (10, 600.000001, "s1", False, False, "renewed"),
    "a subagent": (60, 60, "s1/a2", False, True, None),
    "another session": (60, 60, "s2", False, False, None),
    "no silence yet": (60, 900, "s1", True, True, None),
    "a silence of who is watched": (60, 900.000001, "s1", True, False, "renewed"),
    "a silence of who is not watched": (60, 900.000001, "s1", False, False, None),
}


@pytest.mark.parametrize("case", SITUATIONS.values(), ids=SITUATIONS)
def test_the_short_way_is_gone_only_where_the_rules_say_the_same(bench, case):
    minutes, after, session, is_watched, plain, verb = case
    bench.add()
    bench.agent().claim(ttl=minutes * MINUTE)
    if is_watched:
        watched(bench)
    bench.advance(after)
    who, task = hooked(bench, session=session), bench.task()
    plan = bench.board.plan(who, c.Renew("T-1"))
    assert is_plain_renewal(task, plan.facts.caller, bench.now(), plan.facts.rules) is plain
    if plain:
        assert plan.decision == Decision(renews=True)
    verbs = bench.verbs()
    sign_of_life(bench, who)
    assert bench.verbs() == verbs + ([verb] if verb else [])
    own = session.partition("/")[0] == "s1"
    assert bench.task().lease.renewals == int(own)


def test_a_task_that_is_blocked_and_kept_is_renewed_too(bench):
    bench.add()
    agent = bench.agent()
    agent.claim()
    agent.do(c.Block("T-1", reason="waits", keep=True))
    bench.advance(60)
    sign_of_life(bench, hooked(bench))
    assert bench.task().lease.renewed == bench.now()


def test_what_is_out_of_reach_does_not_keep_the_rest_from_being_renewed(bench):
    """Its scope is held by another since it expired."""
    bench.add(scope=("src/**",)), bench.add(), bench.add(scope=("src/a.py",))
    agent = bench.agent()
    agent.claim("T-1", ttl=MINUTE), agent.claim("T-2")
    bench.advance(61)
    bench.agent("other", "s2").claim("T-3")
    sign_of_life(bench, hooked(bench))
    assert bench.task("T-1").lease.renewals == 0
    assert bench.task("T-2").lease.renewed == bench.now()


def test_who_is_not_known_holds_nothing(bench):
    assert held_by(bench.board, hooked(bench, "stranger")) == []
    renew(bench.board, hooked(bench, "stranger"), [])


def test_what_was_taken_meanwhile_is_not_renewed(bench):
    bench.add()
    bench.agent().claim(ttl=MINUTE)
    held = held_by(bench.board, hooked(bench))
    bench.advance(61)
    bench.agent("other", "s2").claim()
    taken = bench.task()
    renew(bench.board, hooked(bench), held)
    assert bench.task() == taken


# The fast path.


def test_the_fast_path_sees_what_every_look_sees(bench):
    bench.add(scope=("src/**",)), bench.add(scope=("docs/**",)), bench.add()
    codex, ana = bench.agent(), bench.person("ana")
    codex.claim("T-1"), codex.claim("T-3")
    bench.agent("claude", "s9").claim("T-2")
    ana.do(c.Allow("T-2", ("docs/a",), to="codex", span=15 * MINUTE, reason="hotfix"))
    ana.do(c.Force("T-3", reason="urgent"))

    def seen(tx):
        actor = tx.actor_named("Codex")
        return (
            actor, tx.actor_named("nobody"), tx.actors(), tx.tasks_held_by(actor.id, "s1"),
            tx.tasks_lost_by(actor.id, "s1"), tx.held_scopes(), tx.allowances(), tx.now,
        )  # fmt: skip

    with bench.board.read() as tx:
        whole = seen(tx)
    with bench.board.read_fast() as tx:
        assert seen(tx) == whole
    assert all(whole[place] for place in (0, 2, 3, 4, 5, 6, 7))


@of_a_file
def test_a_board_that_is_elsewhere_is_not_looked_at_here(bench):
    from dibs.storage.sqlite.fast_path import FastReadContext

    with bench.store.write("move") as tx:
        tx.fence("/elsewhere", "word")
        tx.finish()
    with pytest.raises(BoardMoved), FastReadContext(bench.store):
        pass


@of_a_file
def test_a_claim_after_a_renewal_waits_for_the_disk_as_ever(bench):
    """A renewal does not, and leaves the connection as it was; also one that fails."""
    from dibs.storage.sqlite.fast_path import FastRenewalContext

    bench.add()
    bench.agent().claim()
    with FastRenewalContext(bench.store, "renew") as tx:
        assert bench.store.connection.pragma("synchronous") == 1
        tx.finish()
    assert bench.store.connection.pragma("synchronous") == 2
    with pytest.raises(Refused), FastRenewalContext(bench.store, "renew") as tx:
        tx.renew(bench_task(tx).but(version=99))
    assert bench.store.connection.pragma("synchronous") == 2
    assert bench.task().lease.renewals == 0


def bench_task(tx):
    return tx.tasks_held_by(tx.actor_named("codex").id, "s1")[0]


@of_a_file
def test_a_renewal_after_a_boot_keeps_the_clock_of_that_boot(bench):
    bench.add()
    bench.agent().claim(ttl=60 * MINUTE)
    bench.machine.reboot()
    sign_of_life(bench, hooked(bench))
    now = bench.now()
    bench.advance(1)
    assert bench.now() == now + 1_000_000
    assert bench.store.board_and_anchor()[1].boot == bench.machine.boot()
