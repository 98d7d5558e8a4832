"""Who sent a webhook. Expected values are computed here by other means, or stand in documentation."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.channels import signatures
from dibs.channels.signatures import HEADER_LENGTH, NotSigned, check_github, check_standard
from dibs.core.instants import MINUTE, SECOND, Instant
from dibs.core.refusals import Refused

BODY = b"Hello, World!"
SECRET = "It's a Secret to Everybody"
SIGNED = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
"""The example in GitHub's documentation."""


def github(body: bytes, secret: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def test_the_example_of_github_is_accepted():
    check_github(BODY, SIGNED, [SECRET])


def test_while_a_secret_is_replaced_both_are_accepted():
    for signer in ("old", "new"):
        check_github(BODY, github(BODY, signer), ["old", "new"])
    with pytest.raises(NotSigned):
        check_github(BODY, github(BODY, "old"), ["new"])


FORGED = [
    "",
    "sha256=",
    SIGNED[:-1],
    SIGNED + "0",
    SIGNED.upper(),
    SIGNED.replace("sha256", "sha1"),
    SIGNED.removeprefix("sha256="),
    "sha1=" + "0" * 40,
    "sha256=" + "0" * 64,
    "sha256=ü\ud800",
    "sha256=" + "0" * HEADER_LENGTH,
]


@pytest.mark.parametrize("header", FORGED)
def test_any_other_signature_of_github_is_refused(header):
    with pytest.raises(NotSigned, match="X-Hub-Signature-256"):
        check_github(BODY, header, [SECRET])


def test_one_byte_more_is_another_body():
    with pytest.raises(NotSigned):
        check_github(BODY + b"\n", SIGNED, [SECRET])


@given(
    st.binary(), st.text(), st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=3)
)
def test_no_garbage_is_accepted_from_github_or_breaks_the_check(body, header, secrets):
    with pytest.raises(NotSigned):
        check_github(body, header, secrets)


EMPTY = [[], [""], [" \n"], ["good", ""], "", "text"]


@pytest.mark.parametrize("secrets", [*EMPTY, ["x"] * 9])
def test_an_empty_secret_is_refused_before_anything_is_compared(secrets):
    with pytest.raises(Refused) as why:
        check_github(BODY, github(BODY, ""), secrets)
    assert why.value.code == "bad_argument"


def test_signatures_are_compared_in_constant_time(monkeypatch):
    """Every secret is tried, whatever the first one says, and by nothing but `compare_digest`."""
    compared = []

    def comparing(one, other):
        compared.append((one, other))
        return real(one, other)

    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", comparing)
    check_github(BODY, SIGNED, [SECRET, "b", "c"])
    assert len(compared) == 3
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: False)
    with pytest.raises(NotSigned):
        check_github(BODY, SIGNED, [SECRET])


# Standard Webhooks.

KEY = "whsec_" + base64.b64encode(b"a key of twenty-four byte").decode()
OTHER = "whsec_" + base64.b64encode(b"another one of their keys").decode()
NOW = Instant(1_794_752_999 * SECOND)
SENT = 1_794_752_999


def standard(body: bytes, key: str = KEY, id_: str = "msg_1", at: object = SENT) -> str:
    secret = base64.b64decode(key.removeprefix("whsec_"))
    signed = f"{id_}.{at}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


def headers(body: bytes = BODY, **changes: str) -> dict[str, str]:
    named = {"id": "msg_1", "timestamp": str(SENT), "signature": standard(body), **changes}
    return {f"webhook-{name}": value for name, value in named.items()}


def test_a_signed_delivery_gives_its_id():
    assert check_standard(BODY, headers(), [KEY], NOW) == "msg_1"
    assert check_standard(BODY, {k.title(): v for k, v in headers().items()}, [KEY], NOW) == "msg_1"
    assert check_standard(BODY, headers(), [KEY.removeprefix("whsec_")], NOW) == "msg_1"


def test_one_of_several_signatures_by_one_of_several_secrets_is_enough():
    several = " ".join(["v1a,AAAA", standard(BODY, OTHER), "v2,x", standard(BODY)])
    for secrets in ([KEY], [OTHER], [OTHER, KEY]):
        check_standard(BODY, headers(signature=several), secrets, NOW)


