"""Guards: each checks one precondition of a command and has one refusal for it.

A guard is named after the statement that must be true for the command to pass. The registry (`domain/verbs.py`)
lists the guards of each verb in order of precedence; the first that fails gives the refusal.
"""

from __future__ import annotations

from dibs.domain import refusals
from dibs.domain.facts import Case
from dibs.domain.model import AGENT, DEPENDENCIES_MAX, FINAL, HUMAN, OPEN, SERVICE, ActorId
from dibs.domain.refusals import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.domain.commands import Add, HoldersCommand, SetActor

    Guard = Callable[[Case], Refusal | None]


TERMS_OF_A_FILE = ("title", "priority")
GATED_TERMS = ("audience", "tier", "capabilities", "constraints")


# The caller.


def caller_has_the_right(case: Case) -> Refusal | None:
    """A person gives the command, where only people may."""
    spec = case.command.spec
    if not spec.people_only or case.caller.is_person or not applies(case):
        return None
    refusal = refusals.people_only(typed(case), case.caller.actor, case.caller.in_harness)
    return refusals.interrupting(refusal, case.interrupted, case.facts.actors)


def reason_is_given(case: Case) -> Refusal | None:
    """A reason is given, where one is needed."""
    spec = case.command.spec
    if not spec.needs_reason or case.facts.is_plan or not applies(case):
        return None
    given = case.command.named()["reason"].strip()
    return None if given else refusals.reason_missing(typed(case))


def applies(case: Case) -> bool:
    """Whether the verb requires a person or a reason in this case: always, or under its condition."""
    when = case.command.spec.when
    return not when or bool(CONDITIONS[when](case))


def it_ends_anothers_live_lease(case: Case) -> bool:
    """When it ends another's live lease"""
    return case.another_is_live


def it_ends_anothers_lease(case: Case) -> bool:
    """When another's lease has not ended"""
    return case.another_holds


def it_interrupts_somebody(case: Case) -> bool:
    """When it ends another's live lease"""
    return bool(case.interrupted)


def it_is_forced(case: Case) -> bool:
    """When it is forced"""
    return bool(case.command.named()["force"])


CONDITIONS: dict[str, Callable[[Case], bool]] = {
    condition.__name__: condition
    for condition in (
        it_ends_anothers_live_lease,
        it_ends_anothers_lease,
        it_interrupts_somebody,
        it_is_forced,
    )
}


def caller_is_no_subagent(case: Case) -> Refusal | None:
    """The session itself gives the command, not a subagent of it."""
    caller, verb = case.caller, case.command.verb
    if not caller.is_child or not case.command.spec.parent_only:
        return None
    if verb == "drop" and not case.holds:
        return None
    return refusals.parent_only(verb, case.task.key, caller.session, caller.holding_session)


# The token and the lease.


def token_is_current(case: Case) -> Refusal | None:
    """The token, if one is stated, is the task's current token, and its lease has not ended."""
    command: HoldersCommand = case.command  # type: ignore[assignment]
    stated, task = command.token, case.task
    if stated is None or (stated == task.token and task.lease is not None):
        return None
    if tuple(stated) > tuple(task.token):
        return refusals.token_ahead(task, stated)
    return lost(case)


def lease_is_not_lost(case: Case) -> Refusal | None:
    """The session has not held this task before, or it holds it now."""
    return lost(case) if case.lost else None


def state_allows_it(case: Case) -> Refusal | None:
    """The verb is allowed in the state of the task."""
    task, command = case.task, case.command
    if task.state in command.spec.sources:
        return None
    return (
        refusals.final(task)
        if task.state in FINAL
        else refusals.wrong_state(task, command.spec.typed)
    )


def assignment_is_taken_up(case: Case) -> Refusal | None:
    """A session has taken up the assigned lease before using it."""
    return refusals.not_bound(case.task, case.caller.actor) if case.may_bind else None


def no_other_session_holds_it(case: Case) -> Refusal | None:
    """No other session has a lease on the task, live or expired."""
    return held(case) if case.another_holds else None


