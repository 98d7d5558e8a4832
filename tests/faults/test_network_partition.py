"""Two hosts that lose each other: who is cut off stops in time, and is refused when it comes back."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time

from kit.netns import two_hosts
from kit.postgres_ground import until
from kit.repositories import clean_environment
from kit.writers import board_with, opened_by

TTL = 4
"""Seconds; the holder stops believing after nine tenths of it."""

HOLDER = """
import json, sys, time
import dibs

def send(**fields):
    print(json.dumps({**fields, "at": time.monotonic()}), flush=True)

with dibs.open_board("/", agent="isolated", session="s1") as board:
    stop = lambda why: send(lost=why.code)
    with board.hold(sys.argv[1], ttl=sys.argv[2], on_lost=stop) as lease:
        send(token=lease.token)
        sys.stdin.readline()
        try:
            lease.complete()
        except dibs.Refused as problem:
            send(refused=problem.code)
"""


class Holder:
    """A process on the host that is cut off; it holds a task, and says when it stops."""

    def __init__(self, hosts, key: str) -> None:
        self.process = hosts.client.popen(
            [sys.executable, "-c", HOLDER, key, f"{TTL}s"],
            env=clean_environment(DIBS_URL=hosts.url()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Holder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def receive(self, seconds: float = 60) -> dict:
        assert select.select([self.process.stdout], [], [], seconds)[0], "it says nothing"
        return json.loads(self.process.stdout.readline())

    def complete(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()


def test_who_is_cut_off_stops_before_its_lease_runs_out_and_another_takes_over():
    with two_hosts() as hosts:
        url = hosts.node.url()  # by the socket: the side of the server
        [key] = board_with(url, tasks=1)
        with Holder(hosts, key) as holder, opened_by(url, "near") as near:
            token = holder.receive()["token"]
            until(lambda: near.show(key).lease.renewals > 1, "renewals over the link")
            hosts.down()
            expires = expiry(near, key)
            stopped = holder.receive()
            print(f"it stopped {expires - stopped['at']:.2f} s before its lease ran out")
            assert stopped["lost"] == "unreachable"
            assert stopped["at"] < expires, "the board still says that it holds the task"
            until(lambda: near.show(key).lease.expired, "the end of the lease")
            taken = near.claim(key)
            assert taken.taken_over_from.holder.name == "isolated"
            hosts.up()
            holder.complete()
            assert holder.receive()["refused"] == "lease_lost"
            assert near.renew(key, token=taken.token).token == taken.token != token
            assert near.verify() == ()


def expiry(board, key) -> float:
    """When the lease runs out, on this machine's clock: both hosts have the same one."""
    left = board.show(key).lease.expires_at.timestamp() - time.time()
    return time.monotonic() + left
