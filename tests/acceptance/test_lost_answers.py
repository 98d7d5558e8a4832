"""An answer that was lost on its way: who asks again is told the same, and nothing happens twice."""

from __future__ import annotations

import pytest

import dibs

CODEX = ("--agent", "codex", "--session", "s1")
CLAUDE = ("--agent", "claude", "--session", "s9")
ANA = ("--as", "ana")
ENDS = {
    "complete": ("complete", "--note"),
    "submit": ("review", "--note"),
    "fail": ("failed", "--reason"),
    "drop": ("dropped", "--reason"),
    "release": ("open", "--note"),
}
AGAIN = {"submit": ("reject", "--reason", "no"), "fail": ("retry",)}
"""What opens a task again that this verb ended; a reset does for the others."""


def claimed(repo) -> str:
    key = repo.add()
    repo.ok("claim", key, *CODEX)
    return key


def texts(repo, key) -> list[str]:
    return [note["text"] for note in repo.json("show", key)["notes"]]


def moved(repo, key) -> list[str]:
    return [event["verb"] for event in repo.json("log", key)["events"] if event["verb"] != "noted"]


@pytest.mark.parametrize("verb", ENDS)
@pytest.mark.parametrize("token", [(), ("--token", "1.1")], ids=["no-token", "token"])
def test_a_holder_that_gives_its_verb_again_gets_the_same_answer(repo, verb, token):
    key, (state, option) = claimed(repo), ENDS[verb]
    first = repo.ok(verb, key, option, "all of it", *token, *CODEX)
    kept, events = texts(repo, key), repo.json("log", key)["events"]
    again = repo.ok(verb, key, option, "all of it", *token, *CODEX)
    assert again.out == first.out
    assert again.err == "dibs: warning: already done: nothing was changed\n"
    reply = repo.json(verb, key, option, "all of it", *token, *CODEX)
    assert (reply["task"]["state"], reply["task"]["holder"], reply["events"]) == (state, None, [])
    assert (texts(repo, key), repo.json("log", key)["events"]) == (kept, events)


@pytest.mark.parametrize("verb", ENDS)
def test_a_new_text_of_a_repeated_verb_is_kept_as_a_note(repo, verb):
    key, (_, option) = claimed(repo), ENDS[verb]
    repo.ok(verb, key, option, "all of it", *CODEX)
    before, events = texts(repo, key), moved(repo, key)
    again = repo.ok(verb, key, option, "more of it", *CODEX)
    assert again.err == "dibs: warning: already done: your new text was saved as a note\n"
    assert texts(repo, key) == [*before, "more of it"]
    assert moved(repo, key) == events


@pytest.mark.parametrize("verb", ["complete", "submit", "fail", "drop", "release"])
def test_a_verb_that_something_has_undone_is_refused_when_it_is_given_again(repo, verb):
    """The task is not as the verb left it: a stated token is lost, for `release` too."""
    key, (_, option) = claimed(repo), ENDS[verb]
    repo.ok(verb, key, option, "all of it", *CODEX)
    undo = AGAIN.get(verb, ("reset", "--reason", "again"))
    repo.ok(undo[0], key, *undo[1:], *ANA)
    refused = repo.fails(5, verb, key, option, "all of it", "--token", "1.1", *CODEX, "--json")
    assert refused.error["code"] == "lease_lost"


@pytest.mark.parametrize("verb", ["release", "fail"])
def test_a_verb_is_no_repeat_once_somebody_else_has_held_the_task(repo, verb):
    key, (_, option) = claimed(repo), ENDS[verb]
    repo.ok(verb, key, option, "all of it", *CODEX)
    if verb == "fail":
        repo.ok("retry", key, *ANA)
    repo.ok("claim", key, *CLAUDE)
    repo.ok(verb, key, option, "mine", *CLAUDE)
    refused = repo.fails(5, verb, key, option, "all of it", "--token", "1.1", *CODEX, "--json")
    assert refused.error["code"] == "lease_lost"


def test_a_verb_of_another_kind_is_no_repeat(repo):
    key = claimed(repo)
    repo.ok("complete", key, "--note", "all of it", *CODEX)
    repo.fails(5, "fail", key, "--reason", "not really", *CODEX)
    repo.fails(5, "complete", key, "--token", "1.0", *CODEX)
    repo.fails(1, "complete", key, *CLAUDE)
    repo.fails(1, "complete", key, "--agent", "codex", "--session", "s1/sub")


def test_a_person_who_dropped_anothers_task_does_not_repeat_its_holders_verb(repo):
    key = claimed(repo)
    repo.ok("drop", key, "--reason", "not wanted", *ANA)
    repo.fails(5, "drop", key, "--token", "1.1", *CODEX)


def test_a_redacted_text_is_not_kept_when_it_is_given_again(repo):
    key = claimed(repo)
    repo.ok("complete", key, "--note", "my secret", *CODEX)
    [note] = repo.json("show", key)["notes"]
    repo.ok("note", key, "--redact", str(note["event"]), "--reason", "a secret", *ANA)
    repo.ok("complete", key, "--note", "my secret", *CODEX)
    assert texts(repo, key) == [None]


def test_the_library_gives_the_same_answer_again(repo):
    key = claimed(repo)
    around = repo.environment()
    with dibs.open_board(repo.folder, agent="codex", session="s1", environment=around) as board:
        first = board.complete(key, note="all of it")
        again = board.complete(key, note="all of it")
        assert (again.task.state, again.task.key) == (first.task.state, key) == ("complete", key)
    assert texts(repo, key) == ["all of it"]


@pytest.mark.parametrize(
    ("exit_code", "verb", "options"),
    [
        (5, "block", ("--reason", "half of it")),
        (5, "handoff", ("--to", "ana", "--note", "half of it")),
        (5, "complete", ("--note", "half of it")),
        (5, "submit", ("--note", "half of it")),
        (5, "fail", ("--reason", "half of it")),
        (0, "release", ("--note", "half of it")),
    ],
)
def test_what_a_former_holder_writes_is_kept_as_a_late_note(repo, exit_code, verb, options):
    key = claimed(repo)
    repo.ok("takeover", key, "--force", "--reason", "urgent", *ANA)
    repo.fails(exit_code, verb, key, *options, *CODEX, "--request-id", "r1")
    [note] = repo.json("show", key)["notes"]
    assert (note["text"], note["late"], note["actor"]) == ("half of it", True, "codex")
    assert repo.json("show", key)["task"]["holder"]["name"] == "ana"
    repo.fails(exit_code, verb, key, *options, *CODEX, "--request-id", "r1")
    assert len(repo.json("show", key)["notes"]) == 1
