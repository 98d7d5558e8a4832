"""How paths are compared on a board: what areas stand for, whether case counts, what an overlap means."""

from __future__ import annotations

from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dibs.core.scopes import Work

AREA = "@"
"""What the name of an area begins with, in a scope."""

BLOCK, WARN, OFF = "block", "warn", "off"
CONFLICTS = (BLOCK, WARN, OFF)
"""What follows when two live leases may touch the same path."""

ALLOW, REFUSE = "allow", "refuse"
NEEDS = (ALLOW, WARN, REFUSE)
"""What follows when somebody commits who holds no task."""

HOOK_SECONDS = 2.0
"""How long a hook waits for a server in all. Then the setting `guard_failure` says what follows."""


class Ground(Value):
    """The settings that scopes depend on."""

    areas: Mapping[str, tuple[str, ...]] = {}
    """The globs of each area, by its name: `@web`."""
    fold: bool = False
    """Whether the file system takes `A` and `a` for the same."""
    conflict: str = BLOCK
    unread: str = ""
    """Why not all areas are known, if so."""

    def unknown(self, scope: tuple[str, ...]) -> list[str]:
        """The areas of a scope of which nobody can say now what they stand for."""
        if not self.unread:
            return []
        return [one for one in scope if one[:1] == AREA and one not in self.areas]

    def patterns(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        """A scope with what its areas stand for. The name of an area stays: it overlaps with itself."""
        if not any(pattern in self.areas for pattern in scope):
            return scope
        return scope + tuple(
            glob for pattern in scope for glob in self.areas.get(pattern, ()) if glob not in scope
        )

    def overlaps_with(
        self, scope: tuple[str, ...], work: Work
    ) -> Callable[[tuple[str, ...]], bool]:
        """Whether one scope after another has a path in common with this one, as long as the work lasts."""
        from dibs.core.scopes import Compared

        compared = Compared(self.patterns(scope), self.fold, work)
        if not self.areas:
            return compared.overlaps
        return lambda other: compared.overlaps(self.patterns(other))
