"""Harnesses as we see them: what they say on the standard input, and processes that look like one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kit.repositories import DIBS, Ran, Repo

HARNESS = """\
import json, subprocess, sys
for line in sys.stdin:
    call = json.loads(line)
    done = subprocess.run(call["command"], input=call["input"], capture_output=True, text=True, shell=call["shell"])
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""
"""A program that runs what it is told to, as a harness runs its hooks, until it is killed."""


def claude_event(event: str, repo: Repo, session: str = "c1", **more: object) -> dict[str, object]:
    """What Claude Code sends at an event."""
    base = {"session_id": session, "transcript_path": "/t.jsonl", "cwd": str(repo.folder)}
    return {**base, "hook_event_name": event, **more}


def edit(repo: Repo, path: str, session: str = "c1", **more: object) -> dict[str, object]:
    given = {"file_path": str(repo.folder / path), "old_string": "a", "new_string": "b"}
    return claude_event("PreToolUse", repo, session, tool_name="Edit", tool_input=given, **more)


def hook(repo: Repo, event: object, name: str = "claude", **environment: str) -> Ran:
    """`dibs hook` as a process of its own, started by whoever runs the tests."""
    text = event if isinstance(event, str) else json.dumps(event)
    return repo.run("hook", name, fed=text, **environment)


def denial(ran: Ran) -> str:
    """Why Claude Code is not to run a tool; "" if it may."""
    assert (ran.code, ran.err) == (0, ""), ran.err
    answer = json.loads(ran.out) if ran.out else {"hookSpecificOutput": {}}
    specific = answer["hookSpecificOutput"]
    return specific.get("permissionDecisionReason", "")


def context(ran: Ran) -> str:
    assert (ran.code, ran.err) == (0, ""), ran.err
    return json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]


class Running:
    """A process that looks like a harness, and starts its hooks itself."""

    def __init__(self, repo: Repo, folder: Path, name: str = "claude", **environment: str) -> None:
        script = folder / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(HARNESS)
        self.repo, self.name = repo, name
        self.process = subprocess.Popen(
            [sys.executable, str(script)], cwd=repo.folder, env=repo.environment(**environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, command: list[str] | str, event: object = "", *, shell: bool = False) -> Ran:
        text = event if isinstance(event, str) else json.dumps(event)
        call = json.dumps({"command": command, "input": text, "shell": shell})
        self.process.stdin.write(call + "\n")
        self.process.stdin.flush()
        return Ran(*json.loads(self.process.stdout.readline()))

    def hook(self, event: object) -> Ran:
        return self.run([DIBS, "hook", self.name], event)

    def hook_in_shell(self, event: object) -> Ran:
        """As a harness does that knows command lines only: a shell stands between."""
        return self.run(f"{DIBS} hook {self.name}; true", event, shell=True)

    def dibs(self, *arguments: str, **environment: str) -> Ran:
        """A command that the agent types: in a shell of its own."""
        words = [f"{name}={value}" for name, value in environment.items()]
        return self.run(["env", *words, "sh", "-c", '"$@"; exit $?', "sh", DIBS, *arguments])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def environment_of(text: str) -> dict[str, str]:
    """What the lines of a shell file export."""
    found = [line.removeprefix("export ").partition("=") for line in text.splitlines()]
    return {name: value for name, _, value in found if name and name not in os.environ}
