"""What lies beside a workgraph: its folder, its lock, and the registry of its agents."""

from __future__ import annotations

import os
import time
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

from dibs.backlogs import files
from dibs.backlogs.gone import told
from dibs.backlogs.item import Problem
from dibs.board.bounded import Unreadable, json
from dibs.core.refusals import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from dibs.machine import Machine

FOLDERS = (".wg", ".workgraph")
GRAPH, LOCK, REGISTRY = "graph.jsonl", "graph.lock", os.path.join("service", "registry.json")
OVER = frozenset(("dead", "failed", "done", "stopped", "exited", "killed"))
"""What the registry says of an agent that works no more; `starting`, `idle`, `stopping`: look."""
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05


def folder_of(root: str) -> str:
    """The folder below `root` that has a graph, the newer name first; "" if there is none."""
    for folder in FOLDERS:
        if os.path.isfile(os.path.join(root, folder, GRAPH)):
            return folder
    return ""


def lock_path(root: str, folder: str = "") -> str:
    """Beside the graph; without one, where it would lie."""
    return os.path.join(root, folder or folder_of(root) or FOLDERS[0], LOCK)


class locked:  # noqa: N801 - it is read as a verb: with locked(root, 5)
    """The graph's own lock, taken as its program takes it, so that neither overwrites the other.

    Waits for it for so many seconds, and is then refused (`busy`). The kernel gives it back with the
    process. What the file says is left alone. Raises `OSError` where the file cannot be opened.
    """

    def __init__(self, root: str, wait_seconds: float, folder: str = "") -> None:
        self.path, self.wait_seconds = lock_path(root, folder), wait_seconds
        self._descriptor = -1

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self.path, flags, 0o644)
        try:
            self._take()
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        flock(self._descriptor, LOCK_UN)  # not only closed: a process forked meanwhile may share it
        os.close(self._descriptor)

    def _take(self) -> None:
        deadline, pause = time.monotonic() + self.wait_seconds, FIRST_PAUSE
        while True:
            try:
                flock(self._descriptor, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._busy() from None
                time.sleep(min(pause, left))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return

    def _busy(self) -> Exception:
        return refused(
            "busy",
            f"another program has kept {self.path} for more than {self.wait_seconds:g} s",
            path=self.path,
        )


class Registry:
    """The agents that workgraph's service has started, by their ids. `problem`: why it is of no use.

    One of no use knows nobody, which says nothing of who lives: ask for the problem first.
    """

    def __init__(self, agents: Mapping[str, Any], problem: Problem | None = None) -> None:
        self.agents, self.problem = agents, problem

    def dead(self, agent: str, machine: Machine) -> bool | None:
        """Whether an agent is gone; nothing, if the registry cannot tell.

        By its pid, on this host. A pid that runs is taken for the agent's own: when in doubt it lives.
        """
        entry = self.agents.get(agent)
        if not isinstance(entry, dict):
            return None
        if entry.get("status") in OVER:
            return True
        pid = entry.get("pid")
        if type(pid) is not int or pid <= 0:
            return None
        return machine.process(pid) is None


def read_registry(root: str, folder: str = "") -> Registry | None:
    """The registry below `root`, if there is one. A damaged one is not none: it says so."""
    path = os.path.join(folder or folder_of(root) or FOLDERS[0], REGISTRY)
    try:
        return registry_of(path, files.read(root, path).data)
    except FileNotFoundError:
        return None
    except (OSError, Unreadable) as problem:
        return _of_no_use(path, told(problem))


def registry_of(path: str, data: bytes) -> Registry:
    try:
        known = json(data)
    except Unreadable as problem:
        return _of_no_use(path, str(problem))
    agents = known.get("agents") if isinstance(known, dict) else None
    if not isinstance(agents, dict):
        return _of_no_use(path, "it lists no agents")
    return Registry(agents)


def _of_no_use(path: str, why: str) -> Registry:
    what, choice = f"the registry is of no use: {why}", "every claim in the graph is kept"
    return Registry({}, Problem(path, what, choice, warns=True))
