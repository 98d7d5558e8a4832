"""The scope policy of a board: its areas, case sensitivity, and what an overlap leads to."""

from __future__ import annotations

from dibs.domain.model import AREA
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dibs.domain.scopes.overlap import StepBudget

BLOCK, WARN, OFF = "block", "warn", "off"
CONFLICTS = (BLOCK, WARN, OFF)
"""What happens when two live leases may touch the same path."""

ALLOW, REFUSE = "allow", "refuse"
NEEDS = (ALLOW, WARN, REFUSE)
"""What happens when somebody commits who holds no task."""

HOOK_TIMEOUT, HOOK_TIMEOUT_MAX = 2, 60
"""Total seconds that a hook waits for a server. After the timeout the setting `guard_failure` applies."""


def hook_timeout(environment: Mapping[str, str]) -> int:
    """The timeout in `DIBS_HOOK_SECONDS`; the default if it is missing or not allowed."""
    stated = environment.get("DIBS_HOOK_SECONDS", "")
    seconds = int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 4 else 0
    return seconds if 1 <= seconds <= HOOK_TIMEOUT_MAX else HOOK_TIMEOUT


class ScopePolicy(Value):
    """The settings that scopes depend on."""

    areas: Mapping[str, tuple[str, ...]] = {}
    """The globs of each area, by its name: `@web`."""
    fold: bool = False
    """Whether the file system is case-insensitive."""
    conflict: str = BLOCK
    unread: str = ""
    """Why not all areas could be read; empty if all are known."""

    def unknown(self, scope: tuple[str, ...]) -> list[str]:
        """The areas of a scope that cannot be resolved now."""
        if not self.unread:
            return []
        return [one for one in scope if one[:1] == AREA and one not in self.areas]

    def patterns(self, scope: tuple[str, ...]) -> tuple[str, ...]:
        """A scope with the globs of its areas added. Area names stay, since an area overlaps with itself."""
        if not any(pattern in self.areas for pattern in scope):
            return scope
        return scope + tuple(
            glob for pattern in scope for glob in self.areas.get(pattern, ()) if glob not in scope
        )

    def overlaps_with(
        self, scope: tuple[str, ...], work: StepBudget
    ) -> Callable[[tuple[str, ...]], bool]:
        """A function that tells whether a scope overlaps with this one, within the step limit of `work`."""
        from dibs.domain.scopes.overlap import PreparedScope

        compared = PreparedScope(self.patterns(scope), self.fold, work)
        if not self.areas:
            return compared.overlaps
        return lambda other: compared.overlaps(self.patterns(other))
