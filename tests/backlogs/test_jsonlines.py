"""A line of JSON is changed where it is to be, and nowhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.backlogs.formats.json_line import REMOVED, DuplicateKey, Line, More
from kit import graphs

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
CHANGES = st.dictionaries(graphs.WORDS, VALUES | st.just(REMOVED), max_size=4)


def raw(line: Line) -> dict[str, str]:
    """By key, the text of the member."""
    return {member.key: line.text[member.start : member.end] for member in line.members}


@given(graphs.objects(graphs.values()), CHANGES, st.data())
def test_a_changed_line_says_what_json_says_and_keeps_the_rest(text, changes, data):
    line = Line(text)
    if line.value:
        known = data.draw(st.lists(st.sampled_from(list(line.value)), unique=True))
        changes |= {key: data.draw(VALUES | st.just(REMOVED)) for key in known}
    changed = Line(line.with_values(changes))

    expected = json.loads(text)
    for key, value in changes.items():
        if value is not REMOVED:
            expected[key] = value
        elif key in expected:
            del expected[key]
    assert list(json.loads(changed.text).items()) == list(expected.items())
    for key in expected.keys() - changes.keys():
        assert raw(changed)[key] == raw(line)[key]


@given(graphs.objects(graphs.values()))
def test_a_line_is_read_as_json_reads_it_and_nothing_changes_nothing(text):
    line = Line(f" {text}\r")
    assert line.value == json.loads(text)
    assert line.with_values({}) == line.text
    assert line.with_values(line.value) == line.text


@given(graphs.objects(graphs.values()), st.data())
def test_what_json_does_not_take_is_not_taken(text, data):
    place = data.draw(st.integers(0, len(text)))
    cut = (
        text[:place] + data.draw(st.sampled_from(("", "x", ",", "}", '"', "1"))) + text[place + 1 :]
    )
    try:
        expected = json.loads(cut)
    except ValueError:
        expected = None
    if isinstance(expected, dict):
        assert Line(cut).value == expected
    else:
        with pytest.raises(ValueError):
            Line(cut)


@given(graphs.arrays(graphs.values()), st.lists(VALUES, max_size=3))
def test_a_list_grows_at_its_end_and_its_elements_stay(old, more):
    line = Line(f'{{"a": 1e3, "log": {old}, "z": 1.0}}')
    changed = line.with_values({"log": More(tuple(more))})
    assert json.loads(changed)["log"] == json.loads(old) + more
    assert changed.startswith(line.text[: line.text.index(old)] + old[:-1].rstrip())
    assert changed.endswith(', "z": 1.0}')


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ('{"a":1e3,"b":2}', {"b": 3}, '{"a":1e3,"b":3}'),
        ('{"a":1e3,"b":2}', {"a": 1000.0}, '{"a":1e3,"b":2}'),
        ('{"a":1,"b":2}', {"a": True}, '{"a":true,"b":2}'),
        ('{"a":1,"b":2}', {"a": 1.0}, '{"a":1.0,"b":2}'),
        ('{"a":"\\u00e9","b":2}', {"c": "\u00e9"}, '{"a":"\\u00e9","b":2,"c":"\u00e9"}'),
        ('{"a" : 1 , "b" : 2 }', {"c": 3}, '{"a" : 1 , "b" : 2 , "c" : 3 }'),
        ('{"a": 1}', {"c": [1, 2]}, '{"a": 1, "c": [1, 2]}'),
        ("{}", {"c": 3}, '{"c":3}'),
        (" { } ", {"c": 3, "d": 4}, ' {"c":3,"d":4 } '),
        ('{"a":1, "b":2,  "c":3}', {"a": REMOVED}, '{"b":2,  "c":3}'),
        ('{"a":1, "b":2,  "c":3}', {"b": REMOVED}, '{"a":1,  "c":3}'),
        ('{"a":1, "b":2,  "c":3}', {"b": REMOVED, "c": REMOVED}, '{"a":1}'),
        ('{ "a":1 }', {"a": REMOVED}, "{  }"),
        ('{"a":1}', {"b": REMOVED}, '{"a":1}'),
        ('{"a":1}', {"a": REMOVED, "b": 2}, '{"b":2}'),
        ('{"log":null}', {"log": More((1,))}, '{"log":[1]}'),
        ('{"a":1}', {"log": More((1,))}, '{"a":1,"log":[1]}'),
        ('{"log":[ ]}', {"log": More((1, 2))}, '{"log":[1,2 ]}'),
        ('{"log":[0 ]}', {"log": More((1, 2))}, '{"log":[0,1,2 ]}'),
        ("{}", {"a": "\ud800"}, '{"a":"\\ud800"}'),
        ('\ufeff{"a":1}\r', {"a": 2}, '\ufeff{"a":2}\r'),
    ],
)
def test_how_a_line_is_changed(text, changes, expected):
    assert Line(text).with_values(changes) == expected


def test_a_key_that_occurs_twice_is_not_changed():
    line = Line('{"a":1,"b":2,"\\u0061":3}')
    assert line.value == {"a": 3, "b": 2}
    assert line.with_values({"b": 4}) == '{"a":1,"b":4,"\\u0061":3}'
    for value in (5, REMOVED, 3):
        with pytest.raises(DuplicateKey) as problem:
            line.with_values({"a": value})
        assert problem.value.key == "a"


@pytest.mark.parametrize(
    "text", ["", "1", "[]", "{} x", '{"a":NaN}', '{"a":1,}', "{1:2}", '{"a"1}']
)
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ValueError):
        Line(text)
