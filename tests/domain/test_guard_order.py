"""The order of guards is the documented one: with everything wrong, the first refusal is named;
with that put right, the next; until nothing is wrong.
"""

from __future__ import annotations

import pytest

from dibs.domain import commands as c
from dibs.domain import facts as f
from dibs.domain.decide import decide
from dibs.domain.facts import Rules, ScopeReservation, Stints
from dibs.domain.model import (
    Actor,
    Approval,
    Caller,
    EndedLease,
    EndedStint,
    ItemSnapshot,
    KeptProcess,
    Lease,
    LeaseProcess,
    Process,
    Session,
    Task,
    TaskKey,
    Terms,
    Token,
)
from dibs.domain.stints import WorkedStint
from dibs.domain.verbs import VERBS, commands

K = TaskKey("T-1")
NOW = 10_000_000_000
HOUR = 3_600_000_000

CODEX = Actor(1, "codex", "agent")
OTHER = Actor(2, "other", "agent")
ANA = Actor(3, "ana", "human")
ABLE = CODEX.but(tier=9, capabilities=("rust",))
EVERYBODY = {1: CODEX, 2: OTHER, 3: ANA}

STRICT_TERMS = Terms("t", audience="human", tier=9, capabilities=("rust",), constraints=("edit",))
EASY = Terms("t")
OTHERS_LEASE = Lease(2, "s2", NOW, NOW, HOUR)
OWN_LEASE = Lease(1, "s1", NOW, NOW, HOUR)
UNBOUND = Lease(1, None, NOW, NOW, HOUR)
FORMER = EndedLease(Token(1, 2), 1, "s1", NOW, NOW, NOW, 0, NOW, "takeover", lost=True)

ANAS = Lease(3, "", NOW - 3, NOW, HOUR, stint=NOW - 3)
STINT = EndedStint(7, 3, NOW - 10, NOW - 10, "claim")
STINTS = Stints((STINT, EndedStint(8, 3, NOW - 9, NOW - 5, "claim")), STINT, 9)

RIVAL = ScopeReservation(7, TaskKey("T-7"), 2, "s2", NOW + HOUR, ("src/**",))

RUN = LeaseProcess(Process("boot", "pid:[1]", 100, 7), runs=True)
RUNNING = KeptProcess(Token(1, 3), LeaseProcess(RUN.process.but(pid=99), runs=True), 1, "s1")

CLOSED = ((Approval(5, 3, 0, NOW, "UTC", "a week", 0, 0, 0, "")),)
APPROVAL = Approval(5, 1, 0, NOW - 1, "UTC", "a week", 0, 0, 0, "")

WORST = Task(
    1, "u", K, STRICT_TERMS, 0, 0, 3, state="complete", token=Token(1, 3), lease=OTHERS_LEASE,
    assignee=3, author=1, parked_by=3, waits_on=1,
    item=ItemSnapshot("Proposed", gate="its plan is not approved", locked="old since yesterday"),
)  # fmt: skip


EASY_TASK = WORST.but(terms=EASY)


KINDS = {
    "task": f.TaskFacts, "claim": f.ClaimFacts, "depend": f.DependFacts, "drop": f.DropFacts, "redact": f.RedactFacts,
    "retry": f.RetryFacts, "reset": f.ResetFacts, "sweep": f.SweepFacts, "next": f.NextFacts, "add": f.AddFacts,
    "intake": f.IntakeFacts, "sync": f.SyncFacts, "stint": f.StintFacts, "approval": f.ApprovalFacts,
    "actor": f.ActorFacts, "clock": f.ClockFacts, "board": f.BoardFacts, "epoch": f.EpochFacts,
    "session": f.SessionFacts,
}  # fmt: skip


def offer(**changes):
    """What `next` may find: the facts of a claim of a task that is free, but for the changes."""
    task = Task(1, "u", K, EASY, 0, 0, 3, **changes)
    caller = Caller(CODEX, "s1")
    return f.ClaimFacts(caller, Rules(), 1, c.Claim(K), NOW, EVERYBODY, is_plan=False, task=task)


