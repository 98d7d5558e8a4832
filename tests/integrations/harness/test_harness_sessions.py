"""Sessions of a harness: they begin, go on after /clear, end, die; and shell calls in them know who they are."""

from __future__ import annotations

import contextlib
import json

import apsw
import pytest

from kit.boards import of_a_file
from kit.harnesses import Running, claude_event, context, denial, edit, environment_of, hook
from kit.repositories import DIBS, git

ME = ("--agent", "claude", "--session")
OTHER = ("--agent", "codex", "--session", "s1")


@pytest.fixture
def claude(repo, tmp_path):
    """A process that looks like Claude Code, in the repository."""
    with Running(repo, tmp_path / "bin", CLAUDECODE="1") as running:
        yield running


def begin(running: Running, session: str = "c1", source: str = "startup") -> str:
    return context(running.hook(claude_event("SessionStart", running.repo, session, source=source)))


def finish(running: Running, session: str, reason: str, **more: object) -> None:
    ran = running.hook(claude_event("SessionEnd", running.repo, session, reason=reason, **more))
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def task(repo, key):
    return repo.json("show", key)["task"]


# Begin.


@of_a_file
def test_a_session_is_registered_before_it_holds_anything_and_named_for_the_shell(claude, repo):
    """Shell calls without any name are this agent and this session: by the harness's own variable."""
    key = repo.add()
    begin(claude)
    ran = claude.dibs("claim", key, CLAUDE_CODE_SESSION_ID="c1")
    assert ran.code == 0, ran.err
    assert task(repo, key)["holder"] == {"name": "claude", "kind": "agent", "session": "c1"}


@of_a_file
def test_a_session_that_hooks_registered_is_watched_also_after_it_claims(claude, repo):
    """So that its silence is no working time."""
    key = repo.add()
    begin(claude)
    for _ in range(2):
        with contextlib.closing(apsw.Connection(str(repo.database))) as reader:
            assert reader.execute("SELECT name, watched FROM session").fetchall() == [("c1", 1)]
        assert claude.dibs("claim", key).code == 0


@of_a_file
def test_a_shell_call_is_known_by_the_process_above_it(claude, repo):
    """As in Gemini, whose shell has no variable that names a session."""
    key = repo.add()
    begin(claude)
    assert claude.dibs("claim", key).code == 0
    assert task(repo, key)["session"] == "c1"
    stranger = repo.run("claim", repo.add(), CLAUDECODE="1")
    assert (stranger.code, "no identity given" in stranger.err) == (2, True)


@of_a_file
def test_a_name_that_is_not_registered_is_not_believed(claude, repo):
    key = repo.add()
    assert claude.dibs("claim", key, CLAUDE_CODE_SESSION_ID="c1").code == 2
    begin(claude)
    assert claude.dibs("claim", key, CLAUDE_CODE_SESSION_ID="c9").code == 0  # by its process
    assert task(repo, key)["session"] == "c1"


@of_a_file
def test_strict_identity_asks_for_names_also_after_hooks(claude, repo):
    key = repo.add()
    begin(claude)
    (repo.database.parent / "settings.toml").write_text('identity = "strict"\n')
    assert claude.dibs("claim", key, CLAUDE_CODE_SESSION_ID="c1").code == 2
    message = begin(claude)
    assert "use --agent claude --session c1 with every dibs command" in message
    assert claude.dibs("claim", key, "--agent", "claude", "--session", "c1").code == 0
    assert f"You hold: {key}" in begin(claude)


@of_a_file
def test_strict_identity_is_content_with_names_in_the_shell(repo, tmp_path):
    """As Claude Code's shells get them: they need not be typed as well."""
    (repo.database.parent / "settings.toml").write_text('identity = "strict"\n')
    start = claude_event("SessionStart", repo, source="startup")
    message = context(hook(repo, start, CLAUDE_ENV_FILE=str(tmp_path / "env")))
    assert "You are claude (session c1).\n" in message
    assert "with every dibs command" in context(hook(repo, start))


