"""Names in files that match no actor: they stay text, and possible aliases are proposed."""

from __future__ import annotations

from dibs.domain.checks import PLACEHOLDERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def proposals(owners: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """A command for each name that resembles a known actor's but is not one of its names."""
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
    """The name without the parts that people spell differently each time."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
