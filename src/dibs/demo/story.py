"""The result of the demo, by the ledger and by the reports of the workers."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.demo.crew import CrewReport
    from dibs.library.records import Event


class Story(Value):
    """The result of the demo."""

    tasks: int
    complete: int
    takeovers: int
    forced: int
    killed: tuple[str, ...]
    zombie: str
    zombie_refused: bool
    double_owners: int
    """According to the ledger."""
    at_once: int
    """According to the workers' own clocks: two who worked on the same task at the same time."""
    refusals: dict[str, int]
    worked: dict[str, timedelta]
    faults: tuple[str, ...]
    seconds: float

    @property
    def as_expected(self) -> bool:
        return (
            self.complete == self.tasks
            and self.takeovers > 0
            and self.zombie_refused
            and not self.double_owners
            and not self.at_once
            and not self.faults
        )


def verbs(events: tuple[Event, ...]) -> Counter[str]:
    return Counter(event.verb for event in events)


def double_owners(events: tuple[Event, ...]) -> int:
    """Counts leases that began before the previous one ended, and endings that name another token."""
    held: dict[str | None, str | None] = {}
    found = 0
    for event in events:
        ending = event.facts.get("ending")
        if ending:
            found += held.get(event.task) != ending["token"]  # type: ignore[index]
            held[event.task] = None
        if event.verb in ("claimed", "taken_over", "forced"):
            found += held.get(event.task) is not None
            held[event.task] = event.token
    return found


def at_once(reports: Iterable[CrewReport]) -> int:
    """How often a worker began on a task while another worked on it, by their own clocks.

    A forced takeover begins at once, and the former holder learns of it a little later: not counted.
    """
    until: dict[tuple[str, str, int], CrewReport] = {}
    for report in reports:
        until[report.key, report.name, report.began] = report
    found = 0
    for one in until.values():
        for other in until.values():
            later = one.key == other.key and one.name != other.name and one.began < other.began
            found += later and other.began < one.until and other.what != "forced"
    return found


def worked(events: tuple[Event, ...]) -> dict[str, timedelta]:
    """The total stint time of each actor."""
    total: dict[str, timedelta] = {}
    names = {e.facts["id"]: e.facts["name"] for e in events if e.verb == "actor_registered"}
    for event in events:
        ending = event.facts.get("ending") or {}
        stint = ending.get("stint")  # type: ignore[attr-defined]
        if stint:
            name = str(names[ending["actor"]])  # type: ignore[index]
            span = timedelta(microseconds=stint["ended"] - stint["started"])
            total[name] = total.get(name, timedelta()) + span
    return dict(sorted(total.items()))
