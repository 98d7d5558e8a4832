"""The assignment record of a kano backlog, through the command line, on two items that ask for it.

`docs/reference/assignment-record.md` documents the schema and the policy; the tests compare what the page
says with what happens.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from dibs.output.error_map import ERROR_MAP
from kit.boards import of_a_file
from kit.corpus import STORY, TASK
from kit.item_files import OWNED, changes
from kit.running import until

ITEMS = "_kano/backlog/products/demo/items"
STORY_FILE = f"{ITEMS}/userstory/0000/KABSD-USR-0026_assignment-record.md"
TASK_FILE = f"{ITEMS}/task/0100/KABSD-TSK-0141_define-assignment-records.md"
STORY_KEY, KEY = "KABSD-USR-0026", "KABSD-TSK-0141"
CODEX = ("--agent", "codex", "--session", "s1")
TWIN = ("--agent", "codex", "--session", "s2")
CLAUDE = ("--agent", "claude", "--session", "s9")
ANA = ("--as", "ana")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "assignment-record.md"


class Backlog:
    """A repository with a kano story and a kano task, read by a sync."""

    def __init__(self, repo) -> None:
        self.repo = repo
        self.put(STORY_FILE, STORY)
        self.put(TASK_FILE, TASK)

    def put(self, path: str, text: str) -> None:
        where = self.repo.folder / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text)

    def data(self, path: str = TASK_FILE) -> bytes:
        return (self.repo.folder / path).read_bytes()

    def fields(self, path: str = TASK_FILE) -> dict:
        """The frontmatter, as YAML reads it."""
        return yaml.safe_load(self.data(path).decode().split("---\n")[1])

    def worklog(self, path: str = TASK_FILE) -> list[str]:
        text = self.data(path).decode()
        return [line for line in text.split("# Worklog\n")[1].splitlines() if line]

    def ok(self, *words: str, **around: str):
        return self.repo.ok(*words, **around)

    def code(self, *words: str, **around: str) -> tuple[int, str]:
        """How a command is refused. Its item file stays as it is."""
        before = self.data()
        ran = self.repo.run(*words, "--json", **around)
        assert ran.code, (words, ran.out)
        assert self.data() == before
        return ran.code, ran.error["code"]

    def task(self, key: str = KEY) -> dict:
        return self.repo.json("show", key)["task"]

    def wait_for_expiry(self, key: str = KEY) -> None:
        until(lambda: self.task(key)["expired"], "a lease of one second expires")


@pytest.fixture
def backlog(repo):
    backlog = Backlog(repo)
    repo.ok("sync", *ANA)
    return backlog


def table(title: str) -> list[dict[str, str]]:
    """The rows of the tables below a heading of the page, by the names of their columns."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows, head = [], []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells
        elif not set(line) <= set("|-"):
            rows.append(dict(zip(head, [cell.strip("| ") for cell in cells], strict=True)))
    return rows


def words_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# Assignment, transitions, expiry.


@of_a_file
def test_the_record_has_assignee_tier_scope_ttl_and_times(backlog):
    before = backlog.data(STORY_FILE)
    backlog.ok("scope", STORY_KEY, "--add", "src/dispatch/**", *ANA)
    backlog.ok("claim", STORY_KEY, *CODEX, "--ttl", "30m")
    backlog.ok("renew", STORY_KEY, *CODEX)
    record, task = backlog.fields(STORY_FILE), backlog.task(STORY_KEY)
    assert record["assignee_agent"] == record["owner"] == "codex"
    assert (record["assignee_tier"], record["lease_ttl"]) == (1, "30m")
    assert record["scope"] == ["src/dispatch/**"]
    lasts = record["lease_expires_at"] - record["assigned_at"]
    assert lasts.total_seconds() == 1800
    assert (task["renewals"], task["token"]) == (1, "1.1")
    assert record["dibs"].split()[1:] == ["1.1", "codex", "s1", "30m"]
    changes(before, backlog.data(STORY_FILE), "kano")


def test_an_assignment_claims_the_item_for_the_assignee(backlog):
    """A dispatcher names the assignee; from then on nobody else can have the item."""
    backlog.ok("note", KEY, "hello", *CODEX)
    backlog.ok("assign", KEY, "--to", "codex", *ANA)
    record = backlog.fields()
    assert (record["assignee_agent"], record["state"]) == ("codex", "Proposed")
    assert record["lease_expires_at"] > record["assigned_at"]
    assert record["dibs"].split()[2:4] == ["codex", "-"]
    assert backlog.code("claim", KEY, *CLAUDE) == (4, "held")
    backlog.ok("claim", KEY, *CODEX)
    assert backlog.fields()["dibs"].split()[1:4] == ["1.1", "codex", "s1"]


