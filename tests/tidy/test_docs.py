"""The documentation is true: pages are current, links lead somewhere, sessions are run for real."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.cli import verbs
from dibs.domain.guards import named
from dibs.domain.verbs import commands
from dibs.output.error_map import ERROR_MAP
from kit.repositories import Repo
from kit.sessions import fits, outputs, session_of

ROOT = Path(__file__).parent.parent.parent
VERBS = {*verbs.MODULES, *verbs.ALIASES, "help"}
PROSE = {"gives"}
"""Words after `dibs` in advice that is a sentence, not a command."""


def kept_files(*patterns: str) -> list[Path]:
    """Files that are in the repository, or would be with the next commit."""
    output = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return sorted(ROOT / name for name in output.split("\0") if name and (ROOT / name).is_file())


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


PAGES = kept_files("*.md")


def test_the_reference_pages_are_current():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "reference.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pages_of_states_and_rights_name_verbs_that_can_be_typed():
    for name in ("states", "rights"):
        page = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
        named = re.findall(r"\bdibs ([a-z]+)", page)
        assert named
        assert {*named} <= VERBS


def test_the_page_of_states_has_every_guard_of_every_verb():
    page = (ROOT / "docs" / "reference" / "states.md").read_text()
    for spec in commands():
        for guard in map(named, (*spec.guards, *spec.own_guards)):
            assert f"`{guard.__name__}`: {guard.__doc__}\n" in page, spec.name


# Links.


def anchors(page: Path) -> set[str]:
    """What `#...` may name on a page: its headings, as they are written in links."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name_of(page)}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{name_of(page)}: {target}"


# Verbs.


def commands_in(text: str) -> set[str]:
    """The word after `dibs` wherever the page shows code; options may stand between."""
    text = re.sub(r"^```text.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    code = re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE)
    code += re.findall(r"`[^`\n]+`", text)
    code += re.findall(r"^    .+$", text, re.MULTILINE)
    named = r"(?<![\w./-])(?<!from )dibs(?: +--(?:agent|as|session|request-id) \S+| +--json)* +([a-z][a-z_-]*)"
    return {verb for piece in code for verb in re.findall(named, piece)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_verb_that_a_page_names_exists(page):
    assert commands_in(page.read_text()) <= VERBS


def test_every_verb_that_an_advice_names_exists():
    for code, surface in ERROR_MAP.items():
        named = set(re.findall(r"\bdibs ([a-z]+)", surface.advice)) - PROSE
        assert named <= VERBS, code


# What does not belong in the repository.


def test_no_file_names_a_path_of_a_developers_machine():
    homes = "|".join(["ro" + "ot", "ho" + "me", "wo" + "rk"])
    needle = re.compile(rf"(?<![\w.\-*}})])/(?:{homes})/")
    found = [
        f"{name_of(path)}: {line.strip()}"
        for path in kept_files()
        for line in path.read_text(errors="replace").splitlines()
        if needle.search(line)
    ]
    assert found == []


# Sessions.


@pytest.mark.parametrize("page", [page for page in PAGES if session_of(page)], ids=name_of)
def test_the_sessions_of_a_page_are_true(page, tmp_path):
    repo = Repo.create(tmp_path / "shop")
    steps = session_of(page)
    for step, output in zip(steps, outputs(steps, repo.folder)):
        shown = "\n".join(step.shown)
        assert fits(shown, output), f"$ {step.command}\n{output}\nthe page shows:\n{shown}"


def test_the_readme_has_a_session():
    assert len(session_of(ROOT / "README.md")) > 5
