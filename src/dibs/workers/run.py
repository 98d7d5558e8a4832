"""`dibs run`: a command that works under a lease, and never without one.

Claim, commit, then start. The lease is renewed while the command lives, and the command's exit decides
how
it ends. When the lease is lost, the command and everything that it started are killed; when this process
is
killed, so is the command. Every exit path after the claim ends the claim.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from shutil import which

from dibs.board.execute import Board
from dibs.board.facts.task import fresh_uid
from dibs.board.identity import RUN, Identity, caller_of
from dibs.board.liveness import PATIENCE, end_survivors, mark_of
from dibs.board.outcome import Outcome, actors_named
from dibs.board.sessions import keep_command
from dibs.domain import commands as c
from dibs.domain import refusals
from dibs.domain.model import COMPLETE, REVIEW, Lease, LeaseProcess, Task, Token
from dibs.domain.refusals import Refusal, Refused, bad_argument, refused
from dibs.domain.values import HOUR, MINUTE, Duration, Value
from dibs.domain.verbs import commands
from dibs.machine import UNKNOWN
from dibs.workers.child import ENDING, INTERRUPTING, PASSED_ON, Child, Inbox
from dibs.workers.keeper import TRY_AGAIN, Keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ON_FAIL = tuple(
    spec.name for spec in commands() if spec.ends_own and spec.target not in (REVIEW, COMPLETE)
)
"""The verbs with which a holder ends its lease without a result: `--on-fail` names one."""

LOST = ("lease_lost", "token_ahead")

RETRY_PAUSE = 0.5
"""Retry interval in seconds for recording the result, while the board is unreachable."""

JITTER = 0.2


class Options(Value):
    """What to do when the command ends, and where its output goes."""

    submit: bool = False
    on_fail: str = c.Fail.verb
    note: str = ""
    log_dir: str = ""
    out: int = 1
    """File descriptor for its standard output."""
    patience: float = PATIENCE
    wait: Duration | None = None
    """How long to wait for work, with `--next`."""


DEFAULTS = Options()


class RunResult(Value):
    """The result of a run."""

    claimed: Outcome
    outcome: Outcome
    """The task afterwards."""
    verb: str
    """What ended the lease: complete, submit, fail, block, release, handoff, drop; "" if lost."""
    status: int
    """The command's exit code, or the negative number of the signal that killed it."""
    by_command: bool = False
    """The command ended the lease itself."""
    stopped_by: int = 0
    """The signal that ended the run."""
    lost: Refusal | None = None
    tail: str = ""
    log: str = ""
    log_broken: bool = False


def run(
    board: Board,
    who: Identity,
    claim: c.Command,
    argv: Sequence[str],
    options: Options = DEFAULTS,
    on_claimed: Callable[[Outcome], object] = lambda _: None,
) -> RunResult:
    """Runs a command under the lease that `claim` acquires, by default with the ttl of a keeper.

    Raises `Refused` if nothing was run, or if the result could not be recorded. Only for the main thread of a
    process: it handles signals.
    """
    if not argv:
        raise bad_argument("no command given: put it after --")
    check_startable(argv[0])
    root, slash, _ = who.session.partition("/")
    if slash:
        key = claim.named().get("task", "")
        raise Refused(refusals.parent_only("run", key, who.session, root))
    if claim.named()["ttl"] is None:
        claim = claim.but(ttl=board.settings.ttl_keeper)
    with Inbox() as inbox:
        return TaskRun(board, who, inbox, options).run(claim, argv, on_claimed)


def check_startable(command: str) -> None:
    """Refuses a missing program before the claim: it is not worth an attempt."""
    if which(command) is None:
        shown = command or "nothing"
        raise refused("cannot_start", f"{shown} cannot be started: not found", command=command)


