"""Session lifecycle of a harness: start, process, `/clear` (handing tasks to a successor), background work, end."""

from __future__ import annotations

from os.path import basename, splitext

from dibs.board.identity import CallerEnvironment, ancestors, run_above, storable
from dibs.board.renewal import REFUSED_BY_RULES, held_by, renew
from dibs.board.sessions import (
    SessionHandover,
    end_session,
    end_sibling_sessions,
    had_background_work,
    hand_over_session,
    predecessor,
    record_background_work,
    register_session,
)
from dibs.board.settings import KEEP, STRICT
from dibs.domain import commands as c
from dibs.domain.model import ActorId, Session
from dibs.domain.refusals import Refused
from dibs.harness_table import CLEAR
from dibs.integrations.harness.context import prime
from dibs.integrations.harness.hook_input import is_ours_to_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.board.execute import Board
    from dibs.board.identity import Identity
    from dibs.board.locate import Place
    from dibs.domain.model import Process, TaskKey
    from dibs.harness_table import Harness
    from dibs.integrations.harness.hook_input import HookEvent
    from dibs.machine import Machine

CLEARED = "the session was cleared"
"""Reason recorded when a cleared session's tasks are handed to its successor."""

SHELLS = ("sh", "ash", "bash", "dash", "fish", "ksh", "zsh")
LOOKED_AT = 3
"""Leading words of a command line that may name the program: interpreter, option, script."""


def start(
    board: Board,
    place: Place,
    event: HookEvent,
    who: Identity | None,
    environment: Mapping[str, str],
) -> str:
    """Registers the session with its process; returns the context for the model."""
    came = SessionHandover()
    known = True
    if who is not None:
        around = CallerEnvironment(environment, board.store.machine, place.repository)
        who = at_work(who, event.harness, around)
        came = registered(board, event, who)
        known = name_in_shell(event, who, environment) or is_known_in_shell(
            event, who, environment, strict=board.settings.identity == STRICT
        )
    return prime(board, who, came, known=known)


def registered(board: Board, event: HookEvent, who: Identity) -> SessionHandover:
    """Registers the session, and renews what it holds; after `/clear` hands it its predecessor's tasks."""
    register_session(board, who)
    if event.text("source") != CLEAR:
        renew(board, who, held_by(board, who))
        return SessionHandover()
    former = predecessor(board, who)
    came = hand_over_session(board, former, who, CLEARED) if former else SessionHandover()
    end_sibling_sessions(board, who)
    return came


def is_known_in_shell(
    event: HookEvent, who: Identity, environment: Mapping[str, str], *, strict: bool
) -> bool:
    """Whether its shell commands can identify themselves: by a variable or by a parent process.

    Under strict identity only the variables count.
    """
    has_process = who.place is not None and who.place.process is not None
    is_stated = "DIBS_AGENT" in environment and "DIBS_SESSION" in environment
    return is_stated or (not strict and (has_process or event.harness.session_in_shells))


def name_in_shell(event: HookEvent, who: Identity, environment: Mapping[str, str]) -> bool:
    """Exports identity to later shell commands of the session, if the harness has an environment file."""
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
        return False  # the harness's own variable may still name the session
    return True


# Background work.


def stop(board: Board, event: HookEvent, who: Identity) -> None:
    """Records whether the session has background work: harnesses report it at `stop`, not at the end."""
    if not event.subagent:
        record_background_work(board, who, running=event.has_background_work)


def end(board: Board, event: HookEvent, who: Identity, environment: Mapping[str, str]) -> None:
    """Releases the session's tasks, or keeps them until expiry: by setting, or while background work runs.

    After `/clear` the successor takes them over. A session that somebody else named continues without this
    harness.
    """
    reason, held = event.text("reason"), held_by(board, who)
    if reason == CLEAR or event.subagent:
        renew(board, who, held)
        return
    if (
        board.settings.session_end == KEEP
        or event.has_background_work
        or had_background_work(board, who)
        or not is_ours_to_end(event, environment)
    ):
        renew(board, who, held)
    else:
        for task in held:
            give_back(board, who, task.key, f"the session ended ({reason or 'no reason given'})")
    end_session(board, who)


def give_back(board: Board, who: Identity, key: TaskKey, note: str) -> None:
    try:
        board.execute(who, c.Release(key, note=note, tried=True))
    except Refused as problem:
        if problem.code not in REFUSED_BY_RULES:
            raise


# The work tree of the session, and the process whose life it shares.


def at_work(who: Identity, harness: Harness, around: CallerEnvironment) -> Identity:
    """The identity with its place: host, work tree, branch and process."""
    repository, machine = around.repository, around.machine
    place = Session(
        actor=ActorId(0),
        name="",
        host=machine.host(),
        worktree=storable(repository.worktree) if repository else "",
        branch=storable(repository.branch()) if repository and repository.worktree else "",
        process=run_above(around) or process_of(harness, machine),
        watched=True,
    )
    return who.but(session=who.session.partition("/")[0], place=place)


def process_of(harness: Harness, machine: Machine) -> Process | None:
    """The process of the harness: our nearest ancestor that is not a shell started for one command.

    `None` unless its command line looks like the harness.
    """
    for process in ancestors(machine):
        words = machine.words(process.pid)
        if is_shell(words):
            continue
        return process if is_harness(words, harness) else None
    return None


def is_shell(words: list[str]) -> bool:
    """Whether it is a shell that runs one command (`-c`)."""
    return bool(words) and basename(words[0]).lstrip("-") in SHELLS and "-c" in words[1:LOOKED_AT]


def is_harness(words: list[str], harness: Harness) -> bool:
    for word in words[:LOOKED_AT]:
        *folders, name = word.split("/")
        if splitext(name)[0] in harness.binaries or set(folders) & set(harness.packages):
            return True
    return False
