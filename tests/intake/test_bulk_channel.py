"""Many asks in one stream: each line by itself, and never more than one at a time."""

from __future__ import annotations

import io
import json
import tracemalloc
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.intake.bulk import LINE_MAX, Problem, read_requests, request_in
from dibs.intake.request import BadPayload, IntakeRequest


def of(*lines: object, channel: str = "") -> list[IntakeRequest | Problem]:
    written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return list(read_requests(io.BytesIO(b"\n".join(written)), channel))


def test_every_line_is_an_ask():
    line = b'{"channel": "Slack", "ref": " C1 ", "title": "Fix", "url": "https://a.example", "delivery": 7}'
    [request] = of(line)
    assert request == IntakeRequest(
        "slack", "C1", "Fix", "https://a.example/", "7", sha256(line).hexdigest()
    )
    assert [request.ref for request in of(*({"channel": "a", "ref": n} for n in range(3)))] == [
        "0",
        "1",
        "2",
    ]


def test_the_end_of_a_line_is_no_part_of_it():
    line = b'{"channel": "a", "ref": "1"}'
    results = {
        request
        for end in (b"", b"\n", b"\r\n")
        for request in read_requests(io.BytesIO(line + end))
    }
    assert len(results) == 1


def test_lines_that_name_no_channel_have_the_one_that_is_given():
    results = of(
        {"ref": "1"}, {"ref": "2", "channel": "b"}, {"ref": "3", "channel": None}, channel="A"
    )
    assert [request.channel for request in results] == ["a", "b", "a"]


def test_a_problem_has_its_number_and_the_next_line_is_read():
    good = {"channel": "a", "ref": "1"}
    results = of(good, b"", b"{", b"  \t ", good, {"channel": "a"}, good)
    assert [type(one) for one in results] == [
        IntakeRequest,
        Problem,
        IntakeRequest,
        Problem,
        IntakeRequest,
    ]
    assert [one.line for one in results if isinstance(one, Problem)] == [3, 6]
    assert str(results[3]) == "line 6: it has no ref"


WRONG = [
    (b"[]", "it is a list"),
    (b"\xff", "not UTF-8"),
    (b'{"ref": "1"}', "it has no channel"),
    (b'{"channel": "a", "ref": null}', "it has no ref"),
    (b'{"channel": "a", "ref": ""}', "the ref is empty"),
    (b'{"channel": "a b", "ref": "1"}', "the channel"),
    (b'{"channel": "a", "ref": ["1"]}', "ref is a list"),
    (b'{"channel": "a", "ref": "1", "ref": "2"}', "twice"),
    (b'{"channel": "a", "ref": "1", "titel": "x"}', "the field 'titel'"),
    (b'{"channel": "a", "ref": "1", "body": "the text"}', "the field 'body'"),
    (b'{"channel": "a", "ref": "1", "url": "ftp://a"}', "the url"),
    (b'{"channel": "a", "ref": "1", "title": false}', "title is a yes or no"),
    (b'{"channel": "email", "ref": "<a"}', "angle brackets"),
    (b'{"ref":' * 9000, "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "why"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_with_a_line_is_said(line, why):
    [problem] = of(line)
    assert isinstance(problem, Problem) and why in problem.what


def test_a_line_has_a_limit_and_the_next_one_is_read():
    def long(size: int) -> bytes:
        line = b'{"channel": "a", "ref": "1", "title": "'
        return line + b"x" * (size - len(line) - 2) + b'"}'

    results = of(long(LINE_MAX), long(LINE_MAX + 1), long(5 * LINE_MAX), long(LINE_MAX))
    assert [type(one) for one in results] == [IntakeRequest, Problem, Problem, IntakeRequest]
    assert [one.line for one in results[1:3]] == [2, 3]
    with pytest.raises(BadPayload, match="the most is"):
        request_in(long(LINE_MAX + 1))


class Endless(io.RawIOBase):
    """A stream of as many bytes as are wanted, made when they are read."""

    def __init__(self, line: bytes, size: int) -> None:
        self.line, self.left, self.rest = line, size, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while self.left > 0 and len(self.rest) < len(buffer):
            self.rest += self.line
            self.left -= len(self.line)
        size = min(len(self.rest), len(buffer))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size


@pytest.mark.parametrize("line", [b'{"channel": "a", "ref": "1"}\n' * 100, b"x" * 10_000])
def test_a_stream_of_any_length_takes_no_more_memory(line):
    def peak(size: int) -> int:
        tracemalloc.start()
        for _ in read_requests(io.BufferedReader(Endless(line, size))):
            pass
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(100_000)
    assert peak(1_000_000) < 500_000


LINES = st.lists(
    st.binary()
    | st.fixed_dictionaries(
        {"channel": st.text() | st.just("email"), "ref": st.text() | st.integers()},
        optional={"title": st.text(), "url": st.text(), "delivery": st.text(), "x": st.none()},
    ).map(lambda value: json.dumps(value).encode())
)


@given(LINES)
def test_any_bytes_give_asks_or_problems(lines):
    data = b"\n".join(lines)
    results = list(read_requests(io.BytesIO(data)))
    assert all(isinstance(one, (IntakeRequest, Problem)) for one in results)
    assert len(results) == sum(1 for line in data.split(b"\n") if line.strip())
    assert results == list(read_requests(io.BytesIO(data)))
