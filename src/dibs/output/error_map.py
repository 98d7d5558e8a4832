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
    REFUSED: "refused: not allowed in this state, a guard said no, a check failed",
    USAGE: "usage: bad argument, unknown task, no identity, no board",
    GATE: "a gate is not met: dependencies, plan or ready gate, tier, kind of actor, parked, assigned to another, constraint",
    HELD: "held by another session (the task, or its scope)",
    LOST: "lease lost: the token is no longer current",
    BUG: "a bug in dibs",
    OUTPUT: "output lost: the command was carried out, with every change that it makes; what it prints could not be written",
    STORAGE: "storage failed: disk full, read-only, corrupt; nothing was changed",
    AGAIN: "try again: busy, paused, nothing ready, waited in vain, board moved, server unreachable",
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
        USAGE, "dibs show {task} --json has the number of each note's event"
    ),
    "unknown_actor": ErrorMapping(USAGE, "dibs actor list"),
    "wrong_kind_of_name": ErrorMapping(USAGE, "name {actor} with {option}, or take another name"),
    "name_taken": ErrorMapping(USAGE, "dibs actor list"),
    "no_identity": ErrorMapping(
        USAGE, "say --agent NAME (or export DIBS_AGENT) for an agent, --as NAME for a person"
    ),
    "no_session": ErrorMapping(
        USAGE, "export DIBS_SESSION=NAME in this terminal, or say --session NAME; one for each run"
    ),
    "cannot_start": ErrorMapping(
        USAGE, "look at the command after --; {task} was given back, if it could be"
    ),
    "no_worktree": ErrorMapping(REFUSED, "look at {path}; without --worktree no work tree is made"),
    "no_board": ErrorMapping(USAGE, "dibs init, at the root of your repository"),
    "no_backlog": ErrorMapping(USAGE, "dibs.toml at the root may say where it is: [backlogs]"),
    "unconfirmed": ErrorMapping(
        USAGE, "look at what it would change; --help says how to confirm it"
    ),
    "bad_charge_code": ErrorMapping(
        USAGE, "dibs config shows charge_codes; a person may add one there"
    ),
    "unknown_stint": ErrorMapping(USAGE, "dibs stint list; the number stands in its first column"),
    "bad_period": ErrorMapping(USAGE, "look at --from and --to, and at the time zone: --tz"),
    "ambiguous_time": ErrorMapping(USAGE, "write {first} or {second}"),
    "reason_missing": ErrorMapping(USAGE, "say --reason TEXT"),
    "unknown_setting": ErrorMapping(USAGE, "dibs config shows every setting there is"),
    "no_agents": ErrorMapping(
        USAGE, "a person says which: dibs config agents.codex.command 'codex exec ...'"
    ),
    "not_let_in": ErrorMapping(
        USAGE, "look at the role, its password and the database in the address"
    ),
    "wrong_encoding": ErrorMapping(
        USAGE, "name another one: CREATE DATABASE team ENCODING 'UTF8' TEMPLATE template0"
    ),
    "statement_pooler": ErrorMapping(
        USAGE, "let it pool transactions, or name an address that goes around it"
    ),
    "driver_missing": ErrorMapping(USAGE, "pip install 'dibs[postgres]'"),
    "unaccepted_server": ErrorMapping(
        USAGE,
        "if you trust it, a person runs: dibs config --adopt, or dibs config url {address}",
    ),
    "bad_setting": ErrorMapping(
        USAGE, "mend that line of the file; dibs config shows every setting"
    ),
    "undecided": ErrorMapping(
        USAGE, "write the scopes with fewer wildcards: dibs scope; dibs list --held"
    ),
    # Refused.
    "final": ErrorMapping(REFUSED, "dibs show {task}; new work is a new task: dibs add"),
    "wrong_state": ErrorMapping(REFUSED, "dibs show {task}"),
    "key_taken": ErrorMapping(REFUSED, "take another key, or none: dibs gives one"),
    "people_only": ErrorMapping(REFUSED, "ask a person to do it"),
    "foreign_repository": ErrorMapping(
        REFUSED,
        "look at who put it there; if you trust it, name {path} as safe.directory in your own configuration of git",
    ),
    "in_harness": ErrorMapping(REFUSED, "act as the agent that you are: --agent NAME"),
    "parent_only": ErrorMapping(REFUSED, "leave it to the session {parent}"),
    "own_review": ErrorMapping(REFUSED, "ask somebody else to accept or reject {task}"),
    "not_held": ErrorMapping(REFUSED, "dibs claim {task}"),
    "not_bound": ErrorMapping(
        REFUSED, "dibs claim {task} takes it up; dibs release {task} declines it"
    ),
    "bound": ErrorMapping(REFUSED, "ask {holder} to hand it off or release it"),
    "not_assigned": ErrorMapping(REFUSED, "dibs show {task}"),
    "not_yours_to_unpark": ErrorMapping(REFUSED, "ask {parked_by}, or a person"),
    "cycle": ErrorMapping(REFUSED, "leave one of these dependencies out; dibs why {task}"),
    "used_up": ErrorMapping(
        REFUSED, "dibs show {task} says why it failed; ask a person to allow one more try"
    ),
    "never": ErrorMapping(
        REFUSED, "dibs show {task}; what failed is tried again with dibs retry {task}"
    ),
    "stint_overlaps": ErrorMapping(REFUSED, "dibs stint list; put the other one right first"),
    "already_amended": ErrorMapping(
        REFUSED, "put the stint {replaced_by} right: it is the one that counts"
    ),
    "not_your_stint": ErrorMapping(REFUSED, "leave it to {actor}, or ask a person"),
    "request_reused": ErrorMapping(REFUSED, "use a new request id for a new command"),
    "not_signed": ErrorMapping(
        REFUSED, "look at the secret on both sides; several may stand in the file"
    ),
    "file_says_it": ErrorMapping(REFUSED, "change it in the item file, then: dibs sync"),
    "outside_scope": ErrorMapping(
        REFUSED, "dibs scope {task} --add PATH, if the task is to touch it; or leave it as it was"
    ),
    "not_reserved": ErrorMapping(REFUSED, "touch them; dibs who PATH says who holds a path"),
    "own_timesheet": ErrorMapping(REFUSED, "ask another person to approve it"),
    "period_not_over": ErrorMapping(REFUSED, "approve it after {until}"),
    "stint_open": ErrorMapping(
        REFUSED, "dibs stop {task} ends a stint; of the dead, dibs sweep, and again after 30 s"
    ),
    "approved": ErrorMapping(
        REFUSED, "a person opens it again: dibs reopen {actor}, with its period and --tz {zone}"
    ),
    "not_approved": ErrorMapping(REFUSED, "dibs timesheet --verify shows what is approved"),
    "replaces_object": ErrorMapping(
        REFUSED, "push the commit itself; objects that replace others are not taken"
    ),
    "bad_trailer": ErrorMapping(REFUSED, "amend the commit: its trailers are those of a lease"),
    "needs_task": ErrorMapping(REFUSED, "dibs next gives you one, or dibs claim KEY"),
    "kind_is_fixed": ErrorMapping(REFUSED, "give the other one a name of its own"),
    "foreign_schema": ErrorMapping(
        REFUSED,
        "look at who put it there; connect as the role that owns the schema, or name another database",
    ),
    "not_granted": ErrorMapping(REFUSED, "ask who owns the database: dibs board grant ROLE"),
    "servers_clock": ErrorMapping(REFUSED, "dibs doctor shows how far this machine's clock is off"),
    "forked": ErrorMapping(REFUSED, "open the board after the fork, once in each process"),
    "closed": ErrorMapping(REFUSED, "open the board again"),
    # A gate is not met.
    "waits": ErrorMapping(GATE, "dibs why {task}; dibs next gives other work"),
    "gate_not_met": ErrorMapping(GATE, "mend its item file; dibs next gives other work"),
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
        HELD, "wait until it ends: dibs wait {task} --for free; or end process {process} yourself"
    ),
    "held_here": ErrorMapping(
        HELD, "give each worker a session of its own, and a board of its own"
    ),
    "lease_lost": ErrorMapping(LOST, "stop working on it; dibs show {task} says who has it"),
    "work_lost": ErrorMapping(
        LOST, "dibs show {task} says who has it; dibs claim KEY, or dibs release {task} to go on"
    ),
    "token_ahead": ErrorMapping(
        LOST, "stop working on it; dibs log says what happened; dibs note keeps what you found out"
    ),
    # Bugs, storage, output, try again.
    "bug": ErrorMapping(BUG, "run it again with DIBS_DEBUG=1, and report what it prints"),
    "disk_full": ErrorMapping(STORAGE, "make room on the disk, then run it again"),
    "read_only": ErrorMapping(STORAGE, "make the folder writable for you, then run it again"),
    "corrupt": ErrorMapping(STORAGE, "keep the file as it is; go back to a backup"),
    "storage_failed": ErrorMapping(STORAGE, "dibs doctor"),
    "newer_schema": ErrorMapping(
        STORAGE, "install the newer dibs; what still runs with this one is started again"
    ),
    "other_schema": ErrorMapping(
        STORAGE,
        "with the version that made it: dibs export FILE; put its folder aside; then here: dibs import FILE",
    ),
    "board_replaced": ErrorMapping(
        STORAGE, "stop the work; find out who replaced the board, then start this again"
    ),
    "unsafe_storage": ErrorMapping(
        STORAGE, "look at who put it there; a board is a folder of its own"
    ),
    "push_unchecked": ErrorMapping(
        REFUSED, "push fewer branches at a time; if that fails too, dibs doctor there"
    ),
    "unguarded": ErrorMapping(STORAGE, 'dibs doctor; guard_failure = "warn" lets it through'),
    "network_file_system": ErrorMapping(STORAGE, "set DIBS_BOARD to a folder on a local disk"),
    "output_lost": ErrorMapping(
        OUTPUT,
        "let it print elsewhere; do not repeat a change, it was made: dibs log shows it",
    ),
    "timed_out": ErrorMapping(AGAIN, "wait again; dibs why {task} says what it waits for"),
    "unreachable": ErrorMapping(AGAIN, "run it again; dibs doctor looks at the server"),
    "board_moved": ErrorMapping(
        AGAIN, "say where the board is: export DIBS_URL=ADDRESS, or DIBS_BOARD=FOLDER"
    ),
    "moved_to_unaccepted": ErrorMapping(
        AGAIN, "if you trust it, a person runs: dibs config url {address}"
    ),
    "board_lost": ErrorMapping(
        REFUSED, "dibs sync builds it anew from the files; dibs board takes it from a backup"
    ),
    "board_elsewhere": ErrorMapping(
        REFUSED,
        "if it was here and is lost: dibs sync --board {board}; if this is another clone: dibs init --new",
    ),
    "board_exists": ErrorMapping(
        REFUSED, "take another place: another folder, or another name after #"
    ),
    "in_this_database": ErrorMapping(
        REFUSED,
        "use it there: DIBS_URL={there}; for another name, move it to a folder and from there",
    ),
    "paused": ErrorMapping(AGAIN, "dibs claim KEY takes one task all the same; dibs status"),
    "at_limit": ErrorMapping(AGAIN, "finish what is held first: dibs list --held"),
    "nothing_ready": ErrorMapping(
        AGAIN, "dibs next --wait 10m waits for work; dibs status says why"
    ),
    "busy": ErrorMapping(
        AGAIN,
        "run it again; if it stays so: dibs doctor, and look at the process that keeps the lock",
    ),
}


def mapping_of(refusal: Refusal) -> ErrorMapping:
    return ERROR_MAP[refusal.code]


def advice(refusal: Refusal) -> str:
    return mapping_of(refusal).advice.format_map(_Facts(refusal.facts))


class _Facts(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return name.upper()
