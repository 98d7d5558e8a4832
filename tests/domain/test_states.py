"""The state table: every cell of it, for the holder, for a stranger, and where nobody holds."""

from __future__ import annotations

import pytest

from dibs.domain import commands as c
from dibs.domain.model import STATES, TaskKey
from dibs.domain.verbs import commands

K = TaskKey("T-1")

COMMANDS = {
    "claim": c.Claim(K),
    "start": c.Start(K),
    "takeover": c.Takeover(K),
    "renew": c.Renew(K),
    "stop": c.Stop(K),
    "release": c.Release(K),
    "handoff": c.Handoff(K, to="dora"),
    "block": c.Block(K, reason="waits"),
    "submit": c.Submit(K, note="please look"),
    "complete": c.Complete(K, note="done"),
    "fail": c.Fail(K, reason="no luck"),
    "assign": c.Assign(K, to="dora"),
    "unassign": c.Unassign(K, reason="why not"),
    "unblock": c.Unblock(K),
    "accept": c.Accept(K),
    "reject": c.Reject(K, reason="not yet"),
    "drop": c.Drop(K, reason="not wanted"),
    "park": c.Park(K),
    "unpark": c.Unpark(K),
    "edit": c.Edit(K, title="other"),
    "scope": c.Scope(K, add=("src/**",)),
    "allow": c.Allow(K, ("src/a",), "dora", 60_000_000, "a hotfix"),
    "note": c.Note(K, note="look here"),
    "redact": c.Redact(K, 1, "a secret"),
    "depend": c.Depend(K, on=(TaskKey("T-2"),)),
    "retry": c.Retry(K),
    "reset": c.Reset((K,)),
    "sweep": c.Sweep(),
}

HOLDER = """
           open         in_progress  blocked      review       failed       complete  dropped
claim      in_progress  in_progress  wrong_state  wrong_state  wrong_state  final     final
start      in_progress  in_progress  wrong_state  wrong_state  wrong_state  final     final
takeover   in_progress  in_progress  wrong_state  wrong_state  wrong_state  final     final
renew      open         in_progress  blocked      lease_lost   lease_lost   lease_lost lease_lost
stop       wrong_state  in_progress  wrong_state  lease_lost   lease_lost   lease_lost lease_lost
release    open         open         blocked      review       failed       complete  dropped
handoff    open         in_progress  wrong_state  lease_lost   lease_lost   lease_lost lease_lost
block      blocked      blocked      wrong_state  lease_lost   lease_lost   lease_lost lease_lost
submit     review       review       wrong_state  review       lease_lost   lease_lost lease_lost
complete   complete     complete     wrong_state  lease_lost   lease_lost   complete  lease_lost
fail       failed       failed       wrong_state  lease_lost   failed       lease_lost lease_lost
assign     held         held         wrong_state  wrong_state  wrong_state  final     final
unassign   bound        bound        bound        not_assigned not_assigned final     final
unblock    wrong_state  wrong_state  open         wrong_state  wrong_state  final     final
accept     wrong_state  wrong_state  wrong_state  own_review   wrong_state  final     final
reject     wrong_state  wrong_state  wrong_state  open         wrong_state  final     final
drop       dropped      dropped      dropped      dropped      dropped      final     dropped
park       open         in_progress  blocked      review       failed       final     final
unpark     open         in_progress  blocked      review       failed       final     final
edit       open         in_progress  blocked      review       failed       final     final
scope      open         in_progress  blocked      review       failed       final     final
allow      people_only  people_only  people_only  people_only  people_only  people_only  people_only
note       open         in_progress  blocked      review       failed       complete  dropped
redact     people_only  people_only  people_only  people_only  people_only  people_only  people_only
depend     open         in_progress  blocked      review       failed       final     final
retry      held         held         wrong_state  wrong_state  open         final     final
reset      open         open         open         open         open         open      open
sweep      open         in_progress  blocked      review       failed       complete  dropped
"""

