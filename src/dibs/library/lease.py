"""`with board.hold("T-1") as lease`: a lease that is renewed while the block runs."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from dibs.board.command_builder import build
from dibs.board.execute import Board as Rules
from dibs.board.identity import Identity, caller_of
from dibs.board.outcome import Outcome, actors_named
from dibs.domain import checks, ledger, refusals
from dibs.domain import commands as c
from dibs.domain.model import Actor, ActorId, Caller, Task, TaskKey, Token
from dibs.domain.refusals import Refusal, Refused, bad_argument, refused
from dibs.domain.values import Duration, Instant, Value
from dibs.library import records
from dibs.library.records import Answer, LeaseLost, not_picklable
from dibs.workers.keeper import Keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from types import TracebackType
    from typing import NoReturn, Protocol, Self

    class Use(Protocol):
        """Locks the board for this thread; `ending`: even after it was closed."""

        def __call__(self, *, ending: bool = False) -> AbstractContextManager[Rules]: ...

    class Holder(Protocol):
        """What a lease does through the board of its holder, which makes the lease."""

        @property
        def who(self) -> Identity: ...
        def claim(
            self, key: str, *, ttl: timedelta | None = None, pid: int | None = None
        ) -> Answer: ...
        def renew(self, key: str, *, ttl: timedelta | None, token: str) -> Answer: ...
        def note(self, key: str, text: str) -> Answer: ...


LOST = ("lease_lost", "token_ahead")


class Seen(Value):
    """A task and the caller, as read in one transaction."""

    caller: Caller
    now: Instant
    task: Task
    actors: Mapping[ActorId, Actor]

    @property
    def mine(self) -> bool:
        lease = self.task.lease
        return lease is not None and lease.held_by(self.caller)

    @property
    def concerns_me(self) -> bool:
        """Whether the session holds it, or it is assigned to this actor: a release would end that."""
        lease, me = self.task.lease, self.caller.actor.id
        if lease is None:
            return self.task.assignee == me
        return self.mine or (not lease.bound and lease.actor == me)


class Lease:
    """A lease that is renewed in the background until the block ends or the lease is lost."""

    def __init__(
        self,
        board: Holder,
        use: Use,
        key: TaskKey,
        ttl: Duration,
        then: str,
        if_failed: str,
        on_lost: Callable[[Refusal], object] | None,
    ) -> None:
        self.key: str = key
        self.token = ""
        self._board = board
        self._use = use
        self._ttl = ttl
        self._then = then
        self._if_failed = if_failed
        self._on_lost = on_lost
        self._entered = False
        self._who: Identity | None = None
        self._had_before = False
        self._keeper: Keeper | None = None
        self._ended: Refusal | None = None

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise not_picklable("a lease")

    def __enter__(self) -> Self:
        if self._entered:
            raise bad_argument("a lease is entered only once: call board.hold again")
        self._entered = True
        with self._use():
            self._who = self._board.who
            seen = self._look()
        self.key = seen.task.key
        try:
            register_hold(self, seen)
            self._begin(seen)
        except BaseException as error:
            begun = self.token or not isinstance(error, Refused)
            if begun and not seen.mine:
                run_cleanup(error, self._undo)
            self._leave()
            raise
        return self

    def _begin(self, seen: Seen) -> None:
        """Claims the task. A lease that the session already had continues unchanged, also after the block."""
        wanted = records.span(self._ttl)
        with self._use() as rules:
            since = rules.store.machine.boottime()
            if seen.mine:
                claimed = self._board.claim(self.key)
            else:
                claimed = self._board.claim(self.key, ttl=wanted, pid=self._own_pid(rules))
            self.token = claimed.token
            self._had_before = seen.mine and self.token == str(seen.task.token)
            if seen.mine and not self._had_before:
                claimed = self._board.renew(self.key, ttl=wanted, token=self.token)
            assert claimed.lease is not None, "claimed just now"
            self._keeper = Keeper(
                rules,
                self._identity,
                self._key,
                ledger.token(self.token),
                records.microseconds(claimed.lease.ttl),
                since,
                self._on_lost,
            )
        self._keeper.start()

    def _own_pid(self, rules: Rules) -> int | None:
        """Our pid, to be stated behind an agent's lease; `None` if this process cannot be identified."""
        pid = os.getpid()
        known = not self._identity.person and rules.store.machine.may_state(pid) is not None
        return pid if known else None

    def _undo(self) -> None:
        """Releases the claim, which may have succeeded although its answer was lost."""
        seen = self._look()
        if seen.mine and self.token in ("", str(seen.task.token)):
            self._execute(c.Release(self._key, token=seen.task.token))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if self._ended is None and error is None:
                self._finish()
            elif self._ended is None and error is not None:
                self._abandon(error)
        finally:
            self._leave()

    def _finish(self) -> None:
        if self._then == "release":
            self._let_go()
            return
        try:
            if self._then == "complete":
                self.complete()
            else:
                self.submit()
        except LeaseLost:
            raise
        except BaseException as error:
            run_cleanup(error, self._let_go)
            raise

    def _abandon(self, error: BaseException) -> None:
        """The block raised: that exception propagates, whatever happens to the lease."""
        failed = isinstance(error, Exception) and not isinstance(error, LeaseLost)
        if (
            self._if_failed == "fail"
            and failed
            and run_cleanup(error, lambda: self.fail(error_text(error)))
        ):
            return
        if self._ended is None:
            run_cleanup(error, self._let_go)

    def _let_go(self) -> None:
        """Releases the lease, unless the session already had it. Retries once if interrupted."""
        if self._had_before and not self.lost.is_set():
            return
        try:
            self.release()
        except Refused:
            raise
        except BaseException as error:
            run_cleanup(error, self.release)
            raise

    def _leave(self) -> None:
        """Marks this object as ended and stops its keeper."""
        self._ended = self._ended or ended(self)
        unregister_hold(self)
        if self._keeper is not None:
            self._keeper.stop()

    @property
    def lost(self) -> threading.Event:
        """Set when the lease is lost."""
        return self._kept.lost

    def check(self, *, ask: bool = False) -> None:
        """Raises `LeaseLost` if this is no longer the current lease of the task.

        As far as this process knows; with `ask` it asks the board now, which renews the lease.
        """
        why = self._ended or self._kept.check(ask=ask)
        if why is not None:
            raise LeaseLost(why)

    def note(self, text: str) -> Answer:
        """Adds a note. Allowed to everybody, so also after the lease has ended."""
        return self._board.note(self.key, text)

    def release(self, note: str = "") -> Answer:
        """Releases the task. For a lost lease this succeeds, too: it acknowledges the loss."""
        try:
            return self._end(build(c.Release, task=self.key, token=self.token or None, note=note))
        except LeaseLost:
            return self._acknowledge()

    def complete(self, note: str = "") -> Answer:
        return self._end(build(c.Complete, task=self.key, token=self.token or None, note=note))

    def submit(self, note: str = "") -> Answer:
        return self._end(build(c.Submit, task=self.key, token=self.token or None, note=note))

    def fail(self, reason: str) -> Answer:
        return self._end(build(c.Fail, task=self.key, token=self.token or None, reason=reason))

    @property
    def _kept(self) -> Keeper:
        if self._keeper is None:
            raise bad_argument("the lease is not held yet: use it inside `with`")
        return self._keeper

    @property
    def _key(self) -> TaskKey:
        return TaskKey(self.key)

    @property
    def _stated(self) -> Token | None:
        return ledger.token(self.token) if self.token else None

    def _end(self, command: c.Command) -> Answer:
        """Ends this lease and no other: the token identifies it."""
        kept = self._kept
        try:
            outcome = kept.end(lambda: self._execute(command))
        except Refused as problem:
            if problem.code not in LOST:
                raise
            if self._ended is None:
                kept.lose(problem.refusal)
            raise LeaseLost(problem.refusal) from None
        self._leave()
        return records.answer(outcome)

    def _acknowledge(self) -> Answer:
        """Acknowledges the loss of the lease. A newer lease of the same session is not touched."""
        seen = self._look()
        if seen.concerns_me:
            return records.answer(Outcome(seen.caller, seen.now, seen.task, actors=seen.actors))
        return records.answer(self._execute(c.Release(self._key)))

    def _execute(self, command: c.Command) -> Outcome:
        with self._use(ending=True) as rules:
            return rules.execute(self._identity, command)

    def _look(self) -> Seen:
        with self._use(ending=True) as rules, rules.read() as tx:
            caller, _ = caller_of(tx, self._identity, rules.settings)
            task = tx.task(self._key)
            if task is None:
                raise Refused(refusals.unknown_task(self.key))
            return Seen(caller, tx.now, task, actors_named(tx, task))

    @property
    def _identity(self) -> Identity:
        assert self._who is not None, "known since the lease was entered"
        return self._who

    # Other holds in this process.

    def is_over_in(self, task: Task) -> bool:
        """Whether the task, which may have been read a while ago, shows that this lease has ended."""
        token = self._stated
        if token is None:
            return False
        return tuple(token) < tuple(task.token) or (token == task.token and task.lease is None)

    def hears_of(self, task: Task, actors: Mapping[ActorId, Actor]) -> None:
        if self._keeper is not None and self._ended is None and self.is_over_in(task):
            holder = actors.get(task.lease.actor) if task.lease else None
            name = holder.name if holder else ""
            why = refusals.lease_lost(task, self._stated, "", name, kept=False)
            self._keeper.lose(why)


