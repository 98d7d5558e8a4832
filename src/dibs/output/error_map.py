"""Maps each refusal code to exit code, HTTP status, MCP error and advice.

Advice never contains a destructive command.
"""

from __future__ import annotations

from dibs.domain.refusals import Refusal
from dibs.domain.values import Value

DONE, REFUSED, USAGE, GATE, HELD, LOST = 0, 1, 2, 3, 4, 5
BUG, OUTPUT, STORAGE, AGAIN = 70, 73, 74, 75

EXITS = {
    DONE: "done",
    REFUSED: "refused: not allowed in this state, denied by a guard, or a check failed",
    USAGE: "usage: bad argument, unknown task, no identity, no board",
    GATE: "a gate is not met: dependencies, plan or ready gate, tier, kind of actor, parked, assigned to another, constraint",
    HELD: "held by another session (the task, or its scope)",
    LOST: "lease lost: the token is no longer current",
    BUG: "a bug in dibs",
    OUTPUT: "output lost: the command succeeded with all its changes, but its output could not be written",
    STORAGE: "storage failed: disk full, read-only, corrupt; nothing was changed",
    AGAIN: "try again: busy, paused, nothing ready, timed out, board moved, server unreachable",
}

HTTP = {
    REFUSED: 409,
    USAGE: 400,
    GATE: 412,
    HELD: 423,
    LOST: 410,
    BUG: 500,
    OUTPUT: 500,
    STORAGE: 507,
    AGAIN: 503,
}
MCP = {
    REFUSED: -32001, USAGE: -32602, GATE: -32003, HELD: -32004, LOST: -32005, BUG: -32603,
    OUTPUT: -32073, STORAGE: -32074, AGAIN: -32075,
}  # fmt: skip


class ErrorMapping(Value):
    """The exit code and advice of a refusal (`{task}` and others are filled from its facts)."""

    exit: int
    advice: str
    in_harness: str = ""
    """The advice inside an agent's harness, if it differs: nobody acts as a person there."""

    @property
    def http(self) -> int:
        return HTTP[self.exit]

    @property
    def mcp(self) -> int:
        return MCP[self.exit]


