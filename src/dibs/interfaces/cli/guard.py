"""`dibs guard`: what hooks ask before a repository is written to.

A conflict that is proven stops it. A board that cannot be read is told of, and lets it through,
unless the setting `guard_failure` says otherwise. So is one that is gone, of which something is left.
Where there never was a board, nothing is said.
"""

from __future__ import annotations

import os
import sys

from dibs.core.checks import quoted
from dibs.core.refusals import Refusal, Refused, bad_argument, refused
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import REASON, Answer, Call, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from dibs.board.identity import Identity
    from dibs.git.received import Finding

VERDICTS = (
    "path_held", "outside_scope", "action_not_allowed", "work_lost", "needs_task", "unguarded",
)  # fmt: skip
"""Refusals that a guard has decided on. Any other is about the board, or about a bug."""

OK = Answer({"schema": 1, "ok": True})
UNREAD = ("no_board", "foreign_repository")
"""Where nothing of a board is seen, neither is worth a word."""

UNNAMED = ("no_identity", "no_session", "wrong_kind_of_name", "bad_argument")


def guard(call: Call) -> Answer:
    action = call["action"]
    if action not in ACTIONS:
        names = ", ".join(ACTIONS)
        raise bad_argument(f"{quoted(action)} is nothing that is guarded; there are {names}")
    where_git_says(call)
    return ACTIONS[action](call)


def where_git_says(call: Call) -> None:
    """A hook may stand in another repository than the one that it is run for."""
    stated = os.environ.get("GIT_DIR")
    if stated:
        from dibs.git.hooked import place_of

        call.stand(place_of(stated, call.found, os.environ))


def words(call: Call, least: int, most: int, what: str) -> list[str]:
    """What stands after the name of the guard."""
    given: list[str] = call["rest"]
    if not least <= len(given) <= most:
        raise bad_argument(f"it is: dibs guard {what}")
    return given + [""] * (most - len(given))


# In front of git.


def commit(call: Call) -> Answer:
    words(call, 0, 0, "commit")
    call.in_a_hook()
    return guarded(call, commit_guarded)


def commit_guarded(call: Call) -> Answer:
    from dibs.git.commits import commit as ask

    who = caller(call)
    found = ask(call.board, who, call.place.repository, os.environ)
    if found.refusal is not None and found.stops:
        raise Refused(introduced(call, who, found.refusal))
    said = found.refusal.message if found.refusal is not None else ""
    payload = {"schema": 1, "ok": True, "paths": found.paths, "task": found.task or None}
    return Answer(payload, warnings=tuple(filter(None, (said, found.warning))))


def message(call: Call) -> Answer:
    """What `pre-commit`, the tool, does not pass on as arguments it passes on as variables."""
    file, source, sha = words(call, 1, 3, "message FILE [SOURCE [COMMIT]]")
    call.in_a_hook()
    source = source or os.environ.get("PRE_COMMIT_COMMIT_MSG_SOURCE", "")
    sha = sha or os.environ.get("PRE_COMMIT_COMMIT_OBJECT_NAME", "")
    if not os.path.isfile(file):
        raise bad_argument(f"{quoted(file)} is no file with a message")

    def set_trailers(call: Call) -> Answer:
        from dibs.git.message import message as ask

        repository = call.place.repository
        said = ask(call.board, caller(call), repository, file, source, sha, os.environ)
        return OK.but(warnings=(said,)) if said else OK

    return guarded(call, set_trailers, first=False, closes=False)


def refs(call: Call) -> Answer:
    [state] = words(call, 1, 1, "refs STATE")
    call.in_a_hook()
    updates = read_lines()
    if state != "prepared":
        return OK

    def fenced(call: Call) -> Answer:
        from dibs.git.fence import fence

        if not call.board.settings.fence_refs:
            return OK
        refusal = fence(call.board, caller(call), updates)
        if refusal is not None:
            raise Refused(refusal)
        return OK

    return guarded(call, fenced, first=False)


