"""One agent of the demo, as a process: claims a free task, works, completes it.

`python -m dibs.demo.agent FOLDER NAME SEED`. It prints one line per event, and exits when its parent does
(its standard input reaches end of file), so no orphan process remains.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from dibs.domain.refusals import Refused
from dibs.library.board import Board, open_board
from dibs.library.records import LeaseLost
from dibs.machine import this_machine

TTL = "2s"
WORK_SECONDS = (1.8, 4.2)
STEP = 0.1
DIE_WITH_PARENT, KILL = 1, 9


def say(what: str, key: str = "", began: int = 0, until: int = 0) -> None:
    print(what, key, began, until, flush=True)


def work(board: Board, key: str, chance: random.Random) -> None:
    """Holds the task while working; the keeper renews the lease, and `check` detects its loss."""
    clock = this_machine().boottime
    try:
        with board.hold(key, ttl=TTL) as lease:
            began = clock()
            held = board.show(key).lease
            say("took" if held is not None and held.reason else "holds", key)
            for _ in range(int(chance.uniform(*WORK_SECONDS) / STEP)):
                time.sleep(STEP)
                now = clock()
                lease.check()
                say("works", key, began, now)
            lease.complete(f"done by {board.who.name}")
            say("completed", key)
    except LeaseLost:
        say("lost", key)
    except Refused as problem:
        say(f"refused:{problem.code}", key)


def die_with_parent() -> None:
    """Exits with the parent: by a kernel signal on Linux, even when stopped; elsewhere at end of input."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, KILL)

    def watch() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main(folder: str, name: str, seed: str) -> None:
    die_with_parent()
    chance = random.Random(seed)  # noqa: S311 - a demo needs no secrets
    with open_board(folder, agent=name, session=f"{name}-1", environment={}) as board:
        while board.list(limit=1):
            free = [task.key for task in board.list(free=True, limit=3)]
            if free:
                work(board, chance.choice(free), chance)
            else:
                time.sleep(STEP)


if __name__ == "__main__":
    main(*sys.argv[1:])
