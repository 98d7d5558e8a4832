"""The board's clock on one kernel: an anchor per boot, plus the time since, including sleep.

Steps of the wall clock do not affect it within a boot. Between boots it trusts the wall clock, unless that
is below the highest instant ever committed, or more than a year above it.
"""

from __future__ import annotations

from dibs.domain.values import MINUTE, YEAR, Instant, Value
from dibs.machine import Machine, is_certain


class Anchor(Value):
    """The board's time was `anchor` when the time since the boot `boot` was `boottime`."""

    boot: str
    anchor: Instant
    boottime: int
    skewed: bool


class Reading(Value):
    """The current time, and the anchor it was computed from."""

    now: Instant
    anchor: Anchor


def read_clock(machine: Machine, anchor: Anchor | None, floor: Instant) -> Reading:
    """Reads the clock from the stored anchor; an anchor of another boot is replaced by a new one."""
    boot, boottime = machine.boot(), machine.boottime()
    if anchor is None or not is_of_this_boot(machine, anchor, floor):
        fresh = new_anchor(machine, boot, boottime, floor)
        if anchor is not None and is_certain(anchor.boot) and not is_certain(boot):
            return Reading(
                fresh.anchor, anchor
            )  # keep the stored one: other processes know more than we do
        anchor = fresh
    now = anchor.anchor + boottime - anchor.boottime
    return Reading(Instant(max(now, floor)), anchor)


def is_of_this_boot(machine: Machine, anchor: Anchor, floor: Instant) -> bool:
    """Whether the anchor is of this boot: by boot id or, where one id is not the kernel's, by plausibility.

    In its own boot an anchor never yields less than what was committed. Where the time since boot may be that
    of a time namespace, it must not be ahead of the wall clock either.
    """
    boot = machine.boot()
    if is_certain(boot) and is_certain(anchor.boot):
        return anchor.boot == boot
    shown = anchor.anchor + machine.boottime() - anchor.boottime
    return floor <= shown and (machine.knows_boottime() or shown <= machine.wall() + MINUTE)


def new_anchor(machine: Machine, boot: str, boottime: int, floor: Instant) -> Anchor:
    wall = machine.wall()
    believable = floor <= wall <= floor + YEAR
    return Anchor(boot, wall if believable else floor, boottime, skewed=not believable)


def wall_clock_anchor(machine: Machine) -> Anchor:
    """A new anchor at the wall clock, trusted because a person confirmed it."""
    return Anchor(machine.boot(), machine.wall(), machine.boottime(), skewed=False)
