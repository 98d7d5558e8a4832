"""The head of the ledger: one digest over all events, to be stored where nobody can change both.

The chains of a ledger prove its rows, but whoever can write the file can recompute them,
or cut off the last events with everything that followed from them. A head that was stored
elsewhere detects both. It is computed on demand: no change of the board pays for it.
"""

from __future__ import annotations

from hashlib import sha256

from dibs.board.execute import Board
from dibs.board.verify import Verification, verified
from dibs.domain.checks import NUMBER_DIGITS, quoted
from dibs.domain.refusals import bad_argument
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dibs.storage.transaction import ReadTransaction

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


def parsed(text: str) -> tuple[Head, ...]:
    """Parses printed heads, one per line; skips empty lines and those that begin with #."""
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