class Situation:
    """Facts and a command, put right one thing at a time."""

    def __init__(self, command, **facts) -> None:
        given = {
            "caller": Caller(CODEX, "s1/sub", behind=RUN),
            "processes": (RUNNING,),
            "lives": {RUNNING.behind.process: True},
            "task": WORST,
            "actors": EVERYBODY,
            "former": FORMER,
            "causes": {"T-9": "open"},
            "rivals": (RIVAL,),
        }
        kind = KINDS[command.spec.facts]
        wanted = {name: value for name, value in (given | facts).items() if name in kind.fields}
        basis = {"rules": Rules(), "epoch": 1, "now": NOW, "is_plan": False}
        self.facts = kind(command=command, **basis, **wanted)

    def code(self):
        refusal = decide(self.facts).refusal
        return refusal and refusal.code

    def task(self, **changes) -> None:
        self.facts = self.facts.but(task=self.facts.task.but(**changes))

    def terms(self, **changes) -> None:
        self.task(terms=self.facts.task.terms.but(**changes))

    def fact(self, **changes) -> None:
        self.facts = self.facts.but(**changes)

    def option(self, **changes) -> None:
        self.fact(command=self.facts.command.but(**changes))


def unlocked(situation: Situation) -> None:
    situation.task(item=situation.facts.task.item.but(locked=""))


GATES = [
    ("waits", lambda s: s.task(waits_on=0)),
    ("gate_not_met", lambda s: s.task(item=None)),
    ("wrong_kind", lambda s: s.terms(audience="any")),
    ("tier_too_low", lambda s: s.terms(tier=1)),
    ("capability_missing", lambda s: s.terms(capabilities=())),
    ("parked", lambda s: s.task(parked_by=None)),
    ("assigned_to_another", lambda s: s.task(assignee=None)),
    ("scope_held", lambda s: s.fact(rivals=())),
]
TO_CLAIM = [
    ("final", lambda s: s.task(state="review")),
    ("wrong_state", lambda s: s.task(state="open")),
    ("already_running", lambda s: s.fact(processes=())),
    ("held", lambda s: s.task(lease=None)),
    ("locked_in_file", unlocked),
    *GATES,
]
TO_HOLD = [
    ("parent_only", lambda s: s.fact(caller=Caller(CODEX, "s1"))),
    ("token_ahead", lambda s: s.option(token=Token(1, 2))),
    ("lease_lost", lambda s: s.option(token=Token(1, 3))),
    ("lease_lost", lambda s: s.fact(former=None)),
    ("final", lambda s: s.task(state="failed")),
    ("wrong_state", lambda s: s.task(state="in_progress")),
    ("held", lambda s: s.task(lease=UNBOUND)),
    ("not_bound", lambda s: s.task(lease=None)),
]
AHEAD = Token(2, 1)


def not_held(situation: Situation) -> None:
    situation.task(lease=OWN_LEASE)


def forget_token(situation: Situation) -> None:
    situation.option(token=None)


HELD_BY_NOBODY = [("lease_lost", forget_token), ("not_held", not_held)]

