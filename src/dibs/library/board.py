"""The Python API of a board: `with open_board(agent="codex", session="s1") as board: ...`.

One method per verb; a refusal raises `Refused`, with the same codes as everywhere.
A `Board` is thread-safe: its threads take turns. After a fork, open it again.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta

from dibs import opening
from dibs.board import command_builder, explain, queries, verify
from dibs.board.command_builder import build
from dibs.board.execute import Board as Rules
from dibs.board.identity import CallerContext, Identity, IdentityOptions, with_process
from dibs.board.locate import Repository, locate
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.model import GRACE, NOT_FINAL, STATES
from dibs.domain.refusals import bad_argument, refused
from dibs.domain.values import Duration
from dibs.library import records
from dibs.library import watch as watching
from dibs.library.lease import Lease, notify_leases
from dibs.library.records import (
    Answer,
    Changed,
    Event,
    Owned,
    Status,
    Stint,
    Task,
    not_picklable,
)
from dibs.library.watch import own_connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from decimal import Decimal
    from typing import Any, Literal, NoReturn, Self

    from dibs.backlogs.report import Report
    from dibs.domain.model import Audience, State
    from dibs.domain.refusals import Refusal

    Then = Literal["release", "complete", "submit"]
    Goal = Literal["complete", "free", "ready"]
    IfFailed = Literal["release", "fail"]
    Texts = Iterable[str] | str
    Ttl = str | timedelta | None

LIMIT = 100
"""The default number of tasks or events in an answer."""

LIMIT_MAX = 100_000


def open_board(
    path: str | os.PathLike[str] | None = None,
    *,
    agent: str | None = None,
    person: str | None = None,
    session: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Board:
    """Opens the board of the repository around `path` (default: the current directory).

    The caller is identified as on the command line: by `agent` and `session`, or `person`; else by
    `DIBS_AGENT` and `DIBS_SESSION`, and so on. This happens at the first change; reading needs no identity.
    """
    around = os.environ if environment is None else environment
    if not hasattr(around, "get"):
        raise bad_argument(f"the environment is {checks.short(repr(around), 40)}; it is a mapping")
    place = locate(_folder(path), around)
    return Board(
        opening.open_at(place), IdentityOptions(agent, person, session), place.repository, around
    )


def _folder(path: str | os.PathLike[str] | None) -> str:
    try:
        folder = os.fspath(path or os.getcwd())
    except FileNotFoundError:
        raise refused("no_board", "the current directory was removed") from None
    except TypeError:
        folder = ""
    if not isinstance(folder, str) or not folder or "\0" in folder:
        raise bad_argument(
            f"the path is {checks.short(repr(path), 40)}; it is the path of a folder"
        )
    return folder


class Board:
    """A board as seen by one actor and session."""

    def __init__(
        self,
        rules: Rules,
        given: IdentityOptions,
        repository: Repository | None,
        environment: Mapping[str, str],
    ) -> None:
        self._rules = rules
        self._given = given
        self._repository = repository
        self._environment = environment
        self._who: Identity | None = None
        self._turn = threading.RLock()
        self._closed = False

    def __enter__(self) -> Self:
        with self._use():
            return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise not_picklable("a board")

    def close(self) -> None:
        """Closes the board; a lease that is held can still be released."""
        with self._turn:
            self._closed = True
            self._rules.store.close()

    @contextmanager
    def _use(self, *, ending: bool = False) -> Iterator[Rules]:
        """Locks the board for this thread; `ending`: even after it was closed."""
        with self._turn:
            if self._closed and not ending:
                raise refused("closed", "this board was closed")
            try:
                yield self._rules
            finally:
                if self._closed:
                    self._rules.store.close()

    @property
    def who(self) -> Identity:
        """The identity of the caller."""
        with self._use():
            if self._who is None:
                self._who = self._identify()
            return self._who

    def _identify(self) -> Identity:
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        context = CallerContext(
            self._rules, self._environment, self._repository, on_terminal=on_terminal
        )
        return context.identify(self._given)

    def _do(
        self,
        kind: type[c.Command],
        request_id: str | None,
        pid: int | None = None,
        **arguments: Any,
    ) -> Answer:
        """Builds the command and executes it."""
        command = build(kind, **arguments)
        with self._use() as rules:
            who = self._who or self.who
            who = who if pid is None else with_process(who, pid, rules.store.machine)
            outcome = rules.execute(who, command, _request(request_id))
        notify_leases(outcome)
        return records.answer(outcome)

    # Tasks.

    def add(
        self, title: str, *, scope: Texts = (), key: str | None = None, after: Texts = (),
        not_before: datetime | None = None,
        priority: int | str | None = None, audience: Audience | None = None,
        tier: int | None = None, capabilities: Texts | None = None,
        constraints: Texts | None = None, max_attempts: int | None = None,
        billable: bool | None = None, charge_code: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Adds a task."""
        terms = command_builder.terms(
            title, self._rules.settings.max_attempts, priority=priority, audience=audience,
            tier=tier, capabilities=capabilities, constraints=constraints,
            max_attempts=max_attempts, billable=billable, charge_code=charge_code,
            not_before=None if not_before is None else records.instant(not_before),
        )  # fmt: skip
        return self._do(c.Add, request_id, terms=terms, scope=scope, key=key, after=after)

    def intake(
        self, channel: str, ref: str, title: str | None = None, *, url: str = "",
        delivery: str = "", payload: bytes = b"", scope: Texts = (),
        priority: int | str | None = None, audience: Audience | None = None,
        tier: int | None = None, capabilities: Texts | None = None,
        constraints: Texts | None = None, max_attempts: int | None = None,
        billable: bool | None = None, charge_code: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """The task of this origin: a new one, or the existing one (`created` says which).

        Only a digest of the `payload` is stored; each delivery leaves a receipt.
        """
        from dibs.intake.request import BadPayload, add_arguments, build_request

        for value, what in ((channel, "the channel"), (ref, "the reference"), (url, "the url")):
            checks.is_text(value, what)
        try:
            request = build_request(
                channel, ref, payload or f"{channel}\n{ref}\n{title or ''}\n{url}".encode(),
                title=title or "", url=url, delivery=delivery,
            )  # fmt: skip
        except BadPayload as problem:
            raise bad_argument(f"this request is invalid: {problem.what}") from None
        terms = command_builder.terms(
            request.title if title is None else title, self._rules.settings.max_attempts,
            priority=priority, audience=audience, tier=tier, capabilities=capabilities,
            constraints=constraints, max_attempts=max_attempts, billable=billable,
            charge_code=charge_code,
        )  # fmt: skip
        return self._do(c.Add, request_id, terms=terms, scope=scope, **add_arguments(request))

    def edit(
        self, key: str, *, title: str | None = None,
        priority: int | str | None = None, audience: Audience | None = None,
        tier: int | None = None, capabilities: Texts | None = None,
        constraints: Texts | None = None, max_attempts: int | None = None,
        billable: bool | None = None, charge_code: str | None = None,
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Changes the given terms of a task."""
        return self._do(
            c.Edit, request_id, task=key, token=token, title=title, priority=priority,
            audience=audience, tier=tier, capabilities=capabilities, constraints=constraints,
            max_attempts=max_attempts, billable=billable, charge_code=charge_code,
        )  # fmt: skip

    def scope(
        self, key: str, *, add: Texts = (), remove: Texts = (),
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Changes the paths that a task may touch."""
        return self._do(c.Scope, request_id, task=key, token=token, add=add, remove=remove)

    def depend(
        self, key: str, *, on: Texts = (), not_on: Texts = (),
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Adds (`on`) and removes (`not_on`) tasks that must be complete first."""
        return self._do(c.Depend, request_id, task=key, token=token, on=on, not_on=not_on)

    def note(self, key: str, text: str, *, request_id: str | None = None) -> Answer:
        return self._do(c.Note, request_id, task=key, note=text)

    def redact(self, key: str, event: int, reason: str, *, request_id: str | None = None) -> Answer:
        """Removes the text of the note that was added by an event: for people, with a reason."""
        return self._do(c.Redact, request_id, task=key, seq=event, reason=reason)

    # Leases.

    def claim(
        self, key: str, *, ttl: Ttl = None, reserve: bool = False, pid: int | None = None,
        reason: str = "", request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Become the holder, and start unless `reserve`. `pid`: if this process
        dies, others may take over.
        """
        return self._do(c.Claim, request_id, pid, task=key, ttl=ttl, reserve=reserve, reason=reason)

    def next(
        self, *, wait: Ttl = None, ttl: Ttl = None, reserve: bool = False, most: int | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Claims the first offered task; `wait`: how long to wait for work."""
        from dibs.workers.next import next_task

        command = build(c.Next, ttl=ttl, reserve=reserve, most=most)
        longest, checked = _wait(wait), _request(request_id)
        who = self.who
        with own_connection(self._use) as board:
            outcome = next_task(board, who, command, longest, checked)
        notify_leases(outcome)
        return records.answer(outcome)

    def start(self, key: str, *, ttl: Ttl = None, request_id: str | None = None) -> Answer:
        return self._do(c.Start, request_id, task=key, ttl=ttl)

    def stop(self, key: str, *, token: str | None = None, request_id: str | None = None) -> Answer:
        return self._do(c.Stop, request_id, task=key, token=token)

    def renew(
        self, key: str, *, ttl: Ttl = None, token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        return self._do(c.Renew, request_id, task=key, token=token, ttl=ttl)

    def release(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        return self._do(c.Release, request_id, task=key, token=token, note=note)

    def handoff(
        self, key: str, to: str, *, ttl: Ttl = None, reason: str = "", note: str = "",
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        return self._do(
            c.Handoff, request_id, task=key, token=token, to=to, ttl=ttl, reason=reason, note=note
        )

    def takeover(
        self, key: str, *, force: bool = False, ttl: Ttl = None,
        reason: str = "", request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Become the holder after expiry; with `force`, a person with a reason also before."""
        kind = c.Force if force else c.Takeover
        return self._do(kind, request_id, task=key, ttl=ttl, reason=reason)

    def assign(
        self, key: str, to: str, *, ttl: Ttl = None, reason: str = "",
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        return self._do(c.Assign, request_id, task=key, to=to, ttl=ttl, reason=reason)

    def unassign(self, key: str, *, reason: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Unassign, request_id, task=key, reason=reason)

    def park(self, key: str, *, reason: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Park, request_id, task=key, reason=reason)

    def unpark(self, key: str, *, request_id: str | None = None) -> Answer:
        return self._do(c.Unpark, request_id, task=key)

    def hold(
        self, key: str, *, ttl: Ttl = None, then: Then = "release",
        if_failed: IfFailed = "release", on_lost: Callable[[Refusal], object] | None = None,
    ) -> Lease:  # fmt: skip
        """`with board.hold("T-1") as lease`: claims, renews in the background, then ends the lease.

        On exit the task is released, completed or submitted (`then`); if the block raised,
        it is released or failed (`if_failed`). A lease that the session already had is not
        released, and keeps its ttl. `on_lost` is called by the keeper's thread. A second
        hold of the same task by the same session in this process is refused.
        """
        checks.one_of(then, "then", ("release", "complete", "submit"))
        checks.one_of(if_failed, "if_failed", ("release", "fail"))
        if on_lost is not None and not callable(on_lost):
            raise bad_argument(f"on_lost is {checks.short(repr(on_lost), 40)}; it is a function")
        duration = self._rules.settings.ttl_keeper if ttl is None else command_builder.ttl(ttl)
        return Lease(self, self._use, checks.task_key(key), duration, then, if_failed, on_lost)

    # States.

    def block(
        self, key: str, reason: str, *, on: str = "", keep: bool = False, token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        return self._do(c.Block, request_id, task=key, token=token, reason=reason, on=on, keep=keep)

    def unblock(self, key: str, *, note: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Unblock, request_id, task=key, note=note)

    def submit(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        return self._do(c.Submit, request_id, task=key, token=token, note=note)

    def accept(self, key: str, *, note: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Accept, request_id, task=key, note=note)

    def reject(self, key: str, reason: str, *, request_id: str | None = None) -> Answer:
        return self._do(c.Reject, request_id, task=key, reason=reason)

    def complete(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        return self._do(c.Complete, request_id, task=key, token=token, note=note)

    def fail(
        self, key: str, reason: str, *, token: str | None = None, request_id: str | None = None
    ) -> Answer:
        return self._do(c.Fail, request_id, task=key, token=token, reason=reason)

    def drop(
        self, key: str, *, reason: str = "", token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        return self._do(c.Drop, request_id, task=key, token=token, reason=reason)

    # Recovery.

    def sweep(self, *, grace: Ttl = None) -> tuple[Changed, ...]:
        """Ends the leases of dead holders, and offers their tasks again."""
        from dibs.workers.sweep import sweep

        with self._use() as rules:
            outcome = sweep(rules, self.who, GRACE if grace is None else _wait(grace))
        return () if outcome is None else records.changed(outcome)

    def retry(
        self, key: str, *, force: bool = False, reason: str = "", request_id: str | None = None
    ) -> tuple[Changed, ...]:
        """Reopens a failed task, or one whose holder is dead or expired."""
        return self._many(build(c.Retry, task=key, force=force, reason=reason), request_id)

    def reset(
        self, *keys: str, only: bool = False, redo: bool = False, assign: str = "",
        mine: bool = False, park: bool = False, yes: bool = False, reason: str = "",
        request_id: str | None = None,
    ) -> tuple[Changed, ...]:  # fmt: skip
        """Starts tasks again, with all that depend on them; `yes`: also if they are several."""
        command = build(
            c.Reset, tasks=keys, only=only, redo=redo, to=assign, mine=mine, park=park, yes=yes,
            reason=reason,
        )  # fmt: skip
        return self._many(command, request_id)

    def _many(self, command: c.Command, request_id: str | None) -> tuple[Changed, ...]:
        checked = _request(request_id)
        with self._use() as rules:
            return records.changed(rules.execute(self.who, command, checked))

    # Time and files.

    def stints(
        self, since: datetime, until: datetime, *, actor: str | None = None
    ) -> tuple[Stint, ...]:
        """Stints that overlap the period, by actor and start; open ones last until now."""
        from dibs.board.stints import worked

        name = None if actor is None else checks.actor_name(actor)
        with self._use() as rules:
            found = worked(rules, records.instant(since), records.instant(until), name)
        return records.stints(found)

    def usage(
        self, number: int, *, tokens: int | None = None, cost: Decimal | str | None = None,
        source: str = "unknown", request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Reports the usage of one's own stint; `source`: actual, estimated or unknown."""
        return self._do(
            c.ReportUsage, request_id, number=number, tokens=tokens, cost=cost, spending=source
        )

    def sync(self) -> Report:
        """Imports item files into the board, and writes back the changes that the board owns."""
        from dibs.backlogs.backlog import Backlog
        from dibs.backlogs.sync import sync

        with self._use() as rules:
            if not isinstance(rules.backlog, Backlog):
                raise refused("no_backlog", "this repository has no backlog of item files")
            return sync(rules.backlog, rules, self.who)

    # Reading.

    def show(self, key: str) -> Task:
        with self._use() as rules:
            return records.view(queries.show(rules, checks.task_key(key)))

    def why(self, key: str) -> tuple[str, ...]:
        """Why nobody works on a task, down to the cause: one line per step."""
        with self._use() as rules:
            steps, _ = explain.why(rules, checks.task_key(key))
        return tuple(f"{step.task.key} {step.why}" for step in steps)

    def list(
        self, *, states: Iterable[State] = NOT_FINAL, free: bool = False, ready: bool = False,
        limit: int = LIMIT,
    ) -> tuple[Task, ...]:  # fmt: skip
        """Tasks by state, priority and age; `free`: only claimable ones; `ready`:
        those that `next` offers.
        """
        wanted, most = _states(states), _limit(limit)
        with self._use() as rules:
            fits = self._is_free() if free else queries.is_any
            found = (
                queries.ready(rules, most) if ready else queries.listing(rules, wanted, fits, most)
            )
        return tuple(records.task(task, found.actors, found.now) for task in found.tasks)

    def _is_free(self) -> Callable[[Any, Any], bool]:
        named = self._given.agent is not None or self._given.person is not None
        return queries.is_free_for(self._rules, self.who) if named else queries.is_free

    def status(self) -> Status:
        with self._use() as rules:
            return records.status(explain.status(rules))

    def log(self, key: str | None = None, *, limit: int = LIMIT) -> tuple[Event, ...]:
        """The last events of the ledger, oldest first, of one task or of all."""
        wanted, most = (
            queries.LogFilter(task=None if key is None else checks.task_key(key)),
            _limit(limit),
        )
        with self._use() as rules:
            found = queries.log(rules, wanted, most)
        return tuple(records.event(line.entry, line.key, line.actor) for line in found.lines)

    def who_owned(self, key: str, at: datetime | None = None) -> Owned:
        """Who owns a task, or owned it at an instant."""
        instant = None if at is None else records.instant(at)
        with self._use() as rules:
            return records.owned(queries.who(rules, checks.task_key(key), instant))

    def watch(
        self, key: str | None = None, *, since: int | None = None, timeout: Ttl = None
    ) -> Iterator[Event]:
        """Streams events as they happen, each once and in order: from now on, or
        after event number `since`.
        """
        return watching.events(self._use, key, since, timeout)

    def wait(self, key: str, goal: Goal = "complete", *, timeout: Ttl = None) -> Task:
        """Waits until the task is complete, free or ready, and returns it; refused on timeout."""
        return watching.until(self._use, key, goal, timeout)

    def head(self) -> str:
        """One digest of the whole ledger, to be stored elsewhere, for `verify`."""
        with self._use() as rules:
            return str(verify.head(rules))

    def verify(self, *, against: str = "") -> tuple[str, ...]:
        """The faults of the ledger, also compared with stored heads (one per line); empty if it is sound."""
        checks.is_text(against, "a head")
        kept = verify.parse_heads(against) if against else ()
        with self._use() as rules:
            return verify.prove(rules, kept).faults


def _request(request_id: str | None) -> str | None:
    return None if request_id is None else checks.request_id(request_id)


def _wait(given: Ttl) -> Duration:
    return Duration(0) if given is None else command_builder.wait(given)


def _limit(limit: int) -> int:
    return checks.whole(limit, "the limit", 1, LIMIT_MAX)


def _states(states: Iterable[State]) -> tuple[State, ...]:
    if isinstance(states, str):
        raise bad_argument(f"states is {checks.quoted(states)}; it is a list, such as ['open']")
    wanted = [
        checks.one_of(state, "a state", STATES) for state in command_builder.texts(states, "states")
    ]
    return tuple(state for state in STATES if state in wanted)
