"""Guards: each checks one precondition of a command and has one refusal for it.

A guard is named after the statement that must be true for the command to pass. The registry (`domain/verbs.py`)
lists the guards of each verb in order of precedence; the first that fails gives the refusal.
"""

from __future__ import annotations

from dibs.domain import refusals
from dibs.domain.facts import (
    ActorFacts,
    AddFacts,
    ClaimFacts,
    DependFacts,
    Facts,
    NextFacts,
    RedactFacts,
    ResetFacts,
    TaskFacts,
)
from dibs.domain.model import AGENT, DEPENDENCIES_MAX, FINAL, HUMAN, OPEN, SERVICE, ActorId
from dibs.domain.refusals import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dibs.domain.commands import Add, HoldersCommand, SetActor

    Guard = Callable[[Any], Refusal | None]


def refusal_of(facts: Facts) -> Refusal | None:
    """The refusal of the first guard that fails; `None` if all pass."""
    spec = facts.command.spec
    own = bool(spec.own_guards) and isinstance(facts, TaskFacts) and (facts.holds or facts.may_bind)
    for name in spec.own_guards if own else spec.guards:
        refusal: Refusal | None = named(name)(facts)
        if refusal is not None:
            return refusal
    return None


def named(name: str) -> Any:
    """The function that the registry names: a guard of this module, or `module.function` in `decide/`."""
    module, dot, function = name.rpartition(".")
    if not dot:
        return globals()[function]
    # `__import__` instead of `importlib`, which would be imported for this alone.
    return getattr(__import__(f"dibs.domain.decide.{module}", fromlist=(function,)), function)


TERMS_OF_A_FILE = ("title", "priority")
GATED_TERMS = ("audience", "tier", "capabilities", "constraints")


# The caller.


def caller_has_the_right(facts: Facts) -> Refusal | None:
    """A person gives the command, where only people may."""
    spec = facts.command.spec
    if not spec.people_only or facts.caller.is_person or not applies(facts):
        return None
    refusal = refusals.people_only(typed(facts), facts.caller.actor, facts.caller.in_harness)
    return refusals.interrupting(refusal, facts.interrupted, facts.actors)


def reason_is_given(facts: Facts) -> Refusal | None:
    """A reason is given, where one is needed."""
    spec = facts.command.spec
    if not spec.needs_reason or facts.is_plan or not applies(facts):
        return None
    given = facts.command.named()["reason"].strip()
    return None if given else refusals.reason_missing(typed(facts))


def applies(facts: Facts) -> bool:
    """Whether the verb requires a person or a reason in this case: always, or under its condition."""
    when = facts.command.spec.when
    return not when or bool(CONDITIONS[when](facts))


def it_ends_anothers_live_lease(facts: TaskFacts) -> bool:
    """When it ends another's live lease"""
    return facts.another_is_live


def it_ends_anothers_lease(facts: TaskFacts) -> bool:
    """When another's lease has not ended"""
    return facts.another_holds


def it_interrupts_somebody(facts: Facts) -> bool:
    """When it ends another's live lease"""
    return bool(facts.interrupted)


def it_is_forced(facts: Facts) -> bool:
    """When it is forced"""
    return bool(facts.command.named()["force"])


CONDITIONS: dict[str, Callable[[Any], bool]] = {
    condition.__name__: condition
    for condition in (
        it_ends_anothers_live_lease,
        it_ends_anothers_lease,
        it_interrupts_somebody,
        it_is_forced,
    )
}


def caller_is_no_subagent(facts: TaskFacts) -> Refusal | None:
    """The session itself gives the command, not a subagent of it."""
    caller, verb = facts.caller, facts.command.verb
    if not caller.is_child or not facts.command.spec.parent_only:
        return None
    if verb == "drop" and not facts.holds:
        return None
    return refusals.parent_only(verb, facts.task.key, caller.session, caller.holding_session)


# The token and the lease.


def token_is_current(facts: TaskFacts) -> Refusal | None:
    """The token, if one is stated, is the task's current token, and its lease has not ended."""
    command: HoldersCommand = facts.command  # type: ignore[assignment]
    stated, task = command.token, facts.task
    if stated is None or (stated == task.token and task.lease is not None):
        return None
    if tuple(stated) > tuple(task.token):
        return refusals.token_ahead(task, stated)
    return lost(facts)


def lease_is_not_lost(facts: TaskFacts) -> Refusal | None:
    """The session has not held this task before, or it holds it now."""
    return lost(facts) if facts.lost else None