CASES = {
    "claim": (c.Claim(K), TO_CLAIM),
    "start": (c.Start(K), TO_CLAIM),
    "takeover": (c.Takeover(K), TO_CLAIM),
    "force": (
        c.Force(K),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA.but(tier=1), "", "CLAUDECODE"))),
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="stuck")),
            ("final", lambda s: s.task(state="failed")),
            (
                "wrong_state",
                lambda s: (s.task(state="open", item=None), s.terms(audience="agent")),
            ),
            GATES[0],
            *GATES[2:6],
            GATES[7],
        ],
    ),
    "assign": (
        c.Assign(K, to="codex"),
        [
            ("unknown_actor", lambda s: s.fact(receiver=CODEX)),
            *(step for step in TO_CLAIM if step[0] != "already_running"),
        ],
    ),
    "handoff": (
        c.Handoff(K, token=AHEAD, to="codex"),
        [
            *TO_HOLD,
            *HELD_BY_NOBODY,
            ("unknown_actor", lambda s: s.fact(receiver=OTHER)),
            *GATES,
        ],
    ),
    "renew": (c.Renew(K, token=AHEAD), [*TO_HOLD[1:], *HELD_BY_NOBODY]),
    "stop": (c.Stop(K, token=AHEAD), [*TO_HOLD, *HELD_BY_NOBODY]),
    "submit": (c.Submit(K, token=AHEAD), [*TO_HOLD, *HELD_BY_NOBODY]),
    "complete": (
        c.Complete(K, token=AHEAD),
        [*TO_HOLD, *HELD_BY_NOBODY, ("not_allowed", lambda s: s.terms(constraints=("complete",)))],
    ),
    "fail": (
        c.Fail(K, token=AHEAD),
        [*TO_HOLD, *HELD_BY_NOBODY, ("reason_missing", lambda s: s.option(reason="no luck"))],
    ),
    "block": (
        c.Block(K, token=AHEAD),
        [
            *TO_HOLD,
            ("lease_lost", forget_token),
            ("reason_missing", lambda s: s.option(reason="waits")),
        ],
    ),
    "release": (
        c.Release(K, token=AHEAD),
        [
            ("parent_only", lambda s: s.fact(caller=Caller(CODEX, "s1"))),
            ("token_ahead", lambda s: s.option(token=Token(1, 2))),
            ("lease_lost", lambda s: (forget_token(s), s.fact(former=None))),
            ("held", lambda s: s.task(lease=None)),
        ],
    ),
    "unblock": (
        c.Unblock(K),
        [
            ("final", lambda s: s.task(state="open")),
            ("wrong_state", lambda s: s.task(state="blocked")),
            ("held", lambda s: s.task(lease=None)),
        ],
    ),
    "accept": (
        c.Accept(K),
        [
            ("final", lambda s: s.task(state="open")),
            ("wrong_state", lambda s: s.task(state="review")),
            ("own_review", lambda s: s.task(author=2)),
        ],
    ),
    "reject": (
        c.Reject(K),
        [
            ("final", lambda s: s.task(state="open")),
            ("wrong_state", lambda s: s.task(state="review")),
            ("reason_missing", lambda s: s.option(reason="not yet")),
        ],
    ),
    "drop": (
        c.Drop(K, token=AHEAD),
        [
            ("token_ahead", lambda s: s.option(token=Token(1, 2))),
            ("lease_lost", forget_token),
            ("final", lambda s: s.task(state="open")),
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.task(lease=OWN_LEASE.but(actor=3, session=""))),
            ("not_allowed", lambda s: s.terms(constraints=())),
        ],
    ),
    "unassign": (
        c.Unassign(K),
        [
            ("final", lambda s: s.task(state="open")),
            ("bound", lambda s: s.task(lease=None, assignee=None)),
            ("not_assigned", lambda s: s.task(lease=OTHERS_LEASE.but(session=None))),
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="changed my mind")),
        ],
    ),
    "depend": (
        c.Depend(K, token=AHEAD, on=("T-9",)),
        [
            ("token_ahead", lambda s: s.option(token=Token(1, 2))),
            ("lease_lost", forget_token),
            ("final", lambda s: s.task(state="open")),
            ("held", lambda s: (s.task(lease=None), s.fact(cycle=(K, "T-9", K)))),
            ("file_says_it", lambda s: s.task(item=None)),
            ("cycle", lambda s: s.fact(cycle=(), causes={f"T-{n}": "open" for n in range(1001)})),
            ("bad_argument", lambda s: s.fact(causes={"T-9": "open"}, on=("T-9",))),
        ],
    ),
    "next": (
        c.Next(most=2),
        [
            ("paused", lambda s: s.fact(paused="")),
            ("at_limit", lambda s: s.fact(held=1)),
            ("nothing_ready", lambda s: s.fact(offers=(offer(parked_by=3), offer()))),
        ],
    ),
    "retry": (
        c.Retry(K, force=True),
        [
            ("final", lambda s: s.task(state="blocked")),
            ("wrong_state", lambda s: s.task(state="in_progress", attempts=3)),
            ("held", lambda s: s.task(lease=None, state="failed")),
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(force=False)),
            ("used_up", lambda s: s.task(attempts=2)),
        ],
    ),
    "reset": (
        c.Reset((K,), to="codex"),
        [
            ("unknown_actor", lambda s: s.fact(receiver=CODEX, many=(WORST, EASY_TASK.but(id=2)))),
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="begin anew")),
            ("unconfirmed", lambda s: s.option(yes=True)),
            ("wrong_kind", lambda s: s.fact(many=(EASY_TASK,), targets=(EASY_TASK,))),
            ("scope_held", lambda s: s.fact(rivals=())),
        ],
    ),
    "add_stint": (
        c.AddStint(K, NOW + 20, NOW + 10, actor="ana"),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="forgotten")),
            ("unknown_actor", lambda s: s.fact(receiver=ANA)),
            ("bad_period", lambda s: s.option(ended=NOW + 20)),
            ("bad_period", lambda s: s.option(started=NOW - 10)),
            ("bad_period", lambda s: s.option(ended=NOW)),
            ("stint_overlaps", lambda s: s.option(started=NOW - 5)),
            ("stint_overlaps", lambda s: s.task(lease=None)),
            ("approved", lambda s: s.fact(approved=())),
            ("unconfirmed", lambda s: s.option(yes=True)),
        ],
    ),
    "amend_stint": (
        c.AmendStint(7),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="forgotten")),
            ("already_amended", lambda s: s.fact(stints=STINTS.but(replaced_by=None))),
            ("bad_argument", lambda s: s.option(ended=NOW - 11)),
            ("bad_period", lambda s: s.option(ended=NOW + 1)),
            ("bad_period", lambda s: s.option(ended=NOW)),
            ("stint_overlaps", lambda s: s.option(started=NOW - 5)),
            ("stint_overlaps", lambda s: s.task(lease=None)),
            ("approved", lambda s: s.fact(approved=())),
            ("unconfirmed", lambda s: s.option(yes=True)),
        ],
    ),
    "report_usage": (
        c.ReportUsage(7, 1, 1, "actual"),
        [
            ("not_your_stint", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("already_amended", lambda s: s.fact(stints=STINTS.but(replaced_by=None))),
        ],
    ),
    "sweep": (c.Sweep(), []),
    "sync": (c.Sync(()), []),
    "intake": (
        c.Intake((c.Add(EASY.but(charge_code="ACME-1")),)),
        [("bad_charge_code", lambda s: s.fact(rules=Rules(charge_codes=("ACME-1",))))],
    ),
    "pause": (c.Pause(), []),
    "resume": (c.Resume(), []),
    "park": (c.Park(K), [("final", lambda s: s.task(state="open"))]),
    "unpark": (
        c.Unpark(K),
        [
            ("final", lambda s: s.task(state="open")),
            ("not_yours_to_unpark", lambda s: s.task(parked_by=1)),
        ],
    ),
    "edit": (
        c.Edit(K, token=AHEAD, title="x", charge_code="ACME-1"),
        [
            ("token_ahead", lambda s: s.option(token=Token(1, 2))),
            ("lease_lost", forget_token),
            ("final", lambda s: s.task(state="open")),
            ("held", lambda s: (s.task(lease=None), s.option(tier=1))),
            ("people_only", lambda s: s.task(creator=1)),
            ("file_says_it", lambda s: s.task(item=None)),
            ("bad_charge_code", lambda s: s.fact(rules=Rules(charge_codes=("ACME-1",)))),
        ],
    ),
    "scope": (
        c.Scope(K, token=AHEAD, add=("a",)),
        [
            ("token_ahead", lambda s: s.option(token=Token(1, 2))),
            ("lease_lost", forget_token),
            ("final", lambda s: s.task(state="open")),
            ("held", lambda s: s.task(lease=None)),
        ],
    ),
    "allow": (
        c.Allow(K, ("src/a",), to="nobody", span=60_000_000),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="a hotfix")),
            ("unknown_actor", lambda s: s.fact(receiver=ANA)),
            ("final", lambda s: s.task(state="review")),
            ("wrong_state", lambda s: s.task(state="open", lease=None)),
            ("not_held", lambda s: s.task(lease=OTHERS_LEASE)),
        ],
    ),
    "add": (
        c.Add(EASY.but(charge_code="ACME-1"), key=K),
        [
            ("bad_charge_code", lambda s: s.fact(rules=Rules(charge_codes=("ACME-1",)))),
            ("key_taken", lambda s: s.fact(key_is_taken=False)),
        ],
    ),
    "note": (c.Note(K, note="x"), []),
    "redact": (
        c.Redact(K, 7),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="a secret")),
            ("unknown_note", lambda s: s.fact(noted="text")),
        ],
    ),
    "set_actor": (
        c.SetActor("dora"),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("unknown_actor", lambda s: (s.fact(known=CODEX), s.option(kind="human"))),
            ("kind_is_fixed", lambda s: (s.option(kind="service"), s.fact(taken={"dora": OTHER}))),
            ("name_taken", lambda s: s.fact(taken={})),
        ],
    ),
    "approve": (
        c.Approve("codex", 0, NOW + 1, "UTC", "a week"),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("unknown_actor", lambda s: s.fact(receiver=ANA)),
            ("own_timesheet", lambda s: s.fact(receiver=CODEX)),
            ("period_not_over", lambda s: s.option(until=NOW)),
            ("stint_open", lambda s: s.fact(stints=())),
            ("approved", lambda s: s.fact(approved=())),
        ],
    ),
    "reopen": (
        c.Reopen("codex", 0, NOW, "a week"),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="a mistake")),
            ("unknown_actor", lambda s: s.fact(receiver=CODEX)),
            ("not_approved", lambda s: s.fact(approved=(APPROVAL.but(until=NOW),))),
        ],
    ),
    "set_settings": (
        c.SetSettings(),
        [("people_only", lambda s: s.fact(caller=Caller(ANA, "")))],
    ),
    "move_board": (
        c.MoveBoard(),
        [("people_only", lambda s: s.fact(caller=Caller(ANA, "")))],
    ),
    "restore_board": (
        c.RestoreBoard(),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="a mistake")),
        ],
    ),
    "register_session": (c.RegisterSession(Session(0, "")), []),
    "end_session": (c.EndSession(), []),
    "set_background": (c.SetBackground(running=True), []),
    "begin_epoch": (c.BeginEpoch("promotion"), []),
    "set_clock": (
        c.SetClock(),
        [
            ("people_only", lambda s: s.fact(caller=Caller(ANA, ""))),
            ("reason_missing", lambda s: s.option(reason="battery")),
        ],
    ),
}


