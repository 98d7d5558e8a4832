"""What each harness sends, in its documented form, and what it gets back: to the letter, with the exit code.

Each file in `golden/` is one call: what was done before, the input, the output.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path
from shlex import split

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.harness_table import BEFORE, HARNESSES, START
from dibs.integrations.harness.hook_input import actor_in, files_of_patch, parse_event
from dibs.integrations.harness.hooks import Hooks
from dibs.output.error_map import advice
from kit.boards import of_a_file
from kit.harnesses import claude_event, context, denial, edit, hook
from kit.repositories import DIBS, Repo, git

GOLDEN = Path(__file__).parent / "golden"
CALLS = sorted(GOLDEN.glob("*/*.json"))
TIME = re.compile(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\dZ")

BOARD = """
    add "Fix login" --scope src/auth/** --as ana
    add "Write docs" --scope docs/** --as ana
    add "Speed up" --as ana
    claim T-1 --agent codex-2 --session s9
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A repository whose src/auth is held by another, and docs/ is free."""
    repo = Repo.create(tmp_path_factory.mktemp("golden") / "repo")
    repo.ok("init")
    for line in BOARD.strip().splitlines():
        repo.ok(*split(line))
    return repo


def settled(text: str, repo: Repo) -> str:
    return TIME.sub("TIME", text.replace(str(repo.folder), "/repo"))


@pytest.mark.parametrize("path", CALLS, ids=[f"{p.parent.name}-{p.stem}" for p in CALLS])
def test_a_recorded_call_gets_its_recorded_answer(shop, path):
    """The whole of the standard output, the standard error, and the exit code."""
    call = json.loads(path.read_text())
    for line in call["before"]:
        shop.ok(*split(line))
    text = json.dumps(call["input"]).replace("/repo", str(shop.folder))
    ran = hook(shop, text, path.parent.name)
    out = settled(ran.out, shop)
    reply = {"out": json.loads(out) if out else "", "err": settled(ran.err, shop), "exit": ran.code}
    for line in call["after"]:
        shop.ok(*split(line))
    if os.environ.get("DIBS_GOLDEN") == "write":
        path.write_text(json.dumps({**call, "output": reply}, indent=2) + "\n")
    assert reply == call["output"]


def test_there_is_a_recorded_call_for_every_event_that_we_ask_for():
    for harness in HARNESSES.values():
        events = {json.loads(p.read_text())["input"]["hook_event_name"] for p in CALLS
                  if p.parent.name == harness.name}  # fmt: skip
        assert {one.event for one in harness.hooks} <= events


# What is asked of the board.


@of_a_file
def test_an_edit_of_what_another_holds_is_denied_with_a_way_on(repo):
    key = repo.add("work", "--scope", "src/auth/**")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    reason = denial(hook(repo, edit(repo, "src/auth/x.py")))
    assert f"held by codex (session s1) with {key} until" in reason
    assert f"dibs wait {key} --for free" in reason
    assert denial(hook(repo, edit(repo, "src/other/x.py"))) == ""


@of_a_file
def test_an_edit_outside_ones_own_scope_is_denied(repo):
    key = repo.add("work", "--scope", "src/auth/**")
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    assert denial(hook(repo, edit(repo, "src/auth/x.py"))) == ""
    assert f"dibs scope {key} --add" in denial(hook(repo, edit(repo, "docs/x.md")))


@of_a_file
def test_constraints_that_do_not_allow_edits_deny_them(repo):
    key = repo.add("work", "--allow", "commit")
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    assert "do not allow it to edit" in denial(hook(repo, edit(repo, "x.py")))


@of_a_file
def test_where_conflicts_only_warn_the_edit_is_made_and_the_model_is_warned(repo):
    key = repo.add("work", "--scope", "src/**")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    (repo.database.parent / "settings.toml").write_text('scope_conflict = "warn"\n')
    assert "is held by codex" in context(hook(repo, edit(repo, "src/x.py")))


@of_a_file
def test_every_call_renews_what_the_session_holds_with_its_own_ttl(repo):
    """Also a lease of three hours, also by a subagent, also when the edit is denied."""
    mine, theirs = repo.add(), repo.add("theirs", "--scope", "src/**")
    repo.ok("claim", mine, "--agent", "claude", "--session", "c1", "--ttl", "3h")
    repo.ok("claim", theirs, "--agent", "codex", "--session", "s1")
    calls = [
        claude_event("PostToolUse", repo, tool_name="Bash", tool_input={"command": "make"}),
        claude_event("UserPromptSubmit", repo, prompt="go on"),
        claude_event("Stop", repo, stop_hook_active=False, background_tasks=[]),
        claude_event("SubagentStop", repo, agent_id="a2", agent_type="x"),
        edit(repo, "docs/x.md", agent_id="a2"),
        edit(repo, "src/x.py"),
    ]
    for number, call in enumerate(calls, 1):
        assert hook(repo, call).code == 0
        task = repo.json("show", mine)["task"]
        assert (task["renewals"], task["lease_ttl"]) == (number, "3h")


@of_a_file
@pytest.mark.parametrize("path", ["/elsewhere/x", "", "\0", None])
def test_an_edit_of_nothing_on_the_board_is_a_sign_of_life_too(repo, path):
    """Outside of the repository, or of no file at all: whatever it is about, somebody works."""
    key = repo.add()
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    event = {**edit(repo, "x"), "tool_input": {"file_path": path}}
    for name in ("Edit", "Bash"):
        ran = hook(repo, {**event, "tool_name": name})
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert repo.json("show", key)["task"]["renewals"] == 2


@of_a_file
def test_an_edit_elsewhere_is_judged_there_and_renews_here(repo, tmp_path):
    elsewhere = Repo.create(tmp_path / "elsewhere")
    elsewhere.ok("init")
    theirs, mine = elsewhere.add("work", "--scope", "src/**"), repo.add()
    elsewhere.ok("claim", theirs, "--agent", "codex", "--session", "s1")
    repo.ok("claim", mine, "--agent", "claude", "--session", "c1")
    event = {**edit(elsewhere, "src/x.py"), "cwd": str(repo.folder)}
    assert "held by codex" in denial(hook(repo, event))
    assert denial(hook(repo, {**event, "tool_input": {"file_path": f"{elsewhere.folder}/y"}})) == ""
    assert repo.json("show", mine)["task"]["renewals"] == 2
    hook(repo, {**edit(repo.worktree("other"), "y"), "cwd": str(repo.folder)})
    assert repo.json("show", mine)["task"]["renewals"] == 3


@of_a_file
def test_half_a_character_in_a_path_hides_it_from_nobody(repo):
    """As JavaScript lets texts have: the file that it makes has another name, in the same folder."""
    key = repo.add("work", "--scope", "src")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    for path in ("src/\ud800", "src/\udc00x\ud83d/a", "src/\udc80"):
        assert "held by codex" in denial(
            hook(repo, {**edit(repo, "x"), "tool_input": {"file_path": path}})
        )


@of_a_file
def test_a_number_that_is_too_long_to_be_one_hides_nothing_beside_it(repo):
    key = repo.add("work", "--scope", "src")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    text = json.dumps({**edit(repo, "src/x"), "long": "N"}).replace('"N"', "7" * 5000)
    assert "held by codex" in denial(hook(repo, text))
    assert hook(repo, text.replace("77", "7 7", 1)).code == 1


@of_a_file
def test_a_proven_conflict_blocks_also_while_somebody_else_writes(repo):
    """The lease cannot be renewed then: that is no reason to let the edit through."""
    mine, theirs = repo.add(), repo.add("theirs", "--scope", "src/**")
    repo.ok("claim", mine, "--agent", "claude", "--session", "c1")
    repo.ok("claim", theirs, "--agent", "codex", "--session", "s1")
    (repo.database.parent / "settings.toml").write_text('write_wait = "1s"\n')
    with open(repo.database.parent / "write.lock", "r+") as lock:
        flock(lock, LOCK_EX)
        assert "held by codex" in denial(hook(repo, edit(repo, "src/x.py")))


@of_a_file
@pytest.mark.parametrize("failure", ["warn", "refuse"])
def test_a_sign_of_life_that_cannot_be_written_is_no_reason_against_an_edit(repo, failure):
    """The board allowed it: the edit is guarded. A warning says that the lease was not renewed."""
    mine = repo.add("mine", "--scope", "src/**")
    repo.ok("claim", mine, "--agent", "claude", "--session", "c1")
    settings = f'write_wait = "1s"\nguard_failure = "{failure}"\n'
    (repo.database.parent / "settings.toml").write_text(settings)
    with open(repo.database.parent / "write.lock", "r+") as lock:
        flock(lock, LOCK_EX)
        message = context(hook(repo, edit(repo, "src/x.py")))
    assert message.startswith(f"dibs: the lease of {mine} was not renewed: the board is busy: ")
    assert "not guarded" not in message


@of_a_file
def test_a_subagent_edits_under_its_parents_lease(repo):
    key = repo.add("work", "--scope", "src/**")
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    assert denial(hook(repo, edit(repo, "src/x.py", agent_id="a2"))) == ""
    assert "held by claude (session c1)" in denial(hook(repo, edit(repo, "src/x.py", "c2")))


def test_a_subagents_session_is_below_its_parents():
    """By its id: a type alone does not make a subagent."""
    call = {"hook_event_name": "PostToolUse", "session_id": "c1", "agent_type": "reviewer"}
    for more, session in (({}, "c1"), ({"agent_id": "a2"}, "c1/a2")):
        event = parse_event(HARNESSES["claude"], json.dumps({**call, **more}))
        assert actor_in(event, {}).session == session


@of_a_file
def test_a_session_that_lost_its_task_learns_it(repo):
    key = repo.add()
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    repo.ok("takeover", key, "--force", "--reason", "urgent", "--as", "ana")
    message = context(hook(repo, edit(repo, "x.py")))
    assert f"{key} was taken from this session: stop working on it" in message
    assert message.endswith(f"confirm with dibs release {key}.")
    repo.ok("release", key, "--agent", "claude", "--session", "c1")
    assert denial(hook(repo, edit(repo, "x.py"))) == ""


@of_a_file
def test_an_explicit_name_comes_before_the_harness(repo):
    key = repo.add("work", "--scope", "src/**")
    repo.ok("claim", key, "--agent", "codex-2", "--session", "s7")
    call = edit(repo, "src/x.py")
    assert "held by codex-2" in denial(hook(repo, call))
    assert denial(hook(repo, call, DIBS_AGENT="codex-2", DIBS_SESSION="s7")) == ""


@of_a_file
def test_under_strict_identity_the_harness_says_who_it_is(repo):
    """Its session is no guess: what the session holds is its own, is renewed, and is given back."""
    key, mine = repo.add("work", "--scope", "src/**"), repo.add("own", "--scope", "docs/**")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    repo.ok("claim", mine, "--agent", "claude", "--session", "c1")
    (repo.database.parent / "settings.toml").write_text('identity = "strict"\n')
    assert "held by codex" in denial(hook(repo, edit(repo, "src/x.py")))
    assert denial(hook(repo, edit(repo, "docs/x.md"))) == ""
    assert "held by claude (session c1)" in denial(hook(repo, edit(repo, "docs/x.md", "c2")))
    hook(repo, claude_event("PostToolUse", repo))
    assert repo.json("show", mine)["task"]["renewals"] == 3
    hook(repo, claude_event("SessionEnd", repo, reason="logout"))
    assert repo.json("show", mine)["task"]["state"] == "open"


# Where files lie.


@of_a_file
def test_a_link_and_another_work_tree_lead_to_the_same_file(repo):
    key = repo.add("work", "--scope", "src/**")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    (repo.folder / "src").mkdir()
    (repo.folder / "alias").symlink_to("src")
    assert "held by codex" in denial(hook(repo, edit(repo, "alias/new.py")))
    (repo.folder / "link").symlink_to("src/x.py")
    message = denial(hook(repo, edit(repo, "link")))
    assert message.startswith('dibs: "src/x.py" is held by codex')
    assert '("link" leads to "src/x.py")' in message
    assert "leads to" not in denial(hook(repo, edit(repo, "src/x.py")))
    other = repo.worktree("other")
    assert "held by codex" in denial(hook(other, edit(other, "src/x.py")))
    assert "held by codex" in denial(hook(repo, edit(other, "src/x.py")))


@of_a_file
def test_a_file_is_judged_on_the_board_of_its_own_repository(repo, tmp_path):
    """The agent may be anywhere: in no repository, or in another one."""
    key = repo.add("work", "--scope", "src/**")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    elsewhere = Repo.create(tmp_path / "elsewhere")
    assert "held by codex" in denial(hook(elsewhere, {**edit(repo, "src/x.py"), "cwd": "/"}))
    assert denial(hook(repo, edit(elsewhere, "src/x.py"))) == ""


@of_a_file
@pytest.mark.parametrize("own", ["nothing", "settings", "a board"])
def test_a_file_in_a_nested_repository_is_judged_on_the_boards_around_it_too(repo, own):
    """A submodule is in the scope of whoever holds its folder, whatever it has itself."""
    key = repo.add("work", "--scope", "sub/**")
    repo.ok("claim", key, "--agent", "codex", "--session", "s1")
    inner = Repo.create(repo.folder / "sub")
    deeper = Repo.create(inner.folder / "deep" / "est")
    if own == "a board":
        inner.ok("init")
    elif own == "settings":
        (inner.folder / ".git" / "dibs").mkdir()
        (inner.folder / ".git" / "dibs" / "settings.toml").write_text("")
    for one in (inner, deeper):
        assert "held by codex" in denial(hook(one, edit(one, "new/x.py")))
    assert denial(hook(repo, edit(repo, "other/x.py"))) == ""


@of_a_file
@pytest.mark.parametrize("tool", HARNESSES["cursor"].edits)
@pytest.mark.parametrize(
    "field", ["file_path", "path", "target_file", "notebook_path", "target_notebook"]
)
def test_whatever_cursor_calls_the_file_it_is_looked_up_in_each_of_its_folders(repo, tool, field):
    """A path that is not whole may lie in any of them; and what the session holds, too."""
    theirs, mine = repo.add("work", "--scope", "src/**"), repo.add()
    repo.ok("claim", theirs, "--agent", "codex", "--session", "s1")
    repo.ok("claim", mine, "--agent", "cursor", "--session", "cv1")
    elsewhere = str(repo.folder.parent)
    call = {"conversation_id": "cv1", "workspace_roots": [elsewhere, str(repo.folder)]}
    called = {"tool_name": tool, "tool_input": {field: "src/x.py"}}
    ran = hook(repo, {**call, **called, "hook_event_name": "preToolUse"}, "cursor")
    assert "held by codex" in ran.json["agent_message"]
    hook(repo, {**call, "hook_event_name": "postToolUse"}, "cursor")
    assert repo.json("show", mine)["task"]["renewals"] == 2


@of_a_file
def test_a_work_tree_inside_another_of_its_repository_is_judged_by_its_own_paths(repo):
    """As harnesses put them: the same file there is the same path, and no second one."""
    key = repo.add("work", "--scope", "src/**")
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    git(repo.folder, "worktree", "add", "-q", ".trees/one", "-b", "one")
    assert denial(hook(repo, edit(repo, ".trees/one/src/x.py"))) == ""


# Whatever comes.


@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_without_a_board_a_hook_says_nothing_and_makes_nothing(tmp_path, name):
    repo = Repo.create(tmp_path / "plain")
    for harness_event in HARNESSES[name].hooks:
        event = {**edit(repo, "x.py"), "hook_event_name": harness_event.event}
        ran = hook(repo, event, name)
        assert (ran.code, ran.out.strip(), ran.err) == (0, HARNESSES[name].empty_reply, "")
    assert not (repo.folder / ".git" / "dibs").exists()


@of_a_file
def test_a_name_that_is_no_harness_blocks_nothing_and_says_so(repo):
    """Harnesses read exit code 2 as: block it."""
    ran = hook(repo, edit(repo, "x.py"), "cluade")
    assert (ran.code, ran.out) == (1, "")
    assert "'cluade' is not a known harness; there are claude, codex" in ran.err


@of_a_file
@pytest.mark.parametrize(
    "words", ["hook", "hook claude more", "hook claude --bogus", "--bogus hook claude", "hook --as"]
)
def test_a_hook_that_is_called_wrongly_blocks_nothing_and_says_so(repo, words):
    """By a slip in somebody's settings: exit code 2 would deny every edit."""
    ran = repo.run(*words.split())
    assert (ran.code, ran.out) == (1, "")
    assert "(dibs hook --help)" in ran.err
    assert repo.run(*words.split(), "--json").error["code"] == "bad_argument"


@of_a_file
@pytest.mark.parametrize(
    "words", ["--agent claude-7", "--session c9", "--as ana", "--request-id r1", "--agent a --json"]
)
def test_a_hook_takes_no_names_the_harness_says_who_it_is(repo, words):
    """They would be passed over without a word."""
    for said_ in (["hook", "claude", *words.split()], [*words.split(), "hook", "claude"]):
        ran = repo.run(*said_, fed=json.dumps(edit(repo, "x.py")))
        assert (ran.code, ran.out) == (1, "")
        assert f"dibs hook takes no {words.split()[0]}" in ran.err
        assert "DIBS_AGENT" in ran.err


def test_settings_whose_board_is_gone_warn_or_refuse_as_they_say(tmp_path):
    repo = Repo.create(tmp_path / "plain")
    (repo.folder / ".git" / "dibs").mkdir()
    (repo.folder / ".git" / "dibs" / "settings.toml").touch()
    assert "This edit is not guarded" in context(hook(repo, edit(repo, "x.py")))
    (repo.folder / ".git" / "dibs" / "settings.toml").write_text('guard_failure = "refuse"\n')
    assert "there is no board in" in denial(hook(repo, edit(repo, "x.py")))
    other = hook(repo, claude_event("PostToolUse", repo))
    assert (other.code, other.out, other.err) == (0, "", "")


@pytest.mark.parametrize("name", sorted(HARNESSES))
@pytest.mark.parametrize("there", [False, True], ids=["no folder", "an empty folder"])
def test_a_board_that_only_the_environment_names_is_missed_once_in_a_session(tmp_path, name, there):
    """When it begins. A message at each edit would come hundreds of times."""
    repo, elsewhere = Repo.create(tmp_path / "plain"), tmp_path / "elsewhere"
    if there:
        elsewhere.mkdir()
    around = {"DIBS_BOARD": str(elsewhere)}
    for harness_event in HARNESSES[name].hooks:
        event = {**edit(repo, "x.py"), "hook_event_name": harness_event.event}
        ran = hook(repo, event, name, **around)
        assert (ran.code, ran.err) == (0, "")
        if harness_event.means == START:
            assert f"there is no board in {elsewhere}" in ran.out
            assert "Edits are not guarded." in ran.out
        else:
            assert ran.out.strip() == HARNESSES[name].empty_reply


def test_the_environment_does_not_lead_away_from_a_board_that_is_closed(tmp_path):
    repo = Repo.create(tmp_path / "plain")
    (repo.folder / ".git" / "dibs").mkdir()
    (repo.folder / ".git" / "dibs" / "settings.toml").write_text('guard_failure = "refuse"\n')
    around = {"DIBS_BOARD": str(tmp_path / "elsewhere")}
    assert "there is no board in" in denial(hook(repo, edit(repo, "x.py"), **around))
    begins = hook(repo, claude_event("SessionStart", repo, source="startup"), **around)
    assert "Edits are denied." in context(begins)


def test_a_folder_that_is_gone_under_the_agent_blocks_nothing(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    hooks = Hooks(HARNESSES["claude"], {}, advice)
    for event in (
        {"hook_event_name": "Stop", "session_id": "c1"},
        {"hook_event_name": "PreToolUse"},
    ):
        reply = hooks.answer(json.dumps(event))
        assert "the board cannot be read" in reply.err + reply.out
        assert reply.exit in (0, 1)
    assert hooks.answer("{").exit == 1


@of_a_file
@pytest.mark.parametrize(
    "text", ["", " ", "{", "[]", "null", '"x"', "not json", "{}x", "[" * 100_000, "\ufeff", "\0"]
)
@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_what_is_no_json_object_blocks_nothing_and_says_so(repo, name, text):
    ran = hook(repo, text, name)
    assert (ran.code, ran.out) == (1, "")
    assert (
        ran.err
        == f"dibs: the event from {HARNESSES[name].title} is not a JSON object: nothing was checked\n"
    )


@of_a_file
def test_a_board_that_is_closed_blocks_what_it_cannot_understand(repo):
    (repo.database.parent / "settings.toml").write_text('guard_failure = "refuse"\n')
    assert hook(repo, "{").code == 2


@of_a_file
def test_a_board_that_cannot_be_read_warns_or_refuses_as_the_setting_says(repo):
    repo.database.write_bytes(b"this is no database, but long enough to look like one" * 100)
    ran = hook(repo, edit(repo, "x.py"))
    assert "This edit is not guarded" in context(ran)
    (repo.database.parent / "settings.toml").write_text('guard_failure = "refuse"\n')
    assert "the board cannot be read" in denial(hook(repo, edit(repo, "x.py")))
    other = hook(repo, claude_event("PostToolUse", repo))
    assert (other.code, other.out) == (1, "") and "Traceback" not in other.err


@of_a_file
@pytest.mark.parametrize("text", ["unheard = 1\n", 'ttl_agent = "soon"\n', "[areas]\nweb = 7\n"])
def test_a_setting_that_is_wrong_does_not_open_a_board_that_is_closed(repo, text):
    settings = repo.database.parent / "settings.toml"
    settings.write_text(text)
    assert "This edit is not guarded" in context(hook(repo, edit(repo, "x.py")))
    settings.write_text(f'guard_failure = "refuse"\n{text}')
    assert str(settings) in denial(hook(repo, edit(repo, "x.py")))
    assert hook(repo, "{").code == 2


@of_a_file
@pytest.mark.parametrize("broken", ["[areas\n", "[areas]\nweb = ['../x']\n", "areas = 7\n"])
def test_areas_that_cannot_be_read_warn_or_refuse_as_the_setting_says(repo, broken):
    """What is held by their names is not known then. What is known to be held is denied as ever."""
    (repo.folder / "dibs.toml").write_text("[areas]\nweb = ['web/**']\n")
    key, plain, mine = repo.add("w", "--scope", "@web"), repo.add("w", "--scope", "src"), repo.add()
    for each in (key, plain):
        repo.ok("claim", each, "--agent", "codex", "--session", "s1")
    repo.ok("claim", mine, "--agent", "claude", "--session", "c1")
    assert "held by codex" in denial(hook(repo, edit(repo, "web/x")))
    (repo.folder / "dibs.toml").write_text(broken)
    message = context(hook(repo, edit(repo, "web/x")))
    assert "dibs.toml: " in message and 'cannot resolve "@web"' in message
    assert "This edit is not guarded." in message
    assert repo.json("show", mine)["task"]["renewals"] == 2
    (repo.database.parent / "settings.toml").write_text('guard_failure = "refuse"\n')
    assert 'cannot resolve "@web"' in denial(hook(repo, edit(repo, "web/x")))
    assert "held by codex" in denial(hook(repo, edit(repo, "src/x")))
    (repo.database.parent / "settings.toml").write_text("[areas]\nweb = 'web'\n")
    assert "held by codex" in denial(hook(repo, edit(repo, "web/x")))
    assert denial(hook(repo, edit(repo, "free"))) == ""


@of_a_file
def test_whether_a_path_is_in_ones_own_area_is_not_known_either_then(repo):
    """To call it outside of the scope would be a guess."""
    (repo.folder / "dibs.toml").write_text("[areas]\nweb = ['web/**']\n")
    key = repo.add("work", "--scope", "@web")
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    assert denial(hook(repo, edit(repo, "web/x"))) == ""
    assert "is outside the scope" in denial(hook(repo, edit(repo, "docs/x")))
    (repo.folder / "dibs.toml").write_text("[areas\n")
    for path in ("web/x", "docs/x"):
        message = context(hook(repo, edit(repo, path)))
        assert 'cannot resolve "@web". This edit is not guarded.' in message
    (repo.folder / "dibs.toml").unlink()
    assert "is outside the scope" in denial(hook(repo, edit(repo, "web/x")))


@of_a_file
@pytest.mark.parametrize(
    ("lose", "what"),
    [
        (lambda file: file.write_bytes(b""), "the board's file is damaged"),
        (lambda file: file.unlink(), "there is no board"),
    ],
)
def test_a_closed_board_whose_database_is_gone_lets_no_edit_through(repo, lose, what):
    (repo.database.parent / "settings.toml").write_text('guard_failure = "refuse"\n')
    lose(repo.database)
    assert what in denial(hook(repo, edit(repo, "x.py")))
    other = hook(repo, claude_event("PostToolUse", repo))
    assert other.out == ""
    assert (other.code, other.err == "") == ((1, False) if "damaged" in what else (0, True))


@of_a_file
@pytest.mark.parametrize(
    "odd",
    [
        {"hook_event_name": "Unheard"}, {"hook_event_name": 7}, {"hook_event_name": None},
        {"tool_input": None}, {"tool_input": "x"}, {"tool_input": {"file_path": 7}},
        {"tool_input": {"file_path": "\0"}}, {"tool_input": {"file_path": "\ud800"}},
        {"tool_input": {"file_path": ""}}, {"tool_input": {}}, {"tool_name": None},
        {"session_id": None}, {"session_id": "a b"}, {"session_id": "x" * 5000}, {"cwd": "/nowhere"},
        {"cwd": 7}, {"cwd": "\0"}, {"agent_id": "../.."}, {"unknown": {"deep": [1, 2]}},
        {"cursor_version": "2.0"},
    ],
)  # fmt: skip
def test_unknown_and_odd_fields_are_tolerated(repo, odd):
    ran = hook(repo, {**edit(repo, "x.py"), **odd})
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@of_a_file
def test_a_persons_name_makes_an_agent_nobody_whom_others_still_bar(repo):
    """It does not act for the person, nor past anybody."""
    key, other = repo.add("work", "--scope", "src/**"), repo.add("work", "--scope", "docs/**")
    repo.ok("claim", key, "--as", "claude")
    repo.ok("claim", other, "--agent", "codex", "--session", "s1")
    assert "held by claude" in denial(hook(repo, edit(repo, "src/x.py")))
    assert "held by codex" in denial(hook(repo, edit(repo, "docs/x.md")))
    assert denial(hook(repo, edit(repo, "free.py"))) == ""
    assert repo.json("show", key)["task"]["renewals"] == 0
    ran = hook(repo, claude_event("PostToolUse", repo))
    assert (ran.code, ran.out) == (1, "") and "claude is registered as a person" in ran.err


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
EVENTS = st.fixed_dictionaries(
    {"hook_event_name": st.sampled_from(["PreToolUse", "BeforeTool", "preToolUse", "Stop", "SessionEnd"])},
    optional=dict.fromkeys(("session_id", "conversation_id", "agent_id", "tool_name", "tool_input", "workspace_roots", "reason", "background_tasks", "source"), VALUES),
)  # fmt: skip


@given(event=EVENTS, name=st.sampled_from(sorted(HARNESSES)))
def test_no_event_whatever_it_holds_ends_in_a_traceback(shop, event, name):
    hooks = Hooks(HARNESSES[name], {}, advice)
    reply = hooks.answer(json.dumps({"cwd": str(shop.folder), **event}))
    assert (reply.exit, "Error" in reply.err) == (0, False), reply


# Where nobody can read the answer.

FULL = "/dev/full"


def unheard(repo, call, name="claude", out=">&-"):
    """A hook as a process of its own, whose standard output is closed, or takes nothing."""
    return subprocess.run(
        ["sh", "-c", f'"$0" hook {name} {out}', DIBS], cwd=repo.folder, env=repo.environment(),
        input=json.dumps(call), capture_output=True, text=True, check=False,
    )  # fmt: skip


@of_a_file
@pytest.mark.parametrize("out", [">&-", f">{FULL}"])
@pytest.mark.parametrize("name", sorted(HARNESSES))
def test_a_denial_that_cannot_be_written_blocks_all_the_same(repo, out, name):
    """By the exit code that every harness reads as a denial, and the reason beside it."""
    key = repo.add("work", "--scope", "src/**")
    repo.ok("claim", key, "--agent", "other", "--session", "s1")
    harness = HARNESSES[name]
    event = next(one.event for one in harness.hooks if one.means == BEFORE)
    tool = next(tool for tool, fields in harness.edits.items() if "file_path" in fields)
    call = {**edit(repo, "src/x.py"), "hook_event_name": event, "tool_name": tool}
    ran = unheard(repo, call, name, out)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith('dibs: "src/x.py" is held by other (session s1)')
    assert ran.stderr.count("\n") == 1
    call["tool_input"] = {"file_path": str(repo.folder / "free.py")}
    ran = unheard(repo, call, name, out)
    assert (ran.returncode, ran.stderr) == (0, "")


@of_a_file
def test_what_is_only_a_warning_and_cannot_be_written_blocks_nothing(repo):
    key = repo.add()
    repo.ok("claim", key, "--agent", "claude", "--session", "c1")
    repo.ok("takeover", key, "--force", "--reason", "urgent", "--as", "ana")
    ran = unheard(repo, edit(repo, "x.py"), out=f">{FULL}")
    assert ran.returncode == 1
    assert "the reply cannot be written" in ran.stderr


# What a patch names.

PATCH = """\
*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@
-*** Delete File: not/this.py
+*** Add File: nor/this.py
*** Add File: docs/new file.md
+text
*** Delete File: old.txt
*** End Patch"""


@pytest.mark.parametrize("break_", ["\n", "\r\n"])
@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: ["apply_patch", text]])
def test_all_files_of_a_patch_are_found_and_none_of_its_lines_is_taken_for_one(break_, wrap):
    found = list(files_of_patch(wrap(PATCH.replace("\n", break_))))
    assert found == ["src/a.py", "src/b.py", "docs/new file.md", "old.txt"]


@pytest.mark.parametrize("space", [" ", "\t", " \t ", "\u00a0"])
def test_space_around_the_lines_of_a_patch_hides_none_of_its_files(space):
    """Codex trims them before it reads them."""
    heads = ("Begin Patch", "Update File: a", "Move to: b", "Add File: c", "Delete File: d")
    patch = "".join(f"{space}*** {head}{space}\n" for head in heads)
    assert list(files_of_patch(patch)) == ["a", "b", "c", "d"]


def test_only_a_line_feed_ends_a_line_of_a_patch():
    patch = "*** Begin Patch\n*** Add File: a\x0cb\n+text\u2028*** Delete File: c\n*** End Patch"
    assert list(files_of_patch(patch)) == ["a\x0cb"]


def test_a_patch_is_denied_if_one_of_its_files_is_held(shop):
    for path, held in (("src/auth/a.py", True), ("README.md", False)):
        patch = f"*** Begin Patch\n*** Update File: free.py\n*** Move to: {path}\n*** End Patch"
        call = claude_event(
            "PreToolUse", shop, tool_name="apply_patch", tool_input={"command": patch}
        )
        assert bool(denial(hook(shop, call, "codex"))) is held


def test_what_cursor_sends_to_the_hooks_of_others_is_left_to_its_own():
    text = json.dumps({"hook_event_name": "PreToolUse", "cursor_version": "2.0"})
    assert parse_event(HARNESSES["claude"], text).means == ""
    text = json.dumps({"hook_event_name": "preToolUse", "cursor_version": "2.0"})
    assert parse_event(HARNESSES["cursor"], text).means == BEFORE


# Start-up.

NOT_LOADED = {
    "dibs.board.execute", "dibs.domain.commands", "dibs.domain.decide", "dibs.domain.events.tasks", "dibs.domain.guards", "dibs.domain.ledger",
    "dibs.storage.transaction", "argparse", "datetime", "enum", "importlib", "json", "re", "subprocess",
    "tomllib", "typing",
}  # fmt: skip


@of_a_file
@pytest.mark.parametrize(("path", "is_held"), [("docs/x.md", False), ("src/x.py", True)])
def test_an_edit_loads_only_what_a_guard_needs(repo, path, is_held):
    """It runs before every edit: this is the budget, for an edit that is made and one that is denied.

    The empty files of our packages do not count.
    """
    mine, theirs = repo.add(), repo.add("theirs", "--scope", "src/**")
    repo.ok("claim", mine, "--agent", "claude", "--session", "c1")
    repo.ok("claim", theirs, "--agent", "codex", "--session", "s1")
    script = (
        "import sys; before = set(sys.modules); from dibs.cli.main import main;"
        "main(['hook', 'claude']); print();"
        "new = sorted(set(sys.modules) - before);"
        "packages = {n for n in new if n.startswith('dibs') and hasattr(sys.modules[n], '__path__')};"
        "print(' '.join(n for n in new if n not in packages))"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=repo.folder, env=repo.environment(), check=True,
        input=json.dumps(edit(repo, path)), capture_output=True, text=True,
    )  # fmt: skip
    printed, modules = ran.stdout.strip().rpartition("\n")[::2]
    assert ("permissionDecision" in printed) is is_held
    assert repo.json("show", mine)["task"]["renewals"] == 1
    loaded = set(modules.split())
    assert loaded & NOT_LOADED == set()
    assert sum(name.startswith("dibs.") for name in loaded) <= 37
