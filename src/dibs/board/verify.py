"""Verify a board: recompute the ledger, compare it with the rows, and check everything else for `doctor`."""

from __future__ import annotations

from hashlib import sha256

from dibs.board import stints
from dibs.board.execute import Board
from dibs.board.facts.task import found
from dibs.domain import ledger
from dibs.domain.checks import NUMBER_DIGITS, quoted
from dibs.domain.events import board as board_events
from dibs.domain.events import tasks as e
from dibs.domain.ledger import Entry
from dibs.domain.model import Actor, ActorId, Task
from dibs.domain.refusals import Refused, bad_argument
from dibs.domain.values import MINUTE, Duration, Instant, Value, iso, rough_duration
from dibs.storage.store import Finding, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dibs.domain.refusals import Refusal
    from dibs.storage.transaction import ReadTransaction


class Verification(Value):
    """The result of verifying the ledger."""

    events: int
    tasks: int
    faults: tuple[str, ...]


class Checkup(Value):
    """All results that `doctor` reports."""

    uid: str
    where: str
    health: tuple[Finding, ...]
    ledger: Verification
    orphans: tuple[str, ...]
    now: Instant
    wall: Instant
    skewed: bool
    future: tuple[str, ...]

    @property
    def damaged(self) -> bool:
        """Whether stored data differs from what was written."""
        found = any(finding.damage for finding in self.health)
        return bool(found or self.ledger.faults or self.orphans)

    @property
    def off(self) -> Duration:
        """The offset of this machine's clock from the board's."""
        return Duration(self.wall - self.now)


def verify(board: Board) -> Verification:
    """Recomputes every chain, folds every task's events, and compares with the rows."""
    with board.read() as tx:
        return verified(tx)


def verified(tx: ReadTransaction) -> Verification:
    faults: list[str] = []
    own = list(tx.events_of_board())
    faults += chain_faults(own, tx.board.head, tx.board.events)
    faults += readable(lambda: actor_faults(own, tx), "the board: its actors")
    clock = [entry for entry in own if entry.verb == board_events.ClockSet.verb]
    tasks = events = 0
    for key in tx.task_keys():
        tasks += 1
        faults += readable(lambda key=key: task_faults(found(tx, key), tx, clock), key)  # type: ignore[misc]
    count, highest = tx.count_events()
    events = tx.count_task_events() + len(own)
    if not count == highest == tx.board.seq == events:
        faults.append(
            f"the ledger has {count} events up to number {highest}; the board counts "
            f"{tx.board.seq}, and its tasks {events}"
        )
    faults += counter_faults(tx, epoch_in(own))
    faults += [f"{key}: its open dependencies are miscounted" for key in tx.wrong_waits()]
    faults += readable(lambda: pause_faults(own, tx), "the board: its pause")
    faults += readable(lambda: stints.faults(own, tx), "the board: its approved periods")
    faults += time_faults(tx.events())
    faults += tx.strays()
    faults += [f"the stint {number} has no task" for number in tx.stray_stints()]
    return Verification(count, tasks, tuple(faults))


def readable(look: Callable[[], list[str]], what: str) -> list[str]:
    """The faults that `look` finds, or that the data is unreadable."""
    try:
        return look()
    except (Refused, ValueError, AssertionError) as error:
        return [f"{what}: it cannot be read ({error})"]


def epoch_in(own: list[Entry]) -> int:
    """The epoch according to the board's own events; 0 if they are unreadable,
    which is reported elsewhere.
    """
    raised = [entry.facts for entry in own if entry.verb == board_events.EpochRaised.verb]
    try:
        return int(ledger.decode(board_events.EpochRaised.verb, raised[-1]).epoch) if raised else 1  # type: ignore[attr-defined]
    except Refused:
        return 0


def counter_faults(tx: ReadTransaction, epoch: int) -> list[str]:
    """Checks the board's counters and its clock's floor against the rows, its epoch against the ledger."""
    board, highest = tx.board, tx.highest()
    lowest = max((entry.at for entry in tx.entries(board.seq, 1)), default=board.floor)
    checks = {
        "tasks": board.tasks == highest.task,
        "actors": board.actors == highest.actor,
        "epoch": board.epoch == epoch >= highest.epoch,
        "keys": board.keys <= board.tasks,
        "clock's floor": lowest <= board.floor <= max(board.created, highest.instant),
    }
    return [f"the board: its {name} cannot be right" for name, fits in checks.items() if not fits]


def task_faults(task: Task, tx: ReadTransaction, clock: list[Entry]) -> list[str]:
    entries = list(tx.events_of(task.id))
    folded = ledger.fold(entries, clock)
    if folded is None:
        return [f"{task.key}: its first event is missing"]
    faults = list(folded.faults) + ledger.differences(task, folded.task)
    if tuple(tx.ended_leases(task.id)) != folded.ended:
        faults.append("its ended leases are not those of the ledger")
    if tuple(tx.stints_of(task.id)) != folded.stints:
        faults.append("its stints are not those of the ledger")
    if {one.key for one in tx.dependencies(task.id)} != folded.after:
        faults.append("its dependencies are not those of the ledger")
    if tx.allowances_of(task.id) != allowed_in(entries):
        faults.append("its allowances are not those of the ledger")
    faults += note_faults(entries, tx, task)
    return [f"{task.key}: {fault}" for fault in faults]


