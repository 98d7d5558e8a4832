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
from dibs.board import explain as causes
from dibs.board import queries, verify
from dibs.board.execute import Board as Rules
from dibs.board.identity import CallerEnvironment, Identity, IdentityOptions, identify, with_process
from dibs.board.locate import Repository, locate
from dibs.board.sessions import Registry
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.model import NOT_FINAL, STATES, Process, Terms
from dibs.domain.refusals import bad_argument, refused
from dibs.library import records
from dibs.library import watch as listening
from dibs.library.lease import Lease, notify_leases
from dibs.library.records import Answer, Event, Owned, Status, Task, not_picklable
from dibs.library.verbs import TaskVerbs, key_of, keys_of, token_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Literal, NoReturn, Self

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


class Board(TaskVerbs):
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
        def registered(name: str, process: Process) -> str | None:
            return queries.session_of_process(self._rules, name, process)

        def registry() -> Registry:
            return Registry(self._rules)

        around = CallerEnvironment(
            self._environment,
            self._rules.store.machine,
            self._repository,
            sys.stderr is not None and sys.stderr.isatty(),
        )
        strict = self._rules.settings.identity == "strict"
        return identify(
            self._given, around, strict=strict, registered=registered, registry=registry
        )

    def _do(
        self, command: c.Command, request_id: str | None = None, pid: int | None = None
    ) -> Answer:
        checked = None if request_id is None else checks.request_id(request_id)
        with self._use() as rules:
            who = self._who or self.who
            who = who if pid is None else with_process(who, pid, rules.store.machine)
            outcome = rules.execute(who, command, checked)
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
        wanted = None if key is None else checks.task_key(key)
        terms = _terms(priority, audience, tier, capabilities, constraints, max_attempts)
        terms |= _booked(billable, charge_code)
        if not_before is not None:
            terms["not_before"] = records.instant(not_before)
        command = c.Add(self._new(title, terms), _scope(scope), wanted, after=keys_of(after))
        return self._do(command, request_id)

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
        from dibs.intake.request import BadPayload, build_request

        for value, what in ((channel, "the channel"), (ref, "the reference"), (url, "the url")):
            checks.is_text(value, what)
        try:
            ask = build_request(
                channel, ref, payload or f"{channel}\n{ref}\n{title or ''}\n{url}".encode(),
                title=title or "", url=url, delivery=delivery,
            )  # fmt: skip
        except BadPayload as problem:
            raise bad_argument(f"this cannot be taken in: {problem.what}") from None
        terms = _terms(priority, audience, tier, capabilities, constraints, max_attempts)
        terms |= _booked(billable, charge_code)
        command = c.Add(
            self._new(ask.title if title is None else title, terms),
            _scope(scope),
            channel=ask.channel,
            origin_ask_ref=ask.ref,
            url=ask.url,
            digest=ask.digest,
            delivery=ask.delivery,
        )
        return self._do(command, request_id)

    def edit(
        self, key: str, *, title: str | None = None,
        priority: int | str | None = None, audience: Audience | None = None,
        tier: int | None = None, capabilities: Texts | None = None,
        constraints: Texts | None = None, max_attempts: int | None = None,
        billable: bool | None = None, charge_code: str | None = None,
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Changes the given terms of a task."""
        terms = _terms(priority, audience, tier, capabilities, constraints, max_attempts)
        terms |= _booked(billable, charge_code)
        new = None if title is None else checks.title(title)
        return self._do(c.Edit(key_of(key), token=token_of(token), title=new, **terms), request_id)

    def scope(
        self, key: str, *, add: Texts = (), remove: Texts = (),
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Changes the paths that a task may touch."""
        gone = records.each(remove, "the scope")
        command = c.Scope(key_of(key), token=token_of(token), add=_scope(add), remove=gone)
        return self._do(command, request_id)

    def note(self, key: str, text: str, *, request_id: str | None = None) -> Answer:
        checked = checks.text(text, "the note", checks.NOTE_LENGTH)
        return self._do(c.Note(key_of(key), note=checked), request_id)

    def redact(self, key: str, event: int, reason: str, *, request_id: str | None = None) -> Answer:
        """Removes the text of the note that was added by an event: for people, with a reason."""
        seq = checks.whole(event, "the number of the event", 1, 10**checks.NUMBER_DIGITS - 1)
        return self._do(c.Redact(key_of(key), seq, checks.reason(reason)), request_id)

    def _new(self, title: str, terms: dict[str, Any]) -> Terms:
        base = Terms(checks.title(title), max_attempts=self._rules.settings.max_attempts)
        return base.but(**terms)

    # Leases.

    def claim(
        self, key: str, *, ttl: Ttl = None, reserve: bool = False, pid: int | None = None,
        reason: str = "", request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Become the holder, and start unless `reserve`. `pid`: if this process
        dies, others may take over.
        """
        command = c.Claim(key_of(key), records.ttl(ttl), reserve, checks.reason(reason))
        return self._do(command, request_id, pid)

    def start(self, key: str, *, ttl: Ttl = None, request_id: str | None = None) -> Answer:
        return self._do(c.Start(key_of(key), ttl=records.ttl(ttl)), request_id)

    def stop(self, key: str, *, token: str | None = None, request_id: str | None = None) -> Answer:
        return self._do(c.Stop(key_of(key), token=token_of(token)), request_id)

    def renew(
        self, key: str, *, ttl: Ttl = None, token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        return self._do(
            c.Renew(key_of(key), token=token_of(token), ttl=records.ttl(ttl)), request_id
        )

    def release(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Release(key_of(key), token=token_of(token), note=checks.note(note))
        return self._do(command, request_id)

    def handoff(
        self, key: str, to: str, *, ttl: Ttl = None, reason: str = "", note: str = "",
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        command = c.Handoff(
            key_of(key), token=token_of(token), to=checks.actor_name(to), ttl=records.ttl(ttl),
            reason=checks.reason(reason), note=checks.note(note),
        )  # fmt: skip
        return self._do(command, request_id)

    def takeover(
        self, key: str, *, force: bool = False, ttl: Ttl = None,
        reason: str = "", request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Become the holder after expiry; with `force`, a person with a reason also before."""
        kind = c.Force if force else c.Takeover
        command = kind(key_of(key), ttl=records.ttl(ttl), reason=checks.reason(reason))
        return self._do(command, request_id)

    def assign(
        self, key: str, to: str, *, ttl: Ttl = None, reason: str = "",
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        name = checks.actor_name(to)
        command = c.Assign(key_of(key), to=name, ttl=records.ttl(ttl), reason=checks.reason(reason))
        return self._do(command, request_id)

    def unassign(self, key: str, *, reason: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Unassign(key_of(key), reason=checks.reason(reason)), request_id)

    def park(self, key: str, *, reason: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Park(key_of(key), reason=checks.reason(reason)), request_id)

    def unpark(self, key: str, *, request_id: str | None = None) -> Answer:
        return self._do(c.Unpark(key_of(key)), request_id)

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
        duration = records.ttl(ttl) or self._rules.settings.ttl_keeper
        return Lease(self, self._use, key_of(key), duration, then, if_failed, on_lost)

    # Reading.

    def show(self, key: str) -> Task:
        with self._use() as rules:
            return records.view(queries.show(rules, key_of(key)))

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
            return records.status(causes.status(rules))

    def log(self, key: str | None = None, *, limit: int = LIMIT) -> tuple[Event, ...]:
        """The last events of the ledger, oldest first, of one task or of all."""
        wanted, most = queries.LogFilter(task=None if key is None else key_of(key)), _limit(limit)
        with self._use() as rules:
            found = queries.log(rules, wanted, most)
        return tuple(records.event(line.entry, line.key, line.actor) for line in found.lines)

    def who_owned(self, key: str, at: datetime | None = None) -> Owned:
        """Who owns a task, or owned it at an instant."""
        instant = None if at is None else records.instant(at)
        with self._use() as rules:
            return records.owned(queries.who(rules, key_of(key), instant))

    def watch(
        self, key: str | None = None, *, since: int | None = None, timeout: Ttl = None
    ) -> Iterator[Event]:
        """Streams events as they happen, each once and in order: from now on, or
        after event number `since`.
        """
        return listening.events(self._use, key, since, timeout)

    def wait(self, key: str, goal: Goal = "complete", *, timeout: Ttl = None) -> Task:
        """Waits until the task is complete, free or ready, and returns it; refused on timeout."""
        return listening.until(self._use, key, goal, timeout)

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


def _terms(
    priority: int | str | None,
    audience: Audience | None,
    tier: int | None,
    capabilities: Texts | None,
    constraints: Texts | None,
    max_attempts: int | None,
) -> dict[str, Any]:
    """The given terms, checked."""

    def named(values: Texts | None, what: str) -> tuple[str, ...] | None:
        return None if values is None else records.each(values, what)

    given: dict[str, tuple[object, Callable[[Any], object]]] = {
        "priority": (priority, checks.priority),
        "audience": (audience, checks.audience),
        "tier": (tier, checks.tier),
        "capabilities": (named(capabilities, "a capability"), checks.capabilities),
        "constraints": (named(constraints, "a constraint"), checks.constraints),
        "max_attempts": (max_attempts, checks.attempts),
    }
    return {name: check(value) for name, (value, check) in given.items() if value is not None}


def _booked(billable: bool | None, charge_code: str | None) -> dict[str, Any]:
    """The given billing terms, checked; `""` removes a charge code."""
    given: dict[str, Any] = {} if billable is None else {"billable": checks.flag(billable)}
    if charge_code is not None:
        given["charge_code"] = charge_code and checks.charge_code(charge_code)
    return given


def _scope(paths: Texts) -> tuple[str, ...]:
    return checks.scope(records.each(paths, "a scope"))


def _limit(limit: int) -> int:
    return checks.whole(limit, "the limit", 1, LIMIT_MAX)


def _states(states: Iterable[State]) -> tuple[State, ...]:
    if isinstance(states, str):
        raise bad_argument(f"states is {checks.quoted(states)}; it is a list, such as ['open']")
    wanted = [checks.one_of(state, "a state", STATES) for state in records.each(states, "states")]
    return tuple(state for state in STATES if state in wanted)
