"""The Worklog of a kano item: one line for each step, in brackets that close, in the file's words."""

from __future__ import annotations

import re

import pytest

from dibs.domain import commands as c

KEY = "KABSD-TSK-0001"
LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d \[agent=([^\[\]]+)\] \[model=([^\[\]]+)\] (\w+): .*\(dibs 1\.\d+ #\d+\)"
)


def worklog(yard, path) -> list[tuple[str, str, str]]:
    """Agent, model and word of each line that dibs wrote; every such line is whole."""
    lines = [
        line for line in yard.text(path).splitlines() if "dibs 1." in line or "[model=" in line
    ]
    found = [LINE.fullmatch(line) for line in lines if not line.startswith("dibs:")]
    assert all(found), lines
    return [match.groups() for match in found]


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("opus", "opus"),
        ("opus[1m]", "opus(1m)"),
        ("a] [agent=ana", "a) (agent=ana"),
        ("two\nlines\r\nand\u2028more", "two lines and more"),
        ("\n", "unknown"),
        ("\x1b[31mred", "(31mred"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_a_model_of_any_name_stays_in_its_brackets(yard, monkeypatch, model, shown):
    path = yard.kano(KEY)
    yard.sync()
    monkeypatch.setenv("DIBS_MODEL", model)
    yard.agent("codex", "s1").claim(KEY)
    assert worklog(yard, path) == [("codex", shown, "InProgress")]


@pytest.mark.parametrize("word", ["New", "Proposed", "Planned", "Ready"])
def test_a_step_of_an_open_item_is_written_in_the_files_own_word(yard, word):
    path = yard.kano(KEY, state=word)
    yard.sync()
    yard.person("ana").do(c.Force(KEY, reason="it burns"))
    assert worklog(yard, path) == [("ana", "unknown", word), ("ana", "unknown", "InProgress")]