def allowed_in(entries: list[Entry]) -> list[tuple[int, tuple[str, ...], ActorId, Instant]]:
    events = ((entry.seq, entry.event) for entry in entries if entry.verb == e.Allowed.verb)
    return [
        (seq, one.paths, one.to, one.until) for seq, one in events if isinstance(one, e.Allowed)
    ]


def note_faults(entries: list[Entry], tx: ReadTransaction, task: Task) -> list[str]:
    """Checks the text of each note against its digest in the ledger; only a redacted note has no text."""
    notes = {note.seq: note for note in tx.notes(task.id)}
    redacted = {entry.event.of for entry in entries if isinstance(entry.event, e.Redacted)}
    faults = []
    for entry in entries:
        digest, kept = getattr(entry.event, "note", ""), notes.pop(entry.seq, None)
        if kept is None:
            faults += [f"the text of event {entry.seq} is missing"] if digest else []
            continue
        if kept.kind != ledger.kind_of_note(entry.event):
            faults.append(f"the text of event {entry.seq} is of another kind")
        if not digest or (kept.text and ledger.digest_of(kept.text) != digest):
            faults.append(f"the text of event {entry.seq} was changed")
        elif (not kept.text) != (entry.seq in redacted):
            why = "was redacted, and is there" if kept.text else "is missing"
            faults.append(f"the text of event {entry.seq} {why}")
    return faults + [f"a text belongs to event {seq}, which has none" for seq in notes]


def chain_faults(own: list[Entry], head: str, count: int) -> list[str]:
    """Checks the chain of the board's own events."""
    faults, last = [], ""
    for position, entry in enumerate(own, 1):
        if entry.position != position or entry.digest != ledger.chain(last, entry):
            faults.append(f"the board: event {entry.seq} does not follow from the one before")
        last = entry.digest
    if last != head or len(own) != count:
        faults.append("the board: its chain of events does not end where its row says")
    return faults


def actor_faults(own: list[Entry], tx: ReadTransaction) -> list[str]:
    """Checks the actors against the board's events."""
    recorded: dict[ActorId, Actor] = {}
    aliases: dict[ActorId, tuple[str, ...]] = {}
    for entry in own:
        event = entry.event
        if isinstance(event, board_events.ActorRegistered):
            recorded[event.id] = Actor(event.id, event.name, event.kind, event.tier)
        elif isinstance(event, board_events.ActorChanged):
            fields = event.named()
            aliases[event.id] = fields.pop("aliases")
            recorded[event.id] = Actor(**fields)
    if recorded != tx.actors():
        return ["the board: its actors are not those of the ledger"]
    names = tx.names()
    wrong = [
        actor.name
        for actor in recorded.values()
        if sorted(names.get(actor.id, [])) != sorted((actor.name, *aliases.get(actor.id, ())))
        or any(tx.actor_named(name) != actor for name in names[actor.id])
    ]
    return [f"the board: the names of {name} are not those of the ledger" for name in wrong]


def pause_faults(own: list[Entry], tx: ReadTransaction) -> list[str]:
    """Checks who paused the board and why against its events."""
    by, why = None, ""
    for entry in own:
        event = entry.event
        if isinstance(event, board_events.Paused):
            by, why = entry.actor, event.reason
        elif isinstance(event, board_events.Unpaused):
            by, why = None, ""
    fits = (tx.board.paused_by, tx.board.paused_why) == (by, why)
    return [] if fits else ["the board: its pause is not that of the ledger"]


def time_faults(entries: Iterable[Entry]) -> list[str]:
    """Checks that instants never fall between two clock events."""
    faults, last = [], None
    for entry in entries:
        if last is not None and entry.at < last and entry.verb != board_events.ClockSet.verb:
            faults.append(f"event {entry.seq} is earlier than the one before")
        last = entry.at
    return faults


def checkup(board: Board) -> Checkup:
    board.follow_if_moved()
    store = board.store
    health = store.health()
    with board.read() as tx:
        wall = store.machine.wall()
        future = tuple(tx.keys_renewed_after(tx.now))
        return Checkup(
            uid=tx.board.uid,
            where=store.where,
            health=health,
            ledger=verified(tx),
            orphans=tuple(tx.orphans()),
            now=tx.now,
            wall=wall,
            skewed=tx.skewed,
            future=future,
        )


# Findings of `dibs doctor`.


CLOCK_TOLERANCE = 5 * MINUTE

SERVER_HINTS = {
    "unreachable": "check that it runs, and that this machine can reach it",
    "not_let_in": "check the role, its password and the database in the address",
    "unaccepted_server": "a person accepts it: dibs config --adopt",
    "moved_to_unaccepted": "a person accepts it: dibs config url ADDRESS",
    "not_granted": "ask the owner of the database: dibs board grant ROLE",
}
"""Why a server cannot be reached or used, and where to look."""