def test_only_the_assignee_can_start_the_item(backlog):
    backlog.ok("claim", STORY_KEY, "--reserve", *CODEX)
    for somebody in (CLAUDE, TWIN, ANA):
        assert backlog.code("start", STORY_KEY, *somebody) == (4, "held")
        assert backlog.code("claim", STORY_KEY, *somebody) == (4, "held")
    assert backlog.fields(STORY_FILE)["state"] == "Proposed"
    backlog.ok("start", STORY_KEY, *CODEX)
    assert backlog.fields(STORY_FILE)["state"] == "InProgress"


@of_a_file
def test_a_person_can_force_a_start(backlog):
    backlog.ok("claim", KEY, "--reserve", *CODEX)
    force = ("takeover", KEY, "--force", "--reason", "codex is on the wrong branch")
    assert backlog.code(*force, *CLAUDE) == (1, "people_only")
    assert backlog.code(*force, *ANA, CLAUDECODE="1") == (1, "in_harness")
    assert backlog.code("takeover", KEY, "--force", *ANA) == (2, "reason_missing")
    backlog.ok(*force, *ANA)
    record = backlog.fields()
    assert (record["state"], record["assignee_agent"]) == ("InProgress", "ana")
    assert record["handoff_reason"] == "codex is on the wrong branch"


def test_an_expired_lease_can_be_taken_over(backlog):
    backlog.ok("claim", KEY, "--ttl", "1s", *CODEX)
    backlog.wait_for_expiry()
    took = backlog.ok("takeover", KEY, "--reason", "codex is silent", *CLAUDE)
    assert "was held by codex (session s1)" in took.err
    record = backlog.fields()
    assert (record["assignee_agent"], record["handoff_reason"]) == ("claude", "codex is silent")
    assert record["dibs"].split()[1:4] == ["1.2", "claude", "s9"]
    assert "[agent=claude]" in backlog.worklog()[-1]
    assert "taken over: codex is silent" in backlog.worklog()[-1]
    for verb in ("renew", "complete", "stop"):
        assert backlog.code(verb, KEY, *CODEX) == (5, "lease_lost")


def test_every_force_is_in_the_audit(backlog):
    """Who and why: in the file, and in a ledger that proves itself."""
    backlog.ok("claim", KEY, *CODEX)
    backlog.ok("takeover", KEY, "--force", "--reason", "it burns", *ANA)
    backlog.ok("reset", KEY, "--reason", "once more", *ANA)
    [forced] = backlog.repo.json("log", "--forced")["events"]
    assert (forced["actor"], forced["task"], forced["token"]) == ("ana", KEY, "1.2")
    assert "it burns" in str(forced)
    lines = [line.partition("] ")[2] for line in backlog.worklog()[2:]]
    assert [re.sub(r" \(dibs .*", "", line) for line in lines] == [
        "[model=unknown] InProgress: started",
        "[model=unknown] InProgress: forced: it burns",
        "[model=unknown] Proposed: reset: once more",
    ]
    numbers = [int(line.rpartition("#")[2].strip(")")) for line in backlog.worklog()[2:]]
    events = {event["seq"]: event for event in backlog.repo.json("log", KEY)["events"]}
    assert [events[number]["verb"] for number in numbers] == ["started", "forced", "reset"]
    assert backlog.repo.json("log", "--verify")["ok"]


# The documented schema and policy.


@of_a_file
def test_the_page_documents_every_field_of_the_record(backlog):
    """The page lists exactly the keys that an assignment can write, and what becomes of them."""
    backlog.put(TASK_FILE, TASK.replace("owner: null", "owner: bo"))
    before = backlog.data()
    backlog.ok("note", KEY, "hello", *CODEX)
    backlog.ok("scope", KEY, "--add", "src/dispatch/**", *ANA)
    backlog.ok("edit", KEY, "--allow", "edit", *ANA)
    backlog.ok("assign", KEY, "--to", "codex", "--reason", "it knows the module", *ANA)
    backlog.ok("claim", KEY, *CODEX)
    held = backlog.fields()
    rows = {words_in(row["key"])[0]: row for row in table("kano")}
    assert changes(before, backlog.data(), "kano").keys == set(rows) == OWNED["kano"]
    backlog.ok("release", KEY, *CODEX)
    after = backlog.fields()
    ends = {key: row["after the end of the lease"] for key, row in rows.items()}
    assert {key for key in held if key not in after} == {
        key for key, end in ends.items() if end == "removed"
    }
    for key in (key for key, end in ends.items() if end == "kept"):
        assert after[key] == held[key], key
    assert (held["owner"], held["dibs_owner"], after["owner"]) == ("codex", "bo", "bo")


