"""A timesheet is what its stints add up to: exactly, in any zone, however it is cut."""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dibs.domain.refusals import Refused
from dibs.domain.stints import WorkedStint, clipped, in_order, split, week_of
from dibs.domain.values import DAY, HOUR, MINUTE, SECOND
from dibs.timesheets import rounding, zones
from dibs.timesheets.query import BY, EFFORT, WORKING, SheetQuery, needed
from dibs.timesheets.sheet import FOOTER, Spent, make_sheet

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = {1: "ana", 2: "codex-2"}


def at(text):
    """The instant that is written so, in UTC."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def wall(zone, instant):
    return (EPOCH + timedelta(microseconds=instant)).astimezone(ZoneInfo(zone))


PLACES = {
    ("Europe/Berlin", at("2026-03-28T12:00")): "23 hours",
    ("Europe/Berlin", at("2026-10-24T12:00")): "25 hours",
    ("America/Sao_Paulo", at("2017-10-14T12:00")): "no midnight",
    ("America/Sao_Paulo", at("2018-02-16T12:00")): "the hour before midnight twice",
    ("America/Havana", at("2026-10-31T12:00")): "midnight twice",
    ("Australia/Lord_Howe", at("2026-10-03T01:00")): "half an hour less",
    ("Asia/Kathmandu", at("2026-12-30T01:00")): "the end of week 53's year, at a quarter to",
    ("Pacific/Apia", at("2011-12-29T01:00")): "a day that was left out",
    ("UTC", at("2027-01-02T01:00")): "week 53 ends in January",
}
RANGE = 3 * DAY

# A count by hand: the period is cut wherever anything could change, and each bit is looked at.

TICK = 15 * MINUTE  # every change of an offset, and every midnight, of the zones above


def bits(stints, query):
    edges = {query.since, query.until, *range(query.since - query.since % TICK, query.until, TICK)}
    edges |= {edge for stint in stints for edge in (stint.start, stint.end)}
    inside = sorted(edge for edge in edges if query.since <= edge <= query.until)
    return list(pairwise(inside))


def labels_by_hand(stint, instant, query):
    local = wall(query.zone, instant).date()
    iso = local.isocalendar()
    words = {
        "actor": NAMES[stint.actor], "task": stint.key, "area": stint.area,
        "charge_code": stint.charge_code, "day": f"{local}", "month": f"{local:%Y-%m}",
        "week": f"{iso.year}-W{iso.week:02}",
    }  # fmt: skip
    return tuple(words[name] for name in query.by)


def rounded_by_hand(amount, rule):
    if rule.unit == "none":
        return amount
    unit = Decimal({"6m": 6, "15m": 15}[rule.unit] * MINUTE)
    way = ROUND_HALF_UP if rule.way == "nearest" else ROUND_CEILING
    return int((Decimal(amount) / unit).quantize(Decimal(1), way) * unit)


class ByHand:
    """Rows and total of the stints, bit by bit."""

    def __init__(self, stints, query):
        self.stints, self.query = stints, query
        self.touched = defaultdict(set)
        self.effort = defaultdict(int)
        self.parts = defaultdict(int)
        self.active = defaultdict(list)
        for number, stint in enumerate(stints):
            if stint.start == stint.end and query.since <= stint.start < query.until:
                self.touched[labels_by_hand(stint, stint.start, query)].add(number)
        for begin, end in bits(stints, query):
            day = wall(query.zone, begin).date()
            for number, stint in enumerate(stints):
                if stint.start <= begin and end <= stint.end:
                    row = labels_by_hand(stint, begin, query)
                    self.touched[row].add(number)
                    self.effort[row] += end - begin
                    self.parts[row, stint.actor, number, day] += end - begin
                    for of in (row, ()):
                        bit = (begin, end, day)
                        if bit not in self.active[of, stint.actor][-1:]:
                            self.active[of, stint.actor].append(bit)

    def working(self, row):
        return sum(
            end - begin
            for (of, _), found in self.active.items()
            for begin, end, _ in found
            if of == row
        )

    def billed(self, row):
        """What one row is billed."""
        rule, amounts = self.query.rule, defaultdict(int)
        if self.query.bill_by == EFFORT:
            for (of, actor, number, day), amount in self.parts.items():
                one = {"entry": number, "day": day, "period": ""}[rule.per]
                if of == row:
                    amounts[actor, one] += amount
        else:
            for (of, actor), found in self.active.items():
                stretch = 0
                for place, (begin, end, day) in enumerate(found):
                    stretch += place > 0 and found[place - 1][1] != begin
                    one = {"entry": stretch, "day": day, "period": ""}[rule.per]
                    if of == row:
                        amounts[actor, one] += end - begin
        return sum(rounded_by_hand(amount, rule) for amount in amounts.values())

    def rows(self):
        return {
            row: (len(numbers), self.effort[row], self.working(row), self.billed(row))
            for row, numbers in self.touched.items()
        }

    def total(self):
        rows = self.rows().values()
        billed = sum(row[3] for row in rows)
        apart = {"task", "area", "charge_code"}
        if self.query.bill_by == WORKING and apart & {*self.query.by}:
            by = ("actor", *[name for name in self.query.by if name in {"day", "week", "month"}])
            billed = ByHand(self.stints, self.query.but(by=by)).total()[3]
        count = len(set().union(*self.touched.values()))
        return count, sum(row[1] for row in rows), self.working(()), billed


# What is drawn.


def lengths():
    return st.one_of(
        st.just(0),
        st.integers(1, 3 * HOUR),
        st.sampled_from([3 * MINUTE, 7 * MINUTE + 30 * SECOND, 15 * MINUTE, HOUR]),
        st.integers(1, 2 * DAY),
    )


@st.composite
def worked(draw, since=0):
    near = st.integers(20, 30).map(HOUR.__mul__)  # so that many overlap
    start = since - DAY + draw(st.one_of(near, near, st.integers(0, 5 * DAY)))
    key = draw(st.sampled_from(["T-1", "T-2", "T-10"]))
    area = {"T-1": "web", "T-2": "web", "T-10": ""}[key]
    code = {"T-1": "C-7", "T-2": "C-8", "T-10": "C-7"}[key]
    return WorkedStint(
        draw(st.sampled_from([1, 2])), start, start + draw(lengths()), key, area, code, key == "T-1"
    )


RULES = [
    rounding.parse_rule(f"{unit}-{way}-{per}")
    for unit in ("6m", "15m")
    for way in ("nearest", "up")
    for per in ("entry", "day", "period")
]


@st.composite
def cases(draw):
    zone, since = draw(st.sampled_from(sorted(PLACES)))
    since += draw(st.sampled_from([0, 1, 17 * MINUTE]))
    query = SheetQuery(
        since,
        since + RANGE,
        zone,
        tuple(draw(st.lists(st.sampled_from(BY), min_size=1, max_size=3, unique=True))),
        draw(st.sampled_from([EFFORT, WORKING])),
        draw(st.sampled_from([rounding.NONE, *RULES])),
    )
    few, many = st.lists(worked(since), max_size=2), st.lists(worked(since), min_size=4, max_size=8)
    return draw(st.one_of(many, few)), query


def made(stints, query):
    return make_sheet(in_order(stints), query, zones.local_days(query.zone), NAMES)


def amounts(row):
    return row.stints, row.effort, row.working, row.billed


# Promises.


@given(cases())
def test_a_timesheet_says_what_a_count_by_hand_says(case):
    stints, query = case
    made_sheet, by_hand = made(stints, query), ByHand(stints, query)
    assert {row.labels: amounts(row) for row in made_sheet.rows} == by_hand.rows()
    assert amounts(made_sheet.total) == by_hand.total()


@given(cases())
def test_the_sum_over_any_split_is_the_sum_of_the_stints(case):
    stints, query = case
    clip = [(max(s.start, query.since), min(s.end, query.until)) for s in stints]
    expected = sum(max(0, end - start) for start, end in clip)
    for by in [*[(name,) for name in BY], query.by, BY]:
        for zone in ("UTC", query.zone, "Pacific/Kiritimati", "America/St_Johns"):
            found = made(stints, query.but(by=by, zone=zone))
            assert sum(row.effort for row in found.rows) == found.total.effort == expected
            assert sum(row.overlap for row in found.rows) <= found.total.overlap
    cut = split(stints, query.since, query.until, zones.local_days(query.zone))
    assert sum(piece.length for piece in cut) == expected


@given(cases())
def test_nobody_works_longer_than_the_day_is(case):
    stints, query = case
    days = defaultdict(int)
    for day, start, end in zones.local_days(query.zone)(query.since, query.until):
        days[day] += end - start
    found = made(stints, query.but(by=("actor", "day")))
    for row in found.rows:
        assert 0 <= row.working <= days[row.labels[1]] <= 25 * HOUR
        assert row.working <= row.effort


@given(cases(), st.randoms())
def test_the_order_in_which_stints_were_recorded_does_not_matter(case, chance):
    stints, query = case
    shuffled = stints.copy()
    chance.shuffle(shuffled)
    assert made(shuffled, query) == made(stints, query)
    by_start_only = sorted(shuffled, key=lambda one: (one.actor, one.start))
    assert make_sheet(by_start_only, query, zones.local_days(query.zone), NAMES) == made(
        stints, query
    )


@given(cases(), st.integers(1, RANGE - 1))
def test_two_halves_of_a_period_add_up_to_it(case, where):
    stints, query = case
    middle = query.since + where
    query = query.but(rule=rounding.NONE)
    whole = made(stints, query).total
    first = made(stints, query.but(until=middle)).total
    second = made(stints, query.but(since=middle)).total
    assert first.effort + second.effort == whole.effort
    assert first.working + second.working == whole.working
    over_it = sum(stint.start < middle < stint.end for stint in stints)
    assert first.stints + second.stints == whole.stints + over_it


@pytest.mark.parametrize(
    ("start", "end", "stints"),
    [(0, 10, 0), (0, 11, 1), (10, 10, 1), (19, 20, 1), (20, 20, 0), (20, 30, 0), (10, 20, 1)],
)
def test_a_period_has_its_first_instant_and_not_its_last(start, end, stints):
    stint = WorkedStint(1, start, end, "T-1")
    assert made([stint], SheetQuery(10, 20, "UTC")).total.stints == stints
    assert len(list(clipped([stint], 10, 20))) == stints
    assert len(list(split([stint], 10, 20, zones.local_days("UTC")))) == stints


@given(cases(), st.sampled_from([{"actor": 1}, {"charge_code": "C-7"}, {"billable": False}]))
def test_a_filter_leaves_out_what_does_not_pass_it(case, wanted):
    stints, query = case
    ((name, value),) = wanted.items()
    fewer = [stint for stint in stints if getattr(stint, name) == value]
    found = made(stints, query.but(**wanted))
    assert (found.rows, found.total) == (made(fewer, query).rows, made(fewer, query).total)
    assert found.only


@given(cases())
def test_a_store_may_give_only_the_fields_that_are_needed(case):
    stints, query = case
    fields = needed(query)
    rows = [tuple(getattr(stint, field) for field in fields) for stint in in_order(stints)]
    assert make_sheet(rows, query, zones.local_days(query.zone), NAMES, fields) == made(
        stints, query
    )


def test_rows_come_as_people_count():
    stints = [WorkedStint(1, HOUR, 2 * HOUR, key) for key in ("T-10", "T-2", "T-1", "B")]
    rows = made(stints, SheetQuery(0, DAY, "UTC", ("task",))).rows
    assert [row.labels for row in rows] == [("B",), ("T-1",), ("T-2",), ("T-10",)]


def test_an_actor_without_a_name_is_shown_by_number():
    found = made([WorkedStint(7, 0, HOUR, "T-1")], SheetQuery(0, DAY, "UTC", actor=7))
    assert (found.rows[0].labels, found.only) == (("7",), ("actor 7",))


# What went wrong elsewhere.


def test_sum_and_union_are_both_shown_and_never_mixed():
    """Two stints at once: the sum was 20 h 35, the union 10 h 36."""
    start = at("2026-11-16T07:00")
    stints = [
        WorkedStint(2, start, start + 10 * HOUR + 30 * MINUTE, "T-1"),
        WorkedStint(2, start + 31 * MINUTE, start + 10 * HOUR + 36 * MINUTE, "T-2"),
    ]
    found = made(stints, SheetQuery(at("2026-11-16"), at("2026-11-17"), "UTC", ("task",)))
    total = found.total
    assert total.effort == 20 * HOUR + 35 * MINUTE
    assert total.working == 10 * HOUR + 36 * MINUTE
    assert total.overlap == 9 * HOUR + 59 * MINUTE
    assert sum(row.working for row in found.rows) > total.working
    assert found.footer == FOOTER and "need not add up" in FOOTER


@pytest.mark.parametrize(
    ("spans", "working"),
    [
        ([(0, 2), (1, 4), (3, 5)], 5),
        ([(0, 9), (1, 2), (3, 4)], 9),
        ([(0, 1), (1, 2), (4, 5)], 3),
        ([(0, 3), (0, 3), (0, 5)], 5),
    ],
)
def test_a_union_reaches_as_far_as_any_of_its_stints(spans, working):
    stints = [WorkedStint(1, a * HOUR, b * HOUR, f"T-{n}") for n, (a, b) in enumerate(spans)]
    for by in ("actor",), ("task",), ("day",):
        total = made(stints, SheetQuery(0, DAY, "UTC", by)).total
        assert total.working == working * HOUR
        assert total.overlap == sum(b - a for a, b in spans) * HOUR - working * HOUR


def test_friday_to_monday_is_64_hours_on_four_days():
    """It is shown as it was recorded, day by day, so that somebody sees it."""
    zone = "Europe/Berlin"
    stint = WorkedStint(1, at("2026-11-13T15:00"), at("2026-11-16T07:00"), "T-1")
    since, until = zones.period(zone, "2026-11")
    found = made([stint], SheetQuery(since, until, zone, ("day",)))
    assert [(row.labels[0], row.effort / HOUR) for row in found.rows] == [
        ("2026-11-13", 8), ("2026-11-14", 24), ("2026-11-15", 24), ("2026-11-16", 8),
    ]  # fmt: skip
    assert found.total.effort == 64 * HOUR
    assert found.total.stints == 1


def test_a_night_in_which_the_clock_goes_back_has_an_hour_more():
    """21:00 to 05:00 on the wall: nine hours, four of them after midnight and one more."""
    zone = "Europe/Berlin"
    stint = WorkedStint(1, at("2026-10-24T19:00"), at("2026-10-25T04:00"), "T-1")
    since, until = zones.period(zone, "2026-W43")
    found = made([stint], SheetQuery(since, until, zone, ("day",)))
    assert [(row.labels[0], row.effort / HOUR) for row in found.rows] == [
        ("2026-10-24", 3), ("2026-10-25", 6),
    ]  # fmt: skip


def test_new_year_is_in_week_53():
    stint = WorkedStint(1, at("2026-12-31T20:00"), at("2027-01-04T02:00"), "T-1")
    since, until = at("2026-12-01"), at("2027-02-01")
    found = made([stint], SheetQuery(since, until, "UTC", ("week", "month")))
    assert [(row.labels, row.effort / HOUR) for row in found.rows] == [
        (("2026-W53", "2026-12"), 4),
        (("2026-W53", "2027-01"), 72),
        (("2027-W01", "2027-01"), 2),
    ]


@given(st.dates(date(1, 1, 8), date(9999, 12, 31)))
@example(date(2026, 12, 31))
@example(date(2027, 1, 3))
def test_weeks_are_those_of_the_iso_calendar(day):
    year, week, _ = day.isocalendar()
    assert week_of(f"{day}") == f"{year:04}-W{week:02}"


def test_a_day_that_comes_in_two_parts_is_one_day():
    """In St. John's a clock went back from 00:01 to 23:01: rounded once, counted once."""
    zone = "America/St_Johns"
    stint = WorkedStint(1, at("2006-10-29T01:44"), at("2006-10-29T03:44"), "T-1")
    query = SheetQuery(at("2006-10-28"), at("2006-10-30"), zone, ("day",))
    rule = rounding.parse_rule("15m-up-day")
    for by in ("day",), ("task",):
        found = made([stint], query.but(by=by, rule=rule))
        assert found.total.billed == 2 * HOUR  # 46 + 59 minutes, and 1 + 14
        assert [row.stints for row in found.rows] == [1] * len(found.rows)
    found = made([stint], query)
    assert [(row.labels[0], row.effort / MINUTE) for row in found.rows] == [
        ("2006-10-28", 105), ("2006-10-29", 15),
    ]  # fmt: skip


