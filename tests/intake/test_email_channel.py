"""Messages: known by their Message-ID, called by their subject, and read no further."""

from __future__ import annotations

import time
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.intake.email import HEADERS_MAX, MESSAGE_MAX, decoded, read
from dibs.intake.request import BadPayload, IntakeRequest, NoRequest

PLAIN = b"Message-ID: <1@a.example>\r\nSubject: Fix it\r\n\r\nthe body\r\n"

MAILS = [
    ("plain.eml", "CAF7k+Zq9=A1b@mail.Lamps.example", "The invoice shows the wrong currency"),
    ("multipart.eml", "0102018f3c2d-1b7e-4f0a-9c55-7d1e2a3b4c5d-000000@eu-west-1.mailer.example",
     "Bestellung nicht möglich: Button führt zu € statt Grüße"),
    ("eight_bit.eml", "8bit.1@lamps.example", "Preisschild für Größe M"),
    ("list.eml", "list.9@lamps.example", "[team] Please renew the certificate"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "ref", "title"), MAILS)
def test_a_message_is_an_ask(payload, name, ref, title):
    data = payload(name)
    assert read(data) == IntakeRequest("email", ref, title, "", "", sha256(data).hexdigest())


@pytest.mark.parametrize(("name", "ref", "title"), MAILS)
def test_line_ends_do_not_change_what_it_is(payload, name, ref, title):
    request = read(payload(name).replace(b"\r\n", b"\n"))
    assert (request.ref, request.title) == (ref, title)


@pytest.mark.parametrize("name", [name for name, *_ in MAILS])
def test_nothing_of_the_body_is_kept(payload, name):
    assert b"Secret-Marker" in payload(name)
    assert "Secret-Marker" not in repr(read(payload(name)))


@given(st.binary())
def test_no_body_changes_anything_but_the_digest(body):
    head, _, _ = PLAIN.partition(b"the body")
    request = read(head + body)
    assert request.but(digest="") == read(PLAIN).but(digest="")
    assert request.digest == sha256(head + body).hexdigest()


def test_the_line_of_a_mailbox_is_no_header():
    assert read(b"From ana@a.example Sun Nov 15 09:00:00 2026\n" + PLAIN).ref == "1@a.example"


# Programs.

PROGRAMS = [
    (b"Auto-Submitted: auto-generated\n", "a program sent it: auto-submitted is 'auto-generated'"),
    (b"Auto-Submitted: Auto-Notified; owner=x\n", "a program sent it: auto-submitted"),
    (b"Precedence: bulk\n", "a program sent it: precedence is bulk"),
    (b"Precedence: JUNK\n", "a program sent it: precedence is junk"),
    (b"Return-Path: <>\n", "a program sent it: return-path is empty"),
    (b"Auto-Submitted: auto-replied\n", "a program answered: auto-submitted is auto-replied"),
    (b"auto-submitted: auto-replied (vacation)\n", "a program answered: auto-submitted"),
    (b"Precedence: auto_reply\n", "a program answered: precedence is auto_reply"),
    (b"Content-Type: multipart/report; boundary=x\n", "a program answered: it is a report"),
    (b"Auto-Submitted: no\n", ""),
    (b"Precedence: list\nList-Id: <team.a.example>\n", ""),
    (b"X-Auto-Response-Suppress: All\n", ""),
    (b"Return-Path: <ana@a.example>\n", ""),
]


@pytest.mark.parametrize(("header", "why"), PROGRAMS)
def test_what_a_program_sent_is_reported_as_such(header, why):
    answer = read(header + PLAIN)
    if why:
        assert isinstance(answer, NoRequest) and answer.why.startswith(why)
    else:
        assert isinstance(answer, IntakeRequest)


@pytest.mark.parametrize(("header", "why"), PROGRAMS)
def test_alerts_are_taken_in_where_they_are_wanted_but_answers_never(header, why):
    answer = read(header + PLAIN, automatic=True)
    assert isinstance(answer, NoRequest if why.startswith("a program answered") else IntakeRequest)


@pytest.mark.parametrize("name", ["vacation.eml", "bounce.eml", "alert.eml"])
def test_messages_of_programs_ask_for_nothing(payload, name):
    assert isinstance(read(payload(name)), NoRequest)


# Headers.

