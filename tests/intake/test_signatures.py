"""Who sent a webhook. Expected values are computed here by other means, or come from documentation."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.refusals import Refused
from dibs.intake.signatures import HEADER_LENGTH, NotSigned, check_github

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


def test_no_message_contains_the_secret_or_the_right_signature():
    with pytest.raises(NotSigned) as why:
        check_github(BODY, "sha256=0", [SECRET])
    for hidden in (SECRET, SIGNED[7:]):
        assert hidden not in str(why.value)
