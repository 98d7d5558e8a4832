"""Start+complete cycles per second in one process: through the library, against hand-written SQL.

The floor does the same commits, row updates and ledger inserts on the same schema, with the same
apsw, pragmas and durability (WAL, synchronous=FULL): per cycle two transactions, in the first the
task's row, the board's row and two events, in the second the task's row, the board's row, one event
and one ended lease. It reads nothing, decides nothing, and computes no digest. It runs twice: with
the lock file of dibs around each transaction, and without, which is the harder floor.
"""

from __future__ import annotations

import fcntl
import os
import time
from itertools import count

import apsw
from measure import Figure, Report, counts, make_board, profile, scratch, show, spread

from dibs import open_board

CYCLES = 100
ROUNDS = 40
PROFILED = 400
GOAL = 0.5


class Dibs:
    """The way in: whatever can start and complete a task by its key. Swap it here."""

    def __init__(self, folder: str) -> None:
        around = {"DIBS_BOARD": folder}
        self.board = open_board(folder, agent="worker", session="s1", environment=around)

    def cycle(self, key: str) -> None:
        self.board.start(key)
        self.board.complete(key)

    def close(self) -> None:
        self.board.close()


CLAIM = """
UPDATE task SET state = 'in_progress', token_epoch = 1, token_number = token_number + 1, holder = 1,
    session = 's1', acquired = :now, renewed = :now, ttl = 7200000000, expires = :now + 7200000000,
    renewals = 0, reason = '', stint = :now, attempts = attempts + 1, updated = :now, head = :digest,
    events = events + 2, version = version + 1
WHERE board = 1 AND lower(key) = lower(:key) AND state = 'open' AND holder IS NULL
RETURNING id, token_number, events
"""
COMPLETE = """
UPDATE task SET state = 'complete', holder = NULL, session = NULL, acquired = NULL, renewed = NULL,
    ttl = NULL, expires = NULL, renewals = NULL, reason = NULL, stint = NULL, updated = :now,
    head = :digest, events = events + 1, version = version + 1
WHERE board = 1 AND lower(key) = lower(:key) AND holder = 1 AND session = 's1'
RETURNING id, token_number, events
"""
BOARD = "UPDATE board SET seq = seq + :events, floor = :now WHERE board = 1 RETURNING seq"
EVENT = """
INSERT INTO event (board, seq, task, position, at, actor, session, token_epoch, token_number, verb,
    cause, facts, digest)
VALUES (1, ?, ?, ?, ?, 1, 's1', 1, ?, ?, ?, ?, ?)
"""
ENDED = """
INSERT INTO ended_lease (board, task, token_epoch, token_number, actor, session, acquired, renewed,
    expires, renewals, ended, cause, lost, acknowledged, seq, stint_started, stint_ended, spending)
VALUES (1, ?, 1, ?, 1, 's1', ?, ?, ?, 0, ?, 'completed', 0, 0, ?, ?, ?, '')
"""
DIGEST = "0" * 64
CLAIMED = '{"actor":1,"ending":null,"reason":"","session":"s1","token":"1.1","ttl":7200000000}'
COMPLETED = (
    '{"ending":{"acquired":%d,"actor":1,"branch":"","expires":%d,"late":false,"renewals":0,'
    '"renewed":%d,"session":"s1","stint":{"ended":%d,"started":%d},"token":"1.1",'
    '"uncommitted":[],"worktree":""},"note":""}'
)