HELD: dict[tuple[int, str, str, str], Lease] = {}
"""The leases held in this process: one per task and session."""

GUARD = threading.Lock()


def register_hold(lease: Lease, seen: Seen) -> None:
    """Registers a hold. The board treats two holds of one session as one: this refuses the second."""
    caller, task = seen.caller, seen.task
    place = (os.getpid(), task.uid, caller.actor.name, caller.holding_session)
    with GUARD:
        other = HELD.get(place)
        if other is not None and not other.is_over_in(task):
            raise refused(
                "held_here",
                f"{task.key} is already held in this process by the same session",
                task=task.key,
                session=caller.holding_session or caller.actor.name,
            )
        HELD[place] = lease


def unregister_hold(lease: Lease) -> None:
    with GUARD:
        for place in [place for place, held in HELD.items() if held is lease]:
            del HELD[place]


def notify_leases(outcome: Outcome) -> None:
    """Notifies the leases of this process that a change made here has ended."""
    task = outcome.current or outcome.task
    with GUARD:
        held = [lease for place, lease in HELD.items() if task and place[1] == task.uid]
    for lease in held:
        assert task is not None, "some task, as found above"
        lease.hears_of(task, outcome.actors)


def ended(lease: Lease) -> Refusal:
    return Refusal(
        "lease_lost",
        f"the lease {lease.token} of {lease.key} has ended",
        {"task": lease.key, "stated": lease.token},
    )


def run_cleanup(error: BaseException, act: Callable[[], object]) -> bool:
    """Runs a cleanup while an exception propagates; a failure is attached to it as
    a note. Returns success.
    """
    try:
        act()
    except Exception as problem:  # noqa: BLE001 - the caller's own exception must not disappear
        with suppress(Exception):  # an exception may not accept notes
            error.add_note(f"dibs: {problem}")
        return False
    return True


def error_text(error: BaseException) -> str:
    """An exception as storable text."""
    try:
        words = str(error)
    except Exception as problem:  # noqa: BLE001 - its own __str__ is at fault, and is reported as such
        words = f"(no text: {type(problem).__name__})"
    text = f"{type(error).__name__}: {words}".encode("utf-8", "backslashreplace").decode()
    return checks.short(text.replace("\0", "\\x00"))
