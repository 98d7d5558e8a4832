"""Identify the caller: an actor and a session, from options, the environment and the process tree.

The environment is a hint, never a proof; a token carries the authority. But a harness's variables
make its caller an agent, and so does a `dibs run` of an agent above it: an agent is never a person.
"""

from __future__ import annotations

import os

from dibs.board.locate import Repository
from dibs.board.settings import STRICT, Settings
from dibs.domain import checks, refusals
from dibs.domain.model import (
    AGENT,
    HUMAN,
    Actor,
    ActorId,
    Caller,
    LeaseProcess,
    Place,
    Process,
    Session,
    folded_name,
)
from dibs.domain.refusals import Refused, bad_argument, refused
from dibs.domain.values import Value
from dibs.harness_table import KNOWN
from dibs.machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from dibs.domain.model import KeptProcess
    from dibs.harness_table import Harness
    from dibs.storage.store import Store
    from dibs.storage.transaction import ReadTransaction

    class OpenBoard(Protocol):
        """What of a board its callers are known by."""

        store: Store
        settings: Settings

        def read(self) -> AbstractContextManager[ReadTransaction]: ...


PID_MAX = 2**22
"""The largest pid on Linux."""

ANCESTORS = 4096
"""How many ancestor processes are searched. A caller below more of them counts as an agent."""


LOOKED_AT = 5
"""Leading words of a command line that may name dibs: interpreter, its options, script."""

RUN = "DIBS_RUN"
"""The environment variable of everything below a `dibs run`: PID.STARTED of the run."""


class KnownRun(Value):
    """A `dibs run` that a board knows: its actor and its processes."""

    actor: str
    person: bool
    behind: LeaseProcess


class IdentityOptions(Value):
    """The identity options that the caller gave."""

    agent: str | None = None
    person: str | None = None
    session: str | None = None


class CallerEnvironment(Value):
    """The caller's environment: variables, machine, repository, terminal."""

    environment: Mapping[str, str]
    machine: Machine
    repository: Repository | None = None
    on_terminal: bool = False


class Identity(Value):
    """The caller: name, whether it claims to be a person, session, and the variable of its harness."""

    name: str
    person: bool
    session: str
    harness: str = ""
    place: Session | None = None
    behind: LeaseProcess | None = None
    """The process to be recorded behind the lease that it claims."""


def identify(
    given: IdentityOptions,
    around: CallerEnvironment,
    *,
    strict: bool,
    registered: Callable[[str, Process], str | None],
    registry: Callable[[], Registry] | None = None,
) -> Identity:
    """Returns the first identity that applies; `registered` finds an actor's session by its process.

    `registry` is queried inside a harness, whose hooks may have registered this
    session; and for a person, who may be an agent that a `dibs run` has started.
    """
    harness = harness_of(around.environment)
    if given.agent is not None and given.person is not None:
        raise bad_argument("use either --agent or --as, not both")
    if given.person is not None:
        check_no_agent(given.person, harness, around, registry)
        return _person(given.person, given.session, around)
    known = registry() if registry is not None and harness else None
    agent = given.agent if given.agent is not None else around.environment.get("DIBS_AGENT")
    session = given.session
    if agent is None and known is not None and not strict:
        agent, met = hooked(around, known) or (None, None)
        session = met if session is None else session
    if agent is not None:
        name = checks.actor_name(agent)
        if session is None:
            session = _session(name, around, strict, registered)
        session, place = checks.session_name(session), _place(around, harness)
        if known is not None:
            place = as_known(place, known.known(name, session), around.machine)
        return Identity(name, False, session, harness, place)
    in_person = around.on_terminal and not (strict or harness or agents_run(around, registry))
    email = git_email() if in_person else ""
    if email:
        return _person(email, given.session, around)
    raise refused("no_identity", "no identity given", harness=harness or None)


def identify_in_hook(
    harness: Harness, session: str, subagent: str, environment: Mapping[str, str]
) -> Identity | None:
    """Who acts in a hook: DIBS_AGENT and DIBS_SESSION, else the harness and its session. `None` if unclear.

    A subagent acts under its parent's session. The harness states its own session, so this is no guess: it
    counts under strict identity too. No board is read for it: which one it is depends on the edited file.
    """
    name = environment.get("DIBS_AGENT")
    session = environment.get("DIBS_SESSION") or session
    if subagent and "/" not in session:
        session = f"{session}/{subagent}"
    try:
        return Identity(
            checks.actor_name(harness.name if name is None else name),
            False,
            checks.session_name(session),
            harness_of(environment) or harness.title,
        )
    except Refused:
        return None


