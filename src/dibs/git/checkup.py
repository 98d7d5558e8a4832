"""What `dibs doctor` finds about the hooks of a repository: in, missing, or changed."""

from __future__ import annotations

from dibs.git.install import INSTALLED, MISSING, Setup
from dibs.stores.store import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.locate import Repository


def findings(repository: Repository | None, python: str) -> list[Finding]:
    """Nothing outside of a repository. Hooks that nobody put in are worth knowing, not wrong."""
    if repository is None:
        return []
    states = Setup(repository, python).states()
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
