"""Match ready tasks with agents for the dispatcher: read-only. The claim decides later."""

from __future__ import annotations

from dibs.board.facts.queue import claimable, who_paused
from dibs.board.identity import Identity, caller_of
from dibs.domain.refusals import refused
from dibs.domain.scopes.policy import BLOCK
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from dibs.board.execute import Board
    from dibs.board.settings import Agent
    from dibs.domain.model import Caller, Task, TaskKey
    from dibs.domain.scopes.overlap import StepBudget
    from dibs.storage.transaction import ReadTransaction

NOBODY: Mapping[str, int] = {}


class Matches(Value):
    """Which tasks could be started with which agent."""

    starts: tuple[tuple[Agent, TaskKey], ...] = ()
    paused: str = ""
    """Who paused the dispatcher, and why; "" if it is not paused."""


def matches(
    board: Board,
    agents: tuple[Agent, ...],
    most: int,
    coming: Mapping[str, int] = NOBODY,
    resting: Container[str] = (),
) -> Matches:
    """Tasks for each agent within its limit, and for all of them within `most`.

    `coming` counts by agent the workers that were started and have not claimed yet:
    each is expected to claim. Agents in `resting` (backing off) get none.
    """
    with board.read() as tx:
        paused = who_paused(tx)
        if paused:
            return Matches(paused=paused)
        callers = {agent: caller_of(tx, visitor(agent), board.settings)[0] for agent in agents}
        held = {agent: tx.count_held_by(callers[agent].actor.id) for agent in agents}
        left = most - sum(held.values()) - sum(coming.values())
        starts: list[tuple[Agent, TaskKey]] = []
        given: list[Task] = []
        for agent in agents:
            waiting = coming.get(agent.name, 0)
            free = min(left - len(starts), agent.max - held[agent] - waiting)
            if free > 0 and agent.name not in resting:
                fitting = apart(tx, board, callers[agent], given, waiting + free)
                starts += [(agent, task.key) for task in fitting[waiting:]]
        return Matches(tuple(starts))


def paused_by(board: Board) -> tuple[str, str]:
    """Who paused the offering of work, and why; two empty texts if it is not paused."""
    with board.read() as tx:
        by = tx.board.paused_by
        return ("" if by is None else tx.actor(by).name), tx.board.paused_why


def visitor(agent: Agent) -> Identity:
    """An identity of the agent with a session that holds nothing."""
    return Identity(agent.name, person=False, session="dispatch")


def apart(
    tx: ReadTransaction, board: Board, caller: Caller, given: list[Task], most: int
) -> list[Task]:
    """Tasks for one caller that conflict with none of those already given out."""
    from dibs.domain.scopes.overlap import StepBudget

    found: list[Task] = []
    work = StepBudget()
    for task in claimable(tx, caller, board.settings.rules):
        if len(found) == most:
            break
        if not any(other.id == task.id or meets(board, task, other, work) for other in given):
            found.append(task)
            given.append(task)
    return found


def meets(board: Board, one: Task, other: Task, work: StepBudget) -> bool:
    """Whether two tasks conflict; also if that takes too long to decide."""
    from dibs.domain.scopes.overlap import TooManySteps

    ground = board.settings.rules.ground
    if ground.conflict != BLOCK or not one.scope or not other.scope:
        return False
    try:
        return ground.overlaps_with(one.scope, work)(other.scope)
    except TooManySteps:
        return True


# Registration.


def check_agents(board: Board, agents: tuple[Agent, ...]) -> list[str]:
    """Where an actor's registration differs from the settings, with the command that helps.

    Refuses an agent with a person's name.
    """
    found = []
    with board.read() as tx:
        for agent in agents:
            actor = tx.actor_named(agent.name)
            if actor is not None and actor.is_human:
                what = f"agents.{agent.name}: {actor.name} is registered as a person"
                raise refused("bad_setting", what, setting=f"agents.{agent.name}")
            if actor is not None and (wanted := difference(agent, actor.tier, actor.capabilities)):
                found.append(
                    f"{agent.name} is registered otherwise than the settings say; a person can "
                    f"change that: dibs actor set {agent.name} {' '.join(wanted)}"
                )
    return found


def difference(agent: Agent, tier: int, capabilities: tuple[str, ...]) -> list[str]:
    """The options of `dibs actor set` that would remove the difference."""
    wanted = []
    if agent.tier not in (None, tier):
        wanted.append(f"--tier {agent.tier}")
    if agent.capabilities is not None and set(agent.capabilities) != set(capabilities):
        wanted += [f"--capability {name}" for name in agent.capabilities or ("''",)]
    return wanted
