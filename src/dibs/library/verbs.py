"""The library's verbs that finish or change tasks, and those about many tasks."""

from __future__ import annotations

from dibs.board import explain as causes
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.model import GRACE, TaskKey, Token
from dibs.domain.refusals import refused
from dibs.library import records
from dibs.library.lease import notify_leases
from dibs.opening import second_connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta
    from decimal import Decimal

    from dibs.backlogs.report import Report
    from dibs.board.execute import Board as Rules
    from dibs.board.identity import Identity
    from dibs.library.records import Answer, Changed, Stint

    Texts = Iterable[str] | str
    Ttl = str | timedelta | None


class TaskVerbs:
    """A part of the library's `Board`: these verbs."""

    @property
    def who(self) -> Identity:
        raise NotImplementedError

    _do: Callable[[c.Command, str | None], Answer]
    _use: Callable[[], AbstractContextManager[Rules]]

    def sync(self) -> Report:
        """Imports item files into the board, and writes back the changes that the board owns."""
        from dibs.backlogs.backlog import Backlog
        from dibs.backlogs.sync import sync

        with self._use() as rules:
            if not isinstance(rules.backlog, Backlog):
                raise refused("no_backlog", "there is no backlog of files here")
            return sync(rules.backlog, rules, self.who)

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
        from dibs.domain.stints import CERTAINTIES

        command = c.ReportUsage(
            checks.whole(number, "the number of the stint", 1, 10**18),
            None if tokens is None else checks.tokens(tokens),
            None if cost is None else checks.millionths(cost),
            checks.one_of(source, "the source", CERTAINTIES),
        )
        return self._do(command, request_id)

    def block(
        self, key: str, reason: str, *, on: str = "", keep: bool = False, token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        command = c.Block(
            key_of(key),
            token=token_of(token),
            reason=checks.reason(reason),
            on=checks.optional_text(on, "the cause", checks.NAME_LENGTH),
            keep=keep,
        )
        return self._do(command, request_id)

    def unblock(self, key: str, *, note: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Unblock(key_of(key), note=checks.note(note)), request_id)

    def submit(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Submit(key_of(key), token=token_of(token), note=checks.note(note))
        return self._do(command, request_id)

    def accept(self, key: str, *, note: str = "", request_id: str | None = None) -> Answer:
        return self._do(c.Accept(key_of(key), note=checks.note(note)), request_id)

    def reject(self, key: str, reason: str, *, request_id: str | None = None) -> Answer:
        return self._do(c.Reject(key_of(key), reason=checks.reason(reason)), request_id)

    def complete(
        self, key: str, *, note: str = "", token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Complete(key_of(key), token=token_of(token), note=checks.note(note))
        return self._do(command, request_id)

    def fail(
        self, key: str, reason: str, *, token: str | None = None, request_id: str | None = None
    ) -> Answer:
        command = c.Fail(key_of(key), token=token_of(token), reason=checks.reason(reason))
        return self._do(command, request_id)

    def drop(
        self, key: str, *, reason: str = "", token: str | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        command = c.Drop(key_of(key), token=token_of(token), reason=checks.reason(reason))
        return self._do(command, request_id)

    # Dependencies.

    def depend(
        self, key: str, *, on: Texts = (), not_on: Texts = (),
        token: str | None = None, request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Adds (`on`) and removes (`not_on`) tasks that must be complete first."""
        command = c.Depend(
            key_of(key), token=token_of(token), on=keys_of(on), not_on=keys_of(not_on)
        )
        return self._do(command, request_id)

    def why(self, key: str) -> tuple[str, ...]:
        """Why nobody works on a task, down to the cause: one line per step."""
        with self._use() as rules:
            steps, _ = causes.why(rules, key_of(key))
        return tuple(f"{step.task.key} {step.why}" for step in steps)

    # The queue.

    def next(
        self, *, wait: Ttl = None, ttl: Ttl = None, reserve: bool = False, most: int | None = None,
        request_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Claims the first offered task; `wait`: how long to wait for work."""
        from dibs.workers.next import next_task

        limit = None if most is None else checks.whole(most, "the most", 1, 10_000)
        command = c.Next(ttl=records.ttl(ttl), reserve=reserve, most=limit)
        checked = None if request_id is None else checks.request_id(request_id)
        who = self.who
        with self._use() as rules:
            board = second_connection(
                rules
            )  # a second connection: other threads are not blocked while this one waits
        try:
            outcome = next_task(board, who, command, records.wait(wait), checked)
        finally:
            board.store.close()
        notify_leases(outcome)
        return records.answer(outcome)

    # Recovery.

    def sweep(self, *, grace: Ttl = None) -> tuple[Changed, ...]:
        """Ends the leases of dead holders, and offers their tasks again."""
        from dibs.workers.sweep import sweep

        with self._use() as rules:
            outcome = sweep(rules, self.who, GRACE if grace is None else records.wait(grace))
        return () if outcome is None else records.changed(outcome)

    def retry(
        self, key: str, *, force: bool = False, reason: str = "", request_id: str | None = None
    ) -> tuple[Changed, ...]:
        """Reopens a failed task, or one whose holder is dead or expired."""
        return self._many(
            c.Retry(key_of(key), force=force, reason=checks.reason(reason)), request_id
        )

    def reset(
        self, *keys: str, only: bool = False, redo: bool = False, assign: str = "",
        mine: bool = False, park: bool = False, yes: bool = False, reason: str = "",
        request_id: str | None = None,
    ) -> tuple[Changed, ...]:  # fmt: skip
        """Starts tasks again, with all that depend on them; `yes`: also if they are several."""
        command = c.Reset(
            keys_of(keys),
            only=only,
            redo=redo,
            to=checks.actor_name(assign) if assign else "",
            mine=mine,
            park=park,
            yes=yes,
            reason=checks.reason(reason),
        )
        return self._many(command, request_id)

    def _many(self, command: c.Command, request_id: str | None) -> tuple[Changed, ...]:
        checked = None if request_id is None else checks.request_id(request_id)
        with self._use() as rules:
            return records.changed(rules.execute(self.who, command, checked))


def key_of(key: str) -> TaskKey:
    return checks.task_key(key)


def keys_of(keys: Texts) -> tuple[TaskKey, ...]:
    return tuple(dict.fromkeys(key_of(key) for key in records.each(keys, "the keys")))


def token_of(token: str | None) -> Token | None:
    return None if token is None else checks.token(token)