ERROR_MAP = {
    # Usage.
    "bad_argument": ErrorMapping(USAGE, "dibs help"),
    "unknown_task": ErrorMapping(USAGE, "dibs list"),
    "unknown_note": ErrorMapping(
        USAGE, "dibs show {task} --json lists the event number of each note"
    ),
    "unknown_actor": ErrorMapping(USAGE, "dibs actor list"),
    "wrong_kind_of_name": ErrorMapping(USAGE, "use {option} {actor}, or choose another name"),
    "name_taken": ErrorMapping(USAGE, "dibs actor list"),
    "no_identity": ErrorMapping(
        USAGE,
        "use --agent NAME (or DIBS_AGENT) for an agent, --as NAME for a person",
        in_harness="use --agent NAME, or export DIBS_AGENT=NAME",
    ),
    "no_session": ErrorMapping(
        USAGE, "export DIBS_SESSION=NAME in this terminal, or use --session NAME; one per run"
    ),
    "cannot_start": ErrorMapping(
        USAGE, "check the command after --; dibs list --held shows what you hold"
    ),
    "no_worktree": ErrorMapping(REFUSED, "check {path}, or leave out --worktree"),
    "no_board": ErrorMapping(USAGE, "dibs init, at the root of your repository"),
    "no_backlog": ErrorMapping(USAGE, "name its folder in dibs.toml at the root, under [backlogs]"),
    "unconfirmed": ErrorMapping(USAGE, "check what it would change; --help shows how to confirm"),
    "bad_charge_code": ErrorMapping(USAGE, "dibs config lists charge_codes; a person can add one"),
    "unknown_stint": ErrorMapping(USAGE, "dibs stint list shows the number in its first column"),
    "bad_period": ErrorMapping(USAGE, "check --from, --to and the time zone (--tz)"),
    "ambiguous_time": ErrorMapping(USAGE, "write {first} or {second}"),
    "reason_missing": ErrorMapping(USAGE, "add --reason TEXT"),
    "unknown_setting": ErrorMapping(USAGE, "dibs config lists every setting"),
    "no_agents": ErrorMapping(
        USAGE, "a person configures one: dibs config agents.codex.command 'codex exec ...'"
    ),
    "not_let_in": ErrorMapping(
        USAGE, "check the role, the password and the database in the address"
    ),
    "wrong_encoding": ErrorMapping(
        USAGE, "use another database: CREATE DATABASE team ENCODING 'UTF8' TEMPLATE template0"
    ),
    "statement_pooler": ErrorMapping(
        USAGE, "use transaction pooling, or an address that bypasses the pooler"
    ),
    "driver_missing": ErrorMapping(USAGE, "pip install 'dibs[postgres]'"),
    "unaccepted_server": ErrorMapping(
        USAGE,
        "if you trust it, a person runs: dibs config --adopt, or dibs config url {address}",
    ),
    "bad_setting": ErrorMapping(
        USAGE, "dibs config lists every setting, its value and where it is set"
    ),
    "undecided": ErrorMapping(
        USAGE, "use fewer wildcards in the scopes: dibs scope; dibs list --held"
    ),
    # Refused.
    "final": ErrorMapping(REFUSED, "dibs show {task}; new work is a new task: dibs add"),
    "wrong_state": ErrorMapping(REFUSED, "dibs show {task}"),
    "key_taken": ErrorMapping(REFUSED, "choose another key, or leave it out to get one"),
    "people_only": ErrorMapping(REFUSED, "ask a person to do it, outside the harness of any agent"),
    "foreign_repository": ErrorMapping(
        REFUSED,
        "check who created it; if you trust it, add {path} to safe.directory in your own configuration of git",
    ),
    "in_harness": ErrorMapping(REFUSED, "act as an agent: --agent NAME"),
    "parent_only": ErrorMapping(REFUSED, "leave it to the session {parent}"),
    "own_review": ErrorMapping(REFUSED, "ask somebody else to accept or reject {task}"),
    "not_held": ErrorMapping(REFUSED, "dibs claim {task}"),
    "not_bound": ErrorMapping(
        REFUSED, "dibs claim {task} to take it up, dibs release {task} to decline it"
    ),
    "bound": ErrorMapping(REFUSED, "ask {holder} to hand it off or release it"),
    "not_assigned": ErrorMapping(REFUSED, "dibs show {task}"),
    "not_yours_to_unpark": ErrorMapping(REFUSED, "ask {parked_by}, or a person"),
    "cycle": ErrorMapping(REFUSED, "leave out one of these dependencies; see dibs why {task}"),
    "used_up": ErrorMapping(
        REFUSED, "dibs show {task} shows why it failed; ask a person to allow another attempt"
    ),
    "never": ErrorMapping(REFUSED, "dibs show {task}; to try again: dibs retry {task}"),
    "stint_overlaps": ErrorMapping(REFUSED, "correct the other stint first: dibs stint list"),
    "already_amended": ErrorMapping(
        REFUSED, "amend stint {replaced_by} instead: it replaced this one"
    ),
    "not_your_stint": ErrorMapping(REFUSED, "leave it to {actor}, or ask a person"),
    "request_reused": ErrorMapping(REFUSED, "use a new request id for a new command"),
    "not_signed": ErrorMapping(
        REFUSED, "check that both sides use the same secret; the file may contain several"
    ),
    "file_says_it": ErrorMapping(REFUSED, "change it in the item file, then: dibs sync"),
    "outside_scope": ErrorMapping(
        REFUSED, "if the task needs it: dibs scope {task} --add PATH; else leave the file unchanged"
    ),
    "not_reserved": ErrorMapping(REFUSED, "go ahead; dibs who PATH shows who holds a path"),
    "own_timesheet": ErrorMapping(REFUSED, "ask another person to approve it"),
    "period_not_over": ErrorMapping(REFUSED, "approve it after {until}"),
    "stint_open": ErrorMapping(
        REFUSED,
        "dibs stop {task} ends a stint; if its holder is dead: dibs sweep, and again after 30 s",
    ),
    "approved": ErrorMapping(
        REFUSED, "a person can reopen it: dibs reopen {actor}, with its period and --tz {zone}"
    ),
    "not_approved": ErrorMapping(REFUSED, "dibs timesheet --verify lists the approved periods"),
    "replaces_object": ErrorMapping(
        REFUSED, "push the commit itself; replacement objects are not accepted"
    ),
    "bad_trailer": ErrorMapping(REFUSED, "amend the commit so that its trailers match a lease"),
    "needs_task": ErrorMapping(REFUSED, "dibs next, or dibs claim KEY"),
    "kind_is_fixed": ErrorMapping(REFUSED, "register the other one under a different name"),
    "foreign_schema": ErrorMapping(
        REFUSED,
        "check who created it; connect as the schema's owner, or use another database",
    ),
    "not_granted": ErrorMapping(
        REFUSED, "ask the owner of the database to run: dibs board grant ROLE"
    ),
    "servers_clock": ErrorMapping(REFUSED, "dibs doctor shows how far this machine's clock is off"),
    "forked": ErrorMapping(REFUSED, "open the board after the fork, once in each process"),
    "closed": ErrorMapping(REFUSED, "open the board again"),
    # A gate is not met.
    "waits": ErrorMapping(GATE, "dibs why {task}; dibs next for other work"),
    "gate_not_met": ErrorMapping(GATE, "fix its item file; dibs next for other work"),
    "wrong_kind": ErrorMapping(GATE, "dibs next"),
    "tier_too_low": ErrorMapping(GATE, "dibs next"),
    "capability_missing": ErrorMapping(GATE, "dibs next"),
    "parked": ErrorMapping(GATE, "dibs next, or ask {parked_by} to unpark it"),
    "assigned_to_another": ErrorMapping(GATE, "dibs next, or ask {assignee}"),
    "not_allowed": ErrorMapping(
        GATE, "dibs submit {task}, or ask a person to edit its constraints"
    ),
    "action_not_allowed": ErrorMapping(GATE, "ask a person to edit the constraints of {task}"),
    # Held by another session; lease lost.
    "held": ErrorMapping(HELD, "dibs next, or dibs wait {task} --for free"),
    "locked_in_file": ErrorMapping(HELD, "dibs next; or ask a person, if nobody works on {task}"),
    "scope_held": ErrorMapping(HELD, "dibs next, or dibs wait {other} --for free"),
    "path_held": ErrorMapping(HELD, "work on something else, or dibs wait {other} --for free"),
    "already_running": ErrorMapping(
        HELD, "wait for it: dibs wait {task} --for free; or stop process {process} yourself"
    ),
    "held_here": ErrorMapping(HELD, "give each worker its own session and its own board"),
    "lease_lost": ErrorMapping(LOST, "stop working on it; dibs show {task} shows who has it"),
    "work_lost": ErrorMapping(
        LOST,
        "dibs show {task} shows who has it; to continue: dibs claim KEY, or dibs release {task}",
    ),
    "token_ahead": ErrorMapping(
        LOST, "stop working on it; dibs log shows what happened; save your findings with dibs note"
    ),
    # Bugs, storage, output, try again.
    "bug": ErrorMapping(BUG, "run it again with DIBS_DEBUG=1, and report what it prints"),
    "disk_full": ErrorMapping(STORAGE, "free some disk space, then run it again"),
    "read_only": ErrorMapping(STORAGE, "make the folder writable, then run it again"),
    "corrupt": ErrorMapping(STORAGE, "keep the file as it is, and go back to a backup"),
    "storage_failed": ErrorMapping(STORAGE, "dibs doctor"),
    "newer_schema": ErrorMapping(
        STORAGE, "upgrade dibs, and restart whatever still runs this version"
    ),
    "other_schema": ErrorMapping(
        STORAGE,
        "with the version that created it: dibs export FILE; move its folder away; then here: dibs import FILE",
    ),
    "board_replaced": ErrorMapping(STORAGE, "stop; find out who replaced the board, then restart"),
    "unsafe_storage": ErrorMapping(STORAGE, "check who created it; a board needs its own folder"),
    "push_unchecked": ErrorMapping(
        REFUSED, "push fewer branches at a time; if that fails too, dibs doctor there"
    ),
    "unguarded": ErrorMapping(STORAGE, 'dibs doctor; guard_failure = "warn" lets it through'),
    "network_file_system": ErrorMapping(STORAGE, "set DIBS_BOARD to a folder on a local disk"),
    "output_lost": ErrorMapping(
        OUTPUT,
        "redirect the output; do not repeat a change, it was made: see dibs log",
    ),
    "timed_out": ErrorMapping(AGAIN, "wait again; dibs why {task} shows what it waits for"),
    "unreachable": ErrorMapping(AGAIN, "run it again; dibs doctor checks the server"),
    "board_moved": ErrorMapping(AGAIN, "export DIBS_URL=ADDRESS, or DIBS_BOARD=FOLDER"),
    "moved_to_unaccepted": ErrorMapping(
        AGAIN, "if you trust it, a person runs: dibs config url {address}"
    ),
    "board_lost": ErrorMapping(
        REFUSED, "dibs sync rebuilds it from the files; dibs board can go back to a backup"
    ),
    "board_elsewhere": ErrorMapping(
        REFUSED,
        "if it was lost: dibs sync --board {board}; if this is another clone: dibs init --new",
    ),
    "board_exists": ErrorMapping(REFUSED, "choose another folder, or another name after #"),
    "in_this_database": ErrorMapping(
        REFUSED,
        "use it there: DIBS_URL={there}; to rename it, move it to a folder, then back",
    ),
    "paused": ErrorMapping(AGAIN, "dibs claim KEY still works; dibs status"),
    "at_limit": ErrorMapping(AGAIN, "finish a task first: dibs list --held"),
    "nothing_ready": ErrorMapping(
        AGAIN, "dibs next --wait 10m waits for work; dibs status shows why"
    ),
    "busy": ErrorMapping(
        AGAIN,
        "run it again; if it persists: dibs doctor, and check which process holds the lock",
    ),
}


def mapping_of(refusal: Refusal) -> ErrorMapping:
    return ERROR_MAP[refusal.code]


def advice(refusal: Refusal) -> str:
    mapping = mapping_of(refusal)
    inside = mapping.in_harness if refusal.facts.get("harness") else ""
    return (inside or mapping.advice).format_map(_Facts(refusal.facts))


class _Facts(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return name.upper()
