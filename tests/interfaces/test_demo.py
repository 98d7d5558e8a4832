"""The demo judges by the ledger: it would see a second owner, and it adds up stints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dibs.interfaces.cli.demo import Story, double_owners, worked
from dibs.interfaces.records import Event

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def event(verb: str, token: str, ending: str = "", task: str = "T-1", **facts) -> Event:
    stint = {"started": 0, "ended": 90_000_000}
    over = {"ending": {"token": ending, "actor": 1, "stint": stint}} if ending else {}
    return Event(1, task, NOW, "a", "s", token, verb, "", over | facts, "")


def test_one_owner_after_another_is_no_double_owner():
    events = (
        event("claimed", "1.1"),
        event("taken_over", "1.2", ending="1.1"),
        event("completed", "1.2", ending="1.2"),
        event("claimed", "1.1", task="T-2"),
    )
    assert double_owners(events) == 0


@pytest.mark.parametrize(
    "events",
    [
        (event("claimed", "1.1"), event("claimed", "1.2")),
        (
            event("claimed", "1.1"),
            event("forced", "1.2", ending="1.1"),
            event("completed", "1.2", ending="1.1"),
        ),
        (event("completed", "1.1", ending="1.1"),),
    ],
    ids=["two claims", "a zombie completes", "an end without a beginning"],
)
def test_a_second_owner_would_be_seen(events):
    assert double_owners(events) > 0


def test_stints_are_added_up_by_actor():
    registered = event("actor_registered", "0.0", task="", id=1, name="codex")
    events = (
        registered,
        event("completed", "1.1", ending="1.1"),
        event("released", "1.1", ending="1.1"),
    )
    assert worked(events) == {"codex": timedelta(seconds=180)}


def test_the_demo_is_as_expected_only_if_everything_is():
    good = Story(40, 40, 3, 1, ("a", "b"), "c", True, 0, {}, {}, (), 20.0)
    assert good.as_expected
    for wrong in (
        {"complete": 39},
        {"takeovers": 0},
        {"zombie_refused": False},
        {"double_owners": 1},
        {"faults": ("x",)},
    ):
        assert not good.but(**wrong).as_expected