# Stints that cannot be.


def test_a_stint_that_ends_before_it_starts_is_an_error_and_not_a_wrong_sum():
    with pytest.raises(ValueError, match="before it starts"):
        made([WorkedStint(1, HOUR, HOUR - 1, "T-1")], SheetQuery(0, DAY, "UTC"))


@pytest.mark.parametrize(
    "stints",
    [
        [WorkedStint(1, HOUR, 2 * HOUR, "T-1"), WorkedStint(1, 0, HOUR, "T-1")],
        [WorkedStint(n, n * HOUR, 9 * HOUR, "T-1") for n in (1, 2)]
        + [WorkedStint(1, 8 * HOUR, DAY, "T-1")],
    ],
)
def test_stints_out_of_order_are_an_error_and_not_a_wrong_sum(stints):
    with pytest.raises(ValueError, match="do not come"):
        make_sheet(stints, SheetQuery(0, DAY, "UTC"), zones.local_days("UTC"), NAMES)


@pytest.mark.parametrize(
    "days",
    [
        [("d", 0, HOUR), ("e", 2 * HOUR, DAY)],
        [("d", 1, DAY)],
        [("d", 0, DAY - 1)],
        [("d", 0, DAY), ("e", DAY, DAY)],
    ],
)
def test_local_days_with_a_gap_are_an_error_and_not_lost_time(days):
    with pytest.raises(ValueError, match="local day"):
        make_sheet([], SheetQuery(0, DAY, "UTC"), lambda since, until: days, NAMES)


