"""Sessions on pages: each `$ ...` line of a `console` block is run, all of a page in one shell.

A page that names `SHOWN` has an empty database on a real server under that address.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kit.repositories import clean_environment

SHOWN = "postgresql://db.example.org/team"
MARK = "=== command ==="
CHANGING = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "INSTANT"),
    (r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(Z| UTC)", "TIME"),
    (r"\b\d{4}-\d\d-\d\d( \d\d:\d\d)?\b", "DAY"),
    (r"\b\d{1,3}:\d\d:\d\d\b", "SPAN"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\b[0-9a-f]{64}\b", "DIGEST"),
    (r"\b[0-9a-f]{10}(?= (was|names|changes)\b)", "COMMIT"),
    (r"\b\d+ (s|min)( \d+ s)? (ago|ahead|behind)", "AGE"),
    (r'"host": "[^"]*"', "HOST"),
    (r"(sqlite +|file system +|PostgreSQL )[\w.]+", "MACHINE"),
    (r"\b(dispatch|run)-[0-9a-f]{10}\b", "SESSION"),
    (r"\b1[7-9]\d{8}(\d{6})?\b", "EPOCH"),
    (r"[ \t]+", " "),
)


class Step:
    """A command of a session and the output that the page shows for it."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.shown: list[str] = []


def session_of(page: Path) -> list[Step]:
    steps: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:]))
            elif line.startswith("> "):
                steps[-1].command += "\n" + line[2:]
            else:
                steps[-1].shown.append(line)
    return steps


def outputs(steps: list[Step], folder: Path) -> list[str]:
    """What each command prints; a command that fails must say so with `; echo $?`."""
    script = "".join(f"{step.command}\nprintf '%s %s\\n' '{MARK}' $?\n" for step in steps)
    real, around = served() if SHOWN in script else (SHOWN, {})
    bin_ = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh"], input=script.replace(SHOWN, real), cwd=folder, text=True,
        env=clean_environment(PATH=bin_, TZ="UTC", XDG_CONFIG_HOME=f"{folder.parent}/home/.config", **around),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120,
    )  # fmt: skip
    *parts, rest = re.split(rf"{MARK} (\d+)\n", done.stdout)
    assert rest == "" and len(parts) == 2 * len(steps), done.stdout
    failed = [step.command for step, code in zip(steps, parts[1::2]) if code != "0"]
    assert failed == [], f"these fail without saying so: {failed}"
    return [part.replace(str(folder.parent), "/tmp").replace(real, SHOWN) for part in parts[::2]]


def served() -> tuple[str, dict[str, str]]:
    """The address of an empty database, as plain as the one shown; the environment has the rest."""
    from psycopg.conninfo import conninfo_to_dict

    from kit.postgres import server

    known = conninfo_to_dict(server().new_database())
    names = ("host", "port", "user", "password")
    rest = {f"PG{name.upper()}": str(known[name]) for name in names if name in known}
    return f"postgresql:///{known['dbname']}", rest


def settled(text: str) -> str:
    """A text without what changes from run to run: times, ids, the machine, the width of columns."""
    for pattern, name in CHANGING:
        text = re.sub(pattern, name, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def fits(shown: str, output: str) -> bool:
    """`...` alone on a line of the page stands for any lines."""
    pattern = re.escape(settled(shown)).replace(re.escape("...") + "\\\n", "(?:.*\n)*?")
    return (
        re.fullmatch(pattern.replace(re.escape("..."), "(?:.*\n?)*"), settled(output)) is not None
    )
