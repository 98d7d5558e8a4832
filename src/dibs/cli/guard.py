"""`dibs guard`: the checks that git hooks run before a repository is written to.

A proven conflict stops the write. If the board cannot be read, the guard warns and lets it through, unless
the setting `guard_failure` says otherwise; the same holds for a board that is missing but left traces.
Where there never was a board, it prints nothing.
"""

from __future__ import annotations

import os
import sys

from dibs.cli.call import REASON, Call, Verb, VerbResult, argument
from dibs.domain.checks import quoted
from dibs.domain.refusals import Refusal, Refused, bad_argument, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from dibs.board.identity import Identity
    from dibs.integrations.git.push_guard import CommitFinding

VERDICTS = (
    "path_held", "outside_scope", "action_not_allowed", "work_lost", "needs_task", "unguarded",
    "push_unchecked",
)  # fmt: skip
"""Refusals by which a guard denies the write. All others mean a problem of the board, or a bug."""

OK = VerbResult({"schema": 1, "ok": True})
UNNAMED = ("no_identity", "no_session", "wrong_kind_of_name", "bad_argument")


def guard(call: Call) -> VerbResult:
    action = call["action"]
    if action not in ACTIONS:
        names = ", ".join(ACTIONS)
        raise bad_argument(f"{quoted(action)} is not a guard; there are {names}")
    locate_by_git_dir(call)
    return ACTIONS[action](call)


def locate_by_git_dir(call: Call) -> None:
    """Locates the board by GIT_DIR: a hook may run in another directory than its repository."""
    stated = os.environ.get("GIT_DIR")
    if stated:
        from dibs.integrations.git.hook_context import place_of

        call.stand(place_of(stated, call.found, os.environ))


def words(call: Call, least: int, most: int, what: str) -> list[str]:
    """The arguments after the name of the guard, padded to `most`."""
    given: list[str] = call["rest"]
    if not least <= len(given) <= most:
        raise bad_argument(f"usage: dibs guard {what}")
    return given + [""] * (most - len(given))


# Guards for git hooks.


def commit(call: Call) -> VerbResult:
    words(call, 0, 0, "commit")
    call.set_hook_deadline()
    return guarded(call, commit_guarded)


def commit_guarded(call: Call) -> VerbResult:
    from dibs.integrations.git.commit_guard import check_commit

    who = caller(call)
    found = check_commit(call.board, who, call.place.repository, os.environ)
    if found.refusal is not None and found.stops:
        raise Refused(introduced(call, who, found.refusal))
    warning = found.refusal.message if found.refusal is not None else ""
    payload = {"schema": 1, "ok": True, "paths": found.paths, "task": found.task or None}
    return VerbResult(payload, warnings=tuple(filter(None, (warning, found.warning))))


def message(call: Call) -> VerbResult:
    """Sets the trailers of a message. The `pre-commit` tool passes its arguments as variables."""
    file, source, sha = words(call, 1, 3, "message FILE [SOURCE [COMMIT]]")
    call.set_hook_deadline()
    source = source or os.environ.get("PRE_COMMIT_COMMIT_MSG_SOURCE", "")
    sha = sha or os.environ.get("PRE_COMMIT_COMMIT_OBJECT_NAME", "")
    if not os.path.isfile(file):
        raise bad_argument(f"{quoted(file)} is not a message file")

    def with_trailers(call: Call) -> VerbResult:
        from dibs.integrations.git.trailers import set_trailers

        repository = call.place.repository
        warning = set_trailers(call.board, caller(call), repository, file, source, sha, os.environ)
        return OK.but(warnings=(warning,)) if warning else OK

    return guarded(call, with_trailers, first=False, closes=False)


def refs(call: Call) -> VerbResult:
    [state] = words(call, 1, 1, "refs STATE")
    call.set_hook_deadline()
    updates = read_lines()
    if state != "prepared":
        return OK

    def fenced(call: Call) -> VerbResult:
        from dibs.integrations.git.commit_guard import check_refs

        if not call.board.settings.fence_refs:
            return OK
        refusal = check_refs(call.board, caller(call), updates)
        if refusal is not None:
            raise Refused(refusal)
        return OK

    return guarded(call, fenced, first=False)


def receive(call: Call) -> VerbResult:
    words(call, 0, 0, "receive")
    updates = read_lines()

    def received(call: Call) -> VerbResult:
        from dibs.integrations.git.push_guard import judged, pushed_commits, replace_ref_findings

        commits = pushed_commits(updates)
        found = replace_ref_findings(updates) + (judged(call.board, commits) if commits else [])
        return findings_result(found, len(commits)) if found else OK

    def checked(call: Call) -> VerbResult:
        """A push that cannot be checked is refused: whoever pushes could bring that about."""
        try:
            return received(call)
        except Refused:
            raise
        except Exception as error:
            if os.environ.get("DIBS_DEBUG"):
                raise
            why = f"this push cannot be checked: {type(error).__name__}: {error}"
            raise refused("push_unchecked", why) from None

    return guarded(call, checked)