@pytest.mark.parametrize(
    "query",
    [
        SheetQuery(DAY, DAY, "UTC"),
        SheetQuery(0, DAY, "UTC", ()),
        SheetQuery(0, DAY, "UTC", ("day", "day")),
        SheetQuery(0, DAY, "UTC", ("hour",)),
        SheetQuery(0, DAY, "UTC", bill_by="guess"),
    ],
)
def test_nonsense_is_refused(query):
    with pytest.raises(Refused) as refusal:
        made([], query)
    assert refusal.value.code == "bad_argument"


# Rounding.


@given(st.integers(0, 10**12), st.sampled_from(RULES))
@example(3 * MINUTE, rounding.parse_rule("6m"))
@example(7 * MINUTE + 30 * SECOND - 1, rounding.parse_rule("15m"))
@example(7 * MINUTE + 30 * SECOND, rounding.parse_rule("15m"))
def test_rounding_is_that_of_decimal_half_up(amount, rule):
    rounded = rule.rounded(amount)
    assert rounded == rounded_by_hand(amount, rule)
    assert Decimal(rounding.hours(rounded)) == Decimal(rounded) / HOUR


@pytest.mark.parametrize(
    ("rule", "by_effort", "by_working"),
    [
        ("none", 36, 30),
        ("15m-up-entry", 15 + 15 + 15 + 15, 30 + 15),
        ("15m-nearest-entry", 15 + 15 + 0 + 15, 15 + 15),
        ("15m-up-day", 45, 30),
        ("15m-nearest-period", 30, 30),
        ("6m-up-period", 36, 30),
    ],
)
def test_what_a_rule_rounds(rule, by_effort, by_working):
    """Two stints that meet and one that overlaps are one stretch of 17 minutes; then one of 13."""
    minutes = [(0, 8), (8, 16), (10, 17), (60, 73)]
    stints = [WorkedStint(1, a * MINUTE, b * MINUTE, f"T-{n}") for n, (a, b) in enumerate(minutes)]
    query = SheetQuery(0, DAY, "UTC", ("actor",), rule=rounding.parse_rule(rule))
    billed = [made(stints, query.but(bill_by=by)).total.billed for by in (EFFORT, WORKING)]
    assert [amount / MINUTE for amount in billed] == [by_effort, by_working]


