"""The quick way to read and write JSON gives what `json` gives, and refuses what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.jsontext import listed, read, written

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(value=VALUES, indent=st.sampled_from([None, 1, "\t"]), ascii_=st.booleans())
def test_what_json_writes_is_read_as_it_was(value, indent, ascii_):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    assert read(f" \n{text}\t") == json.loads(text)


@given(st.text(alphabet='{}[]":,0123456789.eE+-truefalsn\\u \n', max_size=12))
def test_what_json_refuses_is_refused(text):
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            read(text)
    else:
        assert read(text) == expected


@given(st.lists(st.text()))
def test_a_list_of_texts_is_written_to_the_letter_as_json_does(texts):
    assert listed(texts) == json.dumps(texts, ensure_ascii=False)


TEXTS = st.recursive(
    st.dictionaries(st.text(), st.text()),
    lambda inner: st.dictionaries(st.text(), st.text() | inner),
)


@given(TEXTS)
def test_texts_by_their_names_are_written_to_the_letter_as_json_does(texts):
    assert written(texts) == json.dumps(texts)


@pytest.mark.parametrize("text", ["{", '{"a"', '{"a":', "[1,", '"', "[" * 100_000, "NaN"])
def test_half_a_text_is_refused_where_json_was_never_loaded(text):
    script = (
        "import sys; from dibs.domain.jsontext import read\n"
        "try: read(sys.stdin.read())\nexcept ValueError: print('refused', 're' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], input=text, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "refused False\n"