def state_allows_it(facts: TaskFacts) -> Refusal | None:
    """The verb is allowed in the state of the task."""
    task, command = facts.task, facts.command
    if task.state in command.spec.sources:
        return None
    return (
        refusals.final(task)
        if task.state in FINAL
        else refusals.wrong_state(task, command.spec.typed)
    )


def assignment_is_taken_up(facts: TaskFacts) -> Refusal | None:
    """A session has taken up the assigned lease before using it."""
    return refusals.not_bound(facts.task, facts.caller.actor) if facts.may_bind else None


def no_other_session_holds_it(facts: TaskFacts) -> Refusal | None:
    """No other session has a lease on the task, live or expired."""
    return held(facts) if facts.another_holds else None


def no_other_session_holds_it_live(facts: TaskFacts) -> Refusal | None:
    """No other session has a live lease on the task."""
    return held(facts) if facts.another_is_live else None


def it_is_not_run_already(facts: ClaimFacts) -> Refusal | None:
    """No other run of the same session works on the task, if the caller states a process."""
    running = facts.running if facts.caller.behind is not None else None
    if running is None:
        return None
    return refusals.already_running(facts.task, facts.caller.actor, running, facts.now)


def caller_holds_it(facts: TaskFacts) -> Refusal | None:
    """The caller's session holds the task."""
    return None if facts.holds else refusals.not_held(facts.task)


def somebody_holds_it(facts: TaskFacts) -> Refusal | None:
    """The task has a lease that has not ended."""
    return None if facts.lease is not None else refusals.not_held(facts.task)


def holder_or_person_or_free(facts: TaskFacts) -> Refusal | None:
    """Nobody else holds the task, or the caller is a person."""
    return held(facts) if facts.another_holds and not facts.caller.is_person else None


def lease_is_unbound(facts: TaskFacts) -> Refusal | None:
    """The task is assigned, and no session has taken it up."""
    task, lease = facts.task, facts.lease
    if lease is not None and lease.bound:
        return refusals.bound(task, facts.holder(), lease)
    return refusals.not_assigned(task) if lease is None and task.assignee is None else None


def terms_are_ones_own_or_a_person_asks(facts: TaskFacts) -> Refusal | None:
    """Only a person or the creator of the task changes who may do it and what its holder may do."""
    wanted = facts.command.named()
    gates = any(wanted[name] is not None for name in GATED_TERMS)
    if not gates or facts.caller.is_person or facts.task.creator == facts.caller.actor.id:
        return None
    return refusals.people_only(typed(facts), facts.caller.actor, facts.caller.in_harness)


def no_file_says_it(facts: TaskFacts) -> Refusal | None:
    """The item file of the task does not define the field to change."""
    task, wanted = facts.task, facts.command.named()
    defined = facts.command.verb == "depend" or any(
        wanted[name] is not None for name in TERMS_OF_A_FILE
    )
    return refusals.file_says_it(task) if task.item is not None and defined else None


def charge_code_is_approved(facts: Facts) -> Refusal | None:
    """The charge code is one of the board's codes, or empty."""
    wanted, known = facts.command.named(), facts.rules.charge_codes
    terms = (
        [wanted["terms"]] if "terms" in wanted else [ask.terms for ask in wanted.get("asks", ())]
    )
    codes = [one.charge_code for one in terms] or [wanted.get("charge_code")]
    unknown = next((code for code in codes if code and code not in known), None)
    return None if unknown is None else refusals.bad_charge_code(unknown, known)


# Gates.


def dependencies_are_complete(facts: TaskFacts) -> Refusal | None:
    """All dependencies of the task are complete."""
    if not facts.task.waits_on:
        return None
    return refusals.waits(facts.task, facts.causes)


def dependencies_are_complete_or_a_files(facts: TaskFacts) -> Refusal | None:
    """All dependencies are complete, or the task has an item file, whose backlog gates them."""
    return dependencies_are_complete(facts) if facts.task.item is None else None


def gate_of_the_file_is_met(facts: TaskFacts) -> Refusal | None:
    """The item file of the task, if it has one, meets all conditions for starting."""
    item = facts.task.item
    return refusals.gate_not_met(facts.task, item.gate) if item is not None and item.gate else None


def no_lock_stands_in_the_file(facts: TaskFacts) -> Refusal | None:
    """Nobody else has locked the task in its item file."""
    item, caller = facts.task.item, facts.caller
    if (
        item is None
        or not item.locked
        or item.locker in (caller.holding_session, caller.actor.name)
    ):
        return None
    return refusals.locked_in_file(facts.task, item.locked)


