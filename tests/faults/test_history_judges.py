"""The judges themselves: histories of which everybody can see whether they are right."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kit.history import Answer, Operation, ledger_faults, violation
from kit.workshop import lines_of, two_at_once

TTL = 1_000


def op(when, session, verb, answer, stated=None):
    """`when` is (asked, answered); an answer is a code, None, or the parts of an `Answer`."""
    if isinstance(answer, tuple):
        token, holder, *rest = answer
        seqs = rest[1] if len(rest) > 1 else ()
        answer = Answer(token, holder, final=verb == "complete", renewals=rest[0], seqs=seqs)
    request = f"{session} {verb} at {when[0]}"
    ms = 1_000_000
    return Operation(
        session, "T-1", verb, stated, TTL * ms, request, when[0] * ms, when[1] * ms, answer
    )


def swept(when, token, *, dead=False, failed=False):
    """A sweep by somebody else ended this lease. The grace is as long as the lease."""
    return replace(
        op(when, "person", "sweep", (token, None, 0), stated=token),
        dead=dead,
        answer=Answer(token, None, final=False, renewals=0, failed=failed),
    )


def failed(when, session, token):
    answer = Answer(token, None, final=False, renewals=0, failed=True)
    return replace(op(when, session, "fail", None, stated=token), answer=answer)


CLAIM_A = op((0, 10), "a", "claim", (1, "a", 0))

RIGHT = {
    "one after the other": [
        CLAIM_A,
        op((20, 30), "b", "claim", "held"),
        op((40, 50), "a", "release", (1, None, 0)),
        op((60, 70), "b", "claim", (2, "b", 0)),
        op((80, 90), "b", "complete", (2, None, 0)),
        op((95, 99), "a", "claim", "final"),
    ],
    "a release that is given again": [
        CLAIM_A,
        op((20, 30), "a", "release", (1, None, 0), stated=1),
        op((40, 50), "a", "release", (1, None, 0), stated=1),
    ],
    "two at once, either may win": [
        op((0, 10), "a", "claim", "held"),
        op((0, 10), "b", "claim", (1, "b", 0)),
    ],
    "a takeover after the lease ran out": [
        CLAIM_A,
        op((1011, 1020), "b", "takeover", (2, "b", 0)),
        op((1030, 1040), "a", "renew", "lease_lost", stated=1),
    ],
    "near the expiry both answers are right": [
        CLAIM_A,
        op((1004, 1005), "b", "takeover", "held"),
        op((1006, 1007), "b", "takeover", (2, "b", 0)),
    ],
    "a cut claim that was done": [
        op((0, 10), "a", "claim", None),
        op((20, 30), "b", "claim", "held"),
    ],
    "a cut claim that was not done": [
        op((0, 10), "a", "claim", None),
        op((20, 30), "b", "claim", (1, "b", 0)),
    ],
    "a cut release that was done, seen while it was going on": [
        CLAIM_A,
        op((20, 90), "a", "release", None),
        op((30, 40), "b", "claim", "held"),
        op((50, 60), "b", "claim", (2, "b", 0)),
    ],
    "an operation that lasts longest takes place last": [
        op((0, 100), "b", "claim", (2, "b", 0)),
        op((10, 20), "a", "claim", (1, "a", 0)),
        op((30, 40), "a", "release", (1, None, 0)),
    ],
    "a late verb of a holder whom nobody replaced": [
        CLAIM_A,
        op((5000, 5010), "a", "renew", (1, "a", 1)),
    ],
    "a former holder gives back what it has not, and nothing changes": [
        CLAIM_A,
        op((1100, 1110), "b", "takeover", (2, "b", 0)),
        op((1200, 1210), "a", "release", (2, "b", 0)),
        op((1300, 1310), "b", "renew", (2, "b", 1)),
    ],
    "a zombie that states no token": [
        CLAIM_A,
        op((1100, 1110), "b", "takeover", (2, "b", 0)),
        op((1200, 1210), "a", "complete", "lease_lost"),
    ],
    "a token that was never given": [CLAIM_A, op((20, 30), "a", "renew", "token_ahead", stated=2)],
    "strangers": [
        op((0, 10), "b", "renew", "not_held"),
        op((20, 30), "a", "claim", (1, "a", 0)),
        op((40, 50), "b", "renew", "held"),
        op((60, 70), "b", "release", "held"),
        op((80, 90), "a", "complete", (1, None, 0)),
        op((95, 99), "b", "complete", "final"),
    ],
    "told to try again": [CLAIM_A, op((20, 30), "b", "claim", "busy")],
    "swept a grace after the lease ran out": [
        CLAIM_A,
        swept((2011, 2020), 1),
        op((2030, 2040), "b", "claim", (2, "b", 0)),
        op((2050, 2060), "a", "complete", "lease_lost", stated=1),
    ],
    "the dead are swept at once": [
        CLAIM_A,
        swept((20, 30), 1, dead=True),
        op((40, 50), "b", "claim", (2, "b", 0)),
    ],
    "swept for the last time": [
        CLAIM_A,
        swept((20, 30), 1, dead=True, failed=True),
        op((40, 50), "b", "claim", "wrong_state"),
    ],
    "failed, tried again, claimed": [
        CLAIM_A,
        failed((20, 30), "a", 1),
        op((40, 50), "person", "retry", (1, None, 0)),
        op((60, 70), "b", "claim", (2, "b", 0)),
    ],
}

WRONG = {
    "swept before its grace was over": [CLAIM_A, swept((1011, 1900), 1)],
    "swept although it was renewed": [
        CLAIM_A,
        op((900, 910), "a", "renew", (1, "a", 1)),
        swept((2100, 2110), 1),
    ],
    "released again although somebody held it since": [
        CLAIM_A,
        op((20, 30), "a", "release", (1, None, 0), stated=1),
        op((40, 50), "b", "claim", (2, "b", 0)),
        op((60, 70), "b", "release", (2, None, 0), stated=2),
        op((80, 90), "a", "release", (2, None, 0), stated=1),
    ],
    "swept twice": [
        CLAIM_A,
        swept((20, 30), 1, dead=True),
        swept((40, 50), 1, dead=True),
    ],
    "completed after a sweep": [
        CLAIM_A,
        swept((20, 30), 1, dead=True),
        op((40, 50), "a", "complete", (1, None, 0), stated=1),
    ],
    "claimed although it had failed": [
        CLAIM_A,
        failed((20, 30), "a", 1),
        op((40, 50), "b", "claim", (2, "b", 0)),
    ],
    "tried again although it had not failed": [
        CLAIM_A,
        op((20, 30), "person", "retry", (1, "a", 0)),
    ],
    "two holders": [CLAIM_A, op((20, 30), "b", "claim", (2, "b", 0))],
    "two holders at once": [
        op((0, 10), "a", "claim", (1, "a", 0)),
        op((0, 10), "b", "claim", (1, "b", 0)),
    ],
    "a token given twice": [
        CLAIM_A,
        op((20, 30), "a", "release", (1, None, 0)),
        op((40, 50), "b", "claim", (1, "b", 0)),
    ],
    "a takeover before the lease could have run out": [
        CLAIM_A,
        op((900, 990), "b", "takeover", (2, "b", 0)),
    ],
    "held by a lease that must have run out": [
        CLAIM_A,
        op((1011, 1020), "b", "claim", "held"),
    ],
    "a zombie completes": [
        CLAIM_A,
        op((1100, 1110), "b", "takeover", (2, "b", 0)),
        op((1200, 1210), "a", "complete", (2, None, 0), stated=1),
    ],
    "an acknowledged release is forgotten": [
        CLAIM_A,
        op((20, 30), "a", "release", (1, None, 0)),
        op((40, 50), "b", "claim", "held"),
    ],
    "a renewal is counted twice": [CLAIM_A, op((20, 30), "a", "renew", (1, "a", 2))],
    "a task that is final is claimed": [
        CLAIM_A,
        op((20, 30), "a", "complete", (1, None, 0)),
        op((40, 50), "b", "claim", (2, "b", 0)),
    ],
    "a cut claim that was done only after its process was dead": [
        op((0, 10), "a", "claim", None),
        op((20, 30), "b", "claim", (1, "b", 0)),
        op((40, 50), "b", "release", (1, None, 0)),
        op((60, 70), "c", "claim", "held"),
    ],
    "a token of a lease that was given back is accepted": [
        CLAIM_A,
        op((20, 30), "a", "release", (1, None, 0)),
        op((40, 50), "a", "renew", (1, "a", 1), stated=1),
    ],
    "a token of one's own former lease is accepted": [
        CLAIM_A,
        op((20, 30), "a", "release", (1, None, 0)),
        op((40, 50), "a", "claim", (2, "a", 0)),
        op((60, 70), "a", "renew", (2, "a", 1), stated=1),
    ],
    "the second token is given before the first, while another operation lasts": [
        op((0, 100), "c", "claim", "held"),
        op((10, 20), "b", "claim", (2, "b", 0)),
        op((30, 40), "a", "claim", (1, "a", 0)),
        op((50, 60), "a", "release", (1, None, 0)),
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_history_that_one_board_could_have_made_is_accepted(name):
    assert violation(RIGHT[name]) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_history_that_no_board_could_have_made_is_rejected(name):
    assert violation(WRONG[name]) is not None


@pytest.mark.parametrize(
    ("lines", "at_once"),
    [
        ("1.1 start, 1.1 end, 1.2 start, 1.2 end", False),
        ("1.1 start, 1.2 start, 1.2 end", False),
        ("1.1 start, 1.2 start, 1.1 tick, 1.2 end", True),
        ("1.9 start, 1.10 start, 1.9 end", True),
        ("1.9 start, 2.1 start, 2.1 end", False),
    ],
)
def test_two_who_work_at_once_are_seen_in_what_they_say(tmp_path, lines, at_once):
    file = tmp_path / "workshop"
    file.write_text("".join(f"T-1 {line}\nT-2 1.1 tick\n" for line in lines.split(", ")))
    assert bool(two_at_once(lines_of(file))) == at_once


def test_thousands_of_operations_are_judged_in_seconds():
    """Eight sessions, each always in the middle of something; one was stopped all the while.

    Without its memo, or without an eye on real time, the judge needs minutes.
    """
    begun = time.process_time()
    history, token = [op((0, 20_000), "stopped", "claim", None)], 0
    for turn in range(0, 20_000, 20):
        session, token = f"s{turn // 20 % 7}", token + 1
        history.append(op((turn, turn + 25), session, "claim", (token, session, 0)))
        history.append(op((turn + 26, turn + 30), session, "release", (token, None, 0)))
    assert len(history) == 2001
    assert violation(history) is None
    history.append(op((20_031, 20_032), "s1", "claim", (token, "s1", 0)))
    assert violation(history) is not None
    assert time.process_time() - begun < 15


# The second judge.


def entry(seq, session, verb, token, at=0, taken_from=None, expires=0):
    ending = taken_from and SimpleNamespace(session=taken_from, expires=expires)
    return SimpleNamespace(
        seq=seq, task=1, session=session, verb=verb, at=at, token=SimpleNamespace(number=token),
        event=SimpleNamespace(ending=ending),
    )  # fmt: skip


ASKED = [
    op((0, 10), "a", "claim", (1, "a", 0, (2,))),
    op((20, 30), "a", "release", (1, None, 0, (3,))),
    op((40, 50), "b", "claim", (2, "b", 0, (4,))),
]
LEDGER = [
    entry(1, "ana", "added", 0),
    entry(2, "a", "claimed", 1),
    entry(3, "a", "released", 1),
    entry(4, "b", "claimed", 2),
]


def test_a_ledger_that_says_what_was_answered_is_accepted():
    assert ledger_faults(ASKED, LEDGER) == []


def test_what_was_acknowledged_and_is_not_in_the_ledger_is_found():
    assert ledger_faults(ASKED, LEDGER[:3]) != []


def test_what_is_in_the_ledger_and_was_asked_by_nobody_is_found():
    assert ledger_faults(ASKED, [*LEDGER, entry(5, "b", "released", 2)]) != []
    cut = op((60, 70), "b", "release", None)
    assert ledger_faults([*ASKED, cut], [*LEDGER, entry(5, "b", "released", 2)]) == []


def test_an_order_that_is_not_that_of_real_time_is_found():
    early = op((60, 70), "c", "takeover", (1, "a", 0, (1,)))
    assert any("stands before it" in fault for fault in ledger_faults([*ASKED, early], LEDGER))


@pytest.mark.parametrize(
    "events",
    [
        [entry(2, "a", "claimed", 1), entry(3, "b", "claimed", 2)],
        [entry(2, "a", "claimed", 1), entry(3, "b", "completed", 1)],
        [
            entry(2, "a", "claimed", 1),
            entry(3, "b", "taken_over", 2, at=9, taken_from="a", expires=9),
        ],
        [
            entry(2, "a", "claimed", 1),
            entry(3, "a", "released", 1),
            entry(4, "b", "claimed", 1),
        ],
    ],
    ids=["two holders", "a stranger completes", "taken while live", "a token twice"],
)
def test_grants_that_overlap_are_found(events):
    cut = [op((0, 1), session, "claim", None) for session in "ab"]
    assert ledger_faults(cut, events) != []
