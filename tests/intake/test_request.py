"""What a request is known by, and what is kept of it."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.checks import REF_LENGTH, TITLE_LENGTH
from dibs.intake.request import (
    DELIVERY_LENGTH,
    UNTREATED_LENGTH,
    URL_LENGTH,
    BadPayload,
    IntakeRequest,
    address,
    build_request,
    channel_name,
    normalised_ref,
    one_line,
)

CHANNELS = ("github", "email", "slack")

SAME = [
    # An issue of GitHub.
    ("github", "Lamp-Works/Shop#12", "lamp-works/shop#12"),
    ("github", " lamp-works/shop#12\n", "lamp-works/shop#12"),
    ("github", "https://github.com/Lamp-Works/Shop/issues/12", "lamp-works/shop#12"),
    ("github", "HTTP://www.GitHub.com/Lamp-Works/Shop/issues/12/", "lamp-works/shop#12"),
    ("github", "https://github.com/lamp-works/shop/pull/12?diff=split", "lamp-works/shop#12"),
    ("github", "https://github.com/lamp-works/shop/issues/12#issue-331", "lamp-works/shop#12"),
    ("github", "github.com/lamp-works/shop#12", "lamp-works/shop#12"),
    ("github", "https://github.com/O/.github/issues/1", "o/.github#1"),
    # A comment.
    ("github", "Lamp-Works/Shop#12/comment/345", "lamp-works/shop#12/comment/345"),
    ("github", "https://github.com/O/R/issues/12#issuecomment-345", "o/r#12/comment/345"),
    ("github", "https://github.com/O/R/pull/12#issuecomment-345", "o/r#12/comment/345"),
    # A server of one's own is another place.
    ("github", "https://git.lamps.example/O/R/issues/12", "git.lamps.example/o/r#12"),
    ("github", "https://git.lamps.example:8443/O/R/issues/12", "git.lamps.example:8443/o/r#12"),
    ("github", "Git.Lamps.Example/O/R#12", "git.lamps.example/o/r#12"),
    # Anything else at GitHub is what it is.
    ("github", "#12", "#12"),
    ("github", "O/R#012", "O/R#012"),
    ("github", "O/R#0", "O/R#0"),
    ("github", "https://github.com/O/R/discussions/12", "https://github.com/O/R/discussions/12"),
    ("github", "https://github.com/O/R/issues/12#event-9", "https://github.com/O/R/issues/12#event-9"),
    # A message.
    ("email", "<Ab@Mail.Example>", "Ab@Mail.Example"),
    ("email", "  <Ab@Mail.Example>  ", "Ab@Mail.Example"),
    ("email", "Ab@Mail.Example", "Ab@Mail.Example"),
    ("email", "<a@b> (added by postmaster)", "a@b"),
    ("email", "(a comment) <a@b>", "a@b"),
    ("email", "< a@b >", "a@b"),
    ("email", "<without-at>", "without-at"),
    # Links.
    ("slack", "HTTPS://Shop.Slack.COM:443/archives/C1/p17", "https://shop.slack.com/archives/C1/p17"),
    ("slack", "http://a.example", "http://a.example/"),
    ("slack", "http://a.example:80/%7eb%2fc%c3%bc", "http://a.example/~b%2Fc%C3%BC"),
    ("slack", "http://a.example/ü b", "http://a.example/%C3%BC%20b"),
    ("slack", "http://a.example/100%?x=%", "http://a.example/100%25?x=%25"),
    ("slack", "http://a.example/a%4%31", "http://a.example/a%2541"),
    ("slack", "https://ana:pass@a.example/x", "https://a.example/x"),
    ("slack", "https://matrix.to/#/!room:a.example/$e", "https://matrix.to/#/!room:a.example/$e"),
    ("slack", "http://[::1]:8080/x", "http://[::1]:8080/x"),
    ("slack", "http://BÜCHER.example/", "http://bücher.example/"),
    # Other texts.
    ("jira", "  SHOP-12 ", "SHOP-12"),
    ("jira", "shop-12", "shop-12"),
    ("jira", "Cafe\u0301 7", "Café 7"),
    ("other", "<a@b>", "<a@b>"),
]  # fmt: skip


@pytest.mark.parametrize(("channel", "given", "ref"), SAME)
def test_a_ref_is_written_in_one_way(channel, given, ref):
    assert normalised_ref(channel, given) == ref


DIFFERENT = [
    ("email", "<Ab@mail.example>", "<ab@mail.example>"),
    ("email", "<ab@Mail.example>", "<ab@mail.example>"),
    ("jira", "SHOP-12", "shop-12"),
    ("slack", "https://a.example/X", "https://a.example/x"),
    ("slack", "https://a.example/x", "http://a.example/x"),
    ("slack", "https://a.example/?a=1&b=2", "https://a.example/?b=2&a=1"),
    ("slack", "https://a.example/a%2Fb", "https://a.example/a/b"),
    ("slack", "https://a.example/x#1", "https://a.example/x#2"),
    ("github", "https://git.lamps.example/o/r/issues/12", "o/r#12"),
    ("github", "o/r#12", "o/r#12/comment/12"),
]


@pytest.mark.parametrize(("channel", "one", "other"), DIFFERENT)
def test_what_may_be_two_requests_is_not_joined(channel, one, other):
    assert normalised_ref(channel, one) != normalised_ref(channel, other)


BAD = [
    ("slack", "", "empty"),
    ("slack", " \t\n", "empty"),
    ("slack", "a\x00b", "cannot be displayed"),
    ("slack", "a\nb", "cannot be displayed"),
    ("slack", "a\x1b[31mb", "cannot be displayed"),
    ("slack", "a\x9bb", "cannot be displayed"),
    ("slack", "a\u202eb", "cannot be displayed"),
    ("slack", "a\ud800", "cannot be displayed"),
    ("slack", "x" * (REF_LENGTH + 1), "the most is 1000"),
    ("slack", "x" * (UNTREATED_LENGTH + 1), "the most is 4000"),
    ("slack", "http://a.example/" + "ü" * 400, "the most is 1000"),
    ("slack", "https://", "does not begin"),
    ("slack", "https://[::1", "cannot be read"),
    ("slack", "https://a.example:99999/", "cannot be read"),
    ("slack", "https://a.example:x/", "cannot be read"),
    ("slack", "https://a b/", "does not begin"),
    ("email", "<>", "empty"),
    ("email", "<a@b", "angle brackets"),
    ("email", "a@b>", "angle brackets"),
    ("email", "<<a@b>>", "angle brackets"),
    ("email", "<a@b> <c@d>", "angle brackets"),
    ("email", "x <a@b>", "angle brackets"),
    ("email", "<a b@c>", "angle brackets"),
    ("email", "a b@c", "angle brackets"),
]


@pytest.mark.parametrize(("channel", "text", "why"), BAD)
def test_what_cannot_be_a_ref_is_refused_with_a_reason(channel, text, why):
    with pytest.raises(BadPayload, match=why):
        normalised_ref(channel, text)


REFS = st.one_of(
    st.text(),
    st.text("aAü/#%.:@<>()?&= 14\u0130\u017f\u212a"),
    st.builds("http{}://{}".format, st.sampled_from(["", "s"]), st.text("aA.ßİ:@%/?#[]0184Ü ")),
    st.builds("{}/{}#{}{}".format, st.text("aB-_", min_size=1), st.text("cD._", min_size=1),
              st.integers(0, 99), st.sampled_from(["", "/comment/5"])),
    st.builds("https://{}/o/r/{}".format, st.text("aB.:9", min_size=1), st.text("isue/1#-comnt?")),
)  # fmt: skip


@given(st.sampled_from(CHANNELS), REFS)
def test_a_ref_that_was_normalised_stays_as_it_is(channel, text):
    try:
        once = normalised_ref(channel, text)
    except BadPayload:
        return
    assert normalised_ref(channel, once) == once
    assert 0 < len(once) <= REF_LENGTH
    assert once == once.strip()


TITLES = [
    ("  Fix\tthe \r\n login  ", "Fix the login"),
    ("a\x00\x07\x1b]0;x\x9b\u202eb\u2066c\ud800", "a]0;xbc"),
    ("a\u2028b\u0085c", "a b c"),
    ("\u200e \u200f", ""),
    ("family 👩\u200d👧", "family 👩\u200d👧"),
    ("x" * 200, "x" * 200),
    ("x" * 201, "x" * 199 + "…"),
]


@pytest.mark.parametrize(("given", "title"), TITLES)
def test_a_title_is_one_line_without_control_characters(given, title):
    assert one_line(given) == title


@given(st.text())
def test_a_title_is_short_and_stays_as_it_is(text):
    title = one_line(text)
    assert len(title) <= TITLE_LENGTH
    assert one_line(title) == title
    assert not set(title) & set(map(chr, [*range(32), *range(127, 160), 0x202E, 0xD800]))


def test_an_ask_has_a_reference_and_a_digest():
    assert build_request(" GitHub ", "O/R#1", b"{}", title="Fix", url="https://A.example/1", delivery="d") == (
        IntakeRequest("github", "o/r#1", "Fix", "https://a.example/1", "d", sha256(b"{}").hexdigest())
    )  # fmt: skip


def test_without_a_title_an_ask_is_called_by_its_origin():
    assert build_request("slack", "C1/p17", b"", title=" \n").title == "slack C1/p17"
    assert len(build_request("slack", "x" * REF_LENGTH, b"").title) == TITLE_LENGTH


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//a.example",
        "a.example",
        "https://a.example/\x1b]8;;",
        "https://a.example/\ud800",
        "https://a.example/" + "x" * URL_LENGTH,
        "https://a.example/" + "ü" * 500,
    ],
)
def test_an_address_leads_to_the_web_or_nowhere(url):
    with pytest.raises(BadPayload, match="the url"):
        build_request("slack", "1", b"", url=url)


def test_an_address_has_no_password():
    assert address("https://ana:secret@a.example/x") == "https://a.example/x"


@pytest.mark.parametrize("text", ["a\nb", "a\x1bb", "x" * (DELIVERY_LENGTH + 1)])
def test_the_id_of_a_delivery_is_short_and_plain(text):
    with pytest.raises(BadPayload, match="the id of the delivery"):
        build_request("slack", "1", b"", delivery=text)


@pytest.mark.parametrize("text", ["", " ", "a b", "a\nb", "x" * 65, "<channel>", "\u0130"])
def test_a_channel_has_a_name(text):
    with pytest.raises(BadPayload, match="the channel"):
        channel_name(text)


@given(st.text())
def test_the_name_of_a_channel_has_one_form(text):
    try:
        name = channel_name(text)
    except BadPayload:
        return
    assert channel_name(name) == channel_name(name.upper()) == name or not name.isascii()
