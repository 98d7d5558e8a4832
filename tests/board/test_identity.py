"""Who is calling: people, agents, sessions, harnesses. Nobody acts anonymously."""

from __future__ import annotations

import os

import pytest

from dibs.board.identity import (
    CallerEnvironment,
    IdentityOptions,
    ancestors,
    caller_of,
    harness_of,
    identify,
    session_of_process,
)
from dibs.board.queries import actors
from dibs.board.verify import verify
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.model import Process, Session, TaskKey
from dibs.domain.refusals import Refused
from dibs.harness_table import KNOWN
from dibs.machine import Linux
from kit.boards import Bench, FakeMachine

K = TaskKey("T-1")


def around(tty=False, **environment) -> CallerEnvironment:
    return CallerEnvironment(environment, FakeMachine(), on_terminal=tty)


def nobody(_name, _process):
    return None


def identity(given: IdentityOptions, surroundings=None, strict=False, registered=nobody):
    return identify(given, surroundings or around(), strict=strict, registered=registered)


def code_of(*arguments, **options) -> str:
    with pytest.raises(Refused) as problem:
        identity(*arguments, **options)
    return problem.value.code


def test_an_agent_is_named_by_option_or_variable_and_the_option_wins():
    assert identity(IdentityOptions(agent="codex", session="s1")).name == "codex"
    assert identity(IdentityOptions(session="s1"), around(DIBS_AGENT="claude")).name == "claude"
    assert (
        identity(IdentityOptions(agent="codex", session="s1"), around(DIBS_AGENT="claude")).name
        == "codex"
    )


def test_the_session_is_the_first_that_applies():
    """--session, DIBS_SESSION, the harness's variable, the process; in this order."""
    everything = around(DIBS_SESSION="from-dibs", CLAUDE_CODE_SESSION_ID="from-claude")
    found = {"registered": lambda _name, _process: "from-process"}
    assert identity(IdentityOptions("codex", session="said"), everything, **found).session == "said"
    assert identity(IdentityOptions("codex"), everything, **found).session == "from-dibs"
    harness = around(CLAUDE_CODE_SESSION_ID="from-claude")
    assert identity(IdentityOptions("codex"), harness, **found).session == "from-claude"
    assert identity(IdentityOptions("codex"), **found).session == "from-process"
    assert code_of(IdentityOptions("codex")) == "no_session"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("CLAUDE_CODE_SESSION_ID", "c1"), ("CODEX_THREAD_ID", "t1"), ("GEMINI_SESSION_ID", "g1")],
)
def test_a_harness_names_the_session(variable, value):
    assert identity(IdentityOptions("agent-7"), around(**{variable: value})).session == value


def test_claude_comes_before_codex_and_codex_before_gemini():
    both = around(CODEX_THREAD_ID="t1", CLAUDE_CODE_SESSION_ID="c1", GEMINI_SESSION_ID="g1")
    assert identity(IdentityOptions("agent-7"), both).session == "c1"


MARKS = [mark for harness in KNOWN for mark in harness.marks]


@pytest.mark.parametrize("mark", MARKS)
def test_inside_a_harness_nobody_is_a_person(mark):
    with pytest.raises(Refused) as problem:
        identity(IdentityOptions(person="ana"), around(tty=True, **{mark: "1"}))
    assert problem.value.code == "in_harness"
    assert mark in problem.value.refusal.message


def test_a_persons_terminal_inside_an_editor_is_no_harness():
    assert harness_of({"CURSOR_TRACE_ID": "x", "TERM_PROGRAM": "vscode"}) == ""
    assert harness_of({"CLAUDECODE": ""}) == ""


def test_a_person_is_her_own_session_and_dibs_session_does_not_count():
    ana = identity(IdentityOptions(person="ana"), around(DIBS_SESSION="s1", DIBS_AGENT="codex"))
    assert (ana.name, ana.person, ana.session) == ("ana", True, "")
    assert identity(IdentityOptions(person="ana", session="desk")).session == "desk"
    assert identity(IdentityOptions(person="ana", session="Ana")).session == ""


