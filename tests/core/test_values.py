"""Values: immutable records with named fields, cheap to make and to load."""

from __future__ import annotations

import pytest

from dibs.core.values import Value


class Point(Value):
    x: int
    y: int = 2


class Named(Point):
    name: str = ""


class Other(Value):
    x: int
    y: int = 2


def test_fields_are_given_by_position_or_name_and_have_defaults():
    assert Point(1) == Point(1, 2) == Point(x=1) == Point(y=2, x=1)
    assert (Point(1).x, Point(1).y) == (1, 2)


def test_a_subclass_adds_its_fields_after_those_it_inherits():
    assert Named.fields == ("x", "y", "name")
    assert Named(1, name="n").named() == {"x": 1, "y": 2, "name": "n"}


def test_a_value_is_equal_only_to_one_of_its_own_class():
    assert Point(1) != Other(1)
    assert Point(1) != (1, 2)
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_a_value_cannot_be_changed_but_another_can_be_made():
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 5  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 5  # type: ignore[attr-defined]
    assert point.but(x=5) == Point(5)
    assert point == Point(1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Point(),
        lambda: Point(1, 2, 3),
        lambda: Point(1, z=3),
        lambda: Point(1, x=3),
        lambda: Point(1).but(z=1),
    ],
)
def test_missing_unknown_and_doubled_fields_are_refused(wrong):
    with pytest.raises(TypeError):
        wrong()


def test_a_value_tells_its_fields_and_is_always_true():
    assert repr(Point(1)) == "Point(x=1, y=2)"
    assert bool(Point(0, 0))
