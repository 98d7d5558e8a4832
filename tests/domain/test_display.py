"""Text by others is shown: what is invisible is written out, and in a sentence it is in quotes."""

from __future__ import annotations

import unicodedata

import pytest

from dibs.domain.values import LONGEST, quoted, safe


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Fix login", "Fix login"),
        ("a\x1b[2Jb\x9b", "a\\x1b[2Jb\\x9b"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("a\ufe00\ufe0f\U000e0100", "a\\ufe00\\ufe0f\\U000e0100"),
        ("\u3164\u115f\u2800\u034f", "\\u3164\\u115f\\u2800\\u034f"),
        ("a\u200db\u200d\u200d", "a\\u200db\\u200d\\u200d"),
        ("\U000e0041", "\\U000e0041"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u26a0\ufe0f Fix", "\u26a0 Fix"),
        ("\u26a0\ufe0f\ufe0f", "\u26a0\\ufe0f"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("caf\u00e9 \u00a0\u3000", "caf\u00e9 \u00a0\u3000"),
    ],
)  # fmt: skip
def test_nothing_is_hidden(text, seen):
    assert safe(text) == seen


def test_no_character_of_format_or_control_passes_by_itself():
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            assert safe(f"a{chr(code)}b").isascii(), hex(code)
    for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)):
        assert safe(f"a{chr(code)}b").isascii(), hex(code)


def test_in_a_sentence_it_is_quoted_and_cut():
    assert quoted('a "b" \\') == r'"a \"b\" \\"'
    assert len(quoted("x" * 1000)) == LONGEST + 2
    assert len(quoted("\u202e" * 1000)) == LONGEST + 2
    assert quoted("x" * LONGEST) == f'"{"x" * LONGEST}"'