STRANGER = """
           open         in_progress  blocked      review       failed       complete  dropped
claim      held         held         wrong_state  wrong_state  wrong_state  final     final
start      held         held         wrong_state  wrong_state  wrong_state  final     final
takeover   held         held         wrong_state  wrong_state  wrong_state  final     final
renew      held         held         held         wrong_state  wrong_state  final     final
stop       wrong_state  held         wrong_state  wrong_state  wrong_state  final     final
release    held         held         held         review       failed       complete  dropped
handoff    held         held         wrong_state  wrong_state  wrong_state  final     final
block      held         held         wrong_state  wrong_state  wrong_state  final     final
submit     held         held         wrong_state  wrong_state  wrong_state  final     final
complete   held         held         wrong_state  wrong_state  wrong_state  final     final
fail       held         held         wrong_state  wrong_state  wrong_state  final     final
assign     held         held         wrong_state  wrong_state  wrong_state  final     final
unassign   bound        bound        bound        not_assigned not_assigned final     final
unblock    wrong_state  wrong_state  held         wrong_state  wrong_state  final     final
accept     wrong_state  wrong_state  wrong_state  complete     wrong_state  final     final
reject     wrong_state  wrong_state  wrong_state  open         wrong_state  final     final
drop       people_only  people_only  people_only  dropped      dropped      final     final
park       open         in_progress  blocked      review       failed       final     final
unpark     open         in_progress  blocked      review       failed       final     final
edit       held         held         held         review       failed       final     final
scope      held         held         held         review       failed       final     final
allow      people_only  people_only  people_only  people_only  people_only  people_only  people_only
note       open         in_progress  blocked      review       failed       complete  dropped
redact     people_only  people_only  people_only  people_only  people_only  people_only  people_only
depend     held         held         held         review       failed       final     final
retry      held         held         wrong_state  wrong_state  open         final     final
reset      people_only  people_only  people_only  open         open         open      open
sweep      open         in_progress  blocked      review       failed       complete  dropped
"""

FREE = """
           open         blocked
claim      in_progress  wrong_state
start      in_progress  wrong_state
takeover   in_progress  wrong_state
renew      not_held     not_held
stop       wrong_state  wrong_state
release    open         blocked
handoff    not_held     wrong_state
block      blocked      wrong_state
submit     not_held     wrong_state
complete   not_held     wrong_state
fail       not_held     wrong_state
assign     open         wrong_state
unassign   not_assigned not_assigned
unblock    wrong_state  open
accept     wrong_state  wrong_state
reject     wrong_state  wrong_state
drop       dropped      dropped
park       open         blocked
unpark     open         blocked
edit       open         blocked
scope      open         blocked
allow      people_only  people_only
note       open         blocked
redact     people_only  people_only
depend     open         blocked
retry      open         wrong_state
reset      open         open
sweep      open         blocked
"""


def cells(table: str):
    head, *rows = [line.split() for line in table.strip().splitlines()]
    return [
        pytest.param(verb, state, expected, id=f"{verb}-{state}")
        for verb, *row in rows
        for state, expected in zip(head, row, strict=True)
    ]


def bring_to(bench, state: str, actor) -> None:
    """A task that `actor` held, in this state; in the first three it holds it still."""
    bench.person("dora").do(c.Add(bench.terms("other")))
    actor.do(c.Claim(K, reserve=True))
    steps = {
        "open": (),
        "in_progress": (c.Start(K),),
        "blocked": (c.Block(K, reason="waits", keep=True),),
        "review": (c.Submit(K),),
        "failed": (c.Fail(K, reason="no luck"),),
        "complete": (c.Complete(K),),
        "dropped": (c.Drop(K),),
    }
    for step in steps[state]:
        actor.do(step)
    assert bench.task().state == state


def does(bench, actor, verb: str, expected: str) -> None:
    before = bench.snapshot()
    if expected in STATES:
        actor.do(COMMANDS[verb])
        assert bench.task().state == expected
    else:
        assert actor.refused(COMMANDS[verb]) == expected
        if expected != "lease_lost" or verb not in ("complete", "submit", "fail", "block"):
            assert bench.snapshot() == before
    assert bench.faults() == ()


@pytest.mark.parametrize(("verb", "state", "expected"), cells(HOLDER))
def test_every_cell_of_the_table_for_the_holder(bench, verb, state, expected):
    bench.add()
    codex = bench.agent("codex", "s1")
    bring_to(bench, state, codex)
    does(bench, codex, verb, expected)


@pytest.mark.parametrize(("verb", "state", "expected"), cells(STRANGER))
def test_every_cell_of_the_table_for_a_stranger(bench, verb, state, expected):
    bench.add()
    bring_to(bench, state, bench.agent("codex", "s1"))
    does(bench, bench.agent("claude", "s9"), verb, expected)


@pytest.mark.parametrize(("verb", "state", "expected"), cells(FREE))
def test_every_cell_of_the_table_where_nobody_holds(bench, verb, state, expected):
    bench.add()
    dora = bench.person("dora")
    dora.do(c.Add(bench.terms("other")))
    if state == "blocked":
        dora.do(c.Block(K, reason="waits"))
    does(bench, bench.agent("claude", "s9"), verb, expected)


def test_the_tables_above_cover_every_verb_that_moves_a_task():
    tested = {line.split()[0] for line in HOLDER.strip().splitlines()[1:]}
    assert tested == {spec.name for spec in commands() if spec.target} - {"force"}
    assert tested == set(COMMANDS)