def receive(call: Call) -> Answer:
    words(call, 0, 0, "receive")
    updates = read_lines()

    def received(call: Call) -> Answer:
        from dibs.git.received import arriving, judged, replacing

        commits = arriving(updates)
        found = replacing(updates) + (judged(call.board, commits) if commits else [])
        return told(found, len(commits)) if found else OK

    return guarded(call, received)


def range_(call: Call) -> Answer:
    """For a check of its own, such as in CI: what cannot be told is an error here."""
    [wanted] = words(call, 1, 1, "range A..B")
    from dibs.git.changes import Unasked
    from dibs.git.received import check_is_whole, commits, judged

    if wanted.startswith("-"):
        raise bad_argument(f"{quoted(wanted)} is no range of commits; one looks like main..HEAD")
    try:
        found = commits(wanted)
        check_is_whole(found)
    except Unasked as problem:
        raise bad_argument(str(problem)) from None
    return told(judged(call.board, found), len(found))


def told(findings: Sequence[Finding], commits: int) -> Answer:
    from dibs.interfaces.surfaces import advice, surface

    stops = [one for one in findings if not one.warns]
    wrong = [
        {
            "commit": one.commit,
            "code": one.refusal.code,
            "message": one.refusal.message,
            "advice": one.advice or advice(one.refusal),
            "warning": one.warns,
        }
        for one in findings
    ]
    lines = [
        line
        for one in stops
        for line in (one.refusal.message, f"  next: {one.advice or advice(one.refusal)}")
    ]
    lines = lines or [f"{commits} commit{'' if commits == 1 else 's'}, nothing in the way"]
    warnings = tuple(f"{one.commit[:10]}: {one.refusal.message}" for one in findings if one.warns)
    payload = {"schema": 1, "ok": not stops, "commits": commits, "findings": wrong}
    code = max((surface(one.refusal).exit for one in stops), default=0)
    return Answer(payload, tuple(lines), warnings, exit=code)


def read_lines() -> list[str]:
    """What git says on the standard input. Names of branches are bytes, not always text."""
    if sys.stdin is None:
        return []
    said = getattr(sys.stdin, "buffer", sys.stdin).read()
    return (os.fsdecode(said) if isinstance(said, bytes) else said).split("\n")


# Who acts, and what follows if nobody can tell.


def caller(call: Call) -> Identity | None:
    """Who commits. In a hook nobody types a name: a person is known by git's address, or not at all.

    An agent that does not say who it is holds nothing.
    """
    from dibs.board.callers import caller_of
    from dibs.board.identity import Identity, harness_of

    try:
        who = call.who()
        with call.board.read() as tx:
            caller_of(tx, who, call.board.settings)
    except Refused as problem:
        if problem.code not in UNNAMED:
            raise
    else:
        return who
    agent = harness_of(os.environ) or ("DIBS_AGENT" if os.environ.get("DIBS_AGENT") else "")
    agent = agent or call.agents_run()
    if agent:
        return Identity("", False, "", agent)
    return person(call)


def person(call: Call) -> Identity | None:
    """The registered person who has the address that git would write into the commit."""
    from dibs.board.identity import Identity
    from dibs.git_runner import setting

    address = setting("user.email")
    if not address:
        return None
    with call.board.read() as tx:
        actor = tx.actor_named(address)
    return Identity(actor.name, True, "") if actor is not None and actor.is_human else None


NAMELESS = "which agent commits is not known here: export DIBS_AGENT and DIBS_SESSION"


def introduced(call: Call, who: Identity | None, refusal: Refusal) -> Refusal:
    """To whom the board does not know: who git says that is, and how one becomes known."""
    if who is not None and not who.name:
        return Refusal(refusal.code, f"{refusal.message} ({NAMELESS})", refusal.facts)
    if who is not None or refusal.code != "path_held":
        return refusal
    from dibs.git_runner import setting

    holder = str(refusal.facts["holder"])
    with call.board.read() as tx:
        actor = tx.actor_named(holder)
    name = holder if actor is not None and actor.is_human else "NAME"
    address = setting("user.email")
    known = f"dibs actor set {name} --alias {address or 'ADDRESS'}"
    if not address:
        says = f"git has no user.email here; with one, and {known}, you are known"
    elif name == holder:
        says = f"git says you are {quoted(address)}, whom the board does not know; if you are {holder}: {known}"
    else:
        says = f"git says you are {quoted(address)}, whom the board does not know: {known}"
    return Refusal(refusal.code, f"{refusal.message} ({says})", refusal.facts)