@pytest.mark.parametrize(
    ("bill_by", "each", "total"), [(EFFORT, (15, 15, 15), 45), (WORKING, (15, 15, 15), 15 + 15)]
)
def test_an_hour_on_two_tasks_is_billed_once_if_working_time_is_billed(bill_by, each, total):
    """Rounded rows of effort add up to their total; a union is rounded for itself, by day."""
    stints = [
        WorkedStint(1, 0, 10 * MINUTE, "T-1"),
        WorkedStint(1, 2 * MINUTE, 12 * MINUTE, "T-2"),
        WorkedStint(1, DAY, DAY + 10 * MINUTE, "T-3"),
    ]
    query = SheetQuery(
        0, 2 * DAY, "UTC", ("day", "task"), bill_by, rounding.parse_rule("15m-nearest-period")
    )
    found = made(stints, query)
    assert [row.billed / MINUTE for row in found.rows] == [*each]
    assert found.total.billed == total * MINUTE


@pytest.mark.parametrize("rule", [rounding.NONE, *RULES], ids=lambda rule: rule.name)
def test_a_rule_is_read_as_it_is_written(rule):
    assert rounding.parse_rule(rule.name) == rule


@pytest.mark.parametrize(
    ("text", "name"),
    [("6m", "6m-nearest-entry"), ("15m-up", "15m-up-entry"), ("6m-day", "6m-nearest-day")],
)
def test_what_is_missing_in_a_rule_is_nearest_and_entry(text, name):
    assert rounding.parse_rule(text).name == name


