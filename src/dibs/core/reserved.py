"""Which of many scopes a path lies in. Most of them are not looked at: names lead to those that count."""

from __future__ import annotations

from dibs.core.scopes import AREA, compiled, folded, head_of, is_plain, lies_in, names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.core.scopes import Pattern

BELOW = "/**"


class Reserved:
    """Many scopes; each is known by its place among them. Only wild ones are looked at one by one."""

    def __init__(self, scopes: Iterable[tuple[str, ...]], *, fold: bool = False) -> None:
        self._fold = fold
        self._whole: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}
        self._wild: dict[str, list[tuple[Pattern, int]]] = {}
        for place, scope in enumerate(scopes):
            for pattern in scope:
                self._add(place, pattern)

    def _add(self, place: int, pattern: str) -> None:
        if pattern.startswith(AREA):
            return
        if is_plain(pattern):
            self._whole.setdefault(folded(pattern.rstrip("/"), self._fold), []).append(place)
        elif pattern.endswith(BELOW) and is_plain(pattern[: -len(BELOW)]):
            name = folded(pattern[: -len(BELOW)], self._fold)
            self._below.setdefault(name, []).append(place)
        else:
            entry = (compiled(pattern, self._fold), place)
            self._wild.setdefault(head_of(pattern, self._fold), []).append(entry)

    def of(self, path: str) -> list[int]:
        """The places of all scopes that a path lies in, in their order."""
        text = folded(path, self._fold)
        found: list[int] = []
        end = text.find("/")
        first = text if end < 0 else text[:end]
        while end >= 0:
            found += self._whole.get(text[:end], ())
            found += self._below.get(text[:end], ())
            end = text.find("/", end + 1)
        found += self._whole.get(text, ())
        wild = (*self._wild.get(first, ()), *self._wild.get("", ()))
        if wild:
            names = names_of(path, self._fold)
            found += [place for pattern, place in wild if lies_in(pattern, names)]
        return sorted(set(found))
