"""Two scopes overlap exactly if there is a path that both match."""

from __future__ import annotations

import functools
import itertools
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dibs.domain.scopes.overlap import LAST_CASED, _cased, _lower, matches, overlap
from kit import soak

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"

OVERLAP = [
    ("src/auth", "src/auth/login.py"),
    ("src/auth", "src/**"),
    ("src/auth/", "src/auth"),
    ("src", "**/*.py"),
    ("**", "a"),
    ("*", "a"),
    ("a/**/b", "a/b"),
    ("a/**/b", "a/x/y/b"),
    ("a/**", "a/b"),
    ("a/**", "a"),
    ("**/test_*.py", "tests/**/*_auth.py"),
    ("*.py", "test*"),
    ("a?c", "ab*"),
    ("[a-c]x", "[c-e]?"),
    ("[!a]", "[!b]"),
    ("[^a]", "b"),
    ("[]]", "[!a-z]"),
    ("[a-]", "-"),
    ("[abc", "[abc/d"),
    ("[[]id]", "?id]"),
    ("a**b", "axb"),
    ("a**b", "ab"),
    ("src/*/", "src/x/y/z"),
    ("src/*", "src/x/"),
    (".*/", ".github/workflows"),
    ("*", ".env"),
    ("@web", "@web"),
    (COMPOSED, DECOMPOSED + "/menu"),
    ("caf?", DECOMPOSED),
    ("a b", "a b/c"),
]
APART = [
    ("src/auth", "src/authority"),
    ("src/auth", "src/web"),
    ("src/auth", "SRC/auth"),
    ("src/*", "src/x/y"),
    ("*", "a/b"),
    ("*.py", "src/a.py"),
    ("a/**/b", "a/x/b/[c]"),
    ("a/**", "[a]"),
    ("a**b", "a/b"),
    ("a/**/", "[a]"),
    ("a?b", "a/b"),
    ("a?b", "ab"),
    ("[!a]", "a"),
    ("[a-c]", "[d-f]"),
    ("[a-c]", "d"),
    ("[.-0]", "a/b"),
    ("[z-a]", "*"),
    ("[z-a]", "[z-a]"),
    ("a/*/c", "a/[c]"),
    ("*a", "*b"),
    ("**/*.py", "**/*.md"),
    ("@web", "@api"),
    ("@web", "web"),
    ("@web", "**"),
    ("@web", "@web/pages"),
    ("caf\u00e9", "cafe"),
]


@pytest.mark.parametrize(("one", "other"), OVERLAP)
def test_they_overlap(one, other):
    assert overlap((one,), (other,))
    assert overlap((other,), (one,))


@pytest.mark.parametrize(("one", "other"), APART)
def test_they_are_apart(one, other):
    assert not overlap((one,), (other,))
    assert not overlap((other,), (one,))


def test_one_pair_of_patterns_that_overlap_is_enough():
    assert overlap(("docs", "src/a.py"), ("tests", "src/*.py"))
    assert not overlap(("docs", "src/a.md"), ("tests", "src/*.py"))
    assert not overlap((), ("**",))


def test_everything_below_a_folder_is_not_the_folder():
    assert matches(("a/**",), "a/b/c")
    assert not matches(("a/**",), "a")
    assert matches(("a",), "a")
    assert matches(("a/",), "a")


def test_a_path_is_a_name_and_not_a_pattern():
    assert matches(("a[*]",), "a*")
    assert not matches(("ab",), "a*")
    assert not matches(("@web",), "@web")
    assert matches(("[@]web/**",), "@web/index")
    assert not matches(("[z-a]",), "")


# Letters of two cases.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SRC/Auth", "src/aUTH/x"),
        ("[A-C]", "b"),
        ("b", "[A-C]"),
        ("[a-c]", "[B]"),
        ("\u00c9t\u00e9", "\u00e9t\u00c9"),
        ("\u212a", "k"),
        ("[\u0391-\u03a9]", "\u03c9"),
        ("[Z-a]", "Z"),
    ],
)
def test_a_repository_may_not_distinguish_cases(one, other):
    assert overlap((one,), (other,), fold=True)
    assert not overlap((one,), (other,)) or one == "[Z-a]"
    assert matches((one,), other, fold=True) or "[" in other