@of_a_file
def test_a_claim_without_scope_or_reason_writes_no_empty_keys(backlog):
    before = backlog.data()
    backlog.ok("claim", KEY, *CODEX)
    record = backlog.fields()
    assert OWNED["kano"] - set(record) == {"dibs_owner", "scope", "constraints", "handoff_reason"}
    backlog.ok("release", KEY, *CODEX)
    assert changes(before, backlog.data(), "kano").keys <= {"dibs", "updated"}


@of_a_file
def test_a_key_of_the_record_that_was_in_the_file_stays_and_is_emptied(backlog):
    backlog.put(TASK_FILE, TASK.replace("owner: null", "owner: null\nassignee_agent: null"))
    backlog.ok("claim", KEY, *CODEX)
    assert backlog.fields()["assignee_agent"] == "codex"
    backlog.ok("release", KEY, *CODEX)
    assert backlog.fields()["assignee_agent"] is None


def test_the_page_documents_the_fields_of_the_other_dialect():
    assert {words_in(row["key"])[0] for row in table("WRK")} == OWNED["wrk"]


@pytest.mark.parametrize("dialect", ["kano", "WRK"])
def test_the_page_documents_the_names_of_states(dialect):
    from dibs.backlogs.formats import kano, wrk

    words = kano.WORDS if dialect == "kano" else wrk.WORDS
    stated = {words_in(row["state"])[0]: words_in(row[dialect]) for row in table("States")}
    assert {state: first for state, (first, *_) in stated.items()} == dict(words.writes)
    means = {word.casefold(): state for state, all_ in stated.items() for word in all_}
    assert means | {"blocked": "blocked"} == dict(words.means)


@of_a_file
def test_the_page_documents_who_may_make_which_transition(backlog):
    """Each row of the page, tried by another agent while the lease runs."""
    rows = [row for row in table("Who may move an item") if "command" in row]
    assert len(rows) == 14
    backlog.ok("note", KEY, "hello", *CLAUDE)
    backlog.ok("claim", KEY, *CODEX)
    for row in rows:
        [typed] = words_in(row["command"])
        words = [{"KEY": KEY, "NAME": "claude", "TEXT": "why"}.get(w, w) for w in typed.split()]
        found = backlog.code(*words[1:], *CLAUDE)
        assert found == (int(row["exit"]), words_in(row["refusal"])[0]), typed


def test_every_refusal_of_the_policy_has_the_documented_exit_code():
    rows = table("Who may move an item")
    for row in rows:
        [code] = words_in(row["refusal"])
        assert ERROR_MAP[code].exit == int(row["exit"]), code
    moves = {state for row in rows for state in words_in(row.get("transition", ""))}
    assert {"InProgress", "Done", "Dropped"} <= moves


@of_a_file
def test_claim_renew_release_and_takeover_work_from_the_command_line(backlog):
    before = backlog.data()
    backlog.ok("claim", KEY, *CODEX)
    backlog.ok("renew", KEY, *CODEX)
    backlog.ok("release", KEY, *CODEX)
    assert backlog.fields()["state"] == "Proposed"
    assert backlog.fields()["owner"] is None
    backlog.ok("takeover", KEY, *CLAUDE)
    assert backlog.fields()["assignee_agent"] == "claude"
    changes(before, backlog.data(), "kano")


# Identity in the Worklog; no deadlock.


@of_a_file
def test_every_worklog_line_names_the_agent(backlog):
    backlog.ok("claim", KEY, *CODEX, DIBS_MODEL="gpt-9")
    backlog.ok("complete", KEY, "--note", "see\nthe branch", *CODEX)
    started, done = backlog.worklog()[-2:]
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d \[agent=codex\] \[model=gpt-9\] InProgress: started "
        r"\(dibs 1\.1 #\d+\)",
        started,
    )
    assert "[agent=codex] [model=unknown] Done: completed: see the branch (dibs 1.1 #" in done


def test_an_expiry_during_work_blocks_nobody(backlog):
    """The assignee may finish late, if nobody came; and if somebody came, its words are kept."""
    backlog.ok("claim", KEY, "--ttl", "1s", *CODEX)
    backlog.ok("claim", STORY_KEY, "--ttl", "1s", *CODEX)
    backlog.wait_for_expiry()
    backlog.ok("complete", KEY, "--note", "late, but done", *CODEX)
    assert backlog.fields()["state"] == "Done"
    backlog.wait_for_expiry(STORY_KEY)
    backlog.ok("claim", STORY_KEY, *CLAUDE)
    assert backlog.code("complete", STORY_KEY, "--note", "mine", *CODEX) == (5, "lease_lost")
    [note] = backlog.repo.json("show", STORY_KEY)["notes"]
    assert (note["text"], note["kind"]) == ("mine", "late")


