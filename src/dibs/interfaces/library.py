"""The same board from Python: `with open_board(agent="codex", session="s1") as board: ...`.

One method for each verb; a refusal is raised as `Refused`, with the same codes as everywhere. A
`Board` may be used by several threads: they take turns. After a fork, open it again.
"""

from __future__ import annotations

import os
import sys
import threading
from datetime import datetime, timedelta

from dibs.board import opening, upkeep, views
from dibs.board.execute import Board as Rules
from dibs.board.identity import Given, Identity, Surroundings, identify
from dibs.board.locate import find_repository, locate
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.instants import Duration
from dibs.core.model import NOT_FINAL, STATES, Process, TaskKey, Terms
from dibs.core.refusals import bad_argument
from dibs.interfaces import records
from dibs.interfaces.hold import Lease
from dibs.interfaces.records import Answer, Event, Owned, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Self

    from dibs.core.model import Token
    from dibs.core.refusals import Refusal

LIMIT = 100
"""How many tasks or events are answered if nothing else is said."""


def open_board(
    path: str | None = None,
    *,
    agent: str | None = None,
    person: str | None = None,
    session: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Board:
    """The board of the repository around `path` (else the current directory), as somebody.

    Who calls is found as on the command line: `agent` and `session`, or `person`; else `DIBS_AGENT`
    and `DIBS_SESSION`, and so on. It is looked for at the first change; reading needs nobody.
    """
    around = os.environ if environment is None else environment
    start = path or os.getcwd()
    rules = opening.open_at(locate(start, around))
    given = Given(agent, person, session)
    return Board(rules, given, start, around)


class Board:
    """A board, as one actor and session see it."""

    def __init__(
        self, rules: Rules, given: Given, start: str, environment: Mapping[str, str]
    ) -> None:
        self._rules = rules
        self._given = given
        self._start = start
        self._environment = environment
        self._who: Identity | None = None
        self._turn = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._turn:
            self._rules.store.close()

    @property
    def who(self) -> Identity:
        """Who calls."""
        with self._turn:
            if self._who is None:
                self._who = self._identify()
            return self._who

    def _identify(self) -> Identity:
        def registered(name: str, process: Process) -> str | None:
            return views.session_of_process(self._rules, name, process)

        around = Surroundings(
            self._environment,
            self._rules.store.machine,
            find_repository(self._start),
            sys.stderr is not None and sys.stderr.isatty(),
        )
        strict = self._rules.settings.identity == "strict"
        return identify(self._given, around, strict=strict, registered=registered)

    def _do(self, command: c.Command, request_id: str | None = None) -> Answer:
        checked = None if request_id is None else checks.request_id(request_id)
        with self._turn:
            return records.answer(self._rules.execute(self.who, command, checked))

    # Tasks.

    def add(
        self, title: str, *, scope: Iterable[str] = (), key: str | None = None,
        request_id: str | None = None, **terms: Any,
    ) -> Answer:  # fmt: skip
        """A new task. Terms: priority, audience, tier, capabilities, constraints, max_attempts."""
        wanted = None if key is None else checks.task_key(key)
        command = c.Add(self._terms(title, terms), checks.scope(tuple(scope)), wanted)
        return self._do(command, request_id)

    def intake(
        self, channel: str, ref: str, title: str | None = None, *, scope: Iterable[str] = (),
        request_id: str | None = None, **terms: Any,
    ) -> Answer:  # fmt: skip
        """The task of this origin: a new one, or the one that it has already (`events` is empty)."""
        name = checks.actor_name(channel).casefold()
        reference = checks.text(ref, "the reference", checks.REF_LENGTH).strip()
        said = f"{name} {reference}"[: checks.TITLE_LENGTH] if title is None else title
        command = c.Add(
            self._terms(said, terms),
            checks.scope(tuple(scope)),
            channel=name,
            origin_ask_ref=reference,
        )
        return self._do(command, request_id)

    def edit(
        self, key: str, *, title: str | None = None, token: str | None = None,
        request_id: str | None = None, **terms: Any,
    ) -> Answer:  # fmt: skip
        """Changes the terms that are given."""
        checked = checked_terms(terms)
        new = None if title is None else checks.title(title)
        return self._do(c.Edit(_key(key), token=_token(token), title=new, **checked), request_id)

    def scope(
        self, key: str, *, add: Iterable[str] = (), remove: Iterable[str] = (),
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Changes the paths that a task may touch."""
        command = c.Scope(
            _key(key), token=_token(token), add=checks.scope(tuple(add)), remove=tuple(remove)
        )
        return self._do(command, request_id)

    def note(self, key: str, text: str, *, request_id: str | None = None) -> Answer:
        checked = checks.text(text, "the note", checks.NOTE_LENGTH)
        return self._do(c.Note(_key(key), note=checked), request_id)

    def _terms(self, title: str, terms: dict[str, Any]) -> Terms:
        base = Terms(checks.title(title), max_attempts=self._rules.settings.max_attempts)
        return base.but(**checked_terms(terms))

    # Owning.

    def claim(
        self, key: str, *, ttl: str | timedelta | None = None, reserve: bool = False,
        reason: str = "", request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Become the holder of a task, and start it unless it is only reserved."""
        command = c.Claim(_key(key), ttl=_ttl(ttl), reserve=reserve, reason=checks.reason(reason))
        return self._do(command, request_id)

    def start(
        self, key: str, *, ttl: str | timedelta | None = None, request_id: str | None = None
    ) -> Answer:
        return self._do(c.Start(_key(key), ttl=_ttl(ttl)), request_id)

    def stop(self, key: str, *, token: str | None = None, request_id: str | None = None) -> Answer:
        return self._do(c.Stop(_key(key), token=_token(token)), request_id)

    def renew(
        self, key: str, *, ttl: str | timedelta | None = None, token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        return self._do(c.Renew(_key(key), token=_token(token), ttl=_ttl(ttl)), request_id)

    def release(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Release(_key(key), token=_token(token), note=checks.note(note))
        return self._do(command, request_id)

    def handoff(
        self, key: str, to: str, *, ttl: str | timedelta | None = None, reason: str = "",
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        command = c.Handoff(
            _key(key),
            token=_token(token),
            to=checks.actor_name(to),
            ttl=_ttl(ttl),
            reason=checks.reason(reason),
        )
        return self._do(command, request_id)

    def takeover(
        self, key: str, *, force: bool = False, ttl: str | timedelta | None = None,
        reason: str = "", request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Become the holder after expiry; by force, a person with a reason, also before."""
        kind = c.Force if force else c.Takeover
        command = kind(_key(key), ttl=_ttl(ttl), reason=checks.reason(reason))
        return self._do(command, request_id)

    def assign(
        self, key: str, to: str, *, ttl: str | timedelta | None = None, reason: str = "",
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        name = checks.actor_name(to)
        command = c.Assign(_key(key), to=name, ttl=_ttl(ttl), reason=checks.reason(reason))
        return self._do(command, request_id)

    def unassign(self, key: str, *, reason: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Unassign(_key(key), reason=checks.reason(reason)), request_id)

    def park(self, key: str, *, reason: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Park(_key(key), reason=checks.reason(reason)), request_id)

    def unpark(self, key: str, *, request_id: str | None = None) -> Answer:
        return self._do(c.Unpark(_key(key)), request_id)

    def hold(
        self, key: str, *, ttl: str | timedelta | None = None, then: str = "release",
        if_failed: str = "release", on_lost: Callable[[Refusal], None] | None = None,
    ) -> Lease:  # fmt: skip
        """`with board.hold("T-1") as lease`: claims, renews in the background, then lets go.

        At the end the task is released, completed or submitted (`then`); if the block raised, it is
        released or failed (`if_failed`). `on_lost` is called by the keeper's thread.
        """
        if then not in ("release", "complete", "submit"):
            raise bad_argument(f"then is {then!r}; it is release, complete or submit")
        if if_failed not in ("release", "fail"):
            raise bad_argument(f"if_failed is {if_failed!r}; it is release or fail")
        duration = _ttl(ttl) or self._rules.settings.ttl_keeper
        return Lease(self, self._rules, _key(key), duration, then, if_failed, on_lost)

    # Moving on.

    def block(
        self, key: str, reason: str, *, on: str = "", keep: bool = False, token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        command = c.Block(
            _key(key),
            token=_token(token),
            reason=checks.reason(reason),
            on=checks.optional_text(on, "the cause", checks.NAME_LENGTH),
            keep=keep,
        )
        return self._do(command, request_id)

    def unblock(self, key: str, *, note: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Unblock(_key(key), note=checks.note(note)), request_id)

    def submit(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Submit(_key(key), token=_token(token), note=checks.note(note))
        return self._do(command, request_id)

    def accept(self, key: str, *, note: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Accept(_key(key), note=checks.note(note)), request_id)

    def reject(self, key: str, reason: str, *, request_id: str | None = None) -> Answer:
        return self._do(c.Reject(_key(key), reason=checks.reason(reason)), request_id)

    def complete(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Complete(_key(key), token=_token(token), note=checks.note(note))
        return self._do(command, request_id)

    def fail(
        self, key: str, reason: str, *, token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Fail(_key(key), token=_token(token), reason=checks.reason(reason))
        return self._do(command, request_id)

    def drop(
        self, key: str, *, reason: str = "", token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        command = c.Drop(_key(key), token=_token(token), reason=checks.reason(reason))
        return self._do(command, request_id)

    # Looking.

    def show(self, key: str) -> Task:
        with self._turn:
            return records.view(views.show(self._rules, _key(key)))

    def list(
        self, *, states: Iterable[str] = NOT_FINAL, free: bool = False, limit: int = LIMIT
    ) -> tuple[Task, ...]:
        """Tasks by state, priority and age; `free`: only what can be claimed now."""
        wanted = tuple(state for state in STATES if state in set(states))
        with self._turn:
            fits = self._is_free() if free else views.is_any
            found = views.listing(self._rules, wanted, fits, limit)
        return tuple(records.task(task, found.actors, found.now) for task in found.tasks)

    def _is_free(self) -> Callable[[Any, Any], bool]:
        named = self._given.agent is not None or self._given.person is not None
        return views.is_free_for(self._rules, self.who) if named else views.is_free

    def status(self) -> records.Board:
        with self._turn:
            return records.status(views.status(self._rules))

    def log(self, key: str | None = None, *, limit: int = LIMIT) -> tuple[Event, ...]:
        """The last events of the ledger, oldest first; of one task, or of all."""
        wanted = views.LogFilter(task=None if key is None else _key(key))
        with self._turn:
            found = views.log(self._rules, wanted, limit)
        return tuple(records.event(line.entry, line.key, line.actor) for line in found.lines)

    def who_owned(self, key: str, at: datetime | None = None) -> Owned:
        """Who owns a task, or owned it at an instant."""
        instant = None if at is None else records.instant(at)
        with self._turn:
            return records.owned(views.who(self._rules, _key(key), instant))

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the ledger: nothing, if it is sound."""
        with self._turn:
            return upkeep.verify(self._rules).faults


CHECKS: dict[str, Callable[[Any], object]] = {
    "priority": checks.priority,
    "audience": checks.audience,
    "tier": checks.tier,
    "capabilities": lambda names: checks.capabilities(tuple(names)),
    "constraints": lambda names: checks.constraints(tuple(names)),
    "max_attempts": checks.attempts,
}


def checked_terms(terms: dict[str, Any]) -> dict[str, Any]:
    unknown = set(terms) - set(CHECKS)
    if unknown:
        raise bad_argument(f"{', '.join(sorted(unknown))}: the terms are {', '.join(CHECKS)}")
    return {name: CHECKS[name](value) for name, value in terms.items()}


def _key(key: str) -> TaskKey:
    return checks.task_key(key)


def _token(token: str | None) -> Token | None:
    return None if token is None else checks.token(token)


def _ttl(ttl: str | timedelta | None) -> Duration | None:
    if isinstance(ttl, timedelta):
        return checks.ttl(Duration(ttl // timedelta(microseconds=1)))
    return None if ttl is None else checks.ttl(ttl)