EXTRA = {
    "add": {"key_is_taken": True, "task": None},
    "next": {"paused": "ana", "held": 2, "offers": (offer(parked_by=3),)},
    "report_usage": {"stints": STINTS},
    "reset": {"targets": (WORST,)},
    "amend_stint": {"stints": STINTS, "task": WORST.but(lease=ANAS), "approved": CLOSED},
    "add_stint": {"stints": STINTS, "task": WORST.but(lease=ANAS), "approved": CLOSED},
    "approve": {
        "stints": (WorkedStint(1, 5, NOW, K, source="open"),),
        "approved": (APPROVAL,),
    },
    "reopen": {"approved": (APPROVAL,)},
}


@pytest.mark.parametrize("verb", sorted(spec.name for spec in commands()))
def test_the_first_guard_that_fails_is_the_refusal(verb):
    command, steps = CASES[verb]
    extra = EXTRA.get(verb, {})
    situation = Situation(command, **extra)
    for code, put_right in steps:
        assert situation.code() == code
        put_right(situation)
    assert situation.code() is None


def test_every_verb_has_an_order_and_every_order_a_test():
    assert set(CASES) == {spec.name for spec in commands()}


@pytest.mark.parametrize("verb", sorted(spec.name for spec in VERBS.values() if spec.own_guards))
def test_the_callers_own_lease_goes_on_before_all_gates(verb):
    """Parked, for people only, tier too low: who holds it already is asked none of that.

    But it is not started before what it waits for is complete, and its file lets it begin.
    """
    command, _ = CASES[verb]
    holder = Caller(ANA, "") if verb == "force" else Caller(CODEX, "s1")
    lease = OWN_LEASE.but(actor=holder.actor.id, session=holder.session)
    situation = Situation(command, caller=holder, former=None)
    situation.task(state="open", lease=lease)
    assert situation.code() == ("reason_missing" if verb == "force" else "waits")
    situation.task(waits_on=0)
    if verb == "force":
        assert situation.code() == "reason_missing"
        situation.option(reason="mine")
    else:
        assert situation.code() == "gate_not_met"
        situation.task(item=situation.facts.task.item.but(gate=""))
    assert situation.code() is None


