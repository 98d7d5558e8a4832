"""Several processes at once: exactly one wins, every loser learns who won and until when."""

from __future__ import annotations

import json

import pytest

from kit.corpus import TASK
from kit.racers import race
from kit.repositories import Repo


def judge(rounds, contestants: int) -> None:
    """In each round one exit 0, the rest exit 4, each naming the winner and until when."""
    for answers in rounds:
        assert len(answers) == contestants
        winners = [(number, answer) for number, code, answer in answers if code == 0]
        assert len(winners) == 1, answers
        number, won = winners[0]
        for _, code, answer in answers:
            if code != 0:
                facts = answer["error"]["facts"]
                assert (code, answer["error"]["code"]) == (4, "held")
                assert (facts["holder"], facts["session"]) == (f"racer-{number}", f"s{number}")
                assert facts["expires_at"] == won["lease"]["expires_at"]


@pytest.mark.parametrize("part", range(5))
def test_a_thousand_contested_rounds_never_have_two_winners(repo, part, kind):
    """8 processes in two work trees, in five parts: 160 rounds of each in a file, 40 on a server."""
    other = repo.worktree("other")
    tasks = 160 if kind == "sqlite" else 40
    made = race([repo], [["add", f"task {n}", "--as", "ana"] for n in range(tasks)])
    keys = [answers[0][2]["task"]["key"] for answers in made]
    claims = [["claim", key, "--agent", "racer-{n}", "--session", "s{n}"] for key in keys]
    judge(race([repo, other] * 4, claims), 8)
    assert repo.json("log", "--verify")["ok"]


def test_thirty_two_at_once(repo):
    other = repo.worktree("other")
    keys = [repo.add() for _ in range(5)]
    claims = [["claim", key, "--agent", "racer-{n}", "--session", "s{n}"] for key in keys]
    judge(race([repo, other] * 16, claims), 32)
    assert repo.json("log", "--verify")["ok"]


def test_separate_commands_from_separate_shells(repo, kind):
    """Nothing shared but the repository: each contestant is a command of its own."""
    contestants = 32 if kind == "sqlite" else 8  # a server's driver is loaded by each
    places = [repo, repo.worktree("other")]
    key = repo.add()
    started = [
        places[n % 2].start("claim", key, "--agent", f"racer-{n}", "--session", f"s{n}", "--json")
        for n in range(contestants)
    ]
    answers = []
    for n, process in enumerate(started):
        out, err = process.communicate(timeout=120)
        answers.append((n, process.returncode, json.loads(out or err)))
    judge([answers], contestants)


def test_expired_work_has_one_new_owner(repo):
    """A takeover is contested like a claim: one wins, the others get exit 4."""
    other = repo.worktree("other")
    keys = [repo.add() for _ in range(10)]
    for key in keys:
        repo.ok("claim", key, "--agent", "dead", "--session", "d", "--ttl", "1s")
    repo.await_expiry(keys[-1])
    claims = [["takeover", key, "--agent", "racer-{n}", "--session", "s{n}"] for key in keys]
    rounds = race([repo, other] * 3, claims)
    judge(rounds, 6)
    for answers in rounds:
        won = next(answer for _, code, answer in answers if code == 0)
        assert won["lease"]["token"] == "1.2"
        assert won["lease"]["taken_over_from"]["name"] == "dead"


def test_parallel_creates_give_as_many_tasks_with_as_many_keys(repo):
    rounds = race([repo] * 8, [["add", f"task {n}", "--as", "ana" + "{n}"] for n in range(10)])
    keys = {answer["task"]["key"] for answers in rounds for _, _, answer in answers}
    assert len(keys) == 80


def test_parallel_writes_to_one_task_all_survive(repo):
    key = repo.add()
    race(
        [repo] * 8,
        [["note", key, f"note {n} of {{n}}", "--as", "ana{n}"] for n in range(10)],
    )
    notes = {note["text"] for note in repo.json("show", key)["notes"]}
    assert len(notes) == 80


def test_one_origin_is_one_task_however_often_it_is_delivered(repo):
    """Also after the task is final."""
    deliver = [
        "intake",
        "--channel",
        "github",
        "--ref",
        "org/repo#7",
        "--title",
        "Fix it",
        "--as",
        "ana{n}",
    ]
    rounds = race([repo] * 8, [[*deliver, "--tier", str(tier)] for tier in (1, 2, 3)])
    keys = {answer["task"]["key"] for answers in rounds for _, _, answer in answers}
    created = [answer["created"] for answers in rounds for _, _, answer in answers]
    assert (len(keys), created.count(True)) == (1, 1)
    [key] = keys
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    repo.ok("complete", key, "--agent", "codex", "--session", "s1")
    again = repo.json(
        "intake", "--channel", "GitHub", "--ref", "org/repo#7", "--title", "Other", "--as", "ana"
    )
    assert (again["task"]["key"], again["created"], again["differences"]) == (key, False, ["title"])
    assert again["task"]["state"] == "complete"


def test_losers_of_a_race_for_an_item_leave_the_ledger_alone(repo):
    """They read the file that the winner has just written: that is no news, and no lost record."""
    other, items = repo.worktree("other"), range(1, 13)
    for number in items:
        kano_item(repo, number)
    repo.ok("sync", "--as", "ana")
    before = repo.json("log", "--limit", "1000")["events"]
    keys = [f"KABSD-TSK-{number:04}" for number in items]
    claims = [["claim", key, "--agent", "racer-{n}", "--session", "s{n}"] for key in keys]
    rounds = race([repo, other] * 4, claims)
    judge(rounds, 8)
    for answers in rounds:
        assert [answer["lease"]["token"] for _, code, answer in answers if code == 0] == ["1.1"]
    after = repo.json("log", "--limit", "1000")["events"]
    verbs = [event["verb"] for event in after if event not in before]
    assert sorted(set(verbs)) == ["actor_registered", "claimed", "started"]
    assert repo.json("log", "--verify")["ok"]


def kano_item(repo: Repo, number: int) -> None:
    id_ = f"KABSD-TSK-{number:04}"
    item = TASK.replace("KABSD-TSK-0141", id_).replace("85f4752b9a45", f"85f4752b{number:04}")
    folder = repo.folder / "_kano/backlog/products/demo/items/task/0000"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{id_}_some-work.md").write_text(item)
