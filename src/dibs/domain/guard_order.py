"""The guards of each verb in order of precedence, as data: the first that fails gives the refusal.

`decide.stints` and `decide.approval` check their own `QUESTIONS` after these.
"""

from __future__ import annotations

from dibs.domain import guards as g

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.domain.guards import Guard

GATES = (
    g.dependencies_are_complete,
    g.gate_of_the_file_is_met,
    g.it_is_for_this_kind,
    g.tier_suffices,
    g.capabilities_suffice,
    g.it_is_not_parked,
    g.it_is_not_assigned_to_another,
    g.scope_is_free,
)
TO_CLAIM = (
    g.state_allows_it,
    g.it_is_not_run_already,
    g.no_other_session_holds_it_live,
    g.no_lock_stands_in_the_file,
    *GATES,
)
BROKEN_BY_FORCE = (
    g.dependencies_are_complete,
    g.gate_of_the_file_is_met,
    g.it_is_not_assigned_to_another,
)
TO_HOLD = (
    g.caller_is_no_subagent,
    g.token_is_current,
    g.lease_is_not_lost,
    g.state_allows_it,
    g.assignment_is_taken_up,
    g.no_other_session_holds_it,
)
TO_CHANGE = (g.token_is_current, g.state_allows_it, g.holder_or_person_or_free)

GUARDS: dict[str, tuple[Guard, ...]] = {
    "add": (g.charge_code_is_approved, g.key_is_free),
    "intake": (g.charge_code_is_approved,),
    "claim": TO_CLAIM,
    "next": (g.work_is_not_paused, g.caller_holds_fewer, g.something_is_ready),
    "start": TO_CLAIM,
    "takeover": TO_CLAIM,
    "force": (
        g.caller_has_the_right,
        g.reason_is_given,
        g.state_allows_it,
        g.dependencies_are_complete_or_a_files,
        *(gate for gate in GATES if gate not in BROKEN_BY_FORCE),
    ),
    "assign": (
        g.receiver_exists,
        g.state_allows_it,
        g.nobody_holds_it_live,
        g.no_lock_stands_in_the_file,
        *GATES,
    ),
    "handoff": (*TO_HOLD, g.caller_holds_it, g.receiver_exists, *GATES),
    "renew": (*TO_HOLD, g.caller_holds_it, g.scope_is_free_if_late),
    "stop": (*TO_HOLD, g.caller_holds_it, g.scope_is_free_if_late),
    "submit": (*TO_HOLD, g.caller_holds_it, g.it_can_start),
    "complete": (*TO_HOLD, g.caller_holds_it, g.constraints_allow_it, g.it_can_start),
    "fail": (*TO_HOLD, g.caller_holds_it, g.reason_is_given),
    "block": (*TO_HOLD, g.reason_is_given, g.scope_is_free_if_late),
    "release": (g.caller_is_no_subagent, g.token_is_current),
    "unblock": (g.state_allows_it, g.holder_or_person_or_free, g.scope_is_free_if_late),
    "accept": (g.state_allows_it, g.reviewer_is_not_the_author),
    "reject": (g.state_allows_it, g.reason_is_given),
    "drop": (
        g.caller_is_no_subagent,
        g.token_is_current,
        g.state_allows_it,
        g.caller_has_the_right,
        g.reason_is_given,
        g.constraints_allow_it,
    ),
    "unassign": (
        g.state_allows_it,
        g.lease_is_unbound,
        g.caller_has_the_right,
        g.reason_is_given,
    ),
    "park": (g.state_allows_it,),
    "unpark": (g.state_allows_it, g.parker_or_person),
    "edit": (
        *TO_CHANGE,
        g.terms_are_ones_own_or_a_person_asks,
        g.no_file_says_it,
        g.charge_code_is_approved,
        g.scope_is_free_if_late,
    ),
    "scope": (*TO_CHANGE, g.scope_is_free_if_late, g.scope_is_free_if_wider),
    "allow": (
        g.caller_has_the_right,
        g.reason_is_given,
        g.receiver_exists,
        g.state_allows_it,
        g.somebody_holds_it,
    ),
    "depend": (
        *TO_CHANGE,
        g.no_file_says_it,
        g.it_makes_no_cycle,
        g.dependencies_are_few,
        g.scope_is_free_if_late,
    ),
    "note": (),
    "add_stint": (g.caller_has_the_right, g.reason_is_given),
    "amend_stint": (g.caller_has_the_right, g.reason_is_given),
    "report_usage": (),
    "redact": (g.caller_has_the_right, g.reason_is_given, g.note_is_there),
    "retry": (
        g.state_allows_it,
        g.nobody_holds_it_live,
        g.caller_has_the_right,
        g.reason_is_given,
        g.attempts_are_left,
    ),
    "reset": (
        g.receiver_exists,
        g.caller_has_the_right,
        g.reason_is_given,
        g.many_are_confirmed,
        g.new_holder_fits,
        g.scope_is_free,
    ),
    "sweep": (),
    "sync": (),
    "pause": (),
    "resume": (),
    "approve": (g.caller_has_the_right,),
    "reopen": (g.caller_has_the_right, g.reason_is_given),
    "set_actor": (g.caller_has_the_right, g.actor_is_known_or_has_a_kind, g.kind_stays),
    "set_clock": (g.caller_has_the_right, g.reason_is_given),
    "set_settings": (g.caller_has_the_right,),
    "move_board": (g.caller_has_the_right,),
    "restore_board": (g.caller_has_the_right, g.reason_is_given),
}

OWN = (
    g.state_allows_it,
    g.it_is_not_run_already,
    g.scope_is_free_if_late,
    g.it_can_start,
)

ON_OWN_LEASE: dict[str, tuple[Guard, ...]] = {
    "claim": OWN,
    "start": OWN,
    "takeover": OWN,
    "force": (g.caller_has_the_right, g.reason_is_given, *OWN),
}
"""Guards for a caller whose own lease has not ended: it continues, so the other gates are not rechecked."""
