"""The registry of verbs: the one place that says what a verb is.

Each row has the verb's place in the command line, the facts it needs, its states, its guards in order of precedence
(the first that fails gives the refusal), who may use it, and the function that decides it. Guards, conditions and
functions are named, not imported: every command reads this table at its start, and few need more than one row.
A name with a dot is in that module of `domain/decide/`; one without is in `domain/guards.py` or, for the function that
decides, in `domain/decide/__init__.py`.
"""

from __future__ import annotations

from dibs.domain.model import (
    BLOCKED,
    COMPLETE,
    DROPPED,
    FAILED,
    HOLDABLE,
    IN_PROGRESS,
    NOT_FINAL,
    OPEN,
    REVIEW,
    STATES,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dibs.domain.model import State

SAME = "same"
"""As a target: the state stays as it is."""


class VerbSpec:
    """One row of the registry. What a row does not set has the default given here."""

    name: str
    title: str
    """What it does, in half a sentence: for help and for the pages."""
    group: str = ""
    """The section of the help; empty for a command that another verb gives (`force`: `takeover --force`)."""
    module: str = ""
    """Its module in `cli/`, if that is not named after the group."""
    alias: str = ""
    typed: str
    """The command as people type it."""

    facts: str = ""
    """The kind of facts it needs (`board/facts`); empty for a verb that only reads."""
    sources: tuple[State, ...] = ()
    target: str = ""
    guards: tuple[str, ...] = ()
    own_guards: tuple[str, ...] = ()
    """Instead of `guards`, for a caller whose own lease has not ended: it continues, the gates are not rechecked."""
    act: str = ""
    """The function that decides it after all guards have passed."""

    people_only: bool = False
    needs_reason: bool = False
    when: str = ""
    """The condition under which a person or a reason is required; empty: always."""
    parent_only: bool = False
    """It ends the work of the parent session: subagents may not use it."""

    takes: bool = False
    """Afterwards the task may have a new holder."""
    starts: bool = False
    """It may begin a stint."""
    ends_the_dead: bool = False
    """If it is refused because of a holder who is dead, that lease is ended, and it is tried again."""
    checks_liveness: bool = False
    """Which holders are dead is checked before it."""
    reads_file: bool = False
    """It depends on the item file of its task, which is read before it."""
    idempotent: bool = False
    """The holder may repeat it after a lost response."""
    reports: bool = False
    """With it a holder reports a result: a late report is kept as a note."""
    owns_result: bool = False
    """A holder whose lease it ended remains the owner of the result."""
    repeatable: bool = False
    """It writes down what is so: a second time changes nothing, so that it needs no request id."""
    ends_own: bool = False
    """With it a holder ends its own lease: its commits until then count."""

    def __init__(self, name: str, title: str, group: str = "", **fields: Any) -> None:
        self.name = self.typed = name
        self.title = title
        self.group = group
        self.__dict__ |= fields


WORKABLE = (OPEN, IN_PROGRESS)
KEPT_BLOCKED = (OPEN, IN_PROGRESS, BLOCKED)

GATES = (
    "dependencies_are_complete", "gate_of_the_file_is_met", "it_is_for_this_kind", "tier_suffices",
    "capabilities_suffice", "it_is_not_parked", "it_is_not_assigned_to_another", "scope_is_free",
)  # fmt: skip
GATES_OF_FORCE = (
    "dependencies_are_complete_or_a_files", "it_is_for_this_kind", "tier_suffices", "capabilities_suffice",
    "it_is_not_parked", "scope_is_free",
)  # fmt: skip
RIGHT = ("caller_has_the_right", "reason_is_given")
TO_HOLD = (
    "caller_is_no_subagent", "token_is_current", "lease_is_not_lost", "state_allows_it", "assignment_is_taken_up",
    "no_other_session_holds_it",
)  # fmt: skip
TO_CHANGE = ("token_is_current", "state_allows_it", "holder_or_person_or_free")
OWN = ("state_allows_it", "it_is_not_run_already", "scope_is_free_if_late", "it_can_start")
CLAIMS: dict[str, Any] = {
    "facts": "claim", "sources": WORKABLE, "target": IN_PROGRESS, "takes": True, "starts": True, "reads_file": True,
}  # fmt: skip
CLAIMS_FREE: dict[str, Any] = CLAIMS | {
    "guards": (
        "state_allows_it", "it_is_not_run_already", "no_other_session_holds_it_live", "no_lock_stands_in_the_file",
        *GATES,
    ),
    "own_guards": OWN, "ends_the_dead": True,
}  # fmt: skip
PEOPLE: dict[str, Any] = {"people_only": True, "needs_reason": True}
ADMIN: dict[str, Any] = {"guards": ("caller_has_the_right",), "people_only": True}
OF_SESSIONS: dict[str, Any] = {"typed": "session", "facts": "session", "repeatable": True}

VERBS: dict[str, VerbSpec] = {
    spec.name: spec
    for spec in (
        # tasks
        VerbSpec(
            "add", "add a task", "tasks", facts="add", act="intake.add",
            guards=("charge_code_is_approved", "key_is_free"),
        ),
        VerbSpec(
            "edit", "change the terms of a task", "tasks", facts="task", sources=NOT_FINAL, target=SAME, act="edit",
            guards=(
                *TO_CHANGE, "terms_are_ones_own_or_a_person_asks", "no_file_says_it", "charge_code_is_approved",
                "scope_is_free_if_late",
            ),
        ),
        VerbSpec(
            "intake", "add a request; the same origin always gives the same task", "tasks", module="intake",
            facts="intake", act="intake.intake", guards=("charge_code_is_approved",),
        ),
        VerbSpec("list", "list tasks", "tasks"),
        VerbSpec("show", "show one task with its assignment record, notes and leases", "tasks"),
        VerbSpec(
            "depend", "add or remove dependencies of a task", "tasks", facts="depend", sources=NOT_FINAL,
            target=SAME, act="depend",
            guards=(
                *TO_CHANGE, "no_file_says_it", "it_makes_no_cycle", "dependencies_are_few", "scope_is_free_if_late",
            ),
        ),
        VerbSpec("why", "why nobody works on a task, down to the cause", "tasks"),
        VerbSpec(
            "scope", "show or change the paths that a task may change", "tasks", facts="task", sources=NOT_FINAL,
            target=SAME, act="scope", guards=(*TO_CHANGE, "scope_is_free_if_late", "scope_is_free_if_wider"),
        ),
        VerbSpec(
            "note", "add a note to a task", "tasks", facts="task", sources=STATES, target=SAME, act="note",
        ),
        VerbSpec(
            "redact", "remove the text of a note", typed="note --redact", facts="redact", sources=STATES, target=SAME,
            act="redact", guards=(*RIGHT, "note_is_there"), **PEOPLE,
        ),
        # own
        VerbSpec(
            "claim", "become the holder of a task and start it", "own", act="claim", **CLAIMS_FREE,
        ),
        VerbSpec(
            "next", "claim the first task on offer", "own", facts="next", act="next_", takes=True, starts=True,
            guards=("work_is_not_paused", "caller_holds_fewer", "something_is_ready"),
        ),
        VerbSpec("start", "start work, or the next stint", "own", act="start", **CLAIMS_FREE),
        VerbSpec(
            "stop", "end the stint, keep the lease", "own", facts="task", sources=(IN_PROGRESS,), target=SAME,
            act="stop", parent_only=True, guards=(*TO_HOLD, "caller_holds_it", "scope_is_free_if_late"),
        ),
        VerbSpec(
            "renew", "extend one lease, or all leases of this session", "own", facts="task", sources=KEPT_BLOCKED, target=SAME,
            act="renew", guards=(*TO_HOLD, "caller_holds_it", "scope_is_free_if_late"),
        ),
        VerbSpec(
            "release", "release a task", "own", facts="task", sources=KEPT_BLOCKED, target=OPEN,
            act="release", parent_only=True, idempotent=True, reports=True, ends_own=True,
            guards=("caller_is_no_subagent", "token_is_current"),
        ),
        VerbSpec(
            "handoff", "transfer a task to the next holder, without a gap", "own", facts="task", sources=WORKABLE, target=SAME,
            act="handoff", parent_only=True, takes=True, reads_file=True, reports=True,
            guards=(*TO_HOLD, "caller_holds_it", "receiver_exists", *GATES),
        ),
        VerbSpec("takeover", "become the holder after the lease has expired", "own", act="takeover", **CLAIMS_FREE),
        VerbSpec(
            "force", "a person takes it against a live lease", typed="takeover --force", act="force",
            guards=(*RIGHT, "state_allows_it", *GATES_OF_FORCE), own_guards=(*RIGHT, *OWN), **CLAIMS, **PEOPLE,
        ),
        VerbSpec(
            "assign", "make somebody else the holder", "own", facts="task", sources=WORKABLE, target=SAME,
            act="assign", takes=True, reads_file=True,
            guards=("receiver_exists", "state_allows_it", "nobody_holds_it_live", "no_lock_stands_in_the_file", *GATES),
        ),
        VerbSpec(
            "unassign", "cancel an assignment", "own", facts="task", sources=NOT_FINAL, target=SAME,
            act="unassign", guards=("state_allows_it", "lease_is_unbound", *RIGHT), **PEOPLE,
            when="it_ends_anothers_live_lease",
        ),
        VerbSpec(
            "park", "stop offering a task", "own", facts="task", sources=NOT_FINAL, target=SAME,
            act="park", guards=("state_allows_it",),
        ),
        VerbSpec(
            "unpark", "offer a parked task again", "own", facts="task", sources=NOT_FINAL, target=SAME,
            act="unpark", guards=("state_allows_it", "parker_or_person"),
        ),
        # move
        VerbSpec(
            "block", "mark a task as blocked", "move", facts="task", sources=WORKABLE, target=BLOCKED,
            act="block", parent_only=True, needs_reason=True, reports=True, owns_result=True, ends_own=True,
            guards=(*TO_HOLD, "reason_is_given", "scope_is_free_if_late"),
        ),
        VerbSpec(
            "unblock", "mark a blocked task as open again", "move", facts="task", sources=(BLOCKED,), target=OPEN,
            act="unblock", guards=("state_allows_it", "holder_or_person_or_free", "scope_is_free_if_late"),
        ),
        VerbSpec(
            "submit", "submit work for review", "move", facts="task", sources=WORKABLE, target=REVIEW,
            act="submit", parent_only=True, reads_file=True, idempotent=True, reports=True, owns_result=True,
            ends_own=True, guards=(*TO_HOLD, "caller_holds_it", "it_can_start"),
        ),
        VerbSpec(
            "accept", "accept submitted work", "move", facts="task", sources=(REVIEW,), target=COMPLETE,
            act="accept", guards=("state_allows_it", "reviewer_is_not_the_author"),
        ),
        VerbSpec(
            "reject", "send submitted work back", "move", facts="task", sources=(REVIEW,), target=OPEN,
            act="reject", needs_reason=True, guards=("state_allows_it", "reason_is_given"),
        ),
        VerbSpec(
            "complete", "mark a task as complete (alias: done)", "move", alias="done", facts="task", sources=WORKABLE,
            target=COMPLETE, act="complete", parent_only=True, reads_file=True, idempotent=True, reports=True,
            owns_result=True, ends_own=True,
            guards=(*TO_HOLD, "caller_holds_it", "constraints_allow_it", "it_can_start"),
        ),
        VerbSpec(
            "fail", "mark a task as failed", "move", facts="task", sources=WORKABLE, target=FAILED,
            act="fail", parent_only=True, needs_reason=True, idempotent=True, reports=True, owns_result=True,
            ends_own=True, guards=(*TO_HOLD, "caller_holds_it", "reason_is_given"),
        ),
        VerbSpec(
            "retry", "retry a failed task, or one left by a dead holder", "move", facts="retry",
            sources=(OPEN, IN_PROGRESS, FAILED), target=OPEN, act="recovery.retry", checks_liveness=True,
            guards=("state_allows_it", "nobody_holds_it_live", *RIGHT, "attempts_are_left"), **PEOPLE,
            when="it_is_forced",
        ),
        VerbSpec(
            "reset", "reset tasks, with everything that depends on them", "move", facts="reset", sources=STATES,
            target=OPEN, act="recovery.reset", checks_liveness=True, **PEOPLE, when="it_interrupts_somebody",
            guards=("receiver_exists", *RIGHT, "many_are_confirmed", "new_holder_fits", "scope_is_free"),
        ),
        VerbSpec(
            "drop", "drop a task that is no longer wanted", "move", facts="drop", sources=NOT_FINAL, target=DROPPED,
            act="drop", parent_only=True, idempotent=True, owns_result=True, **PEOPLE,
            when="it_ends_anothers_lease",
            guards=(
                "caller_is_no_subagent", "token_is_current", "state_allows_it", *RIGHT, "constraints_allow_it",
            ),
        ),
        # look
        VerbSpec("status", "the board at a glance", "look"),
        VerbSpec("log", "the ledger: who owned what when", "look"),
        VerbSpec("who", "who owns a task, or owned it at an instant; who holds paths", "look"),
        VerbSpec("watch", "print events as they happen", "look"),
        VerbSpec("wait", "wait until a task is complete, free or ready", "look"),
        # time
        VerbSpec(
            "timesheet", "hours by actor, task, day, week or month", "time",
        ),
        VerbSpec("day", "one actor's day: stints, notes, claims and takeovers", "time"),
        VerbSpec("stint", "list and correct periods of work, and report their usage", "time"),
        VerbSpec(
            "add_stint", "record a period of work that was not tracked", typed="stint add", facts="stint",
            act="stints.add_stint", **PEOPLE,
            guards=(
                *RIGHT, "stints.actor_is_known", "stints.ends_after_it_starts", "stints.is_not_empty", "stints.is_over",
                "stints.is_of_the_tasks_time", "stints.is_alone", "stints.is_not_approved", "stints.is_confirmed",
            ),
        ),
        VerbSpec(
            "amend_stint", "correct a period of work", typed="stint amend", facts="stint", act="stints.amend_stint",
            **PEOPLE,
            guards=(
                *RIGHT, "stints.counts_still", "stints.is_another", "stints.ends_after_it_starts", "stints.is_over",
                "stints.is_of_the_tasks_time", "stints.is_alone", "stints.is_not_approved", "stints.is_confirmed",
            ),
        ),
        VerbSpec(
            "report_usage", "say what a period of work used", typed="stint usage", facts="stint",
            act="stints.report_usage", guards=("stints.is_the_callers", "stints.counts_still"),
        ),
        VerbSpec(
            "approve", "approve somebody else's hours in a period, which closes it", "time",
            facts="approval", act="approval.approve", people_only=True,
            guards=(
                "caller_has_the_right", "approval.is_known", "approval.is_anothers", "approval.is_over",
                "approval.has_nothing_open", "approval.is_not_approved",
            ),
        ),
        VerbSpec(
            "reopen", "reopen an approved period for corrections", "time", facts="approval",
            act="approval.reopen", guards=(*RIGHT, "approval.is_known", "approval.is_approved"), **PEOPLE,
        ),
        # work
        VerbSpec(
            "sweep", "end the leases of dead holders, and offer their tasks again", "work",
            facts="sweep", sources=HOLDABLE, target=OPEN, act="recovery.sweep", checks_liveness=True,
        ),
        VerbSpec("run", "run a command under a lease: claim, renew, then complete or fail", "work"),
        VerbSpec("dispatch", "start the configured agents on ready tasks", "work"),
        VerbSpec(
            "pause", "stop offering tasks", typed="dispatch --pause", facts="board", act="board.pause",
        ),
        VerbSpec(
            "resume", "offer tasks again", typed="dispatch --resume", facts="board", act="board.resume",
        ),
        # files
        VerbSpec(
            "sync", "sync backlog files with the board", "files", facts="sync",
            act="sync.sync",
        ),
        VerbSpec("import", "import what another tool, or dibs itself, exported", "files"),
        VerbSpec("export", "export the board with its ledger as JSON lines", "files"),
        VerbSpec("shellenv", "print shell functions that lock WRK items", "files"),
        # board
        VerbSpec("init", "create a board for this repository", "board"),
        VerbSpec(
            "config", "show every setting and its source, or change one", "board", module="config",
        ),
        VerbSpec(
            "set_settings", "load settings into a server", typed="config --load", facts="board", act="board.set_settings",
            **ADMIN,
        ),
        VerbSpec("actor", "list or change actors", "board"),
        VerbSpec(
            "set_actor", "change an actor", typed="actor set", facts="actor", act="board.set_actor", people_only=True,
            guards=("caller_has_the_right", "actor_is_known_or_has_a_kind", "kind_stays", "board.names_are_free"),
        ),
        VerbSpec("doctor", "check the board, its file or its server, its ledger and its clock", "board"),
        VerbSpec(
            "set_clock", "set the board's clock to that of the machine", typed="doctor --set-clock", facts="clock",
            act="board.set_clock", guards=RIGHT, **PEOPLE,
        ),
        VerbSpec(
            "setup", "set up a board, git hooks and the agent harnesses found here", "board",
            module="setup",
        ),
        VerbSpec(
            "uninstall", "remove everything that was set up, and list what stays", "board", module="uninstall",
        ),
        VerbSpec(
            "board", "list, move, back up or restore boards, and grant access", "board",
        ),
        VerbSpec(
            "move_board", "move the board to another place", typed="board move", facts="clock", act="board.move_board",
            **ADMIN,
        ),
        VerbSpec(
            "restore_board", "put a saved board in the place of this one", typed="board restore", facts="epoch",
            act="board.restore_board", guards=RIGHT, **PEOPLE,
        ),
        VerbSpec("begin_epoch", "begin an epoch above tokens that may be lost", facts="epoch", act="board.begin_epoch"),
        VerbSpec(
            "demo", "eight agents, two people, kills and a zombie, in a temporary repository", "board", module="demo",
        ),
        # inner
        VerbSpec(
            "guard", "checks for git hooks; range A..B is for CI", "inner", module="guard",
        ),
        VerbSpec(
            "allow", "let somebody touch its paths for a while", typed="guard allow", facts="task", sources=HOLDABLE,
            target=SAME, act="allow",
            guards=(*RIGHT, "receiver_exists", "state_allows_it", "somebody_holds_it"), **PEOPLE,
        ),
        VerbSpec(
            "hook", "called by an agent harness before an edit, and when a session starts or ends", "inner",
            module="hook",
        ),
        VerbSpec("register_session", "a session is there", act="sessions.register_session", **OF_SESSIONS),
        VerbSpec("end_session", "a session is over", act="sessions.end_session", **OF_SESSIONS),
        VerbSpec("set_background", "whether background work runs", act="sessions.set_background", **OF_SESSIONS),
        VerbSpec(
            "prime", "the context of a new session: what it holds, what is ready", "inner", module="hook",
        ),
        VerbSpec(
            "statusline", "one line for a prompt: what this session holds, and for how long", "inner", module="hook",
        ),
    )
}  # fmt: skip


def ended_by(cause: str) -> VerbSpec:
    """The verb that ended a lease; a row without properties if no verb did (`expired`)."""
    return VERBS.get(cause) or VerbSpec(cause, "")


def commands() -> Iterator[VerbSpec]:
    """The verbs that change the board."""
    return (spec for spec in VERBS.values() if spec.facts)


def typed_verbs() -> Iterator[VerbSpec]:
    """The verbs of the command line, in the order of the help."""
    return (spec for spec in VERBS.values() if spec.group)
