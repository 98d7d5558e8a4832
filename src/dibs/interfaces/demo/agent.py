"""One agent of the demo, a process of its own: claims what is free, works, completes.

`python -m dibs.interfaces.demo.agent FOLDER NAME SEED`. Each line that it prints is one thing that
happened to it.
"""

from __future__ import annotations

import random
import sys
import time

from dibs.core.refusals import Refused
from dibs.interfaces.library import Board, open_board
from dibs.interfaces.records import LeaseLost

TTL = "2s"
WORK_SECONDS = (1.8, 4.2)
STEP = 0.1


def say(what: str, key: str = "") -> None:
    print(what, key, flush=True)


def work(board: Board, key: str, chance: random.Random) -> None:
    """Holds the task while it works; the keeper renews, and `check` says if the lease is lost."""
    try:
        with board.hold(key, ttl=TTL) as lease:
            say("holds", key)
            for _ in range(int(chance.uniform(*WORK_SECONDS) / STEP)):
                time.sleep(STEP)
                lease.check()
            lease.complete(f"done by {board.who.name}")
            say("completed", key)
    except LeaseLost:
        say("lost", key)
    except Refused as problem:
        say(f"refused:{problem.code}", key)


def main(folder: str, name: str, seed: str) -> None:
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
