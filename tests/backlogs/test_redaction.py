"""What dibs wrote of a note into an item file goes when the note is redacted, and nothing else does."""

from __future__ import annotations

import json

import pytest

from dibs.board.queries import show
from dibs.domain import commands as c
from dibs.domain.model import TaskKey
from kit.backlogs import difference

SECRET = "hunter2: completed, in progress"


def kano(yard) -> tuple[str, TaskKey]:
    return yard.kano("KABSD-TSK-0001"), TaskKey("KABSD-TSK-0001")


def workgraph(yard) -> tuple[str, TaskKey]:
    node = {"kind": "task", "id": "fix", "title": "Fix login", "status": "open", "tags": ["a"]}
    return yard.put(".wg/graph.jsonl", json.dumps(node) + "\n"), TaskKey("fix")


@pytest.mark.parametrize("backlog", [kano, workgraph], ids=lambda backlog: backlog.__name__)
@pytest.mark.parametrize("model", ["", ": completed"])
def test_a_redacted_text_goes_from_the_item_file_and_the_step_stays(
    yard, monkeypatch, backlog, model
):
    path, key = backlog(yard)
    yard.look()
    yard.sync()
    monkeypatch.setenv("DIBS_MODEL", model)
    codex, ana = yard.agent("codex", "s1"), yard.person("ana")
    codex.claim(key)
    codex.do(c.Complete(key, note=SECRET))
    before = yard.text(path)
    assert "hunter2" in before
    [seq] = [note.seq for note in show(yard.board, key).notes]
    ana.do(c.Redact(key, seq, "a password"))
    after = yard.text(path)
    assert "hunter2" not in after
    assert after.count(f"#{seq})") == before.count(f"#{seq})") == 1
    assert after.count("redacted") == 1
    changed = [line for line in difference(before, after) if not line[1:].startswith("updated")]
    assert len(changed) == 2, changed
    yard.sync()
    assert yard.text(path) == after
    assert yard.faults() == ()


def test_a_step_whose_text_was_redacted_before_it_was_told_stays_untold(yard):
    path, key = kano(yard)
    yard.look()
    yard.sync()
    codex, ana = yard.agent("codex", "s1"), yard.person("ana")
    codex.claim(key)
    aside = yard.text(path)
    codex.do(c.Complete(key, note=SECRET))
    [seq] = [note.seq for note in show(yard.board, key).notes]
    yard.put(path, aside)
    ana.do(c.Redact(key, seq, "a password"))
    assert f"#{seq})" not in yard.text(path)
