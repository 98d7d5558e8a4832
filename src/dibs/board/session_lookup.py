"""Look up the sessions that a board knows: by name, by process, by run."""

from __future__ import annotations

from dibs.board.identity import KnownRun
from dibs.domain.model import HUMAN
from dibs.domain.refusals import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.board.retry import ReadableBoard
    from dibs.domain.model import KeptProcess, Process, Session
    from dibs.storage.transaction import ReadTransaction


def session_of_process(board: ReadableBoard, name: str, process: Process) -> str | None:
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

    def __init__(self, board: ReadableBoard) -> None:
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