BAD = [
    (b"", "no Message-ID"),
    (b"\r\n" + PLAIN, "no Message-ID"),
    (b"Subject: x\n\nMessage-ID: <1@a.example>\n", "no Message-ID"),
    (b"Subject: x\nno header at all\nMessage-ID: <1@a.example>\n\n", "no Message-ID"),
    (b"Message-ID:\nSubject: x\n\n", "no Message-ID"),
    (b"Message-ID: <>\n\n", "the ref is empty"),
    (b"Message-ID: <a b@c>\n\n", "angle brackets"),
    (b"Message-ID: <1@a>\nMessage-ID: <2@a>\n\n", "several Message-IDs"),
    (b"Message-ID: <" + b"x" * 1000 + b"@a>\n\n", "the most is 1000"),
    (b"Message-ID: <a\x1b[2J@b>\n\n", "cannot be displayed"),
    (b"Message-ID: <a\xe2\x80\xae@b>\n\n", "cannot be displayed"),
    (b"Subject: hi\rMessage-ID: <forged@a>\r\nMessage-ID: <1@a>\r\n\r\n", "carriage return"),
    (b"Subject: hi\r\rMessage-ID: <forged@a>\r\n\r\n", "carriage return"),
    (b"Subject: a\0b\nMessage-ID: <1@a>\n\n", "NUL"),
    (b"Subject: " + b"x" * HEADERS_MAX + b"\nMessage-ID: <1@a>\n\n", "its headers have more"),
    (b"X-A: b\n" * (HEADERS_MAX // 6), "its headers have more"),
    (PLAIN + b"x" * MESSAGE_MAX, "the most is 33554432"),
]


@pytest.mark.parametrize(("data", "why"), BAD, ids=range(len(BAD)))
def test_a_message_that_cannot_be_known_again_is_refused_with_a_reason(data, why):
    with pytest.raises(BadPayload, match=why):
        read(data)


GOOD = [
    (b"MESSAGE-id: <1@a>\nSUBJECT: x\n\n", "1@a", "x"),
    (b"Message-ID: <1@a>\nMessage-ID: <1@a>\nSubject: one\nSubject: two\n\n", "1@a", "one"),
    (b"Message-ID: <1@a>\n\n", "1@a", "email 1@a"),
    (b"Message-ID: <1@a>", "1@a", "email 1@a"),
    (b"Message-ID: <1@a>\nSubject:   \n\n", "1@a", "email 1@a"),
    (b"Message-ID: <1@a>\nSubject: a\n\tfolded\n  subject\n\n", "1@a", "a folded subject"),
    (b"Message-ID: <1@a>\nSubject: =?utf-8?q?one=0D=0AMessage-ID:_=3C2@a=3E?=\n\n", "1@a",
     "one Message-ID: <2@a>"),
    (b"Message-ID: <1@a>\nSubject: a\x1b]0;x\x07b\n\n", "1@a", "a]0;xb"),
    (b"Message-ID: <\xc3\xbc@a>\nSubject: \xc3\xbc\n\n", "ü@a", "ü"),
    (b"Message-ID: <1@a>\nSubject: " + b"x" * 100_000 + b"\n\n", "1@a", "x" * 199 + "…"),
    (b"Message-ID: <1@a>\n: no name\n\n", "1@a", "email 1@a"),
    (b"Received: x\n" * 1000 + b"Message-ID: <1@a>\n\n", "1@a", "email 1@a"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "ref", "title"), GOOD, ids=range(len(GOOD)))
def test_odd_headers_are_read(data, ref, title):
    request = read(data)
    assert (request.ref, request.title) == (ref, title)


SUBJECTS = [
    ("plain", "plain"),
    ("=?utf-8?q?a=C3=BC_b?=", "aü b"),
    ("=?UTF-8?B?w7w=?=", "ü"),
    ("=?UTF-8?B?w7w?=", "ü"),
    ("=?iso-8859-1*de?Q?Gr=FC=DFe?=", "Grüße"),
    ("=?utf-8?q?a?= =?utf-8?q?b?=", "ab"),
    ("=?utf-8?q?a?= =?koi8-r?b?0OnW?=", "aпИж"),
    ("=?utf-8?q?a?= c =?utf-8?q?b?=", "a c b"),
    ("x=?utf-8?q?a?=y", "xay"),
    ("=?utf-8?b?4oI=?= =?utf-8?b?rA==?=", "€"),
    ("=?utf-8?q?=E2=82?=\t=?utf-8?q?=AC?=", "€"),
    ("=?nonsense?q?a=C3=BC?=", "aü"),
    ("=?rot13?q?abc?=", "abc"),
    ("=?zlib?q?abc?=", "abc"),
    ("=?idna?q?xn--a?=", "xn--a"),
    ("=?unicode_escape?q?=5Cu0041=5Cq?=", "\\u0041\\q"),
    ("=?undefined?q?abc?=", "abc"),
    ("=?\ud800?q?abc?=", "abc"),
    ("=?\0?q?abc?=", "abc"),
    ("=?utf-8?q?=FF?=", "\ufffd"),
    ("=?utf-8?b?!?=", ""),
    ("=?utf-8?b?abcde?=", "=?utf-8?b?abcde?="),
    ("=?utf-8?x?abc?=", "=?utf-8?x?abc?="),
    ("=?utf-8?q?abc", "=?utf-8?q?abc"),
    ("=?=?=?", "=?=?=?"),
]


@pytest.mark.parametrize(("subject", "text"), SUBJECTS)
def test_a_subject_is_decoded(subject, text):
    assert decoded(subject) == text


@given(st.text())
def test_a_subject_that_the_standard_library_encodes_is_the_same_again(text):
    from email.header import Header

    text = " ".join(text.encode("utf-8", "replace").decode().split())
    encoded = Header(text, "utf-8").encode(linesep="")
    assert decoded(encoded) == text


@pytest.mark.parametrize("piece", ["=?", "=?a?q?", "=?utf-8?q?a?= ", "?=", "=?a?b?=", " "])
def test_no_subject_takes_long(piece):
    begun = time.process_time()
    read(
        b"Message-ID: <1@a>\nSubject: " + (piece * 200_000).encode()[: HEADERS_MAX - 100] + b"\n\n"
    )
    assert time.process_time() - begun < 5


PIECES = st.sampled_from(
    [b"Message-ID:", b"Subject:", b" ", b"<a@b>", b"\n", b"\r\n", b"\r", b"\n\n", b"=?utf-8?q?", b"?=",
     b"=?x?b?", b"\xff", b"\0", b"(", b")", b";", b"From ", b"\t", b"Auto-Submitted:", b"Content-Type:"]
)  # fmt: skip


@given(st.binary() | st.lists(PIECES | st.binary(max_size=3)).map(b"".join), st.booleans())
def test_any_bytes_give_an_ask_a_reason_or_a_refusal(data, automatic):
    try:
        answer = read(data, automatic=automatic)
    except BadPayload as why:
        assert why.what
        return
    assert isinstance(answer, (IntakeRequest, NoRequest))
    assert answer == read(data, automatic=automatic)
