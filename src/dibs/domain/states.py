"""The state table: the source and target states of each verb. Code, schema, docs and tests read it."""

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
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.model import State

SAME = "same"


class Move(Value):
    """One row: the verb, its source states, its target state, and its meaning."""

    verb: str
    sources: tuple[State, ...]
    target: str
    in_words: str


WORKABLE = (OPEN, IN_PROGRESS)

MOVES = {
    move.verb: move
    for move in (
        Move("claim", WORKABLE, IN_PROGRESS, "become the holder of a free task and start it"),
        Move("start", WORKABLE, IN_PROGRESS, "begin, or begin the next stint"),
        Move("takeover", WORKABLE, IN_PROGRESS, "become the holder after expiry"),
        Move("force", WORKABLE, IN_PROGRESS, "a person takes it against a live lease"),
        Move("assign", WORKABLE, SAME, "make somebody else the holder"),
        Move("handoff", WORKABLE, SAME, "name the next holder without a gap"),
        Move("renew", (OPEN, IN_PROGRESS, BLOCKED), SAME, "extend the lease"),
        Move("stop", (IN_PROGRESS,), SAME, "end the stint, keep the lease"),
        Move("release", (OPEN, IN_PROGRESS, BLOCKED), OPEN, "give it back (blocked stays blocked)"),
        Move("block", WORKABLE, BLOCKED, "say what stands in the way"),
        Move("unblock", (BLOCKED,), OPEN, "nothing stands in the way any more"),
        Move("submit", WORKABLE, REVIEW, "hand the result to a reviewer"),
        Move("accept", (REVIEW,), COMPLETE, "the reviewer agrees"),
        Move("reject", (REVIEW,), OPEN, "the reviewer does not agree"),
        Move("complete", WORKABLE, COMPLETE, "the work is done"),
        Move("fail", WORKABLE, FAILED, "the work was tried and did not succeed"),
        Move("retry", (OPEN, IN_PROGRESS, FAILED), OPEN, "try again what failed or was left"),
        Move("sweep", HOLDABLE, OPEN, "end the lease of the dead (blocked stays blocked)"),
        Move("reset", STATES, OPEN, "begin anew, with all that depends on it"),
        Move("drop", NOT_FINAL, DROPPED, "the work is not wanted any more"),
        Move("unassign", NOT_FINAL, SAME, "take an assignment back"),
        Move("park", NOT_FINAL, SAME, "keep it from being offered"),
        Move("unpark", NOT_FINAL, SAME, "offer it again"),
        Move("edit", NOT_FINAL, SAME, "change what it asks for"),
        Move("scope", NOT_FINAL, SAME, "change the paths it may touch"),
        Move("allow", HOLDABLE, SAME, "let somebody touch its paths for a while"),
        Move("depend", NOT_FINAL, SAME, "change what it waits for"),
        Move("note", STATES, SAME, "add a note"),
        Move("redact", STATES, SAME, "remove the text of a note"),
    )
}


def sources(verb: str) -> tuple[State, ...]:
    return MOVES[verb].sources