# Scope, handoff, pointer.


@of_a_file
def test_scope_and_constraints_of_the_file_are_enforced(backlog):
    stated = 'scope: ["src/dispatch/**"]\nconstraints: [edit, commit]\n---\n\n# Context'
    backlog.put(TASK_FILE, TASK.replace("---\n\n# Context", stated))
    backlog.put(STORY_FILE, STORY.replace("---\n\n# Context", stated))
    backlog.ok("claim", KEY, *CODEX)
    assert backlog.code("complete", KEY, *CODEX) == (3, "not_allowed")
    assert backlog.code("claim", STORY_KEY, *CLAUDE) == (4, "scope_held")


@of_a_file
def test_the_record_keeps_the_reason_of_a_handoff(backlog):
    backlog.ok("note", KEY, "hello", *CLAUDE)
    backlog.ok("claim", KEY, *CODEX)
    assert "handoff_reason" not in backlog.fields()
    backlog.ok("handoff", KEY, "--to", "claude", "--reason", "needs: a #browser", *CODEX)
    assert backlog.fields()["handoff_reason"] == "needs: a #browser"
    backlog.ok("claim", KEY, *CLAUDE)
    backlog.ok("release", KEY, *CLAUDE)
    assert "handoff_reason" not in backlog.fields()


@of_a_file
def test_a_reset_with_an_assignee_claims_for_it(backlog):
    """Also after a reset: no dispatcher comes between."""
    backlog.ok("note", KEY, "hello", *CODEX)
    backlog.ok("reset", KEY, "--assign", "codex", *ANA)
    assert backlog.code("claim", KEY, *CLAUDE) == (4, "held")
    backlog.ok("start", KEY, *CODEX)
    assert backlog.fields()["state"] == "InProgress"


@of_a_file
@pytest.mark.parametrize("verb", ["renew", "release"])
def test_only_the_assignee_can_renew_or_release(backlog, verb):
    backlog.ok("claim", KEY, *CODEX)
    for somebody in (CLAUDE, TWIN, ANA):
        assert backlog.code(verb, KEY, *somebody) == (4, "held")
    backlog.ok(verb, KEY, *CODEX)


@of_a_file
def test_a_takeover_needs_an_expired_lease_or_a_force(backlog):
    backlog.ok("claim", KEY, *CODEX)
    for somebody in (CLAUDE, TWIN, ANA):
        assert backlog.code("takeover", KEY, "--reason", "mine", *somebody) == (4, "held")
    backlog.ok("takeover", KEY, "--force", "--reason", "mine", *ANA)
    [forced] = backlog.repo.json("log", "--forced")["events"]
    assert (forced["actor"], forced["verb"]) == ("ana", "forced")


@of_a_file
def test_a_lost_database_is_rebuilt_from_the_pointers_in_the_files(backlog):
    backlog.ok("claim", KEY, *CODEX)
    backlog.ok("claim", STORY_KEY, *CLAUDE)
    backlog.ok("complete", STORY_KEY, *CLAUDE)
    for file in backlog.repo.database.parent.glob("board.db*"):
        file.unlink()
    output = backlog.ok("sync", *ANA).out
    assert "1 lease restored from the files" in output
    task = backlog.task()
    assert (task["holder"]["name"], task["holder"]["session"]) == ("codex", "s1")
    assert backlog.task(STORY_KEY)["state"] == "complete"
    assert backlog.code("claim", KEY, *CLAUDE) == (4, "held")
    assert backlog.code("complete", KEY, "--token", "1.1", *CODEX) == (5, "lease_lost")
    backlog.ok("complete", KEY, *CODEX)
    epoch = int(backlog.fields()["dibs"].split()[1].partition(".")[0])
    assert epoch > 1


@of_a_file
def test_a_lease_of_another_clone_is_reported_and_ignored(backlog, tmp_path):
    from kit.repositories import Repo

    backlog.ok("claim", KEY, *CODEX)
    other = Repo.create(tmp_path / "other")
    shutil.copytree(backlog.repo.folder / "_kano", other.folder / "_kano")
    other.ok("init", "--new")
    output = other.ok("sync", *ANA).out
    assert "it names another board" in output
    assert "where codex holds it until" in output
    other.ok("claim", KEY, *CLAUDE)


# The documented lifecycle.