class Floor:
    """The same writes by hand."""

    def __init__(self, folder: str, *, lock: bool) -> None:
        self.connection = apsw.Connection(f"{folder}/board.db")
        self.connection.set_busy_timeout(5000)
        # Without it SQLite prepares some statements anew for each value that is bound.
        self.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self.connection.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
        self.lock = f"{folder}/write.lock" if lock else ""

    def cycle(self, key: str) -> None:
        acquired = self.locked(self.claim, key)
        self.locked(self.complete, key, acquired)

    def locked(self, work, *given):
        if not self.lock:
            return work(*given)
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            return work(*given)
        finally:
            os.close(descriptor)

    def claim(self, key: str) -> int:
        run, now = self.connection.execute, time.time_ns() // 1000
        run("BEGIN IMMEDIATE")
        [(task, number, events)] = run(CLAIM, {"now": now, "key": key, "digest": DIGEST}).fetchall()
        [(seq,)] = run(BOARD, {"events": 2, "now": now}).fetchall()
        run(EVENT, (seq - 1, task, events - 1, now, number, "claimed", "", CLAIMED, DIGEST))
        run(EVENT, (seq, task, events, now, number, "started", "", "{}", DIGEST))
        run("COMMIT")
        return now

    def complete(self, key: str, acquired: int) -> None:
        run, now = self.connection.execute, time.time_ns() // 1000
        expires = acquired + 7_200_000_000
        facts = COMPLETED % (acquired, expires, acquired, now, acquired)
        run("BEGIN IMMEDIATE")
        [(task, number, events)] = run(
            COMPLETE, {"now": now, "key": key, "digest": DIGEST}
        ).fetchall()
        [(seq,)] = run(BOARD, {"events": 1, "now": now}).fetchall()
        run(EVENT, (seq, task, events, now, number, "completed", "completed", facts, DIGEST))
        run(ENDED, (task, number, acquired, acquired, expires, now, seq, acquired, now))
        run("COMMIT")

    def close(self) -> None:
        self.connection.close()


def measure(rounds: int = ROUNDS) -> Report:
    tasks = CYCLES * (rounds + 1) + PROFILED + 1
    with scratch() as folder:
        folders = {name: f"{folder}/{name}" for name in ("dibs", "floor", "floor with the lock")}
        for each in folders.values():
            make_board(each, tasks)
        ways = {
            "dibs": Dibs(folders["dibs"]),
            "floor": Floor(folders["floor"], lock=False),
            "floor with the lock": Floor(folders["floor with the lock"], lock=True),
        }
        keys = {name: (f"T-{number}" for number in count(1)) for name in ways}
        seconds = {name: [] for name in ways}
        busy = {name: [] for name in ways}
        for name, way in ways.items():
            run(way, keys[name])  # warm
        same_work(folders)
        for turn in range(rounds):
            order = list(ways)[turn % 3 :] + list(ways)[: turn % 3]
            for name in order:
                elapsed, processor = run(ways[name], keys[name])
                seconds[name].append(elapsed)
                busy[name].append(processor)
        same_work(folders)
        rest = [next(keys["dibs"]) for _ in range(PROFILED)]
        where = profile(lambda: [ways["dibs"].cycle(key) for key in rest])
        for way in ways.values():
            way.close()
    return report_of(seconds, busy, where)


def run(way, keys) -> tuple[float, float]:
    mine = [next(keys) for _ in range(CYCLES)]
    began, worked = time.perf_counter(), time.process_time()
    for key in mine:
        way.cycle(key)
    return time.perf_counter() - began, time.process_time() - worked


def same_work(folders: dict[str, str]) -> None:
    """Both wrote as many events and ended leases. (dibs registers its actor once: one event.)"""
    found = [counts(folder) for folder in folders.values()]
    ours = found[0] | {"event": found[0]["event"] - 1}
    assert ours == found[1] == found[2], found


def report_of(seconds, busy, where: list[str]) -> Report:
    best = {name: CYCLES / min(times) for name, times in seconds.items()}
    lines = [
        f"best of {len(seconds['dibs'])} alternating rounds of {CYCLES} cycles, each on its own file",
        f"{'':<22} {'cycles/s':>9} {'lowest / median / highest':>30} {'processor us/cycle':>20}",
    ]
    for name, times in seconds.items():
        all_ = spread([CYCLES / t for t in times], "{:.0f}")
        processor = min(busy[name]) / CYCLES * 1e6
        lines.append(f"{name:<22} {best[name]:9.0f} {all_:>30} {processor:20.0f}")
    figures = []
    for floor, goal in (("floor", f"at least {GOAL}"), ("floor with the lock", "")):
        ratios = [f / d for d, f in zip(seconds["dibs"], seconds[floor])]
        ratio = best["dibs"] / best[floor]
        figures.append(
            Figure(
                f"start+complete cycles per second, dibs / {floor}",
                f"{ratio:.2f}",
                goal,
                ratio >= GOAL if goal else None,
                f"rounds {spread(ratios)}",
            )
        )
    lines += ["", f"where the time of dibs goes ({PROFILED} cycles under cProfile):", *where]
    return Report("Cycles in one process", figures, lines)


if __name__ == "__main__":
    show(measure())