@pytest.mark.parametrize(
    ("lives", "token", "ago", "runs_on"),
    [
        (True, Token(1, 3), 0, True),
        (True, Token(1, 3), 2 * HOUR, True),
        (True, Token(1, 2), 0, True),
        (False, Token(1, 3), 0, False),
        (None, Token(1, 3), 0, True),
        (None, Token(1, 3), 2 * HOUR, False),
        (None, Token(1, 2), 0, False),
    ],
)
def test_a_run_is_on_while_it_lives_or_where_that_cannot_be_seen_while_its_lease_does(
    lives, token, ago, runs_on
):
    kept = RUNNING.but(token=token)
    situation = Situation(
        c.Claim(K),
        caller=Caller(CODEX, "s1", behind=RUN),
        processes=(kept,),
        lives={kept.behind.process: lives},
        rivals=(),
    )
    lease = OWN_LEASE.but(acquired=NOW - ago, renewed=NOW - ago)
    situation.task(state="in_progress", lease=lease, item=None, waits_on=0)
    assert situation.code() == ("already_running" if runs_on else None)
    situation.fact(caller=Caller(CODEX, "s1"))
    assert situation.code() is None, "who states no process only renews"
    situation.fact(caller=Caller(CODEX, "s1", behind=kept.behind))
    assert situation.code() is None, "it is the run itself"


def test_what_a_file_says_that_it_waits_for_is_a_gate_that_force_breaks():
    """The ready gate of a backlog; but dependencies in dibs itself still count."""
    situation = Situation(c.Force(K, reason="hotfix"), caller=Caller(ANA, ""), rivals=())
    situation.task(state="open", terms=EASY, parked_by=None)
    assert situation.code() is None
    situation.task(item=None)
    assert situation.code() == "waits"


def test_a_lock_in_the_file_binds_all_but_its_own_session():
    situation = Situation(c.Claim(K), caller=Caller(CODEX, "s1"), rivals=(), former=None)
    situation.task(
        state="open", terms=EASY, parked_by=None, assignee=None, waits_on=0, lease=None,
        item=ItemSnapshot("pending", locked="s2 since yesterday"),
    )  # fmt: skip
    assert situation.code() == "locked_in_file"
    situation.task(item=ItemSnapshot("pending", locked="s1 since yesterday"))
    assert situation.code() is None
