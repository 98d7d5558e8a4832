"""Read and write transactions: every operation on a board, the same for both databases.

A store opens the transaction, acquires the write lock, reads the clock, and passes a `ReadTransaction` or
a `WriteTransaction` to the board. Only these two run SQL, by the query names in `queries.sql`.
"""

from __future__ import annotations

from dibs.domain import ledger
from dibs.domain.events import tasks as e
from dibs.domain.events.base import USAGE, ended_lease, ended_stint, evolve
from dibs.domain.ledger import Entry
from dibs.domain.model import (
    COMPLETE,
    REFUSALS_KEPT,
    REQUEST_KEPT,
    Actor,
    ActorId,
    Caller,
    KeptProcess,
    LoggedRefusal,
    Session,
    Task,
    TaskId,
    TaskKey,
    Token,
    folded_key,
    folded_name,
)
from dibs.domain.refusals import unreadable
from dibs.domain.values import DAY, HOUR, MINUTE, Duration, Instant, Value
from dibs.storage import queries
from dibs.storage.history import BATCH, LedgerQueries
from dibs.storage.queries import ARRIVING, BoardRow, move_token_hash
from dibs.storage.readiness import ReadinessQueries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from dibs.domain.events.board import Approved
    from dibs.domain.model import LeaseProcess, Process, State

    class Link(Protocol):
        """The database inside a transaction: runs the queries and changes named in `queries.sql`."""

        def ask(self, query: str, **params: Any) -> list[queries.Row]: ...

        def change(self, query: str, params: dict[str, Any]) -> None:
            """Takes ownership of `params`: the link adds its own parameters to it."""
            ...

        def stream(self, query: str, **params: Any) -> Iterator[queries.Row]:
            """The same rows as `ask`, fetched in batches."""
            ...


EXPIRES_REQUESTS_EVERY = MINUTE
"""How often expired request ids are deleted."""

PROCESSES_KEPT, PRUNES_EVERY = Duration(30 * DAY), HOUR
"""How long the process of an ended lease is kept, and how often older ones are deleted.

What a run started is recognised by its row, also after its lease ended.
"""


class Request(Value):
    """The digest of a request and its stored answer, kept under the request id."""

    digest: str
    answer: str


class ReadTransaction(ReadinessQueries, LedgerQueries):
    """A consistent snapshot of the board at one instant."""

    def __init__(
        self,
        link: Link,
        board: BoardRow,
        now: Instant,
        *,
        skewed: bool,
        actors: dict[ActorId | str, Actor] | None = None,
        rises: bool = False,
        new_home: str = "",
    ) -> None:
        """`rises`: `now` is raised to the last renewal of every task that is read.
        `new_home`: what happened to the server (restore, failover) since the last new epoch; "" if nothing.
        """
        self._rises = rises
        self.new_home = new_home
        self._ask = link.ask
        self._put = link.change
        self._stream = link.stream
        self._read = self.board = board
        self.now = now
        self.skewed = skewed
        self._actors: dict[ActorId | str, Actor] = {} if actors is None else actors

    # Actors and sessions.

    def actor(self, actor_id: ActorId) -> Actor:
        if actor_id not in self._actors:
            row = self._one("actor", id=actor_id)
            if row is None:
                raise unreadable(f"actor {actor_id}, who is not registered")
            self._actors[actor_id] = queries.actor_of(row)
        return self._actors[actor_id]

    def names(self) -> dict[ActorId, list[str]]:
        """Name and aliases of each actor."""
        found: dict[ActorId, list[str]] = {}
        for name, actor in self._ask("names"):
            found.setdefault(actor, []).append(name)
        return found

    def aliases(self, actor: Actor) -> tuple[str, ...]:
        names = self._ask("names_of_actor", actor=actor.id)
        return tuple(name for (name,) in names if folded_name(name) != folded_name(actor.name))

    def session(self, actor: ActorId, name: str) -> Session | None:
        row = self._one("session", actor=actor, name=name)
        return queries.session_of(row) if row else None

    def sessions_of_process(self, boot: str, namespace: str, pid: int) -> list[Session]:
        found = self._ask("sessions_of_process", boot=boot, namespace=namespace, pid=pid)
        return [queries.session_of(row) for row in found]

    # Tasks.

    def task(self, key: TaskKey) -> Task | None:
        row = self._one("task_by_key", folded=folded_key(key))
        task = queries.task_of(row) if row else None
        if self._rises and task is not None and task.lease is not None:
            # A renewal does not raise the floor of the board's clock.
            self.now = max(self.now, task.lease.renewed)
        return task

    def keys_of(self, tasks: set[TaskId]) -> dict[TaskId, TaskKey]:
        return {task: self._ask("key_of_task", id=task)[0][0] for task in tasks}

    def task_of_origin(self, channel: str, ref: str) -> Task | None:
        row = self._one("task_by_origin", channel=channel, origin_ask_ref=ref)
        return queries.task_of(row) if row else None

    def knows_uid(self, uid: str) -> bool:
        return self._one("task_by_uid", uid=uid) is not None

    def tasks_of(self, channel: str) -> Iterator[Task]:
        """All tasks whose origin has this channel."""
        last = ""
        while page := self._ask("tasks_of_channel", channel=channel, after=last, limit=BATCH):
            tasks = [queries.task_of(row) for row in page]
            yield from tasks
            last = tasks[-1].origin_ask_ref or ""

    def task_keys(self) -> Iterator[TaskKey]:
        """Keys of all tasks, oldest first."""
        last = TaskId(0)
        while page := self._ask("keys", after=last, limit=BATCH):
            for _, key in page:
                yield key
            last = TaskId(queries.next_page_key(last, page[-1][0]))

    def keys_renewed_after(self, instant: Instant) -> list[TaskKey]:
        return sorted(key for (key,) in self._ask("keys_renewed_after", instant=instant))

    def tasks_in(self, state: State, limit: int) -> list[Task]:
        return [
            queries.task_of(row) for row in self._ask("tasks_in_state", state=state, limit=limit)
        ]

    def tasks_held(self, limit: int) -> list[Task]:
        return [queries.task_of(row) for row in self._ask("tasks_held", limit=limit)]

    def tasks_worked_on_by(self, actor: ActorId) -> list[Task]:
        """Tasks on which the actor has an open stint."""
        found = self._ask("tasks_worked_on_by", actor=actor)
        return sorted((queries.task_of(row) for row in found), key=lambda task: task.id)

    def counts(self) -> dict[str, int]:
        return dict(self._ask("count_tasks"))

    def request(self, actor: ActorId, request_id: str) -> Request | None:
        row = self._one("request", actor=actor, id=request_id)
        return Request(*row) if row else None