@pytest.mark.parametrize(
    ("one", "other"),
    [("[!a]", "A"), ("[!A]", "a"), ("[A-C]", "d"), ("[!\u0001-@[-\U0010ffff]", "[!a]")],
)
def test_a_class_that_leaves_a_letter_out_leaves_out_both_cases(one, other):
    assert not overlap((one,), (other,), fold=True)


def test_every_letter_has_one_that_means_all_its_cases():
    assert all(ord(_lower(chr(lower))) == lower for lower in _cased().values())
    assert all(_lower(chr(code)) == chr(code) for code in range(LAST_CASED + 1, 0x110000))


# No pattern takes long.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("*a" * 120 + "b", "*a" * 120 + "c"),
        ("*?" * 120 + "b", "*[a-z]" * 40 + "c"),
        ("**/*a/" * 40 + "b", "**/*a/" * 40 + "c"),
        ("**/" * 80 + "b", "*/" * 80 + "c"),
    ],
)
def test_many_stars_take_no_longer_than_their_number(one, other):
    begun = time.process_time()
    assert not overlap((one,), (other,))
    assert time.process_time() - begun < 1


# Against all paths there are.

LETTERS = "abc"
"""`c` represents every character that no pattern of these tests names."""


def names(longest: int) -> list[str]:
    lengths = range(1, longest + 1)
    return ["".join(name) for n in lengths for name in itertools.product(LETTERS, repeat=n)]


def paths(longest: int, deepest: int) -> list[tuple[str, ...]]:
    depths = range(1, deepest + 1)
    return [path for n in depths for path in itertools.product(names(longest), repeat=n)]