@pytest.mark.parametrize(
    ("away", "accepted"),
    [
        (0, True),
        (5 * MINUTE, True),
        (-5 * MINUTE, True),
        (5 * MINUTE + 1, False),
        (-5 * MINUTE - 1, False),
    ],
)
def test_a_delivery_is_accepted_for_five_minutes(away, accepted):
    now = Instant(NOW + away)
    if accepted:
        assert check_standard(BODY, headers(), [KEY], now)
    else:
        with pytest.raises(NotSigned, match="webhook-timestamp is more than 5 min"):
            check_standard(BODY, headers(), [KEY], now)


WRONG = [
    ({"id": "msg_2"}, "webhook-signature"),
    ({"id": ""}, "webhook-id is missing"),
    ({"id": "msg\n1"}, "webhook-id"),
    ({"id": "\ud800"}, "webhook-id"),
    ({"id": "x" * 129}, "webhook-id"),
    ({"timestamp": str(SENT + 1)}, "webhook-signature"),
    ({"timestamp": ""}, "webhook-timestamp is missing"),
    ({"timestamp": "soon"}, "webhook-timestamp"),
    ({"timestamp": "-1"}, "webhook-timestamp"),
    ({"timestamp": "1.5"}, "webhook-timestamp"),
    ({"timestamp": "٣"}, "webhook-timestamp"),
    ({"timestamp": "9" * 4000}, "webhook-timestamp"),
    ({"signature": ""}, "webhook-signature is missing"),
    ({"signature": standard(BODY).removeprefix("v1,")}, "webhook-signature"),
    ({"signature": standard(BODY).replace("v1,", "v1a,")}, "webhook-signature"),
    ({"signature": standard(BODY).replace("v1,", "v2,")}, "webhook-signature"),
    ({"signature": standard(BODY, OTHER)}, "webhook-signature"),
    ({"signature": standard(BODY)[:-1]}, "webhook-signature"),
    ({"signature": "v1,ü\ud800"}, "webhook-signature"),
    ({"signature": "v1, " * 5000}, "webhook-signature has more than"),
]


@pytest.mark.parametrize(("changes", "why"), WRONG)
def test_any_other_delivery_is_refused(changes, why):
    with pytest.raises(NotSigned, match=why):
        check_standard(BODY, headers(**changes), [KEY], NOW)


def test_parts_of_a_delivery_cannot_be_moved_into_its_id():
    """`a.1.2.x` would be the body `2.x` of one id, and the body `x` of another."""
    body = f"{SENT}.x".encode()
    signature = standard(body, id_="msg_1", at=1)
    moved = headers(id="msg_1.1", signature=signature)
    assert standard(b"x", id_="msg_1.1") == signature, "the signature itself would be right"
    with pytest.raises(NotSigned, match="webhook-id"):
        check_standard(b"x", moved, [KEY], NOW)


@pytest.mark.parametrize("secrets", [*EMPTY, ["whsec_"], ["whsec_?"], ["whsec_ü"], [KEY, "whsec_"]])
def test_a_secret_that_is_none_is_a_mistake_in_the_settings(secrets):
    with pytest.raises(Refused) as why:
        check_standard(BODY, headers(), secrets, NOW)
    assert why.value.code == "bad_argument"


@given(st.binary(), st.dictionaries(st.sampled_from(list(headers())), st.text()))
def test_no_garbage_is_accepted_or_breaks_the_check(body, given):
    with pytest.raises(NotSigned):
        check_standard(body, given, [KEY], NOW)


def test_no_message_tells_the_secret_or_the_right_signature():
    told = []
    for check in (
        lambda: check_github(BODY, "sha256=0", [SECRET]),
        lambda: check_standard(BODY, headers(signature="v1,x"), [KEY], NOW),
        lambda: check_standard(BODY, headers(), ["whsec_not-base64!"], NOW),
    ):
        with pytest.raises((NotSigned, Refused)) as why:
            check()
        told.append(str(why.value))
    for hidden in (SECRET, KEY[6:], "not-base64", SIGNED[7:], standard(BODY)[3:]):
        assert hidden not in " ".join(told)


def test_the_tolerance_is_five_minutes():
    assert signatures.TOLERANCE == 5 * MINUTE
