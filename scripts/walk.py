"""Counts how far a command walks through the code: files executed, hops between files, nested calls of execute.

python scripts/walk.py [SRC]      SRC: another source tree to walk through, such as that of an older commit

A file is executed if one of its functions runs for the command; what runs while modules are imported does not count.
A hop is a call from a function in one file to a function in another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
AGENT = ("--agent", "codex", "--session", "s1")
PERSON = ("--as", "ana")

ITEM = """---
id: task-1
title: One item
status: To Do
---
"""

WALKS = {
    "claim": ("claim", "T-1", *AGENT),
    "next": ("next", *AGENT),
    "complete": ("complete", "T-1", *AGENT),
    "commit guard": ("guard", "commit", *AGENT),
    "sync of one item": ("sync", *PERSON),
    "timesheet": ("timesheet",),
}

WATCHED = """
import json, os, sys
root = os.path.join(sys.argv[1], "dibs") + os.sep
FUNCTION = 0x1  # CO_OPTIMIZED: neither a module nor the body of a class
files, hops, deepest = set(), 0, 0

def depth(frame):
    found = 0
    while frame is not None:
        code = frame.f_code
        found += code.co_filename.startswith(root) and "execute" in code.co_name
        frame = frame.f_back
    return found

def imports(frame):
    "Whether the body of one of our modules is being run."
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False

def walk(frame, event, _argument):
    global hops, deepest
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(root) or not code.co_flags & FUNCTION:
        return
    if imports(frame):
        return
    files.add(code.co_filename)
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(root):
        caller = caller.f_back
    if caller is not None and caller.f_code.co_filename != code.co_filename and caller.f_code.co_flags & FUNCTION:
        hops += 1
    if "execute" in code.co_name:
        deepest = max(deepest, depth(frame))

sys.path.insert(0, sys.argv[1])
from dibs.cli.main import main
sys.setprofile(walk)
exit_code = main(sys.argv[3:])
sys.setprofile(None)
names = sorted(name.removeprefix(root) for name in files)
with open(sys.argv[2], "w") as out:
    json.dump({"exit": exit_code, "files": names, "hops": hops, "execute": deepest}, out)
"""


class Workshop:
    """A throw-away repository with two tasks and a known agent."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder = folder / "shop"
        self.source = source
        self.found = folder / "found.json"
        self.folder.mkdir()
        home = folder / "home"
        home.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = kept | {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
        self.run("git", "init", "-q", ".")
        self.dibs("init", *PERSON)
        self.dibs("add", "One", *PERSON)
        self.dibs("add", "Two", "--scope", "src/**", *PERSON)
        self.dibs("note", "T-1", "the agent is known from now on", *AGENT)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )

    def dibs(self, *arguments: str) -> dict[str, object]:
        """Runs a command and returns what it executed."""
        where = (str(self.source), str(self.found))
        self.run(sys.executable, "-I", "-c", WATCHED, *where, *arguments)
        found: dict[str, object] = json.loads(self.found.read_text())
        assert found["exit"] == 0, (arguments, found)
        return found

    def prepare(self, walk: str) -> None:
        if walk == "commit guard":
            self.dibs("claim", "T-2", *AGENT)
            (self.folder / "src").mkdir()
            (self.folder / "src" / "one.py").write_text("")
            self.run("git", "add", ".")
        elif walk == "complete":
            self.dibs("claim", "T-1", *AGENT)
        elif walk == "sync of one item":
            tasks = self.folder / "backlog" / "tasks"
            tasks.mkdir(parents=True)
            (self.folder / "backlog" / "config.yml").write_text("project_name: shop\n")
            (tasks / "task-1 - One-item.md").write_text(ITEM)
        elif walk == "timesheet":
            self.dibs("claim", "T-1", *AGENT)
            self.dibs("complete", "T-1", *AGENT)


def walked(walk: str, source: Path) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="dibs-walk-") as folder:
        workshop = Workshop(Path(folder), source)
        workshop.prepare(walk)
        return workshop.dibs(*WALKS[walk])


def main() -> int:
    source = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SOURCE
    print(f"{'walk':<18} {'files':>5} {'hops':>6} {'execute':>8}")
    for walk in WALKS:
        found = walked(walk, source)
        print(f"{walk:<18} {len(found['files']):>5} {found['hops']:>6} {found['execute']:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