def with_process(who: Identity, stated: str | int, machine: Machine) -> Identity:
    """Adds the process that lives as long as the work on the lease: `claim --pid`."""
    pid = checks.whole(stated, "the pid", 1, PID_MAX)
    if who.person:
        raise bad_argument(f"{who.name} is a person, and people have no process: leave the pid out")
    found = machine.may_state(pid)
    if found is None:
        what = "it must live, belong to you, and be in this pid namespace"
        raise bad_argument(f"process {pid} cannot hold a lease: {what}", pid=pid)
    return who.but(behind=LeaseProcess(found, machine.host()))


def harness_of(environment: Mapping[str, str]) -> str:
    """The variable that shows that this runs inside a harness, or ""."""
    for harness in KNOWN:
        for mark in harness.marks:
            if environment.get(mark):
                return mark
    return ""


def check_no_agent(
    given: str, harness: str, around: CallerEnvironment, registry: Callable[[], Registry] | None
) -> None:
    """Refuses a person inside a harness, even without its variables, or inside an agent's `dibs run`."""
    name = checks.actor_name(given)
    if harness:
        what = f"{harness} says that this runs inside an agent's harness"
        raise refused("in_harness", f"{name} cannot act here: {what}", actor=name, variable=harness)
    run = agents_run(around, registry)
    if run:
        raise refused("in_harness", f"{name} cannot act here: this is part of {run}", actor=name)


def agents_run(around: CallerEnvironment, registry: Callable[[], Registry] | None) -> str:
    """The agent's harness or `dibs run` that this is part of, or "": then the caller is an
    agent, whatever it claims.

    A harness is found by its process, which its hooks registered. A run is found by
    ancestor processes, by the process session, or by the variable. That of another board is found
    by its command line too. A person's own run makes nobody an agent.
    """
    marked, machine = marked_run(around), around.machine
    parents = ancestors(machine)
    if len(parents) == ANCESTORS:
        return f"a tree of more than {ANCESTORS} processes, in which an agent cannot be ruled out"
    above = {*parents, *((marked,) if marked else ())}
    found: list[KnownRun] = []
    if registry is not None:
        try:
            known = registry()
            if session := known.harness_session(parents):
                return session
            found = known.runs(tuple(above), os.getsid(0))
        except Refused:  # a board that is not there, or is to be restored, knows nobody
            found = []
    for run in found:
        part = run.behind.process in above or is_in_session(machine, run.behind)
        if part and not run.person:
            return f"dibs run of {run.actor}, process {run.behind.process.pid}"
    agent = around.environment.get("DIBS_AGENT")
    is_known = any(run.behind.process == marked for run in found)
    if marked and agent and not is_known:
        return f"dibs run of {agent}, as {RUN} says"
    other = next((one.pid for one in parents if is_agents_run(machine, one.pid)), 0)
    return f"dibs run of an agent, process {other}" if other else ""


def is_agents_run(machine: Machine, pid: int) -> bool:
    """Whether a process is an agent's `dibs run`, of whichever board. Its command cannot change its words."""
    words = machine.words(pid)
    own = words[: words.index("--")] if "--" in words else words
    if "run" not in own or "dibs" not in map(os.path.basename, own[:LOOKED_AT]):
        return False
    named = {word.partition("=")[0] for word in own} & {"--agent", "--as"}
    return "--agent" in named or (not named and machine.has_variable(pid, "DIBS_AGENT"))


def marked_run(around: CallerEnvironment) -> Process | None:
    """The run that the environment names; it may have exited."""
    pid, _, started = around.environment.get(RUN, "").partition(".")
    if not (pid.isdecimal() and started.isdecimal()):
        return None
    return Process(around.machine.boot(), around.machine.namespace(), int(pid), int(started))


def is_in_session(machine: Machine, run: LeaseProcess) -> bool:
    """Whether this process is provably in the process session of a run's command."""
    members = machine.in_session(run.command, run.command_started, run.forks)
    return any(process.pid == os.getpid() for process in members)


def hooked(around: CallerEnvironment, known: Registry) -> tuple[str, str] | None:
    """The agent and session that a harness's hooks have registered for this process.

    Found by the harness's own variable, which may name a subsession of the
    registered one; else by the nearest ancestor process that is tied to a session.
    """
    for harness in KNOWN:
        own, root = (
            session_in(around.environment, name)
            for name in (harness.session, harness.parent_session)
        )
        if own and known.known(harness.name, own):
            return harness.name, own
        if root and known.known(harness.name, root):
            return harness.name, f"{root}/{own}" if own and own != root else root
    return next(filter(None, map(known.of_process, ancestors(around.machine))), None)


