"""Where a harness's session works, and the process that lives as long as it does."""

from __future__ import annotations

from os.path import basename, splitext

from dibs.board.identity import Identity, Surroundings, ancestors, run_above, storable
from dibs.core.model import ActorId, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.model import Process
    from dibs.harness.table import Harness
    from dibs.machine import Machine

SHELLS = ("sh", "ash", "bash", "dash", "fish", "ksh", "zsh")
LOOKED_AT = 3
"""Words of a command line that may name a program: an interpreter, an option, a script."""


def at_work(who: Identity, harness: Harness, around: Surroundings) -> Identity:
    """The same, with where it works and its process."""
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
    """The harness itself: what started us, past the shell that it may have started for that.

    It has to look like the harness: when in doubt there is no process.
    """
    for process in ancestors(machine):
        words = machine.words(process.pid)
        if is_shell(words):
            continue
        return process if is_harness(words, harness) else None
    return None


def is_shell(words: list[str]) -> bool:
    """A shell that runs one command."""
    return bool(words) and basename(words[0]).lstrip("-") in SHELLS and "-c" in words[1:LOOKED_AT]


def is_harness(words: list[str], harness: Harness) -> bool:
    for word in words[:LOOKED_AT]:
        *folders, name = word.split("/")
        if splitext(name)[0] in harness.binaries or set(folders) & set(harness.packages):
            return True
    return False
