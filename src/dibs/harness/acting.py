"""Who acts in a harness's session, and the process that lives as long as it does."""

from __future__ import annotations

from os.path import basename, splitext

from dibs.board.identity import (
    Identity,
    Surroundings,
    ancestors,
    harness_of,
    run_above,
    storable,
    watched,
)
from dibs.core import checks
from dibs.core.model import ActorId, Session
from dibs.core.refusals import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.core.model import Process
    from dibs.harness.heard import Heard
    from dibs.harness.table import Harness
    from dibs.machine import Machine

SHELLS = ("sh", "ash", "bash", "dash", "fish", "ksh", "zsh")
LOOKED_AT = 3
"""Words of a command line that may name a program: an interpreter, an option, a script."""


def actor_in(event: Heard, environment: Mapping[str, str], *, strict: bool) -> Identity | None:
    """Who acts: what was said explicitly, else the harness and its session. Nobody, if unclear.

    A subagent acts under its parent's session.
    """
    name, session = environment.get("DIBS_AGENT"), environment.get("DIBS_SESSION")
    if strict and (name is None or session is None):
        return None
    session = session or event.session
    if event.subagent and "/" not in session:
        session = f"{session}/{event.subagent}"
    try:
        return Identity(
            checks.actor_name(event.harness.name if name is None else name),
            False,
            checks.session_name(session),
            harness_of(environment) or event.harness.title,
        )
    except Refused:
        return None


def is_ours_to_end(event: Heard, environment: Mapping[str, str]) -> bool:
    """Whether the session ends with the harness's: one that somebody else named goes on."""
    stated = environment.get("DIBS_SESSION")
    return (stated is None or stated == event.session) and not event.subagent


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
    )
    return who.but(session=who.session.partition("/")[0], place=watched(place, is_watched=True))


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
