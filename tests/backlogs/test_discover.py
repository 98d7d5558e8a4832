"""Where backlogs are: by their folders, or where a committed file says; which stops nobody."""

from __future__ import annotations

import pytest

from dibs.backlogs.discover import dialects_at, wrong_in
from kit.backlogs import KANO, TASK, WRK
from kit.boards import of_a_file


def channels(yard) -> list[str]:
    return [dialect.channel for dialect in dialects_at(str(yard.root))]


@of_a_file
def test_each_backlog_is_found_by_its_folder(yard):
    assert channels(yard) == []
    yard.put(f"{KANO}/task/KABSD-TSK-0001_x.md", TASK)
    yard.put(".claude/work-queue/pending/WRK-157.md", WRK)
    yard.put(".wg/graph.jsonl", "")
    yard.put("backlog/config.yml", "statuses: [To Do, Done]\n")
    assert channels(yard) == ["kano", "wrk", "workgraph", "backlog.md"]


@of_a_file
def test_a_folder_of_another_tool_is_no_backlog(yard):
    (yard.root / "backlog").mkdir()
    (yard.root / ".wg").mkdir()
    assert channels(yard) == []


def test_a_committed_file_may_say_where_one_is(yard):
    yard.put("dibs.toml", '[backlogs]\nwrk = "queue"\nsession_state = "state.yaml"\n')
    yard.put("queue/pending/WRK-157.md", WRK)
    yard.put("state.yaml", "sessions:\n  - id: a\n  - id: b\n")
    yard.sync()
    assert yard.task("WRK-157").channel == "wrk"
    [dialect] = dialects_at(str(yard.root))
    assert dialect.sessions == {"a", "b"}


WRONG = {
    "[backlogs": "cannot be read",
    "[agents.evil]\ncommand = 'true'": "agents: programs and servers are only read from your own configuration",
    "backlogs = 3": "backlogs is a table",
    "[backlogs]\njira = 'x'": "there is no backlog 'jira'",
    "[backlogs]\nkano = '../x'": "a path below the repository",
    "[backlogs]\nkano = '/etc'": "a path below the repository",
    "[backlogs]\nkano = 7": "a path below the repository",
    "[backlogs]\nkano = ''": "a path below the repository",
    "[backlogs]\nkano = 'a/../../x'": "a path below the repository",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_it_may_not_say_is_reported_and_not_followed(yard, text):
    """Anybody can write it, so it can neither start something nor stop somebody."""
    yard.put(f"{KANO}/task/KABSD-TSK-0141_x.md", TASK)
    yard.put("dibs.toml", text)
    assert any(WRONG[text] in str(problem) for problem in wrong_in(str(yard.root)))
    report = yard.sync()
    assert any(problem.path == "dibs.toml" for problem in report.problems)
    assert report.added == 1
