"""A session begins, goes on in another, or ends."""

from __future__ import annotations

from dibs.board.callers import caller_of
from dibs.board.identity import Surroundings
from dibs.board.meeting import Succession, meet, part, predecessor, succeed, succeeded
from dibs.board.renewing import OUT_OF_REACH, held_by, renew
from dibs.board.settings import KEEP, STRICT
from dibs.core import commands as c
from dibs.core.model import Session
from dibs.core.refusals import Refused
from dibs.harness.acting import at_work
from dibs.harness.heard import is_ours_to_end
from dibs.harness.table import CLEAR
from dibs.harness.telling import prime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.locate import Place
    from dibs.core.model import TaskKey
    from dibs.harness.heard import Heard

CLEARED = "the session was cleared"
"""Why what a session held is handed to the next one."""


def start(
    board: Board, place: Place, event: Heard, who: Identity | None, environment: Mapping[str, str]
) -> str:
    """The session is registered with its process; it is told what it holds, and what there is."""
    came = Succession()
    known = True
    if who is not None:
        around = Surroundings(environment, board.store.machine, place.repository)
        who = at_work(who, event.harness, around)
        came = registered(board, event, who)
        known = name_in_shell(event, who, environment) or is_known_in_shell(
            event, who, environment, strict=board.settings.identity == STRICT
        )
    return prime(board, who, came, known=known)


def registered(board: Board, event: Heard, who: Identity) -> Succession:
    """The board knows it; what the session before it in the same process held is its own now."""
    meet(board, who)
    if event.said("source") != CLEAR:
        renew(board, who, held_by(board, who))
        return Succession()
    former = predecessor(board, who)
    came = succeed(board, former, who, CLEARED) if former else Succession()
    succeeded(board, who)
    return came


def is_known_in_shell(
    event: Heard, who: Identity, environment: Mapping[str, str], *, strict: bool
) -> bool:
    """Whether its shell calls can tell who they are: by a variable, or by the process above them.

    Under strict identity only by what is stated.
    """
    has_process = who.place is not None and who.place.process is not None
    is_stated = "DIBS_AGENT" in environment and "DIBS_SESSION" in environment
    return is_stated or (not strict and (has_process or event.harness.names_session))


def name_in_shell(event: Heard, who: Identity, environment: Mapping[str, str]) -> bool:
    """Later shell calls of the session know who they are, where the harness has a way for that."""
    path = environment.get(event.harness.shell_file, "")
    if not path or "DIBS_SESSION" in environment:
        return False
    from shlex import quote

    lines = f"export DIBS_AGENT={quote(who.name)}\nexport DIBS_SESSION={quote(who.session)}\n"
    try:
        with open(path, "a+", encoding="utf-8", errors="surrogateescape") as file:
            file.seek(0)
            before = file.read()
            if not before.endswith(lines):
                file.write(lines if before.endswith("\n") or not before else f"\n{lines}")
    except OSError:
        return False  # the harness's own variable names the session too
    return True


# What goes on in the background.

BESIDE, GOES_ON = "background", "goes on"


def remember(board: Board, event: Heard, who: Identity) -> None:
    """Whether something goes on in the background is said when the agent rests, and not at its end.

    It is kept beside the session, as one below it: no subagent is registered by itself, so the place is
    free, in every store.
    """
    from dibs.board.persist import persist

    if not event.subagent and goes_on(board, who) != event.works_on:
        persist(board, lambda: _remember(board, event, who))


def _remember(board: Board, event: Heard, who: Identity) -> None:
    with board.store.write("session") as tx:
        caller, is_new = caller_of(tx, who, board.settings)
        if is_new or tx.new_home:
            return  # who is not known here holds nothing
        name = f"{caller.holding_session}/{BESIDE}"
        tx.keep_session(Session(caller.actor.id, name, branch=GOES_ON if event.works_on else ""))
        tx.finish()


def goes_on(board: Board, who: Identity) -> bool:
    """Whether something went on in the background when the agent last rested."""
    with board.read() as tx:
        caller, is_new = caller_of(tx, who, board.settings)
        name = f"{caller.holding_session}/{BESIDE}"
        known = None if is_new else tx.session(caller.actor.id, name)
    return known is not None and known.branch == GOES_ON


def end(board: Board, event: Heard, who: Identity, environment: Mapping[str, str]) -> None:
    """What it holds is given back, or kept until it expires: by setting, and while work goes on.

    After `/clear` the next session takes it up. What somebody else named goes on without us.
    """
    reason, held = event.said("reason"), held_by(board, who)
    if reason == CLEAR or event.subagent:
        renew(board, who, held)
        return
    if (
        board.settings.session_end == KEEP
        or event.works_on
        or goes_on(board, who)
        or not is_ours_to_end(event, environment)
    ):
        renew(board, who, held)
    else:
        for task in held:
            give_back(board, who, task.key, f"the session ended ({reason or 'no reason given'})")
    part(board, who)


def give_back(board: Board, who: Identity, key: TaskKey, note: str) -> None:
    try:
        board.execute(who, c.Release(key, note=note, tried=True))
    except Refused as problem:
        if problem.code not in OUT_OF_REACH:
            raise