def range_(call: Call) -> VerbResult:
    """Checks a range of commits, for instance in CI: here it is an error if git cannot list them."""
    [wanted] = words(call, 1, 1, "range A..B")
    from dibs.integrations.git.commit_guard import GitQueryFailed
    from dibs.integrations.git.push_guard import check_is_whole, commits, judged

    if wanted.startswith("-"):
        raise bad_argument(f"{quoted(wanted)} is no range of commits; one looks like main..HEAD")
    try:
        found = commits(wanted)
        check_is_whole(found)
    except GitQueryFailed as problem:
        raise bad_argument(str(problem)) from None
    return findings_result(judged(call.board, found), len(found))


def findings_result(findings: Sequence[CommitFinding], commits: int) -> VerbResult:
    from dibs.output.error_map import advice, mapping_of

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
    code = max((mapping_of(one.refusal).exit for one in stops), default=0)
    return VerbResult(payload, tuple(lines), warnings, exit=code)


def read_lines() -> list[str]:
    """The lines that git writes to standard input. Ref names are bytes, not always UTF-8."""
    if sys.stdin is None:
        return []
    data = getattr(sys.stdin, "buffer", sys.stdin).read()
    return (os.fsdecode(data) if isinstance(data, bytes) else data).split("\n")


# Identity, and what to do without a verdict.


def caller(call: Call) -> Identity | None:
    """Who commits. In a hook nobody types a name: a person is identified by git's user.email, if at all.

    An agent without a name holds nothing.
    """
    from dibs.board.identity import Identity, caller_of, harness_of

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
    """The registered person whose name or alias is git's user.email."""
    from dibs.board.identity import Identity
    from dibs.git_runner import setting

    address = setting("user.email")
    if not address:
        return None
    with call.board.read() as tx:
        actor = tx.actor_named(address)
    return Identity(actor.name, True, "") if actor is not None and actor.is_human else None


NAMELESS = "the committing agent is not known here: export DIBS_AGENT and DIBS_SESSION"
NO_SESSION = "{} has no session here: export DIBS_SESSION"


def introduced(call: Call, who: Identity | None, refusal: Refusal) -> Refusal:
    """Adds to a refusal, for an unknown caller: who git says it is, and how to become known to the board."""
    if who is not None and not who.name:
        agent = "" if os.environ.get("DIBS_SESSION") else os.environ.get("DIBS_AGENT", "")
        why = NO_SESSION.format(quoted(agent)) if agent else NAMELESS
        return Refusal(refusal.code, f"{refusal.message} ({why})", refusal.facts)
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
    call: Call, act: Callable[[Call], VerbResult], *, first: bool = True, closes: bool = True
) -> VerbResult:
    """Runs a check. Its verdicts stop git; other failures do so only if `guard_failure` is `refuse`.

    `first`: no other hook of the same commit has reported yet. `closes`: `guard_failure` applies to this
    hook.
    """
    from dibs.integrations.unreadable import is_silent

    try:
        return act(call) if call.found.repository is not None else OK
    except Refused as problem:
        if problem.code in VERDICTS:
            raise
        if is_silent(problem, call.found, os.environ):
            return OK
        return unguarded(call, problem.refusal, first=first, closes=closes)
    except Exception as error:
        if os.environ.get("DIBS_DEBUG"):
            raise
        bug = Refusal("bug", f"{type(error).__name__}: {error}")
        return unguarded(call, bug, first=first, closes=closes)


def unguarded(call: Call, problem: Refusal, *, first: bool, closes: bool) -> VerbResult:
    from dibs.integrations.unreadable import refuses

    if closes and refuses(call.found):
        why = f"this cannot be guarded, and guard_failure is refuse: {problem.message}"
        raise refused("unguarded", why, cause=problem.code)
    payload: dict[str, Any] = {"schema": 1, "ok": True, "unguarded": problem.message}
    if not first and other_hook_warns(call, fences=closes):
        return VerbResult(payload)
    return VerbResult(payload, warnings=(f"not guarded by the board: {problem.message}",))


def other_hook_warns(call: Call, *, fences: bool) -> bool:
    """Whether another hook of the same commit warns: the one before it or, if skipped, the guard of refs."""
    from dibs.integrations.git.hook_context import already_warned
    from dibs.integrations.unreadable import settings_in

    fenced = settings_in(call.found.folder).get("fence_refs") is True
    return already_warned() or (not fences and fenced)


def allow(call: Call) -> VerbResult:
    from dibs.cli.paths import allow

    return allow(call, call["rest"])


ACTIONS: dict[str, Callable[[Call], VerbResult]] = {
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
