"""The public contract is pinned: keys of JSON, exit codes, settings, schema, and the sessions of the pages.

Each file in `frozen/` is written by hand or by `python tests/tidy/test_frozen.py`, and reviewed like code. A change
of the code's arrangement never touches them; a change of the contract does, in a commit that says so.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from dibs.board.settings import SETTINGS
from dibs.output.error_map import ERROR_MAP, EXITS
from dibs.storage.queries import computed
from kit.repositories import Repo
from kit.sessions import session_of

ROOT = Path(__file__).parent.parent.parent
FROZEN = Path(__file__).parent / "frozen"

ANA, BEN = ("--as", "ana"), ("--as", "ben")
ONE, TWO = ("--agent", "codex", "--session", "s1"), ("--agent", "claude", "--session", "s2")

SESSION = (
    ("init", *ANA), ("add", "One", "--scope", "src/**", *ANA), ("add", "Two", "--after", "T-1", *ANA),
    ("add", "Three", *ANA), ("add", "Four", *ANA), ("add", "Five", *ANA), ("add", "Six", *ANA),
    ("intake", "--title", "Asked for", "--channel", "mail", "--ref", "m-1", *ANA), ("edit", "T-1", "--priority", "1", *ANA),
    ("list",), ("list", "--ready"), ("why", "T-2"), ("depend", "T-3", "--on", "T-4", *ANA),
    ("depend", "T-3", "--not-on", "T-4", *ANA), ("scope", "T-4", "--add", "docs/**", *ANA), ("scope", "T-4"),
    ("claim", "T-1", *ONE), ("claim", "T-1", *TWO), ("start", "T-1", *ONE), ("stop", "T-1", *ONE),
    ("renew", "T-1", *ONE), ("renew", *ONE), ("note", "T-1", "half of it", *ONE), ("show", "T-1"), ("show", "T-99"),
    ("takeover", "T-1", *TWO), ("takeover", "T-1", "--force", *BEN),
    ("takeover", "T-1", "--force", "--reason", "he is ill", *BEN), ("complete", "T-1", *ONE),
    ("handoff", "T-1", "--to", "ana", *BEN), ("release", "T-1", *ANA), ("claim", "T-1", *TWO),
    ("submit", "T-1", *TWO), ("reject", "T-1", "--reason", "not yet", *ANA), ("claim", "T-1", *TWO),
    ("submit", "T-1", *TWO), ("accept", "T-1", *ANA), ("next", *ONE), ("next", *TWO), ("block", "T-2", *ONE),
    ("assign", "T-5", "--to", "ben", *ANA), ("unassign", "T-5", *ANA), ("park", "T-5", *ANA), ("unpark", "T-5", *ANA),
    ("claim", "T-4", *TWO), ("block", "T-4", "--reason", "which one?", "--on", "ana", *TWO), ("unblock", "T-4", *ANA),
    ("claim", "T-6", *TWO), ("fail", "T-6", "--reason", "no", *TWO), ("retry", "T-6", *ANA),
    ("reset", "T-6", "--dry-run", *ANA), ("reset", "T-6", *ANA), ("drop", "T-6", "--reason", "not wanted", *ANA),
    ("status",), ("log",), ("log", "T-1"), ("log", "--verify"), ("log", "--forced"), ("log", "--head"),
    ("who", "T-2"), ("who", "src/x.py"), ("stint", "list"), ("day", "codex"), ("timesheet",), ("sweep", *ANA),
    ("config",), ("actor", "list"), ("actor", "set", "codex", "--tier", "2", *ANA), ("doctor",), ("board", "list"),
    ("setup", "git", *ANA), ("setup", "git", "--check"), ("guard", "range", "HEAD~0..HEAD"), ("prime", *ONE),
    ("statusline", *ONE), ("sync", *ANA), ("dispatch", "--once", *ANA), ("dispatch", "--pause", *ANA),
    ("next", *TWO), ("dispatch", "--resume", *ANA), ("wait", "T-1", "--for", "complete"),
    ("run", "T-3", *TWO, "--", "true"), ("claim", "nonsense", *ONE), ("claim", "T-3"), ("nonsense",),
    ("uninstall", "--yes", *ANA),
)  # fmt: skip


def shape(value: object, path: str = "") -> set[str]:
    """The paths of all keys in a JSON value, with the elements of lists as one."""
    if isinstance(value, dict):
        return {f"{path}.{key}".lstrip(".") for key in value} | {
            found for key, item in value.items() for found in shape(item, f"{path}.{key}")
        }
    if isinstance(value, list):
        return {found for item in value for found in shape(item, f"{path}[]")}
    return set()


def shape_of(text: str) -> set[str]:
    try:
        return shape(json.loads(text))
    except ValueError:
        return {"(not one object)"} if text.strip() else set()


def frozen_json(folder: Path) -> str:
    repo, lines = Repo.create(folder), []
    for command in SESSION:
        typed = command[: command.index("--")] if "--" in command else command
        ran = repo.run(*typed, "--json", *command[len(typed) :])
        lines.append(f"$ {' '.join(command)}\nexit {ran.code}\n")
        lines += [f"  {path}\n" for path in sorted(shape_of(ran.out))]
        lines += [f"  ! {path}\n" for path in sorted(shape_of(ran.err))]
    return "".join(lines)


def frozen_exits(_folder: Path) -> str:
    rows = [
        f"{code} {mapping.exit} {mapping.http} {mapping.mcp}\n"
        for code, mapping in ERROR_MAP.items()
    ]
    return "".join(sorted(rows)) + "".join(f"exit {code}\n" for code in sorted(EXITS))


def frozen_settings(_folder: Path) -> str:
    return "".join(f"{name}\n" for name in sorted(SETTINGS))


def frozen_schema(_folder: Path) -> str:
    return "".join(f"{number:04} {fingerprint}\n" for number, fingerprint in computed().items())


def frozen_console(_folder: Path) -> str:
    lines = []
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]):
        steps = session_of(page)
        if steps:
            lines.append(f"# {page.relative_to(ROOT)}\n")
            lines += [f"$ {step.command}\n" for step in steps]
    return "".join(lines)


FILES = {
    "json.txt": frozen_json,
    "exits.txt": frozen_exits,
    "settings.txt": frozen_settings,
    "schema.txt": frozen_schema,
    "console.txt": frozen_console,
}


def pytest_generate_tests(metafunc) -> None:
    metafunc.parametrize("name", FILES)


def test_the_contract_is_unchanged(name, tmp_path):
    assert FILES[name](tmp_path / "shop") == (FROZEN / name).read_text()


if __name__ == "__main__":
    for file, contents in FILES.items():
        with tempfile.TemporaryDirectory() as place:
            (FROZEN / file).write_text(contents(Path(place) / "shop"))