def session_in(environment: Mapping[str, str], variable: str) -> str:
    """The value of a variable if it is a valid session name, else ""."""
    try:
        return checks.session_name(environment.get(variable, ""))
    except Refused:
        return ""


def as_known(place: Session, known: Session | None, machine: Machine) -> Session:
    """Keeps what the harness's hooks registered about the session.

    Its process is kept only if it is an ancestor of this one: a session may have continued elsewhere.
    """
    if known is None:
        return place
    if place.process is None and known.process in ancestors(machine):
        place = place.but(process=known.process)
    return place.but(watched=known.watched)


def _person(given: str, session: str | None, around: CallerEnvironment) -> Identity:
    name = checks.actor_name(given)
    named = "" if session is None else checks.session_name(session)
    root, slash, child = named.partition("/")
    if folded_name(root) == folded_name(name):
        named = slash + child
    return Identity(name, True, named, place=_place(around, "", person=True))


def _session(
    name: str,
    around: CallerEnvironment,
    strict: bool,
    registered: Callable[[str, Process], str | None],
) -> str:
    stated = around.environment.get("DIBS_SESSION")
    if stated is not None:
        return stated
    if not strict:
        for harness in KNOWN:
            if harness.session and around.environment.get(harness.session):
                return around.environment[harness.session]
        for process in ancestors(around.machine):
            found = registered(name, process)
            if found:
                return found
    raise refused("no_session", f"no session given for {name}", actor=name)


def ancestors(machine: Machine) -> list[Process]:
    """The ancestor processes, nearest first."""
    found: list[Process] = []
    pid = os.getppid()
    while pid > 1 and len(found) < ANCESTORS:
        process = machine.process(pid)
        if process is None:
            break
        found.append(process)
        pid = machine.parent(pid)
    return found


def _place(around: CallerEnvironment, harness: str, *, person: bool = False) -> Session:
    """Where the session works. The board fills in actor and name."""
    repository = around.repository
    process = None if person else run_above(around)
    if process is None and around.on_terminal and not (person or harness):
        process = interactive_shell(around.machine)
    return Session(
        actor=0,  # type: ignore[arg-type]
        name="",
        host=around.machine.host(),
        worktree=storable(repository.worktree) if repository else "",
        branch=storable(repository.branch()) if repository and repository.worktree else "",
        process=process,
    )


def storable(path: str) -> str:
    """A path as text; undecodable bytes become escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def run_above(around: CallerEnvironment) -> Process | None:
    """The `dibs run` above this process, which its children do not outlive."""
    marked = marked_run(around)
    return marked if marked is not None and marked in ancestors(around.machine) else None


def interactive_shell(machine: Machine) -> Process | None:
    """The shell that leads the terminal's session: it lives as long as the terminal.

    A shell that a program started for one command leads no session, and does not count.
    """
    leader = os.getsid(0)
    if leader == os.getpid():
        return None
    return next((process for process in ancestors(machine) if process.pid == leader), None)


def git_email() -> str:
    from dibs.git_runner import setting

    return setting("user.email").strip()


# The sessions that a board knows: by name, by process, by run.


def session_of_process(board: OpenBoard, name: str, process: Process) -> str | None:
    """The session of an actor that is tied to a process; refused if there are several."""
    with board.read() as tx:
        actor = tx.actor_named(name)
        sessions = tx.sessions_of_process(process.boot, process.namespace, process.pid)
    own = [s.name for s in sessions if actor and s.actor == actor.id and s.process == process]
    if len(own) > 1:
        which = ", ".join(sorted(own))
        raise refused("no_session", f"{name} has several sessions here: {which}", actor=name)
    return own[0] if own else None


class Registry:
    """The sessions that a board knows."""

    def __init__(self, board: OpenBoard) -> None:
        self._board = board

    def known(self, name: str, session: str) -> Session | None:
        """The session of an agent, if it is registered or holds something."""
        with self._board.read() as tx:
            actor = tx.actor_named(name)
            if actor is None or actor.kind == HUMAN:
                return None
            return tx.session(actor.id, session.partition("/")[0])

    def of_process(self, process: Process) -> tuple[str, str] | None:
        """The agent and session that are tied to a process; `None` if there are several."""
        with self._board.read() as tx:
            found = [
                (actor.name, one.name)
                for one in tx.sessions_of_process(process.boot, process.namespace, process.pid)
                if one.process == process and (actor := tx.actor(one.actor)).kind != HUMAN
            ]
        return found[0] if len(found) == 1 else None

    def harness_session(self, processes: Sequence[Process]) -> str:
        """The agent's session whose harness, as its hooks registered it, is one of these; or ""."""
        with self._board.read() as tx:
            for process in processes:
                for one in tx.sessions_of_process(process.boot, process.namespace, process.pid):
                    if one.watched and one.process == process:
                        agent = tx.actor(one.actor).name
                        return f"session {one.name} of {agent}, process {process.pid}"
        return ""

    def runs(self, processes: Sequence[Process], session: int) -> list[KnownRun]:
        """The `dibs run`s that these processes are, or whose command led this process session."""
        machine = self._board.store.machine
        with self._board.read() as tx:
            kept = tx.runs_of_command(machine.boot(), machine.namespace(), session)
            for process in processes:
                found = tx.runs_of(process.boot, process.namespace, process.pid)
                kept += [one for one in found if one.behind.process == process]
            return [as_run(tx, one) for one in kept]


