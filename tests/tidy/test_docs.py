"""The documentation is true: pages are current, links lead somewhere, sessions are run for real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.board.identity import HARNESSES
from dibs.interfaces.cli import verbs
from dibs.interfaces.surfaces import SURFACES
from kit.repositories import Repo, clean_environment

ROOT = Path(__file__).parent.parent.parent
VERBS = {*verbs.MODULES, *verbs.ALIASES, "help"}
PROSE = {"gives"}
"""Words after `dibs` in advice that is a sentence, not a command."""


def kept_files(*patterns: str) -> list[Path]:
    """Files that are in the repository, or would be with the next commit."""
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return sorted(ROOT / name for name in told.split("\0") if name and (ROOT / name).is_file())


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


PAGES = kept_files("*.md")


def test_the_reference_pages_are_current():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "reference.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


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
    code = re.findall(r"^```.*?^```", text, re.DOTALL | re.MULTILINE)
    code += re.findall(r"`[^`\n]+`", text)
    code += re.findall(r"^    .+$", text, re.MULTILINE)
    named = (
        r"(?<![\w./-])dibs(?: +--(?:agent|as|session|request-id) \S+| +--json)* +([a-z][a-z_-]*)"
    )
    return {verb for piece in code for verb in re.findall(named, piece)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_verb_that_a_page_names_exists(page):
    assert commands_in(page.read_text()) <= VERBS


def test_every_verb_that_an_advice_names_exists():
    for code, surface in SURFACES.items():
        named = set(re.findall(r"\bdibs ([a-z]+)", surface.advice)) - PROSE
        assert named <= VERBS, code


# What does not belong in the repository, and what the demo must know.


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


def test_the_demo_forgets_every_variable_that_says_who_is_calling():
    told = (ROOT / "scripts" / "demo.sh").read_text().split()
    marks = {mark for harness in HARNESSES for mark in (*harness.marks, harness.session) if mark}
    assert marks - set(told) == set()


# Sessions: each `$ ...` line of a `console` block is run, all of a page in one shell.

MARK = "=== command ==="
CHANGING = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "INSTANT"),
    (r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(Z| UTC)", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\b[0-9a-f]{64}\b", "DIGEST"),
    (r"\b\d+ (s|min)( \d+ s)? (ago|ahead|behind)", "AGE"),
    (r'"host": "[^"]*"', "HOST"),
    (r"(sqlite +|file system +)[\w.]+", "MACHINE"),
    (r"[ \t]+", " "),
)


class Step:
    """A command of a session and the output that the page shows for it."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.shown: list[str] = []


def session_of(page: Path) -> list[Step]:
    steps: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:]))
            elif line.startswith("> "):
                steps[-1].command += "\n" + line[2:]
            else:
                steps[-1].shown.append(line)
    return steps


def outputs(steps: list[Step], folder: Path) -> list[str]:
    """What each command prints; a command that fails must say so with `; echo $?`."""
    script = "".join(f"{step.command}\nprintf '%s %s\\n' '{MARK}' $?\n" for step in steps)
    bin_ = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh"], input=script, cwd=folder, env=clean_environment(PATH=bin_, TZ="UTC"), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120,
    )  # fmt: skip
    *parts, rest = re.split(rf"{MARK} (\d+)\n", done.stdout)
    assert rest == "" and len(parts) == 2 * len(steps), done.stdout
    failed = [step.command for step, code in zip(steps, parts[1::2]) if code != "0"]
    assert failed == [], "these fail without saying so"
    return [said.replace(str(folder.parent), "/tmp") for said in parts[::2]]


def settled(text: str) -> str:
    """A text without what changes from run to run: times, ids, the machine, the width of columns."""
    for pattern, name in CHANGING:
        text = re.sub(pattern, name, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def fits(shown: str, said: str) -> bool:
    """`...` alone on a line of the page stands for any lines."""
    pattern = re.escape(settled(shown)).replace(re.escape("...") + "\\\n", "(?:.*\n)*?")
    return re.fullmatch(pattern.replace(re.escape("..."), "(?:.*\n?)*"), settled(said)) is not None


@pytest.mark.parametrize("page", [page for page in PAGES if session_of(page)], ids=name_of)
def test_the_sessions_of_a_page_are_true(page, tmp_path):
    repo = Repo.create(tmp_path / "shop")
    steps = session_of(page)
    for step, said in zip(steps, outputs(steps, repo.folder)):
        shown = "\n".join(step.shown)
        assert fits(shown, said), f"$ {step.command}\n{said}\nthe page shows:\n{shown}"


def test_the_readme_has_a_session():
    assert len(session_of(ROOT / "README.md")) > 5