def guarded(
    call: Call, act: Callable[[Call], Answer], *, first: bool = True, closes: bool = True
) -> Answer:
    """A verdict counts; whatever else goes wrong does not stop git, unless a setting says so.

    `first`: no other hook has been asked about the same commit. `closes`: the setting is for it too.
    """
    try:
        return act(call) if call.found.repository is not None else OK
    except Refused as problem:
        if problem.code in VERDICTS:
            raise
        if problem.code in UNREAD and not is_missed(call):
            return OK
        return unguarded(call, problem.refusal, first=first, closes=closes)
    except Exception as error:
        if os.environ.get("DIBS_DEBUG"):
            raise
        bug = Refusal("bug", f"{type(error).__name__}: {error}")
        return unguarded(call, bug, first=first, closes=closes)


def is_missed(call: Call) -> bool:
    """Whether there should be a board: one that is gone is no leave to do what it forbade."""
    from dibs.board.locate import is_expected

    return is_hidden(call.found.folder) or is_expected(call.found, os.environ)


def is_hidden(folder: str) -> bool:
    """Whether there is a folder for a board that is not ours to look into."""
    return os.path.isdir(folder) and not os.access(folder, os.X_OK)


def unguarded(call: Call, problem: Refusal, *, first: bool, closes: bool) -> Answer:
    if closes and failure(call) == "refuse":
        why = f"this cannot be guarded, and guard_failure is refuse: {problem.message}"
        raise refused("unguarded", why, cause=problem.code)
    payload: dict[str, Any] = {"schema": 1, "ok": True, "unguarded": problem.message}
    if not first and is_said_by_another(call, fences=closes):
        return Answer(payload)
    return Answer(payload, warnings=(f"not guarded by the board: {problem.message}",))


def is_said_by_another(call: Call, *, fences: bool) -> bool:
    """Once for each commit: by the hook in front of it, or, if that was skipped, by the fence."""
    from dibs.git.once import was_said

    return was_said() or (not fences and stated(call.found.folder).get("fence_refs") is True)


def failure(call: Call) -> str:
    """The setting `guard_failure`, as far as it can be read.

    Beside the board; else in the repository's own folder, though the environment leads away from it;
    else on the board.
    """
    return stated_in(call.found.folder) or stated_in(own_folder(call)) or on_board(call)


def stated_in(folder: str) -> str:
    return str(stated(folder).get("guard_failure", ""))


def stated(folder: str) -> dict[str, Any]:
    """The settings of a folder, as far as they can be read."""
    from dibs.board.settings import checked

    try:
        return dict(checked(folder)[0])
    except Exception:  # noqa: BLE001 - the same that went wrong before
        return {}


def on_board(call: Call) -> str:
    try:
        return call.board.settings.guard_failure
    except Exception:  # noqa: BLE001 - the same that went wrong before
        return ""


def own_folder(call: Call) -> str:
    from dibs.board.locate import FOLDER_IN_GIT

    repository = call.found.repository
    return os.path.join(repository.common_dir, FOLDER_IN_GIT) if repository is not None else ""


def allow(call: Call) -> Answer:
    from dibs.interfaces.cli.paths import allow

    return allow(call, call["rest"])


ACTIONS: dict[str, Callable[[Call], Answer]] = {
    "commit": commit,
    "message": message,
    "refs": refs,
    "receive": receive,
    "range": range_,
    "allow": allow,
}

VERBS = {
    "guard": Verb(
        guard,
        (
            argument("action", metavar="WHAT", help=", ".join(ACTIONS)),
            argument(
                "rest",
                nargs="*",
                metavar="REST",
                help="allow: paths; range: A..B; message, refs: what git says",
            ),
            argument(
                "--for", dest="span", metavar="TIME", default="15m", help="allow: how long (15m)"
            ),
            argument("--to", metavar="NAME", help="allow: who may touch them; else you yourself"),
            REASON,
        ),
    ),
}
