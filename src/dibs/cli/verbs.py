"""Registry of verbs: group, module and help title of each. Imports none of their modules."""

from __future__ import annotations

GROUPS: dict[str, dict[str, str]] = {
    "tasks": {
        "add": "add a task",
        "edit": "change the terms of a task",
        "intake": "add a request; the same origin always gives the same task",
        "list": "list tasks",
        "show": "show one task with its assignment record, notes and leases",
        "depend": "add or remove dependencies of a task",
        "why": "why nobody works on a task, down to the cause",
        "scope": "show or change the paths that a task may change",
        "note": "add a note to a task",
    },
    "own": {
        "claim": "become the holder of a task and start it",
        "next": "claim the first task on offer",
        "start": "start work, or the next stint",
        "stop": "end the stint, keep the lease",
        "renew": "extend one lease, or all leases of this session",
        "release": "release a task",
        "handoff": "transfer a task to the next holder, without a gap",
        "takeover": "become the holder after the lease has expired",
        "assign": "make somebody else the holder",
        "unassign": "cancel an assignment",
        "park": "stop offering a task",
        "unpark": "offer a parked task again",
    },
    "move": {
        "block": "mark a task as blocked",
        "unblock": "mark a blocked task as open again",
        "submit": "submit work for review",
        "accept": "accept submitted work",
        "reject": "send submitted work back",
        "complete": "mark a task as complete (alias: done)",
        "fail": "mark a task as failed",
        "retry": "retry a failed task, or one left by a dead holder",
        "reset": "reset tasks, with everything that depends on them",
        "drop": "drop a task that is no longer wanted",
    },
    "look": {
        "status": "the board at a glance",
        "log": "the ledger: who owned what when",
        "who": "who owns a task, or owned it at an instant; who holds paths",
        "watch": "print events as they happen",
        "wait": "wait until a task is complete, free or ready",
    },
    "time": {
        "timesheet": "hours by actor, task, day, week or month",
        "day": "one actor's day: stints, notes, claims and takeovers",
        "stint": "list and correct periods of work, and report their usage",
        "approve": "approve somebody else's hours in a period, which closes it",
        "reopen": "reopen an approved period for corrections",
    },
    "work": {
        "sweep": "end the leases of dead holders, and offer their tasks again",
        "run": "run a command under a lease: claim, renew, then complete or fail",
        "dispatch": "start the configured agents on ready tasks",
    },
    "files": {
        "sync": "sync backlog files with the board",
        "import": "import what another tool, or dibs itself, exported",
        "export": "export the board with its ledger as JSON lines",
        "shellenv": "print shell functions that lock WRK items",
    },
    "board": {
        "init": "create a board for this repository",
        "config": "show every setting and its source, or change one",
        "actor": "list or change actors",
        "doctor": "check the board, its file or its server, its ledger and its clock",
        "setup": "set up a board, git hooks and the agent harnesses found here",
        "uninstall": "remove everything that was set up, and list what stays",
        "board": "list, move, back up or restore boards, and grant access",
        "demo": "eight agents, two people, kills and a zombie, in a temporary repository",
    },
    "inner": {
        "guard": "checks for git hooks; range A..B is for CI",
        "hook": "called by an agent harness before an edit, and when a session starts or ends",
        "prime": "the context of a new session: what it holds, what is ready",
        "statusline": "one line for a prompt: what this session holds, and for how long",
    },
}

ALIASES = {"done": "complete"}

MODULE_OF = {
    "config": "config", "demo": "demo", "guard": "guard", "hook": "hook", "intake": "intake", "prime": "hook",
    "setup": "setup", "statusline": "hook", "uninstall": "uninstall",
}  # fmt: skip
"""Verbs whose module is not named after their group."""

MODULES = {
    verb: f"dibs.cli.{MODULE_OF.get(verb, group)}"
    for group, verbs in GROUPS.items()
    for verb in verbs
}


def meaning(verb: str) -> str:
    return next(verbs[verb] for verbs in GROUPS.values() if verb in verbs)


def overview() -> str:
    """The text of `dibs help`."""
    lines = ["dibs: one task, one owner", "", "usage: dibs VERB [ARGUMENTS] [OPTIONS]"]
    for group, verbs in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {verb:<10} {means}" for verb, means in verbs.items()]
    return "\n".join(lines) + FOOTER


FOOTER = """

common options, before or after the verb:
  --agent NAME       act as this agent (or DIBS_AGENT), with
  --session NAME     its session (or DIBS_SESSION, or the harness's own variable)
  --as NAME          act as this person
  --request-id ID    a retry with the same id returns the same answer
  --json             one JSON object instead of text
  --help             the arguments of the verb

exit: 0 done, 1 refused, 2 usage, 3 a gate is not met, 4 held by another session,
      5 lease lost, 70 a bug in dibs, 73 done but output lost, 74 storage failed,
      75 try again
"""
