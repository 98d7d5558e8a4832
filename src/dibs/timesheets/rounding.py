"""Rounding of billed time, by a named rule; no other time is ever rounded.

Amounts are whole microseconds, so halves are exact: a half rounds up, like `decimal.ROUND_HALF_UP`, without
floating point.
"""

from __future__ import annotations

from dibs.domain.refusals import bad_argument
from dibs.domain.values import HOUR, MINUTE, Duration, Value

NEAREST, UP = "nearest", "up"
ENTRY, DAY, PERIOD = "entry", "day", "period"

UNITS = {"6m": Duration(6 * MINUTE), "15m": Duration(15 * MINUTE)}
WAYS = (NEAREST, UP)
PERS = (ENTRY, DAY, PERIOD)


class Rule(Value):
    """The unit (`none`, `6m`, `15m`), the direction, and what is rounded.

    | per | what is rounded, of one actor in one row |
    |---|---|
    | entry | each stint, or its part in the row; of working time, each unbroken stretch |
    | day | the sum of a local day |
    | period | the sum of the row |
    """

    unit: str = "none"
    way: str = NEAREST
    per: str = ENTRY

    @property
    def name(self) -> str:
        """As typed, and as printed on a sheet: `none`, `15m-up-day`."""
        return self.unit if self.unit == "none" else f"{self.unit}-{self.way}-{self.per}"

    @property
    def rounds(self) -> bool:
        return self.unit != "none"

    def rounded(self, amount: Duration) -> Duration:
        """The amount rounded to whole units. With `nearest`, half a unit rounds up."""
        if self.unit == "none":
            return amount
        unit = UNITS[self.unit]
        less = unit // 2 if self.way == NEAREST else unit - 1
        return Duration((amount + less) // unit * unit)


NONE = Rule()


def parse_rule(text: str) -> Rule:
    """Parses `none`, `6m`, `15m-up` or `15m-up-day`. Default: nearest, per entry."""
    unit, *rest = text.split("-")
    way = next((word for word in rest if word in WAYS), NEAREST)
    per = next((word for word in rest if word in PERS), ENTRY)
    known = unit in UNITS or (unit == "none" and not rest)
    if not known or rest not in ([], [way], [per], [way, per]):
        raise bad_argument(
            f"the rounding is {text[:40]!r}; it is none, or 6m or 15m, then -nearest or -up, "
            "then -entry, -day or -period: 15m-up-day"
        )
    return Rule(unit, way, per)


def hours(amount: Duration) -> str:
    """A rounded amount in hours, exactly: every unit is a multiple of a hundredth of an hour."""
    hundredths, left = divmod(amount * 100, HOUR)
    if left:
        raise ValueError(f"{amount} microseconds are not rounded")
    return f"{hundredths // 100}.{hundredths % 100:02}"