class TaskRun:
    """One run, from its claim to the end of its lease."""

    tied: Identity
    """The caller, with this process tied to its session. The result is recorded without it."""
    claimed: Outcome
    child: Child
    keeper: Keeper

    def __init__(self, board: Board, who: Identity, inbox: Inbox, options: Options) -> None:
        self.board, self.inbox, self.options = board, inbox, options
        self.machine = board.store.machine
        self.behind = LeaseProcess(self.machine.own_process(), self.machine.host(), runs=True)
        self.who = who.but(behind=self.behind)
        self.log = ""
        self.given_up: tuple[str, Outcome] | None = None
        self.lost: Refusal | None = None
        self.stopped_by = self.interrupted = 0
        self.hurry = False
        self.deadline: float | None = None

    def run(
        self, claim: c.Command, argv: Sequence[str], on_claimed: Callable[[Outcome], object]
    ) -> RunResult:
        since = self.machine.boottime()
        self.tied = self._tied(claim)
        self.claimed = self._claim(claim)
        try:
            on_claimed(self.claimed)
            self._end_former()
            self._start(argv, since)
        except BaseException as error:
            self._give_back(f"not started: {error}")
            raise
        try:
            self._supervise()
            return self._conclude()
        except Refused:
            raise
        except BaseException as error:
            self.child.end()
            self._give_back(f"dibs run failed: {error}")
            raise
        finally:
            self.child.end()
            self.keeper.stop()

    @property
    def task(self) -> Task:
        assert self.claimed.task is not None, "claimed just now"
        return self.claimed.task

    @property
    def lease(self) -> Lease:
        assert self.task.lease is not None, "claimed just now"
        return self.task.lease

    @property
    def token(self) -> Token:
        return self.task.token

    # Start.

    def _claim(self, claim: c.Command) -> Outcome:
        if not isinstance(claim, c.Next):
            return self.board.execute(self.tied, claim)
        from dibs.workers.next import next_task

        enough = lambda: self._should_end(0)  # noqa: E731
        return next_task(self.board, self.tied, claim, self.options.wait, enough=enough)

    def _tied(self, claim: c.Command) -> Identity:
        """Ties the session to this process, unless the session also holds other tasks."""
        named, place, process = claim.named().get("task"), self.who.place, self.behind.process
        if self.who.person or place is None or process.boot == UNKNOWN:
            return self.who
        with self.board.read() as tx:
            caller, is_new = caller_of(tx, self.who, self.board.settings)
            held = [] if is_new else tx.tasks_held_by(caller.actor.id, caller.session)
        keys = {task.key for task in held}
        return self.who if keys - {named} else self.who.but(place=place.but(process=process))

    def _end_former(self) -> None:
        """Kills the command of a former run, which may be dead or stopped while that still runs."""
        taken = self.claimed.taken
        if taken is None:
            return
        with self.board.read() as tx:
            former = tx.process_behind(self.task.id, taken.token)
            session = tx.session(taken.actor, taken.session or "")
        if former is None and session is not None and session.process is not None:
            former = LeaseProcess(session.process)
        if former is not None:
            end_survivors(self.machine, former, self.options.patience)

    def _start(self, argv: Sequence[str], since: int) -> None:
        key = self.task.key
        if self.options.log_dir:
            self.log = os.path.join(self.options.log_dir, f"{key}-{self.token}.log")
        try:
            self.child = Child(
                argv, self._environment(), self.options.out, self.log, self.inbox.put
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            where = getattr(error, "filename", None) or argv[0]
            raise refused(
                "cannot_start", f"{where} cannot be started: {why}", task=key, command=argv[0]
            ) from None
        # The session's other claims do not belong to this run, and a renewal names no process.
        who = self.who.but(place=None, behind=None)
        self.keeper = Keeper(
            self.board, who, key, self.token, self.lease.ttl, since, on_lost=self.inbox.put
        )
        self.keeper.start()
        self._record_command(self.child.pid)

    def _record_command(self, pid: int) -> None:
        """Records the command's process: a sweep can kill it, and nothing in it counts as a person."""
        command = self.machine.started(pid)
        if command is None:
            return
        self.behind = self.behind.but(
            command=pid, command_started=command, forks=self.machine.forks()
        )
        with suppress(Refused):  # then only its mark identifies it
            keep_command(self.board, self.task, self.behind)

    def _environment(self) -> dict[str, str]:
        """The identity, task and run for the command; a person's command is not an agent."""
        kept = {
            n: v
            for n, v in os.environ.items()
            if n not in ("DIBS_AGENT", "DIBS_SESSION", "DIBS_ITEM")
        }
        who = (
            {}
            if self.who.person
            else {"DIBS_AGENT": self.who.name, "DIBS_SESSION": self.who.session}
        )
        return (
            kept
            | who
            | {
                "DIBS_TASK": self.task.key,
                "DIBS_TOKEN": str(self.token),
                RUN: mark_of(self.behind.process),
            }
            | self._item()
        )

    def _item(self) -> dict[str, str]:
        """The item file, with its line in a file of many items, if the task has one."""
        backlog = self.board.backlog
        item = backlog.where(self.board, self.task) if backlog is not None else None
        return {} if item is None else {"DIBS_ITEM": item.full}

    # While it runs.

    def _supervise(self) -> None:
        """Waits until the command has ended and its output is written; kills it when the lease is lost."""
        while self.child.status() is None or (self.child.has_output and not self.hurry):
            left = None if self.deadline is None else self.deadline - time.monotonic()
            news = self.inbox.read(left)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.deadline = None
                self.child.signal(signal.SIGKILL)
            if isinstance(news, Refusal):
                self._lose(news)
            elif news is not None:
                self._on_signal(news)
        if self.hurry or (self.interrupted and self.child.status()):
            end_survivors(self.machine, self.behind, self.options.patience)
            self.child.signal(signal.SIGKILL)  # those without the mark that stayed in the group

    def _on_signal(self, number: int) -> None:
        if self.child.status() is not None:
            self.hurry = self.hurry or number in (*ENDING, *INTERRUPTING)
        elif number in ENDING:
            self.stopped_by = number
            self._end_group(number)
        elif number == signal.SIGTSTP:
            self.child.signal(signal.SIGSTOP)  # a group without a terminal ignores SIGTSTP
            os.kill(os.getpid(), signal.SIGSTOP)
        elif number == signal.SIGCONT:
            if self.keeper.check() is None:  # renews first, if overdue
                self.child.signal(number)
        elif number in PASSED_ON:
            self.child.signal(number)
            if number in INTERRUPTING:
                self.interrupted = number

    def _lose(self, why: Refusal) -> None:
        """Kills the command, unless it ended the lease itself: then it may go on."""
        if why.code in LOST:
            with suppress(Refused):
                self.given_up = self._own_end()
        if self.given_up is None:
            self.lost = self._as_lost(why)
            self._end_group(signal.SIGTERM)

    def _end_group(self, number: int) -> None:
        self.hurry = True
        self.child.signal(number)
        self.child.signal(signal.SIGCONT)
        if self.deadline is None:
            self.deadline = time.monotonic() + self.options.patience

    def _as_lost(self, why: Refusal) -> Refusal:
        if why.code in LOST:
            return why
        key, token = self.task.key, str(self.token)
        message = f"the lease {token} of {key} could not be kept: {why.message}"
        return Refusal("lease_lost", message, {"task": key, "stated": token, "cause": why.code})

    # End.

    def _conclude(self) -> RunResult:
        status = self.child.status()
        assert status is not None, "it has ended"
        if self.lost is None and self.given_up is None:
            command = self._last_command(status)
            try:
                outcome = self._record_result(command, status)
            except Refused as problem:
                if problem.code not in LOST:
                    raise
                self.lost = problem.refusal
            else:
                if self.given_up is None:
                    return self._ran(command.verb, outcome, status)
        if self.given_up is not None:
            verb, outcome = self.given_up
            return self._ran(verb, outcome, status).but(by_command=True)
        return self._ran("", self.claimed, status)

    def _ran(self, verb: str, outcome: Outcome, status: int) -> RunResult:
        return RunResult(
            claimed=self.claimed,
            outcome=outcome,
            verb=verb,
            status=status,
            stopped_by=self._stopped(status),
            lost=self.lost,
            tail=self.child.tail(),
            log=self.log,
            log_broken=self.child.log_broken,
        )

    def _stopped(self, status: int) -> int:
        """The signal that ended the run. A command that succeeds despite an interrupt was not stopped."""
        return self.stopped_by or (self.interrupted if status else 0)

    def _last_command(self, status: int) -> c.Command:
        key, token = self.task.key, self.token
        by = self._stopped(status)
        if by:
            note = f"interrupted by {signal.Signals(by).name}; the command {ended(status)}"
            return c.Release(key, token=token, note=note, tried=True)
        if status == 0:
            kind = c.Submit if self.options.submit else c.Complete
            return kind(key, token=token, note=self.options.note or f"the command {ended(status)}")
        tail = self.child.tail()
        why = f"{ended(status)}: {tail}" if tail else ended(status)
        if self.options.on_fail == c.Release.verb:
            return c.Release(key, token=token, note=why, rest=backoff_after(self.task.attempts))
        failed = c.Block if self.options.on_fail == c.Block.verb else c.Fail
        return failed(key, token=token, reason=why)

    def _record_result(self, command: c.Command, status: int) -> Outcome:
        """Records the result; retries until the lease would have expired, or a signal ends the wait.

        Never drops a result silently.
        """
        request, until = fresh_uid(), self.machine.boottime() + self.lease.ttl
        while True:
            try:
                self.given_up = self._own_end()
                if self.given_up is not None:
                    return self.given_up[1]
                return self.keeper.end(lambda: self.board.execute(self.who, command, request))
            except Refused as problem:
                if problem.code in LOST:
                    raise
                if problem.code not in TRY_AGAIN:
                    self._give_back(
                        f"the command {ended(status)}; {command.verb} was refused: {problem}"
                    )
                    raise
                if self.hurry or self.machine.boottime() >= until or self._should_end():
                    raise self._undone(problem.refusal, command, status) from None

    def _should_end(self, seconds: float = RETRY_PAUSE) -> bool:
        news = self.inbox.read(seconds)
        return isinstance(news, int) and news in (*ENDING, *INTERRUPTING)

    def _undone(self, why: Refusal, command: c.Command, status: int) -> Refused:
        key = self.task.key
        todo = f"the command {ended(status)}, and {command.verb} {key} was not recorded"
        facts = {"task": key, "token": str(self.token), "verb": command.verb, "status": status}
        return Refused(Refusal(why.code, f"{todo}: {why.message}", {**why.facts, **facts}))

    def _own_end(self) -> tuple[str, Outcome] | None:
        """How this session itself ended this lease, and the task since; or None."""
        with self.board.read() as tx:
            caller, _ = caller_of(tx, self.who, self.board.settings)
            task = tx.task(self.task.key)
            assert task is not None, "a task does not disappear"
            ended = next((e for e in tx.ended_leases(task.id) if e.token == self.token), None)
            if ended is None or ended.lost or ended.session != caller.session:
                return None
            return ended.cause, Outcome(caller, tx.now, task, actors=actors_named(tx, task))

    def _give_back(self, note: str) -> None:
        """Releases exactly this lease, by its token. Ignores refusals: the caller reports the first one."""
        rest = backoff_after(self.task.attempts) if self.options.on_fail == c.Release.verb else None
        command = c.Release(
            self.task.key, token=self.token, note=note[:2000], rest=rest, tried=True
        )
        with suppress(Refused):
            self.board.execute(self.who, command)


def ended(status: int) -> str:
    """Completes a sentence that starts with "the command"."""
    return (
        f"exited with {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"
    )


def backoff_after(attempts: int) -> Duration:
    """Backoff after a failed attempt: 1, 2, 4, ... minutes, at most an hour.

    With jitter, so that tasks that failed together are not retried together.
    """
    from random import uniform

    longest = min(HOUR, MINUTE << min(max(attempts, 1) - 1, 6))
    return Duration(round(longest * uniform(1 - JITTER, 1 + JITTER)))  # noqa: S311 - no secret