@of_a_file
def test_later_shell_calls_know_who_they_are_where_the_harness_has_a_way(repo, tmp_path):
    file = tmp_path / "env"
    file.write_text("export PATH=/x")
    for _ in range(2):
        hook(repo, claude_event("SessionStart", repo, source="startup"), CLAUDE_ENV_FILE=str(file))
    lines = "export DIBS_AGENT=claude\nexport DIBS_SESSION=c1\n"
    assert file.read_text() == f"export PATH=/x\n{lines}"
    named = environment_of(lines)
    key = repo.add()
    repo.ok("claim", key, **named)
    assert task(repo, key)["session"] == "c1"


@of_a_file
def test_a_session_whose_shell_cannot_be_known_is_asked_to_name_itself(repo, tmp_path):
    """Gemini's shells have no variable that names a session, and this process does not look like it."""
    key, start = repo.add(), claude_event("SessionStart", repo, "gx1", source="startup")
    words = ("--agent", "gemini", "--session", "gx1")
    with Running(repo, tmp_path / "bin", "wrapper", GEMINI_CLI="1") as wrapper:
        text = context(wrapper.run([DIBS, "hook", "gemini"], start))
        assert f"use {' '.join(words)} with every dibs command" in text
        assert "no identity given" in wrapper.dibs("claim", key).err
        assert wrapper.dibs("claim", key, *words).code == 0
        named = {"DIBS_AGENT": "gemini", "DIBS_SESSION": "gx1"}
        assert "every dibs command" not in context(hook(repo, start, "gemini", **named))
    with Running(repo, tmp_path / "bin", "gemini", GEMINI_CLI="1") as gemini:
        assert "every dibs command" not in context(gemini.hook(start))
        assert gemini.dibs("release", key).code == 0
    assert "every dibs command" not in context(hook(repo, start, "codex"))


@of_a_file
def test_a_session_begins_with_what_it_holds_what_it_lost_and_what_is_ready(repo):
    held, lost, ready = repo.add("mine"), repo.add("gone"), repo.add("free")
    for key in (held, lost):
        repo.ok("claim", key, *ME, "c1")
    repo.ok("takeover", lost, "--force", "--reason", "urgent", "--as", "ana")
    text = context(hook(repo, claude_event("SessionStart", repo, source="resume")))
    assert f'You hold: {held} "mine" until' in text
    assert f"Taken from you, stop working on it: {lost} (now with ana)" in text
    assert f'Ready: {ready} "free"' in text
    assert "dibs next" in text and "dibs done KEY" in text and "dibs release KEY" in text
    same = repo.ok("prime", *ME, "c1").out
    assert same.strip() == text


@of_a_file
def test_nothing_is_offered_in_whose_scope_another_works_or_that_asks_for_more(repo):
    held, below = repo.add("held", "--scope", "src/**"), repo.add("below", "--scope", "src/a.py")
    others = [repo.add("wide", "--scope", "**"), repo.add("hard", "--needs", "cobol")]
    free = repo.add("free", "--scope", "docs/**")
    repo.ok("claim", held, *OTHER)
    text = context(hook(repo, claude_event("SessionStart", repo, source="startup")))
    assert [line for line in text.splitlines() if "Ready" in line] == [f'Ready: {free} "free"']
    assert f'Ready: {free} "free"\n' in repo.ok("prime").out  # whoever that is
    repo.ok("release", held, *OTHER)
    assert below in context(hook(repo, claude_event("SessionStart", repo, source="resume")))
    assert others[1] not in repo.ok("prime", *ME, "c1").out


@of_a_file
@pytest.mark.parametrize("letter", ["x", "漢", "\N{PILE OF POO}"])
def test_the_context_is_shorter_than_300_tokens_whatever_titles_there_are(repo, letter):
    """A token is at least three bytes of it."""
    for number in range(5):
        key = repo.add(letter * 180, "--scope", f"src/{'deep/' * 20}{number}/**")
        repo.ok("claim", key, *ME, "c1")
    for _ in range(8):
        repo.add(letter * 180)
    text = context(hook(repo, claude_event("SessionStart", repo, source="startup")))
    assert len(text.encode()) <= 900
    assert "dibs next" in text