class WriteTransaction(ReadTransaction):
    """The only writer: commits everything or nothing."""

    request_id: str | None = None
    """The request id stored with its events, so that they can be found when no answer was stored."""
    _reworded: frozenset[TaskId] = frozenset()
    """Tasks whose terms or scope changed and are not saved yet."""

    def _change(self, query: str, **params: Any) -> None:
        self._put(query, params)

    def touch(self) -> None:
        """Writes the board's row, so that a replayed answer too waits until it is replicated."""
        self._change("touch_board")

    def register(self, actor: Actor) -> None:
        self._actors = {}
        self._change("save_actor", **queries.actor_columns(actor))
        self._change("add_name", folded=folded_name(actor.name), name=actor.name, actor=actor.id)
        self.board = self.board.but(actors=actor.id)

    def change_actor(self, actor: Actor, aliases: tuple[str, ...]) -> None:
        self._actors = {}
        self._change("save_actor", **queries.actor_columns(actor))
        self._change("remove_names_of_actor", actor=actor.id)
        for name in (actor.name, *aliases):
            self._change("add_name", folded=folded_name(name), name=name, actor=actor.id)

    def knows(self, session: Session) -> bool:
        """Whether the session is stored as given. Once watched, it stays watched, whoever calls.

        Only `set_background` changes whether it has background work.
        """
        known = self.session(session.actor, session.name)
        if known is None:
            return False
        watched = session.watched or known.watched
        return session.but(watched=watched, background=known.background) == known

    def keep_session(self, session: Session) -> None:
        if not self.knows(session):
            self._change("save_session", now=self.now, **queries.session_columns(session))

    def set_background(self, session: Session) -> None:
        """Records whether the session, which need not be known yet, has background work."""
        if self.session(session.actor, session.name) is None:
            self.keep_session(session)
        background = int(session.background)
        self._change(
            "set_background", actor=session.actor, name=session.name, background=background
        )

    def add_task(self, added: e.Added, caller: Caller) -> tuple[Task, Entry]:
        """Inserts a task's row and its first event."""
        task = added.task(TaskId(self.board.tasks + 1), caller.actor.id, self.now)
        entry = self._chained(task, added, caller)
        task = task.but(head=entry.digest, events=entry.position)
        self._put("add_task", queries.task_columns(task))
        self._keep(entry, added)
        if task.item is not None:
            self._save_item(task)
        self.board = self.board.but(tasks=task.id)
        for key in added.after:
            self._depend(task, key)
        return task, entry

    def give_out_key(self, number: int) -> None:
        self.board = self.board.but(keys=number)

    def append(self, task: Task, event: e.TaskEvent, caller: Caller) -> tuple[Task, Entry]:
        """Applies an event to a task and appends it to the ledger; `save` writes the task's row."""
        before, task = task, evolve(task, event, self.now)
        if (before.state == COMPLETE) != (task.state == COMPLETE):
            by = -1 if task.state == COMPLETE else 1
            self._change("settle_dependants", task=task.id, by=by)
        task, entry = self._enter(task, event, caller)
        if task.item != before.item:
            self._save_item(task)
        if (before.terms, before.scope) != (task.terms, task.scope):
            self._reworded |= {task.id}
        self._keep_beside(task, before, event, entry.seq)
        return task, entry

    def _keep_beside(self, task: Task, before: Task, event: e.TaskEvent, seq: int) -> None:
        """Writes what an event changes outside the task's row: ended leases, stints, dependencies."""
        over = ended_lease(event, self.now, seq)
        if over is not None:
            self._put("add_ended_lease", queries.ended_lease_columns(task.id, over))
        stint = ended_stint(event, before, seq)
        if stint is not None:
            self._change("add_stint", task=task.id, **stint.named())
        if event.verb == USAGE:
            for table in ("save_usage", "save_usage_of_lease"):
                self._change(table, task=task.id, **event.named())
        if isinstance(event, e.Depended):
            self._change_dependencies(task, event)
        elif isinstance(event, e.Redacted):
            self._change("redact_note", seq=event.of)
        elif isinstance(event, e.Allowed):
            self._change(
                "add_allowance",
                seq=seq,
                task=task.id,
                paths=queries.listed(event.paths),
                actor=event.to,
                until=event.until,
            )
        elif isinstance(event, e.Acknowledged):
            lost = event.lost
            self._change(
                "acknowledge_lease",
                task=task.id,
                token_epoch=lost.epoch,
                token_number=lost.number,
            )

    def _change_dependencies(self, task: Task, event: e.Depended) -> None:
        for key in event.on:
            self._depend(task, key)
        for key in event.not_on:
            self._change("remove_dependency", task=task.id, on=self.id_of(key))
        self._change("count_waits", task=task.id)

    def _save_item(self, task: Task) -> None:
        """Saved apart from the rest of the row: only tasks from files have an item, and it rarely changes."""
        assert task.item is not None, "a file does not leave its task"
        text, gate, locked = task.item
        self._change("save_item", id=task.id, text=text, gate=gate, locked=locked)

    def _depend(self, task: Task, key: TaskKey) -> None:
        self._change("add_dependency", task=task.id, on=self.id_of(key))

    def save(self, task: Task) -> None:
        """Updates the row only in the version that was read (optimistic lock, the second one)."""
        self._put("save_task", queries.work_columns(task))
        if task.id in self._reworded:
            self._put("save_terms", queries.task_columns(task))

    def append_to_board(self, event: e.Event, caller: Caller) -> Entry:
        """Appends an event about the board itself."""
        board = self.board
        entry = self._entry(None, board.events + 1, board.head, event, caller, None)
        self._keep(entry, event)
        self.board = self.board.but(head=entry.digest, events=entry.position)
        return entry

    def add_approval(self, seq: int, approved: Approved) -> None:
        self._change("add_approval", seq=seq, **approved.named())

    def reopen(self, approval: int, seq: int) -> None:
        self._change("reopen_approval", seq=approval, reopened=seq)

    def pause(self, by: ActorId | None, why: str) -> None:
        self.board = self.board.but(paused_by=by, paused_why=why)

    def save_settings(self, text: str) -> None:
        """Stores the settings of a board on a server."""
        self._change("save_settings", settings=text)

    def begin_epoch(self, epoch: int) -> None:
        self.board = self.board.but(epoch=epoch)
        if self.new_home:
            self._change("save_home")

    def fence(self, moved_to: str, word: str) -> None:
        """Marks the board as moved away, with the move token that activates the copy there."""
        self.board = self.board.but(moved_to=moved_to, arriving=0, ticket=word)

    def arriving_from(self, source: str, word: str) -> None:
        """Marks this copy as inactive until a client forwarded from `source` presents the move token."""
        self.board = self.board.but(
            moved_to=source, arriving=ARRIVING, ticket=move_token_hash(word)
        )

    def is_here(self) -> None:
        """Marks this copy as the active board."""
        self.board = self.board.but(moved_to="", arriving=0, ticket="")

    def shift_leases(self, by: Duration) -> None:
        self._change("tasks_shifted", by=by)

    def keep_request(self, actor: ActorId, request_id: str, request: Request) -> None:
        if self.now // EXPIRES_REQUESTS_EVERY > self._read.floor // EXPIRES_REQUESTS_EVERY:
            self._change("forget_requests", before=self.now - REQUEST_KEPT)
        self._change("add_request", actor=actor, id=request_id, at=self.now, **request.named())

    def log_refusal(self, refusal: LoggedRefusal) -> None:
        self._change("add_refusal", **refusal.named())
        self._change("forget_refusals", kept=REFUSALS_KEPT)

    def finish(self, *, changed: bool = False) -> None:
        """Saves the board's row if the transaction changed anything, and raises the floor of the clock."""
        board, read = self.board, self._read
        if changed or board != read:
            self.board = board.but(floor=self.now)
            if board.but(seq=read.seq) == read:
                self._change("save_seq", floor=self.now, seq=board.seq)
            else:
                self._change("save_board", **self.board.named())
            if self.now // PRUNES_EVERY > read.floor // PRUNES_EVERY:
                self._change("prune_lease_processes", before=self.now - PROCESSES_KEPT)
        if (board.moved_to, board.arriving) != (read.moved_to, read.arriving):
            place = {"moved_to": board.moved_to, "arriving": board.arriving}
            self._change("save_place", ticket=board.ticket, **place)
        if (board.paused_by, board.paused_why) != (read.paused_by, read.paused_why):
            self._change("save_pause", paused_by=board.paused_by, paused_why=board.paused_why)

    # Processes tied to leases; `ReadinessQueries` reads them with the leases.

    def keep_process(self, task: Task, caller: Caller) -> None:
        """Ties the caller's process to its lease."""
        assert caller.behind is not None, "called only if one was stated"
        kept = KeptProcess(task.token, caller.behind, caller.actor.id, caller.holding_session)
        self._put("save_lease_process", queries.kept_process_columns(task.id, kept))

    def keep_command(self, task: TaskId, token: Token, behind: LeaseProcess) -> None:
        """Stores the command that the lease's process started, if it is still the same process."""
        started = {name: behind.named()[name] for name in ("command", "command_started", "forks")}
        self._put("save_command", {**lease_process_key(task, token, behind.process), **started})

    def end_process(self, task: TaskId, token: Token, process: Process) -> None:
        """Marks a process as no longer working under a lease, if it was the one tied to it."""
        self._put("end_lease_process", lease_process_key(task, token, process))

    # The ledger.

    def _enter(self, task: Task, event: e.Event, caller: Caller) -> tuple[Task, Entry]:
        entry = self._chained(task, event, caller)
        self._keep(entry, event)
        return task.but(head=entry.digest, events=entry.position), entry

    def _chained(self, task: Task, event: e.Event, caller: Caller) -> Entry:
        """The next entry of a task's hash chain."""
        return self._entry(task.id, task.events + 1, task.head, event, caller, task.token)

    def _entry(
        self, task: TaskId | None, position: int, head: str, event: e.Event, caller: Caller,
        token: Token | None,
    ) -> Entry:  # fmt: skip
        cause = event.cause if getattr(event, "ending", None) else ""
        return ledger.chained(
            head, self.board.seq + 1, task, position, self.now, caller.actor.id,
            caller.session, token, event.verb, cause, ledger.encode(event),
        )  # fmt: skip

    def _keep(self, entry: Entry, event: e.Event) -> None:
        """Inserts the ledger entry and the text of its note. The task's row must exist: both reference it."""
        self._put("add_event", queries.entry_columns(entry, self.request_id))
        text: str = getattr(event, "note", "")
        if text:
            kind = ledger.kind_of_note(event)
            self._change("add_note", seq=entry.seq, task=entry.task, kind=kind, text=text)
        self.board = self.board.but(seq=entry.seq)


def lease_process_key(task: TaskId, token: Token, process: Process) -> queries.Columns:
    """The key of a row: the lease, and the process expected behind it."""
    return {
        "task": task,
        "token_epoch": token.epoch,
        "token_number": token.number,
        "pid": process.pid,
        "pid_started": process.started,
    }
