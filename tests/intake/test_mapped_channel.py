"""Any JSON, by a mapping: what is wrong is named with its path."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.refusals import Refused
from dibs.intake.mapped import paths_of, read
from dibs.intake.request import PAYLOAD_MAX, BadPayload, IntakeRequest

MAPPING = {
    "ref": "data.id",
    "title": "data.subject",
    "url": "data.links.0.href?",
    "delivery": "id?",
}
PAYLOAD = {
    "id": "evt_77",
    "data": {
        "id": 4711,
        "subject": "Renew the\ncertificate",
        "links": [{"href": "https://Desk.example/t/4711"}],
        "description": "Secret-Marker",
    },
}


def taken(payload: object, mapping: dict[str, str] = MAPPING, **given: str) -> IntakeRequest:
    return read("desk", paths_of(mapping), json.dumps(payload).encode(), **given)


def test_the_paths_of_a_mapping_lead_to_an_ask():
    request = taken(PAYLOAD)
    digest = sha256(json.dumps(PAYLOAD).encode()).hexdigest()
    assert request == IntakeRequest(
        "desk", "4711", "Renew the certificate", "https://desk.example/t/4711", "evt_77", digest
    )
    assert "Secret-Marker" not in repr(request)


def test_a_number_keeps_every_digit():
    huge = "9" * 400
    request = read("desk", paths_of({"ref": "id"}), b'{"id": ' + huge.encode() + b"}")
    assert request.ref == huge
    assert taken({"id": 2**63 + 1}, {"ref": "id"}).ref == str(2**63 + 1)


def test_what_need_not_be_there_is_empty():
    request = taken({"data": {"id": "a", "subject": "x", "links": []}})
    assert (request.url, request.delivery) == ("", "")
    assert taken({"data": {"id": "a", "subject": "x", "links": [{"href": None}]}}).url == ""


def test_the_id_of_a_delivery_is_in_the_payload_or_in_its_headers():
    assert taken(PAYLOAD, delivery="msg_1").delivery == "evt_77"
    assert taken(PAYLOAD, {"ref": "data.id"}, delivery="msg_1").delivery == "msg_1"
    assert taken({"data": PAYLOAD["data"]}, delivery="msg_1").delivery == "msg_1"


def test_a_number_in_a_path_is_a_key_of_an_object_too():
    assert taken({"a": {"0": "x"}}, {"ref": "a.0"}).ref == "x"


WRONG = [
    ({}, "there is no data.id: the payload has no data"),
    ({"data": {}}, "there is no data.id: data has no id"),
    ({"data": None}, "there is no data.id: the payload has no data"),
    ({"data": "x"}, "there is no data.id: data is text"),
    ({"data": [1]}, "there is no data.id: data is a list, id is no place in it"),
    ({"data": {"id": None}}, "there is no data.id: data has no id"),
    ({"data": {"id": {}}}, "data.id is an object; it is text or a whole number"),
    ({"data": {"id": True}}, "data.id is a yes or no"),
    ({"data": {"id": 1.0}}, "data.id is a number with a fraction"),
    ({"data": {"id": "", "subject": "x"}}, "the ref is empty (ref: data.id, title: data.subject, url:"),
    ({"data": {"id": "a\nb", "subject": "x"}}, "the ref contains characters"),
    ({"data": {"id": 1}}, "there is no data.subject: data has no subject"),
    ({"data": {"id": 1, "subject": []}}, "data.subject is a list"),
    ({"data": {"id": 1, "subject": "x", "links": 7}}, "there is no data.links.0.href: data.links is a number"),
    ({"data": {"id": 1, "subject": "x", "links": [7]}}, "there is no data.links.0.href: data.links.0 is a number"),
    ({"data": {"id": 1, "subject": "x", "links": [{"href": "mailto:a@b"}]}}, "the url does not begin"),
    ([], "it is a list, and no object"),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "why"), WRONG)
def test_what_is_wrong_is_named_with_its_path(payload, why):
    with pytest.raises(BadPayload) as found:
        taken(payload)
    assert found.value.what.startswith(why)


@pytest.mark.parametrize(
    ("step", "there"),
    [("1", True), ("2", False), ("-1", False), ("9" * 50, False), ("\u0660", False)],
)
def test_a_place_in_a_list_is_counted_from_its_beginning(step, there):
    if there:
        assert taken({"a": ["x", "y"]}, {"ref": f"a.{step}"}).ref == "y"
    else:
        with pytest.raises(BadPayload, match="there is no a"):
            taken({"a": ["x", "y"]}, {"ref": f"a.{step}"})


def test_a_payload_has_a_limit():
    with pytest.raises(BadPayload, match="the most is"):
        read("desk", paths_of({"ref": "id"}), b" " * (PAYLOAD_MAX + 1))


MISTAKES = [
    {},
    {"title": "a"},
    {"ref": "a", "body": "b"},
    {"ref": ""},
    {"ref": "?"},
    {"ref": "a?"},
    {"ref": "a..b"},
    {"ref": ".a"},
    {"ref": "a."},
    {"ref": 7},
    {"ref": None},
    {"ref": "a\nb"},
    {"ref": "a" * 257},
    {"ref": ".".join("a" * 17)},
]


@pytest.mark.parametrize("mapping", MISTAKES)
def test_a_mistake_in_a_mapping_is_found_before_any_payload(mapping):
    with pytest.raises(Refused) as why:
        paths_of(mapping)
    assert why.value.code == "bad_argument"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "id", "0"]), inner),
    max_leaves=12,
)
DATA = st.binary() | JSON.map(lambda value: json.dumps(value).encode())
PATHS = st.lists(st.sampled_from(["data", "id", "0", "1"]), min_size=1, max_size=3).map(".".join)


@given(st.text() | st.just("desk"), PATHS, PATHS, DATA)
def test_any_bytes_give_an_ask_or_a_refusal(channel, ref, title, data):
    paths = paths_of({"ref": ref, "title": f"{title}?", "url": "u?"})
    try:
        request = read(channel, paths, data)
    except BadPayload as why:
        assert why.what
        return
    assert request == read(channel, paths, data)