def no_other_session_holds_it_live(case: Case) -> Refusal | None:
    """No other session has a live lease on the task."""
    return held(case) if case.another_is_live else None


def it_is_not_run_already(case: Case) -> Refusal | None:
    """No other run of the same session works on the task, if the caller states a process."""
    running = case.running if case.caller.behind is not None else None
    if running is None:
        return None
    return refusals.already_running(case.task, case.caller.actor, running, case.now)


def caller_holds_it(case: Case) -> Refusal | None:
    """The caller's session holds the task."""
    return None if case.holds else refusals.not_held(case.task)


def somebody_holds_it(case: Case) -> Refusal | None:
    """The task has a lease that has not ended."""
    return None if case.lease is not None else refusals.not_held(case.task)


def holder_or_person_or_free(case: Case) -> Refusal | None:
    """Nobody else holds the task, or the caller is a person."""
    return held(case) if case.another_holds and not case.caller.is_person else None


def lease_is_unbound(case: Case) -> Refusal | None:
    """The task is assigned, and no session has taken it up."""
    task, lease = case.task, case.lease
    if lease is not None and lease.bound:
        return refusals.bound(task, case.holder(), lease)
    return refusals.not_assigned(task) if lease is None and task.assignee is None else None


def terms_are_ones_own_or_a_person_asks(case: Case) -> Refusal | None:
    """Only a person or the creator of the task changes who may do it and what its holder may do."""
    wanted = case.command.named()
    gates = any(wanted[name] is not None for name in GATED_TERMS)
    if not gates or case.caller.is_person or case.task.creator == case.caller.actor.id:
        return None
    return refusals.people_only(typed(case), case.caller.actor, case.caller.in_harness)


def no_file_says_it(case: Case) -> Refusal | None:
    """The item file of the task does not define the field to change."""
    task, wanted = case.task, case.command.named()
    stands = case.command.verb == "depend" or any(
        wanted[name] is not None for name in TERMS_OF_A_FILE
    )
    return refusals.file_says_it(task) if task.item is not None and stands else None


def charge_code_is_approved(case: Case) -> Refusal | None:
    """The charge code is one of the board's codes, or empty."""
    wanted, known = case.command.named(), case.facts.rules.charge_codes
    terms = (
        [wanted["terms"]] if "terms" in wanted else [ask.terms for ask in wanted.get("asks", ())]
    )
    codes = [one.charge_code for one in terms] or [wanted.get("charge_code")]
    unknown = next((code for code in codes if code and code not in known), None)
    return None if unknown is None else refusals.bad_charge_code(unknown, known)


# Gates.


def dependencies_are_complete(case: Case) -> Refusal | None:
    """All dependencies of the task are complete."""
    if not case.task.waits_on:
        return None
    return refusals.waits(case.task, case.facts.causes)


def dependencies_are_complete_or_a_files(case: Case) -> Refusal | None:
    """All dependencies are complete, or the task has an item file, whose backlog gates them."""
    return dependencies_are_complete(case) if case.task.item is None else None


def gate_of_the_file_is_met(case: Case) -> Refusal | None:
    """The item file of the task, if it has one, meets all conditions for starting."""
    item = case.task.item
    return refusals.gate_not_met(case.task, item.gate) if item is not None and item.gate else None


def no_lock_stands_in_the_file(case: Case) -> Refusal | None:
    """Nobody else has locked the task in its item file."""
    item, caller = case.task.item, case.caller
    if (
        item is None
        or not item.locked
        or item.locker in (caller.holding_session, caller.actor.name)
    ):
        return None
    return refusals.locked_in_file(case.task, item.locked)


def it_can_start(case: Case) -> Refusal | None:
    """The task was started before, or its dependencies are complete and its item file allows a start."""
    if case.task.state != OPEN or case.command.named().get("reserve"):
        return None
    if case.command.verb == "force":
        return dependencies_are_complete_or_a_files(case)
    return dependencies_are_complete(case) or gate_of_the_file_is_met(case)


def it_is_for_this_kind(case: Case) -> Refusal | None:
    """The task is for this kind of actor."""
    audience, kind = case.task.terms.audience, case.subject.kind
    if audience in ("any", kind) or (audience == AGENT and kind == SERVICE):
        return None
    return refusals.wrong_kind(case.task, case.subject)


