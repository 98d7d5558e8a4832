"""Processes are killed at any instant: what was acknowledged is there, what was cut is resolved."""

from __future__ import annotations

import random
import time

from kit import soak
from kit.boards_on_disk import board_with, ledger_of
from kit.history import Answer, ledger_faults, violation
from kit.workers import Crew

KILLS = 300
WORKERS = 2


def test_nothing_acknowledged_is_lost_and_every_cut_operation_is_resolved_by_its_request_id(
    tmp_path,
):
    """A session that was killed comes back, and asks its last request again before anything else.

    Then every event of the ledger belongs to exactly one answer, and every answer has its events.
    """
    chance = random.Random(soak.seed())
    kills = soak.times(KILLS, share=0.4, each=0.07)
    keys = board_with(tmp_path, tasks=200 + kills)
    cut = 0
    with Crew(tmp_path) as crew:
        common = {"keys": keys, "contested": 4 * WORKERS}
        pids = [crew.start(session=f"s{n}", seed=chance.random(), **common) for n in range(WORKERS)]
        for _ in range(kills):
            crew.listen(chance.uniform(0, 0.09))
            pid = pids.pop(chance.randrange(WORKERS))
            orders = crew.alive[pid]
            again = crew.kill(pid)
            cut += again is not None
            pids.append(crew.start(**orders | {"seed": chance.random(), "again": again}))
        crew.finish()
        operations = crew.operations()
    begun = time.monotonic()
    answers = [op.answer for op in operations if isinstance(op.answer, Answer)]
    replayed = sum(answer.replayed for answer in answers)
    entries, faults = ledger_of(tmp_path)
    judged = time.monotonic() - begun
    print(f"{kills} kills, {len(operations)} operations, {len(answers)} acknowledged, {cut} cut")
    print(f"{replayed} of these had been done, judged in {judged:.1f} s")
    assert faults == ()
    assert [op for op in operations if op.answer is None] == []
    assert ledger_faults(operations, entries) == []
    assert violation(operations) is None
    assert cut > kills / 4
