"""An index from paths to scopes: looks up which of many scopes contain a path, without testing them all."""

from __future__ import annotations

from dibs.domain.model import AREA
from dibs.domain.scopes.overlap import (
    StepBudget,
    TooManySteps,
    compiled,
    folded_path,
    is_plain,
    lies_in,
    names_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.domain.scopes.overlap import Pattern

BELOW = "/**"


class ScopeIndex:
    """An index of many scopes, each identified by its position. Only globs are matched one by one."""

    def __init__(
        self,
        scopes: Iterable[tuple[str, ...]],
        *,
        fold: bool = False,
        work: StepBudget | None = None,
    ) -> None:
        self._fold = fold
        self._work = work or StepBudget()
        self._whole: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}
        self._wild: dict[str, list[tuple[str, int]]] = {}
        """Glob patterns by the literal folders that they begin with."""
        self._ready: dict[str, list[tuple[Pattern, int]]] = {}
        """The compiled patterns of the folders that were looked up."""
        for place, scope in enumerate(scopes):
            for pattern in scope:
                self._add(place, pattern)

    def _add(self, place: int, pattern: str) -> None:
        if pattern.startswith(AREA):
            return
        if is_plain(pattern):
            self._whole.setdefault(folded_path(pattern.rstrip("/"), self._fold), []).append(place)
        elif pattern.endswith(BELOW) and is_plain(pattern[: -len(BELOW)]):
            name = folded_path(pattern[: -len(BELOW)], self._fold)
            self._below.setdefault(name, []).append(place)
        else:
            self._wild.setdefault(self._start(pattern), []).append((pattern, place))

    def _start(self, pattern: str) -> str:
        """The literal folders that every matching path begins with."""
        names = pattern.split("/")
        plain = next(place for place, name in enumerate(names) if not is_plain(name))
        return folded_path("/".join(names[:plain]), self._fold)

    def _below_start(self, start: str) -> list[tuple[Pattern, int]]:
        if start not in self._ready:
            wild = self._wild.get(start, ())
            self._work.spend(sum(len(text) for text, _ in wild))
            self._ready[start] = [(compiled(text, self._fold), place) for text, place in wild]
        return self._ready[start]

    def of(self, path: str) -> list[int]:
        """The positions of all scopes that contain the path, in order. Raises `TooManySteps`."""
        found, is_all = self.known(path)
        if not is_all:
            raise TooManySteps
        return found

    def known(self, path: str) -> tuple[list[int], bool]:
        """The same within the step limit, and whether the list is complete. Literal scopes cost no steps."""
        if not (self._whole or self._below or self._wild):
            return [], True
        text = folded_path(path, self._fold)
        found: list[int] = []
        starts = [""]
        end = text.find("/")
        while end >= 0:
            above = text[:end]
            found += self._whole.get(above, ())
            found += self._below.get(above, ())
            if above in self._wild:
                starts.append(above)
            end = text.find("/", end + 1)
        found += self._whole.get(text, ())
        is_all = self._add_wild(path, starts, found)
        return (sorted(set(found)) if len(found) > 1 else found), is_all

    def _add_wild(self, path: str, starts: list[str], found: list[int]) -> bool:
        """Appends the matching globs; False if the step limit was reached before all were tested."""
        try:
            wild = [each for start in starts for each in self._below_start(start)]
            names = names_of(path, self._fold) if wild else ()
            for pattern, place in wild:
                if lies_in(pattern, names, self._work):
                    found.append(place)
        except TooManySteps:
            return False
        return True