def test_the_page_documents_the_rules_of_a_lease():
    """The page, and the rules on it, one per line."""
    rules = PAGE.read_text().split("## Lease rules")[1].split("\n## ")[0]
    assert len(re.findall(r"^\d\. ", rules, re.MULTILINE)) >= 6
    suggested = re.findall(r"`(assign\w+|lease_\w+|scope|constraints|handoff_\w+)`", TASK)
    assert set(suggested) <= {words_in(row["key"])[0] for row in table("kano")}


STEPS = {
    "Done": [("claim",), ("complete",)],
    "Dropped": [("claim",), ("drop",)],
    "InProgress": [("claim", "--reserve"), ("start",)],
}


@of_a_file
@pytest.mark.parametrize("word", STEPS)
def test_each_state_of_the_file_starts_or_ends_a_lease(backlog, word):
    """InProgress has a lease; Done and Dropped end it, and nobody can claim the item again."""
    for verb, *options in STEPS[word]:
        backlog.ok(verb, KEY, *options, *CODEX)
    record = backlog.fields()
    assert record["state"] == word
    assert record["owner"] == "codex"
    if word == "InProgress":
        assert record["assignee_agent"] == "codex"
        assert backlog.code("claim", KEY, *CLAUDE) == (4, "held")
    else:
        assert "assignee_agent" not in record
        assert len(record["dibs"].split()) == 2
        assert backlog.code("claim", KEY, *CLAUDE) == (1, "final")
    assert f"{word}: " in backlog.worklog()[-1]


@of_a_file
@pytest.mark.parametrize("section", ["Context", "Goal", "Approach", "Acceptance Criteria", "Risks"])
def test_nobody_starts_an_item_that_is_not_ready(backlog, section):
    head, _, rest = TASK.partition(f"\n# {section}")
    title, _, text = rest.partition("\n")
    backlog.put(TASK_FILE, f"{head}\n# {section}{title}\n\n# {text.partition(chr(10) + '# ')[2]}")
    assert backlog.code("claim", KEY, *CODEX) == (3, "gate_not_met")
    backlog.ok("takeover", KEY, "--force", "--reason", "we know", *ANA)
    assert backlog.fields()["state"] == "InProgress"
    assert any("forced: we know" in line for line in backlog.worklog())


def test_abandoned_work_can_be_recovered(backlog):
    """Expiry + takeover: what status says, what the sweep does, who comes next"""
    backlog.ok("claim", KEY, "--ttl", "1s", *CODEX)
    backlog.wait_for_expiry()
    [held] = backlog.repo.json("status")["held"]
    assert held["wrong"].startswith("stale: expired")
    backlog.ok("sweep", "--grace", "0s", *ANA)
    backlog.ok("sweep", "--grace", "0s", *ANA)
    record = backlog.fields()
    assert (record["state"], record["owner"]) == ("Proposed", None)
    assert "assignee_agent" not in record
    assert "Proposed: lease ended: expired; codex had it (dibs 1.1 #" in backlog.worklog()[-1]
    took = backlog.ok("claim", KEY, *CLAUDE)
    assert "was held by codex (session s1)" in took.err
    assert backlog.fields()["assignee_agent"] == "claude"


# Strict identity.


VERBS = ["claim", "start", "renew", "release", "complete", "takeover"]


@of_a_file
def test_every_change_needs_an_identity(backlog):
    """With a kano backlog only explicit names count: neither git's name nor a harness's variable."""
    for verb in VERBS:
        assert backlog.code(verb, KEY) == (2, "no_identity")
        command = (verb, KEY, "--agent", "codex")
        assert backlog.code(*command) == (2, "no_session")
        assert backlog.code(*command, CODEX_THREAD_ID="th-42") == (2, "no_session")
    backlog.ok("claim", KEY, DIBS_AGENT="codex", DIBS_SESSION="s1")
    assert backlog.task()["session"] == "s1"


def test_config_says_why_identity_is_strict(backlog):
    reply = backlog.repo.json("config")["settings"]["identity"]
    assert reply == {"value": "strict", "source": "kano backlog"}


@of_a_file
def test_a_setting_decides_before_the_backlog(backlog):
    file = backlog.repo.database.parent / "settings.toml"
    file.write_text('identity = "normal"\n')
    reply = backlog.repo.json("config")["settings"]["identity"]
    assert reply == {"value": "normal", "source": str(file)}
    backlog.ok("claim", KEY, "--agent", "codex", CODEX_THREAD_ID="th-42")
    assert backlog.task()["session"] == "th-42"


@of_a_file
def test_without_a_kano_backlog_nothing_is_strict(repo):
    reply = repo.json("config")["settings"]["identity"]
    assert reply == {"value": "normal", "source": "default"}