def it_can_start(facts: TaskFacts) -> Refusal | None:
    """The task was started before, or its dependencies are complete and its item file allows a start."""
    if facts.task.state != OPEN or facts.command.named().get("reserve"):
        return None
    if facts.command.verb == "force":
        return dependencies_are_complete_or_a_files(facts)
    return dependencies_are_complete(facts) or gate_of_the_file_is_met(facts)


def it_is_for_this_kind(facts: TaskFacts) -> Refusal | None:
    """The task is for this kind of actor."""
    audience, kind = facts.task.terms.audience, facts.subject.kind
    if audience in ("any", kind) or (audience == AGENT and kind == SERVICE):
        return None
    return refusals.wrong_kind(facts.task, facts.subject)


def tier_suffices(facts: TaskFacts) -> Refusal | None:
    """The actor's tier is at least the task's."""
    if facts.subject.tier >= facts.task.terms.tier:
        return None
    return refusals.tier_too_low(facts.task, facts.subject)


def capabilities_suffice(facts: TaskFacts) -> Refusal | None:
    """The actor has every capability that the task needs."""
    has = facts.subject.capabilities
    missing = tuple(need for need in facts.task.terms.capabilities if need not in has)
    return refusals.capability_missing(facts.task, facts.subject, missing) if missing else None


def it_is_not_parked(facts: TaskFacts) -> Refusal | None:
    """Nobody has parked the task."""
    parker = facts.task.parked_by
    return None if parker is None else refusals.parked(facts.task, facts.actor(parker))


def it_is_not_assigned_to_another(facts: TaskFacts) -> Refusal | None:
    """The task is not assigned to another person, or the actor is a person."""
    assignee = facts.task.assignee
    if assignee is None or facts.subject.is_human or assignee == facts.subject.id:
        return None
    person = facts.actor(assignee)
    return refusals.assigned_to_another(facts.task, person) if person.is_human else None


def scope_is_free(facts: TaskFacts | ResetFacts) -> Refusal | None:
    """No live lease of another session reserves a path that the task may touch."""
    if not facts.rivals:
        return None
    rival = facts.rivals[0]
    return refusals.scope_held(facts.task, rival, facts.actor(rival.actor), facts.now)


def scope_is_free_if_late(facts: TaskFacts) -> Refusal | None:
    """The caller's lease is live, or no other session has reserved its scope since it expired."""
    # The same holds for taking up an assignment: another session of the actor may have reserved the scope.
    ends = facts.command.verb == "block" and not facts.command.named()["keep"]
    return scope_is_free(facts) if (facts.late or facts.may_bind) and not ends else None


def scope_is_free_if_wider(facts: TaskFacts) -> Refusal | None:
    """The paths added to the scope of a held task are free, too."""
    added = facts.command.named()["add"]
    wider = facts.but(task=facts.task.but(scope=added))
    return scope_is_free(wider) if facts.live and added else None


def constraints_allow_it(facts: TaskFacts) -> Refusal | None:
    """The task's constraints, if it has any, allow the holder this action."""
    allowed, verb = facts.task.terms.constraints, facts.command.verb
    if not allowed or verb in allowed or not facts.holds:
        return None
    return refusals.not_allowed(facts.task, verb)


# Offers, and commands about many tasks.


def work_is_not_paused(facts: NextFacts) -> Refusal | None:
    """The board is not paused."""
    return refusals.paused(facts.paused) if facts.paused else None


def caller_holds_fewer(facts: NextFacts) -> Refusal | None:
    """The actor holds fewer tasks than its limit."""
    most = facts.command.named()["most"]
    if most is None or facts.held < most:
        return None
    return refusals.at_limit(facts.caller.actor, facts.held, most)


def something_is_ready(facts: NextFacts) -> Refusal | None:
    """A task is ready for the caller."""
    found = first_claimable(facts)
    return refusals.nothing_ready(facts.caller.actor) if found is None else None


def first_claimable(facts: NextFacts) -> ClaimFacts | None:
    """The first offer that a claim by the caller would get."""
    return next((offer for offer in facts.offers if refusal_of(offer) is None), None)


def nobody_holds_it_live(facts: TaskFacts) -> Refusal | None:
    """The task has no live lease."""
    return held(facts) if facts.live else None


def attempts_are_left(facts: TaskFacts) -> Refusal | None:
    """The task has attempts left, or a person forces it."""
    task = facts.task
    used_up = task.state != OPEN and task.attempts >= task.terms.max_attempts
    return refusals.used_up(task) if used_up and not facts.command.named()["force"] else None


