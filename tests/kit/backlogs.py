"""A board with item files beside it: a real folder, a real store, a clock that only the test moves."""

from __future__ import annotations

import difflib
from pathlib import Path

from dibs.backlogs.backlog import Backlog
from dibs.backlogs.discover import dialects_at
from dibs.backlogs.report import NOTHING, Options, Report
from dibs.backlogs.sync import sync
from kit.boards import Bench
from kit.corpus import STORY, TASK, WRK

KANO = "_kano/backlog/products/demo/items"
QUEUE = ".claude/work-queue"


class Yard(Bench):
    """A bench with a root for files. `yard.put(path, text)`, `yard.sync()`, `yard.text(path)`."""

    def __init__(self, folder: Path, kind: str = "sqlite", uid: str = "") -> None:
        super().__init__(folder / "dibs", kind=kind, uid=uid)
        self.root = folder / "root"
        self.root.mkdir(exist_ok=True)
        self.beside = folder / "dibs"

    def put(self, path: str, text: str | bytes) -> str:
        """A file as somebody writes it."""
        where = self.root / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.look()
        return path

    def look(self) -> None:
        """Finds the backlogs that there are now."""
        self.beside.mkdir(exist_ok=True)
        self.board.backlog = Backlog(str(self.root), str(self.beside), dialects_at(str(self.root)))

    def sync(self, options: Options = NOTHING) -> Report:
        self.look()
        return sync(self.board.backlog, self.board, self.person("ana").identity, options)

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.text(path)
        assert old in text, (path, old)
        self.put(path, text.replace(old, new))

    def kano(self, id_: str = "KABSD-TSK-0001", text: str = TASK, **fields: str) -> str:
        """An item in the form of kano, with another id (and another uid)."""
        number = id_.rpartition("-")[2]
        text = text.replace("KABSD-TSK-0141", id_)
        text = text.replace("85f4752b9a45", f"85f4752b{number:0>4}")
        for key, value in fields.items():
            text = replaced(text, key, value)
        return self.put(f"{KANO}/task/0000/{id_}_some-work.md", text)

    def wrk(self, id_: str = "WRK-157", folder: str = "pending", **fields: str) -> str:
        text = WRK.replace("id: WRK-157", f"id: {id_}")
        for key, value in fields.items():
            text = replaced(text, key, value)
        return self.put(f"{QUEUE}/{folder}/{id_}.md", text)


def replaced(text: str, key: str, value: str) -> str:
    """The frontmatter with another value for one key, or with one more key."""
    head, block, body = text.split("---\n", 2)
    lines = block.splitlines(keepends=True)
    at = [n for n, line in enumerate(lines) if line.lstrip().startswith(f"{key}:")]
    if at:
        indent = lines[at[0]][: -len(lines[at[0]].lstrip())]
        lines[at[0]] = f"{indent}{key}: {value}\n"
    else:
        lines.append(f"{key}: {value}\n")
    return f"{head}---\n{''.join(lines)}---\n{body}"


def difference(before: str, after: str) -> list[str]:
    """The lines that went (`-`) and came (`+`)."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[:2] in ("- ", "+ ")]


def ready(yard: Yard) -> list[str]:
    """The keys that an agent is offered, in order."""
    from dibs.board import queries

    return [task.key for task in queries.ready(yard.board, 1000).tasks]


def told(report: Report) -> str:
    return "\n".join(map(str, report.problems))


__all__ = ["KANO", "QUEUE", "STORY", "TASK", "WRK", "Yard", "difference", "ready", "told"]