@functools.cache
def fits_name(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return fits_name(pattern[1:], name) or (bool(name) and fits_name(pattern, name[1:]))
    if not name:
        return False
    if pattern[0] == "[":
        inner, _, rest = pattern[1:].partition("]")
        members = inner.removeprefix("!")
        if members == "a-b":
            members = "ab"
        return (name[0] in members) != (inner[0] == "!") and fits_name(rest, name[1:])
    return pattern[0] in ("?", name[0]) and fits_name(pattern[1:], name[1:])


def fits(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """As slowly, and as plainly, as it can be written."""
    if pattern == ("",):  # after a trailing slash
        return True
    if not pattern:
        return not path
    if pattern in (("**",), ("**", "")):
        return bool(path)
    if pattern[0] == "**":
        return fits(pattern[1:], path) or (bool(path) and fits(pattern, path[1:]))
    return bool(path) and fits_name(pattern[0], path[0]) and fits(pattern[1:], path[1:])


@functools.cache
def matched(text: str, longest: int, deepest: int) -> frozenset[tuple[str, ...]]:
    """Of all paths up to a size, those that a pattern matches."""
    is_plain = not set(text) & set("*?[")
    pattern = tuple((text + "/" if is_plain and not text.endswith("/") else text).split("/"))
    return frozenset(path for path in paths_of(longest, deepest) if fits(pattern, path))


paths_of = functools.cache(paths)

CHARACTERS = ["a", "b", "?", "[a]", "[ab]", "[a-b]", "[!a]", "[!ab]", "*", "**"]
# A shortest common name has no character that a star takes in both patterns: it is no longer than
# both have other characters. The same goes for paths, segments and `**`.
NAMES = st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=3).map("".join)
SHORT = st.sampled_from(["a", "b", "?", "[!a]", "*", "*a", "b*", "*?", "*b*"])
DEEP = st.lists(st.sampled_from(["a", "b", "*", "[!a]", "**"]), min_size=1, max_size=3)
WIDE = st.lists(st.one_of(SHORT, st.just("**")), min_size=1, max_size=2)
END = st.sampled_from(["", "/"])


def joined(segments):
    return st.builds(lambda parts, end: "/".join(parts) + end, segments, END)


def agrees(one: str, other: str, longest: int, deepest: int) -> None:
    expected = bool(matched(one, longest, deepest) & matched(other, longest, deepest))
    assert overlap((one,), (other,)) == expected
    assert overlap((other,), (one,)) == expected


@settings(max_examples=soak.examples(300))
@given(NAMES.filter(lambda name: name != "**"), NAMES.filter(lambda name: name != "**"))
def test_names_overlap_if_one_name_fits_both(one, other):
    agrees(one, other, longest=6, deepest=1)


@settings(max_examples=soak.examples(300))
@given(joined(DEEP), joined(DEEP))
def test_paths_overlap_if_one_path_fits_both(one, other):
    agrees(one, other, longest=1, deepest=6)


@settings(max_examples=soak.examples(150))
@given(joined(WIDE), joined(WIDE))
def test_globs_overlap_if_one_path_fits_both(one, other):
    agrees(one, other, longest=2, deepest=4)


SMALL = ["a", "b", "?", "*", "[!a]", "a*", "*b", "[ab]", "**"]
"""With up to three of them in a path every way is taken in which two patterns can meet."""


def small_patterns() -> list[str]:
    lengths = range(1, 4)
    every = ["/".join(parts) for n in lengths for parts in itertools.product(SMALL, repeat=n)]
    return every[: len(SMALL) + len(SMALL) ** 2] + every[len(SMALL) + len(SMALL) ** 2 :: 7]


def test_all_pairs_of_small_patterns_are_decided_exactly():
    """Against brute force over all paths of a small alphabet: no difference in either direction."""
    every = small_patterns()
    found = {one: matched(one, 2, 3) | matched(one, 1, 5) for one in every}
    wrong = [
        (one, other)
        for one, other in itertools.combinations_with_replacement(every, 2)
        if overlap((one,), (other,)) != (not found[one].isdisjoint(found[other]))
    ]
    assert len(every) * (len(every) + 1) // 2 > 15_000
    assert wrong == []


def test_twenty_thousand_random_pairs_are_decided_exactly():
    chance = random.Random(8)
    ends = ["", "", "/"]
    names_ = ["".join(chance.choices(CHARACTERS, k=chance.choice([1, 2, 3]))) for _ in range(400)]
    singles = [name for name in names_ if name != "**"]
    deep = [
        "/".join(chance.choices(["a", "b", "*", "[!a]", "**"], k=chance.choice([1, 2, 3])))
        + chance.choice(ends)
        for _ in range(400)
    ]
    for patterns, longest, deepest in ((singles, 6, 1), (deep, 1, 6)):
        for _ in range(10_000):
            agrees(chance.choice(patterns), chance.choice(patterns), longest, deepest)


@given(joined(WIDE), st.sampled_from(paths(2, 3)))
def test_a_path_is_matched_as_slowly_written_rules_say(pattern, path):
    assert matches((pattern,), "/".join(path)) == (path in matched(pattern, 2, 4))


@given(joined(st.lists(NAMES, min_size=1, max_size=6)))
def test_a_pattern_overlaps_with_itself(pattern):
    assert overlap((pattern,), (pattern,))


PIECES = st.sampled_from([*CHARACTERS, "/", "[", "]", "!", "A", "-", "\u00e9", "e\u0301", "@"])
TEXTS = st.lists(PIECES, min_size=1, max_size=10).map("".join)


@given(st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=3), st.booleans())
def test_any_text_is_a_pattern(one, other, fold):
    """Whatever is written, both sides agree, and a name that matches both means that they overlap."""
    one, other = tuple(one), tuple(other)
    assert overlap(one, other, fold=fold) == overlap(other, one, fold=fold)
    for path in ("a", "b/a", "\u00e9", "[", "A/]"):
        if matches(one, path, fold=fold) and matches(other, path, fold=fold):
            assert overlap(one, other, fold=fold)