def new_holder_fits(facts: ResetFacts) -> Refusal | None:
    """The new holder may hold the named tasks, and tasks reserved for a person stay so."""
    command = facts.command.named()
    if not command["mine"] and not command["to"]:
        return None
    gates: tuple[Guard, ...] = (it_is_for_this_kind, tier_suffices, capabilities_suffice)
    if not facts.caller.is_person:
        gates += (it_is_not_parked, it_is_not_assigned_to_another)
    refusals_of = (gate(alone) for alone in facts.each() for gate in gates)
    return next((refusal for refusal in refusals_of if refusal is not None), None)


def many_are_confirmed(facts: ResetFacts) -> Refusal | None:
    """The command changes one task, or the caller has confirmed that it changes many."""
    many = [task.key for task in facts.many]
    if len(many) <= 1 or facts.command.named()["yes"] or facts.is_plan:
        return None
    return refusals.unconfirmed(typed(facts), many)


def it_makes_no_cycle(facts: DependFacts) -> Refusal | None:
    """The dependency makes no cycle."""
    cycle = facts.cycle
    return refusals.cycle(cycle) if cycle else None


def dependencies_are_few(facts: DependFacts) -> Refusal | None:
    """The task has no more dependencies than the limit."""
    count = len(facts.after | set(facts.causes))
    return refusals.too_many_dependencies(count) if count > DEPENDENCIES_MAX else None


# Others.


def receiver_exists(facts: TaskFacts | ResetFacts) -> Refusal | None:
    """The receiver, if one is named, is registered."""
    to = facts.command.named()["to"]
    return refusals.unknown_actor(to) if to and facts.receiver is None else None


def actor_is_known_or_has_a_kind(facts: ActorFacts) -> Refusal | None:
    """The actor is registered, or the command states its kind so that it can be registered."""
    command: SetActor = facts.command  # type: ignore[assignment]
    known = facts.known is not None or command.kind is not None
    return None if known else refusals.unknown_actor(command.actor)


def kind_stays(facts: ActorFacts) -> Refusal | None:
    """A person stays a person: sessions and rights depend on it."""
    command: SetActor = facts.command  # type: ignore[assignment]
    actor = facts.known
    if actor is None or command.kind is None or (command.kind == HUMAN) == actor.is_human:
        return None
    return refusals.kind_is_fixed(actor)


def reviewer_is_not_the_author(facts: TaskFacts) -> Refusal | None:
    """The reviewer is not the author, unless the board allows it."""
    own = facts.task.author == facts.caller.actor.id
    if not own or facts.rules.self_review:
        return None
    return refusals.own_review(facts.task, facts.caller.actor)


def parker_or_person(facts: TaskFacts) -> Refusal | None:
    """The caller parked the task, or is a person."""
    parker: ActorId | None = facts.task.parked_by
    if parker is None or parker == facts.caller.actor.id or facts.caller.is_person:
        return None
    return refusals.not_yours_to_unpark(facts.task, facts.actor(parker))


def note_is_there(facts: RedactFacts) -> Refusal | None:
    """The named event recorded a note on this task."""
    if facts.noted is not None:
        return None
    return refusals.unknown_note(facts.task, facts.command.named()["seq"])


def key_is_free(facts: AddFacts) -> Refusal | None:
    """The key has never been used."""
    command: Add = facts.command  # type: ignore[assignment]
    return refusals.key_taken(str(command.key)) if facts.key_is_taken else None


def held(facts: TaskFacts) -> Refusal:
    assert facts.lease is not None, "only a held task has a holder"
    return refusals.held(facts.task, facts.holder(), facts.lease, facts.now)


def lost(facts: TaskFacts) -> Refusal:
    """The refusal for a former holder: who has the task now, and whether a late note was kept."""
    fields = facts.command.named()
    former, other = facts.former, facts.another_holds
    return refusals.lease_lost(
        facts.task,
        fields.get("token"),
        former.cause if former else "",
        facts.holder().name if other else "",
        kept=keeps_a_late_note(facts),
    )


def keeps_a_late_note(facts: TaskFacts) -> bool:
    """Whether the final report of a former holder is kept as a note for a person, although it is refused."""
    return facts.lost and facts.command.spec.reports and bool(late_text(facts))


def late_text(facts: TaskFacts) -> str:
    fields = facts.command.named()
    texts: list[str] = [fields.get("note", ""), fields.get("reason", "")]
    return "\n".join(text.strip() for text in texts if text.strip())


def typed(facts: Facts) -> str:
    """The command as people type it, with its task or actor."""
    fields = facts.command.named()
    about = fields.get("task") or fields.get("actor") or " ".join(fields.get("tasks", ()))
    return f"{facts.command.spec.typed} {about}".strip()
