"""Stopped processes: a zombie is refused, a stopped writer delays others once."""

from __future__ import annotations

import signal
import time

from kit.boards_on_disk import board_with, opened
from kit.hands import Hand
from kit.repositories import Repo

SECOND = 1_000_000
HOLDERS_VERBS = {
    "Renew": {},
    "Stop": {},
    "Release": {},
    "Handoff": {"to": "ana"},
    "Block": {"reason": "waiting"},
    "Submit": {},
    "Complete": {},
    "Fail": {"reason": "no"},
}


def wait_until_expired(folder, keys) -> None:
    with opened(folder) as board:
        while True:
            with board.store.read() as tx:
                if all(tx.task(key).lease.expires < tx.now for key in keys):
                    return
            time.sleep(0.01)


def test_a_zombie_is_refused_whatever_it_does_first_and_ever_after(tmp_path):
    """Stopped with eight leases, continued when all are taken over: each verb is a first reply."""
    keys = dict(zip(board_with(tmp_path, tasks=8), HOLDERS_VERBS))
    with Hand(tmp_path, "zombie") as zombie, Hand(tmp_path, "heir") as heir:
        tokens = {key: zombie.do("command", "Claim", task=key, ttl=SECOND) for key in keys}
        assert set(tokens.values()) == {"1.1"}
        zombie.stop()
        wait_until_expired(tmp_path, keys)
        assert {heir.do("command", "Claim", task=key) for key in keys} == {"1.2"}
        zombie.resume()
        for key, verb in keys.items():
            stated = {"task": key, "token": tokens[key], **HOLDERS_VERBS[verb]}
            assert zombie.do("command", verb, **stated) == "lease_lost", verb
        for key, verb in keys.items():
            silent = {"task": key, **HOLDERS_VERBS[verb]}
            # Giving back what one has not is a success that changes nothing.
            expected = "1.2" if verb == "Release" else "lease_lost"
            assert zombie.do("command", verb, **silent) == expected, verb
        assert {zombie.do("command", "Claim", task=key) for key in keys} == {"held"}
        assert {heir.do("command", "Complete", task=key, token="1.2") for key in keys} == {"1.2"}


def test_a_zombie_that_nobody_missed_goes_on_with_its_lease(tmp_path):
    """Expired, and not taken over: nobody else ever had it, so it is still the holder's."""
    [key] = board_with(tmp_path, tasks=1)
    with Hand(tmp_path, "zombie") as zombie:
        zombie.do("command", "Claim", task=key, ttl=SECOND)
        zombie.stop()
        wait_until_expired(tmp_path, [key])
        zombie.resume()
        assert zombie.do("command", "Complete", task=key, token="1.1") == "1.1"


def test_a_writer_stopped_inside_its_transaction_delays_others_once_and_is_named(tmp_path):
    """Readers do not notice. Once it is killed a writer that waits goes on, long before it gives up."""
    [key] = board_with(tmp_path, tasks=1)
    settings, repo = tmp_path / ".dibs" / "settings.toml", Repo(tmp_path)
    settings.write_text('write_wait = "1s"\n')
    claim = ("claim", key, "--agent", "codex", "--session", "s1")
    with Hand(tmp_path, "stopped") as stopped:
        stopped.send("stop_inside", "complete T-9")
        assert stopped.receive() == "inside"
        stopped.wait_until_stopped()
        begun = time.monotonic()
        refused = repo.run(*claim, "--json")
        waited = time.monotonic() - begun
        assert (refused.code, refused.error["code"]) == (75, "busy")
        assert f'process {stopped.pid} ("complete T-9", stopped)' in refused.error["message"]
        assert refused.error["message"].endswith("for more than 1 s")
        assert 1 <= waited < 30
        assert repo.json("show", key)["task"]["state"] == "open"
        assert repo.json("log", "--verify")["ok"]
        settings.write_text('write_wait = "50s"\n')
        with Hand(tmp_path, "waiting") as waiting:
            waiting.send("command", "Claim", task=key)
            waiting.wait_until_it_queues()
            begun = time.monotonic()
            stopped.process.send_signal(signal.SIGKILL)
            assert waiting.receive() == "1.1"
            assert time.monotonic() - begun < 40


def test_a_writer_that_was_stopped_inside_and_continues_commits_as_if_nothing_was(tmp_path):
    [key] = board_with(tmp_path, tasks=1)
    with Hand(tmp_path, "slow") as slow, Hand(tmp_path, "other") as other:
        slow.send("stop_inside", "think")
        assert slow.receive() == "inside"
        slow.wait_until_stopped()
        other.send("command", "Claim", task=key)
        other.wait_until_it_queues()
        slow.resume()
        assert slow.receive() == "out again"
        assert other.receive() == "1.1"
        assert slow.do("command", "Claim", task=key) == "held"
