"""Values: immutable records with named fields, cheap to make and to load."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dibs.domain import values
from dibs.domain.values import Value


@pytest.fixture(params=["seldom", "often"])
def kinds(request):
    """Classes that nobody else uses. One that is made often gets another constructor."""

    class Point(Value):
        x: int
        y: int = 2

    class Named(Point):
        name: str = ""

    class Other(Value):
        x: int
        y: int = 2

    class Nothing(Value):
        pass

    class Late(Point):
        z: int

    if request.param == "often":
        for kind in (Point, Named, Other, Nothing, Late):
            for _ in range(values.OFTEN + 1):
                kind(**dict.fromkeys(kind.fields, 0))
        written_out = {kind for kind in (Point, Named, Other) if kind.__new__ is not Value.__new__}
        assert written_out == {Point, Named, Other}
    return SimpleNamespace(Point=Point, Named=Named, Other=Other, Nothing=Nothing, Late=Late)


def test_fields_are_given_by_position_or_name_and_have_defaults(kinds):
    point = kinds.Point
    assert point(1) == point(1, 2) == point(x=1) == point(y=2, x=1)
    assert (point(1).x, point(1).y) == (1, 2)
    assert kinds.Nothing() == kinds.Nothing()


def test_a_subclass_adds_its_fields_after_those_it_inherits(kinds):
    assert kinds.Named.fields == ("x", "y", "name")
    assert kinds.Named(1, name="n").named() == {"x": 1, "y": 2, "name": "n"}
    assert kinds.Late(1, z=3).named() == {"x": 1, "y": 2, "z": 3}


def test_a_subclass_of_a_class_that_is_made_often_has_a_constructor_of_its_own(kinds):
    class Longer(kinds.Point):
        z: int = 3

    assert tuple(Longer(1)) == (1, 2, 3)


def test_a_value_is_equal_only_to_one_of_its_own_class(kinds):
    point = kinds.Point
    assert point(1) != kinds.Other(1)
    assert point(1) != (1, 2)
    assert len({point(1), point(1), point(2)}) == 2


def test_a_value_cannot_be_changed_but_another_can_be_made(kinds):
    point = kinds.Point(1)
    with pytest.raises(AttributeError):
        point.x = 5
    with pytest.raises(AttributeError):
        point.z = 5
    assert point.but(x=5) == kinds.Point(5)
    assert point == kinds.Point(1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda point: point(),
        lambda point: point(1, 2, 3),
        lambda point: point(1, z=3),
        lambda point: point(1, x=3),
        lambda point: point(1).but(z=1),
    ],
)
def test_missing_unknown_and_doubled_fields_are_refused(wrong, kinds):
    with pytest.raises(TypeError):
        wrong(kinds.Point)


def test_a_field_without_a_default_behind_one_that_has_one_must_be_given(kinds):
    with pytest.raises(TypeError, match="z"):
        kinds.Late(1)


def test_a_value_shows_its_fields_and_is_always_true(kinds):
    assert repr(kinds.Point(1)) == "Point(x=1, y=2)"
    assert bool(kinds.Point(0, 0))
    assert bool(kinds.Nothing())