@pytest.mark.parametrize(
    "name",
    ["", " ", "user", "USER", "<AGENT_NAME>", "agent", "${AGENT}", "{name}", "unknown", "None", "null",
     "anonymous", "your-name", "a b", "-x", "a\nb", "a\x1b[0m", "x" * 65, "ana/bob", "\ud800"],
)  # fmt: skip
def test_empty_names_and_placeholders_are_refused(name):
    assert code_of(IdentityOptions(person=name)) == "bad_argument"
    assert code_of(IdentityOptions(agent=name, session="s1")) == "bad_argument"


@pytest.mark.parametrize(
    "name", ["ana", "Ana-María", "codex-2", "ana@example.org", "李雷", "a.b+c", "x" * 64]
)
def test_names_of_people_and_agents_are_accepted(name):
    assert checks.actor_name(name) == name


@pytest.mark.parametrize("session", ["", "<SESSION>", "session one", "s/", "/s", "a//b", "x" * 129])
def test_sessions_are_names_too(session):
    assert code_of(IdentityOptions("codex", session=session)) == "bad_argument"


def test_nobody_is_named():
    assert code_of(IdentityOptions()) == "no_identity"
    assert code_of(IdentityOptions(agent="codex", person="ana", session="s1")) == "bad_argument"


def test_the_address_in_git_counts_only_on_a_terminal_and_never_in_a_harness(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.email")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "ana@example.org")
    ana = identity(IdentityOptions(), around(tty=True))
    assert (ana.name, ana.person) == ("ana@example.org", True)
    assert code_of(IdentityOptions(), around(tty=False)) == "no_identity"
    assert code_of(IdentityOptions(), around(tty=True, CLAUDECODE="1")) == "no_identity"
    assert code_of(IdentityOptions(), around(tty=True), strict=True) == "no_identity"


def test_strict_accepts_only_explicit_names():
    assert (
        code_of(IdentityOptions("codex"), around(CLAUDE_CODE_SESSION_ID="c1"), strict=True)
        == "no_session"
    )
    assert (
        code_of(IdentityOptions("codex"), strict=True, registered=lambda *_: "s1") == "no_session"
    )
    assert (
        identity(IdentityOptions("codex"), around(DIBS_SESSION="s1"), strict=True).session == "s1"
    )
    assert identity(IdentityOptions(person="ana"), strict=True).name == "ana"


# Sessions and processes.


def test_a_session_is_found_by_the_process_above_never_by_a_shared_file(bench):
    bench.add()
    process = Linux().process(os.getpid())
    codex = bench.agent("codex", "s1")
    codex.identity = codex.identity.but(place=Session(0, "", "testhost", process=process))
    codex.do(c.Note(K, note="x"))
    assert session_of_process(bench.board, "codex", process) == "s1"
    assert session_of_process(bench.board, "claude", process) is None


def test_a_reused_pid_is_not_the_same_process(bench):
    bench.add()
    process = Process("boot-1", "pid:[1]", 4242, 100)
    codex = bench.agent("codex", "s1")
    codex.identity = codex.identity.but(place=Session(0, "", "testhost", process=process))
    codex.do(c.Note(K, note="x"))
    for other in (
        process.but(started=101),
        process.but(boot="boot-2"),
        process.but(namespace="pid:[2]"),
    ):
        assert session_of_process(bench.board, "codex", other) is None


def test_the_processes_above_are_listed_with_their_starts():
    above = ancestors(Linux())
    assert above[0].pid == os.getppid()
    assert all(process.started > 0 and process.boot == above[0].boot for process in above)
    assert Linux().lives(above[0])
    assert Linux().lives(above[0].but(started=above[0].started + 5)) is False


class Family(FakeMachine):
    """The process above this one was started by 4243, and that by 4242."""

    def parent(self, pid):
        return {os.getppid(): 4243, 4243: 4242}.get(pid, 0)


@pytest.mark.parametrize(
    ("mark", "tied"),
    [("4242.7", 4242), ("4243.7", 4243), ("4242.8", None), ("42.7", None), ("", None), ("x", None)],
)
def test_what_runs_under_a_run_is_tied_to_it_and_only_to_one_above(mark, tied):
    """A mark that was inherited from a run that is gone, or is not above, says nothing."""
    under = CallerEnvironment({"DIBS_RUN": mark, "CLAUDECODE": "1"}, Family())
    process = identity(IdentityOptions("codex", session="s1"), under).place.process
    assert (process and process.pid) == tied


def test_a_person_has_no_process_under_a_run_either():
    under = CallerEnvironment({"DIBS_RUN": "4242.7"}, Family())
    assert identity(IdentityOptions(person="ana"), under).place.process is None


def test_a_session_records_where_it_works(bench):
    bench.add()
    bench.agent("codex", "s1", worktree="/w/one", branch="topic").claim()
    codex = bench.actor_id("codex")
    with bench.store.read() as tx:
        session = tx.session(codex, "s1")
    assert (session.host, session.worktree, session.branch) == ("testhost", "/w/one", "topic")


# Actors.


def test_first_use_registers_a_name_with_the_default_tier_and_no_capabilities(bench):
    bench.add()
    bench.agent("codex").claim()
    everybody, _ = actors(bench.board)
    codex = next(actor for actor in everybody if actor.name == "codex")
    assert (codex.kind, codex.tier, codex.capabilities) == ("agent", 1, ())


def test_an_agents_name_is_not_a_persons_and_the_other_way_round(bench):
    bench.add()
    bench.agent("codex").claim()
    for wrong in (bench.person("codex"), bench.agent("founder", "s1")):
        with pytest.raises(Refused) as problem:
            wrong.do(c.Note(K, note="x"))
        assert problem.value.code == "wrong_kind_of_name"


def test_a_name_an_alias_and_another_case_are_one_actor(bench):
    bench.add()
    ana = bench.person("ana")
    bench.board.execute(ana.identity, c.SetActor("ana", add_aliases=("ana@example.org",)))
    bench.person("ana@example.org").claim()
    bench.person("ANA").do(c.Complete(K))
    assert bench.task().state == "complete"


def test_a_renamed_person_keeps_what_she_holds_and_her_old_name(bench):
    bench.add()
    ana = bench.person("ana")
    ana.claim()
    bench.board.execute(ana.identity, c.SetActor("ana", name="anna"))
    bench.person("anna").do(c.Renew(K))
    bench.person("ana").do(c.Complete(K))
    everybody, aliases = actors(bench.board)
    anna = next(actor for actor in everybody if actor.name == "anna")
    assert aliases[anna.id] == ["ana"]
    assert verify(bench.board).faults == ()


def test_tiers_and_capabilities_are_set_by_people_only(bench):
    bench.add(tier=3, capabilities=("rust",))
    codex, ana = bench.agent(), bench.person()
    assert codex.refused(c.Claim(K)) == "tier_too_low"
    codex.do(c.Note(K, note="x"))
    with pytest.raises(Refused) as problem:
        bench.board.execute(codex.identity, c.SetActor("codex", tier=9))
    assert problem.value.code == "people_only"
    bench.board.execute(ana.identity, c.SetActor("codex", tier=3))
    assert codex.refused(c.Claim(K)) == "capability_missing"
    bench.board.execute(ana.identity, c.SetActor("codex", capabilities=("rust", "sql")))
    codex.claim()
    assert verify(bench.board).faults == ()


def test_a_name_leads_to_one_actor(bench):
    bench.add()
    ana = bench.person("ana")
    bench.person("bob").do(c.Note(K, note="x"))
    for command in (c.SetActor("ana", name="bob"), c.SetActor("ana", add_aliases=("BOB",))):
        with pytest.raises(Refused) as problem:
            bench.board.execute(ana.identity, command)
        assert problem.value.code == "name_taken"
    assert verify(bench.board).faults == ()


def test_a_person_stays_a_person_and_an_unknown_actor_is_made_only_with_a_kind(bench):
    bench.add()
    ana = bench.person("ana")
    ana.claim()
    assert ana.refused(c.SetActor("ana", kind="agent")) == "kind_is_fixed"
    assert ana.refused(c.SetActor("codxe", tier=2)) == "unknown_actor"
    ana.do(c.SetActor("codex", kind="agent"))
    ana.do(c.SetActor("codex", kind="service"))
    assert verify(bench.board).faults == ()


def test_any_command_may_have_a_request_id(bench):
    ana = bench.person("ana")
    first = ana.do(c.SetActor("codex", kind="agent", tier=2), "r1")
    again = ana.do(c.SetActor("codex", kind="agent", tier=2), "r1")
    assert (again.actor, again.entries, again.replayed) == (first.actor, first.entries, True)
    assert ana.refused(c.SetClock(reason="x"), "r1") == "request_reused"


def test_a_service_acts_like_an_agent_but_is_distinguished(bench):
    bench.add(audience="agent")
    ana = bench.person()
    bench.board.execute(ana.identity, c.SetActor("dispatcher", kind="service"))
    bench.agent("dispatcher", "d1").claim()
    assert ana.refused(c.Claim(K)) == "held"
    assert bench.agent("dispatcher", "d2").refused(c.Force(K, reason="r")) == "people_only"


def test_a_task_may_be_for_people_or_for_agents(bench):
    bench.add(audience="human")
    bench.add(audience="agent")
    assert bench.agent().refused(c.Claim(TaskKey("T-1"))) == "wrong_kind"
    assert bench.person().refused(c.Claim(TaskKey("T-2"))) == "wrong_kind"
    bench.person().claim("T-1")
    bench.agent().claim("T-2")


def test_a_caller_is_registered_only_if_its_command_is_accepted(bench: Bench):
    bench.add()
    with bench.store.read() as tx:
        caller, is_new = caller_of(tx, bench.agent("newcomer").identity, bench.board.settings)
    assert is_new
    assert caller.actor.name == "newcomer"
    assert bench.agent("newcomer").refused(c.Complete(K)) == "not_held"
    with bench.store.read() as tx:
        assert tx.actor_named("newcomer") is None


# What a harness's hooks have registered.


class Known:
    """A board that knows one session of one agent, and perhaps its process."""

    def __init__(self, name: str, session: str, process: Process | None = None) -> None:
        self.name, self.session, self.process = name, session, process

    def __call__(self) -> Known:
        return self

    def known(self, name, session):
        same = (name, session.partition("/")[0]) == (self.name, self.session)
        return Session(1, self.session, process=self.process, watched=True) if same else None

    def of_process(self, process):
        return (self.name, self.session) if process == self.process else None

    def harness_session(self, processes):
        return f"session {self.session} of {self.name}" if self.process in processes else ""

    def runs(self, processes, session):
        return []


def hooked(
    registry: Known,
    strict: bool = False,
    given: IdentityOptions = IdentityOptions(),  # noqa: B008
    **environment: str,
):
    surroundings = CallerEnvironment(environment, Linux())
    return identify(given, surroundings, strict=strict, registered=nobody, registry=registry)


def refused_by(*arguments, **options) -> str:
    with pytest.raises(Refused) as problem:
        hooked(*arguments, **options)
    return problem.value.code


@pytest.mark.parametrize(
    ("name", "variable"),
    [("claude", "CLAUDE_CODE_SESSION_ID"), ("codex", "CODEX_THREAD_ID"), ("gemini", "GEMINI_SESSION_ID")],
)  # fmt: skip
def test_inside_a_harness_its_own_variable_names_an_agent_that_its_hooks_registered(name, variable):
    found = hooked(Known(name, "x1"), **{variable: "x1"})
    assert (found.name, found.session, found.person) == (name, "x1", False)
    assert refused_by(Known(name, "x2"), **{variable: "x1"}) == "no_identity"
    assert refused_by(Known("other", "x1"), **{variable: "x1"}) == "no_identity"
    assert refused_by(Known(name, "x1"), strict=True, **{variable: "x1"}) == "no_identity"


def test_a_thread_below_a_registered_session_is_its_child():
    found = hooked(Known("codex", "root"), CODEX_THREAD_ID="t7", CODEX_SESSION_ID="root")
    assert found.session == "root/t7"
    found = hooked(Known("codex", "root"), CODEX_THREAD_ID="root", CODEX_SESSION_ID="root")
    assert found.session == "root"


def test_inside_a_harness_a_process_above_names_it_and_outside_of_one_it_does_not():
    above = ancestors(Linux())[0]
    assert hooked(Known("gemini", "g1", above), GEMINI_CLI="1").session == "g1"
    assert refused_by(Known("gemini", "g1", above)) == "no_identity"
    assert refused_by(Known("gemini", "g1", above.but(started=7)), GEMINI_CLI="1") == "no_identity"


def test_explicit_names_come_before_those_of_hooks():
    above = ancestors(Linux())[0]
    known = Known("claude", "c1", above)
    assert (
        hooked(known, given=IdentityOptions("codex", session="s1"), CLAUDECODE="1").name == "codex"
    )
    assert hooked(known, DIBS_AGENT="codex", DIBS_SESSION="s2", CLAUDECODE="1").session == "s2"
    assert hooked(known, given=IdentityOptions(session="mine"), CLAUDECODE="1").session == "mine"
    assert refused_by(known, given=IdentityOptions(person="ana"), CLAUDECODE="1") == "in_harness"


def test_a_command_does_not_forget_the_process_that_hooks_named_if_it_runs_below_it():
    above = ancestors(Linux())[0]
    names = {"DIBS_AGENT": "claude", "DIBS_SESSION": "c1"}
    assert hooked(Known("claude", "c1", above), CLAUDECODE="1", **names).place.process == above
    assert hooked(Known("claude", "c1", above), CLAUDECODE="1", **names).place.watched
    elsewhere = above.but(pid=above.pid + 1)
    assert hooked(Known("claude", "c1", elsewhere), CLAUDECODE="1", **names).place.process is None
    assert not hooked(Known("claude", "c2", above), CLAUDECODE="1", **names).place.watched


@pytest.mark.parametrize("value", ["", "a b", "\udcff", "x" * 200, "\0", "default"])
def test_a_variable_that_cannot_name_a_session_names_nobody(value):
    variable = {"CLAUDE_CODE_SESSION_ID": value, "CLAUDECODE": "1"}
    assert refused_by(Known("claude", value), **variable) == "no_identity"


def test_the_board_itself_knows_its_sessions_and_never_a_persons(bench):
    from dibs.board.identity import Registry
    from dibs.board.sessions import register_session

    process = Process("boot-1", "pid:[1]", 4242, 100)
    registry = Registry(bench.board)
    who = bench.agent("claude", "c1", process=process).identity
    assert registry.known("claude", "c1") is None
    register_session(bench.board, who)
    assert registry.known("claude", "c1").process == process
    assert registry.known("Claude", "c1/a2").name == "c1"
    assert registry.of_process(process) == ("claude", "c1")
    assert registry.of_process(process.but(started=101)) is None
    register_session(bench.board, who.but(session="c2"))
    assert registry.of_process(process) is None  # two of them are no answer
    bench.add()
    assert registry.known("founder", "") is None
    assert bench.faults() == ()
    assert bench.verbs() == ["added"]


def test_below_the_process_of_a_harness_nobody_is_a_person_whatever_the_variables_say():
    above = ancestors(Linux())[0]
    ana = IdentityOptions(person="ana")
    assert refused_by(Known("claude", "c1", above), given=ana) == "in_harness"
    assert hooked(Known("claude", "c1", above.but(started=7)), given=ana).person


def test_whoever_runs_too_deep_to_be_looked_through_is_no_person(monkeypatch):
    nobody_known = Known("claude", "c1")
    assert hooked(nobody_known, given=IdentityOptions(person="ana")).person
    monkeypatch.setattr("dibs.board.identity.ANCESTORS", 1)
    assert refused_by(nobody_known, given=IdentityOptions(person="ana")) == "in_harness"
