"""The board's clock on one kernel: an anchor for each boot, and the time since, sleep included.

No step of the wall clock moves it within a boot. Between boots the wall clock is believed, unless
it is below the highest instant that was ever committed, or more than a year above it.
"""

from __future__ import annotations

from dibs.core.instants import MINUTE, YEAR, Instant
from dibs.core.values import Value
from dibs.machine import Machine, is_certain


class Anchor(Value):
    """`anchor` was the board's time when `boottime` was the time since the boot `boot`."""

    boot: str
    anchor: Instant
    boottime: int
    skewed: bool


class Reading(Value):
    """The time now, and the anchor that it was told by."""

    now: Instant
    anchor: Anchor


def read_clock(machine: Machine, anchor: Anchor | None, floor: Instant) -> Reading:
    """`anchor` is the stored one; that of another boot is replaced by a new one."""
    boot, boottime = machine.boot(), machine.boottime()
    if anchor is None or not is_of_this_boot(machine, anchor, floor):
        fresh = drop_anchor(machine, boot, boottime, floor)
        if anchor is not None and is_certain(anchor.boot) and not is_certain(boot):
            return Reading(
                fresh.anchor, anchor
            )  # others have a better one than we could leave them
        anchor = fresh
    now = anchor.anchor + boottime - anchor.boottime
    return Reading(Instant(max(now, floor)), anchor)


def is_of_this_boot(machine: Machine, anchor: Anchor, floor: Instant) -> bool:
    """By the boot id. Where one of the two is not the kernel's, by what the anchor says.

    In its own boot it never says less than what was committed. Where the time since boot may be
    that of a time namespace, it must not be ahead of the wall clock either.
    """
    boot = machine.boot()
    if is_certain(boot) and is_certain(anchor.boot):
        return anchor.boot == boot
    told = anchor.anchor + machine.boottime() - anchor.boottime
    return floor <= told and (machine.knows_boottime() or told <= machine.wall() + MINUTE)


def drop_anchor(machine: Machine, boot: str, boottime: int, floor: Instant) -> Anchor:
    wall = machine.wall()
    believable = floor <= wall <= floor + YEAR
    return Anchor(boot, wall if believable else floor, boottime, skewed=not believable)


def anchor_here(machine: Machine) -> Anchor:
    """The wall clock, believed because a person says so."""
    return Anchor(machine.boot(), machine.wall(), machine.boottime(), skewed=False)
