"""A pointer in a file is read as it was written, and garbage is no pointer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.backlogs.formats.pointer import pointer_of
from dibs.backlogs.item import PERSON, UNBOUND, Pointer
from dibs.domain.model import TTL_MAX, TTL_MIN, Token

TOKENS = st.builds(Token, st.integers(0, 10**17), st.integers(0, 10**17))
POINTERS = st.builds(Pointer, st.just("board-1"), TOKENS) | st.builds(
    Pointer,
    st.just("board-1"),
    TOKENS,
    st.sampled_from(("codex-2", "ana", "Zo\u00eb@example.org")),
    st.sampled_from((PERSON, UNBOUND, "s1", "a:b/c")),
    st.integers(TTL_MIN, TTL_MAX),
)


@given(POINTERS)
def test_a_pointer_is_read_as_it_is_written(pointer):
    assert pointer_of(str(pointer)) == pointer


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "board", "board 1", "board 1.x", "board  1.7", " board 1.7", "board 1.7 ",
        "board 1.7 ana", "board 1.7 ana * 2h more", "board 1.7 ana * 2", "board 1.7 ana * 31d",
        "board 1.7 ana * 0s", "board 1.7 ana * 1.s", "board 1.7 ana * 1.5h", "board 1.7 ana * 1.5", "board 1.7 ana * .5s",
        "board 1.7 ana * 1.0000001s", "board 1.7 $name * 2h", "board 1.7 ana s1/ 2h", "b\td 1.7",
        "board\n1.7", "board 1.7 ana * 2h\n", "b" * 200 + " 1.7",
    ],
)  # fmt: skip
def test_garbage_is_no_pointer(text):
    assert pointer_of(text) is None


@given(st.text())
def test_any_text_is_a_pointer_or_none(text):
    pointer = pointer_of(text)
    assert pointer is None or str(pointer) == text or pointer_of(str(pointer)) == pointer
