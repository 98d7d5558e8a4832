"""How each refusal looks from outside: exit code, HTTP status, MCP error, and what to do next.

Advice never contains a command that destroys anything.
"""

from __future__ import annotations

from dibs.core.refusals import Refusal
from dibs.core.values import Value

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


class Surface(Value):
    """One code: its exit, and what to do next (`{task}` and the like are the refusal's facts)."""

    exit: int
    advice: str

    @property
    def http(self) -> int:
        return HTTP[self.exit]

    @property
    def mcp(self) -> int:
        return MCP[self.exit]


SURFACES = {
    # Usage.
    "bad_argument": Surface(USAGE, "dibs help"),
    "unknown_task": Surface(USAGE, "dibs list"),
    "unknown_note": Surface(USAGE, "dibs show {task} --json has the number of each note's event"),
    "unknown_actor": Surface(USAGE, "dibs actor list"),
    "wrong_kind_of_name": Surface(USAGE, "name {actor} with {option}, or take another name"),
    "name_taken": Surface(USAGE, "dibs actor list"),
    "no_identity": Surface(
        USAGE, "say --agent NAME (or export DIBS_AGENT) for an agent, --as NAME for a person"
    ),
    "no_session": Surface(
        USAGE, "export DIBS_SESSION=NAME in this terminal, or say --session NAME; one for each run"
    ),
    "cannot_start": Surface(
        USAGE, "look at the command after --; {task} was given back, if it could be"
    ),
    "no_worktree": Surface(REFUSED, "look at {path}; without --worktree no work tree is made"),
    "no_board": Surface(USAGE, "dibs init, at the root of your repository"),
    "no_backlog": Surface(USAGE, "dibs.toml at the root may say where it is: [backlogs]"),
    "unconfirmed": Surface(USAGE, "look at what it would change; --help says how to confirm it"),
    "bad_charge_code": Surface(USAGE, "dibs config shows charge_codes; a person may add one there"),
    "unknown_stint": Surface(USAGE, "dibs stint list; the number stands in its first column"),
    "bad_period": Surface(USAGE, "look at --from and --to, and at the time zone: --tz"),
    "ambiguous_time": Surface(USAGE, "write {first} or {second}"),
    "reason_missing": Surface(USAGE, "say --reason TEXT"),
    "unknown_setting": Surface(USAGE, "dibs config shows every setting there is"),
    "no_agents": Surface(
        USAGE, "a person says which: dibs config agents.codex.command 'codex exec ...'"
    ),
    "not_let_in": Surface(USAGE, "look at the role, its password and the database in the address"),
    "wrong_encoding": Surface(
        USAGE, "name another one: CREATE DATABASE team ENCODING 'UTF8' TEMPLATE template0"
    ),
    "statement_pooler": Surface(
        USAGE, "let it pool transactions, or name an address that goes around it"
    ),
    "driver_missing": Surface(USAGE, "pip install 'dibs[postgres]'"),
    "unaccepted_server": Surface(
        USAGE,
        "if you trust it, a person runs: dibs config --adopt, or dibs config url {address}",
    ),
    "bad_setting": Surface(USAGE, "mend that line of the file; dibs config shows every setting"),
    "undecided": Surface(
        USAGE, "write the scopes with fewer wildcards: dibs scope; dibs list --held"
    ),
    # Refused.
    "final": Surface(REFUSED, "dibs show {task}; new work is a new task: dibs add"),
    "wrong_state": Surface(REFUSED, "dibs show {task}"),
    "key_taken": Surface(REFUSED, "take another key, or none: dibs gives one"),
    "people_only": Surface(REFUSED, "ask a person to do it"),
    "foreign_repository": Surface(
        REFUSED,
        "look at who put it there; if you trust it, name {path} as safe.directory in your own configuration of git",
    ),
    "in_harness": Surface(REFUSED, "act as the agent that you are: --agent NAME"),
    "parent_only": Surface(REFUSED, "leave it to the session {parent}"),
    "own_review": Surface(REFUSED, "ask somebody else to accept or reject {task}"),
    "not_held": Surface(REFUSED, "dibs claim {task}"),
    "not_bound": Surface(REFUSED, "dibs claim {task} takes it up; dibs release {task} declines it"),
    "bound": Surface(REFUSED, "ask {holder} to hand it off or release it"),
    "not_assigned": Surface(REFUSED, "dibs show {task}"),
    "not_yours_to_unpark": Surface(REFUSED, "ask {parked_by}, or a person"),
    "cycle": Surface(REFUSED, "leave one of these dependencies out; dibs why {task}"),
    "used_up": Surface(
        REFUSED, "dibs show {task} says why it failed; ask a person to allow one more try"
    ),
    "never": Surface(
        REFUSED, "dibs show {task}; what failed is tried again with dibs retry {task}"
    ),
    "stint_overlaps": Surface(REFUSED, "dibs stint list; put the other one right first"),
    "already_amended": Surface(
        REFUSED, "put the stint {replaced_by} right: it is the one that counts"
    ),
    "not_your_stint": Surface(REFUSED, "leave it to {actor}, or ask a person"),
    "request_reused": Surface(REFUSED, "use a new request id for a new command"),
    "not_signed": Surface(
        REFUSED, "look at the secret on both sides; several may stand in the file"
    ),
    "file_says_it": Surface(REFUSED, "change it in the item file, then: dibs sync"),
    "outside_scope": Surface(
        REFUSED, "dibs scope {task} --add PATH, if the task is to touch it; or leave it as it was"
    ),
    "not_reserved": Surface(REFUSED, "touch them; dibs who PATH says who holds a path"),
    "own_timesheet": Surface(REFUSED, "ask another person to approve it"),
    "period_not_over": Surface(REFUSED, "approve it after {until}"),
    "stint_open": Surface(
        REFUSED, "dibs stop {task} ends a stint; of the dead, dibs sweep, and again after 30 s"
    ),
    "approved": Surface(
        REFUSED, "a person opens it again: dibs reopen {actor}, with its period and --tz {zone}"
    ),
    "not_approved": Surface(REFUSED, "dibs timesheet --verify shows what is approved"),
    "replaces_object": Surface(
        REFUSED, "push the commit itself; objects that replace others are not taken"
    ),
    "bad_trailer": Surface(REFUSED, "amend the commit: its trailers are those of a lease"),
    "needs_task": Surface(REFUSED, "dibs next gives you one, or dibs claim KEY"),
    "kind_is_fixed": Surface(REFUSED, "give the other one a name of its own"),
    "foreign_schema": Surface(
        REFUSED,
        "look at who put it there; connect as the role that owns the schema, or name another database",
    ),
    "not_granted": Surface(REFUSED, "ask who owns the database: dibs board grant ROLE"),
    "servers_clock": Surface(REFUSED, "dibs doctor shows how far this machine's clock is off"),
    "forked": Surface(REFUSED, "open the board after the fork, once in each process"),
    "closed": Surface(REFUSED, "open the board again"),
    # A gate.
    "waits": Surface(GATE, "dibs why {task}; dibs next gives other work"),
    "gate_not_met": Surface(GATE, "mend its item file; dibs next gives other work"),
    "wrong_kind": Surface(GATE, "dibs next"),
    "tier_too_low": Surface(GATE, "dibs next"),
    "capability_missing": Surface(GATE, "dibs next"),
    "parked": Surface(GATE, "dibs next, or ask {parked_by} to unpark it"),
    "assigned_to_another": Surface(GATE, "dibs next, or ask {assignee}"),
    "not_allowed": Surface(GATE, "dibs submit {task}, or ask a person to edit its constraints"),
    "action_not_allowed": Surface(GATE, "ask a person to edit the constraints of {task}"),
    # Held, lost.
    "held": Surface(HELD, "dibs next, or dibs wait {task} --for free"),
    "locked_in_file": Surface(HELD, "dibs next; or ask a person, if nobody works on {task}"),
    "scope_held": Surface(HELD, "dibs next, or dibs wait {other} --for free"),
    "path_held": Surface(HELD, "work on something else, or dibs wait {other} --for free"),
    "already_running": Surface(
        HELD, "wait until it ends: dibs wait {task} --for free; or end process {process} yourself"
    ),
    "held_here": Surface(HELD, "give each worker a session of its own, and a board of its own"),
    "lease_lost": Surface(LOST, "stop working on it; dibs show {task} says who has it"),
    "work_lost": Surface(
        LOST, "dibs show {task} says who has it; dibs claim KEY, or dibs release {task} to go on"
    ),
    "token_ahead": Surface(
        LOST, "stop working on it; dibs log says what happened; dibs note keeps what you found out"
    ),
    # Storage.
    "bug": Surface(BUG, "run it again with DIBS_DEBUG=1, and report what it prints"),
    "disk_full": Surface(STORAGE, "make room on the disk, then run it again"),
    "read_only": Surface(STORAGE, "make the folder writable for you, then run it again"),
    "corrupt": Surface(STORAGE, "keep the file as it is; go back to a backup"),
    "storage_failed": Surface(STORAGE, "dibs doctor"),
    "newer_schema": Surface(
        STORAGE, "install the newer dibs; what still runs with this one is started again"
    ),
    "other_schema": Surface(
        STORAGE,
        "with the version that made it: dibs export FILE; put its folder aside; then here: dibs import FILE",
    ),
    "board_replaced": Surface(
        STORAGE, "stop the work; find out who replaced the board, then start this again"
    ),
    "unsafe_storage": Surface(STORAGE, "look at who put it there; a board is a folder of its own"),
    "unguarded": Surface(STORAGE, 'dibs doctor; guard_failure = "warn" lets it through'),
    "network_file_system": Surface(STORAGE, "set DIBS_BOARD to a folder on a local disk"),
    "output_lost": Surface(
        OUTPUT,
        "let it print elsewhere; do not repeat a change, it was made: dibs log shows it",
    ),
    "timed_out": Surface(AGAIN, "wait again; dibs why {task} says what it waits for"),
    "unreachable": Surface(AGAIN, "run it again; dibs doctor looks at the server"),
    "board_moved": Surface(
        AGAIN, "say where the board is: export DIBS_URL=ADDRESS, or DIBS_BOARD=FOLDER"
    ),
    "moved_to_unaccepted": Surface(
        AGAIN, "if you trust it, a person runs: dibs config url {address}"
    ),
    "board_lost": Surface(
        REFUSED, "dibs sync builds it anew from the files; dibs board takes it from a backup"
    ),
    "board_elsewhere": Surface(
        REFUSED,
        "if it was here and is lost: dibs sync --board {board}; if this is another clone: dibs init --new",
    ),
    "board_exists": Surface(REFUSED, "take another place: another folder, or another name after #"),
    "in_this_database": Surface(
        REFUSED,
        "use it there: DIBS_URL={there}; for another name, move it to a folder and from there",
    ),
    "paused": Surface(AGAIN, "dibs claim KEY takes one task all the same; dibs status"),
    "at_limit": Surface(AGAIN, "finish what is held first: dibs list --held"),
    "nothing_ready": Surface(AGAIN, "dibs next --wait 10m waits for work; dibs status says why"),
    "busy": Surface(
        AGAIN,
        "run it again; if it stays so: dibs doctor, and look at the process that keeps the lock",
    ),
}


def surface(refusal: Refusal) -> Surface:
    return SURFACES[refusal.code]


def advice(refusal: Refusal) -> str:
    return surface(refusal).advice.format_map(_Facts(refusal.facts))


class _Facts(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return name.upper()
