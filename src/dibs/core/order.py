"""The order of questions for each verb, as data: the first guard that fails is the refusal."""

from __future__ import annotations

from dibs.core import guards as g

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.core.guards import Guard

GATES = (
    g.it_is_for_this_kind,
    g.tier_suffices,
    g.capabilities_suffice,
    g.it_is_not_parked,
    g.it_is_not_assigned_to_another,
)
TO_CLAIM = (g.state_allows_it, g.no_other_session_holds_it_live, *GATES)
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
    "add": (g.key_is_free,),
    "claim": TO_CLAIM,
    "start": TO_CLAIM,
    "takeover": TO_CLAIM,
    "force": (
        g.caller_has_the_right,
        g.reason_is_given,
        g.state_allows_it,
        *GATES[:-1],
    ),
    "assign": (
        g.receiver_exists,
        g.state_allows_it,
        g.receiver_holds_nothing_here,
        *GATES,
    ),
    "handoff": (*TO_HOLD, g.caller_holds_it, g.receiver_exists, *GATES),
    "renew": (*TO_HOLD, g.caller_holds_it),
    "stop": (*TO_HOLD, g.caller_holds_it),
    "submit": (*TO_HOLD, g.caller_holds_it),
    "complete": (*TO_HOLD, g.caller_holds_it, g.constraints_allow_it),
    "fail": (*TO_HOLD, g.caller_holds_it, g.reason_is_given),
    "block": (*TO_HOLD, g.reason_is_given),
    "release": (g.caller_is_no_subagent, g.token_is_current),
    "unblock": (g.state_allows_it, g.holder_or_person_or_free),
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
    "edit": (*TO_CHANGE, g.terms_are_ones_own_or_a_person_asks),
    "scope": TO_CHANGE,
    "note": (),
    "set_actor": (g.caller_has_the_right, g.actor_is_known_or_has_a_kind, g.kind_stays),
    "set_clock": (g.caller_has_the_right, g.reason_is_given),
    "set_settings": (g.caller_has_the_right,),
    "move_board": (g.caller_has_the_right,),
    "restore_board": (g.caller_has_the_right, g.reason_is_given),
}

ON_OWN_LEASE: dict[str, tuple[Guard, ...]] = {
    "claim": (g.state_allows_it,),
    "start": (g.state_allows_it,),
    "takeover": (g.state_allows_it,),
    "force": (g.caller_has_the_right, g.reason_is_given, g.state_allows_it),
}
"""The caller's own lease that has not ended goes on: no gate is asked again."""
