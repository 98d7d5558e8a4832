"""Findings of `dibs doctor` about harnesses: installation, trust, sandbox access."""

from __future__ import annotations

import os
from os.path import exists

from dibs.board.identity import harness_of
from dibs.domain.refusals import Refused
from dibs.harnesses import HARNESSES
from dibs.integrations.harness import text_edit
from dibs.integrations.harness.install import INSTALLED, PROJECT, USER, HarnessSetup
from dibs.storage.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dibs.harnesses import Harness


def findings(
    home: str, root: str, dibs: str, board: str, environment: Mapping[str, str]
) -> list[Finding]:
    """`board`: the folder of a file board, or ""."""
    found: list[Finding] = []
    for harness in HARNESSES.values():
        levels = (USER, PROJECT) if root else (USER,)
        for level in levels:
            found += of_setup(HarnessSetup(harness, level, home, root, dibs, board))
    if not found:
        found = [Finding("harnesses", "none is set up: dibs setup", "note")]
    return [*found, *in_here(board, environment)]


def of_setup(setup: HarnessSetup) -> Iterator[Finding]:
    """Findings about one setup; none if it was never installed."""
    name = setup.harness.name
    try:
        if not any(setup.ours_in(text_edit.read(setup.settings))):
            return
        hooks, *rest = setup.findings()
        told = hooks.state if program_of(setup) else "calls a dibs that is not there"
        level = "ok" if told == INSTALLED else "wrong"
        yield Finding(f"{name} hooks", f"{told}: {hooks.path}", level)
        for part in rest:
            told = f"{part.state}: {part.path}"
            yield Finding(f"{name} {part.what}", told, "ok" if part.state == INSTALLED else "note")
        yield from trusted(setup.harness)
    except Refused as problem:
        yield Finding(f"{name} hooks", str(problem), "wrong" if setup.level == USER else "note")


def program_of(setup: HarnessSetup) -> bool:
    """Whether every hook calls a program that exists."""
    text = text_edit.read(setup.settings) or ""
    for _, item in setup.ours_in(text):
        for handler in item.get("hooks", [item]):
            command = handler["command"]
            words = [command] if "args" in handler else command.replace("'", "").split(" hook ")
            if not exists(words[0]):
                return False
    return True


def trusted(harness: Harness) -> Iterator[Finding]:
    if harness.trust:
        yield Finding(f"{harness.name} trust", harness.trust, "note")


def in_here(board: str, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Inside a harness: whether its sandbox lets us write to the board."""
    mark = harness_of(environment)
    if not mark:
        return
    if board and not os.access(board, os.W_OK):
        told = (
            f"{board} cannot be written here: the sandbox keeps it out; dibs setup codex lets it in"
        )
        yield Finding("sandbox", told, "wrong")
    else:
        yield Finding("sandbox", f"{mark} is set, and the board is within reach")
