"""What is asked of a sync, and what it found and did."""

from __future__ import annotations

from dibs.backlogs.item import Problem
from dibs.core.refusals import several
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Progress = Callable[[int, int], None]


class Options(Value):
    check: bool = False
    """Only say what would be done."""
    everything: bool = False
    """Read every file, whether it has changed or not."""
    strict: bool = False
    """What cannot be read stops everything."""
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
    """Items on which somebody known was at work by the file alone: they have leases now."""
    healed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    proposals: tuple[str, ...] = ()


NOTHING = Options()


def summary(report: Report) -> str:
    """One line, however much there was; nothing if there was nothing."""
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
