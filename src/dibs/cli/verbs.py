"""Registry of verbs: group, module and help title of each. Imports none of their modules."""

from __future__ import annotations

GROUPS: dict[str, dict[str, str]] = {
    "tasks": {
        "add": "add a task",
        "edit": "change what a task asks for",
        "intake": "take in a request; the same origin always gives the same task",
        "list": "list tasks",
        "show": "show one task with its assignment record, notes and leases",
        "depend": "make a task wait for others, or not any more",
        "why": "why nobody works on a task, down to the cause",
        "scope": "show or change the paths that a task may touch",
        "note": "add a note to a task",
    },
    "own": {
        "claim": "become the holder of a task and start it",
        "next": "claim what is offered first",
        "start": "begin, or begin the next stint",
        "stop": "end the stint, keep the lease",
        "renew": "extend one lease, or all of this session",
        "release": "give a task back",
        "handoff": "name the next holder, without a gap",
        "takeover": "become the holder after expiry",
        "assign": "make somebody else the holder",
        "unassign": "take an assignment back",
        "park": "keep a task from being offered",
        "unpark": "offer a parked task again",
    },
    "move": {
        "block": "say what stands in the way",
        "unblock": "nothing stands in the way any more",
        "submit": "hand the result to a reviewer",
        "accept": "accept submitted work",
        "reject": "send submitted work back",
        "complete": "the work is done (also: done)",
        "fail": "the work was tried and did not succeed",
        "retry": "try again what failed, or was left by the dead",
        "reset": "begin tasks anew, with all that depends on them",
        "drop": "the work is not wanted any more",
    },
    "look": {
        "status": "the board at a glance",
        "log": "the ledger: who owned what when",
        "who": "who owns a task, or owned it at an instant; who holds paths",
        "watch": "see events as they happen",
        "wait": "wait until a task is complete, free or ready",
    },
    "time": {
        "timesheet": "what the periods of work add up to, by actor, task, day, week or month",
        "day": "one actor's day: stints, notes, claims and takeovers",
        "stint": "list periods of work, put them right, say what was used",
        "approve": "confirm somebody else's hours in a period, which closes it",
        "reopen": "let an approved period be corrected again",
    },
    "work": {
        "sweep": "end the leases of the dead, and offer their tasks again",
        "run": "run a command under a task: claim it, renew it, then complete or fail it",
        "dispatch": "start the configured agents on what is ready",
    },
    "files": {
        "sync": "read backlog files into the board, and keep them in step with it",
        "import": "take in what another tool, or dibs itself, has exported",
        "export": "write the whole board, with its ledger, to a file of JSON lines",
        "shellenv": "print shell functions that lock WRK items",
    },
    "board": {
        "init": "make a board for this repository",
        "config": "show every setting and where it comes from, or change one",
        "actor": "list or change actors",
        "doctor": "check the board, its file or its server, its ledger and its clock",
        "setup": "set up a board, git and the agent harnesses that are found, or one of them",
        "uninstall": "take out everything that was set up, and name what stays",
        "board": "list, move, save or restore boards, and say who may use them",
        "demo": "eight agents, two people, kills and a zombie, in a throw-away repository",
    },
    "inner": {
        "guard": "what hooks ask before a repository is written to; range A..B is for CI",
        "hook": "what an agent harness calls before an edit, and when a session begins or ends",
        "prime": "what a session is told at its start: what it holds, what is ready",
        "statusline": "one line for a prompt: what this session holds, and how long still",
    },
}

ALIASES = {"done": "complete"}

APART = {
    "config": "config", "demo": "demo", "guard": "guard", "hook": "hook", "intake": "intake", "prime": "hook",
    "setup": "setup", "statusline": "hook", "uninstall": "uninstall",
}  # fmt: skip
"""Verbs whose module is not named after their group."""

MODULES = {
    verb: f"dibs.cli.{APART.get(verb, group)}" for group, verbs in GROUPS.items() for verb in verbs
}


def meaning(verb: str) -> str:
    return next(verbs[verb] for verbs in GROUPS.values() if verb in verbs)


def overview() -> str:
    """The text of `dibs help`."""
    lines = ["dibs: one task, one owner", "", "usage: dibs VERB [ARGUMENTS] [OPTIONS]"]
    for group, verbs in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {verb:<10} {means}" for verb, means in verbs.items()]
    return "\n".join(lines) + EVERYWHERE


EVERYWHERE = """

with every verb, before or after it:
  --agent NAME       the agent that acts (or DIBS_AGENT), with
  --session NAME     its session (or DIBS_SESSION, or the harness's own variable)
  --as NAME          the person who acts
  --request-id ID    asking again with the same id gives the same answer
  --json             one JSON object instead of text
  --help             what the verb takes

exit: 0 done, 1 refused, 2 usage, 3 a gate is not met, 4 held by another session,
      5 lease lost, 70 a bug in dibs, 73 done but output lost, 74 storage failed,
      75 try again
"""
