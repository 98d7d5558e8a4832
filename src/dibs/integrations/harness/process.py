"""Finds the work tree of a harness's session, and the process whose life it shares."""

from __future__ import annotations

from os.path import basename, splitext

from dibs.board.identity import CallerEnvironment, Identity, ancestors, run_above, storable
from dibs.domain.model import ActorId, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import Process
    from dibs.harnesses import Harness
    from dibs.machine import Machine

SHELLS = ("sh", "ash", "bash", "dash", "fish", "ksh", "zsh")
LOOKED_AT = 3
"""Leading words of a command line that may name the program: interpreter, option, script."""


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