@of_a_file
def test_titles_cannot_break_out_of_their_line(repo):
    repo.add("a\u202eb \u2028c")
    text = context(hook(repo, claude_event("SessionStart", repo, source="startup")))
    assert all(line.isprintable() for line in text.splitlines())
    assert "\u2028" not in text and "\u202e" not in text


# Death.


@of_a_file
@pytest.mark.parametrize("in_shell", [False, True])
def test_a_session_whose_harness_was_killed_is_dead_for_the_next_claim(repo, tmp_path, in_shell):
    """Also if a shell was between the harness and its hook, and one between it and the claim."""
    key = repo.add()
    with Running(repo, tmp_path / "bin", CLAUDECODE="1") as claude:
        start = claude_event("SessionStart", repo, source="startup")
        context((claude.hook_in_shell if in_shell else claude.hook)(start))
        assert claude.dibs("claim", key, DIBS_AGENT="claude", DIBS_SESSION="c1").code == 0
        refused = repo.run("claim", key, *OTHER)
        assert refused.code == 4, refused.err
        claude.kill()
        ran = repo.ok("claim", key, *OTHER)
    assert "was held by claude (session c1)" in ran.err
    assert "process gone" in task(repo, key)["handoff_reason"]


@of_a_file
def test_what_does_not_look_like_the_harness_is_no_process(repo, tmp_path):
    """When in doubt there is none: only expiry counts."""
    key = repo.add()
    with Running(repo, tmp_path / "bin", "claude-wrapper", CLAUDECODE="1") as wrapper:
        ran = wrapper.run(
            [DIBS, "hook", "claude"], claude_event("SessionStart", repo, source="startup")
        )
        context(ran)
        assert wrapper.dibs("claim", key, DIBS_AGENT="claude", DIBS_SESSION="c1").code == 0
        wrapper.kill()
    assert repo.run("claim", key, *OTHER).code == 4


@of_a_file
def test_a_session_that_goes_on_elsewhere_is_not_dead_with_its_old_process(repo, tmp_path):
    key = repo.add()
    with Running(repo, tmp_path / "bin", CLAUDECODE="1") as claude:
        begin(claude)
        claude.kill()
    repo.ok("claim", key, *ME, "c1", CLAUDECODE="1")
    assert repo.run("claim", key, *OTHER).code == 4


# /clear.


@of_a_file
def test_clear_hands_what_the_session_holds_to_the_next_without_a_gap(claude, repo):
    """A new lease of the same task, a higher token, one recorded handoff; nobody can come between."""
    one, two = repo.add("work", "--scope", "src/**"), repo.add()
    begin(claude)
    for key in (one, two):
        assert claude.dibs("claim", key, CLAUDE_CODE_SESSION_ID="c1", DIBS_AGENT="claude").code == 0
    before = task(repo, one)
    finish(claude, "c1", "clear")
    assert task(repo, one)["session"] == "c1"
    text = begin(claude, "c2", "clear")
    assert f'{one} "work" in "src/**"' in text and "handed to you after /clear" in text
    after = task(repo, one)
    assert (after["session"], after["state"]) == ("c2", "in_progress")
    assert (before["token"], after["token"]) == ("1.1", "1.2")
    assert after["handoff_reason"] == "the session was cleared"
    assert after["lease_ttl"] == before["lease_ttl"]
    log = repo.json("log", one)["events"]
    assert [event["verb"] for event in log][-2:] == ["handed_off", "bound"]
    assert task(repo, two)["session"] == "c2"
    assert denial(claude.hook(edit(repo, "src/x.py", "c2"))) == ""
    assert claude.dibs("complete", one).code == 0  # the process is the new session's alone
    assert repo.ok("log", "--verify").code == 0


BARS = {
    "parked": ("park {key} --as ana", "was parked by ana"),
    "waits": ("depend {key} --on {other} --as ana", "waits for {other}"),
    "tier": ("edit {key} --tier 5 --as ana", "needs tier 5"),
    "people": ("edit {key} --for human --as ana", "is for people"),
}