def findings(board: Board) -> list[Finding]:
    seen = checkup(board)
    ledger = seen.ledger
    far = abs(seen.off) > CLOCK_TOLERANCE
    return [
        Finding("board", f"{seen.uid} in {seen.where}"),
        *seen.health,
        check(
            "ledger",
            "; ".join(ledger.faults[:10])
            or f"sound; events: {ledger.events}, tasks: {ledger.tasks}",
            fine=not ledger.faults,
        ),
        check("orphans", "; ".join(seen.orphans) or "none", fine=not seen.orphans),
        check(
            "clock",
            f"{iso(seen.now)}; this machine's is {rough_duration(seen.off)} "
            f"{'ahead' if seen.off >= 0 else 'behind'}"
            + ("; it is implausible, and ignored" if seen.skewed else ""),
            fine=not seen.skewed and not far,
            level="wrong" if seen.skewed else "note",
        ),
        check(
            "leases",
            f"in the future: {', '.join(seen.future)}" if seen.future else "none is in the future",
            fine=not seen.future,
        ),
        Finding("backups", "no record of them is kept; create one: dibs board backup FILE", "note"),
    ]


def of_settings(ignored: str) -> Finding:
    """A finding that settings were found in a file where they have no effect."""
    return Finding("settings", ignored, "note")


def of_server(refusal: Refusal) -> Finding | None:
    """A finding that the server cannot be reached or used, if the refusal is about that."""
    look = SERVER_HINTS.get(refusal.code)
    return None if look is None else check("server", f"{refusal.message}; {look}", fine=False)


# The head of the ledger: one digest over all events, to be stored where nobody can change both.
#
# The chains of a ledger prove its rows, but whoever can write the file can recompute them, or cut off the last
# events with everything that followed from them. A head that was stored elsewhere detects both. It is computed
# on demand: no change of the board pays for it.


DIGITS = frozenset("0123456789abcdef")
LENGTH = 64


class Head(Value):
    """A digest of every event up to the number `seq`, and of their order."""

    seq: int
    digest: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.digest}"


class Compared(Value):
    """A stored head, and how the ledger contradicts it; "" if it matches."""

    head: Head
    fault: str = ""


class Proof(Value):
    """The ledger verified by itself, and against stored heads."""

    found: Verification
    compared: tuple[Compared, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        return self.found.faults + tuple(one.fault for one in self.compared if one.fault)


def head(board: Board) -> Head:
    """The head of the ledger as it is now. The next event changes it."""
    with board.read() as tx:
        *_, last = heads(tx, ())
        return last


def prove(board: Board, kept: tuple[Head, ...]) -> Proof:
    """Verifies the ledger, and that it continues from the state in which these heads were taken."""
    with board.read() as tx:
        return Proof(verified(tx), tuple(compare(tx, kept)))


def heads(tx: ReadTransaction, wanted: Iterable[int]) -> Iterator[Head]:
    """The heads of the ledger at these event numbers, as far as it reaches; the
    last one is the current head.
    """
    stops, last = sorted(set(wanted), reverse=True), 0
    digest = sha256(f"dibs 1\n{tx.board.uid}\n".encode())
    for seq, of_event in tx.digests():
        while stops and stops[-1] < seq:
            yield Head(stops.pop(), digest.hexdigest())
        digest.update(f"{seq} {of_event}\n".encode())
        last = seq
    yield Head(last, digest.hexdigest())


def compare(tx: ReadTransaction, kept: tuple[Head, ...]) -> Iterator[Compared]:
    """Compares in order of their numbers: the first mismatch shows between which events to look."""
    found = {one.seq: one.digest for one in heads(tx, (one.seq for one in kept))}
    last = max(found)
    fits = 0
    for one in sorted(kept, key=lambda one: one.seq):
        if one.seq > last:
            yield Compared(
                one,
                f"the ledger ends with event {last}, and the kept head is of event {one.seq}: "
                "events are missing at its end",
            )
        elif found[one.seq] != one.digest:
            since = f"after event {fits} and " if fits else ""
            yield Compared(
                one,
                f"the kept head of event {one.seq} does not fit: the ledger was rewritten "
                f"{since}not after event {one.seq}, or this is another board",
            )
        else:
            fits = one.seq
            yield Compared(one)


def parse_heads(text: str) -> tuple[Head, ...]:
    """Parses printed heads, one per line; skips empty lines and those that begin with #."""
    lines = (line.strip() for line in text.splitlines())
    heads = tuple(parse_head(line) for line in lines if line and not line.startswith("#"))
    if not heads:
        raise bad_argument("there is no kept head in it; dibs log --head prints one")
    return heads


def parse_head(text: str) -> Head:
    seq, _, digest = text.partition(":")
    if not is_head(text):
        raise bad_argument(f"{quoted(text)} is not a head of a ledger; dibs log --head prints one")
    return Head(int(seq), digest)


def is_head(text: str) -> bool:
    seq, _, digest = text.partition(":")
    number = seq.isascii() and seq.isdigit() and len(seq) <= NUMBER_DIGITS
    return number and len(digest) == LENGTH and set(digest) <= DIGITS