def as_run(tx: ReadTransaction, kept: KeptProcess) -> KnownRun:
    actor = tx.actor(kept.actor)
    return KnownRun(actor.name, actor.kind == HUMAN, kept.behind)


# The caller of a command: the registered actor behind an identity.


class CallerContext:
    """Where a caller comes from: one board, its environment, repository and terminal.

    The command line, the library and the git hooks identify their callers with it. A harness hook states its
    session itself, and does not know its boards yet: `identify_in_hook`.
    """

    def __init__(
        self,
        board: OpenBoard,
        environment: Mapping[str, str],
        repository: Repository | None,
        *,
        on_terminal: bool,
    ) -> None:
        self._board = board
        machine = board.store.machine
        self._around = CallerEnvironment(environment, machine, repository, on_terminal)

    def identify(self, given: IdentityOptions) -> Identity:
        """The identity by options, environment, harness and process tree."""
        strict = self._board.settings.identity == STRICT
        return identify(
            given,
            self._around,
            strict=strict,
            registered=self._session_of,
            registry=self._registry,
        )

    def agents_run(self) -> str:
        """Names the agent's harness or `dibs run` that this process is part of, or ""."""
        return agents_run(self._around, self._registry)

    def _session_of(self, name: str, process: Process) -> str | None:
        return session_of_process(self._board, name, process)

    def _registry(self) -> Registry:
        return Registry(self._board)


def caller_of(tx: ReadTransaction, who: Identity, settings: Settings) -> tuple[Caller, bool]:
    """The caller, and whether it is new. A new one is registered only if its command is accepted."""
    known = tx.actor_named(who.name)
    actor = known or newcomer(tx, who.name, HUMAN if who.person else AGENT, settings)
    if actor.is_human != who.person:
        option = "--as" if actor.is_human else "--agent"
        raise refused(
            "wrong_kind_of_name",
            f"{actor.name} is registered as {'a person' if actor.is_human else refusals.a(actor.kind)}",
            actor=actor.name,
            kind=actor.kind,
            option=option,
        )
    session = who.session
    if who.person and known is not None and session.partition("/")[0]:
        session = own_session(tx, known, session)
    return Caller(actor, session, who.harness, who.behind, place_of(who)), known is None


def place_of(who: Identity) -> Place | None:
    place = who.place
    if place is None or "/" in who.session:
        return None
    return Place(place.host, place.worktree, place.branch)


def own_session(tx: ReadTransaction, person: Actor, session: str) -> str:
    """Normalizes a person's session: one that equals any of her own names means the person herself."""
    root, slash, child = session.partition("/")
    names = {folded_name(name) for name in (person.name, *tx.aliases(person))}
    return slash + child if folded_name(root) in names else session


def newcomer(tx: ReadTransaction, name: str, kind: Any, settings: Settings) -> Actor:
    """An unregistered actor at first use. An agent's tier and capabilities come from the user's settings."""
    actor = Actor(ActorId(tx.board.actors + 1), name, kind, settings.default_tier)
    for agent in settings.agents:
        if kind == AGENT and folded_name(agent.name) == folded_name(name):
            tier = actor.tier if agent.tier is None else agent.tier
            return actor.but(tier=tier, capabilities=agent.capabilities or ())
    return actor
