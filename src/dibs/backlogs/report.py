"""The options of a sync, and its report."""

from __future__ import annotations

from dibs.backlogs.item import Problem
from dibs.domain.refusals import several
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[int, int], None]


class Options(Value):
    check: bool = False
    """Dry run."""
    everything: bool = False
    """Read every file, changed or not."""
    strict: bool = False
    """Stop at the first unreadable item."""
    progress: Progress | None = None


class Report(Value):
    """What a sync found and did."""

    files: int = 0
    items: int = 0
    read: int = 0
    added: int = 0
    changed: int = 0
    written: int = 0
    unwritten: int = 0
    brought_back: int = 0
    adopted: tuple[str, ...] = ()
    """Items on which a known actor worked according to the file alone: they have leases now."""
    healed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    proposals: tuple[str, ...] = ()
    skipped: tuple[Problem, ...] = ()
    """Files of the backlog that were not read, and why; only if everything was read."""
    finished: tuple[str, ...] = ()
    """Files whose work is over; only if everything was read."""


NOTHING = Options()


def summary(report: Report) -> str:
    """A summary in one line; "" if nothing happened."""
    counts = (
        (report.added, "taken in", "taken in"),
        (report.changed, "changed", "changed"),
        (report.brought_back, "lease brought back", "leases brought back"),
        (report.written, "file written", "files written"),
    )
    told = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    if report.adopted:
        noun = "claim" if len(report.adopted) == 1 else "claims"
        told.append(f"{len(report.adopted)} {noun} adopted: {several(report.adopted)}")
    if report.healed:
        noun = "claim" if len(report.healed) == 1 else "claims"
        told.append(f"{len(report.healed)} stale {noun} healed: {several(report.healed)}")
    return f"item files: {', '.join(told)}" if told else ""
