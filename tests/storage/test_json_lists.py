"""Lists of texts are kept as JSON, though the plain case does without its module."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.refusals import Refused
from dibs.storage.queries import listed, texts

odd = st.text(st.sampled_from('a", \\[]\n\x00\x7f\x85\u202eé'), max_size=6)
lists = st.lists(odd | st.text(max_size=4), max_size=4).map(tuple)


@given(lists)
def test_a_list_is_written_as_json_writes_it_and_read_back(values):
    assert listed(values) == json.dumps(values, ensure_ascii=False)
    assert texts(listed(values)) == values


@given(st.text(st.sampled_from('[]", a\\1'), max_size=12))
def test_any_text_is_read_as_json_reads_it_or_not_at_all(column):
    try:
        expected = json.loads(column)
        is_list = isinstance(expected, list) and all(isinstance(each, str) for each in expected)
    except ValueError:
        is_list = False
    if is_list:
        assert texts(column) == tuple(expected)
    else:
        with pytest.raises(Refused):
            texts(column)