def tier_suffices(case: Case) -> Refusal | None:
    """The actor's tier is at least the task's."""
    if case.subject.tier >= case.task.terms.tier:
        return None
    return refusals.tier_too_low(case.task, case.subject)


def capabilities_suffice(case: Case) -> Refusal | None:
    """The actor has every capability that the task needs."""
    has = case.subject.capabilities
    missing = tuple(need for need in case.task.terms.capabilities if need not in has)
    return refusals.capability_missing(case.task, case.subject, missing) if missing else None


def it_is_not_parked(case: Case) -> Refusal | None:
    """Nobody has parked the task."""
    parker = case.task.parked_by
    return None if parker is None else refusals.parked(case.task, case.actor(parker))


def it_is_not_assigned_to_another(case: Case) -> Refusal | None:
    """The task is not assigned to another person, or the actor is a person."""
    assignee = case.task.assignee
    if assignee is None or case.subject.is_human or assignee == case.subject.id:
        return None
    person = case.actor(assignee)
    return refusals.assigned_to_another(case.task, person) if person.is_human else None


def scope_is_free(case: Case) -> Refusal | None:
    """No live lease of another session reserves a path that the task may touch."""
    if not case.facts.rivals:
        return None
    rival = case.facts.rivals[0]
    return refusals.scope_held(case.task, rival, case.actor(rival.actor), case.now)


def scope_is_free_if_late(case: Case) -> Refusal | None:
    """The caller's lease is live, or no other session has reserved its scope since it expired."""
    # The same holds for taking up an assignment: another session of the actor may have reserved the scope.
    ends = case.command.verb == "block" and not case.command.named()["keep"]
    return scope_is_free(case) if (case.late or case.may_bind) and not ends else None


def scope_is_free_if_wider(case: Case) -> Refusal | None:
    """The paths added to the scope of a held task are free, too."""
    added = case.command.named()["add"]
    wider = case.but(facts=case.facts.but(task=case.task.but(scope=added)))
    return scope_is_free(wider) if case.live and added else None


def constraints_allow_it(case: Case) -> Refusal | None:
    """The task's constraints, if it has any, allow the holder this action."""
    allowed, verb = case.task.terms.constraints, case.command.verb
    if not allowed or verb in allowed or not case.holds:
        return None
    return refusals.not_allowed(case.task, verb)


# Offers, and commands about many tasks.


def work_is_not_paused(case: Case) -> Refusal | None:
    """The board is not paused."""
    return refusals.paused(case.facts.paused) if case.facts.paused else None


def caller_holds_fewer(case: Case) -> Refusal | None:
    """The actor holds fewer tasks than its limit."""
    most = case.command.named()["most"]
    if most is None or case.facts.held < most:
        return None
    return refusals.at_limit(case.caller.actor, case.facts.held, most)


def something_is_ready(case: Case) -> Refusal | None:
    """A task is ready for the caller."""
    return None if case.facts.task else refusals.nothing_ready(case.caller.actor)


def nobody_holds_it_live(case: Case) -> Refusal | None:
    """The task has no live lease."""
    return held(case) if case.live else None


def attempts_are_left(case: Case) -> Refusal | None:
    """The task has attempts left, or a person forces it."""
    task = case.task
    used_up = task.state != OPEN and task.attempts >= task.terms.max_attempts
    return refusals.used_up(task) if used_up and not case.command.named()["force"] else None


def new_holder_fits(case: Case) -> Refusal | None:
    """The new holder may hold the named tasks, and tasks reserved for a person stay so."""
    command = case.command.named()
    if not command["mine"] and not command["to"]:
        return None
    keys = {key.casefold() for key in command["tasks"]}
    gates: tuple[Guard, ...] = (it_is_for_this_kind, tier_suffices, capabilities_suffice)
    if not case.caller.is_person:
        gates += (it_is_not_parked, it_is_not_assigned_to_another)
    for task in case.facts.many:
        if task.key.casefold() in keys:
            alone = case.but(facts=case.facts.but(task=task))
            refusal = next((no for gate in gates if (no := gate(alone))), None)
            if refusal is not None:
                return refusal
    return None


