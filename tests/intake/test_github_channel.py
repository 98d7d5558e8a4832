"""GitHub's deliveries: an issue, or a new comment on one, is an ask; anything else has a reason."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.intake import github
from dibs.intake.github import ACTIONS, read
from dibs.intake.request import PAYLOAD_MAX, BadPayload, IntakeRequest, NoRequest

ISSUE, COMMENT = "issues_opened.json", "issue_comment_created.json"
FIXTURES = Path(__file__).parent / "fixtures"
DELIVERY = "72d3162e-cc78-11f0-81ab-4c9367dc0958"


def changed(data: bytes, **changes: object) -> bytes:
    """The payload with other values at some paths, written as `issue__number`; `...` removes one."""
    fields = json.loads(data)
    for path, value in changes.items():
        *steps, last = path.split("__")
        inner = fields
        for step in steps:
            inner = inner[step]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return json.dumps(fields).encode()


def test_an_issue_is_an_ask(payload):
    data = payload(ISSUE)
    assert read("issues", data, DELIVERY) == IntakeRequest(
        channel="github",
        ref="lamp-works/shop#12",
        title="Login fails after midnight",
        url="https://github.com/Lamp-Works/Shop/issues/12",
        delivery=DELIVERY,
        digest=sha256(data).hexdigest(),
    )


def test_a_comment_is_an_ask_of_its_own(payload):
    data = payload(COMMENT)
    assert read("issue_comment", data, DELIVERY) == IntakeRequest(
        channel="github",
        ref="lamp-works/shop#12/comment/2987650345",
        title="Comment on lamp-works/shop#12: Login fails after midnight",
        url="https://github.com/Lamp-Works/Shop/issues/12#issuecomment-2987650345",
        delivery=DELIVERY,
        digest=sha256(data).hexdigest(),
    )


def test_an_issue_that_was_moved_names_what_it_was(payload):
    request = read("issues", payload("issues_opened_after_transfer.json"))
    assert (request.ref, request.formerly) == ("lamp-works/web#3", "lamp-works/shop#12")


@pytest.mark.parametrize("name", [ISSUE, COMMENT, "issues_opened_after_transfer.json"])
def test_nothing_of_the_text_is_kept(payload, name):
    data = payload(name)
    assert b"Secret-Marker" in data
    assert "Secret-Marker" not in repr(read("", data))


@given(st.text(st.characters(min_codepoint=0x400, max_codepoint=0x4FF), min_size=1))
def test_no_character_of_any_text_is_kept(text):
    """The alphabet of the bodies is in nothing else of the payloads."""
    for name in (ISSUE, COMMENT):
        fields = json.loads((FIXTURES / name).read_bytes())
        for part in ("issue", "comment"):
            if part in fields:
                fields[part]["body"] = text
        request = read("", json.dumps(fields, ensure_ascii=False).encode())
        assert not set(repr(request)) & set(text)


def test_the_same_issue_has_the_same_ref_whatever_happens_to_it(payload):
    data = payload(ISSUE)
    requests = [
        read("issues", data, "one"),
        read("issues", data, "two"),
        read("issues", changed(data, action="edited", issue__title="Login fails"), "three"),
        read("issues", changed(data, action="reopened", issue__body="more"), "four"),
        read("issues", changed(data, repository__full_name="lamp-works/SHOP"), "five"),
    ]
    assert {request.ref for request in requests} == {"lamp-works/shop#12"}
    assert [requests[0].digest == request.digest for request in requests] == [
        True,
        True,
        False,
        False,
        False,
    ]


ASKS = {("issues", "opened"), ("issues", "edited"), ("issues", "reopened"), ("issue_comment", "created")}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "action"), [(event, action) for event, all_ in ACTIONS.items() for action in all_]
)
def test_every_known_action_asks_or_says_why_not(payload, event, action):
    data = changed(payload(COMMENT if event == "issue_comment" else ISSUE), action=action)
    answer = read(event, data)
    if (event, action) in ASKS:
        assert isinstance(answer, IntakeRequest)
    else:
        assert isinstance(answer, NoRequest) and answer.why.startswith(f"{event} {action}: ")


def test_the_actions_of_the_documentation_are_known():
    assert set(ACTIONS["issues"]) == {
        "assigned", "closed", "deleted", "demilestoned", "edited", "labeled", "locked", "milestoned",
        "opened", "pinned", "reopened", "transferred", "typed", "unassigned", "unlabeled", "unlocked",
        "unpinned", "untyped",
    }  # fmt: skip
    assert set(ACTIONS["issue_comment"]) == {"created", "edited", "deleted"}


def test_what_was_transferred_is_opened_elsewhere(payload):
    assert "transferred" in read("issues", payload("issues_transferred.json")).why


def test_a_closed_issue_asks_for_nothing_but_a_comment_on_it_does(payload):
    closed = changed(payload(ISSUE), action="edited", issue__state="closed")
    assert read("issues", closed) == NoRequest("the issue is closed")
    assert isinstance(
        read("issue_comment", changed(payload(COMMENT), issue__state="closed")), IntakeRequest
    )


@pytest.mark.parametrize("event", ["push", "pull_request", "sub_issues", "new\x1bone", "x" * 5000])
def test_another_event_is_tolerated_with_a_reason(event):
    answer = read(event, b"whatever it is")
    assert "is not a request" in answer.why
    assert answer.why.isprintable() and len(answer.why) < 100


def test_another_action_is_tolerated_with_a_reason(payload):
    answer = read("issues", changed(payload(ISSUE), action="levitated\x1b" + "x" * 500))
    assert "is unknown" in answer.why
    assert answer.why.isprintable() and len(answer.why) < 100


def test_a_ping_is_answered(payload):
    for event in ("ping", ""):
        assert read(event, payload("ping.json")) == NoRequest(github.PING)


def test_without_a_header_the_event_is_told_by_the_payload(payload):
    assert read("", payload(ISSUE)) == read("Issues ", payload(ISSUE))
    assert read("", payload(COMMENT)) == read("issue_comment", payload(COMMENT))
    with pytest.raises(BadPayload, match="without its header the event is unknown"):
        read("", b'{"action": "opened"}')


def test_a_server_of_ones_own_is_another_place(payload):
    own = payload(ISSUE).replace(b"https://github.com/", b"https://git.lamps.example/")
    assert read("issues", own).ref == "git.lamps.example/lamp-works/shop#12"


def test_the_name_of_a_server_is_not_taken_for_an_owner(payload):
    own = payload(ISSUE).replace(b"https://github.com/", b"https://git/")
    assert read("issues", own).ref == "git/lamp-works/shop#12"
    with pytest.raises(BadPayload, match="is not the name of a repository"):
        read("issues", changed(own, repository__full_name="Shop"))


# What is wrong with a payload is said, with the path.

WRONG = [
    ({"action": ...}, "there is no action: the payload has no action"),
    ({"action": None}, "there is no action"),
    ({"action": 1}, "action is a number; it is text"),
    ({"issue": ...}, "there is no issue.state: the payload has no issue"),
    ({"issue": "12"}, "there is no issue.state: issue is text"),
    ({"issue": []}, "there is no issue.state: issue is a list"),
    ({"issue__number": ...}, "there is no issue.number: issue has no number"),
    ({"issue__number": "12"}, "issue.number is text; it is a whole number"),
    ({"issue__number": True}, "issue.number is a yes or no"),
    ({"issue__number": 12.0}, "issue.number is a number with a fraction"),
    ({"issue__number": 0}, "issue.number is not"),
    ({"issue__number": -12}, "issue.number is not"),
    ({"issue__number": 10**18}, "issue.number is not"),
    ({"issue__number": 10**4000}, "issue.number is not"),
    ({"issue__title": None}, "there is no issue.title"),
    ({"issue__title": ["a"]}, "issue.title is a list"),
    ({"issue__html_url": ...}, "there is no issue.html_url"),
    ({"issue__html_url": "javascript:alert(1)"}, "the url does not begin"),
    ({"issue__html_url": "https://github.com/\ud800"}, "the url contains"),
    ({"issue__state": 7}, "issue.state is a number"),
    ({"repository": None}, "there is no repository.full_name"),
    ({"repository__full_name": "Shop"}, "repository.full_name is not the name of a repository"),
    ({"repository__full_name": "a/b/c"}, "repository.full_name is not"),
    ({"repository__full_name": "a/b#7/comment/1"}, "repository.full_name is not"),
    ({"repository__full_name": "../b"}, "repository.full_name is not"),
    ({"repository__full_name": "a/\u202eb"}, "repository.full_name is not"),
    ({"changes": {"old_issue": 7}}, "there is no changes.old_issue.html_url"),
    ({"changes": 7}, "there is no changes.old_issue: changes is a number"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "why"), WRONG)
def test_a_wrong_field_is_named(payload, changes, why):
    with pytest.raises(BadPayload) as found:
        read("issues", changed(payload(ISSUE), **changes))
    assert found.value.what.startswith(why)


def test_a_wrong_field_of_a_comment_is_named(payload):
    for changes, why in (
        ({"comment__id": "345"}, "comment.id is text"),
        ({"comment__html_url": ...}, "there is no comment.html_url"),
        ({"comment": 1}, "there is no comment.id: comment is a number"),
    ):
        with pytest.raises(BadPayload, match=why):
            read("issue_comment", changed(payload(COMMENT), **changes))


BROKEN = [
    (b"", "not JSON"),
    (b"null", "null, and no object"),
    (b"[]", "a list, and no object"),
    (b"12", "a number, and no object"),
    (b'"x"', "text, and no object"),
    (b"{", "not JSON"),
    (b'{"action": "opened",}', "not JSON"),
    (b'{"action": NaN}', "not JSON: NaN"),
    (b'{"action": -Infinity}', "not JSON: -Infinity"),
    (b'{"action": "opened", "action": "closed"}', "the key 'action' occurs twice"),
    (b'{"issue": {"number": 1, "number": 2}}', "the key 'number' occurs twice"),
    (b'{"action": "\xff"}', "not UTF-8"),
    ('{"action": "opened"}'.encode("utf-16"), "not UTF-8"),
    (b'{"a":' * 100_000, "nested too deeply"),
    (b"[" * 500_000, "nested too deeply"),
    (b" " * (PAYLOAD_MAX + 1), "the most is 1048576"),
    (b"payload=%7B%22action%22", "content type to application/json"),
    (b'{"action": 1' + b"0" * 100_000 + b"}", "action is a number"),
    (b'{"action": 1e999999}', "action is a number"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "why"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_payload_is_refused_with_a_reason(data, why):
    with pytest.raises(BadPayload, match=why):
        read("issues", data)


def test_many_keys_that_stand_there_twice_take_no_time():
    keys = [f'"{number}": 0' for number in range(60_000)]
    data = ("{" + ", ".join([*keys, keys[-1]]) + "}").encode()
    with pytest.raises(BadPayload, match="twice"):
        read("issues", data)


def test_a_byte_order_mark_is_no_hindrance(payload):
    assert isinstance(read("issues", b"\xef\xbb\xbf" + payload(ISSUE)), IntakeRequest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
EVENTS = st.sampled_from(["", "issues", "issue_comment", "ping", "push"]) | st.text()


def answers(event: str, data: bytes, delivery: str = "") -> None:
    try:
        answer = read(event, data, delivery)
    except BadPayload as why:
        assert why.what
        return
    assert isinstance(answer, (IntakeRequest, NoRequest))
    assert answer == read(event, data, delivery)


@given(EVENTS, st.binary(), st.text())
def test_any_bytes_give_an_ask_a_reason_or_a_refusal(event, data, delivery):
    answers(event, data, delivery)


@given(EVENTS, st.sampled_from([ISSUE, COMMENT]), st.data())
def test_any_change_of_a_payload_gives_an_ask_a_reason_or_a_refusal(event, name, draw):
    fields = json.loads((FIXTURES / name).read_bytes())
    for _ in range(draw.draw(st.integers(1, 3))):
        inner, key = fields, "action"
        while isinstance(inner, dict) and inner:
            holder, key = inner, draw.draw(st.sampled_from(sorted(inner)))
            inner = inner[key]
            if draw.draw(st.booleans()):
                break
        holder[key] = draw.draw(JSON)
    answers(event, json.dumps(fields).encode())
    data = json.dumps(fields).encode()
    cut = draw.draw(st.integers(0, len(data)))
    answers(event, data[:cut] + draw.draw(st.binary(max_size=3)) + data[cut:])
