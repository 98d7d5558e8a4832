"""The head of a board: one digest over all of its ledger, to be kept where nobody can change both.

The chains of a ledger prove its rows, but who can write the file can compute them anew, or take away
the last events with all that followed from them. A head that was kept elsewhere finds either.
It is computed when it is asked for: no change of the board pays for it.
"""

from __future__ import annotations

from hashlib import sha256

from dibs.board.execute import Board
from dibs.board.upkeep import Verification, verified
from dibs.core.checks import NUMBER_DIGITS, quoted
from dibs.core.refusals import bad_argument
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.stores.transaction import ReadTransaction

DIGITS = frozenset("0123456789abcdef")
LENGTH = 64


class Head(Value):
    """A digest that follows from every event up to the number `seq`, and from their order."""

    seq: int
    digest: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.digest}"


class Compared(Value):
    """A kept head, and what it says against the ledger: nothing, if it fits."""

    head: Head
    fault: str = ""


class Proof(Value):
    """The ledger by itself, and against heads that were kept."""

    found: Verification
    compared: tuple[Compared, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        return self.found.faults + tuple(one.fault for one in self.compared if one.fault)


def head(board: Board) -> Head:
    """Of the ledger as it is now. The next event gives another."""
    with board.read() as tx:
        *_, last = heads(tx, ())
        return last


def prove(board: Board, kept: tuple[Head, ...]) -> Proof:
    """Whether the ledger is sound, and goes on from where it was when these heads were taken."""
    with board.read() as tx:
        return Proof(verified(tx), tuple(compare(tx, kept)))


def heads(tx: ReadTransaction, wanted: Iterable[int]) -> Iterator[Head]:
    """The heads that the ledger had at these numbers, as far as it reaches; the last one is its own."""
    stops, last = sorted(set(wanted), reverse=True), 0
    digest = sha256(f"dibs 1\n{tx.board.uid}\n".encode())
    for seq, of_event in tx.digests():
        while stops and stops[-1] < seq:
            yield Head(stops.pop(), digest.hexdigest())
        digest.update(f"{seq} {of_event}\n".encode())
        last = seq
    yield Head(last, digest.hexdigest())


def compare(tx: ReadTransaction, kept: tuple[Head, ...]) -> Iterator[Compared]:
    """In the order of their numbers: the first that does not fit says between which events to look."""
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


def parsed(text: str) -> tuple[Head, ...]:
    """Heads as they were printed, one in a line; empty lines and those that begin with # are not."""
    lines = (line.strip() for line in text.splitlines())
    heads = tuple(one(line) for line in lines if line and not line.startswith("#"))
    if not heads:
        raise bad_argument("there is no kept head in it; dibs log --head prints one")
    return heads


def one(text: str) -> Head:
    seq, _, digest = text.partition(":")
    if not is_head(text):
        raise bad_argument(f"{quoted(text)} is not a head of a ledger; dibs log --head prints one")
    return Head(int(seq), digest)


def is_head(text: str) -> bool:
    seq, _, digest = text.partition(":")
    number = seq.isascii() and seq.isdigit() and len(seq) <= NUMBER_DIGITS
    return number and len(digest) == LENGTH and set(digest) <= DIGITS