def many_are_confirmed(case: Case) -> Refusal | None:
    """The command changes one task, or the caller has confirmed that it changes many."""
    many = [task.key for task in case.facts.many]
    if len(many) <= 1 or case.command.named()["yes"] or case.facts.is_plan:
        return None
    return refusals.unconfirmed(typed(case), many)


def it_makes_no_cycle(case: Case) -> Refusal | None:
    """The dependency makes no cycle."""
    cycle = case.facts.cycle
    return refusals.cycle(cycle) if cycle else None


def dependencies_are_few(case: Case) -> Refusal | None:
    """The task has no more dependencies than the limit."""
    count = len(case.facts.after | set(case.facts.causes))
    return refusals.too_many_dependencies(count) if count > DEPENDENCIES_MAX else None


# Others.


def receiver_exists(case: Case) -> Refusal | None:
    """The receiver, if one is named, is registered."""
    to = case.command.named()["to"]
    return refusals.unknown_actor(to) if to and case.facts.receiver is None else None


def actor_is_known_or_has_a_kind(case: Case) -> Refusal | None:
    """The actor is registered, or the command states its kind so that it can be registered."""
    command: SetActor = case.command  # type: ignore[assignment]
    known = case.facts.receiver is not None or command.kind is not None
    return None if known else refusals.unknown_actor(command.actor)


def kind_stays(case: Case) -> Refusal | None:
    """A person stays a person: sessions and rights depend on it."""
    command: SetActor = case.command  # type: ignore[assignment]
    actor = case.facts.receiver
    if actor is None or command.kind is None or (command.kind == HUMAN) == actor.is_human:
        return None
    return refusals.kind_is_fixed(actor)


def reviewer_is_not_the_author(case: Case) -> Refusal | None:
    """The reviewer is not the author, unless the board allows it."""
    own = case.task.author == case.caller.actor.id
    if not own or case.facts.rules.self_review:
        return None
    return refusals.own_review(case.task, case.caller.actor)


def parker_or_person(case: Case) -> Refusal | None:
    """The caller parked the task, or is a person."""
    parker: ActorId | None = case.task.parked_by
    if parker is None or parker == case.caller.actor.id or case.caller.is_person:
        return None
    return refusals.not_yours_to_unpark(case.task, case.actor(parker))


def note_is_there(case: Case) -> Refusal | None:
    """The named event recorded a note on this task."""
    if case.facts.noted is not None:
        return None
    return refusals.unknown_note(case.task, case.command.named()["seq"])


def key_is_free(case: Case) -> Refusal | None:
    """The key has never been used."""
    command: Add = case.command  # type: ignore[assignment]
    return refusals.key_taken(str(command.key)) if case.facts.key_is_taken else None


def held(case: Case) -> Refusal:
    assert case.lease is not None, "asked only while there is a lease"
    return refusals.held(case.task, case.holder(), case.lease, case.now)


def lost(case: Case) -> Refusal:
    """The refusal for a former holder: who has the task now, and whether a late note was kept."""
    fields = case.command.named()
    former, other = case.facts.former, case.another_holds
    return refusals.lease_lost(
        case.task,
        fields.get("token"),
        former.cause if former else "",
        case.holder().name if other else "",
        kept=keeps_a_late_note(case),
    )


def keeps_a_late_note(case: Case) -> bool:
    """Whether the final report of a former holder is kept as a note for a person, although it is refused."""
    return case.lost and case.command.spec.reports and bool(late_text(case))


def late_text(case: Case) -> str:
    fields = case.command.named()
    said: list[str] = [fields.get("note", ""), fields.get("reason", "")]
    return "\n".join(text.strip() for text in said if text.strip())


def typed(case: Case) -> str:
    """The command as people type it, with its task or actor."""
    fields = case.command.named()
    about = fields.get("task") or fields.get("actor") or " ".join(fields.get("tasks", ()))
    return f"{case.command.spec.typed} {about}".strip()
