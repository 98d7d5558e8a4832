"""The files beside a workgraph: its folder, its lock, and the registry of its agents."""

from __future__ import annotations

import os
import time
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

from dibs.backlogs import files
from dibs.backlogs.item import Problem
from dibs.backlogs.missing import reason_text
from dibs.domain.refusals import refused
from dibs.safe_files import Unreadable, json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from dibs.machine import Machine

FOLDERS = (".wg", ".workgraph")
GRAPH, LOCK, REGISTRY = "graph.jsonl", "graph.lock", os.path.join("service", "registry.json")
OVER = frozenset(("dead", "failed", "done", "stopped", "exited", "killed"))
"""Registry states of an agent that has ended; for `starting`, `idle`, `stopping` check the process."""
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05


def folder_of(root: str) -> str:
    """The folder below `root` that has a graph, the newer name first; "" if there is none."""
    for folder in FOLDERS:
        if os.path.isfile(os.path.join(root, folder, GRAPH)):
            return folder
    return ""


def lock_path(root: str, folder: str = "") -> str:
    """The lock beside the graph, or where the graph would be."""
    return os.path.join(root, folder or folder_of(root) or FOLDERS[0], LOCK)


class locked:  # noqa: N801 - reads as a verb: with locked(root, 5)
    """Holds the graph's own lock, as its program does, so that neither overwrites the other.

    Refuses (`busy`) after the timeout. The kernel releases it with the process. The file's content is not
    changed. Raises `OSError` if the file cannot be opened.
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
        flock(self._descriptor, LOCK_UN)  # closing is not enough: a forked process may share it
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
    """The agents that workgraph's service has started, by id. `problem`: why it is unusable.

    An unusable registry knows nobody, which does not mean that they are dead: check `problem` first.
    """

    def __init__(self, agents: Mapping[str, Any], problem: Problem | None = None) -> None:
        self.agents, self.problem = agents, problem

    def dead(self, agent: str, machine: Machine) -> bool | None:
        """Whether an agent has ended; None if the registry cannot tell.

        Checks its pid on this host. A running pid is assumed to be the agent's: in doubt it is alive.
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
    """The registry below `root`, or None. A damaged one is returned with its `problem`."""
    path = os.path.join(folder or folder_of(root) or FOLDERS[0], REGISTRY)
    try:
        return registry_of(path, files.read(root, path).data)
    except FileNotFoundError:
        return None
    except (OSError, Unreadable) as problem:
        return _of_no_use(path, reason_text(problem))


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
