"""How time is rounded on a bill: by a rule with a name, and never anywhere else.

Amounts are whole microseconds, so half of a unit is found by counting: a half goes up, as
`decimal.ROUND_HALF_UP` has it, and no fraction of a binary number is ever in between.
"""

from __future__ import annotations

from dibs.core.instants import HOUR, MINUTE, Duration
from dibs.core.refusals import bad_argument
from dibs.core.values import Value

NEAREST, UP = "nearest", "up"
ENTRY, DAY, PERIOD = "entry", "day", "period"

UNITS = {"6m": Duration(6 * MINUTE), "15m": Duration(15 * MINUTE)}
WAYS = (NEAREST, UP)
PERS = (ENTRY, DAY, PERIOD)


class Rule(Value):
    """To which unit (`none`, `6m`, `15m`), which way, and what is rounded.

    | per | what is rounded, of one actor in one row |
    |---|---|
    | entry | each stint, or its part in the row; of working time, each unbroken stretch |
    | day | what a local day adds up to |
    | period | what the row adds up to |
    """

    unit: str = "none"
    way: str = NEAREST
    per: str = ENTRY

    @property
    def name(self) -> str:
        """As it is typed, and as a sheet states it: `none`, `15m-up-day`."""
        return self.unit if self.unit == "none" else f"{self.unit}-{self.way}-{self.per}"

    @property
    def rounds(self) -> bool:
        return self.unit != "none"

    def rounded(self, amount: Duration) -> Duration:
        """The amount in whole units: what is a multiple stays, half a unit goes up."""
        if self.unit == "none":
            return amount
        unit = UNITS[self.unit]
        less = unit // 2 if self.way == NEAREST else unit - 1
        return Duration((amount + less) // unit * unit)


NONE = Rule()


def named(text: str) -> Rule:
    """`none`, `6m`, `15m-up`, `15m-up-day`: the nearest, and per entry, unless it is said."""
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
