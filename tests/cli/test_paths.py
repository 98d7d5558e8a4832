"""Paths on the command line: who holds them, and how a person lets somebody touch one."""

from __future__ import annotations

import pytest

ANA = ("--as", "ana")
CODEX = ("--agent", "codex", "--session", "s1")


@pytest.fixture
def held(repo):
    """T-1 holds `src/**`, T-2 is free."""
    repo.ok("add", "Fix login", "--scope", "src/**", *ANA)
    repo.ok("add", "Write docs", "--scope", "docs", *ANA)
    repo.ok("claim", "T-1", *CODEX)
    (repo.folder / "src").mkdir()
    (repo.folder / "T-1").write_text("a file with the name of a task")
    (repo.folder / "link").symlink_to("src")
    return repo


def test_who_says_for_each_path_who_holds_it(held):
    reply = held.ok("who", "src/a.py", "docs/b.md", "link/c.py", "--json").json["paths"]
    assert [one["path"] for one in reply] == ["src/a.py", "docs/b.md", "link/c.py"]
    [holder] = reply[0]["holders"]
    assert holder["expires_at"].endswith("Z")
    assert holder | {"expires_at": ""} == {
        "path": "src/a.py", "task": "T-1", "holder": "codex", "session": "s1",
        "scope": ["src/**"], "expires_at": "", "expired": False,
    }  # fmt: skip
    assert reply[1]["holders"] == []
    assert reply[2]["holders"][0]["path"] == "src/c.py"
    output = held.ok("who", "src/a.py", "docs/b.md").out
    assert "src/a.py: codex (session s1) with T-1, until" in output
    assert "docs/b.md: nobody" in output


def test_a_name_that_is_a_tasks_is_the_task_and_with_a_dot_the_file(held):
    assert held.ok("who", "T-1").out.startswith("T-1: codex")
    assert held.ok("who", "./T-1").out == "./T-1: nobody\n"
    assert held.run("who", "T-9").code == 2
    both = held.ok("who", "T-1", "src/a.py", "T-2").out.splitlines()
    assert [line.partition(":")[0] for line in both] == ["T-1", "T-2", "src/a.py"]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "", "a\nb", ".git/config"])
def test_a_path_outside_the_repository_is_refused(held, path):
    ran = held.run("who", "src", path, "--json")
    assert (ran.code, ran.error["code"]) == (2, "bad_argument")


def test_at_goes_with_a_task(held):
    assert held.run("who", "T-1", "T-2", "--at", "1s").code == 2


def test_a_person_lets_somebody_touch_a_path_that_is_held(held):
    held.ok("note", "T-1", "I am here", "--agent", "claude", "--session", "s9")
    command = ("guard", "allow", "link/a.py", "--to", "claude", "--reason", "hotfix")
    reply = held.ok(*command, "--for", "10m", *ANA, "--json").json
    assert reply["to"] == "claude"
    assert reply["allowed"][0]["task"] == "T-1"
    assert reply["allowed"][0]["paths"] == ["src/a.py"]
    shown = held.ok("show", "T-1", "--json").json["allowed"]
    assert [(one["to"], one["paths"]) for one in shown] == [("claude", ["src/a.py"])]
    assert "claude may touch src/a.py until" in held.ok("show", "T-1").out
    assert held.ok("log", "--verify").code == 0


REFUSALS = {
    "an agent": (("src/a.py", "--reason", "x", *CODEX), 1, "people_only"),
    "no reason": (("src/a.py", *ANA), 2, "reason_missing"),
    "nobody holds it": (("docs/b.md", "--reason", "x", *ANA), 1, "not_reserved"),
    "no path": (("--reason", "x", *ANA), 2, "bad_argument"),
    "outside": (("../x", "--reason", "x", *ANA), 2, "bad_argument"),
    "too long": (("src/a", "--for", "2d", "--reason", "x", *ANA), 2, "bad_argument"),
    "unknown": (("src/a", "--to", "zoe", "--reason", "x", *ANA), 2, "unknown_actor"),
}


@pytest.mark.parametrize(("given", "exit_", "code"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_allowed_is_refused(held, given, exit_, code):
    ran = held.run("guard", "allow", *given, "--json")
    assert (ran.code, ran.error["code"]) == (exit_, code)


def test_areas_are_shown_with_their_source(repo):
    (repo.folder / "dibs.toml").write_text("[areas]\nweb = ['src/web/**']\n")
    repo.ok("add", "Work", "--scope", "@web", *ANA)
    repo.ok("claim", "T-1", *CODEX)
    assert "codex (session s1) with T-1" in repo.ok("who", "src/web/a.js").out
    assert repo.ok("doctor").code == 0
    reply = repo.ok("config", "--json").json["settings"]
    assert reply["areas.web"] == {"value": "src/web/**", "source": "dibs.toml"}


@pytest.mark.parametrize("text", ["[areas\n", "[areas]\nweb = ['../x']\n"])
def test_an_area_that_is_not_followed_is_told(repo, text):
    (repo.folder / "dibs.toml").write_text(text)
    assert "it is not followed" in repo.ok("config").err
    ran = repo.run("doctor", "--json")
    assert ran.code == 1
    assert [one["level"] for one in ran.json["findings"] if one["what"] == "dibs.toml"] == ["wrong"]


def test_the_log_says_what_was_allowed_to_whom(held):
    held.ok("guard", "allow", "src/a.py", "--reason", "hotfix", *ANA)
    assert "ana may touch src/a.py until" in held.ok("log", "T-1").out


@pytest.mark.parametrize("to", [(), ("--to", "newp")])
def test_whoever_acts_for_the_first_time_may_allow_themselves(held, to):
    """As with any other verb, the first use of a name registers it."""
    reply = held.json("guard", "allow", "src/a.py", "--reason", "hotfix", *to, "--as", "newp")
    assert reply["to"] == "newp"
    [allowed] = held.json("show", "T-1")["allowed"]
    assert allowed["to"] == "newp"
