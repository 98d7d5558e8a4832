"""Names in files that are no actors: they stay text, and what they may mean is proposed."""

from __future__ import annotations

from dibs.core.checks import PLACEHOLDERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def proposals(owners: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """A command for each name that looks like a known actor's and is not one of its names."""
    names = list(known)
    folded = {name.casefold() for name in names}
    by_core = {core(name): name for name in reversed(names)}
    found = []
    for owner in sorted(owners):
        name = by_core.get(core(owner))
        alias = owner.lstrip("@")
        if name is None or alias.casefold() in folded or owner.casefold() in PLACEHOLDERS:
            continue
        found.append(f"{owner} may be {name}: dibs actor set {name} --alias {alias} --as PERSON")
    return tuple(found)


def core(name: str) -> str:
    """Without what people write differently each time."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