@of_a_file
@pytest.mark.parametrize(("bar", "why"), BARS.values(), ids=BARS)
def test_what_the_rules_keep_from_the_next_session_is_reported_to_it(claude, repo, bar, why):
    """A handoff is as a claim of who receives it. The message says where the task is, why, and how to end that."""
    key, other, free = repo.add("work", "--scope", "src/**"), repo.add(), repo.add()
    begin(claude)
    for each in (key, free):
        assert claude.dibs("claim", each).code == 0
    repo.ok(*bar.format(key=key, other=other).split())
    finish(claude, "c1", "clear")
    text = begin(claude, "c2", "clear")
    assert (task(repo, key)["session"], task(repo, free)["session"]) == ("c1", "c2")
    [line] = [line for line in text.splitlines() if line.startswith("Not handed to you")]
    assert f"{key} {why.format(other=other)}" in line
    assert "--session c1" in line
    assert claude.dibs("release", key, "--session", "c1", DIBS_AGENT="claude").code == 0
    assert task(repo, key)["session"] is None


@of_a_file
def test_clear_takes_nothing_from_sessions_of_other_processes(claude, repo, tmp_path):
    mine, theirs = repo.add(), repo.add()
    with Running(repo, tmp_path / "bin2", CLAUDECODE="1") as other:
        begin(claude, "c1")
        begin(other, "d1")
        assert claude.dibs("claim", mine).code == 0
        assert other.dibs("claim", theirs).code == 0
        begin(claude, "c2", "clear")
        assert (task(repo, mine)["session"], task(repo, theirs)["session"]) == ("c2", "d1")


@of_a_file
@pytest.mark.parametrize("source", ["startup", "compact", "resume", "fork"])
def test_any_other_beginning_hands_nothing_over(claude, repo, source):
    key = repo.add()
    begin(claude)
    assert claude.dibs("claim", key).code == 0
    begin(claude, "c2", source)
    assert (task(repo, key)["session"], task(repo, key)["token"]) == ("c1", "1.1")


# End.


@of_a_file
def test_at_its_end_a_session_gives_back_what_it_holds(claude, repo):
    key = repo.add()
    begin(claude)
    assert claude.dibs("claim", key).code == 0
    finish(claude, "c1", "prompt_input_exit")
    assert task(repo, key)["state"] == "open"
    notes = repo.json("show", key)["notes"]
    assert notes[-1]["text"] == "the session ended (prompt_input_exit)"


@of_a_file
def test_a_setting_keeps_it_and_the_end_of_the_process_does_not_take_it(repo, tmp_path):
    (repo.database.parent / "settings.toml").write_text('session_end = "keep"\n')
    key = repo.add()
    with Running(repo, tmp_path / "bin", CLAUDECODE="1") as claude:
        begin(claude)
        assert claude.dibs("claim", key).code == 0
        finish(claude, "c1", "logout")
        claude.kill()
    assert task(repo, key)["session"] == "c1"
    assert repo.run("claim", key, *OTHER).code == 4


@of_a_file
def test_while_something_goes_on_in_the_background_nothing_is_given_back(claude, repo):
    key = repo.add()
    begin(claude)
    assert claude.dibs("claim", key).code == 0
    stop = claude_event("Stop", repo, background_tasks=[{"id": "b1"}])
    assert claude.hook(stop).out == ""
    finish(claude, "c1", "other", background_tasks=[{"id": "b1"}])
    assert task(repo, key)["session"] == "c1"


@pytest.mark.parametrize("last", [[{"id": "b1"}], []])
def test_the_end_knows_what_went_on_when_the_agent_last_rested(claude, repo, last):
    """An end does not say itself what goes on in the background: the rest before it does."""
    key = repo.add()
    begin(claude)
    assert claude.dibs("claim", key).code == 0
    for tasks in ([], [{"id": "b0"}], last):
        ran = claude.hook(claude_event("Stop", repo, background_tasks=tasks))
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    git(repo.folder, "switch", "-q", "-c", "other")  # a claim from another branch changes nothing
    assert claude.dibs("claim", repo.add("another")).code == 0
    finish(claude, "c1", "other")
    found = task(repo, key)
    assert (found["state"], found["session"]) == (("in_progress", "c1") if last else ("open", None))
    assert repo.ok("log", "--verify").code == 0