@pytest.mark.parametrize(
    "text",
    ["", "5m", "none-up", "15m-", "15m-down", "15m-day-up", "15m-up-up", "15m-entry-day", "-up"],
)
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(Refused):
        rounding.parse_rule(text)


def test_hours_of_what_was_not_rounded_are_not_reported():
    with pytest.raises(ValueError, match="not rounded"):
        rounding.hours(MINUTE)


# What agents used, and what was corrected.


@given(cases(), st.integers(0, 10**7), st.integers(0, 10**7))
def test_shares_of_what_was_used_add_up_to_it(case, tokens, cost):
    stints, query = case
    since = min([stint.start for stint in stints], default=0)
    until = max([stint.end for stint in stints], default=0) + 1
    used = [s.but(tokens=tokens + n, cost=cost, spending="actual") for n, s in enumerate(stints)]
    found = made(used, query.but(since=since, until=until))
    expected = sum(stint.tokens for stint in used), sum(stint.cost for stint in used)
    spent = [row.spent for row in found.rows]
    assert (sum(one.tokens for one in spent), sum(one.cost for one in spent)) == expected
    cut = list(split(used, since, until, zones.local_days(query.zone)))
    assert (sum(one.tokens for one in cut), sum(one.cost for one in cut)) == expected
    if stints:
        assert (found.total.spent.tokens, found.total.spent.cost) == expected


