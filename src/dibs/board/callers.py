"""Resolve a caller: the actor, session and processes behind an identity, and their registration."""

from __future__ import annotations

from dibs.board.identity import CallerEnvironment, Identity, IdentityOptions, agents_run, identify
from dibs.board.settings import STRICT, Settings
from dibs.domain import commands as c
from dibs.domain import refusals
from dibs.domain.decision import Decision
from dibs.domain.events import tasks as e
from dibs.domain.facts import ClaimFacts, Facts
from dibs.domain.model import (
    AGENT,
    HUMAN,
    Actor,
    ActorId,
    Caller,
    Place,
    Session,
    Task,
    folded_name,
)
from dibs.domain.refusals import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.board.locate import Repository
    from dibs.board.retry import ReadableBoard
    from dibs.board.session_lookup import Registry
    from dibs.domain.model import Process
    from dibs.storage.transaction import ReadTransaction, WriteTransaction


class CallerContext:
    """Where a caller comes from: one board, its environment, repository and terminal.

    The command line, the library and the git hooks identify their callers with it. A harness hook states its
    session itself, and does not know its boards yet: `identify_in_hook`.
    """

    def __init__(
        self,
        board: ReadableBoard,
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
        from dibs.board.session_lookup import session_of_process

        return session_of_process(self._board, name, process)

    def _registry(self) -> Registry:
        from dibs.board.session_lookup import Registry

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


def session_at(
    who: Identity, caller: Caller, command: c.Command, decision: Decision
) -> Session | None:
    """The session row to store: when the session acquires a lease, has a process, or is watched by hooks.

    Commands about sessions decide on it themselves.
    """
    takes_up = isinstance(command, c.Claim) or any(
        isinstance(event, (e.LeaseBegun, e.Bound)) for event in decision.events
    )
    place = who.place
    if place is None or caller.is_child or command.spec.repeatable:
        return None
    if not (takes_up or place.process is not None or place.watched):
        return None
    return place.but(actor=caller.actor.id, name=caller.session)


def keep_processes(
    tx: WriteTransaction, facts: Facts, decision: Decision, task: Task | None
) -> None:
    """Stores the caller's process behind its lease, and removes those that are gone."""
    if task is None or decision.refusal is not None:
        return
    if isinstance(facts, ClaimFacts):
        for kept in facts.processes:
            if facts.lives.get(kept.behind.process) is False:
                tx.end_process(task.id, kept.token, kept.behind.process)
    caller = facts.caller
    if caller.behind is None:
        return
    if task.lease is not None and task.lease.held_by(caller):
        tx.keep_process(task, caller)
    elif task.lease is None:
        tx.end_process(task.id, task.token, caller.behind.process)