@of_a_file
def test_background_work_of_a_session_that_no_hook_registered_counts_too(repo):
    """Its hooks were installed while it ran."""
    key = repo.add()
    repo.ok("claim", key, *ME, "c1")
    hook(repo, claude_event("Stop", repo, "c1", background_tasks=[{"id": "b1"}]))
    hook(repo, claude_event("SessionEnd", repo, "c1", reason="other"))
    assert task(repo, key)["session"] == "c1"


@of_a_file
def test_the_end_of_a_subagent_or_of_a_guest_gives_nothing_back(repo):
    """A session that somebody else named goes on: `dibs run`, a terminal, or the agent above."""
    key = repo.add()
    repo.ok("claim", key, *ME, "c1")
    hook(repo, claude_event("SessionEnd", repo, "c1", reason="other", agent_id="a1"))
    named = {"DIBS_AGENT": "claude", "DIBS_SESSION": "c1"}
    hook(repo, claude_event("SessionEnd", repo, "nested", reason="other"), **named)
    assert task(repo, key)["session"] == "c1"


# The line for a prompt.


@of_a_file
def test_the_status_line_says_what_is_held_and_what_was_lost(repo, tmp_path):
    held, lost = repo.add(), repo.add()
    assert repo.ok("statusline", *ME, "c1").out == ""
    for key in (held, lost):
        repo.ok("claim", key, *ME, "c1", "--ttl", "3h")
    repo.ok("takeover", lost, "--force", "--reason", "urgent", "--as", "ana")
    line = repo.ok("statusline", *ME, "c1").out
    assert line == f"{lost} lost! {held} 2h59min\n"
    assert repo.ok("statusline").out == ""


LONG_AGO = ", ".join(f"{one} = {one} - 1000000000" for one in ("acquired", "renewed", "expires"))


@of_a_file
def test_what_was_lost_or_has_expired_is_not_hidden_behind_what_is_held(repo):
    live, short, lost = [repo.add() for _ in range(5)], repo.add(), repo.add()
    for key in (*live, lost):
        repo.ok("claim", key, *ME, "c1", "--ttl", "3h")
    repo.ok("claim", short, *ME, "c1", "--ttl", "1m")
    repo.ok("takeover", lost, "--force", "--reason", "urgent", "--as", "ana")
    with contextlib.closing(apsw.Connection(str(repo.database))) as board:
        board.execute(f"UPDATE task SET {LONG_AGO} WHERE key = ?", (short,))
    line = repo.ok("statusline", *ME, "c1").out
    assert line.startswith(f"{lost} lost! {short} expired! {live[0]} 2h59min")
    assert line.endswith(" +4\n")


def test_the_status_line_prints_nothing_without_a_board(tmp_path):
    from kit.repositories import Repo

    ran = Repo.create(tmp_path / "plain").run("statusline")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@of_a_file
def test_a_harness_that_asks_for_a_line_names_its_session(claude, repo):
    key = repo.add()
    repo.ok("claim", key, *ME, "c1")
    ran = claude.run([DIBS, "statusline", "claude"], json.dumps({"session_id": "c1"}))
    assert ran.out.startswith(f"{key} 1h59min")


def test_on_a_server_sessions_begin_and_go_on_as_in_a_file(claude, repo):
    """Both kinds of store: registered, handed over after /clear, given back at the end."""
    key = repo.add()
    begin(claude)
    assert claude.dibs("claim", key).code == 0
    finish(claude, "c1", "clear")
    begin(claude, "c2", "clear")
    assert task(repo, key)["session"] == "c2"
    finish(claude, "c2", "other")
    assert task(repo, key)["state"] == "open"
    assert repo.ok("log", "--verify").code == 0


def test_a_shell_of_a_harness_without_its_variables_acts_for_no_person(claude, repo):
    key = repo.add()
    unset = {"CLAUDECODE": "", "CLAUDE_CODE_SESSION_ID": ""}
    ran = claude.dibs("claim", key, "--as", "ana", **unset)
    assert ran.code == 0, ran.err  # no hook has registered it yet
    repo.ok("release", key, "--as", "ana")
    begin(claude)
    ran = claude.dibs("takeover", key, "--force", "--reason", "mine", "--as", "ana", **unset)
    assert ran.code == 1
    assert "ana cannot act here: this is part of session c1 of claude, process" in ran.err
