"""Findings of `dibs doctor` about git hooks: installed, missing or changed."""

from __future__ import annotations

from dibs.integrations.git.install import INSTALLED, MISSING, GitHooksSetup
from dibs.storage.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.locate import Repository


def findings(repository: Repository | None, python: str) -> list[Finding]:
    """No findings outside a repository. Hooks that were never installed are a note, not an error."""
    if repository is None:
        return []
    states = GitHooksSetup(repository, python).states()
    if all(each.state == INSTALLED for each in states):
        names = ", ".join(each.hook for each in states)
        return [Finding("git hooks", f"{INSTALLED}: {names}")]
    if all(each == each.but(state=MISSING, note="") for each in states):
        return [Finding("git hooks", "none is set up: dibs setup git", "note")]
    wrong = [
        f"{each.hook} is {each.state}" + (f" ({each.note})" if each.note else "")
        for each in states
        if each.state != INSTALLED
    ]
    told = f"{'; '.join(wrong)}; dibs setup git puts that right"
    return [Finding("git hooks", told, "wrong")]