def test_how_well_it_is_known_is_how_well_the_worst_is_known():
    def spent(*confidence):
        stints = [
            WorkedStint(
                2, n * HOUR, (n + 1) * HOUR, "T-1", tokens=tokens, cost=None, spending=known
            )
            for n, (tokens, known) in enumerate(confidence)
        ]
        return made(stints, SheetQuery(0, DAY, "UTC")).total.spent

    assert spent((None, "")) is None
    assert spent((5, "actual"), (None, "")) == Spent(5, None, "actual")
    assert spent((5, "actual"), (7, "estimated")) == Spent(12, None, "estimated")
    assert spent((None, "unknown"), (7, "estimated")) == Spent(7, None, "unknown")
    assert spent((7, "")) == Spent(7, None, "unknown")


def test_a_share_of_what_was_used_is_an_estimate():
    stint = WorkedStint(2, 0, 2 * HOUR, "T-1", tokens=9, cost=0, spending="actual")
    assert made([stint], SheetQuery(0, HOUR, "UTC")).total.spent == Spent(4, 0, "estimated")
    assert made([stint], SheetQuery(0, DAY, "UTC")).total.spent == Spent(9, 0, "actual")
    (half,) = clipped([stint], HOUR, DAY)
    assert (half.start, half.end, half.tokens, half.spending) == (HOUR, 2 * HOUR, 5, "estimated")


def test_what_people_corrected_is_counted_once_in_each_row():
    stints = [
        WorkedStint(1, 20 * HOUR, 28 * HOUR, "T-1", source="amended"),
        WorkedStint(1, 29 * HOUR, 30 * HOUR, "T-1", source="added"),
        WorkedStint(1, 31 * HOUR, 32 * HOUR, "T-1", source="open"),
        WorkedStint(1, 33 * HOUR, 34 * HOUR, "T-1"),
    ]
    query = SheetQuery(0, 2 * DAY, "UTC", ("day",))
    by_day = made(stints, query)
    assert [(row.corrected, row.running) for row in by_day.rows] == [(1, 0), (2, 1)]
    assert (by_day.total.corrected, by_day.total.running) == (2, 1)
    daily = made(stints, query.but(by=("task",), rule=rounding.parse_rule("6m-day")))
    assert (daily.rows[0].corrected, daily.rows[0].stints) == (2, 4)


# A million of them.


def peak_of(count):
    """The most memory that a sheet of so many stints needs, as they stream by."""

    def stream():
        for actor in (1, 2):
            for n in range(count // 2):
                start = n * 36 * DAY // count
                yield (actor, start, start + HOUR)

    query = SheetQuery(
        0, 20 * DAY, "UTC", ("actor", "week"), rule=rounding.parse_rule("15m-up-day")
    )
    tracemalloc.start()
    try:
        found = make_sheet(stream(), query, zones.local_days("UTC"), NAMES, needed(query))
        assert found.total.stints == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_stints():
    peak_of(100)
    assert peak_of(40_000) < peak_of(2_000) + 20_000
